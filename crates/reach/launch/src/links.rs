//! The hosts of a run or a build, with a link to each. A link records whether its worker is connected and accepts
//! messages, whether its tasks may still run, and whether another link replaces it. Events about hosts go in,
//! decisions for the owner come out. Only the function `reach`, which connects to a host, has effects outside.

mod gathered;
mod link;
#[cfg(test)]
mod tests;

pub use link::{HostLink, HostNews};

use crate::silence::Silence;
use crate::wire::{HOST_LOST_S, ToWorker};
use crate::{BranchMember, HostEvent, HostPlan, LaunchError, Options, Via, attend, attend_all};
use gathered::PendingNotes;
use link::{ENDS_WITHIN, Standing};
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Reach = dyn Fn(usize, HostPlan) -> io::Result<()> + Send;

/// All hosts of a run, by number.
pub struct HostLinks<T> {
    links: Vec<HostLink<T>>,
    of: fn(&HostPlan) -> T,
    reach: Box<Reach>,
    /// Links whose connection could not be started.
    unbegun: Vec<(usize, LaunchError)>,
    silence: Silence,
    /// Hosts that are not used, with reasons.
    refusals: PendingNotes,
    /// Other lines about hosts.
    notes: PendingNotes,
}

impl<T> Deref for HostLinks<T> {
    type Target = [HostLink<T>];

    fn deref(&self) -> &[HostLink<T>] {
        &self.links
    }
}

impl<T> DerefMut for HostLinks<T> {
    fn deref_mut(&mut self) -> &mut [HostLink<T>] {
        &mut self.links
    }
}

impl<T> HostLinks<T> {
    /// Connects to the hosts of `plans`, along a tree if more than `width` of them are reached by ssh. Hosts that are
    /// added later are connected to from this machine.
    ///
    /// `tell` receives each event with the number of its host, for [`HostLinks::handle_event`], and returns whether a
    /// reader is left. `note` receives a line for the user. `of` makes the owner's own state of a host. An error means
    /// that no thread could be started.
    pub fn open(
        of: fn(&HostPlan) -> T,
        plans: Vec<HostPlan>,
        width: usize,
        options: Options,
        tell: impl Fn(usize, HostEvent) -> bool + Clone + Send + Sync + 'static,
        note: impl Fn(String) + Send + Sync + 'static,
    ) -> io::Result<HostLinks<T>> {
        let tell_of = move |at: usize| {
            let tell = tell.clone();
            move |heard| tell(at, heard)
        };
        let member =
            |(at, plan): (usize, &HostPlan)| BranchMember { plan: plan.clone(), on_event: Arc::new(tell_of(at)) };
        attend_all(plans.iter().enumerate().map(member), width, &options, note)?;
        Ok(HostLinks::new(of, plans, move |at, plan| attend(plan, options.clone(), tell_of(at))))
    }

    /// Makes links to hosts whose connections are being opened already. `reach` opens a connection to a host that is
    /// added later.
    pub fn new(
        of: fn(&HostPlan) -> T,
        plans: Vec<HostPlan>,
        reach: impl Fn(usize, HostPlan) -> io::Result<()> + Send + 'static,
    ) -> HostLinks<T> {
        let now = Instant::now();
        let link = |plan| HostLink::to(of(&plan), plan, now);
        let links = plans.into_iter().map(link).collect();
        let (refusals, notes) = (PendingNotes::new(now), PendingNotes::new(now));
        let (reach, silence) = (Box::new(reach), Silence::new(now));
        HostLinks { links, of, reach, unbegun: Vec::new(), silence, refusals, notes }
    }

    /// Adds a host, or another worker on a host that had one.
    pub fn add_host(&mut self, plan: HostPlan) {
        self.links.push(HostLink::to((self.of)(&plan), plan, Instant::now()));
        self.connect(self.links.len() - 1);
    }

    /// Replaces this link by a new one.
    pub fn follow(&mut self, at: usize, plan: HostPlan) {
        self.links[at].followed = true;
        self.add_host(plan);
    }

    fn connect(&mut self, at: usize) {
        let plan = self.links[at].plan.clone();
        let host = plan.name.clone();
        if let Err(source) = (self.reach)(at, plan) {
            self.unbegun.push((at, LaunchError::Thread { host, source }));
        }
    }

    /// Takes an event about a host and returns the decision that is left to the owner. Connects from here to a host
    /// that its leader does not reach.
    pub fn handle_event(&mut self, at: usize, heard: HostEvent, now: Instant) -> Option<HostNews> {
        if self.links[at].is_pending() && matches!(heard, HostEvent::Astray { .. }) {
            self.connect(at);
        }
        self.links[at].handle_event(heard, now)
    }

    /// Returns hosts that have been silent for too long; called from time to time. After a pause of this process
    /// itself silence proves nothing.
    pub fn look(&mut self, now: Instant) -> Vec<(usize, HostNews)> {
        if self.silence.is_own(now) {
            self.links.iter_mut().for_each(|link| link.heard = now);
        }
        let unbegun = std::mem::take(&mut self.unbegun).into_iter().map(|(at, error)| (at, HostNews::Refused(error)));
        let lost = self.links.iter_mut().enumerate().filter(|(_, link)| link.is_silent(now)).map(|(at, link)| {
            link.unlink(Standing::Lost, Duration::ZERO);
            let reason = format!("the connection was lost: no message for {HOST_LOST_S} s");
            (at, HostNews::Lost(reason, None))
        });
        unbegun.chain(lost).collect()
    }

    /// Opens another link to a lost host whose old worker may have ended because this machine slept or was stopped.
    /// The line about it is gathered with similar ones.
    pub fn come_back(&mut self, at: usize, now: Instant) {
        let link = &self.links[at];
        if matches!(link.plan.via, Via::Ssh { .. }) && !link.followed && self.silence.explains(now) {
            let plan = link.plan.clone();
            self.add_note(at, &format!("{} is reconnected: this run had been suspended", plan.name), now);
            self.follow(at, plan);
        }
    }

    /// Adds a line for the user about this host. Equal lines about several hosts become one: after a pause, or when a
    /// switch fails, the same line is true for each of hundreds.
    pub fn add_note(&mut self, at: usize, text: &str, now: Instant) {
        self.notes.add(&self.links[at].plan.name, text.into(), now);
    }

    /// Returns the gathered lines, when the first has waited for others, or if `ends`.
    pub fn notes(&mut self, now: Instant, ends: bool) -> Vec<String> {
        self.notes.take(now, ends)
    }

    /// Returns the hosts of which no event has come yet.
    pub fn pending(&self) -> impl Iterator<Item = &HostPlan> {
        self.links.iter().filter(|link| link.is_pending()).map(|link| &link.plan)
    }

    /// Returns the names of hosts that are not used.
    pub fn refused(&self) -> impl Iterator<Item = String> {
        self.links.iter().filter(|link| link.is_refused()).map(|link| link.plan.name.clone())
    }

    /// Stops using a host. `why` is reported together with equal reasons of other hosts.
    pub fn refuse(&mut self, at: usize, why: Option<String>, now: Instant) {
        let link = &mut self.links[at];
        link.unlink(Standing::Refused, ENDS_WITHIN);
        if let Some(why) = why {
            self.refusals.add(&link.plan.name, why, now);
        }
    }

    /// Returns the lines about hosts that are not used, equal reasons in one line. They are due when all hosts have
    /// answered, when the first reason has waited for others, or if `ends`.
    pub fn refusals(&mut self, now: Instant, ends: bool) -> Vec<String> {
        let at_once = ends || self.pending().next().is_none();
        self.refusals.take(now, at_once)
    }

    /// Sends the queued messages of each link.
    pub fn flush(&mut self) {
        for link in self.links.iter_mut().filter(|link| !link.out.is_empty()) {
            let frames = std::mem::take(&mut link.out);
            let _ = link.to.as_ref().map(|to| to.send(frames));
        }
    }

    /// Sends a last message to the hosts that are up and want it, and discards all messages queued before. Returns
    /// how many are up.
    pub fn say_last(&mut self, message: &ToWorker, wants: impl Fn(&T) -> bool) -> usize {
        let mut up = 0;
        for link in &mut self.links {
            link.out.clear();
            up += usize::from(link.is_up());
            if link.is_up() && wants(link) {
                link.queue_message(message).expect("a message without a list");
            }
        }
        self.flush();
        up
    }

    /// Ends the input of all links, and waits for the processes behind them, for at most `grace`. Then ends those
    /// that are left.
    pub fn end(&mut self, grace: Duration) {
        let ends: Vec<_> = self.links.iter_mut().filter_map(|link| link.unlink(Standing::Lost, grace)).collect();
        ends.into_iter().for_each(|end| drop(end.join()));
    }
}
