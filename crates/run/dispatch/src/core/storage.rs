//! The storage of a run: its limits change, and placement follows them.

use super::types::{TaskAttempt, TaskDetails};
use super::{Action, Core};
use crate::admission::{Reads, StorageIx, storage_of};
use homing_lease::LeaseFolder;
use homing_model::event::EventKind;
use homing_model::{StorageSample, TaskId};
use homing_os::clock::Mono;
use homing_place::{HostIx, Need, ServerIx, Storage};

impl Core {
    /// Takes a pulse of a host's storage, which may change its limit.
    pub fn pulse(&mut self, host: HostIx, pulse: &StorageSample, now: Mono) {
        pulse.mover.into_iter().for_each(|mover| self.seen_moving(host, mover));
        self.observe(StorageIx::Host(host), pulse);
        for server in self.servers.used_by(host) {
            if let Some(pulse) = self.servers.pulse(server, host, pulse, now) {
                self.observe(StorageIx::Server(server), &pulse);
            }
        }
    }

    /// Sets the bytes that a server has moved for a host since its volumes were mounted there.
    pub fn moved_for(&mut self, host: HostIx, server: &str, bytes: u64) {
        let names = self.hosts.names_of(server);
        self.servers.moved(names, host, bytes);
    }

    fn observe(&mut self, storage: StorageIx, pulse: &StorageSample) {
        let waiting = self.placer.waiting();
        let Some(change) = self.admission.pulse(storage, pulse, waiting) else { return };
        self.tell_placer(storage);
        self.tell_limit(storage, change.limit, change.why);
    }

    /// Journals initial limits of storage if tasks wait, because these limits may be the reason.
    pub(super) fn tell_of_first_limits(&mut self) {
        if self.placer.waiting() > 0 {
            let first = self.admission.take_first();
            first.into_iter().for_each(|(storage, limit)| self.tell_limit(storage, Some(limit), String::new()));
        }
    }

    /// Journals that limits hold no task any more, after tasks turned out to move no bytes.
    pub(super) fn lift_unused(&mut self) {
        if self.waiting.values().any(|waiting| waiting.offer.need(&self.hosts).reads()) {
            return;
        }
        let unused = self.admission.take_unused();
        unused.into_iter().for_each(|storage| self.tell_limit(storage, None, "its tasks move few bytes".into()));
    }

    /// Journals a limit.
    fn tell_limit(&mut self, storage: StorageIx, limit: Option<u32>, why: String) {
        let storage = self.storage_name(storage).to_string();
        self.actions.push(Action::Journal(EventKind::Limit { storage, limit, why }));
    }

    /// Returns the name, as the user or the file system knows it.
    pub fn storage_name(&self, storage: StorageIx) -> &str {
        match storage {
            StorageIx::Host(host) => self.hosts.name(host),
            StorageIx::Server(server) => self.servers.name(server),
        }
    }

    /// Adds all names and addresses of one storage server, which may be a host of the run. Called before the tasks
    /// that read from it.
    pub fn server(&mut self, names: &[String], leases: Option<&LeaseFolder>) {
        self.hosts.same(names);
        if let (Some(place), Some(name)) = (leases, names.first()) {
            self.servers.lies(self.hosts.names_of(name), place);
        }
    }

    fn server_of(&mut self, name: &str) -> ServerIx {
        let names = self.hosts.names_of(name);
        let place = self.servers.place(&names);
        let (server, new) = self.servers.of(name, names);
        if new {
            let learnt = self.policy.learnt.get(name).copied();
            self.admission.server_up(self.hosts.slots(), learnt);
            self.share(StorageIx::Server(server), place);
            self.learnt(StorageIx::Server(server), learnt);
        }
        server
    }

    /// Journals the limit of an earlier run, which applies from the beginning.
    pub(super) fn learnt(&mut self, storage: StorageIx, learnt: Option<u32>) {
        if self.admission.is_auto() && learnt.is_some() {
            let why = "an earlier run of this command ended with it".to_string();
            self.tell_limit(storage, self.admission.limit(storage), why);
        }
    }

    /// Returns the server of a task without bytes on hosts of the run. If several servers have as much, such as the
    /// bricks of a replicated volume, tasks take them in turn.
    pub(super) fn server_for(&mut self, id: TaskId, need: &Need) -> Option<ServerIx> {
        if !need.reads() || need.per_host.iter().any(|(_, bytes)| *bytes > 0) {
            return None;
        }
        let offer = &self.waiting[&id].offer;
        let served = |(name, bytes): &(String, u64)| offer.served.contains(name).then_some(*bytes);
        let most = offer.per_host.iter().filter_map(served).max().filter(|most| *most > 0)?;
        let best: Vec<&String> =
            offer.per_host.iter().filter(|it| served(it) == Some(most)).map(|(name, _)| name).collect();
        let name = best[id as usize % best.len()].clone();
        Some(self.server_of(&name))
    }

    /// Releases the storage of an attempt that has ended or is lost. `wall_us` is 0 if it is no measure of its kind.
    pub(super) fn leave_storage(&mut self, running: &TaskAttempt, wall_us: u64) {
        if running.counted {
            let storage = storage_of(running.host, &running.placed);
            self.admission.ended(storage, running.reads(), wall_us);
            self.uses(storage, running.host, false);
            self.tell_placer(storage);
        }
    }

    /// Counts a task on `host` that starts to use the storage, or has ended.
    pub(super) fn uses(&mut self, storage: StorageIx, host: HostIx, begins: bool) {
        if let StorageIx::Server(server) = storage {
            self.servers.used(server, host, begins);
        }
    }

    /// Updates placement with the number of further tasks that `storage` takes.
    pub(super) fn tell_placer(&mut self, storage: StorageIx) {
        let room = self.admission.room(storage);
        match storage {
            StorageIx::Host(host) => self.placer.set_storage(host, room),
            StorageIx::Server(server) => self.placer.set_server_full(server, room == Storage::Full),
        }
    }
}

impl TaskDetails {
    pub(super) fn reads(&self) -> Reads {
        let bytes = if self.placed.need.reads() { self.placed.need.total } else { 0 };
        Reads { bytes, network: !self.waiting.offer.volumes.is_empty() }
    }
}
