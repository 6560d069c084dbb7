//! The settings of a run, and the interface to its readers.

use crate::core::{AttemptRecord, Offer, Policy, Skipped};
use crate::output::OutputOptions;
use crate::signals::Interrupts;
use crate::terminal::Terminal;
use crate::volume_access::VolumeAlias;
use homing_journal::{Counts, Journal, JournalError};
use homing_launch::HostPlan;
use homing_lease::LeaseFolder;
use homing_model::event::EventKind;
use homing_model::{Event, Mount, NodeSet, RawText, Task, TaskId};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// An item of the source of tasks.
pub enum Incoming {
    /// A task with the layout of its inputs. Volumes are as mounted on the coordinator.
    Task {
        /// The offer, without the volumes.
        offer: Box<Offer>,
        /// The network volumes that it uses.
        mounts: Vec<Mount>,
    },
    /// A volume that hosts may have under another name. Comes before its tasks.
    Served(Box<VolumeAlias>),
    /// All names and addresses of a storage server, and the place of its leases. Comes before its tasks.
    Server(Vec<String>, Option<LeaseFolder>),
    /// A task that runs after others. Its inputs are located when these have ended.
    After(Box<Task>),
    /// A task that need not run.
    Skip(Skipped),
    /// The number of tasks that a replacement string skipped. They have no number of their own.
    SkipUnnumbered(u64),
    /// An earlier part of the run has run another command under this number. The task that follows must run.
    Again(TaskId),
    /// A task whose inputs cannot be examined: it fails.
    Unread {
        /// The task.
        task: Box<Task>,
        /// The reason.
        reason: String,
    },
    /// The end of a broken source. The tasks before it still run.
    Broken {
        /// The reason.
        text: String,
        /// The exit status of the run.
        exit: i32,
    },
    /// A note to show once.
    Note(String),
}

pub use homing_model::live::RunProgress;

/// A reader of a run: screen, job log, evidence.
pub trait Listener {
    /// Takes each journal record, after it was appended.
    fn event(&mut self, event: &Event);
    /// Takes each end of an attempt.
    fn record(&mut self, record: &AttemptRecord);
    /// Takes the progress, about ten times a second.
    fn progress(&mut self, progress: &RunProgress);
    /// Shows a note to the user at once.
    fn note(&mut self, text: &str);
    /// Takes the lessons at the end. They are the limits that were found for storage hosts, by name, and the kinds of
    /// commands that moved bytes of unnamed files.
    fn learnt(&mut self, _limits: &[(String, u32)], _movers: &[String]) {}
}

/// Slots of this machine that other users share.
pub trait Seats {
    /// The run's tasks here use `used` slots and could use `wanted`. Returns how many they may use from now on.
    fn settle(&mut self, used: u32, wanted: u32) -> u32;
}

/// All settings of a run.
pub struct RunSettings {
    /// The name of the run.
    pub name: String,
    /// The journal of the run.
    pub journal: Journal,
    /// The first record.
    pub opening: EventKind,
    /// The user's decisions.
    pub policy: Policy,
    /// The hosts. The run starts with the first that answers.
    pub hosts: Vec<HostPlan>,
    /// Hosts to use if none of the others is granted for long, or none is left.
    pub spares: Vec<HostPlan>,
    /// The number of ssh hosts beyond which a few of them lead the others. Below 2: none does.
    pub tree: usize,
    /// Whether no task starts before all hosts have answered. If one host fails, none starts at all.
    pub need_all: bool,
    /// Whether hosts get no tasks if their clock would make files look older or newer than they are.
    pub in_step: bool,
    /// The amount by which the priority of tasks is lowered.
    pub nice: i32,
    /// The program that runs the commands, if that is not the worker.
    pub around: Option<crate::Around>,
    /// Slots of this machine that jobs of its queue use too.
    pub seats: Option<Box<dyn Seats>>,
    /// Returns slots from cores, if the plan contains no number.
    pub slots: Box<dyn Fn(u32) -> u32>,
    /// The login name of a user.
    pub user_name: fn(u32) -> String,
    /// The options to launch workers.
    pub launch: homing_launch::Options,
    /// The working directory of tasks.
    pub cwd: RawText,
    /// The environment of tasks.
    pub env: Vec<(RawText, RawText)>,
    /// The file mode creation mask of tasks.
    pub umask: u32,
    /// The site's command that prints the watts of a host; empty: none.
    pub meter: String,
    /// The tasks.
    pub source: Box<dyn Iterator<Item = Incoming> + Send>,
    /// Locates tasks again that run after others, if there are any.
    pub later: Option<Later>,
    /// The counts of tasks by outcome in earlier parts of the run.
    pub counts: Counts,
    /// The options of the tasks' output.
    pub output: OutputOptions,
    /// The terminal of the output, if it is one.
    pub terminal: Rc<Terminal>,
    /// The files of a task's output (`--results`).
    pub results: Option<ResultFiles>,
    /// The signals that end the run.
    pub interrupts: Arc<Interrupts>,
}

/// Makes offers of tasks whose turn has come. The iterator ends with the channel.
pub type Later = Box<dyn FnOnce(Receiver<Task>) -> Box<dyn Iterator<Item = Incoming> + Send>>;

/// Makes the files for one task's standard output and error output.
pub type ResultFiles = Box<dyn Fn(&Task) -> io::Result<(std::fs::File, std::fs::File)>>;

/// Why a run could not continue.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// The journal cannot be written. To go on would lose records.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No worker answered. The reasons were reported as they occurred.
    #[error("no host is left to run on: {0} cannot be used")]
    NoHosts(NodeSet),
    /// Some hosts did not answer, and all were required. The reasons were reported as they occurred.
    #[error("nothing was run, because some hosts cannot be used: {0}")]
    NotAllHosts(NodeSet),
    /// The user's output or a results file cannot be written.
    #[error("cannot write the output of tasks: {0}")]
    Output(io::Error),
    /// This machine or its user has too many threads.
    #[error("{0}")]
    Thread(io::Error),
    /// The environment and settings of all tasks cannot be sent to a worker.
    #[error("cannot send the environment of the run to its workers: {0}")]
    Begin(#[from] homing_launch::wire::WireError),
}
