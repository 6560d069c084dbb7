//! Leases on a storage server. By them several runs, of several users, on several machines, keep to one limit. There is
//! no server of leases: the runs agree by files alone.
//!
//! Each run has a file of its own in a folder on the volume itself, which all clients share. It locks as many bytes
//! of it as it has leases. The file server releases the locks of a process that ends, however it ends. Other runs
//! only query locks to count leases. No run writes or locks the file of another. A file that cannot be opened or
//! holds no lock counts for nothing. One file with slots for all would not do: the user who made it could keep all
//! others from locking it.
//!
//! Where locks do harm, the name of the file holds the same data ([`own::PublishMethod`]). All clients of a file
//! system agree on names at once. A run touches its file or changes its name every few seconds. If it misses
//! several of these beats, it counts as gone, for example because its host died.
//!
//! Main types: [`Leases`] are those of one run, [`keep()`] is the loop of a thread that holds them. [`LeaseFolder`]
//! is the folder, and [`LeaseDemand`] the number that a run could use. [`take_units`] leases units of a host's own
//! resources, such as graphics processors, to one task or job.
//!
//! It does not: decide how many tasks a server can serve (`admit`), or stop a task.

mod after;
mod keep;
mod other;
mod own;
mod place;
mod said;
mod share;
mod terms;
mod units;
mod wishes;

pub use after::Successor;
pub use keep::{LeaseEvent, SOON, keep, keep_in_line};
use other::Other;
use own::{OwnLease, PublishMethod};
use place::{LeaseFile, files, folder, once, plain, unfit};
use said::{LeaseRecord, MOST};
use share::Weighed;
use std::collections::BTreeMap;
use std::os::unix::fs::DirEntryExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, io};
use terms::Claim;
pub use terms::{LeaseDemand, LeaseFolder, Outlook, has_in_use, serves};
pub use units::{Pool, Taker, UnitLease};
pub use wishes::{UnitError, UnitVariables, UnitWish, take_units};

/// The folder's name in the root of a volume, unless another place is set.
pub const FOLDER: &str = ".homing-leases";
/// Most runs of one user that are counted.
const RUNS: usize = 64;
/// Time after which a run that may take a lease and does not is passed over: it is stuck, or only pretends to wait.
const STUCK: Duration = Duration::from_secs(2);
/// Longest time that a run waits without any lease; then it goes on without: no user can hold others back for ever.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Time after which an untouched file without a lock does not belong to a run that is about to begin.
const LEFT_BEHIND: Duration = Duration::from_secs(24 * 3600);

/// A run's own leases; given back when dropped.
#[derive(Debug)]
pub struct Leases {
    place: LeaseFolder,
    by: PublishMethod,
    own: OwnLease,
    held: u32,
    /// The files of other runs by the constant part of their names, and by inode: two files may have the same name
    /// part.
    others: BTreeMap<(String, u64), Other>,
    may_use: u32,
    /// The time at which a lease was last given back for others who wait.
    gave: Option<Instant>,
    /// The time since which there is room that others have the first claim to.
    blocked: Option<Instant>,
    /// The time since which it waits and has none.
    starved: Option<Instant>,
    /// The time at which its file was touched.
    beat: Option<Instant>,
    /// The last field, dropped after the file is closed: NFS keeps a name for a file that is still open.
    _made: Option<CreatedFolder>,
}

/// A folder that was made here. It is removed with the last file in it.
#[derive(Debug)]
struct CreatedFolder(PathBuf);

impl Drop for CreatedFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

impl Leases {
    /// Begins to take part; returns the leases and a line for the user. Fails if leases are impossible, with a reason
    /// that names the place.
    pub fn open(place: LeaseFolder) -> Result<(Leases, Option<String>), String> {
        Leases::open_in_line(place, None)
    }

    /// Like `open`, for a process of a line: it begins with the leases of its killed predecessors.
    pub fn open_in_line(place: LeaseFolder, next: Option<&Successor>) -> Result<(Leases, Option<String>), String> {
        if let Some(why) = place.unfit {
            return Err(why);
        }
        let (folder, made, told) = folder(&place.folder)?;
        let by = PublishMethod::of(&folder);
        let place = LeaseFolder { folder, server: plain(&place.server), ..place };
        Ok((Leases::begin(place, made, by, next)?, told))
    }

    fn begin(place: LeaseFolder, made: bool, by: PublishMethod, next: Option<&Successor>) -> Result<Leases, String> {
        let cannot = |e: io::Error| format!("cannot get a lock in {}: {e}", place.folder.display());
        let own = OwnLease::make(&place, by, next).map_err(cannot)?;
        let mut leases = Leases {
            place: place.clone(),
            by,
            own,
            held: 0,
            others: BTreeMap::new(),
            may_use: 0,
            gave: None,
            blocked: None,
            starved: None,
            beat: None,
            _made: made.then(|| CreatedFolder(place.folder.clone())),
        };
        leases.succeed().map_err(cannot)?;
        leases.clear_left();
        Ok(leases)
    }

    /// Publishes the leases of its predecessors as its own, and only then removes their files. A process that looks
    /// in between counts leases twice, but never too few.
    fn succeed(&mut self) -> io::Result<()> {
        let mut before = files(&self.place)?;
        // All users can see the name of a line: it counts only on a file of the line's user.
        before.retain(|found| self.own.succeeds(&self.place, &found.stem) && found.is_own());
        let paths: Vec<PathBuf> = before.iter().map(|found| found.entry.path()).collect();
        let theirs: Vec<Other> = once(before).filter_map(|found| Other::of(&found)).collect();
        let had = theirs.iter().filter_map(Other::has);
        self.held = had.map(|said| said.held).fold(0, u32::saturating_add).min(MOST - 1);
        self.show(LeaseDemand::default())?;
        for path in paths {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    /// Looks once at the leases of others: takes leases or prepares to give some back. `settled`: the run has begun
    /// no task that the last outlook did not allow. Leases that are neither used nor allowed can then go.
    pub fn turn(&mut self, wish: LeaseDemand, settled: bool, now: Instant) -> io::Result<Outlook> {
        let wish = LeaseDemand { wanted: wish.wanted.min(MOST - 1).max(wish.used), ..wish };
        if settled {
            self.held = self.held.min(wish.used.max(self.may_use));
        }
        if self.beat.is_none_or(|beat| now.duration_since(beat) >= self.by.beat()) {
            self.beat = Some(now);
            self.own.beat();
        }
        self.show(wish)?;
        let others = self.look(now)?;
        let weighed = self.weigh(wish, &others);
        let take = self.patient(weighed.take, &weighed, &others, now);
        if take > 0 && self.publish_demand(wish, self.held + take)? {
            self.held += take;
            // If two runs took the last lease at once, at least one of them sees the other here, and gives it back.
            let again = self.look(now)?;
            if self.weigh(wish, &again).excess {
                self.held -= take;
                self.show(wish)?;
            }
        }
        if weighed.keep < self.may_use {
            self.gave = Some(now);
        }
        self.may_use = weighed.keep.min(self.held).max(if take > 0 { self.held } else { 0 });
        self.show(wish)?;
        Ok(self.outlook(wish, &others, now))
    }

    fn outlook(&mut self, wish: LeaseDemand, others: &[Claim], now: Instant) -> Outlook {
        let own = self.claim(wish);
        let mut users = BTreeMap::new();
        for claim in others.iter().chain([&own]).filter(|claim| claim.held > 0) {
            *users.entry(claim.uid).or_default() += claim.held;
        }
        let starved = if self.held > 0 || wish.wanted == 0 { None } else { self.starved.or(Some(now)) };
        self.starved = starved;
        let limit = share::limit(self.place.limit, &own, others);
        Outlook {
            // Without any limit no task waits, and leases only show others the number in use.
            may_use: if limit.is_some() { self.may_use } else { u32::MAX },
            total: users.values().sum(),
            own: own.held,
            limit,
            users,
            others: !others.is_empty(),
            gave_up: starved.is_some_and(|since| now.duration_since(since) > PATIENCE),
        }
    }

    fn weigh(&self, wish: LeaseDemand, others: &[Claim]) -> Weighed {
        share::weigh(self.place.limit, &self.claim(wish), wish.wanted, others)
    }

    /// Returns how many leases to take now. Leases that were given back for others are theirs to take first, for the
    /// time of [`STUCK`].
    fn patient(&mut self, take: u32, weighed: &Weighed, others: &[Claim], now: Instant) -> u32 {
        let gave = self.gave.filter(|gave| now.duration_since(*gave) < STUCK);
        let theirs = weighed.room > 0 && (weighed.yields || gave.is_some() && others.iter().any(|o| o.waits));
        if !theirs {
            self.blocked = None;
            return take;
        }
        let since = *self.blocked.get_or_insert(now);
        if now.duration_since(since) < STUCK {
            return 0;
        }
        self.blocked = None;
        for claim in others.iter().filter(|claim| claim.waits) {
            for (_, other) in self.others.iter_mut().filter(|((stem, _), _)| *stem == claim.name) {
                other.passed_over = Some(claim.held);
            }
        }
        take
    }

    fn claim(&self, wish: LeaseDemand) -> Claim {
        let uid = rustix::process::geteuid().as_raw();
        let waits = wish.wanted > self.held;
        Claim { name: self.own.stem.clone(), uid, held: self.held, waits, limit: wish.limit }
    }

    /// Shows others its leases, its limit, and whether it waits.
    fn show(&mut self, wish: LeaseDemand) -> io::Result<()> {
        self.publish_demand(wish, self.held).map(drop)
    }

    fn publish_demand(&mut self, wish: LeaseDemand, held: u32) -> io::Result<bool> {
        self.own.publish(LeaseRecord::new(held, wish.limit, wish.wanted > held))
    }

    /// Returns the claims of the others.
    fn look(&mut self, now: Instant) -> io::Result<Vec<Claim>> {
        let (mut there, mut own) = (BTreeMap::new(), false);
        for found in once(self.list()?) {
            if found.stem == self.own.stem {
                own = true;
                continue;
            }
            let key = (found.stem.clone(), found.entry.ino());
            if let Some(other) = self.others.remove(&key).or_else(|| Other::of(&found)) {
                there.insert(key, Other { named: found.named, ..other });
            }
        }
        self.others = there;
        // A listing may be older than the file.
        if !own && fs::symlink_metadata(self.own.path()).is_err() {
            self.make_again()?;
        }
        let mut runs: BTreeMap<u32, usize> = BTreeMap::new();
        let mut claims = Vec::new();
        for ((name, _), other) in &mut self.others {
            let Some(LeaseRecord { waits, limit, held }) = other.has().filter(|_| other.lives(now)) else { continue };
            let count = runs.entry(other.uid).or_default();
            *count += 1;
            if *count > RUNS {
                continue;
            }
            other.passed_over = other.passed_over.filter(|then| *then == held);
            let waits = waits && other.passed_over.is_none();
            claims.push(Claim { name: name.clone(), uid: other.uid, held, waits, limit });
        }
        Ok(claims)
    }

    /// Lists the files. A file that gets another name during the listing may be missed under both names. The folder
    /// is therefore listed again if a known file is missing.
    fn list(&self) -> io::Result<Vec<LeaseFile>> {
        let mut all = files(&self.place)?;
        let is_there = |(stem, inode): &(String, u64)| all.iter().any(|f| f.stem == *stem && f.entry.ino() == *inode);
        if !self.others.keys().all(is_there) {
            all.extend(files(&self.place)?);
        }
        Ok(all)
    }

    /// Makes the file again. The owner of the folder can remove files in it, which hides these leases from others.
    fn make_again(&mut self) -> io::Result<()> {
        self.own = self.own.make_again(&self.place)?;
        Ok(())
    }

    /// Removes this user's files whose runs were killed.
    fn clear_left(&self) {
        let uid = rustix::process::geteuid().as_raw();
        for found in files(&self.place).into_iter().flatten().filter(|found| found.stem != self.own.stem) {
            if Other::of(&found).is_some_and(|other| other.uid == uid && other.is_left(LEFT_BEHIND)) {
                let _ = fs::remove_file(found.entry.path());
            }
        }
    }
}

/// Returns the limit of a server and the leases of each user there, for a process that takes no part. `None` if no
/// run takes part, or if nothing can be read.
pub fn look(place: &LeaseFolder) -> Option<Outlook> {
    let found = homing_os::folder::names(place.folder.parent()?, place.folder.file_name()?.to_str()?)
        .find(|f| unfit(f).is_none());
    let place = LeaseFolder { folder: found?, server: plain(&place.server), limit: place.limit, unfit: None };
    let mut outlook = Outlook { limit: place.limit, ..Outlook::default() };
    for found in once(files(&place).ok()?) {
        let Some(other) = Other::of(&found) else { continue };
        let Some(LeaseRecord { limit, held, .. }) = other.has().filter(|_| other.seems_alive()) else { continue };
        *outlook.users.entry(other.uid).or_default() += held;
        outlook.total += held;
        outlook.others = true;
        outlook.limit = place.limit.or([outlook.limit, limit].into_iter().flatten().min());
    }
    outlook.others.then_some(outlook)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
#[path = "../../../../tests/until.rs"]
mod until;
