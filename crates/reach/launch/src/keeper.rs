//! Handle of an open channel. Dropping it ends the process behind the channel.

use crate::Via;
use crate::carrier::Carrier;
use crate::end::{self, End};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

/// Handle of the process behind a channel. Dropping it ends that process at once.
pub struct Keeper(Held);

enum Held {
    /// A child of this process.
    Child(Carrier),
    /// A channel of a leader.
    Led(Arc<dyn Led>),
}

/// A channel that a leader carries beside others.
pub(crate) trait Led: Send + Sync {
    /// Waits for its end, for at most `grace`; then has the leader end it.
    fn end(&self, grace: Duration);
    /// Returns how it ended, if it ends soon.
    fn ended(&self) -> End;
}

impl From<Carrier> for Keeper {
    fn from(carrier: Carrier) -> Keeper {
        Keeper(Held::Child(carrier))
    }
}

impl Keeper {
    pub(crate) fn led(led: Arc<dyn Led>) -> Keeper {
        Keeper(Held::Led(led))
    }

    /// Waits for the end of the process behind the channel, for at most `grace`; then ends it. The caller has dropped
    /// the channel's `to` before: otherwise the process has no reason to end. `None` if its status is unknown.
    pub fn end(mut self, grace: Duration) -> Option<ExitStatus> {
        match &mut self.0 {
            Held::Child(carrier) => carrier.reap(grace),
            Held::Led(led) => {
                led.end(grace);
                None
            }
        }
    }

    pub(crate) fn witness(&self) -> Witness {
        match &self.0 {
            Held::Child(carrier) => Witness::Child(end::Witness::of(carrier)),
            Held::Led(led) => Witness::Led(led.clone()),
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // A carrier ends its child itself.
        if let Held::Led(led) = &self.0 {
            led.end(Duration::ZERO);
        }
    }
}

/// Observes how a channel ends, whichever thread owns its keeper by then.
pub(crate) enum Witness {
    Child(end::Witness),
    Led(Arc<dyn Led>),
}

impl Witness {
    pub fn end(&self, via: &Via) -> End {
        match self {
            Witness::Child(witness) => witness.end(via),
            Witness::Led(led) => led.ended(),
        }
    }
}
