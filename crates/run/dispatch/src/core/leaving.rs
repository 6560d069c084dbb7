//! Hosts that leave a run: lost with their tasks, drained, released. A lost task runs again, until it was lost with
//! [`MOST_LOSSES`] hosts or its tries are used up.

use super::types::Stage;
use super::{Action, Core};
use homing_launch::{MOST_LOSSES, lose};
use homing_model::Outcome;
use homing_model::event::EventKind;
use homing_os::clock::Moment;
use homing_place::HostIx;

impl Core {
    /// Records that a worker, its host or the link to it is gone, and its tasks are lost. If the loss `counts`, tasks
    /// may have caused it. Then they are tried again only as often as failing tasks. The user's number of tries
    /// (`--retries`) applies to every kind of loss.
    pub fn host_lost(&mut self, host: HostIx, reason: &str, counts: bool, now: Moment) {
        if self.leaves(host) {
            let name = self.hosts.name(host).to_string();
            self.actions.push(Action::HostNote(host, format!("{name} is lost: {reason}")));
            self.actions.push(Action::Journal(EventKind::HostLost { host: name, reason: reason.into() }));
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

    /// Records that a worker is not used any more. Returns false if it was not used before either.
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
        self.volume_access.lost(host);
    }

    /// Drains a host whose administrator wants it empty: it receives no new task, and its tasks may end.
    pub fn host_draining(&mut self, host: HostIx, reason: &str) {
        if self.hosts.down(host) {
            self.forget(host);
            let text = format!("{} gets no new tasks: {reason}", self.hosts.name(host));
            self.actions.push(Action::HostNote(host, text));
        }
    }

    /// Replaces a worker that cannot be reached any more: another worker is requested. The old one counts as lost
    /// from now on, so that the two are not confused. Its tasks run elsewhere once [`Core::host_lost`] follows.
    pub fn host_replaced(&mut self, host: HostIx, reason: &str) {
        if self.leaves(host) {
            let host = self.hosts.name(host).to_string();
            self.actions.push(Action::Journal(EventKind::HostLost { host, reason: reason.into() }));
        }
    }

    /// Records that a host was released. The run continues without it.
    pub fn host_released(&mut self, host: HostIx) {
        if self.leaves(host) {
            let text = format!("{} is released: no tasks are left for it", self.hosts.name(host));
            self.actions.push(Action::Journal(EventKind::Note { text }));
        }
    }

    /// Whether no task runs on the host.
    pub fn is_idle(&self, host: HostIx) -> bool {
        !self.running.values().any(|r| r.host == host)
    }

    /// Sets whether hosts may still join. If so, no task is given up for want of a host.
    pub fn expect_hosts(&mut self, expecting: bool) {
        self.expecting = expecting;
    }
}
