//! MooseFS: its master tells clients of changes; measured, only the time of a
//! rewrite in place lags, for at most the second of `mfsattrcacheto`. Times
//! have a resolution of one second.

use crate::Step;
use homing_model::Change;
use std::time::Duration;

/// The look with AT_STATX_FORCE_SYNC is all that can be done.
pub(crate) const FIRST: &[Step] = &[];
/// Twice `mfsattrcacheto`, and some reserve.
pub(crate) const BOUND: Duration = Duration::from_millis(2500);

/// New and removed names are seen at once.
pub(crate) fn concerns(change: &Change) -> bool {
    !change.fresh && change.now.is_some()
}
