//! Runs side by side: time, tasks, bytes and the slowest tasks of each.

use crate::Tally;
use homing_model::event::EventKind;
use homing_model::text::shown;
use homing_model::units::{bytes, percent, span};
use homing_model::{Event, RawText, TaskId, fit};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The number of slowest tasks of each run.
const SLOWEST: usize = 3;
/// One of the compared runs. The caller passes every event, in order.
#[derive(Debug, Default)]
pub struct ComparedRun {
    name: String,
    label: Option<String>,
    tally: Tally,
    running: HashMap<TaskId, RawText>,
    /// Wall time, number and command of tasks, the slowest first.
    slowest: Vec<(u64, TaskId, RawText)>,
    /// Its failed tasks, for JSON.
    failures: Value,
}

impl ComparedRun {
    /// Makes a run of this name, without events.
    pub fn new(name: &str) -> ComparedRun {
        ComparedRun { name: name.into(), ..ComparedRun::default() }
    }

    /// Records that the run has no coordinator any more, although its journal has no end.
    pub fn interrupt(&mut self) {
        self.tally.interrupt();
    }

    /// Adds its failed tasks for [`compared_json`], as [`crate::Failures::json`] returns them.
    pub fn add_failures(&mut self, failures: Value) {
        self.failures = failures;
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event) {
        self.tally.add(event);
        match &event.what {
            EventKind::RunStarted { label, .. } => self.label.clone_from(label),
            EventKind::TaskStarted { task, command, .. } => drop(self.running.insert(*task, command.clone())),
            EventKind::TaskEnded { task, wall_us, .. } => {
                let command = self.running.remove(task).unwrap_or_default();
                self.add_slow(*wall_us, *task, command);
            }
            _ => {}
        }
    }

    /// Adds an attempt to the slowest tasks. A task that ran twice counts once, with its longer attempt.
    fn add_slow(&mut self, wall_us: u64, task: TaskId, command: RawText) {
        if self.slowest.iter().any(|(wall, same, _)| *same == task && *wall >= wall_us) {
            return;
        }
        self.slowest.retain(|(_, same, _)| *same != task);
        let at = self.slowest.partition_point(|(wall, ..)| *wall >= wall_us);
        self.slowest.insert(at, (wall_us, task, command));
        self.slowest.truncate(SLOWEST);
    }

    fn left(&self) -> Option<u64> {
        self.tally.counts.unfinished()
    }

    fn at_home(&self) -> Option<String> {
        let (local, remote) = self.tally.planned()?;
        Some(percent(local, local + remote))
    }

    fn json(&self) -> Value {
        let slowest = self
            .slowest
            .iter()
            .map(|(wall, task, command)| json!({ "task": task, "wall_us": wall, "command": command }));
        let mut told = self.tally.json();
        told["run"] = json!(self.name);
        told["label"] = json!(self.label);
        told["slowest"] = slowest.collect();
        told["failures"] = self.failures.clone();
        told
    }
}

/// Returns `runs` as JSON: each as in `homing report --json`, with `label` and `slowest` too.
pub fn compared_json(runs: &[ComparedRun]) -> Value {
    json!({ "runs": runs.iter().map(ComparedRun::json).collect::<Vec<_>>() })
}

/// Returns a table with a row for each quantity, a column for each run, and the change from the first to the last. If
/// it is wider than `columns`, the runs are below each other. The slowest tasks of each run follow, with whole
/// commands.
pub fn compared_text(runs: &[ComparedRun], columns: Option<usize>) -> String {
    let unknown = || "unknown".to_string();
    let column = |of: &dyn Fn(&ComparedRun) -> String| runs.iter().map(of).collect::<Vec<_>>();
    let number = |n: Option<u64>| n.map_or_else(unknown, |n| n.to_string());
    let size = |n: Option<u64>| n.map_or_else(unknown, bytes);
    let mut rows = vec![(String::new(), column(&|run| shown(&run.name)), "change".to_string())];
    if runs.len() > 2 {
        rows[0].2 = "first to last".into();
    }
    if runs.iter().any(|run| run.label.is_some()) {
        rows.push(("name".into(), column(&|run| run.label.as_deref().map_or("-".into(), shown)), String::new()));
    }
    if runs.iter().any(|run| run.tally.exit().is_none()) {
        rows.push(("state".into(), column(&|run| run.tally.state().into()), String::new()));
    }
    let wall = |run: &ComparedRun| run.tally.wall_us();
    rows.push(("time".into(), column(&|run| span(wall(run))), change(runs, |run| Some(wall(run)))));
    rows.push(("done".into(), column(&|run| run.tally.counts.done.to_string()), String::new()));
    rows.push(("failed".into(), column(&|run| run.tally.counts.failed().to_string()), String::new()));
    rows.push(("left".into(), column(&|run| number(run.left())), String::new()));
    rows.push(("retried".into(), column(&|run| run.tally.retried.to_string()), String::new()));
    let places = |run: &ComparedRun| format!("{}, {}", run.tally.size().0, run.tally.size().1);
    rows.push(("hosts, slots".into(), column(&places), String::new()));
    rows.push(("read".into(), column(&|run| size(run.tally.read())), change(runs, |run| run.tally.read())));
    rows.push(("home, by layout".into(), column(&|run| run.at_home().unwrap_or_else(unknown)), String::new()));
    let received = |run: &ComparedRun| match (run.tally.own_received(), run.tally.network().0) {
        // Most of these bytes are those of other programs.
        (None, Some(_)) => "-".into(),
        (own, _) => size(own),
    };
    if runs.iter().any(|run| run.tally.own_received().is_some()) {
        rows.push(("received".into(), column(&received), change(runs, |run| run.tally.own_received())));
    }
    let whole = table(&rows);
    let sums = match fit::exceeded(&whole, columns) {
        Some(_) => fit::wrapped(&one_by_one(&rows), columns),
        None => whole,
    };
    sums + &slowest(runs, columns)
}

/// Returns a line for each of the slowest tasks, run by run. Commands are whole, because those of two runs often differ
/// at their ends alone.
fn slowest(runs: &[ComparedRun], columns: Option<usize>) -> String {
    let names = runs.iter().map(|run| shown(&run.name)).collect::<Vec<_>>();
    let wide = names.iter().map(|name| fit::width(name)).max().unwrap_or(0);
    let lines = runs.iter().zip(&names).flat_map(|(run, name)| {
        run.slowest.iter().map(move |(wall, task, command)| {
            format!("{name:<wide$}  {:>8} task {task}: {}\n", span(*wall), command.display())
        })
    });
    let text: String = lines.collect();
    if text.is_empty() { text } else { format!("\nslowest tasks\n{}", fit::wrapped(&text, columns)) }
}

/// Returns the cells of each run as lines, run by run. The last one has the changes.
fn one_by_one(rows: &[(String, Vec<String>, String)]) -> String {
    let first = rows.iter().map(|(label, ..)| label.len()).max().unwrap_or(0);
    let runs = rows[0].1.len();
    let of = |nth: usize| -> String {
        let change =
            |change: &str| if nth + 1 < runs || change.is_empty() { "".into() } else { format!("  ({change})") };
        let lines = rows.iter().map(|(label, cells, more)| format!("{label:<first$}  {}{}", cells[nth], change(more)));
        lines.map(|line| line.trim_end().to_string() + "\n").collect()
    };
    (0..runs).map(of).collect::<Vec<_>>().join("\n")
}

/// Returns the change from the first run to the last, in percent.
fn change(runs: &[ComparedRun], of: impl Fn(&ComparedRun) -> Option<u64>) -> String {
    let [first, .., last] = runs else { return String::new() };
    match (of(first), of(last)) {
        (Some(old), Some(new)) if old > 0 => signed((new as f64 / old as f64 - 1.0) * 100.0),
        _ => String::new(),
    }
}

/// Formats a change with its sign, except that 0 has none.
fn signed(percent: f64) -> String {
    let whole = percent.round();
    if whole == 0.0 { "0 %".into() } else { format!("{whole:+.0} %") }
}

fn table(rows: &[(String, Vec<String>, String)]) -> String {
    let width = |column: usize| rows.iter().map(|(_, cells, _)| cells[column].chars().count()).max().unwrap_or(0);
    let first = rows.iter().map(|(label, ..)| label.len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].1.len()).map(width).collect();
    let mut text = String::new();
    for (label, cells, change) in rows {
        let cells: String = cells.iter().zip(&widths).map(|(cell, width)| format!("  {cell:<width$}")).collect();
        text += &format!("{}\n", format!("{label:<first$}{cells}  {change}").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::{ended, started};
    use homing_model::{HostSample, IoCounters, Outcome};
    use std::collections::BTreeMap;

    fn run(name: &str, wall_us: u64, failed: bool) -> ComparedRun {
        let mut run = ComparedRun::new(name);
        let outcome = Outcome::Exit(i32::from(failed));
        let whats = [started(1, "n1", 1, "sort a", None), ended(1, "n1", outcome, wall_us, IoCounters::default())];
        let ends = [0, wall_us as i64 * 1000];
        whats.into_iter().zip(ends).for_each(|(what, at_ns)| run.add(&Event { at_ns, what }));
        run
    }

    #[test]
    fn two_runs_stand_side_by_side_with_what_has_changed() {
        let text = compared_text(&[run("first", 4_000_000, false), run("second", 1_000_000, true)], None);
        let line = |label: &str| text.lines().find(|line| line.starts_with(label)).unwrap().to_string();
        assert!(line("time").ends_with("-75 %"), "{text}");
        assert_eq!(line("failed").split_whitespace().collect::<Vec<_>>(), ["failed", "0", "1"]);
        assert!(
            line("slowest tasks") == "slowest tasks" && text.contains("\nfirst      4.0 s task 1: sort a\n"),
            "{text}"
        );
    }

    #[test]
    fn a_task_that_ran_twice_is_listed_once_and_three_runs_have_a_change() {
        let mut twice = run("twice", 3_000_000, true);
        let again = [started(1, "n1", 1, "sort a", None), ended(1, "n1", Outcome::Exit(0), 9, IoCounters::default())];
        again.into_iter().for_each(|what| twice.add(&Event { at_ns: 3_000_000_000, what }));
        assert_eq!(twice.slowest, [(3_000_000, 1, "sort a".into())]);
        let text = compared_text(&[twice, run("second", 1, false), run("third", 6_000_000, false)], None);
        let line = |label: &str| text.lines().find(|line| line.starts_with(label)).unwrap();
        assert!(line("time").ends_with("+100 %") && line(" ").ends_with("first to last"), "{text}");
    }

    #[test]
    fn the_commands_of_slow_tasks_are_whole_at_any_width() {
        let long =
            "./align --reference /data/references/human/hg38.fa --out results/sample-0123.bam reads/sample-0123.fq";
        let mut slow = run("slow", 1_000_000, false);
        slow.add_slow(9_000_000, 2, long.into());
        for columns in [None, Some(200), Some(80), Some(40)] {
            let text = compared_text(&[run("first", 1, false), slow_copy(&slow)], columns);
            assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(long), "{columns:?}: {text}");
            let longest_word = 38;
            assert!(fit::exceeded(&text, columns.map(|n| n.max(longest_word))).is_none(), "{columns:?}: {text}");
        }
    }

    #[test]
    fn a_change_that_rounds_to_zero_has_no_sign() {
        for (wall_us, expected) in [(999_999, "0 %"), (1_000_000, "0 %"), (1_000_001, "0 %"), (1_010_000, "+1 %")] {
            let text = compared_text(&[run("first", 1_000_000, false), run("second", wall_us, false)], None);
            let time = text.lines().find(|line| line.starts_with("time")).unwrap();
            assert!(time.ends_with(&format!("  {expected}")), "{wall_us}: {text}");
        }
    }

    #[test]
    fn runs_without_an_end_have_their_state() {
        let line = |runs: &[ComparedRun]| {
            let text = compared_text(runs, None);
            let line = text.lines().find(|line| line.starts_with("state"));
            line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        let mut ended = run("ended", 1, false);
        ended.add(&Event { at_ns: 9, what: EventKind::RunEnded { exit: 0, counts: BTreeMap::new() } });
        let mut killed = run("killed", 1, false);
        killed.interrupt();
        assert_eq!(line(&[ended, killed, run("going", 1, false)]).as_deref(), Some("state ended interrupted running"));
    }

    /// Interfaces also count the bytes of other programs.
    #[test]
    fn received_bytes_that_the_tasks_do_not_explain_are_not_compared() {
        let run = |name: &str, read: u64| {
            let sample = |seconds: i64, received: u64| {
                let net = BTreeMap::from([("eth0".to_string(), (received, 0))]);
                let sample = HostSample { at_ns: seconds * 1_000_000_000, net, ..HostSample::default() };
                EventKind::Sample { host: "n1".into(), sample }
            };
            let io = IoCounters { rchar: Some(read), ..IoCounters::default() };
            let begin = started(1, "n1", 1, "cat a", None);
            let whats = [sample(0, 0), begin, sample(1, 64_000), ended(1, "n1", Outcome::Exit(0), 1, io)];
            let mut run = ComparedRun::new(name);
            whats.into_iter().for_each(|what| run.add(&Event { at_ns: 0, what }));
            run
        };
        let received = |runs: &[ComparedRun]| {
            let text = compared_text(runs, None);
            let line = text.lines().find(|line| line.starts_with("received"));
            line.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(received(&[run("a", 1), run("b", 2)]), None);
        assert_eq!(received(&[run("a", 64_000), run("b", 2)]).as_deref(), Some("received 64.0 kB -"));
    }

    fn slow_copy(run: &ComparedRun) -> ComparedRun {
        ComparedRun { name: run.name.clone(), slowest: run.slowest.clone(), ..ComparedRun::default() }
    }

    #[test]
    fn programs_get_the_same() {
        let json = compared_json(&[run("a", 1, false), run("b", 2, true)]);
        assert_eq!((&json["runs"][1]["run"], &json["runs"][1]["tasks"]["failed"]), (&"b".into(), &1.into()));
        assert_eq!(json["runs"][0]["slowest"][0]["command"], "sort a");
    }
}
