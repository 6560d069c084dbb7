//! The hosts of a run or a build, a link to each: whether its worker is there, what may be said to it, whether what it
//! ran may still run, and whether another link follows. What is heard goes in, what is left to decide comes out; only
//! who is connected to by `reach` touches the world.

mod gathered;
mod link;
#[cfg(test)]
mod tests;

pub use link::{HostNews, Link};

use crate::silence::Silence;
use crate::wire::{HOST_LOST_S, ToWorker};
use crate::{Heard, HostPlan, LaunchError, Member, Options, Via, attend, attend_all};
use gathered::Gathered;
use link::{ENDS_WITHIN, Standing};
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::{Duration, Instant};

type Reach = dyn Fn(usize, HostPlan) -> io::Result<()> + Send;

/// All hosts that were asked for, by number.
pub struct Links<T> {
    links: Vec<Link<T>>,
    of: fn(&HostPlan) -> T,
    reach: Box<Reach>,
    /// Links that nothing could be begun for.
    unbegun: Vec<(usize, LaunchError)>,
    silence: Silence,
    /// Hosts that are not used, and why.
    refusals: Gathered,
    /// What else has become of hosts.
    notes: Gathered,
}

impl<T> Deref for Links<T> {
    type Target = [Link<T>];

    fn deref(&self) -> &[Link<T>] {
        &self.links
    }
}

impl<T> DerefMut for Links<T> {
    fn deref_mut(&mut self) -> &mut [Link<T>] {
        &mut self.links
    }
}

impl<T> Links<T> {
    /// Connects to hosts, along a tree where ssh reaches more than `width` of them, and to those that are asked for later
    /// from here. `tell` takes what is heard of which, for [`Links::hear`], and says whether anybody still listens; `note`
    /// takes a line for the user; `of` makes what the owner knows of a host besides. An error says that there is no thread
    /// for it.
    pub fn open(
        of: fn(&HostPlan) -> T,
        plans: Vec<HostPlan>,
        width: usize,
        options: Options,
        tell: impl Fn(usize, Heard) -> bool + Clone + Send + Sync + 'static,
        note: impl Fn(String) + Send + Sync + 'static,
    ) -> io::Result<Links<T>> {
        let tell_of = move |at: usize| {
            let tell = tell.clone();
            move |heard| tell(at, heard)
        };
        let member = |(at, plan): (usize, &HostPlan)| Member { plan: plan.clone(), tell: Arc::new(tell_of(at)) };
        attend_all(plans.iter().enumerate().map(member), width, &options, note)?;
        Ok(Links::new(of, plans, move |at, plan| attend(plan, options.clone(), tell_of(at))))
    }

    /// Those that are being connected to, and what connects to one.
    pub fn new(
        of: fn(&HostPlan) -> T,
        plans: Vec<HostPlan>,
        reach: impl Fn(usize, HostPlan) -> io::Result<()> + Send + 'static,
    ) -> Links<T> {
        let now = Instant::now();
        let link = |plan| Link::to(of(&plan), plan, now);
        let links = plans.into_iter().map(link).collect();
        let (refusals, notes) = (Gathered::new(now), Gathered::new(now));
        let (reach, silence) = (Box::new(reach), Silence::new(now));
        Links { links, of, reach, unbegun: Vec::new(), silence, refusals, notes }
    }

    /// Another host, or another worker on one that had one.
    pub fn ask(&mut self, plan: HostPlan) {
        self.links.push(Link::to((self.of)(&plan), plan, Instant::now()));
        self.connect(self.links.len() - 1);
    }

    /// Another in the place of this one.
    pub fn follow(&mut self, at: usize, plan: HostPlan) {
        self.links[at].followed = true;
        self.ask(plan);
    }

    fn connect(&mut self, at: usize) {
        let plan = self.links[at].plan.clone();
        let host = plan.name.clone();
        if let Err(source) = (self.reach)(at, plan) {
            self.unbegun.push((at, LaunchError::Thread { host, source }));
        }
    }

    /// What is left to decide of it. One that its leader does not reach is connected to from here.
    pub fn hear(&mut self, at: usize, heard: Heard, now: Instant) -> Option<HostNews> {
        if self.links[at].is_pending() && matches!(heard, Heard::Astray { .. }) {
            self.connect(at);
        }
        self.links[at].hear(heard, now)
    }

    /// From time to time: hosts of which nothing was heard for too long. After a pause of our own that proves nothing.
    pub fn look(&mut self, now: Instant) -> Vec<(usize, HostNews)> {
        if self.silence.is_own(now) {
            self.links.iter_mut().for_each(|link| link.heard = now);
        }
        let unbegun = std::mem::take(&mut self.unbegun).into_iter().map(|(at, error)| (at, HostNews::Refused(error)));
        let lost = self.links.iter_mut().enumerate().filter(|(_, link)| link.is_silent(now)).map(|(at, link)| {
            link.unlink(Standing::Lost, Duration::ZERO);
            let reason = format!("the link to it was lost: nothing was heard for {HOST_LOST_S} s");
            (at, HostNews::Lost(reason, None))
        });
        unbegun.chain(lost).collect()
    }

    /// A host that was lost gets another worker if the one that it had heard nothing while this machine slept, or was
    /// stopped. That is told with its like.
    pub fn come_back(&mut self, at: usize, now: Instant) {
        let link = &self.links[at];
        if matches!(link.plan.via, Via::Ssh { .. }) && !link.followed && self.silence.explains(now) {
            let plan = link.plan.clone();
            self.tell(at, &format!("{} is connected to anew: the run had stood still", plan.name), now);
            self.follow(at, plan);
        }
    }

    /// Something for the user about this host, which is told with what others have alike: after a pause, or where a switch
    /// fails, that is as much for each of hundreds.
    pub fn tell(&mut self, at: usize, text: &str, now: Instant) {
        self.notes.add(&self.links[at].plan.name, text.into(), now);
    }

    /// Lines of what was to be told: when the first has waited for the others, or at the end.
    pub fn notes(&mut self, now: Instant, ends: bool) -> Vec<String> {
        self.notes.take(now, ends)
    }

    /// Hosts of which nothing was heard yet.
    pub fn pending(&self) -> impl Iterator<Item = &HostPlan> {
        self.links.iter().filter(|link| link.is_pending()).map(|link| &link.plan)
    }

    /// Names of hosts that are not used.
    pub fn refused(&self) -> impl Iterator<Item = String> {
        self.links.iter().filter(|link| link.is_refused()).map(|link| link.plan.name.clone())
    }

    /// It is not used; `why` is told with those of others that say alike.
    pub fn refuse(&mut self, at: usize, why: Option<String>, now: Instant) {
        let link = &mut self.links[at];
        link.unlink(Standing::Refused, ENDS_WITHIN);
        if let Some(why) = why {
            self.refusals.add(&link.plan.name, why, now);
        }
    }

    /// Lines on hosts that are not used, those that say alike in one: when all have answered, or the first has waited
    /// for the others; or at the end.
    pub fn refusals(&mut self, now: Instant, ends: bool) -> Vec<String> {
        let at_once = ends || self.pending().next().is_none();
        self.refusals.take(now, at_once)
    }

    /// Sends what was said to each.
    pub fn flush(&mut self) {
        for link in self.links.iter_mut().filter(|link| !link.out.is_empty()) {
            let frames = std::mem::take(&mut link.out);
            let _ = link.to.as_ref().map(|to| to.send(frames));
        }
    }

    /// Sends a last word to those that are up and want it, and none of what was said and not sent before. How many are up.
    pub fn say_last(&mut self, message: &ToWorker, wants: impl Fn(&T) -> bool) -> usize {
        let mut up = 0;
        for link in &mut self.links {
            link.out.clear();
            up += usize::from(link.is_up());
            if link.is_up() && wants(link) {
                link.say(message).expect("a message without a list");
            }
        }
        self.flush();
        up
    }

    /// The input of all ends, and what carries their links within `grace`, or is ended then.
    pub fn end(&mut self, grace: Duration) {
        let ends: Vec<_> = self.links.iter_mut().filter_map(|link| link.unlink(Standing::Lost, grace)).collect();
        ends.into_iter().for_each(|end| drop(end.join()));
    }
}
