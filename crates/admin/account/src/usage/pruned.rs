//! Keeps the sums of removed runs: lines of JSON beside the folders of the other runs. The lines of a run are written
//! before its folder is removed. Lines of a run that still exists do not count, and repeated lines count once: a prune
//! that was killed, and two at the same time, do no harm.

use homing_journal::PRUNED;
use homing_report::{RunUsage, UsageKey, Used};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

#[derive(Serialize, Deserialize)]
struct PrunedUsage {
    #[serde(flatten)]
    key: UsageKey,
    #[serde(flatten)]
    used: Used,
}

/// Returns the lines to keep of a run.
pub fn lines(name: &str, dir: &Path) -> String {
    let mut usage = RunUsage::new(name, i64::MIN);
    // A journal that cannot be read has nothing to keep.
    homing_journal::replay(dir).into_iter().flatten().flatten().for_each(|event| usage.add(&event));
    usage
        .rows()
        .map(|(key, used)| serde_json::to_string(&PrunedUsage { key, used }).unwrap_or_default() + "\n")
        .collect()
}

/// Returns the sums of removed runs, and why lines are left out. A run whose folder still exists was not removed, and
/// a repeated line counts once.
pub fn kept(root: &Path) -> io::Result<(BTreeMap<UsageKey, Used>, Vec<String>)> {
    let path = root.join(PRUNED);
    let mut text = Vec::new();
    match homing_os::folder::open_plain(&path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Default::default()),
        file => file?.read_to_end(&mut text)?,
    };
    let lines: Vec<&[u8]> = text.split(|b| *b == b'\n').collect();
    let (mut gone, mut damaged) = (BTreeMap::new(), Vec::new());
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        match serde_json::from_slice::<PrunedUsage>(line) {
            Ok(line) if line.key.run.contains('/') || root.join(&line.key.run).exists() => {}
            Ok(line) => drop(gone.insert(line.key, line.used)),
            // A process killed while writing has left a part of a line; the next prune writes that line again, whole.
            Err(_) if lines[at + 1..].iter().any(|whole| whole.len() > line.len() && whole.starts_with(line)) => {}
            Err(e) => damaged.push(format!("line {} of {} is damaged: {e}", at + 1, path.display())),
        }
    }
    Ok((gone, damaged))
}
