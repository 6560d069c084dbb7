//! The thread that keeps the run's leases of a server. It reads and locks files, which blocks on a slow file server.
//! It reports to the coordinator how many tasks may start.

use super::Shell;
use crate::admission::StorageIx;
use crate::settings::Listener;
use crate::transport::Arrival;
use homing_lease::{LeaseDemand, LeaseEvent, LeaseFolder, SOON, keep};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The time that the end of a run waits until its leases are returned.
const PARTING: Duration = Duration::from_secs(1);

/// The coordinator's side of the thread.
pub(super) struct Lessee {
    server: StorageIx,
    wishes: Sender<(u64, LeaseDemand)>,
    /// The last turn of the thread that the coordinator knows.
    turn: u64,
    told: Option<(u64, LeaseDemand)>,
    begun: Instant,
    thread: JoinHandle<()>,
}

impl<L: Listener> Shell<'_, L> {
    pub(super) fn share(&mut self, server: StorageIx, place: LeaseFolder) {
        let (wishes, taken) = channel();
        let queue = self.queue.clone();
        let tell = move |heard| queue.send(Arrival::Leases(server, heard)).is_ok();
        let keep = move || keep(place, &taken, &tell);
        match homing_os::threads::begin(keep) {
            Ok(thread) => {
                let begun = Instant::now();
                self.lessees.push(Lessee { server, wishes, turn: 0, told: None, begun, thread });
            }
            Err(e) => self.without_leases(server, &e.to_string()),
        }
    }

    pub(super) fn leases_heard(&mut self, server: StorageIx, heard: LeaseEvent) {
        // A thread that was given up may still send.
        let Some(lessee) = self.lessees.iter_mut().find(|lessee| lessee.server == server) else { return };
        match heard {
            LeaseEvent::MayUse { turn, may_use } => {
                lessee.turn = turn;
                self.core.leased(server, Some(may_use));
            }
            LeaseEvent::Outlook(outlook) => {
                let users = outlook.users.iter().map(|(uid, held)| ((self.user_name)(*uid), *held)).collect();
                self.core.shares(server, outlook.limit, users);
            }
            LeaseEvent::Note(text) => {
                self.listener.note(&format!("leases of {}: {text}", self.core.storage_name(server)))
            }
            LeaseEvent::Without(why) => self.without_leases(server, &why),
        }
    }

    fn without_leases(&mut self, server: StorageIx, why: &str) {
        self.lessees.retain(|lessee| lessee.server != server);
        let name = self.core.storage_name(server);
        // A limit that is measured during the run includes the load of other runs.
        if self.core.has_set_limit(server) {
            self.listener.note(&format!(
                "the limit of {name} applies only to this run, and is not shared with other runs: {why}"
            ));
        }
        self.core.leased(server, None);
    }

    /// Returns the leases at the end of the run. Leases of a thread that is not done in time are released by the file
    /// server.
    pub(super) fn give_leases_back(&mut self) {
        let threads: Vec<JoinHandle<()>> = self.lessees.drain(..).map(|lessee| lessee.thread).collect();
        let since = Instant::now();
        while threads.iter().any(|thread| !thread.is_finished()) && since.elapsed() < PARTING {
            std::thread::sleep(PARTING / 200);
        }
    }

    /// Sends the threads the wishes of the run after each change.
    pub(super) fn tell_lessees(&mut self) {
        for server in self.core.part_from_hosts() {
            self.lessees.retain(|lessee| lessee.server != server);
        }
        let silent = |lessee: &Lessee| lessee.turn == 0 && lessee.begun.elapsed() > SOON;
        while let Some(server) = self.lessees.iter().find(|lessee| silent(lessee)).map(|lessee| lessee.server) {
            self.leases_heard(server, LeaseEvent::silent());
        }
        for lessee in &mut self.lessees {
            let now = Some((lessee.turn, self.core.wishes(lessee.server)));
            if lessee.told != now {
                lessee.told = now;
                let _ = now.map(|wish| lessee.wishes.send(wish));
            }
        }
    }
}
