//! Formats the evidence as a few aligned lines, printed at the end of a run.

use crate::amplified::UNKNOWN;
use crate::path::Path;
use crate::tally::{FailedTask, NAMED, Tally, explains};
use homing_journal::Counts;
use homing_model::event::NO_WAIT;
use homing_model::fit::clipped;
use homing_model::text::shown;
use homing_model::units::{bytes, count, percent, span};
use homing_model::{NodeSet, Outcome, TaskId, WAIT_ASKED_FROM_US};

/// The reason why no wait is known, and the setting that makes it known.
const NO_ACCOUNT: &str = "unknown: the kernels of the hosts do not measure it";
const SWITCH_ON: &str = "`sysctl kernel.task_delayacct=1` on the hosts switches it on";

struct ReportLines {
    color: bool,
    text: String,
}

impl ReportLines {
    /// Adds a line. Its value is made safe, because host names and reasons come from a journal that any user may have
    /// written.
    fn add(&mut self, label: &str, value: &str) {
        self.add_as_is(label, &shown(value));
    }

    fn add_as_is(&mut self, label: &str, value: &str) {
        let label = format!("{label:<11}");
        let label = if self.color { format!("\x1b[2m{label}\x1b[0m") } else { label };
        self.text.push_str(&format!("{label}{value}\n"));
    }

    fn red(&self, text: String) -> String {
        if self.color { format!("\x1b[31m{text}\x1b[0m") } else { text }
    }
}

/// Returns the counts of tasks that neither succeeded nor failed, such as `2 skipped`.
pub(crate) fn besides(counts: &Counts) -> impl Iterator<Item = String> {
    let all =
        [(counts.not_run(), "not run"), (counts.skipped, "skipped"), (counts.unfinished().unwrap_or(0), "unfinished")];
    all.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"))
}

impl Tally {
    /// Returns the evidence as text, with colours if `color`. Unknown values are marked as unknown. Values without a
    /// meaning for the run are left out.
    pub fn text(&self, color: bool) -> String {
        let mut lines = ReportLines { color, text: String::new() };
        self.tasks(&mut lines, "", true);
        if self.exit.is_none() && self.has_begun() {
            let next = self.continuation().map_or(String::new(), |next| format!("; {next}"));
            lines.add("state", &format!("{}{next}", self.state()));
        }
        let (hosts, slots) = self.size();
        let on =
            if hosts > 0 { format!(" on {}, {}", count(hosts, "host"), count(slots, "slot")) } else { String::new() };
        lines.add("wall time", &format!("{}{on}", span(self.wall_us())));
        if let Some(hosts) = self.unused(true) {
            lines.add("not used", &hosts);
        }
        if self.placed.0 > 0 || hosts > 1 {
            self.bytes(&mut lines);
        }
        // A run on one machine has no choice that an unknown wait could explain.
        if hosts > 1 || self.waits.known > 0 {
            self.wait(&mut lines);
        }
        if hosts > 1 {
            self.busy(&mut lines);
        }
        for full in self.full().iter().take(NAMED) {
            lines.add("full", &full.to_string());
        }
        let path = self.path.iter().flat_map(Path::lines);
        path.enumerate().for_each(|(at, line)| lines.add(if at == 0 { "path" } else { "" }, &line));
        self.limits(&mut lines);
        self.servers(&mut lines);
        self.shared(&mut lines);
        lines.text
    }

    /// Returns the evidence in a few lines: the counts of tasks by outcome, and where bytes were read.
    /// `homing report` shows the rest. The error output of failed tasks is left out: the user has just seen it.
    pub fn short(&self, color: bool) -> String {
        let mut lines = ReportLines { color, text: String::new() };
        let (hosts, slots) = self.size();
        let on = match hosts {
            0 => String::new(),
            n => format!(" on {}, {}", count(n, "host"), count(slots, "slot")),
        };
        self.tasks(&mut lines, &format!(" in {}{on}", span(self.wall_us())), false);
        if let Some(hosts) = self.unused(false) {
            lines.add("not used", &hosts);
        }
        self.lost(&mut lines);
        if self.placed.0 > 0 {
            lines.add("data", &self.inputs_where());
        }
        lines.text
    }

    /// Returns the words on the one host that holds all inputs; none if there are several.
    fn holder_clause(&self) -> String {
        self.only_holder().map_or(String::new(), |host| format!(": all of it is on {host}"))
    }

    /// Returns the part of the inputs that is at home by their layouts. If the tasks read less than the inputs, the
    /// line claims nothing about the network, and shows how much they read.
    fn inputs_where(&self) -> String {
        let (local, remote) = (self.planned.local, self.planned.remote);
        let (all, part) = (bytes(local + remote), percent(local, local + remote));
        // If the remote bytes are within a hundredth the same in any placement, no host of the run holds an input.
        let is_elsewhere = local == 0 && remote > 0 && self.planned.remote_if_in_turn <= remote + remote / 100;
        match self.rchar.filter(|read| *read < local + remote) {
            Some(read) if is_elsewhere => {
                format!("{all} of inputs, on no host of this run; tasks read {}", bytes(read))
            }
            Some(read) => format!("{all} of inputs, {part} at home by layout; tasks read {}", bytes(read)),
            None if is_elsewhere => format!("{all} of inputs over the network: on no host of this run, by layout"),
            None if remote == 0 => format!("{all} of inputs at home (100 %), by layout"),
            None => {
                let holder = self.holder_clause();
                format!("{part} of {all} at home, {} over the network, by layout{holder}", bytes(remote))
            }
        }
    }

    fn lost(&self, lines: &mut ReportLines) {
        let lost: NodeSet = self.hosts.iter().filter(|(_, h)| h.lost).map(|(name, _)| name.clone()).collect();
        if !lost.is_empty() {
            lines.add("lost", &lost.to_string());
        }
    }

    /// Returns the evidence in one line, and the failed tasks: enough for a run on one machine without volumes. The
    /// error output of failed tasks is left out, as in [`Self::short`].
    pub fn brief(&self, color: bool) -> String {
        let mut lines = ReportLines { color, text: String::new() };
        let report = self.run.as_ref().map_or(String::new(), |run| format!(" (homing report {run})"));
        self.tasks(&mut lines, &format!(" in {}{report}", span(self.wall_us())), false);
        lines.text
    }

    /// Returns the bytes that placement on other hosts could have saved, for a run that used only this host.
    pub fn elsewhere(&self) -> Option<String> {
        let all = self.planned.local + self.planned.remote;
        let (far, part) = (bytes(self.planned.remote), percent(self.planned.remote, all));
        (self.planned.remote > 0).then(|| format!("{far} ({part}) of the inputs lie on other hosts"))
    }

    /// Adds the counts of tasks and the first failed ones. `with_errors`: with the last line of their error output.
    fn tasks(&self, lines: &mut ReportLines, more: &str, with_errors: bool) {
        let failed = format!("{} failed", self.counts.failed());
        let mut parts = vec![format!("{} done", self.counts.done)];
        parts.push(if self.counts.failed() > 0 { lines.red(failed) } else { failed });
        parts.extend((self.retried > 0).then(|| format!("{} retried", self.retried)));
        parts.extend(besides(&self.counts));
        lines.add_as_is("tasks", &(parts.join(", ") + more));
        self.named.iter().for_each(|failed| failed.lines(lines, with_errors));
        if self.counts.failed() > self.named.len() as u64 && !self.named.is_empty() {
            let all = self.run.as_ref().map_or(String::new(), |run| format!(": homing report {run} --failed"));
            lines.add("", &format!("and {} more{all}", self.counts.failed() - self.named.len() as u64));
        }
        for (why, tasks) in self.not_run.iter().take(NAMED) {
            lines.add("  not run", &format!("{}: {why}", count(*tasks, "task")));
        }
        if self.exit.is_some() {
            self.next_steps(lines);
        }
    }

    /// Adds the commands that run the failed tasks again, and the tasks that are left.
    fn next_steps(&self, lines: &mut ReportLines) {
        let (has_failed, is_build) = (self.counts.failed() > 0, self.path.is_some());
        let has_rest = self.counts.unfinished().is_some_and(|n| n > 0);
        // Only make knows which part of a build is left.
        if let Some(again) = self.again.as_ref().filter(|_| has_failed || has_rest && is_build) {
            lines.add("  again", again);
        }
        // With --failed alone, a reader would believe that the unfinished tasks are lost.
        if let Some(run) = self.run.as_ref().filter(|_| has_rest && !is_build) {
            let but = if has_failed { ", which does not repeat the failed tasks" } else { "" };
            lines.add("  resume", &format!("homing resume {run}{but}"));
        }
    }

    fn bytes(&self, lines: &mut ReportLines) {
        let all = self.planned.local + self.planned.remote;
        if self.placed.0 == 0 {
            lines.add("planned", "unknown: no layout was found for the inputs");
        } else {
            let (local, remote) = (bytes(self.planned.local), bytes(self.planned.remote));
            let part = percent(self.planned.local, all);
            let holder = self.holder_clause();
            let but = match self.placed.1 {
                0 => holder,
                n => format!("; unknown for {}", count(n, "task")),
            };
            lines.add("planned", &format!("{local} from the task's own host ({part}), {remote} over the network{but}"));
            let saved = self.planned.remote_if_in_turn;
            if saved > 0 {
                lines.add("in turn", &format!("{} would have crossed the network without placement", bytes(saved)));
            }
        }
        let read = self.rchar.map_or("unknown".into(), bytes);
        lines.add(
            "measured",
            &format!(
                "{read} requested by read calls (pipes included), {} fetched from the hosts' disks",
                bytes(self.from_disk)
            ),
        );
        let amplified = self.amplified();
        let network = match self.network() {
            (Some(r), Some(s)) => {
                let (r, s, each) = (bytes(r), bytes(s), amplified.by_interfaces());
                format!("{r} received ({each}) and {s} sent by the hosts' interfaces")
            }
            _ => UNKNOWN.into(),
        };
        // Interfaces and disks also count other programs. If the tasks explain less than half of the bytes, the line
        // is left out.
        let is_alone = self.size().0 <= 1 && self.planned.remote == 0;
        if !is_alone && self.explains_network() {
            lines.add("network", &network);
        }
        // The line compares with the bytes that tasks read, so bytes that they wrote explain nothing of it.
        if amplified.disks == Some(0) || !explains(self.rchar, amplified.disks) {
            return;
        }
        let disks = self.hosts.iter().map(|(name, host)| (name.as_str(), host.disks));
        lines.add("disks", &amplified.by_disks(disks, self.wall_us()));
    }

    fn wait(&self, lines: &mut ReportLines) {
        if self.ended == 0 {
            return;
        }
        let asked_from = span(WAIT_ASKED_FROM_US);
        let Some(median) = self.waits.median_us() else {
            let why = match self.ended - self.short {
                0 => format!("not measured: no task ran for {asked_from}"),
                _ if self.placed.0 > 0 || self.from_disk > 0 => format!("{NO_ACCOUNT}; {SWITCH_ON}"),
                _ => NO_ACCOUNT.into(),
            };
            lines.add("I/O wait", &why);
            return;
        };
        let mut of = String::new();
        if self.short > 0 {
            of += &format!(", {} under {asked_from} not measured", self.short);
        }
        match self.ended - self.short - self.waits.known {
            0 => {}
            n => of += &format!(", unknown for {n} of {}", self.ended),
        }
        let sum = span(self.waits.sum_us);
        lines.add("I/O wait", &format!("{sum} in all, median about {} a task (delay accounting{of})", span(median)));
    }

    /// Adds the storage servers that limited the run, and the reason of each last limit.
    fn limits(&self, lines: &mut ReportLines) {
        for (name, (limit, why)) in &self.limits {
            // A limit without a measurement describes no property of the storage.
            if let Some(limit) = limit.filter(|_| !why.is_empty() && why != NO_WAIT) {
                lines.add(
                    "admission",
                    &format!("{name}: {} at once at the end, because {why}", count(u64::from(limit), "task")),
                );
            }
        }
    }

    /// Adds the bytes that NFS servers served, and how long that took.
    fn servers(&self, lines: &mut ReportLines) {
        for (name, served) in self.served().into_iter().filter(|(_, served)| served.bytes >= WORTH_TELLING) {
            let each = |ms: u64| span(ms * 1000 / served.requests.max(1));
            let again = match served.again {
                0 => String::new(),
                n => format!("; {} sent again after no answer", count(n, "request")),
            };
            lines.add(
                "served",
                &format!(
                    "{name}: {} in {}; on average each was answered in {}, after waiting {} to be sent{again}",
                    bytes(served.bytes),
                    count(served.requests, "request"),
                    each(served.answered_ms),
                    each(served.queued_ms)
                ),
            );
        }
    }

    /// Adds the storage servers that other users used at the same time.
    fn shared(&self, lines: &mut ReportLines) {
        for (name, shared) in self.shared.iter().filter(|(_, shared)| shared.most.len() > 1) {
            let mut most: Vec<_> = shared.most.iter().collect();
            most.sort_by_key(|(_, held)| std::cmp::Reverse(**held));
            let users: Vec<String> = most.into_iter().map(|(user, held)| format!("{held} of {user}")).collect();
            let limit = shared.limit.map_or(String::new(), |limit| format!("; limit for all users: {limit}"));
            lines.add("shared", &format!("{name}: most tasks at once: {}{limit}", users.join(", ")));
        }
    }

    fn busy(&self, lines: &mut ReportLines) {
        let Some((name, host, used)) = self.busiest() else { return };
        let used = match used {
            Some(used) => format!("{:.0} % of its slot time", used * 100.0),
            None => "slot time unknown".into(),
        };
        lines.add("busiest", &format!("{name}: {}, {used}", count(host.attempts, "task")));
        self.lost(lines);
    }
}

/// The bytes from which a file server gets a line. Fewer bytes are names and programs.
const WORTH_TELLING: u64 = 1 << 20;
/// The most characters of a command in a line.
const COMMAND: usize = 120;

impl FailedTask {
    fn lines(&self, lines: &mut ReportLines, with_error: bool) {
        let at = if self.host.is_empty() { String::new() } else { format!(" on {}", self.host) };
        let took = if at.is_empty() { String::new() } else { format!(" ({})", span(self.wall_us)) };
        let command = clipped(&self.command.display(), COMMAND);
        let command = if command.is_empty() { command } else { format!(": {command}") };
        lines.add("  failed", &format!("task {}: {}{at}{took}{command}", self.task, how(&self.outcome)));
        if let Some(said) = self.error_line.as_ref().filter(|_| with_error) {
            lines.add("", said);
        }
    }
}

/// Returns a task and the host on which it ended, if it had one.
pub fn task_on(task: TaskId, host: &str) -> String {
    if host.is_empty() { format!("task {task}") } else { format!("task {task} on {host}") }
}

/// Returns an outcome in a few words.
pub(crate) fn how(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Exit(code) => format!("exit {code}"),
        Outcome::Signal(n) => format!("signal {n}"),
        Outcome::TimedOut => "ended at its time limit".into(),
        Outcome::Killed => "ended by homing".into(),
        Outcome::CannotStart(why) => format!("did not start: {why}"),
        Outcome::Lost(why) => format!("lost: {why}"),
        Outcome::NotRun(why) => format!("not run: {why}"),
        Outcome::OutputLimit => "ended because it printed too much".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::{ended, started};
    use homing_model::event::{EventKind, PlannedBytes};
    use homing_model::{Event, IoCounters};
    use std::collections::BTreeMap;

    fn begun(words: &[&str]) -> Tally {
        let mut tally = Tally::new();
        let what = EventKind::RunStarted {
            v: 1,
            run: "r1".into(),
            argv: words.iter().map(|word| (*word).into()).collect(),
            cwd: "/src".into(),
            host: "n1".into(),
            pid: 1,
            tasks: None,
            label: None,
        };
        tally.add(&Event { at_ns: 0, what });
        tally
    }

    #[test]
    fn a_run_without_an_end_has_its_state_and_the_command_that_continues_it() {
        let line = |tally: &Tally| {
            let text = tally.text(false);
            text.lines().find(|line| line.starts_with("state ")).map(String::from)
        };
        let mut run = begun(&["homing", "run", "true"]);
        assert_eq!(line(&run).as_deref(), Some("state      running"));
        run.interrupt();
        assert_eq!(line(&run).as_deref(), Some("state      interrupted; homing resume r1 continues it"));
        assert_eq!(run.json()["state"], "interrupted");
        run.add(&Event { at_ns: 1, what: EventKind::RunResumed { host: "n1".into(), pid: 2 } });
        assert_eq!(line(&run).as_deref(), Some("state      running"));
        run.add(&Event { at_ns: 2, what: EventKind::RunEnded { exit: 0, counts: BTreeMap::new() } });
        assert_eq!((line(&run), &run.json()["state"]), (None, &"ended".into()));
        let mut build = begun(&["homing", "make", "all"]);
        build.interrupt();
        assert_eq!(line(&build).as_deref(), Some("state      interrupted; homing make all, in /src, continues it"));
    }

    #[test]
    fn tasks_that_are_left_come_with_the_command_that_runs_them() {
        let steps = |words: &[&str], outcome: Outcome, unfinished: u64| {
            let mut tally = begun(words);
            tally.add(&Event { at_ns: 1, what: started(1, "n1", 1, "qc 1", None) });
            tally.add(&Event { at_ns: 2, what: ended(1, "n1", outcome, 1, IoCounters::default()) });
            let counts = BTreeMap::from([("unfinished".to_string(), unfinished)]);
            tally.add(&Event { at_ns: 3, what: EventKind::RunEnded { exit: 130, counts } });
            let text = tally.brief(false);
            let is_step = |line: &&str| line.starts_with("  again ") || line.starts_with("  resume ");
            text.lines().filter(is_step).map(String::from).collect::<Vec<_>>()
        };
        let run = ["homing", "run", "qc {}"];
        assert_eq!(steps(&run, Outcome::Exit(0), 4), ["  resume   homing resume r1"]);
        assert_eq!(
            steps(&run, Outcome::Exit(1), 4),
            [
                "  again    homing resume --failed r1",
                "  resume   homing resume r1, which does not repeat the failed tasks"
            ]
        );
        assert_eq!(steps(&run, Outcome::Exit(0), 0), [""; 0]);
        let build = ["homing", "make", "all"];
        assert_eq!(steps(&build, Outcome::Exit(0), 1), ["  again    homing make all, in /src"]);
        assert_eq!(steps(&build, Outcome::Exit(0), 0), [""; 0]);
    }

    #[test]
    fn a_server_that_holds_all_inputs_is_named() {
        let mut tally = Tally::new();
        let mut add = |task, host, local, remote: u64| {
            let from = if remote > 0 { vec![("n1".to_string(), remote)] } else { Vec::new() };
            let planned = PlannedBytes { local, remote, remote_if_in_turn: remote, from };
            tally.add(&Event { at_ns: 0, what: started(task, host, 1, "cat", Some(planned)) });
            tally.inputs_where()
        };
        add(1, "n1", 8, 0);
        assert_eq!(add(2, "n2", 0, 92), "8 % of 100 B at home, 92 B over the network, by layout: all of it is on n1");
        // Another host has inputs of its own: a better placement may exist.
        assert!(!add(3, "n2", 10, 0).contains("n1"));
    }
}
