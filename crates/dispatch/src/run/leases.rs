//! The thread that keeps the run's leases of a server: it asks and locks, which a file server that is slow makes
//! wait, and the coordinator is told what it may begin.

use super::Shell;
use crate::settings::Listener;
use crate::wires::{Arrival, LeaseNews};
use homing_folder::lease::{Leases, Outlook, Place, Wish};
use homing_place::ServerIx;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What is wished for changes with each task that ends: looks are no closer than this.
const PAUSE: Duration = Duration::from_millis(150);
/// Between two looks at what others have, where there are some.
const LOOK: Duration = Duration::from_millis(250);
/// The same where there are none.
const ALONE: Duration = Duration::from_secs(1);
/// Who has how many is told to people no more often.
const TELL: Duration = Duration::from_secs(1);
/// How long the first look may take; after that the run does not wait for it.
const SOON: Duration = Duration::from_secs(5);

/// How long the end of a run waits for its leases to be given back.
const PARTING: Duration = Duration::from_secs(1);

/// The coordinator's end of it.
pub(super) struct Lessee {
    server: ServerIx,
    wishes: Sender<(u64, Wish)>,
    /// The last of its turns of which the coordinator knows.
    turn: u64,
    told: Option<(u64, Wish)>,
    begun: Instant,
    thread: JoinHandle<()>,
}

impl<L: Listener> Shell<'_, L> {
    pub(super) fn share(&mut self, server: ServerIx, place: Place) {
        let (wishes, taken) = channel();
        let queue = self.queue.clone();
        let tell = move |heard| queue.send(Arrival::Leases(server, heard)).is_ok();
        let keep = move || keep(place, &taken, &tell);
        match homing_threads::begin(keep) {
            Ok(thread) => {
                let begun = Instant::now();
                self.lessees.push(Lessee { server, wishes, turn: 0, told: None, begun, thread });
            }
            Err(e) => self.without_leases(server, &e.to_string()),
        }
    }

    pub(super) fn leases_heard(&mut self, server: ServerIx, heard: LeaseNews) {
        // One that was given up may still talk.
        let Some(lessee) = self.lessees.iter_mut().find(|lessee| lessee.server == server) else { return };
        match heard {
            LeaseNews::MayUse { turn, may_use } => {
                lessee.turn = turn;
                self.core.leased(server, Some(may_use));
            }
            LeaseNews::Outlook(outlook) => {
                let users = outlook.users.iter().map(|(uid, held)| ((self.user_name)(*uid), *held)).collect();
                self.core.shares(server, outlook.limit, users);
            }
            LeaseNews::Note(text) => {
                self.listener.note(&format!("leases of {}: {text}", self.core.server_name(server)))
            }
            LeaseNews::Without(why) => self.without_leases(server, &why),
        }
    }

    fn without_leases(&mut self, server: ServerIx, why: &str) {
        self.lessees.retain(|lessee| lessee.server != server);
        let name = self.core.server_name(server);
        // A limit that is found as the run goes on takes the others' load into account.
        if self.core.says_limit(server) {
            self.listener
                .note(&format!("the limit of {name} is this run's alone, and not shared with other runs: {why}"));
        }
        self.core.leased(server, None);
    }

    /// At the end of the run; what does not answer in time is given back by the file server.
    pub(super) fn give_leases_back(&mut self) {
        let threads: Vec<JoinHandle<()>> = self.lessees.drain(..).map(|lessee| lessee.thread).collect();
        let since = Instant::now();
        while threads.iter().any(|thread| !thread.is_finished()) && since.elapsed() < PARTING {
            std::thread::sleep(PARTING / 200);
        }
    }

    /// After each change of what the run could do.
    pub(super) fn tell_lessees(&mut self) {
        let silent = |lessee: &Lessee| lessee.turn == 0 && lessee.begun.elapsed() > SOON;
        while let Some(server) = self.lessees.iter().find(|lessee| silent(lessee)).map(|lessee| lessee.server) {
            self.without_leases(server, &format!("its volume did not answer within {} s", SOON.as_secs()));
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

/// The run is over.
struct Over;

/// The last wish of those that come within `least`, or the first that comes within `most`.
fn next(wishes: &Receiver<(u64, Wish)>, least: Duration, most: Duration) -> Result<Option<(u64, Wish)>, Over> {
    let (begun, mut last) = (Instant::now(), None);
    loop {
        let until = if last.is_some() { least } else { most };
        match wishes.recv_timeout(until.saturating_sub(begun.elapsed())) {
            Ok(wish) => last = Some(wish),
            Err(RecvTimeoutError::Timeout) => return Ok(last),
            Err(RecvTimeoutError::Disconnected) => return Err(Over),
        }
    }
}

/// Goes on until the run ends.
fn keep(place: Place, wishes: &Receiver<(u64, Wish)>, tell: &impl Fn(LeaseNews) -> bool) {
    let mut leases = match Leases::open(place) {
        Ok((leases, told)) => {
            told.into_iter().for_each(|text| _ = tell(LeaseNews::Note(text)));
            leases
        }
        Err(why) => {
            tell(LeaseNews::Without(why));
            return;
        }
    };
    let (mut turn, mut seen, mut wish) = (0, 0, Wish::default());
    let (mut may_use, mut others) = (None, false);
    let mut told: Option<(Instant, Outlook)> = None;
    loop {
        let least = if turn > 0 { PAUSE } else { Duration::ZERO };
        match next(wishes, least, if others { LOOK } else { ALONE }) {
            Ok(Some(last)) => (seen, wish) = last,
            Ok(None) => {}
            Err(Over) => return,
        }
        let outlook = match leases.turn(wish, seen == turn, Instant::now()) {
            Ok(outlook) if outlook.gave_up => {
                let why = "others have had all leases for an hour".to_string();
                tell(LeaseNews::Without(why));
                return;
            }
            Ok(outlook) => outlook,
            Err(e) => {
                tell(LeaseNews::Without(format!("its leases cannot be seen any more: {e}")));
                return;
            }
        };
        others = outlook.others;
        if may_use.replace(outlook.may_use) != Some(outlook.may_use) {
            turn += 1;
            tell(LeaseNews::MayUse { turn, may_use: outlook.may_use });
        }
        let due = told.as_ref().is_none_or(|(at, last)| at.elapsed() >= TELL && *last != outlook);
        if due {
            told = Some((Instant::now(), outlook.clone()));
            tell(LeaseNews::Outlook(outlook));
        }
    }
}
