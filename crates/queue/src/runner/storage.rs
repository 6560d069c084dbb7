//! The leases of the storage servers that this user's jobs on this machine use: a thread for each server, since one
//! that is silent must not hold up the others' jobs.

use crate::Storage;
use crate::files::{uid, user_name};
use crate::plan::Leased;
use homing_folder::lease::{News, Outlook, Place, SOON, Wish, keep, serves};
use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The servers in use.
#[derive(Default)]
pub(super) struct Servers(BTreeMap<Storage, Lessee>);

struct Lessee {
    wishes: Sender<(u64, Wish)>,
    told: Option<(u64, Wish)>,
    heard: Arc<Mutex<Heard>>,
    begun: Instant,
}

/// What the thread has told last.
#[derive(Clone, Default)]
struct Heard {
    turn: u64,
    may_use: Option<u32>,
    outlook: Outlook,
    without: bool,
}

impl Servers {
    /// Tells what is wished for, and says what may be used now. Leases of servers that no job uses any more go back.
    pub(super) fn turn(&mut self, wishes: BTreeMap<Storage, Wish>) -> BTreeMap<Storage, Leased> {
        self.0.retain(|storage, _| wishes.contains_key(storage));
        let mut leases = BTreeMap::new();
        for (storage, wish) in wishes {
            let lessee = self.0.entry(storage.clone()).or_insert_with(|| Lessee::begin(&storage));
            leases.extend(lessee.turn(&storage, wish).map(|leased| (storage, leased)));
        }
        leases
    }
}

impl Lessee {
    fn begin(storage: &Storage) -> Lessee {
        let (wishes, taken) = channel();
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (theirs, name) = (heard.clone(), storage.name.clone());
        let tell = move |news| {
            note(&name, &news);
            lock(&theirs).hear(news);
            true
        };
        let folder = storage.leases.to_path();
        let place = Place { folder, server: storage.server.clone(), limit: storage.limit, unfit: None };
        if let Err(e) = homing_threads::begin(move || keep(place, &taken, tell)) {
            let without = News::Without(e.to_string());
            note(&storage.name, &without);
            lock(&heard).hear(without);
        }
        Lessee { wishes, told: None, heard, begun: Instant::now() }
    }

    /// What may be used; `None`: there is no limit.
    fn turn(&mut self, storage: &Storage, wish: Wish) -> Option<Leased> {
        let heard = lock(&self.heard).clone();
        if heard.without {
            return None;
        }
        if self.told != Some((heard.turn, wish)) {
            self.told = Some((heard.turn, wish));
            let _ = self.wishes.send((heard.turn, wish));
        }
        let Some(may_use) = heard.may_use else {
            if self.begun.elapsed() > SOON {
                note(&storage.name, &News::silent());
                lock(&self.heard).hear(News::silent());
            }
            let why = format!("the leases of {} are asked for", storage.name);
            return Some(Leased { may_use: 0, why });
        };
        Some(Leased { may_use, why: heard.why(&storage.name) })
    }
}

impl Heard {
    fn hear(&mut self, news: News) {
        match news {
            News::MayUse { turn, may_use } => (self.turn, self.may_use) = (turn, Some(may_use)),
            News::Outlook(outlook) => self.outlook = outlook,
            News::Without(_) => self.without = true,
            News::Note(_) => {}
        }
    }

    fn why(&self, name: &str) -> String {
        let users = self.outlook.users.iter().map(|(uid, held)| (user_name(*uid), *held));
        serves(name, self.outlook.limit, &users.collect::<Vec<_>>(), &user_name(uid()))
    }
}

/// For the runner's log.
fn note(name: &str, news: &News) {
    match news {
        News::Note(text) => homing_process::say!("homing: leases of {name}: {text}"),
        News::Without(why) => {
            homing_process::say!("homing: jobs start without leases of {name}: {why}")
        }
        News::MayUse { .. } | News::Outlook(_) => {}
    }
}

fn lock(heard: &Mutex<Heard>) -> std::sync::MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_folder::lease::{FOLDER, Leases};
    use std::path::Path;
    use std::time::Duration;

    /// Until the server's jobs may use so many; generous, so that only a fault takes so long.
    fn until(servers: &mut Servers, wishes: &BTreeMap<Storage, Wish>, wanted: Option<u32>) -> Option<Leased> {
        let begun = Instant::now();
        loop {
            let leased = servers.turn(wishes.clone()).into_values().next();
            if leased.as_ref().map(|leased| leased.may_use) == wanted {
                return leased;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{leased:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn storage(folder: &Path) -> Storage {
        Storage {
            name: "nas".into(),
            server: "nfs".into(),
            leases: folder.join(FOLDER).as_path().into(),
            limit: Some(2),
        }
    }

    #[test]
    fn jobs_and_runs_share_the_leases_of_a_server() {
        let dir = tempfile::tempdir().unwrap();
        let nas = storage(dir.path());
        let place = Place { folder: nas.leases.to_path(), server: "nfs".into(), limit: Some(2), unfit: None };
        let (mut run, _) = Leases::open(place).unwrap();
        let one = Wish { wanted: 1, used: 1, limit: None };
        run.turn(one, false, Instant::now()).unwrap();
        let wishes = BTreeMap::from([(nas, Wish { wanted: 3, used: 0, limit: None })]);
        let mut servers = Servers::default();
        until(&mut servers, &wishes, Some(1));
        // The text comes with the next look.
        let begun = Instant::now();
        while until(&mut servers, &wishes, Some(1)).unwrap().why != "nas serves 2 of 2" {
            run.turn(one, false, Instant::now()).unwrap();
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(run);
        until(&mut servers, &wishes, Some(2));
    }

    #[test]
    fn jobs_start_without_leases_where_there_can_be_none() {
        let dir = tempfile::tempdir().unwrap();
        let nas = Storage { leases: dir.path().join("none/there").as_path().into(), ..storage(dir.path()) };
        let wishes = BTreeMap::from([(nas, Wish { wanted: 3, used: 0, limit: None })]);
        until(&mut Servers::default(), &wishes, None);
    }
}
