//! Hosts that a scheduler grants and takes away: asking again after a loss,
//! giving back what is idle, taking back what was not granted.

use crate::run::{HostPlan, Link, Listener, Shell};
use crate::wires::connect;
use homing_launch::Via;
use homing_wire::ToWorker;
use std::time::Duration;

/// A job may be killed that often on one node before it is asked for no more.
const ROUNDS: u32 = 20;
/// A queue that is longer than this is worth a word.
const QUEUE_IS_NEWS: Duration = Duration::from_secs(5);

impl<L: Listener> Shell<'_, L> {
    /// Asks Slurm for another worker where one was lost.
    pub(crate) fn ask_again(&mut self, at: usize) {
        let HostPlan { name, via: Via::Slurm(seat), slots } = &self.settings_hosts[at] else { return };
        if seat.round >= ROUNDS || self.core.is_over() {
            return;
        }
        let mut seat = seat.clone();
        seat.round += 1;
        let plan = HostPlan { name: name.clone(), via: Via::Slurm(seat), slots: *slots };
        let new = self.links.len();
        self.settings_hosts.push(plan.clone());
        self.links.push(Link::new());
        connect(new, plan, self.launch.clone(), self.queue.clone());
    }

    /// Gives idle workers back when nothing is left to start, and says once what is waited for.
    pub(crate) fn tend_slurm(&mut self, elapsed: Duration) {
        if self.core.nothing_to_start() && self.core.running() > 0 {
            for at in 0..self.links.len() {
                self.release_if_idle(at);
            }
        }
        if !self.patience_told && elapsed > QUEUE_IS_NEWS {
            self.patience_told = true;
            let waits = self.links.iter().zip(&self.settings_hosts);
            let waits = waits.filter(|(link, plan)| link.is_pending() && matches!(plan.via, Via::Slurm(_)));
            let names: Vec<&str> = waits.map(|(_, plan)| plan.name.as_str()).collect();
            if !names.is_empty() {
                let text = format!("waiting for Slurm to grant {}; `squeue --me` says why", names.join(", "));
                self.listener.note(&text);
            }
        }
    }

    fn release_if_idle(&mut self, at: usize) {
        let slurm = matches!(self.settings_hosts[at].via, Via::Slurm(_));
        let link = &mut self.links[at];
        let (Some(ix), Some(to)) = (link.ix, link.to.as_ref().filter(|_| slurm)) else { return };
        if !self.core.is_idle(ix) {
            return;
        }
        let mut finish = std::mem::take(&mut link.out);
        homing_wire::encode(&ToWorker::Finish, &mut finish);
        let _ = to.send(finish);
        // Its input must stay open until it has said good-bye; the reader thread sees the end.
        link.released = true;
        self.core.host_released(ix);
    }

    /// Takes back the requests that were not granted; returns how many there are.
    pub(crate) fn withdraw(&self) -> usize {
        let pending = self.links.iter().zip(&self.settings_hosts).filter(|(link, _)| link.is_pending());
        let stops = pending.filter_map(|(_, plan)| match &plan.via {
            Via::Slurm(seat) => Some(&seat.stop),
            _ => None,
        });
        stops.map(|stop| stop.stop()).count()
    }
}
