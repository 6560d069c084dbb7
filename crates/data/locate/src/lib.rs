//! Finds the hosts that hold the bytes of a file, as its own file system reports them.
//!
//! Each file system has one file, all behind [`FileSystem`]; [`contract`] is the suite that each must pass. For
//! unknown places there is a reason, never a guess.
//!
//! Main types: [`Finder`] finds the inputs of a task. [`CandidatePaths`] are the paths that a command may read, and
//! [`CommandInputs`] is the answer about them. [`candidate_words`] picks such words from a command.
//!
//! It does not: choose a host (`place`), or make other hosts see a change (`fence`).

mod candidates;
mod ceph;
pub mod contract;
mod disk;
mod drbd;
mod everything;
mod gluster;
mod hdfs;
mod hostname;
mod inputs;
mod local;
mod locator;
mod lustre;
mod moosefs;
mod nfs;
mod own;
mod sshfs;
mod stacked;
mod volfile;
mod walk;

pub use candidates::candidate_words;
pub use everything::{answering_files, locate_everything, name_hosts};
pub use hdfs::is_named as is_remote;
use homing_model::{FileLayout, Mount};
use homing_mounts::{FileSystemKind, MountLine, volume_name};
pub use hostname::HostNames;
pub use inputs::{CandidatePaths, CommandInputs, Finder, TREE_LIMIT};
pub use locator::Locator;
pub use own::{OwnLocator, OwnLocators};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why no path can be located.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// The mount table cannot be read.
    #[error("cannot read the mount table /proc/self/mountinfo: {0}")]
    Mounts(std::io::Error),
    /// The path cannot be examined.
    #[error("cannot examine {path}: {error}")]
    Path {
        /// The given path, with control characters escaped.
        path: String,
        /// The system's error.
        error: std::io::Error,
    },
    /// No line of the mount table contains the path.
    #[error("the mount table has no file system for {0}")]
    NoMount(String),
}

/// A mounted volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// E.g. `gluster:n1:/data`, `nfs:nas:/export`, `local:/dev/sda1`.
    pub name: String,
    /// The kind of its file system.
    pub kind: FileSystemKind,
    /// Its line of the mount table.
    pub mount: Mount,
}

/// The interface of one file system. An implementation
/// - names only hosts that the volume's own definition names, for any name of a file.
/// - gives extents in order of offset, without overlap, within the file's size.
/// - gives no extents and no reason for an empty file.
/// - gives a reason for every byte that it leaves out, and never a guess.
/// - works for an ordinary user, or reports the missing permission.
/// - changes nothing.
pub trait FileSystem: Send + Sync {
    /// Adds extents, reason and server path to a layout that has path, size and volume.
    fn fill(&self, file: &mut LocateRequest);

    /// As `fill`, for many files. File systems override it if one query about all is cheaper.
    fn fill_all(&self, files: &mut [LocateRequest]) {
        files.iter_mut().for_each(|file| self.fill(file));
    }

    /// Returns the folders of servers that hold a folder's files whole, under their own names; `None` if there are no
    /// such folders.
    fn spread(&self, _folder: &Path) -> Option<Spread> {
        None
    }
}

/// The bricks over which the files of a folder are spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The folder from the volume's root, without a slash before it.
    pub below: PathBuf,
    /// Sets of bricks, each by its host and its folder there. A file is on all bricks of one set.
    pub sets: Vec<Vec<(String, PathBuf)>>,
}

/// A regular file whose place is wanted.
pub struct LocateRequest {
    /// The path as the caller named it.
    pub path: PathBuf,
    /// Its metadata, from `stat`.
    pub meta: Metadata,
    /// The known part of the layout.
    pub layout: FileLayout,
}

/// Files below a directory.
#[derive(Clone, Debug, Default)]
pub struct TreeLayouts {
    /// Their layouts, in the order of the walk.
    pub files: Vec<FileLayout>,
    /// Whether there were more than the limit.
    pub truncated: bool,
}

/// Makes the file system of a mount. `depth` is the number of stacked file systems above it. A site's own locator
/// comes first. The match names each kind: the compiler points here when one is added.
fn file_system(first: &MountLine, lines: &[MountLine], depth: u8, own: &OwnLocators) -> Arc<dyn FileSystem> {
    if let Some(asked) = own.iter().find(|own| own.fstype == first.mount.fstype) {
        return Arc::new(own::LocatorCommand::new(asked));
    }
    let kind = FileSystemKind::of(&first.mount);
    match kind {
        FileSystemKind::Gluster => Arc::new(gluster::Gluster::read(lines)),
        FileSystemKind::Moose => Arc::new(moosefs::Moose::new(lines)),
        FileSystemKind::Lustre => Arc::new(lustre::Lustre::read(first)),
        FileSystemKind::Ceph => Arc::new(ceph::Ceph::read(first)),
        FileSystemKind::Nfs => Arc::new(nfs::Nfs::new(lines)),
        FileSystemKind::Sshfs => Arc::new(sshfs::Sshfs::read(first, lines)),
        // Its source names no host; `Sshfs` explains that.
        FileSystemKind::Other if homing_mounts::sshfs::is(&first.mount) => Arc::new(sshfs::Sshfs::read(first, lines)),
        FileSystemKind::Local | FileSystemKind::Site | FileSystemKind::Other => {
            match stacked::Stacked::read(first, lines, depth, own) {
                Some(stacked) => Arc::new(stacked),
                None => disk::of(first, kind, drbd::has_copy(first)),
            }
        }
    }
}

/// Returns a layout without facts.
fn blank(path: &Path) -> FileLayout {
    FileLayout {
        path: path.into(),
        size: 0,
        volume: String::new(),
        extents: Vec::new(),
        reason: None,
        missing: false,
        server_path: None,
    }
}

fn volume(line: &MountLine, own: &OwnLocators) -> Volume {
    let kind = match FileSystemKind::of(&line.mount) {
        FileSystemKind::Other if own.iter().any(|own| own.fstype == line.mount.fstype) => FileSystemKind::Site,
        kind => kind,
    };
    let mount = homing_mounts::identified(line);
    Volume { name: volume_name(&mount), kind, mount }
}
