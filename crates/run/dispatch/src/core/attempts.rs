//! An attempt at a task: its start, its messages, its end.

use super::types::{Stage, TaskAttempt, TaskDetails};
use super::{Action, AttemptRecord, Core, Offer};
use crate::admission::storage_of;
use homing_launch::Attempt;
use homing_launch::wire::{AttemptEnd, ToWorker};
use homing_model::TaskId;
use homing_model::event::{EventKind, PlannedBytes, parts};
use homing_model::{Outcome, RawText};
use homing_os::clock::{Moment, Mono};
use homing_place::{HostIx, Placed};

impl Core {
    pub(super) fn start(&mut self, host: HostIx, placed: Placed, now: Mono) {
        let Some(waiting) = self.waiting.remove(&placed.task) else { return };
        self.tickets += 1;
        let ticket = self.tickets;
        let slot = self.hosts.take_slot(host, ticket, placed.need.cpus);
        self.claim(host, &waiting.offer.task, true);
        self.power.claim(host, placed.need.cpus, true);
        let mut task = waiting.offer.task.clone();
        homing_batch::fill_slot_of(&mut task, slot);
        task.timeout_ms = task.timeout_ms.or(self.policy.timeout_ms);
        let units = self.hosts.units_of(host, &task);
        self.actions.push(Action::Journal(EventKind::TaskStarted {
            task: task.id,
            attempt: waiting.attempt,
            host: self.hosts.name(host).into(),
            slot,
            command: RawText(homing_batch::command_line(&task.command)),
            // A guess is only a preference for a place. The task may not read any of it.
            planned: (waiting.offer.located && !waiting.offer.guessed)
                .then(|| self.planned(host, &waiting.offer, &placed))
                .flatten(),
            why: (placed.need.total > 0 || waiting.offer.is_read_before())
                .then(|| waiting.offer.why(host, &self.hosts, &placed.why)),
            after: None,
        }));
        let requires = waiting.offer.requires.clone();
        let weigh = placed.need.total > 0;
        let mut ahead =
            homing_launch::wire::portions(self.written.fence(host, &waiting.offer.reads, &waiting.offer.recent));
        let fence = ahead.pop().unwrap_or_default();
        self.actions.extend(ahead.into_iter().map(|changes| Action::Send(host, ToWorker::Written { changes })));
        self.actions.push(Action::Send(host, ToWorker::Run { ticket, slot, task, requires, weigh, fence, units }));
        let storage = storage_of(host, &placed);
        let counted = self.presses(&placed.need);
        let (started, printed, tail) = (now, [0; 2], Vec::new());
        let (excessive, seen, moved) = (false, false, None);
        let given = TaskDetails { waiting, placed, slot, started, excessive, printed, tail, counted, seen, moved };
        if counted {
            self.admission.started(storage, given.reads());
            self.uses(storage, host, true);
            self.tell_placer(storage);
        }
        self.running.insert(ticket, Attempt::on(host, given));
    }

    fn planned(&self, host: HostIx, offer: &Offer, placed: &Placed) -> Option<PlannedBytes> {
        let (local, remote) = offer.by_layout(host, &self.hosts, (placed.local, placed.remote))?;
        let hosts = self.hosts.up_count().max(1) as u64;
        let held: u64 = placed.need.per_host.iter().map(|(_, bytes)| bytes).sum();
        // A file on an own disk never crosses the network: each host has its own.
        let own = offer.own.as_ref().map_or(0, |(_, bytes)| *bytes);
        let own_held = offer.own.as_ref().filter(|(name, _)| self.hosts.find(name).is_some()).map_or(0, |own| own.1);
        Some(PlannedBytes {
            local,
            remote,
            remote_if_in_turn: (placed.need.total - own).saturating_sub((held - own_held) / hosts),
            from: self.holders(host, offer, remote),
        })
    }

    /// Returns the holders of the `remote` bytes that are not on `host`.
    fn holders(&self, host: HostIx, offer: &Offer, remote: u64) -> Vec<(String, u64)> {
        if remote == 0 {
            return Vec::new();
        }
        let known = |name: &String| self.hosts.find(name);
        let name = |name: &String| known(name).map_or_else(|| name.clone(), |ix| self.hosts.name(ix).to_string());
        let others = offer.per_host.iter().filter(|held| offer.own.as_ref() != Some(held) && held.1 > 0);
        let others = others.filter(|(name, _)| known(name) != Some(host));
        let others: Vec<_> = others.map(|(holder, bytes)| (name(holder), *bytes)).collect();
        parts(remote, &others)
    }

    /// Takes the end of an attempt from a worker. Returns false for an unknown ticket: the message came after its
    /// host was given up, and changes nothing.
    pub fn ended(&mut self, host: HostIx, mut ended: AttemptEnd, now: Moment) -> bool {
        if self.running.get(&ended.ticket).is_none_or(|r| r.host != host) {
            return false;
        }
        let running = self.running.remove(&ended.ticket).expect("looked up above");
        ended.outcome = self.limited(&running, &ended);
        // A failed attempt is no measure of how long its kind takes.
        let lesson_us = if ended.outcome.is_success() { ended.wall_us } else { 0 };
        self.release(host, ended.ticket, &running, lesson_us);
        self.written.add(host, std::mem::take(&mut ended.wrote), now.mono);
        self.hosts.learn(host, ended.wall_us);
        self.leave_storage(&running, ended.wall_us);
        self.learn_storage(&running, &ended);
        if ended.outcome.is_success() && self.policy.timeout_of_median.is_some() {
            let at = self.walls.partition_point(|w| *w < ended.wall_us);
            self.walls.insert(at, ended.wall_us);
        }
        for (from, to) in &ended.set_aside {
            let text = format!("unfinished output {} was moved to {}", from.display(), to.display());
            self.actions.push(Action::Note(text));
        }
        let outcome = ended.outcome.clone();
        let again = match &outcome {
            // Another attempt would print as much.
            Outcome::Exit(0) | Outcome::Killed | Outcome::OutputLimit => false,
            // After a signal it waits for `homing resume`.
            _ if self.stage > Stage::Going && self.signal.is_none() => false,
            _ => running.waiting.attempt < self.policy.tries.unwrap_or(1),
        };
        self.close(ended.ticket, running, outcome, Some(ended), again, now);
        true
    }

    /// Learns from an ended attempt how tasks of its kind use storage.
    fn learn_storage(&mut self, running: &TaskAttempt, ended: &AttemptEnd) {
        if !running.placed.need.reads() {
            return self.learn_kind(running, ended);
        }
        let success = ended.outcome.is_success();
        if let (true, Some(read), Some(written)) = (success, ended.io.rchar, ended.io.wchar) {
            self.admission.record_reads(running.reads(), read.saturating_sub(written));
        }
    }

    /// Releases the resources of an attempt. `lesson_us` is its time if that is a measure of its kind, else 0.
    pub(super) fn release(&mut self, host: HostIx, ticket: u64, running: &TaskAttempt, lesson_us: u64) {
        self.placer.finished(host, running.waiting.offer.task.id, lesson_us);
        self.hosts.release(host, ticket, running.placed.need.cpus);
        self.claim(host, &running.waiting.offer.task, false);
        self.power.claim(host, running.placed.need.cpus, false);
    }

    pub(super) fn close(
        &mut self,
        ticket: u64,
        run: TaskAttempt,
        outcome: Outcome,
        ended: Option<AttemptEnd>,
        again: bool,
        now: Moment,
    ) {
        let wall_us = ended.as_ref().map_or(now.mono.us_since(run.started), |e| e.wall_us);
        let start_ns = now.wall_ns - wall_us as i64 * 1000;
        let host = self.hosts.name(run.host).to_string();
        let rest = ended.as_ref().map_or([0; 2], |e| [e.stdout.len() as u64, e.stderr.len() as u64]);
        let [stdout_bytes, stderr_bytes] = [run.printed[0] + rest[0], run.printed[1] + rest[1]];
        let is_lost = matches!(outcome, Outcome::Lost(_));
        let mut task = run.waiting.offer.task.clone();
        let ran = (!again).then(|| homing_journal::ran(&task));
        homing_batch::fill_slot_of(&mut task, run.slot);
        self.conclude(AttemptRecord {
            ticket,
            task,
            attempt: run.waiting.attempt,
            host,
            outcome,
            start_ns,
            wall_us,
            ended,
            stdout_bytes,
            stderr_bytes,
            tail: run.of.tail,
            last: !again,
            ran,
        });
        if again {
            let mut waiting = run.of.waiting;
            let id = waiting.offer.task.id;
            waiting.attempt += 1;
            if !is_lost {
                self.spare(id, &mut waiting.failed_on, run.host);
            }
            self.enqueue(waiting);
        }
    }

    /// Lets a task run elsewhere than on `host`, where it failed. A task that has failed on each usable host may use
    /// all of them again, as with GNU parallel. The host of the last failure comes last.
    fn spare(&mut self, id: TaskId, failed_on: &mut Vec<HostIx>, host: HostIx) {
        failed_on.push(host);
        let up = self.hosts.all_up().into_iter();
        let usable: Vec<HostIx> =
            up.filter(|host| failed_on.contains(host) || !self.placer.is_excluded(id, *host)).collect();
        if usable.iter().all(|host| failed_on.contains(host)) {
            failed_on.drain(..).for_each(|host| self.placer.allow(id, host));
            failed_on.extend((usable.len() > 1).then_some(host));
        }
        failed_on.iter().for_each(|host| self.placer.exclude(id, *host));
    }

    /// Journals and counts an end before it is passed on.
    pub(super) fn conclude(&mut self, record: AttemptRecord) {
        self.record(record.event());
        if record.last {
            self.arrived(record.task.id);
            self.consider_halt(&record.outcome);
        }
        let (task, settled) = (record.task.id, record.settles());
        self.actions.push(Action::Ended { record: Box::new(record) });
        settled.into_iter().for_each(|end| self.settled(task, end));
    }

    /// Ends an attempt that cannot be sent, because its output cannot be saved or its standard input cannot be read.
    pub fn unsaved(&mut self, ticket: u64, why: &str, now: Moment) {
        let Some(running) = self.running.remove(&ticket) else { return };
        self.release(running.host, ticket, &running, 0);
        self.leave_storage(&running, 0);
        self.close(ticket, running, Outcome::CannotStart(why.into()), None, false, now);
    }

    /// Ends an attempt that did not start because its host does not see `missing`.
    pub fn unfit(&mut self, host: HostIx, ticket: u64, missing: &RawText, now: Moment) {
        let Some(running) = self.running.remove(&ticket) else { return };
        self.release(host, ticket, &running, 0);
        self.leave_storage(&running, 0);
        self.placer.exclude(running.waiting.offer.task.id, host);
        let reason = format!("{} is missing", missing.display());
        if self.hosts.up_count() == 1 {
            self.close(ticket, running, Outcome::CannotStart(reason), None, false, now);
            return;
        }
        let name = self.hosts.name(host).to_string();
        self.actions.push(Action::Journal(EventKind::HostUnfit { host: name, reason }));
        self.enqueue(running.of.waiting);
    }
}
