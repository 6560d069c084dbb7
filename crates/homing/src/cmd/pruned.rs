//! What is kept of runs that were removed: lines of JSON beside the folders of the others.

use homing_journal::PRUNED;
use homing_report::{Key, RunUsage, Used};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    key: Key,
    #[serde(flatten)]
    used: Used,
}

/// What is to be kept of a run, in lines.
pub fn lines(name: &str, dir: &Path) -> String {
    let mut usage = RunUsage::new(name, i64::MIN);
    // A journal that cannot be read has nothing that could be kept.
    homing_journal::replay(dir).into_iter().flatten().flatten().for_each(|event| usage.add(&event));
    usage.rows().map(|(key, used)| serde_json::to_string(&Line { key, used }).unwrap_or_default() + "\n").collect()
}

/// What was noted of the runs that are gone. One whose folder is still there was not removed after all, and what was
/// noted twice counts once.
pub fn kept(root: &Path) -> io::Result<BTreeMap<Key, Used>> {
    let mut text = Vec::new();
    match homing_folder::open_plain(&root.join(PRUNED)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        file => file?.read_to_end(&mut text)?,
    };
    let lines = text.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice::<Line>(line).ok());
    let gone = lines.filter(|line| !line.key.run.contains('/') && !root.join(&line.key.run).exists());
    Ok(gone.map(|line| (line.key, line.used)).collect())
}
