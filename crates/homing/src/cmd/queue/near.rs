//! The hosts next to which a job should run: those that hold the files that it reads.

use crate::failure::Failure;
use homing_locate::{HostNames, Locator};
use homing_model::{RawText, Task};
use homing_queue::JobSpec;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Files looked at below a directory.
const TREE_LIMIT: usize = 2_000;

/// What a job's place next to its data is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum How {
    /// Run there if that can be arranged
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
    let locator = Locator::new().map_err(Failure::system)?;
    let bytes = bytes_per_host(&locator, &files(spec, inputs));
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

fn files(spec: &JobSpec, inputs: &[PathBuf]) -> Vec<PathBuf> {
    let task = Task {
        id: 1,
        command: spec.command.clone(),
        cwd: None,
        env: Vec::new(),
        args: Vec::new(),
        inputs: Vec::new(),
        outputs: spec.stdout.iter().chain(&spec.stderr).cloned().collect(),
        cpus: 1,
        memory: None,
        timeout_ms: None,
    };
    let base = spec.cwd.as_path();
    let words = homing_batch::candidate_words(&task).into_iter().chain(spec.stdin.clone());
    let words = words.map(|w: RawText| base.join(w.as_path()));
    words.chain(inputs.iter().map(|i| base.join(i))).filter(|p| p.exists()).collect()
}

/// Of files on network file systems: what every node sees at the same path.
fn bytes_per_host(locator: &Locator, paths: &[PathBuf]) -> BTreeMap<String, u64> {
    let names = HostNames::default();
    let mut sum = BTreeMap::new();
    for path in paths.iter().filter(|p| locator.volume_of(p).is_ok_and(|v| v.kind.is_network())) {
        let layouts = match path.is_dir() {
            true => locator.locate_tree(path, TREE_LIMIT).files,
            false => locator.locate_all(std::slice::from_ref(path)),
        };
        for (host, bytes) in layouts.iter().flat_map(|l| l.bytes_per_host()) {
            *sum.entry(names.of(&host)).or_insert(0) += bytes;
        }
    }
    sum
}
