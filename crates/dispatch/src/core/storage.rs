//! The core's dealings with storage: limits change, and placement is told.

use super::terms::Running;
use super::{Action, Core};
use crate::admission::{Reads, storage_of};
use homing_model::Pulse;
use homing_model::event::What;
use homing_place::HostIx;

impl Core {
    /// A quick look at a host's storage: its limit may change.
    pub fn pulse(&mut self, host: HostIx, pulse: &Pulse) {
        pulse.mover.into_iter().for_each(|mover| self.seen_moving(host, mover));
        let waiting = self.placer.waiting();
        let Some(change) = self.admission.pulse(host, pulse, waiting) else { return };
        self.tell_placer(host);
        let storage = self.hosts.name(host).to_string();
        self.actions.push(Action::Journal(What::Limit { storage, limit: change.limit, why: change.why }));
    }

    /// An attempt has ended or is lost; `wall_us` 0 when it is no measure of its kind.
    pub(super) fn leave_storage(&mut self, running: &Running, wall_us: u64) {
        if running.counted {
            let storage = storage_of(running.host, &running.placed);
            self.admission.ended(storage, running.reads(), wall_us);
            self.tell_placer(storage);
        }
    }

    /// Tells placement how many more tasks `storage` takes.
    pub(super) fn tell_placer(&mut self, storage: HostIx) {
        self.placer.set_storage(storage, self.admission.room(storage));
    }
}

impl Running {
    pub(super) fn reads(&self) -> Reads {
        let bytes = if self.placed.need.reads() { self.placed.need.total } else { 0 };
        Reads { bytes, network: !self.waiting.offer.volumes.is_empty() }
    }
}
