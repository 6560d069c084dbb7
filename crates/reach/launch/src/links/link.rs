//! One host: which events it may send in which order, and which are left to the owner. Pure, except that it ends the
//! process behind the link.

use crate::silence::Silence;
use crate::wire::{FromWorker, HOST_LOST_S, ToWorker, WireError};
use crate::{BatchEnd, ChannelChild, HostEvent, HostPlan, LaunchError};
use homing_model::HostFacts;
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time in which the process behind a link may end by itself after its input has ended.
pub(super) const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// An event of a host that is left to the owner to act on. Reasons are for people.
pub enum HostNews {
    /// Its worker is connected; nothing was sent to it yet.
    Up(Box<HostFacts>),
    /// There is no worker there.
    Refused(LaunchError),
    /// Messages of its worker.
    From(Vec<FromWorker>),
    /// No message reaches it any more. Its tasks may run until it is lost, and run nowhere else before.
    Cut(String),
    /// Like `Cut`, but the host may be well: another link may replace it at once.
    Astray(String),
    /// No task runs there any more, or its worker's lease is over. May come twice; the second time with a batch system's
    /// reason.
    Lost(String, Option<BatchEnd>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Pending,
    Up,
    Cut,
    Lost,
    Refused,
}

/// One host, with the owner's own state of it.
pub struct HostLink<T> {
    /// The host.
    pub plan: HostPlan,
    /// Frames for the next flush.
    pub out: Vec<u8>,
    standing: Standing,
    pub(super) to: Option<Sender<Vec<u8>>>,
    keeper: Option<ChannelChild>,
    pub(super) heard: Instant,
    pub(super) followed: bool,
    of: T,
}

impl<T> Deref for HostLink<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.of
    }
}

impl<T> DerefMut for HostLink<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.of
    }
}

impl<T> HostLink<T> {
    pub(super) fn to(of: T, plan: HostPlan, now: Instant) -> HostLink<T> {
        let (out, to, keeper) = (Vec::new(), None, None);
        HostLink { plan, out, standing: Standing::Pending, to, keeper, heard: now, followed: false, of }
    }

    /// Whether it may still come up.
    pub fn is_pending(&self) -> bool {
        self.standing == Standing::Pending
    }

    /// Whether it may be used, now or when it is up.
    pub fn is_open(&self) -> bool {
        self.is_pending() || self.is_up()
    }

    /// Whether it accepts messages.
    pub fn is_up(&self) -> bool {
        self.to.is_some()
    }

    /// Whether it gave no worker, or one that is not used.
    pub fn is_refused(&self) -> bool {
        self.standing == Standing::Refused
    }

    /// Whether another link was made in its place.
    pub fn is_followed(&self) -> bool {
        self.followed
    }

    /// Queues a message for the next flush. An error means that the message is too large.
    pub fn queue_message(&mut self, message: &ToWorker) -> Result<(), WireError> {
        crate::wire::encode(message, &mut self.out)
    }

    /// Ends its input. Only its end is reported from then on.
    pub fn close(&mut self) {
        self.to = None;
    }

    pub(super) fn unlink(&mut self, standing: Standing, grace: Duration) -> Option<JoinHandle<()>> {
        self.close();
        self.standing = standing;
        let keeper = self.keeper.take()?;
        // In a separate thread where one can be started: srun may take seconds to give its job back.
        homing_os::threads::begin_or_do(move || {
            keeper.end(grace);
        })
    }

    pub(super) fn handle_event(&mut self, heard: HostEvent, now: Instant) -> Option<HostNews> {
        use Standing::{Cut, Lost, Pending, Up};
        Some(match (heard, self.standing) {
            (HostEvent::Up { facts, to, keeper }, Pending) => {
                (self.standing, self.to, self.keeper, self.heard) = (Up, Some(to), Some(keeper), now);
                HostNews::Up(facts)
            }
            (HostEvent::Refused(error), Pending) => HostNews::Refused(error),
            (HostEvent::From(messages), Up) => {
                self.heard = now;
                // A host that was closed may still send messages.
                self.is_up().then_some(HostNews::From(messages))?
            }
            (HostEvent::Cut { reason }, Up) => {
                self.unlink(Cut, ENDS_WITHIN);
                HostNews::Cut(format!(
                    "{reason}; its tasks may run on for up to {HOST_LOST_S} s, and are not started elsewhere before"
                ))
            }
            (HostEvent::Astray { reason }, Up) => {
                self.unlink(Cut, ENDS_WITHIN);
                HostNews::Astray(reason)
            }
            // The silence was that of its leader.
            (HostEvent::Astray { reason }, Lost) if !self.followed => HostNews::Astray(reason),
            (HostEvent::Gone { reason, fate }, Up | Cut | Lost) => {
                self.unlink(Lost, ENDS_WITHIN);
                HostNews::Lost(fate.as_ref().map_or(reason, |fate| fate.text.clone()), fate)
            }
            // A host that was given up, or is not wanted, may still send messages: its tasks already run elsewhere.
            _ => return None,
        })
    }

    pub(super) fn is_silent(&self, now: Instant) -> bool {
        self.is_up() && Silence::is_too_long(self.heard, now)
    }
}
