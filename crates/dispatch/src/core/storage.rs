//! The core's dealings with storage: limits change, and tasks beyond them stand
//! still until there is room again.

use super::terms::Running;
use super::{Action, Core};
use crate::admission::{Reads, storage_of};
use homing_clock::Mono;
use homing_model::Pulse;
use homing_model::event::What;
use homing_place::HostIx;
use homing_wire::ToWorker;

/// Only a task that has just begun is made to stand still: it has the least to lose.
const YOUNG_US: u64 = 10_000_000;
/// No task stands still longer: its peers on a network might give it up.
const STILL_MOST_US: u64 = 30_000_000;

impl Core {
    /// A quick look at a host's storage: its limit may change.
    pub fn pulse(&mut self, host: HostIx, pulse: &Pulse, now: Mono) {
        pulse.mover.into_iter().for_each(|mover| self.seen_moving(host, mover, now));
        let waiting = self.placer.waiting();
        let Some(change) = self.admission.pulse(host, pulse, waiting) else { return };
        let held = if change.hold { self.hold(host, now) } else { 0 };
        self.wake(host, now);
        let storage = self.hosts.name(host).to_string();
        self.actions.push(Action::Journal(What::Limit { storage, limit: change.limit, why: change.why, held }));
    }

    /// An attempt has ended or is lost; `wall_us` 0 when it is no measure of its kind.
    pub(super) fn leave_storage(&mut self, running: &Running, wall_us: u64, now: Mono) {
        let storage = storage_of(running.host, &running.placed);
        if !running.counted {
            return;
        }
        if running.stillness.since_us().is_none() {
            self.admission.ended(storage, running.reads(), running.moved_us(wall_us, now));
        }
        self.wake(storage, now);
    }

    /// Lets the youngest tasks beyond the limit of `storage` stand still; returns their number.
    pub(super) fn hold(&mut self, storage: HostIx, now: Mono) -> u32 {
        let young = |r: &Running| !r.killed && r.stillness.since_us().is_none() && now.us_since(r.started) < YOUNG_US;
        let mut tickets = self.on_storage(storage, young);
        tickets.sort_unstable_by(|a, b| b.cmp(a));
        tickets.truncate(self.admission.excess(storage) as usize);
        for ticket in &tickets {
            let running = self.running.get_mut(ticket).expect("listed above");
            running.stillness.set(true, now.us());
            self.placer.stand(running.host, running.waiting.offer.task.id, true, now.us());
            self.admission.stands(storage, running.reads());
            self.actions.push(Action::Send(running.host, ToWorker::Hold { ticket: *ticket, still: true }));
        }
        tickets.len() as u32
    }

    /// Tells placement how many more tasks `storage` takes.
    pub(super) fn tell_placer(&mut self, storage: HostIx) {
        self.placer.set_storage(storage, self.admission.room(storage));
    }

    /// Those that stand still go on as long as there is room, before others start.
    pub(super) fn wake(&mut self, storage: HostIx, now: Mono) {
        if !self.admission.is_full(storage) {
            let mut tickets = self.on_storage(storage, |r| r.stillness.since_us().is_some());
            tickets.sort_unstable();
            for ticket in tickets {
                if self.admission.is_full(storage) {
                    break;
                }
                self.go_on(ticket, now);
            }
        }
        self.tell_placer(storage);
    }

    pub(super) fn go_on(&mut self, ticket: u64, now: Mono) {
        let Some(running) = self.running.get_mut(&ticket) else { return };
        running.stillness.set(false, now.us());
        self.placer.stand(running.host, running.waiting.offer.task.id, false, now.us());
        let (storage, reads) = (storage_of(running.host, &running.placed), running.reads());
        self.admission.started(storage, reads);
        self.actions.push(Action::Send(running.host, ToWorker::Hold { ticket, still: false }));
    }

    /// Nobody stands still for too long, whatever the limit.
    pub(super) fn end_stillness(&mut self, now: Mono) {
        let too_long =
            |r: &Running| r.stillness.since_us().is_some_and(|since| now.us().saturating_sub(since) > STILL_MOST_US);
        let tickets: Vec<u64> = self.running.iter().filter(|(_, r)| too_long(r)).map(|(t, _)| *t).collect();
        for ticket in tickets {
            self.go_on(ticket, now);
        }
    }

    fn on_storage(&self, storage: HostIx, which: impl Fn(&Running) -> bool) -> Vec<u64> {
        let there = |r: &Running| r.counted && storage_of(r.host, &r.placed) == storage && which(r);
        self.running.iter().filter(|(_, r)| there(r)).map(|(ticket, _)| *ticket).collect()
    }
}

impl Running {
    pub(super) fn reads(&self) -> Reads {
        let bytes = if self.placed.need.reads() { self.placed.need.total } else { 0 };
        Reads { bytes, network: !self.waiting.offer.volumes.is_empty() }
    }

    /// Of its wall time that in which it did not stand still.
    pub(super) fn moved_us(&self, wall_us: u64, now: Mono) -> u64 {
        wall_us.saturating_sub(self.stillness.sum_us(now.us()))
    }
}
