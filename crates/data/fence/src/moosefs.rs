//! MooseFS: its master tells clients of changes; measured, only the time of a
//! rewrite in place lags, until the next second of the master's clock begins: with
//! any cache option and a look past the caches alike, since the master does not
//! know it before. Times have a resolution of one second.

use crate::Fence;
use homing_model::Change;
use std::time::Duration;

pub(crate) static FENCE: Fence = Fence {
    // New and removed names are seen at once.
    concerns: |change: &Change| !change.fresh && change.now.is_some(),
    // To wait is all that can be done.
    first: &[],
    again: &[],
    // Twice that second, and some reserve.
    bound: Duration::from_millis(2500),
    asking_syncs: false,
    // The master's.
    times_of_writer: false,
    own_marks: false,
    look_into: |_, _| {},
};
