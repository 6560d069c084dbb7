//! A task and its outcome.

use crate::RawText;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Sequence number of a task in its run, counted from 1 as GNU parallel's `{#}`.
pub type TaskId = u64;

/// The command of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// A command line for the shell.
    Shell(RawText),
    /// A program and its arguments; no shell interprets them.
    Argv(Vec<RawText>),
}

impl Default for Command {
    fn default() -> Command {
        Command::Argv(Vec::new())
    }
}

impl Command {
    /// Formats one line for people and for the joblog.
    pub fn display(&self) -> String {
        match self {
            Command::Shell(line) => line.display(),
            Command::Argv(words) => words.iter().map(RawText::display).collect::<Vec<_>>().join(" "),
        }
    }
}

/// A run of bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The file.
    pub path: PathBuf,
    /// Offset of its first byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// One command of a batch, ready to be sent. Every field is always written: the wire's format has no names, so a
/// reader could not notice a missing field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its number in the run.
    pub id: TaskId,
    /// The command to execute.
    pub command: Command,
    /// Working directory; the run's own when `None`.
    #[serde(default)]
    pub cwd: Option<RawText>,
    /// Environment added to the run's.
    #[serde(default)]
    pub env: Vec<(RawText, RawText)>,
    /// The values of the input sources, in order (for `--tag`, `--results`, the journal).
    #[serde(default)]
    pub args: Vec<RawText>,
    /// Declared files and directories that it reads.
    #[serde(default)]
    pub inputs: Vec<RawText>,
    /// Declared files that it writes.
    #[serde(default)]
    pub outputs: Vec<RawText>,
    /// Slots that it takes.
    #[serde(default = "one")]
    pub cpus: u32,
    /// Memory that must be available before it starts, bytes.
    #[serde(default)]
    pub memory: Option<u64>,
    /// Wall-clock limit in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Its name in other tasks and in messages, beside its number.
    #[serde(default)]
    pub name: Option<RawText>,
    /// Tasks that must succeed before it runs; empty once they have.
    #[serde(default)]
    pub after: Vec<TaskId>,
    /// The named resources of its host that it occupies while it runs, with the amounts in parts of a unit
    /// ([`crate::resource::PARTS`]).
    #[serde(default)]
    pub resources: Vec<(String, u64)>,
    /// Its standard input, one block after the other; without any, /dev/null. Workers receive the bytes ahead of the
    /// task, so the task on the wire does not name them.
    #[serde(skip)]
    pub stdin: Vec<Block>,
    /// The folders of the files that it reads, for a container. Only the coordinator knows them.
    #[serde(skip)]
    pub folders: Vec<PathBuf>,
}

impl Task {
    /// Returns its name in messages.
    pub fn label(&self) -> String {
        self.name.as_ref().map_or_else(|| format!("task {}", self.id), RawText::display)
    }

    /// Returns the bytes of its standard input.
    pub fn stdin_bytes(&self) -> u64 {
        self.stdin.iter().map(|block| block.length).sum()
    }

    /// Returns task 1 of a run, with nothing declared.
    pub fn of(command: Command) -> Task {
        Task {
            id: 1,
            command,
            cwd: None,
            env: Vec::new(),
            args: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            cpus: 1,
            memory: None,
            timeout_ms: None,
            name: None,
            after: Vec::new(),
            resources: Vec::new(),
            stdin: Vec::new(),
            folders: Vec::new(),
        }
    }
}

fn one() -> u32 {
    1
}

/// Bytes and processor time of a task and the children that it waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoCounters {
    /// `rchar` of `/proc/PID/io`: bytes requested by read calls, cached or not.
    pub rchar: Option<u64>,
    /// `wchar` likewise.
    pub wchar: Option<u64>,
    /// Bytes fetched from block devices (`ru_inblock` x 512).
    pub read_bytes: u64,
    /// Bytes sent to block devices (`ru_oublock` x 512).
    pub write_bytes: u64,
    /// Processor time in user mode, microseconds.
    pub user_us: u64,
    /// Processor time in the kernel, microseconds.
    pub sys_us: u64,
    /// Largest resident set, bytes.
    pub max_rss: u64,
}

/// The shortest attempt whose time of I/O wait is queried, microseconds. For shorter attempts the query costs more
/// than it is worth.
pub const WAIT_ASKED_FROM_US: u64 = 20_000;

/// Time that a task waited for I/O, and its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoWait {
    /// The kernel's delay accounting, microseconds.
    DelayAccounting(u64),
}

impl IoWait {
    /// Returns microseconds, from any source.
    pub fn us(&self) -> u64 {
        match self {
            IoWait::DelayAccounting(us) => *us,
        }
    }
}

/// How one attempt at a task ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It exited with this status.
    Exit(i32),
    /// A signal ended it.
    Signal(i32),
    /// homing ended it at its time limit.
    TimedOut,
    /// homing ended it because of the user or `--halt`.
    Killed,
    /// It never started: the reason is for people.
    CannotStart(String),
    /// Its worker or host was lost; its end is unknown.
    Lost(String),
    /// homing ended it: it printed more than allowed, or more than the free space.
    OutputLimit,
    /// It was never started: a task that it needs failed. The text names that task.
    NotRun(String),
}

impl Outcome {
    /// Whether it exited with status 0.
    pub fn is_success(&self) -> bool {
        *self == Outcome::Exit(0)
    }
}
