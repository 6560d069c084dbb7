//! What a run is given, and what it tells while it goes on.

use crate::core::{Offer, Policy, Record, Skipped};
use crate::edges::Interrupts;
use crate::output::OutputOptions;
use crate::stands::Served;
use crate::terminal::Terminal;
use homing_journal::{Counts, Journal, JournalError};
use homing_launch::HostPlan;
use homing_lease::Place;
use homing_model::event::What;
use homing_model::{Event, Mount, NodeSet, RawText, Task, TaskId};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// What the source of tasks yields.
pub enum Incoming {
    /// A task and what is known of its inputs; volumes as mounted on the coordinator.
    Task {
        /// All but the volumes.
        offer: Box<Offer>,
        /// Network volumes that it uses.
        mounts: Vec<Mount>,
    },
    /// A volume that hosts may have under another name; comes before its tasks.
    Served(Box<Served>),
    /// All names and addresses of a storage server, and where its leases are; comes before its tasks.
    Server(Vec<String>, Option<Place>),
    /// It runs after others: what it names is looked at when these have ended.
    After(Box<Task>),
    /// Need not run.
    Skip(Skipped),
    /// An earlier part of the run has run something else under this number: the task that follows is not done.
    Again(TaskId),
    /// What it names cannot be looked at: it fails.
    Unread {
        /// The task.
        task: Box<Task>,
        /// Why.
        reason: String,
    },
    /// The source is broken; what was read before is still run.
    Broken {
        /// Why.
        text: String,
        /// Exit status of the run.
        exit: i32,
    },
    /// Something to tell once.
    Note(String),
}

pub use homing_model::live::Progress;

/// Readers of a run: screen, job log, evidence.
pub trait Listener {
    /// Each journal record, after it was appended.
    fn event(&mut self, event: &Event);
    /// Each end of an attempt.
    fn record(&mut self, record: &Record);
    /// About ten times a second.
    fn progress(&mut self, progress: &Progress);
    /// For people, at once.
    fn note(&mut self, text: &str);
    /// At the end: the limits that were found for storage hosts, by name, and the kinds of commands
    /// that were seen to move bytes without naming any.
    fn learnt(&mut self, _limits: &[(String, u32)], _movers: &[String]) {}
}

/// Slots of this machine that others use besides.
pub trait Seats {
    /// The run's tasks here take `used` slots and could take `wanted`: as many as they may take from now on.
    fn settle(&mut self, used: u32, wanted: u32) -> u32;
}

/// Everything that a run needs.
pub struct Settings {
    /// Name of the run.
    pub name: String,
    /// Where it is recorded.
    pub journal: Journal,
    /// The first record.
    pub opening: What,
    /// The user's decisions.
    pub policy: Policy,
    /// Hosts; the run starts with the first that answers.
    pub hosts: Vec<HostPlan>,
    /// Hosts to use when none of those is granted for long, or none is left.
    pub spares: Vec<HostPlan>,
    /// With more hosts than this that ssh reaches, a few lead the others; below 2: none does.
    pub tree: usize,
    /// Nothing starts before all hosts have answered; without one of them nothing does.
    pub need_all: bool,
    /// Hosts whose clock would make files look older or newer than they are get no tasks.
    pub in_step: bool,
    /// By how much the priority of tasks is lowered.
    pub nice: i32,
    /// The words of a program that runs the commands elsewhere: what it is given behind them are the names of the task's
    /// inputs, each behind `--near`, `--` and the command as one line for the shell.
    pub around: Option<Vec<RawText>>,
    /// Slots of this machine that jobs of its queue use too.
    pub seats: Option<Box<dyn Seats>>,
    /// Slots from cores, where the plan does not say.
    pub slots: Box<dyn Fn(u32) -> u32>,
    /// The login name of a user.
    pub user_name: fn(u32) -> String,
    /// How to launch workers.
    pub launch: homing_launch::Options,
    /// Working directory of tasks.
    pub cwd: RawText,
    /// Environment of tasks.
    pub env: Vec<(RawText, RawText)>,
    /// File mode creation mask of tasks.
    pub umask: u32,
    /// The site's command that prints the watts of a host; empty: none.
    pub meter: String,
    /// The tasks.
    pub source: Box<dyn Iterator<Item = Incoming> + Send>,
    /// Looks at tasks again that run after others, where there are some.
    pub later: Option<Later>,
    /// What became of tasks in earlier parts of the run.
    pub counts: Counts,
    /// What to do with what they print.
    pub output: OutputOptions,
    /// Where they print, if that is a terminal.
    pub terminal: Rc<Terminal>,
    /// Files for a task's output (`--results`).
    pub results: Option<ResultFiles>,
    /// SIGINT, SIGTERM and SIGHUP.
    pub interrupts: Arc<Interrupts>,
}

/// Makes offers of tasks whose turn has come; ends with them.
pub type Later = Box<dyn FnOnce(Receiver<Task>) -> Box<dyn Iterator<Item = Incoming> + Send>>;

/// Makes the files for one task's standard output and error output.
pub type ResultFiles = Box<dyn Fn(&Task) -> io::Result<(std::fs::File, std::fs::File)>>;

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// The record of the run cannot be written: going on would lose what happened.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No worker answered; why was told as it happened.
    #[error("no host is left to run on: {0} cannot be used")]
    NoHosts(NodeSet),
    /// Some did not answer, where all were wanted; why was told as it happened.
    #[error("nothing was run, since not all hosts can be used: not {0}")]
    NotAllHosts(NodeSet),
    /// The user's output or a results file cannot be written.
    #[error("cannot write the output of tasks: {0}")]
    Output(io::Error),
    /// This machine, or its user, has too many.
    #[error("{0}")]
    Thread(io::Error),
    /// What all tasks share cannot be told to a worker.
    #[error("the environment of the run does not reach its workers: {0}")]
    Begin(#[from] homing_launch::wire::WireError),
}
