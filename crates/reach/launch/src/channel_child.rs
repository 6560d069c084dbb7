//! Handle of an open channel. Dropping it ends the process behind the channel.

use crate::Via;
use crate::carrier::Carrier;
use crate::end::{self, ChannelEnd};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

/// Handle of the process behind a channel. Dropping it ends that process at once.
pub struct ChannelChild(ChannelProcess);

enum ChannelProcess {
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
    fn ended(&self) -> ChannelEnd;
}

impl From<Carrier> for ChannelChild {
    fn from(carrier: Carrier) -> ChannelChild {
        ChannelChild(ChannelProcess::Child(carrier))
    }
}

impl ChannelChild {
    pub(crate) fn led(led: Arc<dyn Led>) -> ChannelChild {
        ChannelChild(ChannelProcess::Led(led))
    }

    /// Waits for the end of the process behind the channel, for at most `grace`; then ends it. The caller has dropped
    /// the channel's `to` before: otherwise the process has no reason to end. `None` if its status is unknown.
    pub fn end(mut self, grace: Duration) -> Option<ExitStatus> {
        match &mut self.0 {
            ChannelProcess::Child(carrier) => carrier.reap(grace),
            ChannelProcess::Led(led) => {
                led.end(grace);
                None
            }
        }
    }

    pub(crate) fn witness(&self) -> Witness {
        match &self.0 {
            ChannelProcess::Child(carrier) => Witness::Child(end::Witness::of(carrier)),
            ChannelProcess::Led(led) => Witness::Led(led.clone()),
        }
    }
}

impl Drop for ChannelChild {
    fn drop(&mut self) {
        // A carrier ends its child itself.
        if let ChannelProcess::Led(led) = &self.0 {
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
    pub fn end(&self, via: &Via) -> ChannelEnd {
        match self {
            Witness::Child(witness) => witness.end(via),
            Witness::Led(led) => led.ended(),
        }
    }
}
