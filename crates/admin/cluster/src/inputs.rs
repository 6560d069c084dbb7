//! Finds the hosts that hold a job's inputs: it should run there.

use crate::Cluster;
use homing_locate::{CandidatePaths, Finder, HostNames};
use homing_model::{Extent, Failure, RawText, Task};
use homing_os::say;
use homing_place::near;
use homing_queue::JobSpec;
use homing_queue::plan::Piece;
use homing_queue::several::InputLocations;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Writes into `spec` the hosts that hold the job's inputs: declared `inputs`, and the words of its command that are
/// files. `only`: the job runs on one of them or waits.
pub fn wish(spec: &mut JobSpec, inputs: &[PathBuf], only: bool) -> Result<(), Failure> {
    let bytes = match found(spec, inputs) {
        Err(why) if !only => {
            say!("{why}; the job may run on any host");
            return Ok(());
        }
        found => found?.0,
    };
    spec.near = near(bytes);
    spec.near_only = only;
    if only && spec.near.is_empty() {
        return Err(Failure::usage("--place only: homing knows no host that holds the inputs of the job")
            .hint("homing where FILE shows the hosts of a file; --near PATH names an input"));
    }
    Ok(())
}

/// Returns the bytes of a job's inputs by host, and the pieces of its files in the order in which it names them. Only
/// files on network file systems count, which every node has at the same path.
pub fn found(spec: &JobSpec, inputs: &[PathBuf]) -> Result<InputLocations, Failure> {
    let task = Task {
        inputs: inputs.iter().map(|i| RawText::from(i.as_path())).chain(spec.stdin.clone()).collect(),
        outputs: spec.stdout.iter().chain(&spec.stderr).cloned().collect(),
        ..Task::of(spec.command.clone())
    };
    let named = CandidatePaths::of(&task, spec.cwd.as_path(), true);
    let looked = named.all().chain(&named.patterns).cloned().collect();
    let own = Cluster::of_queue()?.locators();
    let look = move || {
        let finder = Finder::with_own(own);
        (finder.inputs(&named), finder.layouts(&named))
    };
    let (found, layouts) =
        homing_mounts::patiently(looked, homing_mounts::FS_TIMEOUT, look).map_err(Failure::system)?;
    let names = HostNames::default();
    let mut sum = BTreeMap::new();
    for (host, bytes) in found.shared {
        *sum.entry(names.of(&host)).or_insert(0) += bytes;
    }
    let hosts = |extent: &Extent| extent.replicas.iter().map(|replica| names.of(&replica.host)).collect();
    let piece = |extent: &Extent| Piece { bytes: extent.length, hosts: hosts(extent) };
    Ok((sum, layouts.iter().flat_map(|layout| layout.extents.iter().map(piece)).collect()))
}
