//! GlusterFS, default options. New names are seen at once. Existing files stay stale for about a second in the
//! kernel's attribute cache, in md-cache and in quick-read, even through `open` and `read`. Measured: no NFS-like
//! fence helps. `inode-invalidate`, a listing of the folder and `inode-invalidate` again left 0 of 40 stale.

use crate::{Fence, FenceStep, settle};
use homing_model::FileChange;
use std::time::Duration;

pub(crate) static FENCE: Fence = Fence {
    // Its clients do not cache missing names (`negative-timeout` is 0).
    concerns: |change: &FileChange| !change.fresh,
    // Measured: after it alone, only names with a new inode were stale, which the following look detects. Its cost
    // does not grow with the folder.
    first: &[FenceStep::Invalidate, FenceStep::DropPages],
    again: &[
        FenceStep::SyncAncestors,
        FenceStep::Invalidate,
        FenceStep::ListParent,
        FenceStep::Invalidate,
        FenceStep::DropPages,
    ],
    // All its caches end after 1 s; 0 of 45 were stale after 1.1 s.
    bound: Duration::from_millis(2500),
    // `write-behind` makes a look wait for the writes before it: measured, 0.6 ms, and then both bricks have them. An
    // `fdatasync` also waits for the bricks' disks, which other clients do not need: 4 to 10 ms, at times 200.
    asking_syncs: true,
    // Its client sends the time to the bricks (`features.ctime`, on by default).
    times_of_writer: true,
    own_marks: false,
    look_into: |path, mount| settle::list(path.parent().unwrap_or(mount)),
};
