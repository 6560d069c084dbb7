//! How hosts leave a run: lost with what ran there, drained, given back.

use super::terms::Stage;
use super::{Action, Core};
use homing_launch::{MOST_LOSSES, lose};
use homing_model::Outcome;
use homing_model::event::What;
use homing_os::clock::Moment;
use homing_place::HostIx;

impl Core {
    /// A worker, its host or the link to it is gone, and what ran there is lost. When the loss `counts`, tasks may be to
    /// blame for it, and what ran is tried again only as often as failing tasks are. How often the user said
    /// (`--retries`) holds for every kind of loss.
    pub fn host_lost(&mut self, host: HostIx, reason: &str, counts: bool, now: Moment) {
        if self.leaves(host) {
            let name = self.hosts.name(host).to_string();
            self.actions.push(Action::HostNote(host, format!("{name} is lost: {reason}")));
            self.actions.push(Action::Journal(What::HostLost { host: name, reason: reason.into() }));
        }
        for (ticket, mut running) in lose(&mut self.running, host) {
            self.leave_storage(&running, 0);
            self.power.claim(host, running.placed.need.cpus, false);
            running.waiting.losses += 1;
            let outcome = if running.excessive { Outcome::OutputLimit } else { running.lost(reason) };
            let tries_left = match (self.policy.tries, counts) {
                (Some(tries), _) => running.waiting.attempt < tries,
                (None, true) => false,
                (None, false) => running.waiting.losses < MOST_LOSSES,
            };
            let again = !running.killed && tries_left && self.stage == Stage::Going;
            self.close(ticket, running, outcome, None, again, now);
        }
    }

    /// Its worker is of no use any more. False when that was so before.
    fn leaves(&mut self, host: HostIx) -> bool {
        let was_there = self.hosts.leave(host);
        if was_there {
            self.forget(host);
        }
        was_there
    }

    fn forget(&mut self, host: HostIx) {
        self.placer.host_lost(host);
        self.count_licenses();
        self.stands.lost(host);
    }

    /// Nothing new is sent to a host whose administrator wants it empty; what runs there may end.
    pub fn host_draining(&mut self, host: HostIx, reason: &str) {
        if self.hosts.down(host) {
            self.forget(host);
            let text = format!("{} gets no new tasks: {reason}", self.hosts.name(host));
            self.actions.push(Action::HostNote(host, text));
        }
    }

    /// Another worker is asked for in the place of one that cannot be reached any more: it counts as lost from now on, so
    /// that nobody takes it for the other. What runs there is run elsewhere when [`Core::host_lost`] follows.
    pub fn host_replaced(&mut self, host: HostIx, reason: &str) {
        if self.leaves(host) {
            let host = self.hosts.name(host).to_string();
            self.actions.push(Action::Journal(What::HostLost { host, reason: reason.into() }));
        }
    }

    /// A host is given back; the run goes on without it.
    pub fn host_released(&mut self, host: HostIx) {
        if self.leaves(host) {
            let text = format!("{} is released: nothing is left for it", self.hosts.name(host));
            self.actions.push(Action::Journal(What::Note { text }));
        }
    }

    /// Nothing runs there.
    pub fn is_idle(&self, host: HostIx) -> bool {
        !self.running.values().any(|r| r.host == host)
    }

    /// Whether hosts may still join: then no task is given up for want of a host.
    pub fn expect_hosts(&mut self, expecting: bool) {
        self.expecting = expecting;
    }
}
