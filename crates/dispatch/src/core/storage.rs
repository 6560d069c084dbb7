//! The core's dealings with storage: limits change, and tasks beyond them stand
//! still until there is room again.

use super::terms::Running;
use super::{Action, Core};
use crate::admission::{Reads, storage_of};
use homing_model::Pulse;
use homing_model::event::What;
use homing_place::HostIx;
use homing_wire::ToWorker;

/// Only a task that has just begun is made to stand still: it has the least to lose.
const YOUNG_NS: i64 = 10_000_000_000;
/// No task stands still longer: its peers on a network might give it up.
const STILL_MOST_US: u64 = 30_000_000;

impl Core {
    /// A quick look at a host's storage: its limit may change.
    pub fn pulse(&mut self, host: HostIx, pulse: &Pulse, now_ns: i64) {
        pulse.mover.into_iter().for_each(|mover| self.seen_moving(host, mover, now_ns));
        let waiting = self.placer.waiting();
        let Some(change) = self.admission.pulse(host, pulse, waiting) else { return };
        let held = if change.hold { self.hold(host, now_ns) } else { 0 };
        self.wake(host, now_ns);
        let storage = self.hosts.name(host).to_string();
        self.actions.push(Action::Journal(What::Limit { storage, limit: change.limit, why: change.why, held }));
    }

    /// An attempt has ended or is lost; `wall_us` 0 when it is no measure of its kind.
    pub(super) fn leave_storage(&mut self, running: &Running, wall_us: u64, now_ns: i64) {
        let storage = storage_of(running.host, &running.placed);
        if !running.counted {
            return;
        }
        if running.stillness.since_us().is_none() {
            self.admission.ended(storage, running.reads(), running.moved_us(wall_us, now_ns));
        }
        self.wake(storage, now_ns);
    }

    /// Lets the youngest tasks beyond the limit of `storage` stand still; returns their number.
    pub(super) fn hold(&mut self, storage: HostIx, now_ns: i64) -> u32 {
        let young = |r: &Running| !r.killed && r.stillness.since_us().is_none() && now_ns - r.start_ns < YOUNG_NS;
        let mut tickets = self.on_storage(storage, young);
        tickets.sort_unstable_by(|a, b| b.cmp(a));
        tickets.truncate(self.admission.excess(storage) as usize);
        for ticket in &tickets {
            let running = self.running.get_mut(ticket).expect("listed above");
            running.stillness.set(true, us(now_ns));
            self.placer.stand(running.host, running.waiting.offer.task.id, true, us(now_ns));
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
    pub(super) fn wake(&mut self, storage: HostIx, now_ns: i64) {
        if !self.admission.is_full(storage) {
            let mut tickets = self.on_storage(storage, |r| r.stillness.since_us().is_some());
            tickets.sort_unstable();
            for ticket in tickets {
                if self.admission.is_full(storage) {
                    break;
                }
                self.go_on(ticket, now_ns);
            }
        }
        self.tell_placer(storage);
    }

    pub(super) fn go_on(&mut self, ticket: u64, now_ns: i64) {
        let Some(running) = self.running.get_mut(&ticket) else { return };
        running.stillness.set(false, us(now_ns));
        self.placer.stand(running.host, running.waiting.offer.task.id, false, us(now_ns));
        let (storage, reads) = (storage_of(running.host, &running.placed), running.reads());
        self.admission.started(storage, reads);
        self.actions.push(Action::Send(running.host, ToWorker::Hold { ticket, still: false }));
    }

    /// Nobody stands still for too long, whatever the limit.
    pub(super) fn end_stillness(&mut self, now_ns: i64) {
        let too_long = |r: &Running| r.stillness.since_us().is_some_and(|since| us(now_ns) - since > STILL_MOST_US);
        let tickets: Vec<u64> = self.running.iter().filter(|(_, r)| too_long(r)).map(|(t, _)| *t).collect();
        for ticket in tickets {
            self.go_on(ticket, now_ns);
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
    pub(super) fn moved_us(&self, wall_us: u64, now_ns: i64) -> u64 {
        wall_us.saturating_sub(self.stillness.sum_us(us(now_ns)))
    }
}

/// As placement counts time.
fn us(now_ns: i64) -> u64 {
    (now_ns / 1000) as u64
}
