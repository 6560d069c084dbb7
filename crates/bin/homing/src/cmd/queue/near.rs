//! Chooses the hosts of a job: near its input files.

use homing_cluster::inputs;
use homing_model::Failure;
use homing_queue::several::{self, LayError, SlotRequest};
use homing_queue::{Engine, JobSpec};
use std::path::PathBuf;

/// How much it matters that a job runs near its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum How {
    /// Run there if possible
    #[default]
    Prefer,
    /// Run there or wait
    Only,
    /// Run anywhere
    Any,
}

/// Writes into `spec` the hosts that hold the input files of the job.
pub fn wish(spec: &mut JobSpec, files: &[PathBuf], how: How) -> Result<(), Failure> {
    let is_free = how == How::Any || spec.host.is_some();
    if is_free { Ok(()) } else { inputs::wish(spec, files, how == How::Only) }
}

/// Chooses the hosts of a job of several slots. The error names a size that would fit.
pub fn lay(
    spec: &mut JobSpec,
    wanted: &SlotRequest,
    hosts: Vec<String>,
    engine: &dyn Engine,
    files: &[PathBuf],
) -> Result<(), LayError> {
    let found = |spec: &JobSpec| inputs::found(spec, files);
    let around = several::Around { own: homing_queue::host_name(), found: &found, processors: &processors };
    several::lay(spec, wanted, hosts, engine, &around)
}

/// Returns the processors of a host. If no slots are configured for the host, it has one slot per processor.
pub fn processors(host: &str) -> Result<u32, String> {
    let asked = crate::cmd::asked::ask_all(&[host.into()]).pop();
    match asked.unwrap_or_else(|| Err("no answer".into())) {
        Ok((facts, _, _)) => Ok(facts.cores),
        Err(why) => Err(format!("cannot read the number of processors of {host}: {why}")),
    }
}
