//! Who has an open channel in hand, and may end what carries it.

use crate::Via;
use crate::carrier::Carrier;
use crate::end::{self, End};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

/// What carries a channel. Dropping it ends that at once.
pub struct Keeper(Held);

enum Held {
    /// A child of this process.
    Child(Carrier),
    /// One of a leader's.
    Led(Arc<dyn Led>),
}

/// A channel that a leader carries beside others.
pub(crate) trait Led: Send + Sync {
    /// Waits for its end, for at most `grace`; then has it ended.
    fn end(&self, grace: Duration);
    /// How it ended, when it does so soon.
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

    /// Waits for the end of what carries the channel, for at most `grace`; then ends it. The caller
    /// has dropped the channel's `to` before, else there is no reason to end.
    /// `None` when its status could not be learnt.
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

/// Sees how a channel ends, whoever has its keeper by then.
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
