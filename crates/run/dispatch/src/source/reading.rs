//! Turns tasks into offers: finds the files of each task, where they are, and whether it must run at all. Works in
//! threads of its own, ahead of need. Files on a file system that does not answer are left behind.

use crate::source::environment;
use crate::source::inputs::status_of;
use crate::source::joblog::Missing;
use crate::source::leases::{self, ServerSection};
use crate::source::nonce::Nonces;
use crate::source::stream::Cut;
use crate::{Incoming, Later, Offer, Skipped};
use homing_batch::{Batch, BatchError, Freshness};
use homing_fence::Looks;
use homing_locate::{CandidatePaths, CommandInputs, Finder, OwnLocators, TREE_LIMIT, Volume};
use homing_model::{Block, RawText, Task, TaskId, exit};
use homing_mounts::{Bounded, FileSystemKind, LookFunction, Looking, Silent, holding, silence};
use homing_os::names::addresses;
use homing_os::threads::lock;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The most files that are located in a working directory that is used in place of a task's inputs.
const CWD_LIMIT: usize = 64;

/// The most names that are remembered as no file. Names that occur in each command are among the first.
const MOST_ABSENT: usize = 256;

/// The most tasks that are named because they differ from the run's earlier ones. More would hide the other notes.
const MOST_NAMED: u64 = 3;

/// The settings for offers.
pub struct Sourcing {
    /// The working directory of the run.
    pub cwd: PathBuf,
    /// Whether the words of commands are examined for files.
    pub detect: bool,
    /// The named resources that each task takes, in parts of a unit, unless its line names an amount.
    pub takes: Vec<(String, u64)>,
    /// The file of the image in which tasks run: an input of each.
    pub image: Option<RawText>,
    /// Whether tasks run in containers, which need the folders of their files.
    pub in_containers: bool,
    /// Whether tasks are handed to another program, which chooses their hosts (`--ppn`). Then this run does not look
    /// for the places of their inputs.
    pub handed_on: bool,
    /// Whether tasks with newer outputs than inputs are skipped.
    pub skip_newer: bool,
    /// Whether the working directory of a task is made if it is missing.
    pub makes_workdir: bool,
    /// The tasks that do not run again, because an earlier part of the run has recorded their outcome, with a hash of
    /// their commands. homing 0.1 recorded no hash: its tasks are known by number alone.
    pub done: HashMap<TaskId, Option<u64>>,
    /// The tasks that do not run because the job log lists them, and whether each succeeded.
    pub listed: HashMap<TaskId, bool>,
    /// The lines that an earlier part of the run did not write into the job log.
    pub missing: Option<Missing>,
    /// The number of hosts. With several, files that only one machine sees must exist on a host before a task starts
    /// there.
    pub hosts: usize,
    /// Whether other hosts run tasks. Such hosts look again at files that were written just before.
    pub fenced: bool,
    /// The files to question hosts whether they serve a volume; `None`: no host is questioned.
    pub nonces: Option<Nonces>,
    /// The storage servers in the cluster files, by a name of each.
    pub servers: BTreeMap<String, ServerSection>,
    /// The site's own locators, in addition to homing's.
    pub own: OwnLocators,
    /// The longest time to examine a file.
    pub fs_timeout: Duration,
}

/// The stream of offers.
pub struct OfferStream {
    offers: Bounded<Result<Task, BatchError>, Task, Vec<Incoming>>,
    how: Arc<Sourcing>,
    shared: Arc<Mutex<LookerState>>,
    pending: VecDeque<Incoming>,
}

/// The common knowledge of the looking threads. No thread examines a file while it is locked.
#[derive(Default)]
struct LookerState {
    /// The mounts that do not answer, with the message for each.
    silent: Vec<(PathBuf, String)>,
    /// Names that were no file when a task first used them. The run's own tasks make them, here and on other hosts as
    /// they need them (`flock /tmp/lock ...`). Therefore no host must have them before.
    absent: HashSet<PathBuf>,
    told_bound: bool,
    told_unknown: bool,
    told_untold: bool,
    /// The blocks of standard input of tasks that are not examined yet.
    blocks: HashMap<TaskId, Block>,
    /// The number of the last task that was made.
    last: TaskId,
    /// The number of tasks that differ from the earlier ones under their numbers.
    others: u64,
    /// The number of tasks that a replacement string skipped, and that are not reported yet.
    skipped: u64,
    /// Notes on the input that are not reported yet.
    notes: Vec<String>,
}

impl LookerState {
    fn miss(&mut self, absent: Vec<PathBuf>) {
        let room = MOST_ABSENT.saturating_sub(self.absent.len());
        self.absent.extend(absent.into_iter().take(room));
    }
}

impl OfferStream {
    /// Reads from `batch`, a little ahead.
    pub fn new(batch: Batch, how: Sourcing, finder: Finder) -> OfferStream {
        let (how, shared) = (Arc::new(how), Arc::<Mutex<LookerState>>::default());
        let (mut batch, blocks) = (batch, shared.clone());
        let tasks = std::iter::from_fn(move || {
            let before = batch.skipped();
            let task = batch.next();
            let (skipped, notes) = (batch.skipped() - before, batch.take_notes());
            let mut state = lock(&blocks);
            state.skipped += skipped;
            state.notes.extend(notes);
            drop(state);
            let task = task?;
            if let (Ok(task), Some(block)) = (&task, batch.block()) {
                lock(&blocks).blocks.insert(task.id, block.clone());
            }
            Some(task)
        });
        OfferStream::over(tasks, how, shared, finder)
    }

    /// Returns a maker of offers for tasks that run after others, when their turn has come.
    pub fn later(&self) -> Later {
        let (how, shared) = (self.how.clone(), self.shared.clone());
        let finder = Finder::with_own(how.own.clone());
        Box::new(move |turns| Box::new(OfferStream::over(turns.into_iter().map(Ok), how, shared, finder)))
    }

    fn over(
        tasks: impl Iterator<Item = Result<Task, BatchError>> + Send + 'static,
        how: Arc<Sourcing>,
        shared: Arc<Mutex<LookerState>>,
        finder: Finder,
    ) -> OfferStream {
        let (looker_how, looker_shared, first) = (how.clone(), shared.clone(), Mutex::new(Some(finder)));
        let fresh = move || -> LookFunction<Result<Task, BatchError>, Task, Vec<Incoming>> {
            let finder = lock(&first).take().unwrap_or_default();
            let mut looker = Looker::new(looker_how.clone(), looker_shared.clone(), finder);
            Box::new(move |task, looking| looker.incoming(task, looking))
        };
        OfferStream { offers: Bounded::new(tasks, how.fs_timeout, fresh), how, shared, pending: VecDeque::new() }
    }

    /// Returns the tasks that a replacement string skipped since the last call.
    fn skipped(&self) -> Option<Incoming> {
        let skipped = std::mem::take(&mut lock(&self.shared).skipped);
        (skipped > 0).then_some(Incoming::SkipUnnumbered(skipped))
    }

    fn notes(&self) -> Vec<Incoming> {
        std::mem::take(&mut lock(&self.shared).notes).into_iter().map(Incoming::Note).collect()
    }

    /// Returns a note after the last task: how many changed tasks were not named.
    fn others(&self) -> Option<Incoming> {
        let more = std::mem::take(&mut lock(&self.shared).others).saturating_sub(MOST_NAMED);
        (more > 0)
            .then(|| Incoming::Note(format!("{more} more tasks differ from the tasks that have run; they run again")))
    }

    /// Fails a task whose files could not be examined. All tasks with a file on the same mount fail, too.
    fn unread(&self, silent: Silent<Task>) -> Incoming {
        let reason = silence(&silent.path, self.how.fs_timeout);
        let lines = homing_mounts::read().unwrap_or_default();
        if let Some(line) = holding(&lines, &silent.path).filter(|line| FileSystemKind::of(&line.mount).is_network()) {
            lock(&self.shared).silent.push((line.mount.point.to_path(), reason.clone()));
        }
        Incoming::Unread { task: Box::new(silent.key), reason }
    }
}

/// Examines the files of tasks, in one thread.
struct Looker {
    how: Arc<Sourcing>,
    shared: Arc<Mutex<LookerState>>,
    finder: Finder,
    looks: Looks,
    /// Storage servers whose addresses were resolved.
    resolved: HashSet<String>,
    pending: Vec<Incoming>,
}

impl Looker {
    fn new(how: Arc<Sourcing>, shared: Arc<Mutex<LookerState>>, finder: Finder) -> Looker {
        // A reference that fits into half of the memory is fetched once by each host, and read there from then on.
        let system = rustix::system::sysinfo();
        let keeps = system.totalram as u64 * u64::from(system.mem_unit.max(1)) / 2;
        // A silent NameNode is given up before the look at the task's files is.
        let finder = finder.on_hosts(how.hosts as u32, keeps).patient(how.fs_timeout / 2);
        let looks = Looks::from_folder(&how.cwd);
        Looker { how, shared, finder, looks, resolved: HashSet::new(), pending: Vec::new() }
    }

    /// Returns the items for one task, or for the end of the input.
    fn incoming(&mut self, task: Result<Task, BatchError>, looking: &Looking<Task>) -> Vec<Incoming> {
        let offer = match task {
            Ok(task) => self.offer(task, looking),
            Err(error) => self.broken(&error),
        };
        self.pending.push(offer);
        std::mem::take(&mut self.pending)
    }

    /// Returns the end of a broken source. A cut input is not the user's fault: its known tasks run, and the rest can
    /// still be given.
    fn broken(&self, error: &BatchError) -> Incoming {
        let cut = matches!(error, BatchError::Read { source, .. } if Cut::of(source).is_some());
        if !cut {
            return Incoming::Broken { text: error.to_string(), exit: status_of(error) };
        }
        let known = match lock(&self.shared).last {
            0 => "none of its tasks are known".to_string(),
            last => format!("only tasks 1 to {last} are known"),
        };
        let text = format!("{error}; {known}; `homing resume` continues when it gets the same input again");
        Incoming::Broken { text, exit: exit::SYSTEM }
    }

    /// Whether an earlier part of the run has run this very task.
    fn is_done(&mut self, task: &Task) -> bool {
        let Some(ran) = self.how.done.get(&task.id) else { return false };
        if ran.is_none_or(|ran| ran == homing_journal::ran(task)) {
            return true;
        }
        let (id, mut shared) = (task.id, lock(&self.shared));
        shared.others += 1;
        if shared.others <= MOST_NAMED {
            let text = format!("task {id} differs from the task {id} that has run; it runs again in its present form");
            self.pending.push(Incoming::Note(text));
        }
        self.pending.push(Incoming::Again(id));
        false
    }

    fn offer(&mut self, mut task: Task, looking: &Looking<Task>) -> Incoming {
        for (name, parts) in &self.how.takes {
            if !task.resources.iter().any(|(own, _)| own == name) {
                task.resources.push((name.clone(), *parts));
            }
        }
        let block = {
            let mut shared = lock(&self.shared);
            shared.last = shared.last.max(task.id);
            shared.blocks.remove(&task.id)
        };
        if self.is_done(&task) {
            if let Some(Err(e)) = self.how.missing.as_ref().map(|missing| missing.write(&task)) {
                self.pending.push(Incoming::Note(format!("cannot write the job log: {e}")));
            }
            return skipped(&task, None, false);
        }
        if let Some(well) = self.how.listed.get(&task.id) {
            return skipped(&task, Some("the job log lists it"), !well);
        }
        if !task.after.is_empty() {
            return Incoming::After(Box::new(task));
        }
        task.inputs.extend(self.how.image.clone());
        let base = task.cwd.as_ref().map_or_else(|| self.how.cwd.clone(), |c| self.how.cwd.join(c.as_path()));
        if self.how.makes_workdir
            && let Err(e) = homing_os::folder::make_folders(&base)
        {
            return Incoming::Unread { reason: format!("cannot make {}: {e}", base.display()), task: Box::new(task) };
        }
        let named = CandidatePaths::of(&task, &base, self.how.detect);
        let named = match block {
            Some(block) => named.reading(block),
            None => named,
        };
        if let Some(reason) = self.silent(&named) {
            return Incoming::Unread { task: Box::new(task), reason };
        }
        looking.begins(task.clone(), &base);
        // First of all, this host updates its view of the files.
        let reads: Vec<PathBuf> =
            named.all().filter(|path| self.how.fenced && self.anew(path, looking)).cloned().collect();
        let (inputs, absent): (Vec<_>, Vec<_>) = named.all().cloned().partition(|p| is_there(p, looking));
        lock(&self.shared).miss(absent);
        if self.how.in_containers {
            let folder =
                |path: &PathBuf| if path.is_dir() { Some(path.clone()) } else { path.parent().map(Path::to_path_buf) };
            task.folders = inputs.iter().filter_map(folder).collect();
        }
        if self.how.skip_newer && freshness(&task, &inputs, &base) == Freshness::Fresh {
            return skipped(&task, Some("its outputs are newer than its inputs"), false);
        }
        let (found, guessed) = if self.how.handed_on { Default::default() } else { self.found(&named, &base) };
        self.ask_servers(&found.volumes, &base, &inputs);
        let recent = reads.iter().filter_map(|path| self.looks.changed(path)).collect();
        let own: u64 = found.own.iter().map(|(_, bytes)| bytes).sum();
        let mut per_host: Vec<(String, u64)> = found.shared.into_iter().collect();
        let served: Vec<String> = per_host.iter().map(|(name, _)| name.clone()).collect();
        self.resolve(&served, &found.volumes);
        let on_own = (own > 0).then(|| (environment::hostname(), own));
        per_host.extend(on_own.clone());
        let requires = found.own.iter().filter(|_| self.how.hosts > 1).map(|(path, _)| path.as_path().into());
        Incoming::Task {
            offer: Box::new(Offer {
                task,
                total: found.bytes + own,
                per_host,
                served,
                own: on_own,
                volumes: Vec::new(),
                requires: requires.collect(),
                located: found.located,
                read_before: found.read_before,
                guessed,
                reads: reads.iter().map(|p| p.as_path().into()).collect(),
                recent,
            }),
            mounts: found.volumes.into_iter().map(|v| v.mount).collect(),
        }
    }

    /// Finds the inputs of a task. If its words name no file, the working directory is used in place of its inputs,
    /// as in iobsub. Then it is only a preference (`true`).
    fn found(&mut self, named: &CandidatePaths, base: &Path) -> (CommandInputs, bool) {
        let mut found = self.finder.inputs(named);
        found.own.retain(|(path, _)| !lock(&self.shared).absent.contains(path));
        let home = self.finder.locator().volume_of(base).ok();
        let shared = home.as_ref().is_some_and(|v| v.kind.is_comparable());
        let nothing = found.volumes.is_empty() && found.own.is_empty() && !found.remote;
        found.located &= !nothing;
        found.read_before &= !nothing;
        let guessed = self.how.hosts > 1 && shared && nothing;
        if guessed {
            found = CommandInputs { cut: Vec::new(), ..self.finder.folder(base, CWD_LIMIT) };
        }
        found.volumes.extend(home.filter(|volume| shared && !found.volumes.contains(volume)));
        self.add_notes(&found);
        (found, guessed)
    }

    /// Adds notes about these inputs for the user, each once a run.
    fn add_notes(&mut self, found: &CommandInputs) {
        let (mut notes, mut shared) = (Vec::new(), lock(&self.shared));
        if let Some(cut) = found.cut.first().filter(|_| !std::mem::replace(&mut shared.told_bound, true)) {
            let path = cut.display();
            notes.push(format!("{path} holds more than {TREE_LIMIT} files; homing locates only the first of them"));
        }
        if let Some(volume) = found.unknown.as_ref().filter(|_| self.how.hosts > 1)
            && !std::mem::replace(&mut shared.told_unknown, true)
        {
            let (point, fstype) = (volume.mount.point.display(), &volume.mount.fstype);
            notes.push(format!(
                "{point} has the type {fstype}, whose layout homing cannot read: tasks run on any host that has their \
                 files"
            ));
        }
        if let Some(why) = found.untold.as_ref().filter(|_| !std::mem::replace(&mut shared.told_untold, true)) {
            notes.push(format!("{why}; tasks that name it run on any host"));
        }
        self.pending.extend(notes.into_iter().map(Incoming::Note));
    }

    fn anew(&mut self, path: &Path, looking: &Looking<Task>) -> bool {
        looking.goes_on(path);
        self.looks.anew(path)
    }

    /// Returns the message for a silent mount that holds one of the names, if there is one.
    fn silent(&self, named: &CandidatePaths) -> Option<String> {
        let shared = lock(&self.shared);
        let on = |point: &PathBuf| named.all().any(|name| name.starts_with(point));
        shared.silent.iter().find(|(point, _)| on(point)).map(|(_, reason)| reason.clone())
    }

    /// Resolves storage servers. One server may be mounted by several names and addresses.
    fn resolve(&mut self, served: &[String], volumes: &[Volume]) {
        for name in served {
            if self.resolved.insert(name.clone()) {
                let names = [vec![name.clone()], addresses(name)].concat();
                let place = leases::place(&names, volumes, &self.how.servers);
                self.pending.push(Incoming::Server(names, place));
            }
        }
    }

    /// Adds the question about each NFS volume once, before its first task.
    fn ask_servers(&mut self, volumes: &[Volume], base: &Path, inputs: &[PathBuf]) {
        let Some(nonces) = &self.how.nonces else { return };
        let near: Vec<&Path> = [base].into_iter().chain(inputs.iter().filter_map(|i| i.parent())).collect();
        let served = volumes.iter().filter_map(|volume| nonces.served(volume, &near, self.finder.locator()));
        self.pending.extend(served.map(|served| Incoming::Served(Box::new(served))));
    }
}

impl Iterator for OfferStream {
    type Item = Incoming;
    fn next(&mut self) -> Option<Incoming> {
        while self.pending.is_empty() {
            let next = self.offers.next();
            self.pending.extend(self.notes());
            self.pending.extend(self.skipped());
            let Some(next) = next else { return self.pending.pop_front().or_else(|| self.others()) };
            match next {
                Ok(some) => self.pending.extend(some),
                Err(silent) => return Some(self.unread(silent)),
            }
        }
        self.pending.pop_front()
    }
}

fn skipped(task: &Task, reason: Option<&str>, failed: bool) -> Incoming {
    Incoming::Skip(Skipped { task: task.id, label: task.label(), reason: reason.map(String::from), failed })
}

fn is_there(path: &Path, looking: &Looking<Task>) -> bool {
    looking.goes_on(path);
    path.symlink_metadata().is_ok()
}

fn freshness(task: &Task, inputs: &[PathBuf], base: &Path) -> Freshness {
    let modified = |p: &PathBuf| p.metadata().ok().map(|m| m.mtime() * 1_000_000_000 + m.mtime_nsec());
    let outputs: Vec<PathBuf> = task.outputs.iter().map(|o| base.join(o.as_path())).collect();
    let unfinished = outputs.iter().any(|o| homing_worker::marker_path(o).symlink_metadata().is_ok());
    let times = |paths: &[PathBuf]| -> Vec<(RawText, Option<i64>)> {
        paths.iter().map(|p| (p.as_path().into(), modified(p))).collect()
    };
    homing_batch::freshness(&times(inputs), &times(&outputs), unfinished)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_a_replacement_string_skips_are_reported_up_to_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let words: Vec<RawText> = ["echo {uniq}", ":::", "a", "b", ":::", "a", "b"].map(RawText::from).into();
        let mut source = source(dir.path(), &words, true);
        let (mut tasks, mut skipped) = (0, 0);
        // The iterator is called until its end, as the run does.
        for incoming in &mut source {
            match incoming {
                Incoming::Task { .. } => tasks += 1,
                Incoming::SkipUnnumbered(n) => skipped += n,
                _ => {}
            }
        }
        assert_eq!((tasks, skipped), (2, 2));
    }

    #[test]
    fn a_note_on_the_input_comes_before_its_first_task() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("list"), "a\r\nb\r\n").unwrap();
        let words: Vec<RawText> = ["echo", "::::", "list"].map(RawText::from).into();
        let all: Vec<Incoming> = source(dir.path(), &words, false).collect();
        let [Incoming::Note(text), Incoming::Task { .. }, Incoming::Task { .. }] = &all[..] else {
            panic!("{} items", all.len());
        };
        assert!(text.starts_with("line 1 of list ends with"), "{text}");
    }

    #[test]
    fn what_the_runs_own_tasks_made_here_need_not_be_on_other_hosts() {
        let dir = tempfile::tempdir().unwrap();
        let (there, made) = (dir.path().join("there"), dir.path().join("made"));
        std::fs::write(&there, "x").unwrap();
        let line = format!("use {} {} {{}}", there.display(), made.display());
        let words: Vec<RawText> = [line.as_str(), ":::", "1", "2"].map(RawText::from).into();
        let mut source = source(dir.path(), &words, false);
        let mut next = || match source.next() {
            Some(Incoming::Task { offer, .. }) => offer.requires,
            _ => panic!("no task"),
        };
        let kept = vec![RawText::from(there.as_path())];
        assert_eq!(next(), kept);
        std::fs::write(&made, "by the first task").unwrap();
        assert_eq!(next(), kept);
    }

    fn source(cwd: &Path, words: &[RawText], plus: bool) -> OfferStream {
        let mut inputs = homing_batch::Files::new(cwd, Box::new(std::io::empty()));
        let replacements = homing_batch::Replacements { plus, ..Default::default() };
        let options = homing_batch::InputOptions { replacements, ..Default::default() };
        let batch = homing_batch::compose(words, options, &mut inputs, true).unwrap();
        let how = Sourcing {
            takes: Vec::new(),
            image: None,
            in_containers: false,
            cwd: cwd.into(),
            detect: true,
            handed_on: false,
            skip_newer: false,
            makes_workdir: false,
            done: HashMap::new(),
            listed: HashMap::new(),
            missing: None,
            hosts: 2,
            fenced: false,
            nonces: None,
            servers: Default::default(),
            own: OwnLocators::default(),
            fs_timeout: Duration::from_secs(5),
        };
        OfferStream::new(batch, how, Finder::new().unwrap())
    }
}
