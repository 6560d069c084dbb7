//! Leases on a storage server, by which all who use it keep to one limit: several runs, of several users, on several
//! machines, with no process that would have to run for it.
//!
//! Each run has a file of its own in a folder of the volume itself, which all clients share, and locks as many of its
//! bytes as it has leases. What the file server has locked for a process that ends, however it ends, it gives back.
//! To count leases others only ask for locks: nobody writes, locks or removes what is another's, and a file that
//! cannot be opened or holds no lock counts for nothing. Slots in one file for all were another way: whoever came
//! first could make it such that nobody else was able to lock it. Where locks do harm, the file's name says the same
//! ([`own::By`]): names are what all clients of a file system agree on at once.
//!
//! [`Leases`] are those of one run, [`keep`] is the loop of a thread that holds them, [`Place`] is the folder and
//! [`Wish`] the number that a run could use. It does not decide how many a server bears (`admit`), and needs no daemon.

mod after;
mod keep;
mod other;
mod own;
mod place;
mod said;
mod share;
mod terms;

pub use after::Successor;
pub use keep::{News, SOON, keep, keep_in_line};
use other::Other;
use own::{By, Own};
use place::{Found, files, folder, once, plain, unfit};
use said::{MOST, Said};
use share::Weighed;
use std::collections::BTreeMap;
use std::os::unix::fs::DirEntryExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, io};
use terms::Claim;
pub use terms::{Outlook, Place, Wish, has_in_use, serves};

/// The folder's name in the root of a volume, where no other place is said.
pub const FOLDER: &str = ".homing-leases";
/// Runs of one user that are counted: more cost others a question each.
const RUNS: usize = 64;
/// A run that may take a lease and does not for this long is passed over: it is stuck, or only pretends to wait.
const STUCK: Duration = Duration::from_secs(2);
/// A run that has waited for so long and never got a lease goes on without: nobody holds others back for ever.
const PATIENCE: Duration = Duration::from_secs(3600);
/// A file without a lock that was not touched for so long is no beginner's.
const LEFT_BEHIND: Duration = Duration::from_secs(24 * 3600);

/// A run's own leases; given back when dropped.
#[derive(Debug)]
pub struct Leases {
    place: Place,
    by: By,
    own: Own,
    held: u32,
    /// By what stays of their files' names, and inode: two files may have the same one.
    others: BTreeMap<(String, u64), Other>,
    may_use: u32,
    /// When one was given back for others who wait.
    gave: Option<Instant>,
    /// Since when there is room that others have the first claim to.
    blocked: Option<Instant>,
    /// Since when it waits and has none.
    starved: Option<Instant>,
    /// When its file was touched.
    beat: Option<Instant>,
    /// The last of all: NFS keeps a name of a file that is still open.
    _made: Option<Made>,
}

/// A folder that was made here, and goes with the last who has a file there.
#[derive(Debug)]
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

impl Leases {
    /// Begins to take part; what else is to be told. Fails where leases cannot be had, for a reason that names the place.
    pub fn open(place: Place) -> Result<(Leases, Option<String>), String> {
        Leases::open_in_line(place, None)
    }

    /// The same by one of a line: it begins with the leases of those before it that were killed.
    pub fn open_in_line(place: Place, next: Option<&Successor>) -> Result<(Leases, Option<String>), String> {
        if let Some(why) = place.unfit {
            return Err(why);
        }
        let (folder, made, told) = folder(&place.folder)?;
        let by = By::of(&folder);
        let place = Place { folder, server: plain(&place.server), ..place };
        Ok((Leases::begin(place, made, by, next)?, told))
    }

    fn begin(place: Place, made: bool, by: By, next: Option<&Successor>) -> Result<Leases, String> {
        let cannot = |e: io::Error| format!("no lock can be had in {}: {e}", place.folder.display());
        let own = Own::make(&place, by, next).map_err(cannot)?;
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
            _made: made.then(|| Made(place.folder.clone())),
        };
        leases.succeed().map_err(cannot)?;
        leases.clear_left();
        Ok(leases)
    }

    /// Says that it has what those before it had, and only then removes their files: whoever looks between the two counts
    /// leases twice, and never too few.
    fn succeed(&mut self) -> io::Result<()> {
        let mut before = files(&self.place)?;
        // The name of a line is seen by all: it counts only on a file of the line's user.
        before.retain(|found| self.own.succeeds(&self.place, &found.stem) && found.is_own());
        let paths: Vec<PathBuf> = before.iter().map(|found| found.entry.path()).collect();
        let theirs: Vec<Other> = once(before).filter_map(|found| Other::of(&found)).collect();
        let had = theirs.iter().filter_map(Other::has);
        self.held = had.map(|said| said.held).fold(0, u32::saturating_add).min(MOST - 1);
        self.show(Wish::default())?;
        for path in paths {
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    /// One look at what others have: takes leases or prepares to give some back. `settled`: the run has begun nothing
    /// that it was not allowed by the last outlook, so that what is neither used nor allowed can go.
    pub fn turn(&mut self, wish: Wish, settled: bool, now: Instant) -> io::Result<Outlook> {
        let wish = Wish { wanted: wish.wanted.min(MOST - 1).max(wish.used), ..wish };
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
        if take > 0 && self.say(wish, self.held + take)? {
            self.held += take;
            // Of two that took the last one at once, at least one sees the other here, and lets go.
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

    fn outlook(&mut self, wish: Wish, others: &[Claim], now: Instant) -> Outlook {
        let own = self.claim(wish);
        let mut users = BTreeMap::new();
        for claim in others.iter().chain([&own]).filter(|claim| claim.held > 0) {
            *users.entry(claim.uid).or_default() += claim.held;
        }
        let starved = if self.held > 0 || wish.wanted == 0 { None } else { self.starved.or(Some(now)) };
        self.starved = starved;
        let limit = share::limit(self.place.limit, &own, others);
        Outlook {
            // Where nobody has said a limit, there is nothing to wait for, and leases only tell others what is in use.
            may_use: if limit.is_some() { self.may_use } else { u32::MAX },
            total: users.values().sum(),
            own: own.held,
            limit,
            users,
            others: !others.is_empty(),
            gave_up: starved.is_some_and(|since| now.duration_since(since) > PATIENCE),
        }
    }

    fn weigh(&self, wish: Wish, others: &[Claim]) -> Weighed {
        share::weigh(self.place.limit, &self.claim(wish), wish.wanted, others)
    }

    /// What was given back for others is theirs to take first, and they have the time of [`STUCK`] to do so.
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

    fn claim(&self, wish: Wish) -> Claim {
        let uid = rustix::process::geteuid().as_raw();
        let waits = wish.wanted > self.held;
        Claim { name: self.own.stem.clone(), uid, held: self.held, waits, limit: wish.limit }
    }

    /// Lets others see what it holds, its limit, and whether it waits.
    fn show(&mut self, wish: Wish) -> io::Result<()> {
        self.say(wish, self.held).map(drop)
    }

    fn say(&mut self, wish: Wish, held: u32) -> io::Result<bool> {
        self.own.say(Said::new(held, wish.limit, wish.wanted > held))
    }

    /// What the others have.
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
            let Some(Said { waits, limit, held }) = other.has().filter(|_| other.lives(now)) else { continue };
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

    /// A file that gets another name while the folder is read may be missed under both, so that it is read once more
    /// where one is missing that was there before.
    fn list(&self) -> io::Result<Vec<Found>> {
        let mut all = files(&self.place)?;
        let is_there = |(stem, inode): &(String, u64)| all.iter().any(|f| f.stem == *stem && f.entry.ino() == *inode);
        if !self.others.keys().all(is_there) {
            all.extend(files(&self.place)?);
        }
        Ok(all)
    }

    /// Whoever owns the folder can remove what lies in it; then nobody sees these leases any more.
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

/// The limit of all of a server and what each user has there, as seen by somebody who takes no part; `None` where
/// nobody does, or nothing can be seen.
pub fn look(place: &Place) -> Option<Outlook> {
    let found = homing_os::folder::names(place.folder.parent()?, place.folder.file_name()?.to_str()?)
        .find(|f| unfit(f).is_none());
    let place = Place { folder: found?, server: plain(&place.server), limit: place.limit, unfit: None };
    let mut outlook = Outlook { limit: place.limit, ..Outlook::default() };
    for found in once(files(&place).ok()?) {
        let Some(other) = Other::of(&found) else { continue };
        let Some(Said { limit, held, .. }) = other.has().filter(|_| other.seems_alive()) else { continue };
        *outlook.users.entry(other.uid).or_default() += held;
        outlook.total += held;
        outlook.others = true;
        outlook.limit = place.limit.or([outlook.limit, limit].into_iter().flatten().min());
    }
    outlook.others.then_some(outlook)
}

#[cfg(test)]
mod tests;
