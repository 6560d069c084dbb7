//! How hosts come to a build and leave it.

use super::{Core, say};
use crate::asked::ToConnection;
use crate::host::Host;
use crate::running::Running;
use homing_clock::wall_ns;
use homing_launch::{Keeper, Via};
use homing_model::{HostFacts, Outcome, RawText};
use homing_wire::{HOST_LOST_S, ToWorker};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// A recipe whose host is lost is given to this many.
const MOST_ATTEMPTS: u32 = 3;

impl Core {
    pub(super) fn up(&mut self, at: usize, facts: HostFacts, to: Sender<Vec<u8>>, keeper: Keeper) {
        if let (Some(why), Some(ahead), true) = (homing_fence::out_of_step(&facts), facts.ahead, self.near.fenced) {
            self.near.wrote_behind(&self.settings.root, ahead);
            return self.refuse(at, &why);
        }
        let plan = &self.hosts[at].plan;
        let usual = || (self.settings.slots)(facts.cores, plan.via == Via::Local);
        let slots = plan.slots.unwrap_or_else(usual).max(1);
        let host = &mut self.hosts[at];
        (host.facts, host.to, host.keeper, host.slots) = (facts, Some(to), Some(keeper), slots);
        (host.used, host.heard) = (vec![false; slots as usize], Instant::now());
        let cwd = RawText::from(self.settings.root.as_path());
        let (run, env) = ("make".into(), Vec::new());
        let _ = host.send(&ToWorker::Begin {
            run,
            cwd: "/".into(),
            env,
            slots,
            sample_ms: 1000,
            pulse: false,
            eager_output: true,
            nice: 0,
        });
        let _ = host.send(&ToWorker::Watch { roots: vec![cwd], umask: self.settings.umask });
        self.told.up(wall_ns(), &host.plan.name, slots, &host.facts);
    }

    /// It gets no recipes.
    pub(super) fn refuse(&mut self, at: usize, why: &str) {
        let host = &mut self.hosts[at];
        host.refused = true;
        say(&format!("{}: {why}", host.plan.name));
        self.told.unfit(wall_ns(), &host.plan.name, why.into());
    }

    /// Its recipes may run until its lease is over, and are given to nobody else before.
    pub(super) fn cut(&mut self, at: usize, why: &str) {
        if self.unlink(at) {
            let name = &self.hosts[at].plan.name;
            self.note(&format!(
                "{name} gets no more recipes: {why}; what runs there is not run elsewhere for {HOST_LOST_S} s"
            ));
        }
    }

    /// Nothing is said to it any more. False when that was so before.
    fn unlink(&mut self, at: usize) -> bool {
        let host = &mut self.hosts[at];
        (host.refused, host.keeper) = (true, None);
        host.to.take().is_some()
    }

    pub(super) fn lost(&mut self, at: usize, why: &str) {
        let linked = self.unlink(at);
        let was_up = std::mem::take(&mut self.hosts[at].slots) > 0;
        let mut tickets: Vec<u64> = self.running.iter().filter(|(_, r)| r.host == at).map(|(t, _)| *t).collect();
        tickets.sort_unstable();
        if linked || !tickets.is_empty() {
            self.note(&format!("{} is lost: {why}", self.hosts[at].plan.name));
        }
        if was_up {
            self.told.host_lost(wall_ns(), &self.hosts[at].plan.name, why);
        }
        let given: Vec<Running> = tickets.into_iter().filter_map(|t| self.give_back(t)).collect();
        for mut running in given {
            running.asked.unfit.push(at);
            let last = running.asked.attempts >= MOST_ATTEMPTS;
            self.gave_up(&running, Outcome::Lost(why.into()), last);
            if !last {
                self.waiting.push_front(running.asked);
            } else {
                let why = format!("lost with {MOST_ATTEMPTS} hosts: {}", running.asked.label());
                let _ = running.asked.reply.send(ToConnection::Failed(why));
            }
        }
    }

    pub(super) fn silent_hosts(&mut self) {
        let silent = |host: &Host| host.to.is_some() && host.heard.elapsed() > Duration::from_secs(HOST_LOST_S);
        let lost: Vec<usize> = (0..self.hosts.len()).filter(|at| silent(&self.hosts[*at])).collect();
        lost.into_iter().for_each(|at| self.lost(at, "nothing heard from it"));
    }

    /// Workers end themselves and all that they started when their input ends.
    pub(super) fn part(&mut self) {
        for running in std::mem::take(&mut self.running).into_values() {
            self.gave_up(&running, Outcome::Killed, true);
        }
        self.hosts.iter_mut().for_each(|host| host.to = None);
        for keeper in self.hosts.iter_mut().filter_map(|host| host.keeper.take()) {
            keeper.end(Duration::from_secs(2));
        }
    }
}
