//! GNU parallel's joblog: tab-separated, one line for each task that ended. Scripts made for its format read ours,
//! and either program can resume the other's run.

use crate::error::BatchError;
use homing_model::{Command, Outcome, RawText, Task, TaskId};
use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufRead, Write};

/// First line of a joblog, with its newline.
pub const HEADER: &str = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n";

/// The signal that ends a process whose file grows beyond its limit, on all systems but MIPS (signal(7)).
const SIGXFSZ: i32 = 25;

/// One line of a joblog.
#[derive(Clone, Debug, PartialEq)]
pub struct JoblogEntry {
    /// Number of the task.
    pub seq: TaskId,
    /// The host where it ran; `:` is this machine.
    pub host: String,
    /// Start, nanoseconds since the epoch.
    pub start_ns: i64,
    /// Wall time in microseconds.
    pub wall_us: u64,
    /// Bytes of standard input that it was sent.
    pub sent: u64,
    /// Bytes of the task's output.
    pub received: u64,
    /// Exit status; -1 when it was killed at its time limit.
    pub exit: i32,
    /// Signal that ended it, or 0.
    pub signal: i32,
    /// The command, see [`crate::command_line`].
    pub command: Vec<u8>,
}

impl JoblogEntry {
    /// Sets exit status and signal in GNU parallel's form.
    pub fn with_outcome(mut self, outcome: &Outcome) -> Self {
        (self.exit, self.signal) = match outcome {
            Outcome::Exit(status) => (*status, 0),
            Outcome::Signal(signal) => (0, *signal),
            Outcome::TimedOut => (-1, 15),
            Outcome::Killed => (0, 15),
            Outcome::CannotStart(_) | Outcome::NotRun(_) => (127, 0),
            Outcome::Lost(_) => (255, 0),
            Outcome::OutputLimit => (0, SIGXFSZ),
        };
        self
    }

    /// Returns the part that distinguishes this line from all others.
    pub fn line(&self) -> JoblogLine {
        let JoblogEntry { seq, start_ns, exit, signal, .. } = *self;
        JoblogLine { seq, start_ms: start_ns.div_euclid(1_000_000), exit, signal }
    }

    /// Writes the line in one call: a reader never sees half of it. A newline in the command becomes a zero byte, as
    /// in GNU parallel.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let ms = self.start_ns.div_euclid(1_000_000);
        let start = format!("{}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000));
        let wall = format!("{:10.3}", self.wall_us as f64 / 1e6);
        let JoblogEntry { seq, host, sent, received, exit, signal, .. } = self;
        let mut line = format!("{seq}\t{host}\t{start}\t{wall}\t{sent}\t{received}\t{exit}\t{signal}\t").into_bytes();
        line.extend(self.command.iter().map(|&b| if b == b'\n' { 0 } else { b }));
        line.push(b'\n');
        to.write_all(&line)
    }
}

/// The end of a task in a joblog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JoblogLine {
    /// Number of the task.
    pub seq: TaskId,
    /// Start, milliseconds since the epoch; 0 if the line has no number there.
    pub start_ms: i64,
    /// As in [`JoblogEntry`].
    pub exit: i32,
    /// As in [`JoblogEntry`].
    pub signal: i32,
}

impl JoblogLine {
    fn is_success(&self) -> bool {
        (self.exit, self.signal) == (0, 0)
    }
}

/// The results of an earlier part of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoblogSeen {
    /// The ends in the joblog.
    pub lines: HashSet<JoblogLine>,
    /// The commands of tasks that failed, each from its last line.
    commands: BTreeMap<TaskId, RawText>,
    /// Length of the complete lines in bytes. A file must be truncated to it before more lines are appended, because
    /// its last line may be incomplete.
    pub whole_bytes: u64,
}

impl JoblogSeen {
    /// Returns the tasks that ended in any way: `--resume` skips these.
    pub fn ended(&self) -> HashSet<TaskId> {
        self.lines.iter().map(|line| line.seq).collect()
    }

    /// Returns the tasks that succeeded: `--resume-failed` skips these.
    pub fn succeeded(&self) -> HashSet<TaskId> {
        self.lines.iter().filter(|line| line.is_success()).map(|line| line.seq).collect()
    }

    /// Returns the tasks that failed and never succeeded, with the commands that they ran, which are their arguments
    /// too.
    pub fn failed(mut self) -> Vec<Task> {
        let succeeded = self.succeeded();
        self.commands.retain(|task, _| !succeeded.contains(task));
        let task = |(id, line): (_, RawText)| Task { id, args: vec![line.clone()], ..Task::of(Command::Shell(line)) };
        self.commands.into_iter().map(task).collect()
    }
}

/// Reads a joblog. An incomplete last line is skipped: its task counts as not run. An empty file is an empty joblog.
pub fn read(mut from: impl BufRead) -> Result<JoblogSeen, BatchError> {
    let mut seen = JoblogSeen::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let got = from.read_until(b'\n', &mut line);
        got.map_err(|source| BatchError::Read { name: "the joblog".into(), source })?;
        if line.last() != Some(&b'\n') {
            break;
        }
        seen.whole_bytes += line.len() as u64;
        line.pop();
        let is_header = number == 1 && line.starts_with(b"Seq\tHost\t");
        if is_header {
            continue;
        }
        let text = || String::from_utf8_lossy(&line).chars().take(120).collect();
        let (end, command) = parsed(&line).ok_or_else(|| BatchError::Joblog { line: number, text: text() })?;
        if !end.is_success() {
            seen.commands.insert(end.seq, command);
        }
        seen.lines.insert(end);
    }
    Ok(seen)
}

/// Reads the end of a task and its command from one line.
fn parsed(line: &[u8]) -> Option<(JoblogLine, RawText)> {
    let fields: Vec<&[u8]> = line.splitn(9, |&b| b == b'\t').collect();
    let text = |i: usize| Some(std::str::from_utf8(fields.get(i)?).ok()?.trim());
    let number = |i: usize| text(i)?.parse::<i32>().ok();
    let command = fields.get(8)?.iter().map(|&b| if b == 0 { b'\n' } else { b }).collect();
    let start_ms = text(2)?.parse().map_or(0, |s: f64| (s * 1000.0).round() as i64);
    let end = JoblogLine { seq: text(0)?.parse().ok()?, start_ms, exit: number(6)?, signal: number(7)? };
    Some((end, RawText(command)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(seq: TaskId) -> JoblogEntry {
        JoblogEntry {
            seq,
            host: ":".into(),
            start_ns: 1_795_232_396_767_999_999,
            wall_us: 3_400,
            sent: 0,
            received: 6,
            exit: 0,
            signal: 0,
            command: b"echo a\necho b".to_vec(),
        }
    }

    #[test]
    fn lines_as_gnu_parallel_writes_them() {
        let mut out = Vec::new();
        one(1).write(&mut out).unwrap();
        assert_eq!(out, b"1\t:\t1795232396.767\t     0.003\t0\t6\t0\t0\techo a\0echo b\n");
        let timed_out = one(1).with_outcome(&Outcome::TimedOut);
        assert_eq!((timed_out.exit, timed_out.signal), (-1, 15));
    }

    #[test]
    fn what_was_done_is_read_back() {
        let mut log = HEADER.as_bytes().to_vec();
        one(1).write(&mut log).unwrap();
        one(2).with_outcome(&Outcome::Exit(3)).write(&mut log).unwrap();
        one(3).with_outcome(&Outcome::Signal(9)).write(&mut log).unwrap();
        let whole = log.len();
        one(4).write(&mut log).unwrap();
        let seen = read(&log[..log.len() - 1]).unwrap();
        assert_eq!(seen.ended(), HashSet::from([1, 2, 3]));
        assert_eq!(seen.succeeded(), HashSet::from([1]));
        let listed = |outcome| seen.lines.contains(&one(2).with_outcome(&outcome).line());
        assert!(listed(Outcome::Exit(3)) && !listed(Outcome::Exit(0)));
        assert_eq!(seen.whole_bytes, whole as u64);
        log.truncate(whole);
        one(2).write(&mut log).unwrap();
        assert_eq!(read(&log[..]).unwrap().succeeded(), HashSet::from([1, 2]));
        assert_eq!(read(&b""[..]).unwrap(), JoblogSeen::default());
    }

    #[test]
    fn what_failed_and_never_succeeded_is_run_again_as_it_was() {
        let mut log = HEADER.as_bytes().to_vec();
        for (seq, status) in [(3, 1), (1, 0), (2, 1), (2, 0), (3, 2)] {
            one(seq).with_outcome(&Outcome::Exit(status)).write(&mut log).unwrap();
        }
        let line = RawText::from("echo a\necho b");
        let task = Task { id: 3, args: vec![line.clone()], ..Task::of(Command::Shell(line)) };
        assert_eq!(read(&log[..]).unwrap().failed(), [task]);
    }

    #[test]
    fn another_file_is_refused() {
        for text in ["hello\n", "1\t:\tx\n", "x\t:\t1\t1\t0\t0\t0\t0\tc\n"] {
            assert!(matches!(read(text.as_bytes()), Err(BatchError::Joblog { line: 1, .. })), "{text}");
        }
    }
}
