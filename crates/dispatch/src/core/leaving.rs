//! How hosts leave a run: lost with what ran there, drained, given back.

use super::terms::Stage;
use super::{Action, Core};
use homing_clock::Moment;
use homing_model::Outcome;
use homing_model::event::What;
use homing_place::HostIx;

/// Where the user did not say how often to try, a task that keeps losing its
/// host is given up after so many losses: a command that takes its machine down
/// must not take all of them down.
pub(super) const MAX_LOSSES: u32 = 3;

impl Core {
    /// A worker, its host or the link to it is gone.
    pub fn host_lost(&mut self, host: HostIx, reason: &str, now: Moment) {
        self.host_ended(host, reason, false, now);
    }

    /// As [`Core::host_lost`]. When the loss `counts`, tasks may be to blame for
    /// it, and what ran is tried again only as often as failing tasks are. How
    /// often the user said (`--retries`) holds for every kind of loss.
    pub fn host_ended(&mut self, host: HostIx, reason: &str, counts: bool, now: Moment) {
        if !self.hosts.leave(host) {
            return;
        }
        self.placer.host_lost(host);
        self.count_licenses();
        self.stands.lost(host);
        let name = self.hosts.name(host).to_string();
        self.actions.push(Action::Note(format!("{name} is lost: {reason}")));
        self.actions.push(Action::Journal(What::HostLost { host: name, reason: reason.into() }));
        let mut gone: Vec<u64> = self.running.iter().filter(|(_, r)| r.host == host).map(|(t, _)| *t).collect();
        gone.sort_unstable();
        for ticket in gone {
            let mut running = self.running.remove(&ticket).expect("listed above");
            self.leave_storage(&running, 0);
            self.power.claim(host, running.placed.need.cpus, false);
            running.waiting.losses += 1;
            let outcome = match running.killed {
                true if running.excessive => Outcome::OutputLimit,
                true => Outcome::Killed,
                false => Outcome::Lost(reason.into()),
            };
            let tries_left = match (self.policy.tries, counts) {
                (Some(tries), _) => running.waiting.attempt < tries,
                (None, true) => false,
                (None, false) => running.waiting.losses < MAX_LOSSES,
            };
            let again = !running.killed && tries_left && self.stage == Stage::Going;
            self.close(ticket, running, outcome, None, again, now);
        }
    }

    /// Nothing new is sent to a host whose administrator wants it empty; what runs there may end.
    pub fn host_draining(&mut self, host: HostIx, reason: &str) {
        if self.hosts.down(host) {
            self.placer.host_lost(host);
            self.stands.lost(host);
            let text = format!("{} gets no new tasks: {reason}", self.hosts.name(host));
            self.actions.push(Action::Note(text));
        }
    }

    /// A host is given back; the run goes on without it.
    pub fn host_released(&mut self, host: HostIx) {
        if self.hosts.leave(host) {
            self.placer.host_lost(host);
            self.stands.lost(host);
            let text = format!("{} is released: nothing is left for it", self.hosts.name(host));
            self.actions.push(Action::Journal(What::Note { text }));
        }
    }

    /// Nothing runs there.
    pub fn is_idle(&self, host: HostIx) -> bool {
        !self.running.values().any(|r| r.host == host)
    }

    /// Gets no new tasks, though it may still run some.
    pub fn is_closed(&self, host: HostIx) -> bool {
        !self.hosts.is_up(host)
    }

    /// Whether hosts may still join: then no task is given up for want of a host.
    pub fn expect_hosts(&mut self, expecting: bool) {
        self.expecting = expecting;
    }
}
