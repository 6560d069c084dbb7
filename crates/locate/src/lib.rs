//! Where bytes lie: which hosts hold a file, as its own file system tells it.
//!
//! One file a file system, all behind [`FileSystem`]; [`contract`] is the suite
//! that each must pass. What cannot be told is a reason, never a guess.

pub mod contract;
mod gluster;
mod local;
mod mounts;
mod nfs;
mod volfile;
mod walk;

use homing_model::{FileLayout, Mount, RawText};
use mounts::MountLine;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use walk::{Found, walk};

/// Threads that ask for one folder's files. More gain nothing: a GlusterFS
/// client is bound by its own process.
const THREADS: usize = 8;

/// Fewer files are not worth a thread's start.
const WORTH_A_THREAD: usize = 8;

/// Why nothing at all can be located.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// The mount table cannot be read.
    #[error("cannot read the mount table /proc/self/mountinfo: {0}")]
    Mounts(std::io::Error),
    /// The path cannot be looked at.
    #[error("cannot look at {path}: {error}")]
    Path {
        /// As asked for, control characters escaped.
        path: String,
        /// What the system answered.
        error: std::io::Error,
    },
    /// No line of the mount table fits.
    #[error("{0} lies on no file system of the mount table")]
    NoMount(String),
}

/// The kind of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// GlusterFS, mounted by FUSE.
    Gluster,
    /// NFS of any version.
    Nfs,
    /// Disks and memory of this host.
    Local,
    /// A network file system whose layout homing cannot read; its type.
    Other(String),
}

impl Kind {
    fn of(fstype: &str) -> Kind {
        match fstype {
            "fuse.glusterfs" => Kind::Gluster,
            "nfs" | "nfs4" => Kind::Nfs,
            "lustre" | "ceph" | "beegfs" | "gpfs" | "orangefs" | "panfs" | "cifs" | "smb3" | "9p" | "virtiofs"
            | "afs" | "autofs" | "ocfs2" | "gfs2" => Kind::Other(fstype.into()),
            // These FUSE file systems sit on local disks.
            "fuseblk" | "fuse.fuse-overlayfs" | "fuse.lxcfs" => Kind::Local,
            fuse if fuse.starts_with("fuse") => Kind::Other(fuse.into()),
            _ => Kind::Local,
        }
    }

    /// True when other hosts may see the same files.
    pub fn is_network(&self) -> bool {
        *self != Kind::Local
    }
}

/// A mounted volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// E.g. `gluster:n1:/data`, `nfs:nas:/export`, `local:/dev/sda1`.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Its line of the mount table.
    pub mount: Mount,
}

/// What one file system has to tell. An implementation
/// - names only hosts that the volume's own definition names, whatever a file is called;
/// - gives extents in order of offset, without overlap, within the file's size;
/// - gives no extents and no reason for an empty file;
/// - gives a reason for every byte that it leaves out, and never a guess;
/// - works for an ordinary user, or says what is missing;
/// - changes nothing.
pub trait FileSystem: Send + Sync {
    /// Adds extents, reason and server path to a layout that has path, size and volume.
    fn fill(&self, path: &Path, layout: &mut FileLayout);
}

/// Files below a directory.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Their layouts, in the order of the walk.
    pub files: Vec<FileLayout>,
    /// There were more than the limit.
    pub truncated: bool,
}

/// A file system by its device number: where it is mounted here, and who tells its places.
#[derive(Clone)]
struct Known {
    volumes: Arc<[Volume]>,
    fs: Arc<dyn FileSystem>,
}

/// Finds the volume of a path and asks it. May be shared between threads.
pub struct Locator {
    mounts: Mutex<Vec<MountLine>>,
    known: Mutex<HashMap<u64, Known>>,
}

/// The network file systems of the mount table, for telling other hosts what
/// is mounted here. What automount will mount is not among them yet.
pub fn network_mounts() -> Result<Vec<Mount>, LocateError> {
    let network = |line: &MountLine| line.mount.fstype != "autofs" && Kind::of(&line.mount.fstype).is_network();
    Ok(mounts::read()?.into_iter().filter(network).map(|line| line.mount).collect())
}

impl Locator {
    /// Reads the mount table. Other definitions are read when a path needs them.
    pub fn new() -> Result<Locator, LocateError> {
        Ok(Locator { mounts: Mutex::new(mounts::read()?), known: Mutex::default() })
    }

    /// The volume that holds an existing path.
    pub fn volume_of(&self, path: &Path) -> Result<Volume, LocateError> {
        self.resolve(path).map(|(volume, _, _)| volume)
    }

    fn resolve(&self, path: &Path) -> Result<(Volume, Arc<dyn FileSystem>, std::fs::Metadata), LocateError> {
        let shown = || RawText::from(path).display();
        let meta = path.metadata().map_err(|error| LocateError::Path { path: shown(), error })?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let here = match known.get(&meta.dev()) {
            Some(here) => here.clone(),
            None => {
                let lines = self.lines(path, meta.dev())?;
                let first = lines.first().ok_or_else(|| LocateError::NoMount(shown()))?;
                let volumes = lines.iter().map(volume).collect();
                let here = Known { volumes, fs: file_system(first, &lines) };
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
    fn lines(&self, path: &Path, dev: u64) -> Result<Vec<MountLine>, LocateError> {
        let mut lines = self.mounts.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |lines: &[MountLine]| -> Vec<MountLine> { lines.iter().filter(|l| l.dev == dev).cloned().collect() };
        let found = same(&lines);
        if !found.is_empty() {
            return Ok(found);
        }
        *lines = mounts::read()?;
        let found = same(&lines);
        if !found.is_empty() {
            return Ok(found);
        }
        let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let fits = lines.iter().filter(|l| real.starts_with(l.mount.point.as_path()));
        Ok(fits.max_by_key(|l| l.mount.point.0.len()).cloned().into_iter().collect())
    }

    /// Where one file lies. Never fails: `reason` says what could not be told.
    pub fn locate(&self, path: &Path) -> FileLayout {
        let mut layout = blank(path);
        match self.resolve(path) {
            Err(error) => layout.reason = Some(error.to_string()),
            Ok((volume, fs, meta)) => {
                layout.volume = volume.name;
                if meta.is_file() {
                    layout.size = meta.len();
                    fs.fill(path, &mut layout);
                } else {
                    layout.reason = Some("it is no regular file".into());
                }
            }
        }
        layout
    }

    /// A directory with what lies under it, at most `limit` files, in the
    /// order of the walk. Symbolic links below it are not followed.
    ///
    /// Several threads ask a network file system, folder by folder: right
    /// after its listing the kernel still knows each entry, so that a file
    /// costs one question to the servers and not two.
    pub fn locate_tree(&self, path: &Path, limit: usize) -> Tree {
        let network = self.volume_of(path).is_ok_and(|v| v.kind.is_network());
        let mut files = Vec::new();
        let truncated = walk(path, limit, &mut |folder| files.append(&mut self.layouts(&folder, network)));
        Tree { files, truncated }
    }

    fn layouts(&self, folder: &[Found], network: bool) -> Vec<FileLayout> {
        let layout = |found: &Found| match found {
            Found::File(path) => self.locate(path),
            Found::Unreadable(path, error) => self.unreadable(path, error),
        };
        let threads = if network { (folder.len() / WORTH_A_THREAD).clamp(1, THREADS) } else { 1 };
        if threads == 1 {
            return folder.iter().map(layout).collect();
        }
        // All threads stay close together: what the listing left in the kernel's cache lasts a second.
        let next = AtomicUsize::new(0);
        let work = || {
            let mine = std::iter::from_fn(|| {
                let at = next.fetch_add(1, Ordering::Relaxed);
                folder.get(at).map(|found| (at, layout(found)))
            });
            mine.collect::<Vec<_>>()
        };
        let mut told: Vec<(usize, FileLayout)> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let ended = running.into_iter().map(|thread| thread.join());
            ended.flat_map(|mine| mine.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        told.sort_unstable_by_key(|(at, _)| *at);
        told.into_iter().map(|(_, layout)| layout).collect()
    }

    /// The layout of a directory that cannot be listed: its reason.
    pub fn unreadable(&self, dir: &Path, error: &std::io::Error) -> FileLayout {
        let volume = self.volume_of(dir).map(|v| v.name).unwrap_or_default();
        FileLayout { volume, reason: Some(format!("cannot list this directory: {error}")), ..blank(dir) }
    }
}

fn blank(path: &Path) -> FileLayout {
    FileLayout {
        path: path.into(),
        size: 0,
        volume: String::new(),
        extents: Vec::new(),
        reason: None,
        server_path: None,
    }
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

fn file_system(first: &MountLine, lines: &[MountLine]) -> Arc<dyn FileSystem> {
    match Kind::of(&first.mount.fstype) {
        Kind::Gluster => Arc::new(gluster::Gluster::read(lines)),
        Kind::Nfs => Arc::new(nfs::Nfs::new(lines)),
        Kind::Local => Arc::new(local::Local::new()),
        Kind::Other(fstype) => Arc::new(local::Unknown(fstype)),
    }
}

fn volume(line: &MountLine) -> Volume {
    let kind = Kind::of(&line.mount.fstype);
    let prefix = match &kind {
        Kind::Gluster => "gluster",
        Kind::Nfs => "nfs",
        Kind::Local => "local",
        Kind::Other(fstype) => fstype,
    };
    Volume { name: format!("{prefix}:{}", line.mount.source.display()), kind, mount: line.mount.clone() }
}
