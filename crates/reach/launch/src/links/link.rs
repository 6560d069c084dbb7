//! One host: what may be heard of it in which order, and what that comes to. Pure but for the end of what carries it.

use crate::silence::Silence;
use crate::wire::{FromWorker, HOST_LOST_S, ToWorker, WireError};
use crate::{Fate, Heard, HostPlan, Keeper, LaunchError};
use homing_model::HostFacts;
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// For what carries a link to end by itself when nothing more is said.
pub(super) const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// What is left to decide of what was heard of a host. Reasons are for people.
pub enum HostNews {
    /// Its worker is there, and was told nothing yet.
    Up(Box<HostFacts>),
    /// There is no worker there.
    Refused(LaunchError),
    /// Its worker says something.
    From(Vec<FromWorker>),
    /// Nothing can be said to it any more. What it runs may run until it is lost, and is run nowhere else before.
    Cut(String),
    /// The same, and the host may be well: another link may take its place at once.
    Astray(String),
    /// Nothing of it runs any more, or its worker's lease is over. May be told twice; the second time by Slurm.
    Lost(String, Option<Fate>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Pending,
    Up,
    Cut,
    Lost,
    Refused,
}

/// One host, and what its owner knows of it besides.
pub struct Link<T> {
    /// The host.
    pub plan: HostPlan,
    /// Frames that are sent to it with the next flush.
    pub out: Vec<u8>,
    standing: Standing,
    pub(super) to: Option<Sender<Vec<u8>>>,
    keeper: Option<Keeper>,
    pub(super) heard: Instant,
    pub(super) followed: bool,
    of: T,
}

impl<T> Deref for Link<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.of
    }
}

impl<T> DerefMut for Link<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.of
    }
}

impl<T> Link<T> {
    pub(super) fn to(of: T, plan: HostPlan, now: Instant) -> Link<T> {
        let (out, to, keeper) = (Vec::new(), None, None);
        Link { plan, out, standing: Standing::Pending, to, keeper, heard: now, followed: false, of }
    }

    /// It may still come up.
    pub fn is_pending(&self) -> bool {
        self.standing == Standing::Pending
    }

    /// It may be used, now or when it is up.
    pub fn is_open(&self) -> bool {
        self.is_pending() || self.is_up()
    }

    /// Something can be said to it.
    pub fn is_up(&self) -> bool {
        self.to.is_some()
    }

    /// It gave no worker, or one that is not used.
    pub fn is_refused(&self) -> bool {
        self.standing == Standing::Refused
    }

    /// Another link was made in its place.
    pub fn is_followed(&self) -> bool {
        self.followed
    }

    /// What is sent to it with the next flush. An error says that it is too large.
    pub fn say(&mut self, message: &ToWorker) -> Result<(), WireError> {
        crate::wire::encode(message, &mut self.out)
    }

    /// Its input ends, and nothing more is heard of it but its end.
    pub fn close(&mut self) {
        self.to = None;
    }

    pub(super) fn unlink(&mut self, standing: Standing, grace: Duration) -> Option<JoinHandle<()>> {
        self.close();
        self.standing = standing;
        let keeper = self.keeper.take()?;
        // In a thread of its own where there is one: srun may take seconds to give its job back.
        homing_os::threads::begin_or_do(move || {
            keeper.end(grace);
        })
    }

    pub(super) fn hear(&mut self, heard: Heard, now: Instant) -> Option<HostNews> {
        use Standing::{Cut, Lost, Pending, Up};
        Some(match (heard, self.standing) {
            (Heard::Up { facts, to, keeper }, Pending) => {
                (self.standing, self.to, self.keeper, self.heard) = (Up, Some(to), Some(keeper), now);
                HostNews::Up(facts)
            }
            (Heard::Refused(error), Pending) => HostNews::Refused(error),
            (Heard::From(messages), Up) => {
                self.heard = now;
                // One that was let go may still talk.
                self.is_up().then_some(HostNews::From(messages))?
            }
            (Heard::Cut { reason }, Up) => {
                self.unlink(Cut, ENDS_WITHIN);
                HostNews::Cut(format!(
                    "{reason}; what ran there may run for up to {HOST_LOST_S} s and is not run elsewhere before"
                ))
            }
            (Heard::Astray { reason }, Up) => {
                self.unlink(Cut, ENDS_WITHIN);
                HostNews::Astray(reason)
            }
            // It was its leader that was silent.
            (Heard::Astray { reason }, Lost) if !self.followed => HostNews::Astray(reason),
            (Heard::Gone { reason, fate }, Up | Cut | Lost) => {
                self.unlink(Lost, ENDS_WITHIN);
                HostNews::Lost(fate.as_ref().map_or(reason, |fate| fate.text.clone()), fate)
            }
            // A host that was given up, or is not wanted, may still talk: its tasks already run elsewhere.
            _ => return None,
        })
    }

    pub(super) fn is_silent(&self, now: Instant) -> bool {
        self.is_up() && Silence::is_too_long(self.heard, now)
    }
}
