//! Tasks without named inputs that move bytes. Once one is seen, all tasks of its kind count at their storage.

use super::Core;
use super::types::{TaskAttempt, WaitingTask};
use crate::admission::storage_of;
use crate::kinds::Moved;
use homing_launch::wire::AttemptEnd;
use homing_model::{Mover, TaskId};
use homing_os::clock::Mono;
use homing_place::{HostIx, Need};
use std::collections::BTreeSet;

/// With `--io N`, a task that has moved nothing for so long counts as one that moves nothing.
const SHOWN_US: u64 = 1_000_000;
/// With `--io auto`, the time after the first start in which unknown tasks count as readers. A reader shows itself
/// within 10 to 150 ms. Pressure meanwhile does not delay tasks that compute.
const BEGINS_US: u64 = 250_000;

impl Core {
    /// Returns the need of a waiting task, including its kind.
    pub(super) fn need(&mut self, id: TaskId) -> Need {
        let WaitingTask { offer, .. } = &*self.waiting[&id];
        let mut need = offer.need(&self.hosts);
        need.takes = self.room.takes(&offer.task);
        if need.per_host.len() > 1 {
            need.writer = self.written.writer(&offer.reads);
        }
        if !need.reads() {
            need.kind = self.kinds.of(&offer.task.command);
            self.placer.set_moves(need.kind, self.kinds.counts(need.kind));
        }
        need.server = self.server_for(id, &need);
        self.share_hosts(id, &need);
        need
    }

    /// Whether a task with this need counts at its storage from its start.
    pub(super) fn presses(&self, need: &Need) -> bool {
        need.reads() || self.kinds.counts(need.kind)
    }

    /// Takes a worker's report on the bytes of a running task.
    pub(super) fn seen_moving(&mut self, host: HostIx, mover: Mover) {
        let Some(running) = self.running.get_mut(&mover.ticket).filter(|r| r.host == host) else { return };
        running.moved = Some(mover);
        let read = mover.read.saturating_sub(running.waiting.offer.task.stdin_bytes());
        let moved = Moved { disk: mover.disk, read, written: mover.written };
        let network = !running.waiting.offer.volumes.is_empty();
        let much = moved.is_much(running.printed.iter().sum(), network);
        if running.seen || running.placed.need.reads() || !much {
            return;
        }
        running.seen = true;
        let kind = running.placed.need.kind;
        self.tell_kind(kind, true);
    }

    /// Learns the kind of an ended task. A failed task may have ended before it moved bytes.
    pub(super) fn learn_kind(&mut self, running: &TaskAttempt, ended: &AttemptEnd) {
        if running.seen {
            return;
        }
        let calls = |count: Option<u64>| count.unwrap_or(0);
        let disk = ended.io.read_bytes + ended.io.write_bytes;
        // Its standard input came from no storage of its host.
        let read = calls(ended.io.rchar).saturating_sub(running.waiting.offer.task.stdin_bytes());
        let moved = Moved { disk, read, written: calls(ended.io.wchar) };
        let printed = running.printed.iter().sum::<u64>() + (ended.stdout.len() + ended.stderr.len()) as u64;
        let much = moved.is_much(printed, !running.waiting.offer.volumes.is_empty());
        if much || ended.outcome.is_success() {
            self.tell_kind(running.placed.need.kind, much);
        }
    }

    fn tell_kind(&mut self, kind: u8, much: bool) {
        if self.kinds.record_moved(kind, much) {
            self.recount(kind);
        }
    }

    /// With `--io N`: releases kinds that had time to move bytes and did not.
    pub(super) fn release_idle_kinds(&mut self, now: Mono) {
        let shown = |r: &&TaskAttempt| r.counted && !r.placed.need.reads() && now.us_since(r.started) >= SHOWN_US;
        let unknown = |r: &&TaskAttempt| self.kinds.is_unknown(r.placed.need.kind);
        let kinds: BTreeSet<u8> =
            self.running.values().filter(shown).filter(unknown).map(|r| r.placed.need.kind).collect();
        kinds.into_iter().for_each(|kind| self.tell_kind(kind, false));
    }

    /// With `--io auto`: ends the beginning of a run. In the beginning, unknown tasks start a few at a time like
    /// readers. Thus a slow disk does not get all of them at once.
    pub(super) fn end_beginning(&mut self, now: Mono) {
        if !(self.admission.is_auto() && self.kinds.presumes() && self.placer.waiting() > 0 && self.hosts.any_up()) {
            return;
        }
        if now.us_since(*self.begun.get_or_insert(now)) >= BEGINS_US {
            self.kinds.presume_no_more().into_iter().for_each(|kind| self.recount(kind));
        }
    }

    /// Counts all running tasks of a kind from now on, or none of them.
    fn recount(&mut self, kind: u8) {
        let counts = self.kinds.counts(kind);
        self.placer.set_moves(kind, counts);
        let of = |r: &TaskAttempt| !r.placed.need.reads() && r.placed.need.kind == kind && r.counted != counts;
        let tickets: Vec<u64> = self.running.iter().filter(|(_, r)| of(r)).map(|(ticket, _)| *ticket).collect();
        let mut storages = BTreeSet::new();
        for ticket in tickets {
            let running = self.running.get_mut(&ticket).expect("listed above");
            let (storage, reads) = (storage_of(running.host, &running.placed), running.reads());
            running.counted = counts;
            storages.insert(storage);
            if counts {
                self.admission.started(storage, reads);
            } else {
                self.admission.ended(storage, reads, 0);
            }
        }
        storages.into_iter().for_each(|storage| self.tell_placer(storage));
        if !counts {
            self.lift_unused();
        }
    }

    /// Returns the kinds that were seen to move bytes, for the next run.
    pub fn movers(&self) -> Vec<String> {
        self.kinds.movers()
    }
}
