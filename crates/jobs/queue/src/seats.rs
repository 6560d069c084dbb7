//! Takes slots of this machine for the tasks of a run, and returns them.
//!
//! A run locks the bytes of its slots for reading, a job for writing: runs exclude jobs, and jobs exclude runs. Runs
//! do not exclude each other, as two of GNU parallel never did: a user who starts a second one means it.
//!
//! A run keeps its slots from task to task. While jobs wait it returns the slots beyond its share. If it has none, it
//! takes its turn among the users, which it announces to the runners in a record of its own.

use crate::files::{self, read_short, write_json_soon};
use crate::neighbours::Presence;
use crate::places::Places;
use crate::plan::{Standing, Want, whose_turn};
use crate::process::{self, ProcessIdentity};
use crate::turn::PATIENCE;
use crate::{QueueError, slots};
use homing_os::folder::lock;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Instant;

/// The folder with the records of runs, in their user's folder.
const FOLDER: &str = "runs";
/// The longest record that is read, bytes.
const LONGEST: u64 = 4 << 10;

/// The slots of one run.
pub struct Seats {
    places: Places,
    host: String,
    file: File,
    record: PathBuf,
    count: u32,
    held: BTreeSet<u32>,
    /// When it last took slots, microseconds since the boot.
    last_us: u64,
    /// Since when it lets others go first.
    stands_back: Option<Instant>,
    told: Option<Standing>,
}

impl Seats {
    /// Opens `count` slots of this machine, in the usual place of its queue. None if there is no queue and none can
    /// be made.
    pub fn open(count: u32) -> Result<Option<Seats>, QueueError> {
        match Places::usual().and_then(|places| Seats::at(places, count)) {
            Ok(seats) => Ok(Some(seats)),
            Err(_) if !Places::is_usual() => Ok(None),
            Err(why) => Err(why),
        }
    }

    fn at(places: Places, count: u32) -> Result<Seats, QueueError> {
        let (own, host) = (places.own()?, files::host_name());
        let path = slots::folder(&own)?.join(&host);
        let file = lock::file(&path, 0o644).map_err(QueueError::io("open", &path))?;
        let record = own.join(FOLDER).join(format!("{}.json", std::process::id()));
        let (held, last_us) = (BTreeSet::new(), 0);
        Ok(Seats { places, host, file, record, count, held, last_us, stands_back: None, told: None })
    }

    /// Returns the slots of the machine.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Takes slots or returns them. The run has tasks on `used` of them, and could use `wanted`. Returns how many it
    /// may use from now on; the slots beyond it are returned as their tasks end.
    pub fn settle(&mut self, used: u32, wanted: u32) -> u32 {
        let users = self.places.users();
        let waiting = self.waiting(&users);
        let jobs = self.bytes(&users, lock::unshared_bytes);
        let taken = self.bytes(&users, lock::held_bytes);
        let free = (0..self.count).filter(|n| !taken.contains(n) && !self.held.contains(n)).count() as u32;
        let own = self.standing(wanted);
        let patient = self.stands_back.is_none_or(|since| since.elapsed() <= PATIENCE);
        let claim = Claim { count: self.count, wanted: wanted.min(self.count), free, own: &own, patient };
        let may = may_use(&claim, &waiting);
        self.give_back(used.max(may));
        if may > self.held() {
            self.take(may, &taken, &jobs, &users);
        }
        let may = may.min(self.held());
        self.stands_back = (may == 0 && wanted > 0).then(|| self.stands_back.unwrap_or_else(Instant::now));
        // Between the start of one job and the wish for the next no user seems to wait; the run keeps its turn then.
        let crowded = !waiting.is_empty() || !jobs.is_empty();
        self.publish_standing((may < wanted && crowded).then(|| self.standing(wanted)));
        may
    }

    fn held(&self) -> u32 {
        self.held.len() as u32
    }

    /// Returns the run's standing among the users of this machine.
    fn standing(&self, wanted: u32) -> Standing {
        let want = Want { id: std::process::id().into(), index: 0, slots: 1 };
        Standing {
            host: None,
            used: BTreeMap::from([(String::new(), self.held())]),
            last_us: self.last_us,
            wants: (self.held() < wanted).then_some(want),
        }
    }

    /// Returns the users who wait for slots of this machine.
    fn waiting(&self, users: &[u32]) -> Vec<(u32, Standing)> {
        let boot = files::boot_id();
        let here = |uid: u32| {
            let presence = Presence::of(&self.places, uid).filter(|presence| presence.is_alive(&boot))?;
            Some((uid, presence.hosts.into_iter().find(|stands| stands.host.is_none() && stands.wants.is_some())?))
        };
        users.iter().filter_map(|uid| here(*uid)).collect()
    }

    /// Returns the slots that other processes have.
    fn bytes(&self, users: &[u32], of: impl Fn(&File, u32) -> std::io::Result<Vec<u32>>) -> BTreeSet<u32> {
        let own = files::uid();
        let others = users.iter().filter(|uid| **uid != own);
        let others = others.filter_map(|uid| slots::opened(&self.places, *uid, &self.host));
        let others: Vec<File> = others.collect();
        others.iter().chain([&self.file]).flat_map(|file| of(file, self.count).unwrap_or_default()).collect()
    }

    /// Takes free slots first, then those of other runs. If a job of another user takes a slot at the same moment,
    /// both return it.
    fn take(&mut self, up_to: u32, taken: &BTreeSet<u32>, jobs: &BTreeSet<u32>, users: &[u32]) {
        let open = |n: &u32| !jobs.contains(n) && !self.held.contains(n);
        let mut chosen: Vec<u32> = (0..self.count).filter(open).collect();
        let before = self.held();
        chosen.sort_by_key(|n| (taken.contains(n), *n));
        for n in chosen {
            if self.held() >= up_to {
                break;
            }
            if lock::try_share(&self.file, (n, Some(n + 1))).unwrap_or(false) {
                self.held.insert(n);
            }
        }
        for n in self.bytes(users, lock::unshared_bytes) {
            self.free(n);
        }
        // A run that found nothing to take has not had its turn.
        if self.held() > before {
            self.last_us = homing_os::clock::since_boot().as_micros() as u64;
        }
    }

    /// Returns the highest slots, so that all runs return the same ones.
    fn give_back(&mut self, all_but: u32) {
        let surplus: Vec<u32> = self.held.iter().copied().skip(all_but as usize).collect();
        surplus.iter().for_each(|n| self.free(*n));
        if !surplus.is_empty()
            && let Ok(own) = self.places.own()
        {
            slots::announce_turn_end(&own, &self.host);
        }
    }

    fn free(&mut self, n: u32) {
        if self.held.remove(&n) {
            let _ = lock::give_back(&self.file, (n, Some(n + 1)));
        }
    }

    /// Publishes its standing to the runners while it waits. Without the record the runners do not let it pass; no
    /// other harm results. A record that could not be written is written at the next look.
    fn publish_standing(&mut self, stands: Option<Standing>) {
        if stands == self.told {
            return;
        }
        self.told = stands.filter(|stands| self.write(stands).is_ok());
        if self.told.is_none() {
            let _ = fs::remove_file(&self.record);
        }
    }

    fn write(&self, stands: &Standing) -> std::io::Result<()> {
        if let Some(folder) = self.record.parent() {
            let _ = files::make_dir(folder, 0o755);
        }
        let record = SeatRecord { process: ProcessIdentity::own(), stands: stands.clone() };
        write_json_soon(&self.record, &record, 0o644).map(drop)
    }
}

impl Drop for Seats {
    fn drop(&mut self) {
        self.publish_standing(None);
        self.give_back(0);
    }
}

/// The content of `runs/PID.json`: a run that waits for slots.
#[derive(Serialize, Deserialize)]
struct SeatRecord {
    #[serde(flatten)]
    process: ProcessIdentity,
    stands: Standing,
}

/// Returns runs of these users that wait for slots of this machine. Each has a number that no user has, at the end of
/// the range.
pub(crate) fn waiting_runs(places: &Places, users: &[u32]) -> Vec<(u32, Standing)> {
    let boot = files::boot_id();
    let mut found = Vec::new();
    for uid in users {
        for entry in fs::read_dir(places.of(*uid).join(FOLDER)).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let read = if files::is_part(&name) { None } else { read_short::<SeatRecord>(&entry.path(), LONGEST) };
            match read {
                Some((record, owner)) if owner == *uid && record.process.is_alive(&boot) => {
                    found.push((u32::MAX - record.process.pid, record.stands));
                }
                read if *uid == files::uid() && is_left(&name, read.is_some()) => {
                    drop(fs::remove_file(entry.path()));
                }
                _ => {}
            }
        }
    }
    found
}

/// Whether a file of this user's runs belongs to a run that has ended. A file that was read names a process that has
/// ended. An unreadable one may be `.PID.json.PID`, which a run is writing, or one that a run has just replaced.
fn is_left(name: &OsStr, was_read: bool) -> bool {
    let name = name.to_string_lossy();
    let number = name.trim_start_matches('.').split('.').next().unwrap_or_default();
    was_read || !number.parse().is_ok_and(process::is_there)
}

/// The claim of a run.
struct Claim<'a> {
    count: u32,
    wanted: u32,
    /// Slots that no process has.
    free: u32,
    own: &'a Standing,
    /// Whether others that go first may still take their turn.
    patient: bool,
}

/// Returns the slots that a run may use while these users wait: an equal part, or fewer if the widest job leaves
/// fewer. If that is none, it takes all free slots when its turn comes, and returns all of them. Pure.
fn may_use(claim: &Claim, waiting: &[(u32, Standing)]) -> u32 {
    let slots = |stands: &Standing| stands.wants.as_ref().map_or(0, |want| want.slots);
    let Some(widest) = waiting.iter().map(|(_, stands)| slots(stands)).max() else { return claim.wanted };
    let part = claim.count / (waiting.len() as u32 + 1);
    let fair = part.min(claim.count.saturating_sub(widest)).min(claim.wanted);
    let held = claim.own.used.values().sum();
    if held > 0 && held >= fair {
        return fair;
    }
    // A user who waits for more slots than are free does not miss a turn.
    let others = waiting.iter().filter(|(_, stands)| slots(stands) <= claim.free).map(|(uid, stands)| (*uid, stands));
    let first = whose_turn(others.chain([(u32::MAX, claim.own)]));
    match first {
        Some((uid, _)) if uid != u32::MAX && claim.patient => held,
        _ if fair == 0 => claim.wanted,
        _ => fair,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::until::until;

    fn make_standing(used: u32, last_us: u64, wants: u32) -> Standing {
        let wants = (wants > 0).then_some(Want { id: 1, index: 0, slots: wants });
        Standing { host: None, used: BTreeMap::from([("q".into(), used)]), last_us, wants }
    }

    /// The event that these tests wait for: a child of another test holds a lock a moment longer, between its fork and
    /// its exec.
    const RELEASED: &str = "the lock is released";

    #[test]
    fn a_run_has_all_until_others_wait_and_then_its_part() {
        let may = |held, free, waiting: &[Standing]| {
            let own = make_standing(held, 5, 1);
            let waiting: Vec<_> = waiting.iter().cloned().map(|stands| (7, stands)).collect();
            may_use(&Claim { count: 8, wanted: 8, free, own: &own, patient: true }, &waiting)
        };
        assert_eq!(may(0, 8, &[]), 8);
        assert_eq!(may(8, 0, &[make_standing(0, 9, 1)]), 4);
        assert_eq!(may(8, 0, &[make_standing(0, 9, 1), make_standing(3, 9, 1)]), 2);
        assert_eq!(may(8, 0, &[make_standing(0, 9, 6)]), 2, "what a wide job leaves");
        assert_eq!(may(8, 0, &[make_standing(0, 9, 8)]), 0);
        assert_eq!(may(3, 5, &[make_standing(0, 9, 8)]), 0, "all of it, as tasks end");
        // Jobs have all slots, and more of them wait: a slot that is freed is for the run, which has none.
        assert_eq!(may(0, 1, &[make_standing(7, 9, 1)]), 4);
        // Neither has any: the one that has waited longer goes first.
        assert_eq!((may(0, 8, &[make_standing(0, 9, 1)]), may(0, 8, &[make_standing(0, 1, 1)])), (4, 0));
        assert_eq!((may(0, 8, &[make_standing(0, 9, 8)]), may(0, 8, &[make_standing(0, 1, 8)])), (8, 0), "in turns");
    }

    #[test]
    fn jobs_and_runs_keep_each_other_out_and_runs_do_not() {
        let (_dir, base) = crate::places::new_shared();
        let places = || Places::at(base.clone()).unwrap();
        let users = [files::uid()];
        let job = |wanted| slots::take(&places(), &users, &files::host_name(), 4, wanted).unwrap();
        let seats = || Seats::at(places(), 4).unwrap();
        let (mut first, mut second) = (seats(), seats());
        assert_eq!((first.settle(0, 3), second.settle(0, 4)), (3, 4));
        assert!(job(1).is_none());
        let of_runs = || slots::of_runs(&places(), &users, &files::host_name(), 4);
        assert_eq!(of_runs(), [(files::uid(), 4)]);
        assert_eq!(second.settle(0, 0), 0);
        until(RELEASED, || of_runs() == [(files::uid(), 3)]);
        let one = job(1).expect("the fourth is free");
        assert!(job(1).is_none());
        assert_eq!(second.settle(0, 4), 3, "beside the first run");
        assert_eq!(of_runs(), [(files::uid(), 3)], "the job's slot is not among them");
        drop((first, second));
        until(RELEASED, || of_runs().is_empty());
        assert!(job(4).is_none());
        drop(one);
        until(RELEASED, || job(4).is_some());
    }

    #[test]
    fn a_run_that_waits_is_known_until_it_has_ended() {
        let (_dir, base) = crate::places::new_shared();
        let places = || Places::at(base.clone()).unwrap();
        let (users, own) = ([files::uid()], places().own().unwrap());
        Presence::own(vec![make_standing(1, 9, 1)], BTreeMap::new()).publish(&own).unwrap();
        let mut seats = Seats::at(places(), 2).unwrap();
        let job = slots::take(&places(), &users, &files::host_name(), 2, 2).unwrap();
        assert_eq!(seats.settle(0, 2), 0);
        let told = waiting_runs(&places(), &users);
        assert_eq!(told.len(), 1);
        assert!(told[0].0 > u32::MAX / 2 && told[0].1.wants.is_some());
        assert_eq!(told[0].1.last_us, 0, "it has found nothing to take, and its turn is still to come");
        drop(job);
        until(RELEASED, || slots::free(&places(), &users, &files::host_name(), 2) == 2);
        assert_eq!(seats.settle(0, 2), 1, "one is left to the job that waits");
        drop(seats);
        until(RELEASED, || waiting_runs(&places(), &users).is_empty());
    }

    #[test]
    fn what_a_run_is_writing_is_left_to_it_and_what_ended_ones_left_is_removed() {
        let (_dir, base) = crate::places::new_shared();
        let places = Places::at(base).unwrap();
        let folder = places.own().unwrap().join(FOLDER);
        files::make_dir(&folder, 0o755).unwrap();
        let (own, ended) = (std::process::id(), u32::MAX);
        let written = |pid: u32| [format!("{pid}.json"), format!(".{pid}.json.{pid}")].map(|name| folder.join(name));
        for path in written(own).iter().chain(&written(ended)) {
            fs::write(path, "{").unwrap();
        }
        assert!(waiting_runs(&places, &[files::uid()]).is_empty());
        assert!(written(own).iter().all(|path| path.exists()));
        assert!(!written(ended).iter().any(|path| path.exists()));
    }

    #[test]
    fn what_could_not_be_told_is_told_at_the_next_look() {
        let (_dir, base) = crate::places::new_shared();
        let places = || Places::at(base.clone()).unwrap();
        let mut seats = Seats::at(places(), 2).unwrap();
        assert_eq!(seats.settle(0, 2), 2);
        Presence::own(vec![make_standing(0, 9, 2)], BTreeMap::new()).publish(&places().own().unwrap()).unwrap();
        // A folder takes the record's place: the record cannot get its name.
        fs::create_dir_all(&seats.record).unwrap();
        assert_eq!(seats.settle(2, 2), 0);
        fs::remove_dir(&seats.record).unwrap();
        assert_eq!((seats.settle(2, 2), waiting_runs(&places(), &[files::uid()]).len()), (0, 1));
    }
}
