//! Finds the file system of a path, and asks it: one file, many, or a folder.

use crate::hdfs::{self, Hdfs};
use crate::walk::{Found, walk};
use crate::{Asked, FileSystem, LocateError, OwnLocators, Spread, Tree, Volume, blank, file_system, volume};
use homing_model::{FileLayout, RawText};
use homing_mounts::{self as mounts, Kind, MountLine};
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

/// Files that one thread asks for at once: MooseFS answers many questions in one
/// go. Not so many that the kernel has forgotten them meanwhile.
const PIECE: usize = 32;

/// Threads that ask for one folder's files. More gain nothing: a FUSE client
/// is bound by its own process.
const THREADS: usize = 8;

/// Threads that ask a MooseFS master while another walks, and files that they ask for at once.
const ASKERS: usize = 2;
const BEHIND: usize = 128;

/// Who is to be asked about a path, and what is known before; a layout with
/// its reason when nobody can be.
type Question = Result<(Arc<dyn FileSystem>, Asked), Box<FileLayout>>;

/// A file system by its device number: where it is mounted here, and who tells its places.
#[derive(Clone)]
struct Known {
    volumes: Arc<[Volume]>,
    fs: Arc<dyn FileSystem>,
}

/// Finds the volume of a path and asks it. May be shared between threads. The default one reads the mount table
/// when it is asked first.
#[derive(Default)]
pub struct Locator {
    mounts: Mutex<Vec<MountLine>>,
    known: Mutex<HashMap<u64, Known>>,
    /// How many file systems show the files of those that it is asked for.
    depth: u8,
    /// Commands of the site's own.
    own: OwnLocators,
    hdfs: Hdfs,
}

impl Locator {
    /// Reads the mount table. Other definitions are read when a path needs them.
    pub fn new() -> Result<Locator, LocateError> {
        Ok(Locator { mounts: Mutex::new(mounts::read().map_err(LocateError::Mounts)?), ..Locator::default() })
    }

    /// Asks these commands about the types of file systems that they are for.
    pub fn with_own(self, own: OwnLocators) -> Locator {
        Locator { own, ..self }
    }

    /// Waits no longer for a NameNode of HDFS than so long.
    pub fn patient(self, limit: Duration) -> Locator {
        Locator { hdfs: self.hdfs.patient(limit), ..self }
    }

    pub(crate) fn hdfs(&self) -> &Hdfs {
        &self.hdfs
    }

    /// For what so many file systems show.
    pub(crate) fn at_depth(depth: u8) -> Locator {
        Locator { depth, ..Locator::default() }
    }

    pub(crate) fn depth(&self) -> u8 {
        self.depth
    }

    /// One file system alone, by its device number.
    #[cfg(test)]
    pub(crate) fn with(dev: u64, volume: Volume, fs: Arc<dyn FileSystem>) -> Locator {
        let known = Known { volumes: [volume].into(), fs };
        Locator { known: Mutex::new(HashMap::from([(dev, known)])), ..Locator::default() }
    }

    /// The volume that holds an existing path.
    pub fn volume_of(&self, path: &Path) -> Result<Volume, LocateError> {
        self.resolve(path).map(|(volume, _, _)| volume)
    }

    /// The server of a path on NFS, which may be a directory, and what the
    /// server is likely to call it; see the note on version 4 in `nfs`.
    pub fn server_of(&self, path: &Path) -> Option<(String, std::path::PathBuf)> {
        let lines = self.lines(path, path.metadata().ok()?.dev(), true).ok()?;
        let nfs = lines.first().is_some_and(|line| Kind::of(&line.mount) == Kind::Nfs);
        nfs.then(|| crate::nfs::Nfs::new(&lines).server_of(path)).flatten()
    }

    /// Over which bricks a folder's files are spread; `None` where no brick has whole files.
    pub fn spread(&self, folder: &Path) -> Option<Spread> {
        self.resolve(folder).ok()?.1.spread(folder)
    }

    pub(crate) fn resolve(&self, path: &Path) -> Result<(Volume, Arc<dyn FileSystem>, Metadata), LocateError> {
        let shown = || RawText::from(path).display();
        let meta = path.metadata().map_err(|error| LocateError::Path { path: shown(), error })?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let here = match known.get(&meta.dev()) {
            Some(here) if here.volumes.iter().any(|v| goes_through(v, path)) => here.clone(),
            // Not met before, or mounted at one more place meanwhile, as automount does.
            stale => {
                let lines = self.lines(path, meta.dev(), stale.is_some())?;
                let first = lines.first().ok_or_else(|| LocateError::NoMount(shown()))?;
                let volumes = lines.iter().map(|line| volume(line, &self.own)).collect();
                let here = Known { volumes, fs: file_system(first, &lines, self.depth, &self.own) };
                known.insert(meta.dev(), here.clone());
                here
            }
        };
        drop(known);
        Ok((shows(&here.volumes, path).clone(), here.fs, meta))
    }

    /// The lines of one file system. The device number decides, for the
    /// longest path may be mounted over; a file system with several numbers
    /// (btrfs) falls back to the path.
    fn lines(&self, path: &Path, dev: u64, stale: bool) -> Result<Vec<MountLine>, LocateError> {
        let mut lines = self.mounts.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Where one file lies. Never fails: `reason` says what could not be told.
    pub fn locate(&self, path: &Path) -> FileLayout {
        match self.ask(path) {
            Err(layout) => *layout,
            Ok((fs, mut asked)) => {
                fs.fill(&mut asked);
                asked.layout
            }
        }
    }

    /// Where many files lie, in their order.
    pub fn locate_all(&self, paths: &[PathBuf]) -> Vec<FileLayout> {
        many(paths.iter().collect(), true, |path: &PathBuf| self.ask(path))
    }

    fn ask(&self, path: &Path) -> Question {
        if hdfs::is_named(path) {
            let refused = |why| FileLayout { reason: Some(why), ..blank(path) };
            return Err(Box::new(self.hdfs.locate(path, self.hdfs.until()).unwrap_or_else(refused)));
        }
        let refuse = |volume, reason| Box::new(FileLayout { volume, reason: Some(reason), ..blank(path) });
        // Whoever tells a reason names the file.
        let said = |error| match error {
            LocateError::Path { error, .. } => error.to_string(),
            other => other.to_string(),
        };
        let (volume, fs, meta) = self.resolve(path).map_err(|error| refuse(String::new(), said(error)))?;
        if !meta.is_file() {
            return Err(refuse(volume.name, "it is no regular file".into()));
        }
        let layout = FileLayout { volume: volume.name, size: meta.len(), ..blank(path) };
        Ok((fs, Asked { path: path.to_path_buf(), meta, layout }))
    }

    /// A directory with what lies under it, at most `limit` files, in the
    /// order of the walk. Symbolic links below it are not followed.
    ///
    /// Several threads ask a network file system, folder by folder: right
    /// after its listing the kernel still knows each entry, so that a file
    /// costs one question to the servers and not two.
    pub fn locate_tree(&self, path: &Path, limit: usize) -> Tree {
        let kind = self.volume_of(path).map(|v| v.kind).ok();
        if kind == Some(Kind::Moose) {
            return self.tree_behind_the_walk(path, limit);
        }
        let network = kind.is_some_and(|k| k.is_network());
        let mut files = Vec::new();
        let truncated = walk(path, limit, &mut |folder| {
            files.append(&mut many(folder, network, |found| self.found(found)));
        });
        Tree { files, truncated }
    }

    /// As [`Self::locate_tree`], for MooseFS: this thread lists and looks at each file, others ask the master
    /// for its chunks meanwhile.
    ///
    /// A MooseFS mount answers a `stat` from the folder's listing, eight times as fast
    /// as by its master, but only until the folder is closed and only to the
    /// thread that listed it.
    fn tree_behind_the_walk(&self, path: &Path, limit: usize) -> Tree {
        let (send, receive) = mpsc::channel::<Vec<Question>>();
        let receive = Mutex::new((0, receive));
        let next = || {
            let mut turn = receive.lock().unwrap_or_else(PoisonError::into_inner);
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
                    // Fails only when the others panicked, which joining them tells.
                    let _ = send.send(folder.by_ref().take(BEHIND).collect());
                }
            });
            drop(send);
            // What they have not come to, all of it where no thread could be begun.
            let rest = work();
            let ended = running.into_iter().map(|thread| thread.join());
            let theirs = ended.flat_map(|mine| mine.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            Tree { files: in_order(theirs.chain(rest).collect()), truncated }
        })
    }

    fn found(&self, found: Found) -> Question {
        match found {
            Found::File(path) => self.ask(&path),
            Found::Unreadable(path, error) => Err(Box::new(self.unreadable(&path, &error))),
        }
    }

    /// The layout of a directory that cannot be listed: its reason.
    pub fn unreadable(&self, dir: &Path, error: &std::io::Error) -> FileLayout {
        let volume = self.volume_of(dir).map(|v| v.name).unwrap_or_default();
        FileLayout { volume, reason: Some(format!("cannot list this directory: {error}")), ..blank(dir) }
    }
}

/// Where many things lie, in their order, by several threads where that gains.
///
/// They stay close together: what a listing left in the kernel's cache lasts a
/// second.
fn many<T: Send>(things: Vec<T>, network: bool, ask: impl Fn(T) -> Question + Sync) -> Vec<FileLayout> {
    let threads = if network { things.len().div_ceil(PIECE).min(THREADS) } else { 1 };
    let rest = Mutex::new((0, things.into_iter()));
    let next = || {
        let mut rest = rest.lock().unwrap_or_else(PoisonError::into_inner);
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

/// Neighbours in one file system are asked for together.
fn piece(questions: impl Iterator<Item = Question>) -> Vec<FileLayout> {
    let mut done: Vec<FileLayout> = Vec::new();
    let mut open: Option<(Arc<dyn FileSystem>, Vec<Asked>)> = None;
    let close = |open: Option<(Arc<dyn FileSystem>, Vec<Asked>)>, done: &mut Vec<FileLayout>| {
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

/// Whether a path lies below a volume's mount point; cheap for paths without symbolic links.
fn goes_through(volume: &Volume, path: &Path) -> bool {
    let point = volume.mount.point.as_path();
    path.starts_with(point)
        || std::path::absolute(path).is_ok_and(|absolute| absolute.starts_with(point))
        || path.canonicalize().is_ok_and(|real| real.starts_with(point))
}

/// Of several mounts of one file system, the one through which a path goes.
fn shows<'v>(volumes: &'v [Volume], path: &Path) -> &'v Volume {
    if let [only] = volumes {
        return only;
    }
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let fits = volumes.iter().filter(|v| real.starts_with(v.mount.point.as_path()));
    fits.max_by_key(|v| v.mount.point.0.len()).unwrap_or(&volumes[0])
}
