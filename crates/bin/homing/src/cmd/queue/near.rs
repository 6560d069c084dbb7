//! Where a job should run: next to what it reads, and on which hosts.

use homing_cluster::inputs;
use homing_model::Failure;
use homing_queue::several::{self, Wanted};
use homing_queue::{Engine, JobSpec};
use std::path::PathBuf;

/// What a job's place next to its data is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum How {
    /// Run there if that can be arranged
    #[default]
    Prefer,
    /// Run there or wait
    Only,
    /// Run anywhere
    Any,
}

/// Writes into `spec` which hosts hold what the job reads.
pub fn wish(spec: &mut JobSpec, files: &[PathBuf], how: How) -> Result<(), Failure> {
    let is_free = how == How::Any || spec.host.is_some();
    if is_free { Ok(()) } else { inputs::wish(spec, files, how == How::Only) }
}

/// Chooses the hosts of a job of several slots; the error tells what would fit.
pub fn lay(
    spec: &mut JobSpec,
    wanted: &Wanted,
    hosts: Vec<String>,
    engine: &dyn Engine,
    files: &[PathBuf],
) -> Result<(), String> {
    let found = |spec: &JobSpec| inputs::found(spec, files);
    let around = several::Around { own: homing_queue::host_name(), found: &found, processors: &processors };
    several::lay(spec, wanted, hosts, engine, &around)
}

/// Processors of a host whose slots nobody has said: it has as many.
pub fn processors(host: &str) -> Result<u32, String> {
    let asked = crate::cmd::asked::ask_all(&[host.into()]).pop();
    match asked.unwrap_or_else(|| Err("no answer".into())) {
        Ok((facts, _, _)) => Ok(facts.cores),
        Err(why) => Err(format!("{host} cannot be asked for its processors: {why}")),
    }
}
