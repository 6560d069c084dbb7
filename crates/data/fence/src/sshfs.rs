//! sshfs 3.7.3, default options. Its program caches states of names and listings for 20 s, and AT_STATX_FORCE_SYNC
//! reaches no further than this program. The following was measured, and agrees with its source. Opening a file makes
//! it query that file's state, found or not. Making a name in a folder makes it forget the folder's listing. The
//! server's listing includes the states of all entries. A hard link makes it forget where a symbolic link points. New
//! names are queried at once. For a removed folder, only waiting helps.
//!
//! It does not cache a queried state while another process writes to any file of the mount (`write_ctr`), so an older
//! state stays. A hard link makes it forget that state in any case.

use crate::{Fence, FenceStep, settle};
use std::time::Duration;

pub(crate) static FENCE: Fence = Fence {
    // A cached listing of the folder may not contain the new name.
    concerns: |_| true,
    first: &[FenceStep::Open, FenceStep::ForgetListing],
    again: &[FenceStep::Open, FenceStep::Link, FenceStep::ForgetListing, FenceStep::ListParent],
    // `dcache_timeout`, 20 s by default, a second of the kernel's cache, and some reserve.
    bound: Duration::from_secs(23),
    asking_syncs: false,
    times_of_writer: false,
    own_marks: true,
    look_into: |path, mount| settle::list_past_the_program(path.parent().unwrap_or(mount)),
};
