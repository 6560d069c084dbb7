//! The interface of a batch system.

use crate::{Allocation, AskError, BatchEnd, BatchNode, WorkerRequest};
use homing_model::links::Switch;
use std::ffi::OsString;
use std::fmt::Debug;
use std::path::Path;

/// The worker that a request starts.
#[derive(Clone, Copy, Debug)]
pub struct WorkerStart<'a> {
    /// The node.
    pub node: &'a str,
    /// The script that starts it there.
    pub script: &'a str,
    /// The path of the worker's program on this machine.
    pub program: &'a Path,
}

/// A batch system: its words, and its commands. A worker is one job of an interactive command, whose standard input and
/// output are the channel.
pub trait BatchSystem: Debug + Sync {
    /// Returns its name for people.
    fn name(&self) -> &'static str;
    /// Whether this machine looks like a part of its cluster; starts no process.
    fn is_configured(&self) -> bool;
    /// Whether this machine belongs to a cluster of it that answers. Starts no process unless it is configured.
    fn answers(&self) -> bool;
    /// Returns the command that lists its nodes, for hints.
    fn listing(&self) -> &'static str;
    /// Returns the command that shows why a job waits, for hints.
    fn waiting(&self) -> &'static str;
    /// Returns the queue that the user's environment names.
    fn usual_queue(&self) -> Option<String>;
    /// Returns the nodes of a queue, or of the default one.
    fn nodes(&self, queue: Option<&str>) -> Result<Vec<BatchNode>, AskError>;
    /// Returns the nodes of a reservation; an error if there is none of that name.
    fn reservation(&self, name: &str) -> Result<Vec<String>, AskError>;
    /// Returns those of the nodes that their administrators want empty, with the reason; none if it does not answer.
    fn wanted_empty(&self, names: &[String]) -> Vec<(String, String)>;
    /// Returns the switches that it knows.
    fn switches(&self) -> Vec<Switch>;
    /// Returns the job around this process, by its environment.
    fn allocation(&self, var: &dyn Fn(&str) -> Option<String>) -> Option<Allocation>;
    /// Returns why it cannot carry out a request, with the replacement.
    fn refuses(&self, request: &WorkerRequest) -> Option<String>;
    /// Returns the program and the arguments of the command that starts a worker and is its channel. The job prints
    /// `homing-boot job NUMBER` first.
    fn start(&self, request: &WorkerRequest, worker: WorkerStart) -> Vec<OsString>;
    /// Whether a variable of our environment may reach that command.
    fn keeps(&self, variable: &str) -> bool;
    /// Returns the number of the job that the command waits for, from its messages.
    fn queued_job(&self, output: &str) -> Option<String>;
    /// Whether a message concerns a fault that passes: a daemon restarts, or is too busy to answer.
    fn is_passing(&self, message: &str) -> bool;
    /// Returns the most useful line of the command's messages.
    fn complaint(&self, output: &str) -> Option<String>;
    /// Returns a refusal with the refused request, and a remedy if one is known.
    fn refusal(&self, request: &WorkerRequest, message: &str) -> String;
    /// Finds out how it ended a worker, from the command's messages, or else from its daemon; `None` if it has no part
    /// in that end. `own`: the job is one of ours, and not the job around us. Blocks for seconds at most.
    fn end(&self, job: Option<&str>, own: bool, output: &str) -> Option<BatchEnd>;
    /// Cancels a job, if it still exists.
    fn cancel(&self, job: &str);
    /// Cancels the jobs of a run on one node, whose numbers are not known.
    fn cancel_on(&self, node: &str, run: &str);
    /// Returns the line of a shell that cancels all jobs whose name is `$1`.
    fn cancelling(&self) -> &'static str;
}
