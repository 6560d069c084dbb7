//! Checks the invariants of a run that has ended, under any faults. Pure.

use crate::journal::{Journal, TaskOutcome};
use crate::scenario::{Deed, Form, KILL, Scenario, Whom};
use std::collections::BTreeMap;

/// One call of the program: the run's first, or a `resume`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPart {
    /// Its exit status; 128 and the signal's number when a signal ended it, as a shell has it.
    pub status: i32,
    /// Whether each task had an end. A task that was given up with its hosts counts.
    pub all_ended: bool,
    /// The deeds that were carried out. A deed without a victim is not among them.
    pub deeds: Vec<Deed>,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: String,
    /// Processes of the run that lived on for long after it.
    pub left: Vec<String>,
}

/// The begin and end of one execution of a task, in hundredths of seconds of a clock that no deed sets.
pub type Beats = BTreeMap<String, (u64, u64)>;

/// All observations of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunObservations {
    /// Its parts. The last but one completes the run, and the last finds nothing to do.
    pub parts: Vec<RunPart>,
    /// Its journal.
    pub journal: Journal,
    /// The error of `report`, when that failed.
    pub unreadable: Option<String>,
    /// The lines of effects, by the names of the files.
    pub effects: BTreeMap<String, Vec<String>>,
    /// The executions, by item.
    pub beats: BTreeMap<String, Beats>,
    /// The job log.
    pub joblog: String,
    /// By task: its output that `--results` kept.
    pub results: BTreeMap<u64, Vec<u8>>,
    /// A lock that is still held, or a run that `homing runs` still lists as unfinished.
    pub locked: Option<String>,
}

/// The subject of a finding: a column of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SummaryColumn {
    /// Effects that are not those of one whole execution of each task that is done.
    Effects,
    /// A task that ran twice at once, or again after it was done.
    Twice,
    /// Output of a task that is done is missing, or not as it was printed.
    Output,
    /// An exit status that does not match the result of the run.
    Status,
    /// Lines of the job log that are missing.
    JobLog,
    /// Processes that outlived the run.
    Processes,
    /// Locks that outlived the run.
    Locks,
    /// A journal that the program cannot read, or a crash of its own.
    Unreadable,
    /// A run that does not come to its end.
    Stuck,
    /// Harm by a neighbour's planted files.
    Planted,
    /// An image lost, or an older one restored, under a clock that jumps.
    Images,
    /// A job lost, or run twice, under a clock that jumps.
    Jobs,
    /// A fault where bash is /bin/sh.
    Bash,
    /// A bank without inodes that is not refused, or does not go on.
    Inodes,
    /// A file that a restore has replaced or left out where kinds differ.
    Replaced,
}

/// Something that is wrong.
pub type RunFinding = (SummaryColumn, String);

/// Compares the observations of a run with its scenario.
pub fn check(scenario: &Scenario, seen: &RunObservations) -> Vec<RunFinding> {
    let mut found = Vec::new();
    for number in 1..=scenario.tasks {
        task(scenario, seen, number, &mut found);
    }
    strangers(scenario, seen, &mut found);
    output(scenario, seen, &mut found);
    statuses(scenario, seen, &mut found);
    for part in &seen.parts {
        found.extend(part.left.iter().map(|left| (SummaryColumn::Processes, left.clone())));
        if part.stderr.contains("panicked") {
            found.push((SummaryColumn::Unreadable, format!("it crashed: {}", part.stderr)));
        }
    }
    if seen.journal.unreadable > 0 {
        found.push((
            SummaryColumn::Unreadable,
            format!("{} lines of the journal are not records", seen.journal.unreadable),
        ));
    }
    found.extend(seen.unreadable.iter().map(|why| (SummaryColumn::Unreadable, format!("report: {why}"))));
    found.extend(seen.locked.iter().map(|lock| (SummaryColumn::Locks, lock.clone())));
    found
}

fn task(scenario: &Scenario, seen: &RunObservations, number: u64, found: &mut Vec<RunFinding>) {
    let mut say = |column, text: String| found.push((column, format!("task {number}: {text}")));
    let (recorded, item) = (seen.journal.task(number), Scenario::item(number));
    let lines = seen.effects.get(&item).cloned().unwrap_or_default();
    let begun = lines.iter().filter(|l| l.starts_with("b ")).count() as u64;
    let whole = lines.last().and_then(|l| l.strip_prefix("e ")).is_some_and(|me| lines.contains(&format!("b {me}")));
    if recorded.end == TaskOutcome::Done && !whole {
        say(SummaryColumn::Effects, format!("done, and its effects are {lines:?}"));
    }
    if begun > recorded.starts && scenario.damage.is_none() {
        say(SummaryColumn::Effects, format!("it began {begun} times, the journal knows of {}", recorded.starts));
    }
    if recorded.done > 1 || recorded.starts_after_done > 0 {
        say(SummaryColumn::Twice, format!("run again after it was done: {recorded:?}"));
    }
    for (a, b) in overlaps(seen.beats.get(&item)) {
        say(SummaryColumn::Twice, format!("{a} and {b} ran at once"));
    }
    match recorded.end {
        TaskOutcome::Done if Scenario::fails(number) => {
            say(SummaryColumn::Effects, "it should fail, but is done".into())
        }
        TaskOutcome::Failed if !may_fail(scenario, number) => {
            say(SummaryColumn::Effects, "it failed without a cause".into())
        }
        TaskOutcome::Open | TaskOutcome::Lost => say(SummaryColumn::Stuck, "it has no end".into()),
        _ => {}
    }
    let logged = |fits: fn(&str, &str) -> bool| {
        let columns = |l: &str| l.split('\t').map(String::from).collect::<Vec<_>>();
        let lines = seen.joblog.lines().skip(1).map(columns).filter(|c| c.len() >= 8 && c[0] == number.to_string());
        lines.filter(|c| fits(&c[6], &c[7])).count()
    };
    let expected = match recorded.end {
        TaskOutcome::Done => logged(|exit, signal| exit == "0" && signal == "0"),
        TaskOutcome::Failed => logged(|exit, signal| exit != "0" || signal != "0"),
        TaskOutcome::Open | TaskOutcome::Lost => 1,
    };
    // A record that was spoilt is lost, and its task runs again.
    let again = recorded.end == TaskOutcome::Done && expected > 1 && scenario.damage.is_none();
    if expected == 0 || again {
        say(SummaryColumn::JobLog, format!("{expected} lines for its end ({:?})", recorded.end));
    }
}

fn may_fail(scenario: &Scenario, number: u64) -> bool {
    let first = Scenario::fails_once(number) && !scenario.retries;
    Scenario::fails(number) || first || scenario.harms_tasks()
}

fn overlaps(beats: Option<&Beats>) -> Vec<(&str, &str)> {
    let all: Vec<_> = beats.into_iter().flatten().collect();
    let pairs = all.iter().enumerate().flat_map(|(i, a)| all[i + 1..].iter().map(move |b| (a, b)));
    let both = pairs.filter(|((_, a), (_, b))| a.0 < b.1 && b.0 < a.1);
    both.map(|(a, b)| (a.0.as_str(), b.0.as_str())).collect()
}

/// Reports effects under a name that is no item of the scenario. A command on half a name makes one, for example.
fn strangers(scenario: &Scenario, seen: &RunObservations, found: &mut Vec<RunFinding>) {
    let items: Vec<String> = (1..=scenario.tasks).map(Scenario::item).collect();
    let names = seen.effects.keys().filter(|name| !items.contains(&name.trim_end_matches(".tried").to_string()));
    found.extend(
        names.map(|name| (SummaryColumn::Effects, format!("a task ran on {name:?}, which the run did not request"))),
    );
}

/// Returns the lines that tasks print: number of the task, number of the line. Also returns the odd lines. The output
/// of a task that was cut off may end inside a line.
fn printed(part: &RunPart) -> (Vec<(u64, u64)>, Vec<String>) {
    let whole = part.stdout.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let (mut lines, mut odd) = (Vec::new(), Vec::new());
    let text = String::from_utf8_lossy(&part.stdout[..whole]);
    let mut all = text.lines().peekable();
    while let Some(line) = all.next() {
        match pair(line).or_else(|| behind_a_piece(line, all.peek()).filter(|_| !part.deeds.is_empty())) {
            Some(pair) => lines.push(pair),
            None => odd.push(line.to_string()),
        }
    }
    (lines, odd)
}

fn pair(line: &str) -> Option<(u64, u64)> {
    let (task, number) = line.split_once(' ')?;
    Some((task.parse().ok()?, number.parse().ok()?))
}

/// Returns the first line of a task whose output begins in mid-line. Its digits can be read as many numbers. The
/// right one is the number with which the next line continues, if any.
fn behind_a_piece(line: &str, next: Option<&&str>) -> Option<(u64, u64)> {
    let ends = line.char_indices().skip(1).filter_map(|(at, _)| pair(&line[at..]));
    let firsts: Vec<(u64, u64)> = ends.filter(|(_, number)| *number == 1).collect();
    let goes_on = |first: &&(u64, u64)| next.is_some_and(|next| **next == format!("{} 2", first.0));
    firsts.iter().find(goes_on).or(firsts.last()).copied()
}

fn output(scenario: &Scenario, seen: &RunObservations, found: &mut Vec<RunFinding>) {
    let mut blocks: BTreeMap<u64, u64> = BTreeMap::new();
    let mut lines: BTreeMap<u64, Vec<bool>> = BTreeMap::new();
    for part in &seen.parts {
        let (all, odd) = printed(part);
        found.extend(odd.into_iter().map(|line| (SummaryColumn::Output, format!("{line:?} belongs to no task"))));
        for (number, line) in &all {
            let task = lines.entry(*number).or_insert_with(|| vec![false; Scenario::lines(*number) as usize]);
            match task.get_mut((*line as usize).wrapping_sub(1)) {
                Some(there) => *there = true,
                None => found.push((SummaryColumn::Output, format!("task {number} has no line {line}"))),
            }
        }
        let groups: Vec<u64> = all.chunk_by(|a, b| a.0 == b.0 && a.1 + 1 == b.1).filter_map(whole_block).collect();
        if scenario.form == Form::Keep && !groups.is_sorted() {
            found.push((SummaryColumn::Output, format!("not in order: {groups:?}")));
        }
        groups.into_iter().for_each(|number| *blocks.entry(number).or_default() += 1);
    }
    let calm = scenario.damage.is_none() && seen.parts.iter().all(|part| part.deeds.is_empty());
    for number in (1..=scenario.tasks).filter(|n| seen.journal.task(*n).end == TaskOutcome::Done) {
        if scenario.results {
            let kept = seen.results.get(&number);
            if kept != Some(&block(number)) {
                let text = format!("task {number} is done, its results have {:?} bytes", kept.map(Vec::len));
                found.push((SummaryColumn::Output, text));
            }
            continue;
        }
        let there = match scenario.form {
            Form::Lines => u64::from(lines.get(&number).is_some_and(|all| all.iter().all(|there| *there))),
            Form::Plain | Form::Keep => blocks.get(&number).copied().unwrap_or(0),
        };
        if there == 0 || (calm && there > 1) {
            found.push((SummaryColumn::Output, format!("task {number} is done, its output is there {there} times")));
        }
    }
}

fn whole_block(lines: &[(u64, u64)]) -> Option<u64> {
    (lines[0].1 == 1 && lines.len() as u64 == Scenario::lines(lines[0].0)).then_some(lines[0].0)
}

fn block(number: u64) -> Vec<u8> {
    (1..=Scenario::lines(number)).flat_map(|line| format!("{number} {line}\n").into_bytes()).collect()
}

fn statuses(scenario: &Scenario, seen: &RunObservations, found: &mut Vec<RunFinding>) {
    let failed = (1..=scenario.tasks).filter(|n| seen.journal.task(*n).end == TaskOutcome::Failed).count() as i32;
    for (at, part) in seen.parts.iter().enumerate().skip(seen.parts.len().saturating_sub(2)) {
        if part.status != failed {
            let text = format!("part {at} ended with {}, {failed} tasks of the run failed", part.status);
            found.push((SummaryColumn::Status, format!("{text}: {}", part.stderr.trim())));
        }
    }
    for (at, part) in seen.parts.iter().enumerate() {
        if part.status <= 101 && !part.all_ended {
            let text = format!("part {at} ended with {}, and not all was done", part.status);
            found.push((SummaryColumn::Status, format!("{text}: {}", part.stderr.trim())));
        }
        let asked = part.deeds.iter().map(asked_to_end).collect::<Option<Vec<i32>>>().unwrap_or_default();
        let fine = |status: i32| (0..=failed.max(0)).contains(&status) || asked.iter().any(|s| status == 128 + s);
        if !asked.is_empty() && !fine(part.status) {
            let text = format!("part {at} received {asked:?} and ended with {}", part.status);
            found.push((SummaryColumn::Status, format!("{text}: {}", part.stderr.trim())));
        }
    }
}

/// Returns the signal of a deed that lets the coordinator end in its own way.
fn asked_to_end(deed: &Deed) -> Option<i32> {
    match deed {
        Deed::Signal(Whom::Coordinator, signal @ (1 | 2 | 15)) => Some(*signal),
        Deed::Interrupts => Some(2),
        _ => None,
    }
}

/// Whether all tasks have an end that stays.
pub fn settled(scenario: &Scenario, journal: &Journal) -> bool {
    (1..=scenario.tasks).all(|number| !matches!(journal.task(number).end, TaskOutcome::Open | TaskOutcome::Lost))
}

/// Whether the journal has an end of every task. A task that was given up counts.
pub fn all_ended(scenario: &Scenario, journal: &Journal) -> bool {
    (1..=scenario.tasks).all(|number| journal.task(number).end != TaskOutcome::Open)
}

/// Counts how often a process was killed outright.
pub fn kills(seen: &RunObservations) -> u64 {
    let deeds = seen.parts.iter().flat_map(|part| &part.deeds);
    let kill = |deed: &&Deed| matches!(deed, Deed::Signal(_, KILL) | Deed::Pause(_, _, true));
    deeds.filter(kill).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::JournalTask;
    use crate::scenario::{Stroke, TaskSource};

    fn scenario() -> Scenario {
        Scenario {
            seed: 1,
            tasks: 4,
            jobs: 2,
            form: Form::Plain,
            results: false,
            retries: true,
            input: TaskSource::Args,
            neighbours: false,
            small_disk: [false; 3],
            parts: vec![vec![Stroke { records: 0, after_ms: 1, deed: Deed::Signal(Whom::Coordinator, KILL) }]],
            damage: None,
        }
    }

    /// Returns the observations of four tasks of which the last one fails, as it must.
    fn seen() -> RunObservations {
        let mut seen = RunObservations::default();
        let mut first =
            RunPart { deeds: vec![Deed::Signal(Whom::Coordinator, KILL)], status: 137, ..RunPart::default() };
        seen.joblog = "Seq\n".into();
        for number in 1..=4 {
            let fails = Scenario::fails(number);
            let end = if fails { TaskOutcome::Failed } else { TaskOutcome::Done };
            seen.journal
                .tasks
                .insert(number, JournalTask { starts: 1, done: u64::from(!fails), starts_after_done: 0, end });
            let ends = (!fails).then(|| "e 1-2".to_string());
            seen.effects.insert(Scenario::item(number), ["b 1-2".to_string()].into_iter().chain(ends).collect());
            seen.beats.insert(Scenario::item(number), [("1-2".to_string(), (10, 20))].into());
            let exit = if fails { 3 } else { 0 };
            seen.joblog += &format!("{number}\tn1\t0\t0\t0\t0\t{exit}\t0\tx\n");
            first.stdout.extend(if fails { Vec::new() } else { block(number) });
        }
        let last = RunPart { status: 1, all_ended: true, ..RunPart::default() };
        seen.parts = vec![first, last.clone(), last];
        seen
    }

    fn columns(seen: &RunObservations) -> Vec<SummaryColumn> {
        let mut columns: Vec<SummaryColumn> = check(&scenario(), seen).into_iter().map(|(column, _)| column).collect();
        columns.dedup();
        columns
    }

    #[test]
    fn a_run_without_fault_has_no_finding() {
        assert_eq!(check(&scenario(), &seen()), []);
    }

    #[test]
    fn a_task_that_was_cut_off_leaves_the_piece_of_a_line() {
        let mut seen = seen();
        seen.parts[0].stdout.splice(0..0, *b"5 70");
        assert_eq!(check(&scenario(), &seen), []);
        seen.parts[0].deeds.clear();
        assert_eq!(columns(&seen), [SummaryColumn::Output]);
    }

    #[test]
    fn a_task_that_was_given_up_is_told_of_and_still_to_be_done() {
        let mut journal = seen().journal;
        assert!(settled(&scenario(), &journal) && all_ended(&scenario(), &journal));
        journal.tasks.get_mut(&4).unwrap().end = TaskOutcome::Lost;
        assert!(!settled(&scenario(), &journal) && all_ended(&scenario(), &journal));
        journal.tasks.get_mut(&4).unwrap().end = TaskOutcome::Open;
        assert!(!all_ended(&scenario(), &journal));
    }

    #[test]
    fn each_fault_is_found_in_its_column() {
        type Fault = fn(&mut RunObservations);
        let faults: [(SummaryColumn, Fault); 15] = [
            (SummaryColumn::Effects, |s| s.effects.get_mut("t0001").unwrap().truncate(1)),
            (SummaryColumn::Effects, |s| s.effects.get_mut("t0002").unwrap().insert(0, "b 7-7".into())),
            (SummaryColumn::Effects, |s| s.effects.extend([("t000".to_string(), Vec::new())])),
            (SummaryColumn::Twice, |s| s.journal.tasks.get_mut(&1).unwrap().done = 2),
            (SummaryColumn::Twice, |s| s.beats.get_mut("t0003").unwrap().extend([("9-9".to_string(), (19, 30))])),
            (SummaryColumn::Output, |s| s.parts[0].stdout.truncate(6)),
            (SummaryColumn::Output, |s| s.parts[1].stdout.extend(b"half of\n")),
            (SummaryColumn::Status, |s| s.parts[1].status = 0),
            (SummaryColumn::Status, |s| (s.parts[0].status, s.parts[0].deeds) = (0, Vec::new())),
            (SummaryColumn::JobLog, |s| s.joblog = s.joblog.replace("\n3\t", "\n2\t")),
            (SummaryColumn::Processes, |s| s.parts[0].left.push("7 sleep".into())),
            (SummaryColumn::Locks, |s| s.locked = Some("lock".into())),
            (SummaryColumn::Unreadable, |s| s.parts[0].stderr = "thread panicked".into()),
            (SummaryColumn::Stuck, |s| s.journal.tasks.get_mut(&4).unwrap().end = TaskOutcome::Open),
            (SummaryColumn::Stuck, |s| s.journal.tasks.get_mut(&4).unwrap().end = TaskOutcome::Lost),
        ];
        for (column, spoil) in faults {
            let mut seen = seen();
            spoil(&mut seen);
            assert!(columns(&seen).contains(&column), "{column:?}: {:?}", check(&scenario(), &seen));
        }
    }
}
