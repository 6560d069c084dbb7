//! The inputs of a command: turns its words into paths, and these into bytes by host.

mod remote;

use crate::candidates::candidate_words;
use crate::{LocateError, Locator, OwnLocators, Volume, hdfs};
use homing_model::{Block, Extent, FileLayout, RawText, Task};
use homing_mounts::FileSystemKind;
use homing_os::threads::lock;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// The most files that are examined below a folder that is an input.
pub const TREE_LIMIT: usize = 2_000;

/// The most paths whose places are remembered; paths that thousands of tasks name are among the latest. An entry
/// takes some 300 bytes.
const MOST_KNOWN: usize = 10_000;

/// Paths that a command may read, absolute; not all need exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CandidatePaths {
    /// Declared inputs: a folder means the files in it.
    pub declared: Vec<PathBuf>,
    /// Words of the command. A folder means its files if no file of a shared volume or of HDFS is named beside it.
    /// Beside files it is the folder of outputs.
    pub words: Vec<PathBuf>,
    /// Folders in which a shell expands patterns: `DIR` of `DIR/*.fq`.
    pub patterns: Vec<PathBuf>,
    /// Names of HDFS files, declared as inputs or words of the command, unchanged.
    pub remote: Vec<PathBuf>,
    /// The only bytes that are read of a declared file.
    pub block: Option<Block>,
}

impl CandidatePaths {
    /// Returns the paths that a task names, without declared outputs. Words of the command are included only if
    /// `detect`.
    pub fn of(task: &Task, cwd: &Path, detect: bool) -> CandidatePaths {
        let mut seen: HashSet<PathBuf> = task.outputs.iter().map(|o| cwd.join(o.as_path())).collect();
        let mut once = |path: PathBuf| seen.insert(path.clone()).then_some(path);
        let (mut words, mut remote) = (if detect { candidate_words(task) } else { Vec::new() }, Vec::new());
        let mut local = |name: &RawText| {
            let is_named = hdfs::is_named(name.as_path());
            remote.extend(Some(name.to_path()).filter(|_| is_named));
            !is_named
        };
        let declared = task.inputs.iter().filter(|name| !name.0.is_empty() && local(name));
        let declared = declared.filter_map(|name| once(cwd.join(name.as_path()))).collect();
        words.retain(&mut local);
        remote.retain(|name| once(cwd.join(name)).is_some());
        let patterns = words.iter().filter_map(|word| once(cwd.join(searched(word.as_path())?))).collect();
        let words = words.iter().filter_map(|word| once(cwd.join(word.as_path()))).collect();
        CandidatePaths { declared, words, patterns, remote, block: None }
    }

    /// Restricts the file of `block` to that block, and makes it a declared input.
    pub fn reading(mut self, block: Block) -> CandidatePaths {
        self.words.retain(|path| *path != block.path);
        if !self.declared.contains(&block.path) {
            self.declared.push(block.path.clone());
        }
        CandidatePaths { block: Some(block), ..self }
    }

    /// Returns the named paths themselves.
    pub fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.declared.iter().chain(&self.words)
    }
}

/// Returns the folder in which a shell expands a pattern. A pattern without a slash is ignored, because it may as
/// well be an expression of `grep`.
fn searched(word: &Path) -> Option<&Path> {
    let has_glob = |path: &Path| path.as_os_str().as_encoded_bytes().iter().any(|b| b"*?[".contains(b));
    let folder = word.ancestors().find(|folder| !has_glob(folder))?;
    (folder != word && !folder.as_os_str().is_empty()).then_some(folder)
}

/// The inputs of a command, and their places.
#[derive(Clone, Debug, Default)]
pub struct CommandInputs {
    /// Bytes on shared volumes that could be placed.
    pub bytes: u64,
    /// Of these, bytes by storage host.
    pub shared: BTreeMap<String, u64>,
    /// Files that other hosts do not share, as far as is known, and the bytes of each on this host's disks.
    pub own: Vec<(PathBuf, u64)>,
    /// Volumes of the inputs; some hosts see them, others may not.
    pub volumes: Vec<Volume>,
    /// A volume of a kind that cannot be compared between hosts.
    pub unknown: Option<Volume>,
    /// Whether some input has a place.
    pub located: bool,
    /// Whether some input does not count, because so many tasks have named it that all hosts have it in their caches.
    pub read_before: bool,
    /// Whether a file of HDFS, which is on no volume, has a place.
    pub remote: bool,
    /// Why the place of an HDFS name is unknown.
    pub untold: Option<String>,
    /// Folders with too many files, of which only the first were counted.
    pub cut: Vec<PathBuf>,
}

impl CommandInputs {
    fn add(&mut self, place: &PathBytes) {
        self.located |= place.bytes > 0;
        self.bytes += place.bytes;
        for (host, bytes) in &place.per_host {
            *self.shared.entry(host.clone()).or_default() += bytes;
        }
    }

    fn volume(&mut self, volume: &Volume) {
        if volume.kind.is_comparable() && !self.volumes.contains(volume) {
            self.volumes.push(volume.clone());
        }
        if volume.kind == FileSystemKind::Other {
            self.unknown = Some(volume.clone());
        }
    }
}

/// The facts about one path.
#[derive(Debug)]
struct PathFacts {
    folder: bool,
    /// Changes with the file, or with its state: inode, size and time of modification.
    mark: (u64, u64, i64, i64),
    /// Filled in at the first use.
    place: Option<Arc<PathBytes>>,
    /// Number of tasks whose words named it.
    named: u32,
}

/// Bytes of a file, or of a folder's files.
#[derive(Debug, Default)]
struct PathBytes {
    bytes: u64,
    per_host: BTreeMap<String, u64>,
    cut: bool,
}

impl PathBytes {
    fn of<'l>(layouts: impl IntoIterator<Item = &'l FileLayout>, cut: bool) -> PathBytes {
        let mut place = PathBytes { cut, ..PathBytes::default() };
        for layout in layouts {
            place.bytes += layout.extents.iter().map(|e| e.length).sum::<u64>();
            for (host, bytes) in layout.bytes_per_host() {
                *place.per_host.entry(host).or_default() += bytes;
            }
        }
        place
    }
}

/// Finds inputs. A file is located once as long as its state stays the same, a folder only once. May be shared
/// between threads.
pub struct Finder {
    locator: Locator,
    /// Number of hosts, and the most bytes that a host caches for the next task. After as many tasks as hosts have
    /// named a path, it counts as cached: each host fetches a reference once.
    hosts: u32,
    keeps: u64,
    known: Mutex<HashMap<PathBuf, PathFacts>>,
    /// Layout of the file that is being cut into blocks.
    cut: Mutex<Option<Arc<FileLayout>>>,
}

/// Reads the mount table at the first query.
impl Default for Finder {
    fn default() -> Finder {
        Finder::over(Locator::default())
    }
}

impl Finder {
    /// Reads the mount table.
    ///
    /// # Errors
    /// [`LocateError::Mounts`].
    pub fn new() -> Result<Finder, LocateError> {
        Locator::new().map(Finder::over)
    }

    /// Makes a finder that reads the mount table when a path needs it, with the site's own commands.
    pub fn with_own(own: OwnLocators) -> Finder {
        Finder::over(Locator::default().with_own(own))
    }

    /// Makes a finder over this locator.
    pub fn over(locator: Locator) -> Finder {
        Finder { locator, hosts: u32::MAX, keeps: 0, known: Mutex::default(), cut: Mutex::default() }
    }

    /// Sets the number of hosts, each of which caches read files within `keeps` bytes of memory.
    pub fn on_hosts(self, hosts: u32, keeps: u64) -> Finder {
        self.known().values_mut().for_each(|one| one.named = 0);
        Finder { hosts: hosts.max(1), keeps, ..self }
    }

    /// Sets the time limit for a NameNode of HDFS.
    pub fn patient(self, limit: Duration) -> Finder {
        Finder { locator: self.locator.patient(limit), ..self }
    }

    /// Returns the locator in use.
    pub fn locator(&self) -> &Locator {
        &self.locator
    }

    /// Returns the inputs among the named paths. Missing paths are left out.
    pub fn inputs(&self, named: &CandidatePaths) -> CommandInputs {
        let mut inputs = CommandInputs::default();
        for path in &named.declared {
            let Some(found) = self.look(path) else { continue };
            match named.block.as_ref().filter(|block| block.path == *path) {
                Some(block) => self.add_block(block, &found.0, &mut inputs),
                None => self.add(path, found, false, TREE_LIMIT, &mut inputs),
            }
        }
        self.add_remote(&named.remote, &mut inputs);
        let words: Vec<_> =
            named.words.iter().chain(&named.patterns).filter_map(|path| Some((path, self.look(path)?))).collect();
        let is_file = |(_, (volume, folder)): &(_, (Volume, bool))| !folder && volume.kind.is_comparable();
        let beside_files = inputs.remote || words.iter().any(is_file);
        for (path, found) in words {
            match found.1 && beside_files {
                true => inputs.volume(&found.0),
                false => self.add(path, found, true, TREE_LIMIT, &mut inputs),
            }
        }
        inputs
    }

    /// Returns the layouts of the named files on shared volumes, declared ones first, in the order of the names.
    pub fn layouts(&self, named: &CandidatePaths) -> Vec<FileLayout> {
        let is_shared_file =
            |path: &&PathBuf| self.look(path).is_some_and(|(v, folder)| !folder && v.kind.is_comparable());
        named.all().filter(is_shared_file).map(|path| self.locator.locate(path)).collect()
    }

    /// Returns the files of a folder as inputs, of which only the first `limit` are counted.
    pub fn folder(&self, dir: &Path, limit: usize) -> CommandInputs {
        let mut inputs = CommandInputs::default();
        if let Some(found) = self.look(dir) {
            self.add(dir, found, false, limit, &mut inputs);
        }
        inputs
    }

    fn known(&self) -> MutexGuard<'_, HashMap<PathBuf, PathFacts>> {
        lock(&self.known)
    }

    /// Returns the volume of a path, and whether it is a folder; `None` if it does not exist.
    fn look(&self, path: &Path) -> Option<(Volume, bool)> {
        let (volume, _, meta) = self.locator.resolve(path).ok()?;
        let (folder, mark) = (meta.is_dir(), mark(&meta));
        let known = self.known();
        if known.get(path).is_none_or(|old| old.folder != folder || !(folder || old.mark == mark)) {
            remember(known, path, PathFacts { folder, mark, place: None, named: 0 });
        }
        Some((volume, folder))
    }

    fn add(
        &self,
        path: &Path,
        (volume, folder): (Volume, bool),
        by_word: bool,
        limit: usize,
        inputs: &mut CommandInputs,
    ) {
        inputs.volume(&volume);
        // The place of a folder on this host's own disks does not matter to other hosts.
        if folder && !volume.kind.is_comparable() {
            return;
        }
        let (kept, named) = self.known().get_mut(path).map_or((None, 1), |one| {
            one.named += u32::from(by_word);
            (one.place.clone(), one.named)
        });
        let place = kept.unwrap_or_else(|| self.place(path, folder, limit));
        inputs.located |= place.bytes > 0;
        inputs.cut.extend(place.cut.then(|| path.to_path_buf()));
        let counts = !by_word || named <= self.hosts || place.bytes > self.keeps;
        inputs.read_before |= !counts && place.bytes > 0;
        if !volume.kind.is_comparable() {
            // An overlay's bytes may lie on a server.
            let here = place.per_host.get(&crate::local::host()).copied();
            return inputs.own.push((path.to_path_buf(), here.filter(|_| counts).unwrap_or_default()));
        }
        if counts {
            inputs.add(&place);
        }
    }

    fn add_block(&self, block: &Block, volume: &Volume, inputs: &mut CommandInputs) {
        inputs.volume(volume);
        if !volume.kind.is_comparable() {
            return inputs.own.push((block.path.clone(), block.length));
        }
        inputs.add(&PathBytes::of([&within(&self.layout(&block.path), block)], false));
    }

    /// Returns the layout of the file whose blocks are placed one after the other. It is queried once.
    fn layout(&self, path: &Path) -> Arc<FileLayout> {
        let mut last = lock(&self.cut);
        match last.as_ref().filter(|layout| layout.path.as_path() == path) {
            Some(layout) => layout.clone(),
            None => last.insert(Arc::new(self.locator.locate(path))).clone(),
        }
    }

    fn place(&self, path: &Path, folder: bool, limit: usize) -> Arc<PathBytes> {
        let place = Arc::new(match folder {
            true => {
                let tree = self.locator.locate_tree(path, limit);
                PathBytes::of(&tree.files, tree.truncated)
            }
            false => PathBytes::of([&self.locator.locate(path)], false),
        });
        if let Some(one) = self.known().get_mut(path) {
            one.place = Some(place.clone());
        }
        place
    }
}

fn remember(mut known: MutexGuard<'_, HashMap<PathBuf, PathFacts>>, path: &Path, what: PathFacts) {
    if known.len() >= MOST_KNOWN {
        known.retain(|_, one| one.folder || one.named > 1);
    }
    if known.len() >= MOST_KNOWN {
        known.clear();
    }
    known.insert(path.to_path_buf(), what);
}

/// Returns the part of a layout that holds a block.
fn within(layout: &FileLayout, block: &Block) -> FileLayout {
    let end = block.offset + block.length;
    let from = layout.extents.partition_point(|e| e.offset + e.length <= block.offset);
    let held = layout.extents[from..].iter().take_while(|e| e.offset < end).map(|e| {
        let start = e.offset.max(block.offset);
        Extent { offset: start, length: end.min(e.offset + e.length) - start, replicas: e.replicas.clone() }
    });
    FileLayout {
        path: layout.path.clone(),
        size: block.length,
        volume: layout.volume.clone(),
        extents: held.collect(),
        reason: None,
        missing: false,
        server_path: None,
    }
}

fn mark(meta: &Metadata) -> (u64, u64, i64, i64) {
    (meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec())
}

#[cfg(test)]
mod tests;
