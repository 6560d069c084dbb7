//! MooseFS: its master tells clients of changes; measured, only the time of a
//! rewrite in place lags, for at most the second of `mfsattrcacheto`. Times
//! have a resolution of one second.

use crate::Fence;
use homing_model::Change;
use std::time::Duration;

pub(crate) static FENCE: Fence = Fence {
    // New and removed names are seen at once.
    concerns: |change: &Change| !change.fresh && change.now.is_some(),
    // The look with AT_STATX_FORCE_SYNC is all that can be done.
    first: &[],
    again: &[],
    // Twice `mfsattrcacheto`, and some reserve.
    bound: Duration::from_millis(2500),
    asking_syncs: false,
    look_into: |_, _| {},
};
