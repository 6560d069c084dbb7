//! Fences: what one host wrote becomes visible on another, with all caches on.
//!
//! The writing side [`watch`]es what a command changes, syncs it and describes
//! it as a list of [`Change`]s, which travels beside the file system. The
//! reading side [`settle`]s: it makes its kernel look again at exactly these
//! names, in the way that was measured to work on each file system, and waits
//! within a bound until it sees what the writer saw.

mod gluster;
mod moosefs;
mod nfs;
mod recent;
mod settle;
mod stamp;
mod watch;
mod written;

pub use recent::recent;
pub use settle::{Late, Settled, look_anew, refresh, settle, settle_for};
pub use stamp::stamp;
pub use watch::Watch;
pub use written::{Looks, written};

use homing_model::Change;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Clocks of hosts and servers may differ by this much.
const CLOCKS: Duration = Duration::from_secs(2);

/// A kind of file system, by how its clients cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// FUSE client of GlusterFS.
    Gluster,
    /// Kernel NFS, any version.
    Nfs,
    /// FUSE client of MooseFS.
    MooseFs,
    /// One host's own, or one that keeps its clients coherent.
    Coherent,
}

/// One step that makes this host's caches look again, ahead of the `statx` with
/// AT_STATX_FORCE_SYNC on the file itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `statx` with AT_STATX_FORCE_SYNC on each ancestor from the mount down.
    SyncAncestors,
    /// Read the folder that holds it.
    ListParent,
    /// GlusterFS's `inode-invalidate` on the file.
    Invalidate,
    /// Drop cached pages of the file.
    DropPages,
}

/// The mount table, read once for many paths.
pub(crate) struct Mounts(Vec<(PathBuf, Kind)>);

impl Mounts {
    pub(crate) fn read() -> Mounts {
        let table = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let rows = table.lines().filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?.replace("\\040", " ").into(), Kind::of_type(fields.next()?)))
        });
        Mounts(rows.collect())
    }

    /// The kind of the file system that holds `path`, and where it is mounted.
    pub(crate) fn kind_of(&self, path: &Path) -> (Kind, PathBuf) {
        // Of equal points the last one is on top.
        let fits = self.0.iter().filter(|(point, _)| path.starts_with(point));
        let last = fits.max_by_key(|(point, _)| point.as_os_str().len());
        last.map_or((Kind::Coherent, "/".into()), |(point, kind)| (*kind, point.clone()))
    }
}

impl Kind {
    /// The kind by the type that the mount table gives.
    pub fn of_type(fstype: &str) -> Kind {
        match fstype {
            "fuse.glusterfs" => Kind::Gluster,
            "fuse.mfs" | "fuse.moosefs" => Kind::MooseFs,
            _ if fstype.starts_with("nfs") => Kind::Nfs,
            _ => Kind::Coherent,
        }
    }

    /// The kind of the file system that holds `path`, and where it is mounted.
    pub fn of(path: &Path) -> (Kind, PathBuf) {
        Mounts::read().kind_of(path)
    }

    /// Does this host's look at a file wait until what was written here is at its servers?
    /// GlusterFS's `write-behind` has it wait for the writes before it: measured, 0.6 ms, and
    /// then both bricks have them. An `fdatasync` waits for the bricks' disks as well, which no
    /// other client asks for: 4 to 10 ms, at times 200.
    pub(crate) fn asking_syncs(self) -> bool {
        self == Kind::Gluster
    }

    /// Is there anything to do before this change is seen elsewhere? A name
    /// that nobody can have in a cache needs no fence where clients do not
    /// remember what is missing.
    pub fn concerns(self, change: &Change) -> bool {
        match self {
            Kind::Gluster => gluster::concerns(change),
            Kind::Nfs => true,
            Kind::MooseFs => moosefs::concerns(change),
            Kind::Coherent => false,
        }
    }

    pub(crate) fn first(self) -> &'static [Step] {
        match self {
            Kind::Gluster => gluster::FIRST,
            Kind::Nfs => nfs::FIRST,
            Kind::MooseFs => moosefs::FIRST,
            Kind::Coherent => &[],
        }
    }

    /// What makes a host see the names in a folder and, where that is cheap, their states.
    pub(crate) fn look_into(self, path: &Path, mount: &Path) {
        match self {
            Kind::Gluster => settle::list(path.parent().unwrap_or(mount)),
            Kind::Nfs => settle::sync_ancestors(path, mount),
            Kind::MooseFs | Kind::Coherent => {}
        }
    }

    /// When the first steps did not do.
    pub(crate) fn again(self) -> &'static [Step] {
        match self {
            Kind::Gluster => gluster::AGAIN,
            Kind::Nfs => nfs::AGAIN,
            Kind::MooseFs => moosefs::FIRST,
            Kind::Coherent => &[],
        }
    }

    /// The longest that a file may stay behind.
    pub fn bound(self) -> Duration {
        match self {
            Kind::Gluster => gluster::BOUND,
            Kind::Nfs => nfs::BOUND,
            Kind::MooseFs => moosefs::BOUND,
            Kind::Coherent => Duration::from_millis(200),
        }
    }
}
