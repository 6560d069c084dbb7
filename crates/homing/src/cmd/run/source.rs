//! From tasks to offers: what each task reads, where that lies, and whether
//! it has to run at all. Works in the source's own thread, ahead of need.

use super::nonce::Nonces;
use super::stream::Cut;
use crate::failure::exit;
use homing_batch::{Batch, BatchError, Freshness, candidate_words};
use homing_dispatch::{Incoming, Offer};
use homing_fence::Looks;
use homing_locate::{Locator, Volume};
use homing_model::{FileLayout, RawText, Task, TaskId};
use homing_mounts::Kind;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Files looked at below a directory that is an input.
const TREE_LIMIT: usize = 2_000;

/// Names that are remembered as those of no file: what is written into each command is among the first.
const MOST_ABSENT: usize = 256;

/// How tasks become offers.
pub struct Sourcing {
    /// The run's working directory.
    pub cwd: PathBuf,
    /// Look at the words of commands.
    pub detect: bool,
    /// Skip what is up to date.
    pub skip_newer: bool,
    /// Tasks that are not run again: an earlier part of the run has recorded what became of them.
    pub done: HashSet<TaskId>,
    /// Tasks that are not run, since the job log lists them.
    pub listed: HashSet<TaskId>,
    /// Several hosts: then files that only one machine sees must be there before a task starts.
    pub spread: bool,
    /// Other hosts run tasks: these look again at what was written just before.
    pub fenced: bool,
    /// For asking hosts whether they serve a volume; `None`: nobody is asked.
    pub nonces: Option<Nonces>,
}

/// The stream of offers.
pub struct Source {
    batch: Batch,
    how: Sourcing,
    locator: Locator,
    looks: Looks,
    /// What was no file when a task first named it: made since by the run's own tasks, here and on other
    /// hosts as they need it (`flock /tmp/lock ...`), so that no host must have it before.
    absent: HashSet<PathBuf>,
    told_bound: bool,
    told_unknown: bool,
    /// The last task that was made.
    last: TaskId,
    pending: VecDeque<Incoming>,
}

impl Source {
    /// Reads from `batch` as it is asked.
    pub fn new(batch: Batch, how: Sourcing, locator: Locator) -> Source {
        Source {
            batch,
            how,
            locator,
            looks: Looks::default(),
            absent: HashSet::new(),
            told_bound: false,
            told_unknown: false,
            last: 0,
            pending: VecDeque::new(),
        }
    }

    /// A cut input is no mistake of the user: all that is known of it is run, and the rest can still be given.
    fn broken(&self, error: &BatchError) -> Incoming {
        let cut = matches!(error, BatchError::Read { source, .. } if Cut::of(source).is_some());
        if !cut {
            return Incoming::Broken { text: error.to_string(), exit: exit::USAGE };
        }
        let known = match self.last {
            0 => "no task is known of it".to_string(),
            last => format!("tasks 1 to {last} are known and no more"),
        };
        let text = format!("{error}; {known}; `homing resume` goes on when it is given the same input again");
        Incoming::Broken { text, exit: exit::SYSTEM }
    }

    fn offer(&mut self, task: Task) -> Incoming {
        self.last = task.id;
        if self.how.done.contains(&task.id) {
            return Incoming::Skip { task: task.id, reason: None };
        }
        if self.how.listed.contains(&task.id) {
            return Incoming::Skip { task: task.id, reason: Some("the job log lists it".to_string()) };
        }
        let base = task.cwd.as_ref().map_or_else(|| self.how.cwd.clone(), |c| self.how.cwd.join(c.as_path()));
        let names = self.named(&task, &base);
        // Before anything is asked of them: this host is made to see them as they are.
        let reads: Vec<PathBuf> =
            names.iter().filter(|path| self.how.fenced && self.looks.anew(path)).cloned().collect();
        let (inputs, absent): (Vec<_>, Vec<_>) = names.into_iter().partition(|p| p.symlink_metadata().is_ok());
        self.absent.extend(absent.into_iter().take(MOST_ABSENT.saturating_sub(self.absent.len())));
        if self.how.skip_newer && freshness(&task, &inputs, &base) == Freshness::Fresh {
            let reason = "its outputs are newer than its inputs".to_string();
            return Incoming::Skip { task: task.id, reason: Some(reason) };
        }
        let mut found = Found::default();
        for input in &inputs {
            self.weigh(input, &mut found);
        }
        if found.nothing() {
            self.weigh_cwd(&base, &mut found);
        }
        if let Ok(volume) = self.locator.volume_of(&base)
            && volume.kind.is_comparable()
        {
            found.mount(volume);
        }
        self.ask_servers(&found.volumes, &base, &inputs);
        let recent = reads.iter().filter_map(|path| self.looks.changed(path)).collect();
        Incoming::Task {
            offer: Box::new(Offer {
                task,
                total: found.total,
                per_host: found.per_host.into_iter().collect(),
                volumes: Vec::new(),
                requires: if self.how.spread { found.local } else { Vec::new() },
                located: found.located,
                guessed: found.guessed,
                reads: reads.iter().map(|p| p.as_path().into()).collect(),
                recent,
            }),
            mounts: found.volumes.into_iter().map(|v| v.mount).collect(),
        }
    }

    /// Once for each NFS volume, ahead of its first task.
    fn ask_servers(&mut self, volumes: &[Volume], base: &Path, inputs: &[PathBuf]) {
        let Some(nonces) = &self.how.nonces else { return };
        let near: Vec<&Path> = [base].into_iter().chain(inputs.iter().filter_map(|i| i.parent())).collect();
        let served = volumes.iter().filter_map(|volume| nonces.served(volume, &near, &self.locator));
        self.pending.extend(served.map(|served| Incoming::Served(Box::new(served))));
    }

    /// What the task names and may read: files and directories, and words that are none.
    fn named(&self, task: &Task, base: &Path) -> Vec<PathBuf> {
        let mut names = task.inputs.clone();
        if self.how.detect {
            names.extend(candidate_words(task));
        }
        let outputs: HashSet<PathBuf> = task.outputs.iter().map(|o| base.join(o.as_path())).collect();
        let mut seen = HashSet::new();
        let paths = names.iter().filter(|n| !n.0.is_empty()).map(|n| base.join(n.as_path()));
        paths.filter(|p| !outputs.contains(p) && seen.insert(p.clone())).collect()
    }

    fn weigh(&mut self, path: &Path, found: &mut Found) {
        let Ok(meta) = path.metadata() else { return };
        let Ok(volume) = self.locator.volume_of(path) else { return };
        if !volume.kind.is_comparable() && (!meta.is_file() || self.absent.contains(path)) {
            return;
        }
        if volume.kind.is_comparable() {
            found.mount(volume);
        } else {
            self.tell_unknown(&volume);
            found.local.push(path.into());
        }
        if !meta.is_dir() {
            return found.add(&self.locator.locate(path));
        }
        let tree = self.locator.locate_tree(path, TREE_LIMIT);
        if tree.truncated && !std::mem::replace(&mut self.told_bound, true) {
            let text = format!("{} holds more than {TREE_LIMIT} files; the first of them stand for it", path.display());
            self.pending.push_back(Incoming::Note(text));
        }
        tree.files.iter().for_each(|layout| found.add(layout));
    }

    /// A volume that homing knows nothing of is used wherever its files are found.
    fn tell_unknown(&mut self, volume: &Volume) {
        if self.how.spread && volume.kind == Kind::Other && !std::mem::replace(&mut self.told_unknown, true) {
            self.pending.push_back(Incoming::Note(format!(
                "{} is of the type {}, which homing cannot ask where bytes lie: tasks run on any host that has their files",
                volume.mount.point.display(),
                volume.mount.fstype
            )));
        }
    }

    /// Nothing names a file: the working directory stands for the data, as it
    /// did for iobsub. Only its own files count, and only as a preference.
    fn weigh_cwd(&mut self, base: &Path, found: &mut Found) {
        if !self.how.spread || !self.locator.volume_of(base).is_ok_and(|v| v.kind.is_comparable()) {
            return;
        }
        found.guessed = true;
        let tree = self.locator.locate_tree(base, 64);
        tree.files.iter().for_each(|layout| found.add(layout));
    }
}

impl Iterator for Source {
    type Item = Incoming;
    fn next(&mut self) -> Option<Incoming> {
        if let Some(pending) = self.pending.pop_front() {
            return Some(pending);
        }
        match self.batch.next()? {
            Ok(task) => {
                let offer = self.offer(task);
                self.pending.push_back(offer);
                self.pending.pop_front()
            }
            Err(error) => Some(self.broken(&error)),
        }
    }
}

#[derive(Default)]
struct Found {
    total: u64,
    per_host: BTreeMap<String, u64>,
    volumes: Vec<Volume>,
    local: Vec<RawText>,
    located: bool,
    guessed: bool,
}

impl Found {
    fn nothing(&self) -> bool {
        self.total == 0 && self.volumes.is_empty()
    }

    fn mount(&mut self, volume: Volume) {
        if !self.volumes.contains(&volume) {
            self.volumes.push(volume);
        }
    }

    fn add(&mut self, layout: &FileLayout) {
        if layout.extents.is_empty() {
            return;
        }
        self.located = true;
        self.total += layout.extents.iter().map(|e| e.length).sum::<u64>();
        for (host, bytes) in layout.bytes_per_host() {
            *self.per_host.entry(host).or_default() += bytes;
        }
    }
}

fn freshness(task: &Task, inputs: &[PathBuf], base: &Path) -> Freshness {
    let modified = |p: &PathBuf| p.metadata().ok().map(|m| m.mtime() * 1_000_000_000 + m.mtime_nsec());
    let outputs: Vec<PathBuf> = task.outputs.iter().map(|o| base.join(o.as_path())).collect();
    let unfinished = outputs.iter().any(|o| homing_worker::marker_path(o).exists());
    let times = |paths: &[PathBuf]| -> Vec<(RawText, Option<i64>)> {
        paths.iter().map(|p| (p.as_path().into(), modified(p))).collect()
    };
    homing_batch::freshness(&times(inputs), &times(&outputs), unfinished)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_runs_own_tasks_made_here_need_not_be_on_other_hosts() {
        let dir = tempfile::tempdir().unwrap();
        let (there, made) = (dir.path().join("there"), dir.path().join("made"));
        std::fs::write(&there, "x").unwrap();
        let line = format!("use {} {} {{}}", there.display(), made.display());
        let words: Vec<RawText> = [line.as_str(), ":::", "1", "2"].map(RawText::from).into();
        let mut inputs = homing_batch::Files::new(dir.path(), Box::new(std::io::empty()));
        let batch = homing_batch::compose(&words, Default::default(), &mut inputs, true).unwrap();
        let how = Sourcing {
            cwd: dir.path().into(),
            detect: true,
            skip_newer: false,
            done: HashSet::new(),
            listed: HashSet::new(),
            spread: true,
            fenced: false,
            nonces: None,
        };
        let mut source = Source::new(batch, how, Locator::new().unwrap());
        let mut next = || match source.next() {
            Some(Incoming::Task { offer, .. }) => offer.requires,
            _ => panic!("no task"),
        };
        let kept = vec![RawText::from(there.as_path())];
        assert_eq!(next(), kept);
        std::fs::write(&made, "by the first task").unwrap();
        assert_eq!(next(), kept);
    }
}
