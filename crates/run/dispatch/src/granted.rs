//! Hosts that a scheduler grants and takes away: asking again after a loss,
//! asking for others, giving back what is idle, taking back what was not granted.

use crate::run::Shell;
use crate::settings::Listener;
use homing_launch::wire::ToWorker;
use homing_launch::{HostPlan, Stop, Via};
use std::time::{Duration, Instant};

/// A job may be killed that often on one node before it is asked for no more.
const ROUNDS: u32 = 20;
/// A queue that is longer than this is worth a word.
const QUEUE_IS_NEWS: Duration = Duration::from_secs(5);
/// With no host at all for so long, one that does not hold the data serves
/// better than none; the queue of a batch system seldom moves faster.
const BUSY_FOR_LONG: Duration = Duration::from_secs(30);

impl<L: Listener> Shell<'_, L> {
    /// Asks Slurm for another worker where one was lost.
    pub(crate) fn ask_again(&mut self, at: usize) {
        let HostPlan { name, via: Via::Slurm(seat), slots } = &self.links[at].plan else { return };
        if seat.round >= ROUNDS || self.core.is_over() {
            return;
        }
        let mut seat = seat.clone();
        seat.round += 1;
        seat.stop = Stop::default();
        let plan = HostPlan { name: name.clone(), via: Via::Slurm(seat), slots: *slots };
        self.asked = Instant::now();
        self.links.follow(at, plan);
    }

    /// Gives back what is idle, asks for others when nothing is granted, and says once what is waited for.
    pub(crate) fn tend_slurm(&mut self, elapsed: Duration) {
        let over = self.core.nothing_to_start();
        for at in 0..self.links.len() {
            let closed = self.links[at].ix.is_some_and(|ix| !self.core.hosts().is_up(ix));
            if closed || (over && self.core.running() > 0) {
                self.release_if_idle(at);
            }
        }
        if over {
            self.withdraw();
        } else if self.core.is_stranded() && self.asked.elapsed() > BUSY_FOR_LONG {
            self.ask_for_a_spare("nothing was granted for long");
        }
        if !self.patience_told && elapsed > QUEUE_IS_NEWS {
            self.patience_told = true;
            self.tell_what_is_waited_for();
        }
    }

    fn tell_what_is_waited_for(&mut self) {
        let waits = self.links.pending().filter(|plan| matches!(plan.via, Via::Slurm(_)));
        let names: Vec<&str> = waits.map(|plan| plan.name.as_str()).collect();
        if !names.is_empty() {
            let text = format!("waiting for Slurm to grant {}; `squeue --me` says why", names.join(", "));
            self.listener.note(&text);
        }
    }

    fn ask_for_a_spare(&mut self, why: &str) -> bool {
        let Some(plan) = self.spares.pop_front() else { return false };
        self.listener.note(&format!("{why}: {} is asked for, too; it reads over the network", plan.name));
        self.asked = Instant::now();
        self.links.ask(plan);
        true
    }

    /// Tasks wait, and no host is there or asked for: asks for one that was given
    /// back, else for a spare. False when there is none to ask for.
    pub(crate) fn revive(&mut self) -> bool {
        if self.core.is_over() {
            return false;
        }
        let before = self.links.len();
        for at in 0..before {
            let link = &self.links[at];
            if link.released && !link.drained && !link.is_followed() {
                self.ask_again(at);
            }
        }
        self.links.len() > before || self.ask_for_a_spare("no host is left")
    }

    /// Nodes that are to be empty get nothing new, and are given back when what they run has ended.
    pub(crate) fn leave_alone(&mut self, nodes: &[(String, String)]) {
        for (name, why) in nodes {
            self.spares.retain(|spare| spare.name != *name);
            for at in 0..self.links.len() {
                let link = &mut self.links[at];
                if link.plan.name != *name {
                    continue;
                }
                link.drained = true;
                match (link.ix, &link.plan.via) {
                    (Some(ix), _) => self.core.host_draining(ix, why),
                    // It would wait for the end of the maintenance.
                    (None, Via::Slurm(seat)) => seat.stop.stop(),
                    (None, _) => {}
                }
            }
        }
    }

    fn release_if_idle(&mut self, at: usize) {
        let link = &mut self.links[at];
        let wanted = matches!(link.plan.via, Via::Slurm(_)) && link.is_up() && !link.released;
        let Some(ix) = link.ix.filter(|ix| wanted && self.core.is_idle(*ix)) else { return };
        link.say(&ToWorker::Finish).expect("a message without a list");
        // Its input must stay open until it has said good-bye; the reader thread sees the end.
        link.released = true;
        self.core.host_released(ix);
    }

    /// Takes back the requests that were not granted; returns how many there are.
    pub(crate) fn withdraw(&self) -> usize {
        let stops = self.links.pending().filter_map(|plan| match &plan.via {
            Via::Slurm(seat) => Some(&seat.stop),
            _ => None,
        });
        stops.map(|stop| stop.stop()).count()
    }
}
