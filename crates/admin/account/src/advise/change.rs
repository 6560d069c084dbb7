//! Changes of the layout, and the prediction for each.

use crate::advise::hot::{HotFolder, TOLD};
use crate::advise::{AdviceEvidence, PredictedCost, predict};
use homing_model::{FileLayout, Replica};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A volume whose copies can be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdjustableVolume {
    /// Its name.
    pub name: String,
    /// The mount point.
    pub mount: PathBuf,
    /// Hosts that give it space.
    pub hosts: Vec<String>,
    /// Whether a folder may have another number of copies than the rest.
    pub by_folder: bool,
}

/// A possible change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutChange {
    /// Another number of copies of the files in a folder.
    Copies {
        /// The volume.
        volume: String,
        /// The folder; it is the mount point if only a whole volume can be changed.
        path: PathBuf,
        /// Copies.
        copies: u32,
    },
    /// A move of a folder to a volume over several hosts.
    Move {
        /// The folder.
        path: PathBuf,
        /// The volume's mount point.
        to: PathBuf,
    },
}

/// The largest difference, as a fraction, between the predicted and the real time of the runs at which the prediction
/// of times is used. If it is larger, the placer alone does not explain the time. Others used the hosts, or the tasks
/// at a server were limited.
const NEAR: f64 = 0.2;

/// A change with its prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The change.
    pub change: LayoutChange,
    /// The predicted outcome of the runs with the present layout.
    pub now: PredictedCost,
    /// The predicted outcome after the change.
    pub then: PredictedCost,
    /// The real time of the runs, microseconds.
    pub took_us: u64,
    /// Bytes that the change writes.
    pub written: u64,
}

impl Advice {
    /// Returns the part of the bytes over the network that it saves, 0 to 1.
    pub fn saves(&self) -> f64 {
        saved(self.now.remote, self.then.remote)
    }

    /// Returns the part of the time that it saves; `None` if more than the placer decides the time.
    pub fn saves_time(&self) -> Option<f64> {
        let is_told = saved(self.took_us, self.now.us).abs() <= NEAR;
        is_told.then(|| saved(self.now.us, self.then.us))
    }
}

fn saved(now: u64, then: u64) -> f64 {
    1.0 - then as f64 / now.max(1) as f64
}

/// Returns changes of the folders that [`crate::advise::hot`] finds, in order of the bytes that they save. Each saves
/// at least a twentieth of them.
pub fn advice(seen: &AdviceEvidence, folders: &[HotFolder], sites: &[AdjustableVolume]) -> Vec<Advice> {
    let now = predict(seen, &seen.files);
    let held = |files: &[FileLayout]| files.iter().flat_map(FileLayout::bytes_per_host).map(|(_, n)| n).sum::<u64>();
    let stored = held(&seen.files);
    let took_us = seen.runs.iter().filter(|run| !run.tasks.is_empty()).map(|run| run.us).sum();
    let mut found: Vec<Advice> = Vec::new();
    for (change, files) in folders.iter().flat_map(|folder| changes(seen, folder, sites)) {
        if found.iter().any(|one| one.change == change) {
            continue;
        }
        let then = predict(seen, &files);
        let written = held(&files).saturating_sub(stored);
        found.push(Advice { change, now, then, took_us, written });
    }
    found.retain(|one| one.saves() >= TOLD);
    found.sort_by(|a, b| b.saves().total_cmp(&a.saves()));
    found
}

/// Returns changes of a folder, each with the resulting layout of all files.
fn changes(
    seen: &AdviceEvidence,
    folder: &HotFolder,
    sites: &[AdjustableVolume],
) -> Vec<(LayoutChange, Vec<FileLayout>)> {
    let site = sites.iter().filter(|site| folder.path.starts_with(&site.mount));
    match site.max_by_key(|site| site.mount.as_os_str().len()) {
        Some(site) => one_more_copy(seen, folder, site).into_iter().collect(),
        None => sites.iter().filter(|to| to.hosts.len() > 1).map(|to| moved(seen, folder, to)).collect(),
    }
}

fn one_more_copy(
    seen: &AdviceEvidence,
    folder: &HotFolder,
    site: &AdjustableVolume,
) -> Option<(LayoutChange, Vec<FileLayout>)> {
    let path = if site.by_folder { &folder.path } else { &site.mount };
    let within = |file: &FileLayout| file.path.as_path().starts_with(path);
    let copies = seen.files.iter().filter(|file| within(file)).flat_map(|file| &file.extents);
    let copies = copies.map(|extent| extent.replicas.len()).max().unwrap_or(0) as u32 + 1;
    if copies as usize > site.hosts.len() {
        return None;
    }
    let mut turn = 0;
    let mut files = seen.files.clone();
    for file in files.iter_mut().filter(|file| within(file)) {
        for extent in &mut file.extents {
            let has = |host: &&String| extent.replicas.iter().any(|one| one.host == **host);
            let free: BTreeSet<&String> = site.hosts.iter().filter(|host| !has(host)).collect();
            let lacks = (copies as usize).saturating_sub(extent.replicas.len()).min(free.len());
            let from = turn % free.len().max(1);
            let hosts: Vec<String> = free.iter().cycle().skip(from).take(lacks).map(|host| host.to_string()).collect();
            turn += lacks;
            extent.replicas.extend(hosts.into_iter().map(|host| Replica { host, share: 1.0 }));
        }
    }
    Some((LayoutChange::Copies { volume: site.name.clone(), path: path.clone(), copies }, files))
}

/// Returns the move to a volume with one copy, file by file in turn: more copies there are a change of their own.
fn moved(seen: &AdviceEvidence, folder: &HotFolder, to: &AdjustableVolume) -> (LayoutChange, Vec<FileLayout>) {
    let mut files = seen.files.clone();
    let within = files.iter_mut().filter(|file| file.path.as_path().starts_with(&folder.path));
    for (turn, file) in within.enumerate() {
        let host = &to.hosts[turn % to.hosts.len()];
        for extent in &mut file.extents {
            extent.replicas = vec![Replica { host: host.clone(), share: 1.0 }];
        }
    }
    (LayoutChange::Move { path: folder.path.clone(), to: to.mount.clone() }, files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::hot;
    use crate::advise::predict::tests::{file, seen};

    fn advised(sites: &[AdjustableVolume]) -> Vec<Advice> {
        let seen = skewed();
        advice(&seen, &hot(&seen), sites)
    }

    fn skewed() -> AdviceEvidence {
        let files: Vec<FileLayout> = (0..30).map(|n| file(&format!("/data/raw/{n}"), 10_000_000, &["n1"])).collect();
        let tasks: Vec<(usize, Vec<usize>)> = (0..30).map(|n| (n % 3, vec![n])).collect();
        let tasks: Vec<(usize, &[usize])> = tasks.iter().map(|(host, files)| (*host, &files[..])).collect();
        seen(files, &tasks)
    }

    fn site(by_folder: bool, mount: &str, hosts: &[&str]) -> AdjustableVolume {
        let hosts = hosts.iter().map(|host| host.to_string()).collect();
        AdjustableVolume { name: "data".into(), mount: mount.into(), hosts, by_folder }
    }

    #[test]
    fn a_copy_more_of_what_is_hot_is_advised_with_what_it_brings() {
        for (by_folder, path) in [(true, "/data/raw"), (false, "/data")] {
            let found = advised(&[site(by_folder, "/data", &["n1", "n2", "n3"])]);
            let change = LayoutChange::Copies { volume: "data".into(), path: path.into(), copies: 2 };
            assert_eq!(found.iter().map(|one| &one.change).collect::<Vec<_>>(), [&change]);
            assert_eq!((found[0].saves(), found[0].written), (1.0, 300_000_000), "{found:?}");
            // The run took as long as its tasks do, or much longer.
            let told = |took_us| Advice { took_us, ..found[0].clone() }.saves_time();
            assert!(told(found[0].now.us + 1000).is_some_and(|part| part > 0.1), "{found:?}");
            assert_eq!(told(found[0].now.us * 2), None);
        }
    }

    #[test]
    fn what_cannot_be_changed_or_would_bring_nothing_is_not_advised() {
        assert_eq!(advised(&[site(true, "/data", &["n1"])]), []);
        assert_eq!(advised(&[site(true, "/data", &["n1", "other"])]), []);
        assert_eq!(advised(&[]), []);
    }

    #[test]
    fn a_folder_of_one_server_may_move_to_a_volume_over_several() {
        let found = advised(&[site(true, "/spread", &["n1", "n2", "n3"])]);
        let change = LayoutChange::Move { path: "/data/raw".into(), to: "/spread".into() };
        assert_eq!(found.iter().map(|one| &one.change).collect::<Vec<_>>(), [&change]);
    }
}
