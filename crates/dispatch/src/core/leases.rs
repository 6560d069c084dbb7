//! The core's dealings with those who use the same servers: it begins no more tasks than it has leases.

use super::{Action, Core};
use crate::admission::{Io, StorageIx};
use homing_folder::lease::{Place, Wish};
use homing_model::event::What;
use homing_place::ServerIx;

impl Core {
    /// A server was met. Nothing begins there before its leases were looked at.
    pub(super) fn share(&mut self, server: ServerIx, place: Option<Place>) {
        if let Some(place) = place.filter(|_| self.policy.shared && self.policy.io != Io::Off) {
            self.admission.leased(server, Some(0));
            self.tell_placer(StorageIx::Server(server));
            self.actions.push(Action::Share(server, place));
        }
    }

    /// So many tasks may read from the server; `None`: there is nobody to share it with.
    pub fn leased(&mut self, server: ServerIx, may_use: Option<u32>) {
        self.admission.leased(server, may_use);
        self.tell_placer(StorageIx::Server(server));
    }

    /// Who has leases of the server changed.
    pub fn shares(&mut self, server: ServerIx, limit: Option<u32>, users: Vec<(String, u32)>) {
        let storage = self.servers.name(server).to_string();
        self.actions.push(Action::Journal(What::Leases { storage, limit, users }));
    }

    /// What this run would do with leases of the server: its tasks there, and one for each slot that could begin another.
    pub fn wishes(&self, server: ServerIx) -> Wish {
        let used = self.admission.in_flight(server);
        let own = self.admission.own_limit(StorageIx::Server(server));
        let more = self.placer.waiting_for(server).min(self.hosts.free_slots() as usize) as u32;
        let limit = own.filter(|_| self.says_limit(server));
        let more = if self.nothing_to_start() { 0 } else { more };
        Wish { wanted: (used + more).min(own.unwrap_or(u32::MAX)), used, limit }
    }

    /// Whether somebody has said a limit for it, and none is found.
    pub fn says_limit(&self, server: ServerIx) -> bool {
        matches!(self.policy.io, Io::Fixed(_)) || self.admission.has_site_limit(server)
    }

    /// Its name.
    pub fn server_name(&self, server: ServerIx) -> &str {
        self.servers.name(server)
    }
}
