//! Finds the file system of a path and queries it: for one file, many files, or a folder.

use crate::hdfs::{self, Hdfs};
use crate::walk::{WalkEntry, walk};
use crate::{
    FileSystem, LocateError, LocateRequest, OwnLocators, Spread, TreeLayouts, Volume, blank, file_system, volume,
};
use homing_model::{FileLayout, RawText};
use homing_mounts::{self as mounts, FileSystemKind, MountLine};
use homing_os::threads::lock;
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// The number of files in one query of a thread, because MooseFS answers many questions at once. With more, the
/// kernel would forget their attributes meanwhile.
const PIECE: usize = 32;

/// The number of threads that query one folder's files. More do not help: a FUSE client is limited by its own
/// process.
const THREADS: usize = 8;

/// The number of threads that query a MooseFS master while another walks, and the files in one query.
const ASKERS: usize = 2;
const BEHIND: usize = 128;

/// The file system that knows a path, and the known facts. If there is none, a layout with the reason.
type PathQuery = Result<(Arc<dyn FileSystem>, LocateRequest), Box<FileLayout>>;

/// The places where a file system is mounted here, and its interface. The key is its device number.
#[derive(Clone)]
struct MountedFileSystem {
    volumes: Arc<[Volume]>,
    fs: Arc<dyn FileSystem>,
}

/// Finds the volume of a path and queries it. May be shared between threads. The default one reads the mount table at
/// the first query.
#[derive(Default)]
pub struct Locator {
    mounts: Mutex<Vec<MountLine>>,
    known: Mutex<HashMap<u64, MountedFileSystem>>,
    /// The number of stacked file systems above those that it queries.
    depth: u8,
    /// Commands of the site.
    own: OwnLocators,
    hdfs: Hdfs,
}

impl Locator {
    /// Reads the mount table. Other definitions are read when a path needs them.
    pub fn new() -> Result<Locator, LocateError> {
        Ok(Locator { mounts: Mutex::new(mounts::read().map_err(LocateError::Mounts)?), ..Locator::default() })
    }

    /// Uses these commands for the types of file systems that they name.
    pub fn with_own(self, own: OwnLocators) -> Locator {
        Locator { own, ..self }
    }

    /// Sets the time limit for a NameNode of HDFS.
    pub fn patient(self, limit: Duration) -> Locator {
        Locator { hdfs: self.hdfs.patient(limit), ..self }
    }

    pub(crate) fn hdfs(&self) -> &Hdfs {
        &self.hdfs
    }

    /// Makes a locator for files that `depth` file systems show.
    pub(crate) fn at_depth(depth: u8) -> Locator {
        Locator { depth, ..Locator::default() }
    }

    pub(crate) fn depth(&self) -> u8 {
        self.depth
    }

    /// Makes a locator that knows one file system alone, by its device number.
    #[cfg(test)]
    pub(crate) fn with(dev: u64, volume: Volume, fs: Arc<dyn FileSystem>) -> Locator {
        let known = MountedFileSystem { volumes: [volume].into(), fs };
        Locator { known: Mutex::new(HashMap::from([(dev, known)])), ..Locator::default() }
    }

    /// Returns the volume that holds an existing path.
    pub fn volume_of(&self, path: &Path) -> Result<Volume, LocateError> {
        self.resolve(path).map(|(volume, _, _)| volume)
    }

    /// Returns the server of a path on NFS, which may be a directory, and the likely path on the server. See the note
    /// on version 4 in `nfs`.
    pub fn server_of(&self, path: &Path) -> Option<(String, std::path::PathBuf)> {
        let lines = self.lines(path, path.metadata().ok()?.dev(), true).ok()?;
        let nfs = lines.first().is_some_and(|line| FileSystemKind::of(&line.mount) == FileSystemKind::Nfs);
        nfs.then(|| crate::nfs::Nfs::new(&lines).server_of(path)).flatten()
    }

    /// Returns the bricks over which a folder's files are spread; `None` if no brick has whole files.
    pub fn spread(&self, folder: &Path) -> Option<Spread> {
        self.resolve(folder).ok()?.1.spread(folder)
    }

    pub(crate) fn resolve(&self, path: &Path) -> Result<(Volume, Arc<dyn FileSystem>, Metadata), LocateError> {
        let shown = || RawText::from(path).display();
        let meta = path.metadata().map_err(|error| LocateError::Path { path: shown(), error })?;
        let mut known = lock(&self.known);
        let here = match known.get(&meta.dev()) {
            Some(here) if here.volumes.iter().any(|v| goes_through(v, path)) => here.clone(),
            // The file system is new, or was mounted at one more place meanwhile, as automount does.
            stale => {
                let lines = self.lines(path, meta.dev(), stale.is_some())?;
                let first = lines.first().ok_or_else(|| LocateError::NoMount(shown()))?;
                let volumes = lines.iter().map(|line| volume(line, &self.own)).collect();
                let here = MountedFileSystem { volumes, fs: file_system(first, &lines, self.depth, &self.own) };
                known.insert(meta.dev(), here.clone());
                here
            }
        };
        drop(known);
        Ok((shows(&here.volumes, path).clone(), here.fs, meta))
    }

    /// Returns the lines of one file system, by the device number, because another mount may cover the longest path.
    /// A file system with several numbers (btrfs) is found by the path.
    fn lines(&self, path: &Path, dev: u64, stale: bool) -> Result<Vec<MountLine>, LocateError> {
        let mut lines = lock(&self.mounts);
        let same = |lines: &[MountLine]| -> Vec<MountLine> { lines.iter().filter(|l| l.dev == dev).cloned().collect() };
        let found = same(&lines);
        if !found.is_empty() && !stale {
            return Ok(found);
        }
        *lines = mounts::read().map_err(LocateError::Mounts)?;
        let found = same(&lines);
        if !found.is_empty() {
            return Ok(found);
        }
        let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        Ok(mounts::holding(&lines, &real).cloned().into_iter().collect())
    }

    /// Locates one file. Never fails: `reason` explains an unknown place.
    pub fn locate(&self, path: &Path) -> FileLayout {
        match self.prepare_request(path) {
            Err(layout) => *layout,
            Ok((fs, mut asked)) => {
                fs.fill(&mut asked);
                asked.layout
            }
        }
    }

    /// Locates many files, in their order.
    pub fn locate_all(&self, paths: &[PathBuf]) -> Vec<FileLayout> {
        many(paths.iter().collect(), true, |path: &PathBuf| self.prepare_request(path))
    }

    fn prepare_request(&self, path: &Path) -> PathQuery {
        if hdfs::is_named(path) {
            let refused = |why| FileLayout { reason: Some(why), ..blank(path) };
            return Err(Box::new(self.hdfs.locate(path, self.hdfs.until()).unwrap_or_else(refused)));
        }
        let refuse = |volume, reason| Box::new(FileLayout { volume, reason: Some(reason), ..blank(path) });
        // The path is left out, because the caller names the file.
        let unknown = |error| match error {
            LocateError::Path { error, .. } => {
                let missing = error.kind() == std::io::ErrorKind::NotFound;
                Box::new(FileLayout { missing, ..*refuse(String::new(), error.to_string()) })
            }
            other => refuse(String::new(), other.to_string()),
        };
        let (volume, fs, meta) = self.resolve(path).map_err(unknown)?;
        if !meta.is_file() {
            return Err(refuse(volume.name, "it is no regular file".into()));
        }
        let layout = FileLayout { volume: volume.name, size: meta.len(), ..blank(path) };
        Ok((fs, LocateRequest { path: path.to_path_buf(), meta, layout }))
    }

    /// Locates the files below a directory, at most `limit`, in the order of the walk. Symbolic links below it are
    /// not followed.
    ///
    /// Several threads query a network file system, folder by folder. Right after its listing the kernel still knows
    /// each entry, so a file costs one query to the servers and not two.
    pub fn locate_tree(&self, path: &Path, limit: usize) -> TreeLayouts {
        let kind = self.volume_of(path).map(|v| v.kind).ok();
        if kind == Some(FileSystemKind::Moose) {
            return self.tree_behind_the_walk(path, limit);
        }
        let network = kind.is_some_and(|k| k.is_network());
        let mut files = Vec::new();
        let truncated = walk(path, limit, &mut |folder| {
            files.append(&mut many(folder, network, |found| self.found(found)));
        });
        TreeLayouts { files, truncated }
    }

    /// As [`Self::locate_tree`], for MooseFS: this thread lists and examines each file, while others query the master
    /// for its chunks.
    ///
    /// A MooseFS mount answers a `stat` from the folder's listing, eight times as fast as from its master. It does so
    /// only until the folder is closed, and only for the thread that listed it.
    fn tree_behind_the_walk(&self, path: &Path, limit: usize) -> TreeLayouts {
        let (send, receive) = mpsc::channel::<Vec<PathQuery>>();
        let receive = Mutex::new((0, receive));
        let next = || {
            let mut turn = lock(&receive);
            turn.0 += 1;
            Some((turn.0, turn.1.recv().ok()?))
        };
        let work = || std::iter::from_fn(next).map(|(at, some)| (at, piece(some.into_iter()))).collect::<Vec<_>>();
        std::thread::scope(|scope| {
            let begin = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
            let running: Vec<_> = (0..ASKERS).map_while(begin).collect();
            let truncated = walk(path, limit, &mut |folder| {
                let mut folder = folder.into_iter().map(|found| self.found(found)).peekable();
                while folder.peek().is_some() {
                    // Fails only if the other threads panicked, which joining them shows.
                    let _ = send.send(folder.by_ref().take(BEHIND).collect());
                }
            });
            drop(send);
            // The remaining files, or all of them if no thread could be started.
            let rest = work();
            let ended = running.into_iter().map(|thread| thread.join());
            let theirs = ended.flat_map(|mine| mine.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            TreeLayouts { files: in_order(theirs.chain(rest).collect()), truncated }
        })
    }

    fn found(&self, found: WalkEntry) -> PathQuery {
        match found {
            WalkEntry::File(path) => self.prepare_request(&path),
            WalkEntry::Unreadable(path, error) => Err(Box::new(self.unreadable(&path, &error))),
        }
    }

    /// Returns the layout of a directory that cannot be listed, with the reason.
    pub fn unreadable(&self, dir: &Path, error: &std::io::Error) -> FileLayout {
        let volume = self.volume_of(dir).map(|v| v.name).unwrap_or_default();
        FileLayout { volume, reason: Some(format!("cannot list this directory: {error}")), ..blank(dir) }
    }
}

/// Locates many things, in their order, by several threads if that is faster.
///
/// The threads stay close together, because a listing stays in the kernel's cache for one second.
fn many<T: Send>(things: Vec<T>, network: bool, ask: impl Fn(T) -> PathQuery + Sync) -> Vec<FileLayout> {
    let threads = if network { things.len().div_ceil(PIECE).min(THREADS) } else { 1 };
    let rest = Mutex::new((0, things.into_iter()));
    let next = || {
        let mut rest = lock(&rest);
        rest.0 += 1;
        let some: Vec<T> = rest.1.by_ref().take(PIECE).collect();
        (!some.is_empty()).then_some((rest.0, some))
    };
    let work =
        || std::iter::from_fn(next).map(|(at, some)| (at, piece(some.into_iter().map(&ask)))).collect::<Vec<_>>();
    if threads <= 1 {
        return in_order(work());
    }
    in_order(homing_os::threads::each(&vec![(); threads], |()| work()).into_iter().flatten().collect())
}

/// Pieces with their places in the order.
type Pieces = Vec<(usize, Vec<FileLayout>)>;

fn in_order(mut pieces: Pieces) -> Vec<FileLayout> {
    pieces.sort_unstable_by_key(|(at, _)| *at);
    pieces.into_iter().flat_map(|(_, layouts)| layouts).collect()
}

/// Queries neighbours in one file system together.
fn piece(questions: impl Iterator<Item = PathQuery>) -> Vec<FileLayout> {
    let mut done: Vec<FileLayout> = Vec::new();
    let mut open: Option<(Arc<dyn FileSystem>, Vec<LocateRequest>)> = None;
    let close = |open: Option<(Arc<dyn FileSystem>, Vec<LocateRequest>)>, done: &mut Vec<FileLayout>| {
        let Some((fs, mut files)) = open else { return };
        fs.fill_all(&mut files);
        done.extend(files.into_iter().map(|file| file.layout));
    };
    for question in questions {
        match (question, &mut open) {
            (Ok((fs, asked)), Some((same, files))) if Arc::ptr_eq(&fs, same) => files.push(asked),
            (Ok((fs, asked)), _) => {
                close(open.take(), &mut done);
                open = Some((fs, vec![asked]));
            }
            (Err(layout), _) => {
                close(open.take(), &mut done);
                done.push(*layout);
            }
        }
    }
    close(open, &mut done);
    done
}

/// Whether a path is below a volume's mount point; cheap for paths without symbolic links.
fn goes_through(volume: &Volume, path: &Path) -> bool {
    let point = volume.mount.point.as_path();
    path.starts_with(point)
        || std::path::absolute(path).is_ok_and(|absolute| absolute.starts_with(point))
        || path.canonicalize().is_ok_and(|real| real.starts_with(point))
}

/// Returns the mount that a path goes through, if one file system has several mounts.
fn shows<'v>(volumes: &'v [Volume], path: &Path) -> &'v Volume {
    if let [only] = volumes {
        return only;
    }
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let fits = volumes.iter().filter(|v| real.starts_with(v.mount.point.as_path()));
    fits.max_by_key(|v| v.mount.point.0.len()).unwrap_or(&volumes[0])
}
