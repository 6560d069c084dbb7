//! The order among users, and what is done about one who does not keep to it.

use crate::lock::{For, Held};
use crate::{QueueError, Spool};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A user whose runner does not take its turn for this long is passed over.
const PATIENCE: Duration = Duration::from_secs(2);
/// Whoever holds the lock of turns for longer holds it up: the slots' own locks must do then.
const STUCK: Duration = Duration::from_secs(5);

/// Whose turn it has been, and since when.
#[derive(Default)]
pub(crate) struct Turn {
    of: Option<(u32, u64)>,
    since: Option<Instant>,
    pub passed_over: BTreeSet<u32>,
    /// Since when the lock has been another's.
    locked_out: Option<Instant>,
}

impl Turn {
    pub fn note(&mut self, uid: u32, id: u64) {
        if self.of != Some((uid, id)) {
            (self.of, self.since) = (Some((uid, id)), Some(Instant::now()));
        }
        if self.since.is_some_and(|s| s.elapsed() > PATIENCE) {
            self.passed_over.insert(uid);
        }
    }

    /// The lock; `Err(())` while another has it and is not stuck with it.
    pub fn take(&mut self, spool: &Spool) -> Result<Result<Option<Held>, ()>, QueueError> {
        let path = spool.places.shared().join("turn.lock");
        let held = Held::try_take(&path, For::All).map_err(QueueError::io("lock", &path))?;
        if held.is_some() {
            self.locked_out = None;
            return Ok(Ok(held));
        }
        let since = *self.locked_out.get_or_insert_with(Instant::now);
        Ok(if since.elapsed() > STUCK { Ok(None) } else { Err(()) })
    }
}
