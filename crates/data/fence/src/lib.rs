//! Fences: the files that one host wrote become visible on another, with all caches on.
//!
//! The writing side ([`FolderWatch`]) observes the changes of a command and syncs them. It describes them as a list of
//! [`FileChange`]s, which travels beside the file system. The reading side ([`settle()`]) makes its kernel look again
//! at exactly these names, by the steps that were measured to work on each file system. It waits until it sees the
//! writer's state. After the file system's bound it returns the first file that still differs here ([`Late`]).
//!
//! It does not: decide which changes a task must see (`dispatch`, `make`), or copy bytes.

mod gluster;
mod moosefs;
mod nfs;
mod out_of_step;
mod recent;
mod server_clock;
mod settle;
mod sshfs;
mod stamp;
mod watch;
mod written;

pub use out_of_step::out_of_step;
pub use recent::recent;
pub use server_clock::behind as server_behind;
pub use settle::{Late, Settled, look_anew, refresh, settle, settle_for};
pub use stamp::stamp;
pub use watch::FolderWatch;
pub use written::{Looks, written};

use homing_model::{FileChange, FileStamp};
use homing_mounts::{FileSystemKind, MountLine, holding};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Clocks of hosts and servers may differ by this much; their difference is not measured below it.
const CLOCKS: Duration = Duration::from_secs(2);

/// Returns the time in seconds since 1970, for comparison with times of files. If the clock was set forward since
/// this process began, a change of a moment ago still counts as new.
fn now_s() -> i64 {
    homing_os::clock::system_ns().min(homing_os::clock::wall_ns()) / 1_000_000_000
}

/// A step that makes this host's caches look again. It precedes a `statx` with AT_STATX_FORCE_SYNC on the file
/// itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceStep {
    /// `statx` with AT_STATX_FORCE_SYNC on each ancestor from the mount down.
    SyncAncestors,
    /// Read the folder that holds it.
    ListParent,
    /// GlusterFS's `inode-invalidate` on the file.
    Invalidate,
    /// Drop cached pages of the file.
    DropPages,
    /// Open it; for a symbolic link, make a hard link.
    Open,
    /// Make a hard link of it, and remove the link.
    Link,
    /// Make a file in its folder, and remove it.
    ForgetListing,
}

/// How the clients of one file system cache, and which steps make them look again.
#[derive(Debug)]
pub struct Fence {
    /// Whether a change needs steps before other hosts see it. A new name is in no cache if clients do not cache
    /// missing names, so it needs none.
    pub(crate) concerns: fn(&FileChange) -> bool,
    pub(crate) first: &'static [FenceStep],
    /// The steps if the first ones were not enough.
    pub(crate) again: &'static [FenceStep],
    /// The longest time for which a client may see an old state.
    pub bound: Duration,
    /// Whether a look at a file on this host waits until its writes have reached the servers.
    pub(crate) asking_syncs: bool,
    /// Whether files bear the time of the host that wrote them. Otherwise they bear a server's time.
    pub(crate) times_of_writer: bool,
    /// Whether the program of the mount caches states itself, which the kernel cannot bypass. Such a program has its
    /// own inode numbers and times in whole seconds.
    pub(crate) own_marks: bool,
    /// Makes this host see the names in the folder of a path and, where that is cheap, their states. The second
    /// argument is the mount point.
    pub(crate) look_into: fn(&Path, &Path),
}

/// All fences.
pub(crate) static FENCES: [&Fence; 4] = [&gluster::FENCE, &nfs::FENCE, &moosefs::FENCE, &sshfs::FENCE];

impl Fence {
    /// Returns the fence of a kind of file system; `None` if it needs none, or none is known.
    pub fn of(kind: FileSystemKind) -> Option<&'static Fence> {
        match kind {
            FileSystemKind::Gluster => Some(&gluster::FENCE),
            FileSystemKind::Nfs => Some(&nfs::FENCE),
            FileSystemKind::Moose => Some(&moosefs::FENCE),
            FileSystemKind::Sshfs => Some(&sshfs::FENCE),
            // Locks and capabilities keep the clients coherent.
            FileSystemKind::Lustre | FileSystemKind::Ceph => None,
            // Files of one host.
            FileSystemKind::Local => None,
            // GPFS, GFS2 and OCFS2 are coherent; the others were not measured.
            FileSystemKind::Site | FileSystemKind::Other => None,
        }
    }

    /// Returns the fence of the file system of `path`, and its mount point.
    pub fn at(path: &Path) -> (Option<&'static Fence>, PathBuf) {
        fence_in(&homing_mounts::read().unwrap_or_default(), path)
    }
}

/// Returns the part of a stamp that other hosts can compare with their own.
pub(crate) fn comparable(fence: Option<&Fence>, stamp: Option<FileStamp>) -> Option<FileStamp> {
    let own = fence.is_some_and(|fence| fence.own_marks);
    stamp.map(|stamp| FileStamp { ino: if own { 0 } else { stamp.ino }, ..stamp })
}

/// As [`Fence::at`], for a mount table that was read once for many paths.
pub(crate) fn fence_in(table: &[MountLine], path: &Path) -> (Option<&'static Fence>, PathBuf) {
    let line = holding(table, path);
    line.map_or((None, "/".into()), |line| (Fence::of(FileSystemKind::of(&line.mount)), line.mount.point.to_path()))
}
