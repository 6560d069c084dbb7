//! Slurm. Parses the text formats of its commands, with chosen columns. They have kept their meaning since Slurm 14, while
//! the JSON changes its shape with every release.

mod account;
pub mod ask;
mod fate;
mod license;
mod nodes;
mod srun;
mod topology;

pub use account::{Booked, SACCT_FORMAT, booked};
pub use license::{License, is_license, parse_licenses, taken};
pub use nodes::{SINFO_FORMAT, parse_nodes};
pub use srun::{advice, gres};
pub use topology::parse_topology;

use crate::{Allocation, AskError, BatchEnd, BatchNode, BatchSystem, WorkerRequest, WorkerStart};
use homing_model::links::Switch;
use std::time::{Duration, Instant};

/// Longest wait until slurmctld knows how a job ended.
const SETTLES: Duration = Duration::from_secs(2);

/// Starts workers by `srun`: as jobs, or as steps of the job around this process.
#[derive(Debug)]
pub(crate) struct SlurmSystem;

impl BatchSystem for SlurmSystem {
    fn name(&self) -> &'static str {
        "Slurm"
    }

    fn is_configured(&self) -> bool {
        ask::is_configured()
    }

    fn answers(&self) -> bool {
        self.is_configured() && ask::nodes(None).is_ok_and(|nodes| !nodes.is_empty())
    }

    fn listing(&self) -> &'static str {
        "sinfo -N -l"
    }

    fn waiting(&self) -> &'static str {
        "squeue --me"
    }

    fn usual_queue(&self) -> Option<String> {
        std::env::var("SLURM_PARTITION").ok()
    }

    fn nodes(&self, queue: Option<&str>) -> Result<Vec<BatchNode>, AskError> {
        ask::nodes(queue)
    }

    fn reservation(&self, name: &str) -> Result<Vec<String>, AskError> {
        ask::reservation(name)
    }

    fn wanted_empty(&self, names: &[String]) -> Vec<(String, String)> {
        let known = ask::nodes_named(names).unwrap_or_default();
        let empty = |node: BatchNode| Some((node.name.clone(), node.is_wanted_empty()?));
        known.into_iter().filter_map(empty).collect()
    }

    fn switches(&self) -> Vec<Switch> {
        ask::switches()
    }

    fn allocation(&self, var: &dyn Fn(&str) -> Option<String>) -> Option<Allocation> {
        Allocation::of_slurm(var)
    }

    fn refuses(&self, _: &WorkerRequest) -> Option<String> {
        None
    }

    fn start(&self, request: &WorkerRequest, worker: WorkerStart) -> Vec<std::ffi::OsString> {
        let arguments = request.srun_arguments(worker.node, worker.script, worker.program);
        std::iter::once("srun".into()).chain(arguments).collect()
    }

    fn keeps(&self, variable: &str) -> bool {
        srun::keeps(variable)
    }

    fn queued_job(&self, output: &str) -> Option<String> {
        fate::queued_job(output)
    }

    fn is_passing(&self, message: &str) -> bool {
        fate::is_passing(message)
    }

    fn complaint(&self, output: &str) -> Option<String> {
        fate::complaint(output)
    }

    fn refusal(&self, request: &WorkerRequest, message: &str) -> String {
        request.srun_refusal(message)
    }

    fn end(&self, job: Option<&str>, own: bool, output: &str) -> Option<BatchEnd> {
        // The state of a job of somebody else does not show how one step in it ended.
        let state = || job.filter(|_| own).and_then(settled);
        fate::fate(job, None, output).or_else(|| fate::fate(job, state().as_ref(), ""))
    }

    fn cancel(&self, job: &str) {
        ask::cancel(job);
    }

    fn cancel_on(&self, node: &str, run: &str) {
        ask::cancel_on(node, run);
    }

    fn cancelling(&self) -> &'static str {
        "scancel --quiet --user=\"$(id -un)\" --name=\"$1\""
    }
}

/// Returns the state of a job once it shows how the job ended, or after some seconds.
fn settled(job: &str) -> Option<fate::JobState> {
    let until = Instant::now() + SETTLES;
    loop {
        let state = ask::job(job)?;
        if state.is_over() || state.reason != "None" || Instant::now() > until {
            return Some(state);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
