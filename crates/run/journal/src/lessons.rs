//! What admission found out about a command on a volume, kept for its next run.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Commands that are remembered; beyond these the oldest are forgotten.
const MOST: usize = 500;

/// The file of all lessons, beside the runs.
#[derive(Default, Serialize, Deserialize)]
struct Lessons(BTreeMap<String, Lesson>);

#[derive(Serialize, Deserialize)]
struct Lesson {
    at_ns: i64,
    /// Limit by storage host.
    limits: BTreeMap<String, u32>,
    /// Commands, by their first words, whose tasks moved bytes without naming any.
    #[serde(default)]
    movers: Vec<String>,
}

fn file() -> Option<PathBuf> {
    Some(crate::root().parent()?.join("admission.json"))
}

fn read(file: &Path) -> Lessons {
    // What cannot be read is learnt anew.
    std::fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// The command without its inputs, and where the volume of the working directory is mounted.
pub fn key(words: &[OsString], cwd: &Path) -> Option<String> {
    let source = |word: &std::ffi::OsStr| word.to_string_lossy().starts_with(":::");
    let command: Vec<String> =
        words.iter().take_while(|w| !source(w)).map(|w| w.to_string_lossy().into_owned()).collect();
    let device = cwd.metadata().ok()?.dev();
    let same = |p: &&Path| p.metadata().is_ok_and(|m| m.dev() == device);
    let mount = cwd.ancestors().take_while(same).last().unwrap_or(cwd);
    (!command.is_empty()).then(|| format!("{}\t{}", mount.display(), command.join(" ")))
}

/// Limits with which an earlier run ended, by storage host, and what moved bytes in it without naming any.
pub fn known(key: Option<&str>) -> (HashMap<String, u32>, Vec<String>) {
    let Some((file, key)) = file().zip(key) else { return Default::default() };
    let lesson = read(&file).0.remove(key);
    lesson.map(|lesson| (lesson.limits.into_iter().collect(), lesson.movers)).unwrap_or_default()
}

/// Keeps what a run found out. That it cannot be kept is no harm to the run.
pub fn keep(key: Option<&str>, limits: &[(String, u32)], movers: &[String], at_ns: i64) {
    let Some((file, key)) = file().zip(key).filter(|_| !limits.is_empty()) else { return };
    let mut lessons = read(&file);
    let lesson = lessons.0.entry(key.into()).or_insert(Lesson { at_ns, limits: BTreeMap::new(), movers: Vec::new() });
    lesson.at_ns = at_ns;
    lesson.limits.extend(limits.iter().cloned());
    lesson.movers = movers.to_vec();
    while lessons.0.len() > MOST {
        let oldest = lessons.0.iter().min_by_key(|(_, l)| l.at_ns).map(|(key, _)| key.clone());
        oldest.and_then(|key| lessons.0.remove(&key));
    }
    let _ = serde_json::to_vec(&lessons).map(|text| homing_os::folder::write_whole(&file, &text, None));
}
