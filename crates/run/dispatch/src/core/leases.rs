//! Shares storage servers with other runs: starts no more tasks than there are leases.

use super::{Action, Core, Licensed};
use crate::admission::{Io, StorageIx};
use homing_lease::{LeaseDemand, LeaseFolder};
use homing_model::TaskId;
use homing_model::event::EventKind;
use homing_model::hostname::is_called;
use homing_place::{HostIx, Need, ServerIx};

impl Core {
    /// Shares hosts of the run that also serve a task's files to other machines, in the same way as other servers.
    pub(super) fn share_hosts(&mut self, id: TaskId, need: &Need) {
        let offer = &self.waiting[&id].offer;
        if offer.served.is_empty() {
            return;
        }
        let unmet = need.per_host.iter().filter(|(host, bytes)| *bytes > 0 && !self.met.contains(host));
        let serves = |host: HostIx| offer.served.iter().find(|name| self.hosts.find(name) == Some(host));
        let met: Vec<(HostIx, Option<LeaseFolder>)> = unmet
            .filter_map(|(host, _)| Some((*host, self.servers.place(&self.hosts.names_of(serves(*host)?)))))
            .collect();
        for (host, place) in met {
            self.met.insert(host);
            self.share(StorageIx::Host(host), place);
        }
    }

    /// Shares a storage server that was met. No task starts there before its leases are known.
    pub(super) fn share(&mut self, storage: StorageIx, place: Option<LeaseFolder>) {
        self.admission.site_says(storage, place.as_ref().and_then(|place| place.limit));
        if let Some(each) = self.licenses_of_one_host(storage) {
            self.licensed.push((storage, each));
            return self.count_licenses();
        }
        if let Some(place) = place.filter(|_| self.policy.shared && self.policy.io != Io::Off) {
            self.admission.leased(storage, Some(0));
            self.actions.push(Action::Share(storage, place));
        }
        self.tell_placer(storage);
    }

    fn licenses_of_one_host(&self, storage: StorageIx) -> Option<u32> {
        let names = self.hosts.names_of(self.storage_name(storage));
        let of_storage = |name: &String| is_called(names.iter().map(String::as_str), name);
        let is = |licensed: &&Licensed| licensed.names.iter().any(of_storage);
        self.policy.licensed.iter().find(is).map(|licensed| licensed.each)
    }

    /// Updates the limits by licences. Each host brings its licences and removes them when it leaves.
    pub(super) fn count_licenses(&mut self) {
        let hosts = self.hosts.all_up().len() as u32;
        for (storage, each) in self.licensed.clone() {
            self.admission.leased(storage, Some(each.saturating_mul(hosts)));
            self.tell_placer(storage);
        }
    }

    /// Returns the servers whose leases can be given back. They turned out to be hosts of the run, and no task uses
    /// them or waits for them as servers any more. Tasks used them under the names of servers before the hosts joined.
    /// If those leases stayed, other runs would count the same machine twice until the end of the run.
    pub fn part_from_hosts(&mut self) -> Vec<StorageIx> {
        // Tasks that waited for such a server may have their inputs on its host now.
        self.place_anew();
        let is_host = |name: &str| self.hosts.find(name).is_some_and(|host| self.hosts.is_up(host));
        let unused =
            |ix: ServerIx| self.admission.in_flight(StorageIx::Server(ix)) == 0 && self.placer.waiting_for(ix) == 0;
        let left: Vec<ServerIx> =
            (0..self.servers.len()).filter(|ix| is_host(self.servers.name(*ix)) && unused(*ix)).collect();
        let parted = left.into_iter().filter(|ix| self.servers.part(*ix)).map(StorageIx::Server);
        parted.inspect(|storage| self.admission.leased(*storage, None)).collect()
    }

    /// Sets how many tasks may read from the server. `None`: the server is not shared.
    pub fn leased(&mut self, storage: StorageIx, may_use: Option<u32>) {
        self.admission.leased(storage, may_use);
        self.tell_placer(storage);
    }

    /// Journals a change of the users with leases of the server.
    pub fn shares(&mut self, storage: StorageIx, limit: Option<u32>, users: Vec<(String, u32)>) {
        let storage = self.storage_name(storage).to_string();
        self.actions.push(Action::Journal(EventKind::Leases { storage, limit, users }));
    }

    /// Returns the leases that this run wants: one for each of its tasks there, and one for each slot that could
    /// start another.
    pub fn wishes(&self, storage: StorageIx) -> LeaseDemand {
        let used = self.admission.in_flight(storage);
        let own = self.admission.own_limit(storage);
        let waiting = match storage {
            StorageIx::Host(host) => self.placer.waiting_at(host),
            StorageIx::Server(server) => self.placer.waiting_for(server),
        };
        let more = waiting.min(self.hosts.free_slots() as usize) as u32;
        let limit = own.filter(|_| self.has_set_limit(storage));
        let more = if self.nothing_to_start() { 0 } else { more };
        LeaseDemand { wanted: (used + more).min(own.unwrap_or(u32::MAX)), used, limit }
    }

    /// Whether a user or administrator has set the limit, so that none is measured.
    pub fn has_set_limit(&self, storage: StorageIx) -> bool {
        matches!(self.policy.io, Io::Fixed(_)) || self.admission.has_site_limit(storage)
    }
}
