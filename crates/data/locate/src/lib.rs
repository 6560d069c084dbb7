//! Where bytes lie: which hosts hold a file, as its own file system tells it.
//!
//! One file a file system, all behind [`FileSystem`]; [`contract`] is the suite
//! that each must pass. What cannot be told is a reason, never a guess.
//!
//! Main types: [`Finder`] finds the inputs of a task, [`Named`] is a word that may be a file, [`Inputs`] is the answer.
//! [`candidate_words`] picks such words from a command.
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
use homing_mounts::{Kind, MountLine, volume_name};
pub use hostname::HostNames;
pub use inputs::{Finder, Inputs, Named, TREE_LIMIT};
pub use locator::Locator;
pub use own::{OwnLocator, OwnLocators};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    fn fill(&self, file: &mut Asked);

    /// The same for many files, where one question about all costs less.
    fn fill_all(&self, files: &mut [Asked]) {
        files.iter_mut().for_each(|file| self.fill(file));
    }

    /// The folders of servers in which a folder's files lie whole, under their own names; `None` where there are none
    /// such.
    fn spread(&self, _folder: &Path) -> Option<Spread> {
        None
    }
}

/// Over which bricks the files of a folder are spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The folder from the volume's root, without a slash before it.
    pub below: PathBuf,
    /// Sets of bricks, each by its host and its folder there. A file is on all bricks of one set.
    pub sets: Vec<Vec<(String, PathBuf)>>,
}

/// A regular file whose place is asked for.
pub struct Asked {
    /// As the caller named it.
    pub path: PathBuf,
    /// What `stat` told of it.
    pub meta: Metadata,
    /// What is known so far.
    pub layout: FileLayout,
}

/// Files below a directory.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Their layouts, in the order of the walk.
    pub files: Vec<FileLayout>,
    /// There were more than the limit.
    pub truncated: bool,
}

/// `depth` tells how many file systems show the files of this one; a site's own locator is asked before all others.
fn file_system(first: &MountLine, lines: &[MountLine], depth: u8, own: &OwnLocators) -> Arc<dyn FileSystem> {
    if let Some(asked) = own.iter().find(|own| own.fstype == first.mount.fstype) {
        return Arc::new(own::Own::new(asked));
    }
    match Kind::of(&first.mount) {
        Kind::Gluster => Arc::new(gluster::Gluster::read(lines)),
        Kind::Moose => Arc::new(moosefs::Moose::new(lines)),
        Kind::Lustre => Arc::new(lustre::Lustre::read(first)),
        Kind::Ceph => Arc::new(ceph::Ceph::read(first)),
        Kind::Nfs => Arc::new(nfs::Nfs::new(lines)),
        _ if homing_mounts::sshfs::is(&first.mount) => Arc::new(sshfs::Sshfs::read(first, lines)),
        kind => match (stacked::Stacked::read(first, lines, depth, own), kind) {
            (Some(stacked), _) => Arc::new(stacked),
            (None, _) => disk::of(first, kind, drbd::has_copy(first)),
        },
    }
}

/// Of which nothing is known yet.
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

fn volume(line: &MountLine, own: &OwnLocators) -> Volume {
    let kind = match Kind::of(&line.mount) {
        Kind::Other if own.iter().any(|own| own.fstype == line.mount.fstype) => Kind::Site,
        kind => kind,
    };
    let mount = homing_mounts::identified(line);
    Volume { name: volume_name(&mount), kind, mount }
}
