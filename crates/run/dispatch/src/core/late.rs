//! Handles a host that does not see a file as another host wrote it. The attempt ends as one that cannot start, and
//! counts as a try. If the file has changed since, the task waits for a slot again instead.

use super::Core;
use super::types::Stage;
use homing_model::{FileChange, Outcome};
use homing_os::clock::Moment;
use homing_place::HostIx;

impl Core {
    /// Ends an attempt that did not start because its host did not see `change` within the bound. `since`: another
    /// program has changed the file meanwhile, so the expected state does not exist any more.
    pub fn late(&mut self, host: HostIx, ticket: u64, change: &FileChange, why: &str, since: bool, now: Moment) {
        let Some(mut running) = self.running.remove(&ticket) else { return };
        self.release(host, ticket, &running, 0);
        self.leave_storage(&running, 0);
        let known = self.written.is_current(change);
        if since || !known {
            if known {
                self.written.forget(&change.path);
            }
            running.waiting.offer.recent.retain(|told| told.path != change.path);
            return self.enqueue(running.of.waiting);
        }
        let again = running.waiting.attempt < self.policy.tries.unwrap_or(1) && self.stage == Stage::Going;
        let why = format!("{}: {why}", self.hosts.name(host));
        self.close(ticket, running, Outcome::CannotStart(why), None, again, now);
    }
}
