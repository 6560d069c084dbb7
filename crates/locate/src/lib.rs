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

use homing_model::{FileLayout, Mount, RawText};
use mounts::MountLine;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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
            "lustre" | "ceph" | "beegfs" | "cifs" | "smb3" | "9p" | "afs" | "autofs" => Kind::Other(fstype.into()),
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

type Known = HashMap<u64, (Volume, Arc<dyn FileSystem>)>;

/// Finds the volume of a path and asks it. May be shared between threads.
pub struct Locator {
    mounts: Mutex<Vec<MountLine>>,
    known: Mutex<Known>,
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
        if let Some((volume, fs)) = known.get(&meta.dev()) {
            return Ok((volume.clone(), fs.clone(), meta));
        }
        let line = self.line(path, meta.dev())?.ok_or_else(|| LocateError::NoMount(shown()))?;
        let volume = volume(&line);
        let fs: Arc<dyn FileSystem> = match &volume.kind {
            Kind::Gluster => Arc::new(gluster::Gluster::read(&volume.mount)),
            Kind::Nfs => Arc::new(nfs::Nfs::new(&line)),
            Kind::Local => Arc::new(local::Local::new()),
            Kind::Other(fstype) => Arc::new(local::Unknown(fstype.clone())),
        };
        known.insert(meta.dev(), (volume.clone(), fs.clone()));
        Ok((volume, fs, meta))
    }

    /// The device number decides, for the longest path may be mounted over.
    /// A file system with several numbers (btrfs) falls back to the path.
    fn line(&self, path: &Path, dev: u64) -> Result<Option<MountLine>, LocateError> {
        let mut lines = self.mounts.lock().unwrap_or_else(PoisonError::into_inner);
        let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let find = |lines: &[MountLine]| {
            let fits = lines.iter().filter(|l| l.dev == dev && real.starts_with(l.mount.point.as_path()));
            fits.max_by_key(|l| l.mount.point.0.len()).cloned()
        };
        if let Some(line) = find(&lines) {
            return Ok(Some(line));
        }
        *lines = mounts::read()?;
        let by_path = || {
            let fits = lines.iter().filter(|l| real.starts_with(l.mount.point.as_path()));
            fits.max_by_key(|l| l.mount.point.0.len()).cloned()
        };
        Ok(find(&lines).or_else(by_path))
    }

    /// Where one file lies. Never fails: `reason` says what could not be told.
    pub fn locate(&self, path: &Path) -> FileLayout {
        let mut layout = FileLayout {
            path: path.into(),
            size: 0,
            volume: String::new(),
            extents: Vec::new(),
            reason: None,
            server_path: None,
        };
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

    /// A directory with what lies under it, on the same volume, at most `limit` files.
    /// Symbolic links below it are not followed.
    pub fn locate_tree(&self, path: &Path, limit: usize) -> Tree {
        let mut tree = Tree::default();
        let mut open: Vec<PathBuf> = vec![path.to_path_buf()];
        while let Some(dir) = open.pop() {
            let Ok(entries) = std::fs::read_dir(&dir) else {
                tree.files.push(self.locate(&dir));
                continue;
            };
            let mut names: Vec<_> = entries.flatten().collect();
            names.sort_by_key(std::fs::DirEntry::file_name);
            for entry in names {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => open.push(entry.path()),
                    Ok(kind) if kind.is_file() => {
                        if tree.files.len() == limit {
                            tree.truncated = true;
                            return tree;
                        }
                        tree.files.push(self.locate(&entry.path()));
                    }
                    _ => {}
                }
            }
        }
        tree
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
