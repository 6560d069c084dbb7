//! Reads journals and file systems for the advice.

use crate::cluster::Cluster;
use homing_account::advise::{AdviceEvidence, FinishedRun, ReadEvidence, Recorded};
use homing_locate::Locator;
use homing_model::Failure;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The most paths that are looked up: a minute on a file system that answers for 300 files a second.
const MOST_PATHS: usize = 20_000;

/// Reads the runs below these folders that ended at `since_ns` or later.
pub fn evidence(
    roots: &[PathBuf],
    since_ns: i64,
    cluster: &Cluster,
    patience: Duration,
) -> Result<ReadEvidence, Failure> {
    let mut notes = Vec::new();
    let recorded: Vec<Recorded> = roots.iter().flat_map(|root| runs(root, since_ns, &mut notes)).collect();
    let mut paths = BTreeSet::<&Path>::new();
    for path in recorded.iter().flat_map(Recorded::paths) {
        if paths.len() == MOST_PATHS {
            notes.push(format!("only the first {MOST_PATHS} paths are included; a shorter --since covers fewer"));
            break;
        }
        paths.insert(path);
    }
    let locator = Locator::new().map_err(Failure::system)?.with_own(cluster.locators());
    let mut files =
        homing_locate::answering_files(&locator, paths.into_iter().map(Path::to_path_buf).collect(), patience);
    files.retain(|file| file.reason.is_none() && file.size > 0 && !file.volume.starts_with("local:"));
    homing_locate::name_hosts(&mut files);
    let at: HashMap<PathBuf, usize> = files.iter().enumerate().map(|(at, file)| (file.path.to_path(), at)).collect();
    let replicas = files.iter().flat_map(|file| &file.extents).flat_map(|extent| &extent.replicas);
    let holders: HashSet<&str> = replicas.map(|one| one.host.as_str()).collect();
    let runs: Vec<FinishedRun> = recorded.into_iter().map(|run| run.placed(&at, &holders)).collect();
    let read = runs.iter().filter(|run| !run.tasks.is_empty()).count();
    Ok(ReadEvidence { seen: AdviceEvidence { files, runs }, runs: read, notes })
}

fn runs(root: &Path, since_ns: i64, notes: &mut Vec<String>) -> Vec<Recorded> {
    let mut found = Vec::new();
    for name in homing_journal::names(root) {
        let (mut run, mut first_ns, mut last_ns) = (Recorded::default(), None, i64::MIN);
        let events = homing_journal::replay(&root.join(&name)).map_err(|e| notes.push(e.to_string()));
        for event in events.into_iter().flatten() {
            match event {
                Ok(event) => {
                    last_ns = event.at_ns;
                    first_ns = first_ns.or(Some(last_ns));
                    run.add(event.what);
                }
                Err(e) => notes.push(e.to_string()),
            }
        }
        if last_ns >= since_ns {
            run.us = u64::try_from((last_ns - first_ns.unwrap_or(last_ns)) / 1000).unwrap_or(0);
            found.push(run);
        }
    }
    found
}
