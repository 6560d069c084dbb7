//! sshfs 3.7.3, default options: its program keeps states of names and listings for
//! 20 s, and a look with AT_STATX_FORCE_SYNC goes no further than to it. Measured, and
//! as its source has it: to open a file makes it ask for that file's state, found
//! or not; a name made in a folder makes it forget the folder's listing, and a listing
//! of the server tells the states of all that is in it; a hard link makes it forget where a
//! symbolic link points. Names that it has not met are asked for at once. A folder that was
//! removed can only be waited for.
//!
//! What it has asked for is not kept while another process writes to any file of the mount
//! (`write_ctr`): an older state stays then. A hard link has that forgotten in any case.

use crate::{Fence, Step, settle};
use std::time::Duration;

pub(crate) static FENCE: Fence = Fence {
    // A listing of its folder may be known without it.
    concerns: |_| true,
    first: &[Step::Open, Step::ForgetListing],
    again: &[Step::Open, Step::Link, Step::ForgetListing, Step::ListParent],
    // `dcache_timeout`, 20 s by default, a second of the kernel's, and some reserve.
    bound: Duration::from_secs(23),
    asking_syncs: false,
    times_of_writer: false,
    own_marks: true,
    look_into: |path, mount| settle::list_past_the_program(path.parent().unwrap_or(mount)),
};
