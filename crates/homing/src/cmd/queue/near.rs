//! The hosts next to which a job should run: those that hold the files that it reads.

use crate::cluster::Cluster;
use crate::failure::Failure;
use homing_locate::{Finder, HostNames, Named};
use homing_model::{Extent, RawText, Task};
use homing_queue::JobSpec;
use homing_queue::plan::Piece;
use std::collections::BTreeMap;
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

/// Writes into `spec` which hosts hold what the job reads: declared `inputs`,
/// and the words of its command that are files.
pub fn wish(spec: &mut JobSpec, inputs: &[PathBuf], how: How) -> Result<(), Failure> {
    if how == How::Any || spec.host.is_some() {
        return Ok(());
    }
    let bytes = match bytes_per_host(spec, inputs) {
        Err(why) if how == How::Prefer => {
            eprintln!("{why}; the job may run anywhere");
            return Ok(());
        }
        bytes => bytes?,
    };
    let most = bytes.values().copied().max().unwrap_or(0);
    // A host with half of what the best has is worth preferring to one that has nothing.
    spec.near = bytes.into_iter().filter(|(_, b)| *b > 0 && *b * 2 >= most).map(|(host, _)| host).collect();
    spec.near_only = how == How::Only;
    if spec.near_only && spec.near.is_empty() {
        return Err(Failure::usage("--place only: no host is known to hold what the job reads")
            .hint("homing where FILE; name files by --near PATH"));
    }
    Ok(())
}

/// Of files on network file systems: what every node sees at the same path.
fn bytes_per_host(spec: &JobSpec, inputs: &[PathBuf]) -> Result<BTreeMap<String, u64>, Failure> {
    Ok(found(spec, inputs)?.0)
}

/// The same, and the pieces of its files in the order in which it names them.
pub fn found(spec: &JobSpec, inputs: &[PathBuf]) -> Result<(BTreeMap<String, u64>, Vec<Piece>), Failure> {
    let task = Task {
        inputs: inputs.iter().map(|i| RawText::from(i.as_path())).chain(spec.stdin.clone()).collect(),
        outputs: spec.stdout.iter().chain(&spec.stderr).cloned().collect(),
        ..Task::of(spec.command.clone())
    };
    let named = Named::of(&task, spec.cwd.as_path(), true);
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
