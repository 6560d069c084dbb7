//! Readers of a run: the line of progress, the job log, the evidence.

use crate::progress;
use homing_batch::JoblogEntry;
use homing_dispatch::source::joblog;
use homing_dispatch::{AttemptRecord, Listener, RunProgress, Terminal};
use homing_model::event::EventKind;
use homing_model::fit::clipped;
use homing_model::text::{shown, shown_lines};
use homing_model::{Event, Outcome};
use homing_report::{ProgressLog, Tally};
use std::fs::File;
use std::io::{self, IsTerminal};
use std::rc::Rc;
use std::time::Duration;

/// Progress of a run is shown when it takes longer than this.
const SHOW_AFTER: Duration = Duration::from_secs(2);
/// The least time between two draws.
const DRAW_EVERY: Duration = Duration::from_millis(200);

/// The output that the user sees while a run goes on and after it.
pub struct Screen {
    /// The evidence so far.
    pub tally: Tally,
    bar: bool,
    /// Lines of progress where a line cannot be drawn again.
    log: ProgressLog,
    explain: bool,
    /// The terminal that shows the progress.
    pub terminal: Rc<Terminal>,
    last: Duration,
    /// Bytes that tasks read in earlier parts of the run.
    read_before: u64,
    joblog: Option<File>,
    /// Why the job log lacks lines. It is reported at the end, since the run goes on.
    pub unlogged: Option<io::Error>,
    here: bool,
    /// Limits that the run found, by storage host. Known at the end.
    pub learnt: Vec<(String, u32)>,
    /// Kinds of commands that moved bytes without naming any file. Known at the end.
    pub movers: Vec<String>,
}

impl Screen {
    /// Makes the screen of a run.
    ///
    /// - `tally`: the evidence of earlier parts.
    /// - `bar`: draw from the first moment.
    /// - `explain`: print a line for each start.
    /// - `here`: the tasks run on this machine, which the job log calls `:`.
    pub fn new(
        tally: Tally,
        (bar, log): (bool, ProgressLog),
        explain: bool,
        joblog: Option<File>,
        here: bool,
    ) -> Screen {
        let (terminal, learnt, movers) = (Rc::default(), Vec::new(), Vec::new());
        let read_before = tally.read().unwrap_or(0);
        let (last, unlogged) = (Duration::ZERO, None);
        Screen { tally, bar, log, explain, terminal, last, read_before, joblog, unlogged, here, learnt, movers }
    }

    /// Returns the bytes per second that tasks have read in this part of the run, as far as they were measured.
    fn read_per_s(&self, elapsed: Duration) -> Option<u64> {
        let read = self.tally.read()?.saturating_sub(self.read_before);
        Some((read as f64 / elapsed.as_secs_f64().max(0.001)) as u64)
    }
}

impl Listener for Screen {
    fn learnt(&mut self, limits: &[(String, u32)], movers: &[String]) {
        (self.learnt, self.movers) = (limits.to_vec(), movers.to_vec());
    }

    fn event(&mut self, event: &Event) {
        self.tally.add(event);
        if let (true, EventKind::Leases { storage, limit: Some(limit), users }) = (self.explain, &event.what)
            && let Some(text) = waits(storage, *limit, users)
        {
            self.note(&text);
        }
        if let (true, EventKind::TaskStarted { task, host, why, .. }) = (self.explain, &event.what) {
            self.terminal.begin_line();
            let why = why.as_deref().unwrap_or("no input on a volume");
            eprintln!("{}", shown(&format!("task {task} -> {host}: {why}")));
        }
    }

    fn record(&mut self, record: &AttemptRecord) {
        if record.last && record.outcome != Outcome::Exit(0) {
            self.terminal.begin_line();
            if let Some(text) = complaint(record) {
                eprintln!("homing: {}", shown(&text));
            }
        }
        let listed = record.last && joblog::is_listed(&record.outcome);
        let Some(file) = self.joblog.as_mut().filter(|_| listed) else { return };
        let entry = JoblogEntry {
            seq: record.task.id,
            host: if record.host.is_empty() || self.here { ":".into() } else { record.host.clone() },
            start_ns: record.start_ns,
            wall_us: record.wall_us,
            sent: record.task.stdin_bytes(),
            received: record.stdout_bytes,
            exit: 0,
            signal: 0,
            command: homing_batch::command_line(&record.task.command),
        };
        if let Err(e) = entry.with_outcome(&record.outcome).write(file) {
            (self.joblog, self.unlogged) = (None, Some(e));
        }
    }

    fn progress(&mut self, progress: &RunProgress) {
        if progress::place().is_none() {
            // A terminal that cannot move its cursor is read by a person, who did not request a log.
            let line = self.log.line(progress, self.read_per_s(progress.elapsed));
            if let Some(line) = line.filter(|_| !io::stderr().is_terminal()) {
                self.note(&line);
            }
            return;
        }
        let due = self.bar || progress.elapsed > SHOW_AFTER;
        if !due || progress.elapsed.saturating_sub(self.last) < DRAW_EVERY {
            return;
        }
        self.last = progress.elapsed;
        if let Some(place) = progress::place() {
            self.terminal.draw(&progress::line(progress, self.read_per_s(progress.elapsed), place));
        }
    }

    fn note(&mut self, text: &str) {
        self.terminal.begin_line();
        eprintln!("homing: {}", shown_lines(text));
    }
}

/// Explains why no more tasks that read from a server start. Returns `None` unless all leases are taken and other
/// users hold some.
pub(super) fn waits(server: &str, limit: u32, users: &[(String, u32)]) -> Option<String> {
    let me = homing_queue::user_name(rustix::process::geteuid().as_raw());
    let total: u32 = users.iter().map(|(_, held)| held).sum();
    let full = total >= limit && users.iter().any(|(user, held)| *user != me && *held > 0);
    full.then(|| format!("waits: {}", homing_lease::serves(server, Some(limit), users, &me)))
}

/// Returns one line about a task that failed, unless its own output explains the failure.
fn complaint(record: &AttemptRecord) -> Option<String> {
    let command = clipped(&record.task.command.display(), 120);
    let task = format!("{} ({command})", homing_report::task_on(record.task.id, &record.host));
    match &record.outcome {
        // The failure of the run counts the tasks that did not run.
        Outcome::Exit(_) | Outcome::Killed | Outcome::NotRun(_) => None,
        Outcome::Signal(signal) => Some(format!("{task} was ended by signal {signal}")),
        Outcome::TimedOut => Some(format!("{task} was ended at its time limit")),
        Outcome::CannotStart(why) => Some(format!("{task} cannot start: {why}")),
        Outcome::Lost(why) => Some(format!("{task} was lost with its host: {why}")),
        Outcome::OutputLimit => {
            let printed = homing_model::units::bytes(record.stdout_bytes + record.stderr_bytes);
            Some(format!("{task} was ended because it printed {printed}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_others_fill_is_what_tasks_wait_for() {
        let user = |name: &str, held| (name.to_string(), held);
        let said = waits("nas", 8, &[user("no-such", 3), user("nor-such", 5)]);
        assert_eq!(said.unwrap(), "waits: nas serves 8 of 8, 3 of them by user no-such, 5 of them by user nor-such");
        assert_eq!(waits("nas", 8, &[user("no-such", 7)]), None, "there is room");
        let me = homing_queue::user_name(rustix::process::geteuid().as_raw());
        assert_eq!(waits("nas", 8, &[(me, 8)]), None, "nobody else's");
    }
}
