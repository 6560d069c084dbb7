//! Keeps the lessons of admission about a command on a volume, for the next run of the command.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The number of commands that are kept. Beyond it, the oldest are forgotten.
const MOST: usize = 500;

/// The file of all lessons, beside the runs.
#[derive(Default, Serialize, Deserialize)]
struct Lessons(BTreeMap<String, Lesson>);

#[derive(Serialize, Deserialize)]
struct Lesson {
    at_ns: i64,
    /// The limit by storage host.
    limits: BTreeMap<String, u32>,
    /// The commands, by their first words, whose tasks moved bytes of files that they do not name.
    #[serde(default)]
    movers: Vec<String>,
}

fn file() -> Option<PathBuf> {
    Some(crate::root().parent()?.join("admission.json"))
}

fn read(file: &Path) -> Lessons {
    // If the file cannot be read, admission learns again.
    std::fs::read_to_string(file).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

/// Returns the command without its inputs, and the mount point of the volume of the working directory.
pub fn key(words: &[OsString], cwd: &Path) -> Option<String> {
    let source = |word: &std::ffi::OsStr| word.to_string_lossy().starts_with(":::");
    let command: Vec<String> =
        words.iter().take_while(|w| !source(w)).map(|w| w.to_string_lossy().into_owned()).collect();
    let device = cwd.metadata().ok()?.dev();
    let same = |p: &&Path| p.metadata().is_ok_and(|m| m.dev() == device);
    let mount = cwd.ancestors().take_while(same).last().unwrap_or(cwd);
    (!command.is_empty()).then(|| format!("{}\t{}", mount.display(), command.join(" ")))
}

/// Returns the limits at the end of an earlier run, by storage host, and the commands that moved bytes of unnamed
/// files.
pub fn known(key: Option<&str>) -> (HashMap<String, u32>, Vec<String>) {
    let Some((file, key)) = file().zip(key) else { return Default::default() };
    let lesson = read(&file).0.remove(key);
    lesson.map(|lesson| (lesson.limits.into_iter().collect(), lesson.movers)).unwrap_or_default()
}

/// Keeps the lessons of a run. A failure to write them does not harm the run, so it is ignored.
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
