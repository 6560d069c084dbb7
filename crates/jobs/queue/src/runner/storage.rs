//! Holds the leases of the storage servers that this user's jobs on this machine use. Each server has a thread,
//! because a silent server must not delay the jobs of others.

use crate::Storage;
use crate::files::{uid, user_name};
use crate::plan::{Leased, is_queue};
use homing_lease::{LeaseDemand, LeaseEvent, LeaseFolder, Outlook, SOON, Successor, has_in_use, keep_in_line, serves};
use homing_os::threads::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The storage servers and queues in use.
#[derive(Default)]
pub(super) struct StorageServers {
    /// The runner that takes over the leases if this one is killed, because its jobs go on meanwhile.
    next: Option<Successor>,
    lessees: BTreeMap<Storage, Lessee>,
    /// The state of each group of leases, by [`group`].
    idle: BTreeMap<String, IdleLeases>,
}

struct Lessee {
    wishes: Sender<(u64, LeaseDemand)>,
    told: Option<(u64, LeaseDemand)>,
    heard: Arc<Mutex<LeaseStatus>>,
    begun: Instant,
    /// Closed when its thread has returned its leases.
    ended: Receiver<()>,
}

/// Leases that are too few for any job to start with.
#[derive(Default)]
struct IdleLeases {
    /// Since when they are held.
    since: Option<Instant>,
    /// Until when they are left to others.
    until: Option<Instant>,
    /// How often they were left.
    times: u32,
}

/// How long too few leases are held before they are left to others for a while. A job of many slots may need the
/// leases of another host, while such a job there needs these. Four looks at the leases of others fit in.
const HELD: Duration = Duration::from_secs(1);
/// The shortest time for which they are left, ms. A random time is added: the first time below twice this, then below
/// four times, and at last below eight times this. Senders on one wire avoid collisions in this way (IEEE 802.3), so
/// that one of them is alone in the end.
const LEFT_MS: u64 = 500;
const DOUBLINGS: u32 = 3;

/// A runner waits no longer at its end for a silent file server.
const FAREWELL: Duration = Duration::from_secs(2);

impl IdleLeases {
    /// Returns whether leases are left to others now. `few`: the held ones are too few for any job to start.
    fn rests(&mut self, few: bool, now: Instant, chance: u64) -> bool {
        if self.until.is_some_and(|until| now < until) {
            return true;
        }
        self.until = None;
        if !few {
            self.since = None;
            return false;
        }
        if now.duration_since(*self.since.get_or_insert(now)) <= HELD {
            return false;
        }
        self.times = (self.times + 1).min(DOUBLINGS);
        let ms = LEFT_MS + chance % (LEFT_MS << self.times);
        (self.since, self.until) = (None, Some(now + Duration::from_millis(ms)));
        true
    }
}

/// Returns the group of leases that a job takes together: a storage server, or a queue with its user's part.
fn group(storage: &Storage) -> &str {
    let of_user = format!(".{}", uid());
    Some(storage.server.as_str())
        .filter(|_| is_queue(storage))
        .and_then(|s| s.strip_suffix(&of_user))
        .unwrap_or(&storage.server)
}

/// The last news of the thread.
#[derive(Clone, Default)]
struct LeaseStatus {
    turn: u64,
    may_use: Option<u32>,
    outlook: Outlook,
    without: bool,
}

impl StorageServers {
    /// Makes the servers of a runner with this folder of its user; this program and word start its successor.
    pub(super) fn of_runner(own: &Path, (program, word): (&Path, &str)) -> StorageServers {
        // A user may have more than one queue on a host.
        let line = fs::metadata(own).ok().map(|meta| format!("queue-{:x}-{:x}", meta.dev(), meta.ino()));
        let mut servers = StorageServers::default();
        servers.next = line.map(|line| Successor { line, program: program.into(), word: word.into() });
        servers
    }

    /// Passes the wishes on, and returns the leases that may be used now. Leases of servers that no job uses any more
    /// are returned.
    pub(super) fn turn(&mut self, wishes: BTreeMap<Storage, (LeaseDemand, u32)>) -> BTreeMap<Storage, Leased> {
        self.lessees.retain(|storage, _| wishes.contains_key(storage));
        self.idle.retain(|name, _| wishes.keys().any(|storage| group(storage) == name));
        for storage in wishes.keys().filter(|storage| !self.lessees.contains_key(storage)).collect::<Vec<_>>() {
            self.lessees.insert(storage.clone(), Lessee::begin(storage, self.next.clone()));
        }
        let rest = self.rest(&wishes, Instant::now());
        let mut leases = BTreeMap::new();
        for (storage, (wish, _)) in wishes {
            let wish = if rest.contains(group(&storage)) { LeaseDemand { wanted: wish.used, ..wish } } else { wish };
            let leased = self.lessees.get_mut(&storage).and_then(|lessee| lessee.turn(&storage, wish));
            leases.extend(leased.map(|leased| (storage, leased)));
        }
        leases
    }

    /// Returns the groups whose leases are left to others now.
    fn rest(&mut self, wishes: &BTreeMap<Storage, (LeaseDemand, u32)>, now: Instant) -> BTreeSet<String> {
        // By group: leases held beyond the used ones, and whether they are too few.
        let mut groups: BTreeMap<&str, (u32, bool)> = BTreeMap::new();
        for (storage, (wish, least)) in wishes {
            let unused = self.lessees[storage].may_use().saturating_sub(wish.used);
            let (held, few) = groups.entry(group(storage)).or_default();
            *held += unused;
            *few |= wish.wanted > wish.used && unused < *least;
        }
        let chance = u64::from(homing_os::clock::since_boot().subsec_micros()) * 7 + u64::from(std::process::id());
        let rests = |(name, (held, few)): (&str, (u32, bool))| {
            let idle = self.idle.entry(name.into()).or_default();
            idle.rests(held > 0 && few, now, chance).then(|| name.to_string())
        };
        groups.into_iter().filter_map(rests).collect()
    }
}

/// Waits until the leases are returned. Otherwise the runner would seem killed, and a successor would hold them.
impl Drop for StorageServers {
    fn drop(&mut self) {
        let until = Instant::now() + FAREWELL;
        let ended: Vec<_> = std::mem::take(&mut self.lessees).into_values().map(|lessee| lessee.ended).collect();
        for ended in ended {
            let _ = ended.recv_timeout(until.saturating_duration_since(Instant::now()));
        }
    }
}

impl Lessee {
    fn begin(storage: &Storage, next: Option<Successor>) -> Lessee {
        let ((wishes, taken), (lives, ended)) = (channel(), channel());
        let heard = Arc::new(Mutex::new(LeaseStatus::default()));
        let (theirs, name) = (heard.clone(), storage.name.clone());
        let tell = move |news| {
            note(&name, &news);
            lock(&theirs).apply_event(news);
            true
        };
        let folder = storage.leases.to_path();
        let place = LeaseFolder { folder, server: storage.server.clone(), limit: storage.limit, unfit: None };
        let keep = move || {
            let _lives: Sender<()> = lives;
            keep_in_line(place, next.as_ref(), &taken, tell);
        };
        if let Err(e) = homing_os::threads::begin(keep) {
            let without = LeaseEvent::Without(e.to_string());
            note(&storage.name, &without);
            lock(&heard).apply_event(without);
        }
        Lessee { wishes, told: None, heard, begun: Instant::now(), ended }
    }

    /// Returns the number that may be used, by the last news.
    fn may_use(&self) -> u32 {
        lock(&self.heard).may_use.unwrap_or(0)
    }

    /// Returns the leases that may be used; `None`: there is no limit.
    fn turn(&mut self, storage: &Storage, wish: LeaseDemand) -> Option<Leased> {
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
                note(&storage.name, &LeaseEvent::silent());
                lock(&self.heard).apply_event(LeaseEvent::silent());
            }
            let why = format!("waiting for leases of {}", storage.name);
            return Some(Leased { may_use: 0, why });
        };
        Some(Leased { may_use, why: heard.why(storage) })
    }
}

impl LeaseStatus {
    fn apply_event(&mut self, news: LeaseEvent) {
        match news {
            LeaseEvent::MayUse { turn, may_use } => (self.turn, self.may_use) = (turn, Some(may_use)),
            LeaseEvent::Outlook(outlook) => self.outlook = outlook,
            LeaseEvent::Without(_) => self.without = true,
            LeaseEvent::Note(_) => {}
        }
    }

    fn why(&self, storage: &Storage) -> String {
        let users = self.outlook.users.iter().map(|(uid, held)| (user_name(*uid), *held));
        let users: Vec<_> = users.collect();
        let tell = if is_queue(storage) { has_in_use } else { serves };
        tell(&storage.name, self.outlook.limit, &users, &user_name(uid()))
    }
}

/// Writes news to the runner's log.
fn note(name: &str, news: &LeaseEvent) {
    match news {
        LeaseEvent::Note(text) => homing_os::say!("homing: leases of {name}: {text}"),
        LeaseEvent::Without(why) => {
            homing_os::say!("homing: jobs start without leases of {name}: {why}")
        }
        LeaseEvent::MayUse { .. } | LeaseEvent::Outlook(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_lease::{FOLDER, Leases};

    /// Waits until the server's jobs may use `wanted`. The bound is generous, so that only a fault reaches it.
    fn until(
        servers: &mut StorageServers,
        wishes: &BTreeMap<Storage, (LeaseDemand, u32)>,
        wanted: Option<u32>,
    ) -> Option<Leased> {
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
        let place = LeaseFolder { folder: nas.leases.to_path(), server: "nfs".into(), limit: Some(2), unfit: None };
        let (mut run, _) = Leases::open(place).unwrap();
        let one = LeaseDemand { wanted: 1, used: 1, limit: None };
        run.turn(one, false, Instant::now()).unwrap();
        let wishes = BTreeMap::from([(nas, (LeaseDemand { wanted: 3, used: 0, limit: None }, 1))]);
        let mut servers = StorageServers::default();
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
    fn too_few_leases_for_a_wide_job_are_left_to_others_for_a_while() {
        let (mut idle, begun) = (IdleLeases::default(), Instant::now());
        let mut rests = |ms, few| idle.rests(few, begun + Duration::from_millis(ms), 700);
        assert_eq!([rests(0, true), rests(900, true)], [false, false]);
        assert!(rests(1_100, true), "another host may need them");
        assert_eq!([rests(2_200, false), rests(2_400, false)], [true, false], "500 ms and, by chance, 700");
        assert_eq!([rests(2_500, true), rests(3_600, true)], [false, true]);
        assert_eq!([rests(9_000, false), rests(60_000, false), rests(61_000, true)], [false; 3], "anew each time");
    }

    #[test]
    fn a_queue_and_its_users_part_of_it_are_left_together() {
        let of = |server: &str| Storage { server: server.into(), ..storage(Path::new("/data")) };
        let own = of(&format!("queue-wide.{}", uid()));
        assert_eq!((group(&own), group(&of("queue-wide")), group(&of("nas.1"))), ("queue-wide", "queue-wide", "nas.1"));
    }

    #[test]
    fn jobs_start_without_leases_where_there_can_be_none() {
        let dir = tempfile::tempdir().unwrap();
        let nas = Storage { leases: dir.path().join("none/there").as_path().into(), ..storage(dir.path()) };
        let wishes = BTreeMap::from([(nas, (LeaseDemand { wanted: 3, used: 0, limit: None }, 1))]);
        until(&mut StorageServers::default(), &wishes, None);
    }
}
