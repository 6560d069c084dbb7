//! MooseFS: its master notifies clients of changes. Measured: only the time of a rewrite in place lags, until the
//! next second of the master's clock begins. Cache options and looks past the caches do not help, because the master
//! itself does not know the time before. Times have a resolution of one second.

use crate::Fence;
use homing_model::FileChange;
use std::time::Duration;

pub(crate) static FENCE: Fence = Fence {
    // New and removed names are seen at once.
    concerns: |change: &FileChange| !change.fresh && change.now.is_some(),
    // Only waiting helps.
    first: &[],
    again: &[],
    // Twice that second, and some reserve.
    bound: Duration::from_millis(2500),
    asking_syncs: false,
    // Files bear the master's time.
    times_of_writer: false,
    own_marks: false,
    look_into: |_, _| {},
};
