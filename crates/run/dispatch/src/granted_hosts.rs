//! Hosts that a scheduler grants and takes away. Requests a worker again after a loss, requests spare hosts, releases
//! idle hosts, and withdraws requests that were not granted.

use crate::run::Shell;
use crate::settings::Listener;
use homing_launch::wire::ToWorker;
use homing_launch::{HostPlan, Stop, Via};
use std::time::{Duration, Instant};

/// The number of times that a job may be killed on one node. After that it is not requested again.
const ROUNDS: u32 = 20;
/// The wait in the queue that is worth a note.
const QUEUE_IS_NEWS: Duration = Duration::from_secs(5);
/// After this time without any host, a host without the data is better than none. The queue of a batch system seldom
/// moves faster.
const BUSY_FOR_LONG: Duration = Duration::from_secs(30);

impl<L: Listener> Shell<'_, L> {
    /// Requests another worker from the batch system after a loss.
    pub(crate) fn ask_again(&mut self, at: usize) {
        let HostPlan { name, via: Via::Batch(seat), slots } = &self.links[at].plan else { return };
        if seat.round >= ROUNDS || self.core.is_over() {
            return;
        }
        let mut seat = seat.clone();
        seat.round += 1;
        seat.stop = Stop::default();
        let plan = HostPlan { name: name.clone(), via: Via::Batch(seat), slots: *slots };
        self.last_request = Instant::now();
        self.links.follow(at, plan);
    }

    /// Releases idle hosts, requests others if none is granted, and reports once which hosts the run waits for.
    pub(crate) fn tend_grants(&mut self, elapsed: Duration) {
        let over = self.core.nothing_to_start();
        for at in 0..self.links.len() {
            let closed = self.links[at].ix.is_some_and(|ix| !self.core.hosts().is_up(ix));
            if closed || (over && self.core.running() > 0) {
                self.release_if_idle(at);
            }
        }
        if over {
            self.withdraw();
        } else if self.core.is_stranded() && self.last_request.elapsed() > BUSY_FOR_LONG {
            self.ask_for_a_spare("no host was granted for long");
        }
        if !self.patience_told && elapsed > QUEUE_IS_NEWS {
            self.patience_told = true;
            self.tell_what_is_waited_for();
        }
    }

    fn tell_what_is_waited_for(&mut self) {
        let waits: Vec<&HostPlan> = self.links.pending().filter(|plan| plan.system().is_some()).collect();
        if let Some(system) = waits.first().and_then(|plan| plan.system()) {
            let names: Vec<&str> = waits.iter().map(|plan| plan.name.as_str()).collect();
            let (names, system, why) = (names.join(", "), system.words().name(), system.words().waiting());
            self.listener.note(&format!("waiting for {system} to grant {names}; `{why}` shows the reason"));
        }
    }

    fn ask_for_a_spare(&mut self, why: &str) -> bool {
        let Some(plan) = self.spares.pop_front() else { return false };
        self.listener.note(&format!("{why}: also requesting {}, which reads over the network", plan.name));
        self.last_request = Instant::now();
        self.links.add_host(plan);
        true
    }

    /// Requests a host if tasks wait and there is neither a host nor a request for one. Prefers released hosts to
    /// spares. Returns false if there is none to request.
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

    /// Drains nodes that their administrators want empty. Each is released when its tasks have ended.
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
                    // Such a request would wait for the end of the maintenance.
                    (None, Via::Batch(seat)) => seat.stop.stop(),
                    (None, _) => {}
                }
            }
        }
    }

    fn release_if_idle(&mut self, at: usize) {
        let link = &mut self.links[at];
        let wanted = link.plan.system().is_some() && link.is_up() && !link.released;
        let Some(ix) = link.ix.filter(|ix| wanted && self.core.is_idle(*ix)) else { return };
        link.queue_message(&ToWorker::Finish).expect("a message without a list");
        // The worker's input must stay open until it has sent its last message. The reader thread sees the end.
        link.released = true;
        self.core.host_released(ix);
    }

    /// Withdraws the requests that were not granted, and returns their number.
    pub(crate) fn withdraw(&self) -> usize {
        let stops = self.links.pending().filter_map(|plan| match &plan.via {
            Via::Batch(seat) => Some(&seat.stop),
            _ => None,
        });
        stops.map(|stop| stop.stop()).count()
    }
}
