//! NFS 3 and 4: clients cache missing names as long as the folder seems unchanged, for up to 60 s. Measured: only
//! AT_STATX_FORCE_SYNC on every ancestor from the mount down and then on the file was right in all cases. If a change
//! fell into the clock tick of an earlier look (NFS 3), only a listing of the folder helps.

use crate::{Fence, FenceStep, settle};
use std::time::Duration;

pub(crate) static FENCE: Fence = Fence {
    concerns: |_| true,
    first: &[FenceStep::SyncAncestors],
    again: &[FenceStep::SyncAncestors, FenceStep::ListParent],
    // `acdirmax`, 60 s by default, and some reserve.
    bound: Duration::from_secs(65),
    asking_syncs: false,
    times_of_writer: false,
    own_marks: false,
    look_into: settle::sync_ancestors,
};
