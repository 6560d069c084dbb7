//! Finds the folders whose files tasks read over the network.

use crate::advise::AdviceEvidence;
use homing_model::FileLayout;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The smallest part of all bytes over the network for which a folder is reported: a smaller one is worth no change.
pub(crate) const TOLD: f64 = 0.05;
/// Folders replace the folder above them if they have at least this part of its bytes.
const MOST: f64 = 0.8;

/// A folder that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct HotFolder {
    /// Its path.
    pub path: PathBuf,
    /// Bytes of its files that tasks read, each as often as it was read.
    pub read: u64,
    /// The bytes among them that crossed the network.
    pub remote: u64,
    /// Storage hosts with the part of its files' bytes that each can serve, 0 to 1; the largest first.
    pub on: Vec<(String, f64)>,
}

#[derive(Default)]
struct Sum {
    read: f64,
    remote: f64,
    below: BTreeSet<PathBuf>,
}

/// Returns folders in order of the bytes that were read from them over the network. None of them is in another.
pub fn hot(seen: &AdviceEvidence) -> Vec<HotFolder> {
    let mut sums: BTreeMap<PathBuf, Sum> = BTreeMap::new();
    for (file, read, remote) in reads(seen) {
        let path = seen.files[file].path.to_path();
        let mut below: Option<PathBuf> = None;
        for folder in path.ancestors().skip(1) {
            let sum = sums.entry(folder.to_path_buf()).or_default();
            (sum.read, sum.remote) = (sum.read + read, sum.remote + remote);
            sum.below.extend(below.take());
            below = Some(folder.to_path_buf());
        }
    }
    let all: f64 = sums.get(Path::new("/")).map_or(0.0, |sum| sum.remote);
    let mut found = Vec::new();
    if all > 0.0 {
        split(&sums, Path::new("/"), all, &mut found);
    }
    let folder = |path: PathBuf| {
        let (read, remote) = (sums[&path].read as u64, sums[&path].remote as u64);
        let on = on(seen.files.iter().filter(|file| file.path.as_path().starts_with(&path)));
        HotFolder { path, read, remote, on }
    };
    let mut folders: Vec<HotFolder> = found.into_iter().map(folder).collect();
    folders.sort_by(|a, b| b.remote.cmp(&a.remote).then_with(|| a.path.cmp(&b.path)));
    folders
}

/// Descends while reported folders below `at` have most of its bytes; adds each folder at which it stops to `found`.
fn split(sums: &BTreeMap<PathBuf, Sum>, at: &Path, all: f64, found: &mut Vec<PathBuf>) {
    let sum = &sums[at];
    let told: Vec<&PathBuf> = sum.below.iter().filter(|child| sums[*child].remote >= TOLD * all).collect();
    let in_told: f64 = told.iter().map(|child| sums[*child].remote).sum();
    if in_told >= MOST * sum.remote {
        told.into_iter().for_each(|child| split(sums, child, all, found));
    } else {
        found.push(at.to_path_buf());
    }
}

/// Returns files with the bytes that tasks have read of them, and the part of these that crossed the network. For a
/// task with several files the proportion is the same for each.
fn reads(seen: &AdviceEvidence) -> impl Iterator<Item = (usize, f64, f64)> {
    seen.runs.iter().flat_map(|run| &run.tasks).flat_map(move |task| {
        let all: u64 = task.files.iter().map(|file| seen.files[*file].size).sum();
        let part = task.remote as f64 / (task.local + task.remote).max(1) as f64;
        let known = task.files.iter().filter(move |_| all > 0);
        known.map(move |file| (*file, seen.files[*file].size as f64, seen.files[*file].size as f64 * part))
    })
}

fn on<'a>(files: impl Iterator<Item = &'a FileLayout>) -> Vec<(String, f64)> {
    let (mut held, mut size) = (BTreeMap::<String, u64>::new(), 0);
    for file in files {
        size += file.size;
        file.bytes_per_host().into_iter().for_each(|(host, bytes)| *held.entry(host).or_default() += bytes);
    }
    let mut on: Vec<(String, f64)> = held.into_iter().map(|(host, n)| (host, n as f64 / size.max(1) as f64)).collect();
    on.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    on
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::predict::tests::{file, seen};

    #[test]
    fn folders_are_those_where_bytes_part() {
        let files = vec![
            file("/data/ann/raw/a", 400, &["n1"]),
            file("/data/ann/raw/b", 400, &["n1", "n2"]),
            file("/data/ann/notes", 1, &["n2"]),
            file("/data/bob/x", 200, &["n2"]),
            file("/data/read/at/home", 5000, &["n3"]),
        ];
        let found = hot(&seen(files, &[(2, &[0, 1]), (2, &[2]), (0, &[3]), (2, &[4])]));
        let told: Vec<(&str, u64)> = found.iter().map(|f| (f.path.to_str().unwrap(), f.remote)).collect();
        assert_eq!(told, [("/data/ann/raw", 800), ("/data/bob", 200)]);
        assert_eq!(found[0].on, [("n1".to_string(), 1.0), ("n2".to_string(), 0.5)]);
    }

    #[test]
    fn a_folder_of_many_small_ones_stands_for_them() {
        let files: Vec<FileLayout> = (0..40).map(|n| file(&format!("/data/d/{n}/f"), 10, &["n1"])).collect();
        let all: Vec<(usize, Vec<usize>)> = (0..40).map(|n| (1, vec![n])).collect();
        let tasks: Vec<(usize, &[usize])> = all.iter().map(|(host, files)| (*host, &files[..])).collect();
        let found = hot(&seen(files, &tasks));
        assert_eq!(found.iter().map(|f| f.path.to_str().unwrap()).collect::<Vec<_>>(), ["/data/d"]);
        assert_eq!(hot(&seen(vec![file("/data/f", 10, &["n1"])], &[(0, &[0])])), []);
    }
}
