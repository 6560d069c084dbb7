//! Fences: what one host wrote becomes visible on another, with all caches on.
//!
//! The writing side [`watch`]es what a command changes, syncs it and describes
//! it as a list of [`Change`]s, which travels beside the file system. The
//! reading side [`settle`]s: it makes its kernel look again at exactly these
//! names, in the way that was measured to work on each file system, and waits
//! within a bound until it sees what the writer saw.
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
pub use watch::Watch;
pub use written::{Looks, written};

use homing_model::{Change, Stamp};
use homing_mounts::{Kind, MountLine, holding};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Clocks of hosts and servers may differ by this much without anybody's asking.
const CLOCKS: Duration = Duration::from_secs(2);

/// Now, seconds since 1970, for a comparison with what files bear. A clock that was set forward since this
/// process began does not make a change of a moment ago look old.
fn now_s() -> i64 {
    homing_os::clock::system_ns().min(homing_os::clock::wall_ns()) / 1_000_000_000
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
    /// Open it; of a symbolic link, make a hard link.
    Open,
    /// Make a hard link of it, and remove that.
    Link,
    /// Make a name in the folder that holds it, and remove it.
    ForgetListing,
}

/// How the clients of one file system cache, and what makes them look again.
#[derive(Debug)]
pub struct Fence {
    /// Is there anything to do before this change is seen elsewhere? A name
    /// that nobody can have in a cache needs no fence where clients do not
    /// remember what is missing.
    pub(crate) concerns: fn(&Change) -> bool,
    pub(crate) first: &'static [Step],
    /// When the first steps did not do.
    pub(crate) again: &'static [Step],
    /// The longest that a file may stay behind.
    pub bound: Duration,
    /// Does this host's look at a file wait until what was written here is at its servers?
    pub(crate) asking_syncs: bool,
    /// Do files bear the time of the host that wrote them? Otherwise a server's.
    pub(crate) times_of_writer: bool,
    /// The program of the mount keeps states itself, past which the kernel cannot look; it numbers files as it likes
    /// and knows times in whole seconds.
    pub(crate) own_marks: bool,
    /// What makes a host see the names in the folder of a path below a mount
    /// point and, where that is cheap, their states.
    pub(crate) look_into: fn(&Path, &Path),
}

/// All of them.
pub(crate) static FENCES: [&Fence; 4] = [&gluster::FENCE, &nfs::FENCE, &moosefs::FENCE, &sshfs::FENCE];

impl Fence {
    /// The fence of a kind of file system; `None` where none is needed, or none is known.
    pub fn of(kind: Kind) -> Option<&'static Fence> {
        match kind {
            Kind::Gluster => Some(&gluster::FENCE),
            Kind::Nfs => Some(&nfs::FENCE),
            Kind::Moose => Some(&moosefs::FENCE),
            Kind::Sshfs => Some(&sshfs::FENCE),
            // Locks and capabilities keep the clients coherent.
            Kind::Lustre | Kind::Ceph => None,
            // One host's own.
            Kind::Local => None,
            // GPFS, GFS2 and OCFS2 are coherent; of others nothing was measured.
            Kind::Site | Kind::Other => None,
        }
    }

    /// The fence of the file system that holds `path`, and where that is mounted.
    pub fn at(path: &Path) -> (Option<&'static Fence>, PathBuf) {
        fence_in(&homing_mounts::read().unwrap_or_default(), path)
    }
}

/// What other hosts can compare with what they see.
pub(crate) fn comparable(fence: Option<&Fence>, stamp: Option<Stamp>) -> Option<Stamp> {
    let own = fence.is_some_and(|fence| fence.own_marks);
    stamp.map(|stamp| Stamp { ino: if own { 0 } else { stamp.ino }, ..stamp })
}

/// As [`Fence::at`], by a table that was read once for many paths.
pub(crate) fn fence_in(table: &[MountLine], path: &Path) -> (Option<&'static Fence>, PathBuf) {
    let line = holding(table, path);
    line.map_or((None, "/".into()), |line| (Fence::of(Kind::of(&line.mount)), line.mount.point.to_path()))
}
