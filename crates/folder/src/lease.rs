//! Leases on a storage server, by which all who use it keep to one limit: several runs, of several users, on several
//! machines, with no process that would have to run for it.
//!
//! Each run has a file of its own in a folder of the volume itself, which all clients share, and locks as many of its
//! bytes as it has leases. What the file server has locked for a process that ends, however it ends, it gives back.
//! To count leases others only ask for locks: nobody writes, locks or removes what is another's, and a file that
//! cannot be opened or holds no lock counts for nothing. Slots in one file for all were another way: whoever came
//! first could make it such that nobody else was able to lock it.

mod share;

use crate::lock;
use share::Weighed;
use std::collections::BTreeMap;
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirEntryExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The folder's name in the root of a volume, where no other place is said.
pub const FOLDER: &str = ".homing-leases";
/// More leases than this nobody has.
const MOST: u32 = 1 << 16;
/// From this byte on one is locked while the run goes on: its offset says the run's limit (0: none), doubled, and
/// one more when it waits for leases.
const FLAGS: u32 = 1 << 17;
/// Behind all flags.
const END: u32 = FLAGS + 2 * MOST;
/// Runs of one user that are counted: more cost others a question each.
const RUNS: usize = 64;
/// A run that may take a lease and does not for this long is passed over: it is stuck, or only pretends to wait.
const STUCK: Duration = Duration::from_secs(2);
/// A run that has waited for so long and never got a lease goes on without: nobody holds others back for ever.
const PATIENCE: Duration = Duration::from_secs(3600);
/// A run touches its file so often,
const BEAT: Duration = Duration::from_secs(5);
/// and counts as gone when nobody has seen it do so for this long, whatever its locks say: MooseFS keeps those of a
/// host that died for a day, NFS 4 for 90 s and more. A file server that is slow must not make a run seem dead.
const DEAD: Duration = Duration::from_secs(30);
/// A file without a lock that was not touched for so long is no beginner's.
const LEFT_BEHIND: Duration = Duration::from_secs(24 * 3600);

/// Where the leases of a server are, and what its administrator allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The folder, on a volume that all who use the server have mounted.
    pub folder: PathBuf,
    /// Tells servers apart whose leases lie in the same folder.
    pub server: String,
    /// Tasks at once of everybody together; `None`: as few as any of those allows who are there.
    pub limit: Option<u32>,
    /// Why locks there would tell other machines nothing.
    pub unfit: Option<String>,
}

/// What a run would do with leases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Tasks that it could have at the server now.
    pub wanted: u32,
    /// Leases that it must keep: its tasks there.
    pub used: u32,
    /// Its own limit.
    pub limit: Option<u32>,
}

/// Who has how many, and what this run may use of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// It may begin tasks while it has fewer than this.
    pub may_use: u32,
    /// Leases of all.
    pub total: u32,
    /// The limit of all; `None`: nobody has said one.
    pub limit: Option<u32>,
    /// Leases of each user who has some, by user id.
    pub users: BTreeMap<u32, u32>,
    /// Others are there, so that it pays to look often.
    pub others: bool,
    /// It has waited for very long and goes on without leases.
    pub gave_up: bool,
}

/// A run's own leases; given back when dropped.
#[derive(Debug)]
pub struct Leases {
    place: Place,
    file: File,
    name: String,
    held: u32,
    flag: u32,
    others: BTreeMap<String, Other>,
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

#[derive(Debug)]
struct Other {
    file: File,
    inode: u64,
    uid: u32,
    /// What it held when it was found not to take what it could.
    passed_over: Option<u32>,
    beat: Option<Beat>,
}

/// When a run's file was seen to be touched.
#[derive(Clone, Copy, Debug)]
struct Beat {
    stamp: (i64, u32),
    changed: Instant,
    asked: Instant,
}

impl Other {
    /// Whether its run waits, its limit, and its leases; `None` when there is no such run any more, whose file may be
    /// gone on the file server.
    fn has(&self) -> Option<(bool, Option<u32>, u32)> {
        let (waits, limit) = flags(&self.file).ok()??;
        let held = lock::met(&self.file, (0, MOST)).ok()?.map_or(0, |(from, to)| to - from);
        Some((waits, limit, held))
    }

    /// Whether its run was there of late.
    fn lives(&mut self, now: Instant) -> bool {
        if self.beat.is_none_or(|beat| now.duration_since(beat.asked) >= BEAT) {
            let stamp = touched(&self.file);
            let changed = self.beat.filter(|beat| beat.stamp == stamp).map_or(now, |beat| beat.changed);
            self.beat = Some(Beat { stamp, changed, asked: now });
        }
        self.beat.is_none_or(|beat| now.duration_since(beat.changed) < DEAD)
    }
}

/// When a file was changed last, as the file server has it.
fn touched(file: &File) -> (i64, u32) {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let found = statx(file, "", AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC, StatxFlags::MTIME);
    found.map_or((0, 0), |found| (found.stx_mtime.tv_sec, found.stx_mtime.tv_nsec))
}

impl Leases {
    /// Begins to take part; what else is to be told. Fails where leases cannot be had, for a reason that names the place.
    pub fn open(place: Place) -> Result<(Leases, Option<String>), String> {
        if let Some(why) = place.unfit {
            return Err(why);
        }
        let (folder, made, told) = folder(&place.folder)?;
        let place = Place { folder, server: plain(&place.server), ..place };
        let cannot = |e: io::Error| format!("no lock can be had in {}: {e}", place.folder.display());
        let (name, file) = own_file(&place).map_err(cannot)?;
        let mut leases = Leases {
            place: place.clone(),
            file,
            name,
            held: 0,
            flag: 0,
            others: BTreeMap::new(),
            may_use: 0,
            gave: None,
            blocked: None,
            starved: None,
            beat: None,
            _made: made.then(|| Made(place.folder.clone())),
        };
        leases.show(Wish::default()).map_err(cannot)?;
        leases.clear_left();
        Ok((leases, told))
    }

    /// One look at what others have: takes leases or prepares to give some back. `settled`: the run has begun nothing
    /// that it was not allowed by the last outlook, so that what is neither used nor allowed can go.
    pub fn turn(&mut self, wish: Wish, settled: bool, now: Instant) -> io::Result<Outlook> {
        let wish = Wish { wanted: wish.wanted.min(MOST - 1).max(wish.used), ..wish };
        if settled {
            self.lower(wish.used.max(self.may_use))?;
        }
        if self.beat.is_none_or(|beat| now.duration_since(beat) >= BEAT) {
            self.beat = Some(now);
            let _ = self.file.set_modified(SystemTime::now());
        }
        self.show(wish)?;
        let others = self.look(now)?;
        let weighed = self.weigh(wish, &others);
        let take = self.patient(weighed.take, &weighed, &others, now);
        if take > 0 && lock::try_add(&self.file, (self.held, Some(self.held + take)))? {
            self.held += take;
            // Of two that took the last one at once, at least one sees the other here, and lets go.
            let again = self.look(now)?;
            if self.weigh(wish, &again).excess {
                self.lower(self.held - take)?;
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
        Outlook {
            may_use: self.may_use,
            total: users.values().sum(),
            limit: share::limit(self.place.limit, &own, others),
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
            if let Some(other) = self.others.get_mut(&claim.name) {
                other.passed_over = Some(claim.held);
            }
        }
        take
    }

    fn lower(&mut self, to: u32) -> io::Result<()> {
        if to < self.held {
            lock::give_back(&self.file, (to, Some(self.held)))?;
            self.held = to;
            self.may_use = self.may_use.min(to);
        }
        Ok(())
    }

    fn claim(&self, wish: Wish) -> Claim {
        let uid = rustix::process::geteuid().as_raw();
        let waits = wish.wanted > self.held;
        Claim { name: self.name.clone(), uid, held: self.held, waits, limit: wish.limit }
    }

    /// Lets others see the limit, and whether it waits.
    fn show(&mut self, wish: Wish) -> io::Result<()> {
        let flag = FLAGS + 2 * wish.limit.unwrap_or(0).min(MOST - 1) + u32::from(wish.wanted > self.held);
        if flag != self.flag {
            lock::try_add(&self.file, (flag, Some(flag + 1)))?;
            if self.flag > 0 {
                lock::give_back(&self.file, (self.flag, Some(self.flag + 1)))?;
            }
            self.flag = flag;
        }
        Ok(())
    }

    /// What the others have, by their locks.
    fn look(&mut self, now: Instant) -> io::Result<Vec<Claim>> {
        let (mut there, mut own) = (BTreeMap::new(), false);
        for (name, entry) in files(&self.place)? {
            if name == self.name {
                own = true;
            } else if let Some(other) =
                self.others.remove(&name).filter(|o| o.inode == entry.ino()).or_else(|| other(&entry))
            {
                there.insert(name, other);
            }
        }
        self.others = there;
        // A listing may be older than the file.
        if !own && fs::symlink_metadata(self.place.folder.join(&self.name)).is_err() {
            self.make_again()?;
        }
        let mut runs: BTreeMap<u32, usize> = BTreeMap::new();
        let mut claims = Vec::new();
        for (name, other) in &mut self.others {
            let Some((waits, limit, held)) = other.has().filter(|_| other.lives(now)) else { continue };
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

    /// Whoever owns the folder can remove what lies in it; then nobody sees these leases any more.
    fn make_again(&mut self) -> io::Result<()> {
        (self.name, self.file) = own_file(&self.place)?;
        let flag = std::mem::take(&mut self.flag).max(FLAGS);
        lock::try_add(&self.file, (flag, Some(flag + 1)))?;
        self.flag = flag;
        if self.held > 0 {
            lock::try_add(&self.file, (0, Some(self.held)))?;
        }
        Ok(())
    }

    /// Removes this user's files whose runs were killed.
    fn clear_left(&self) {
        let uid = rustix::process::geteuid().as_raw();
        let old = |meta: &fs::Metadata| {
            let age = meta.modified().ok().and_then(|at| SystemTime::now().duration_since(at).ok());
            age.is_some_and(|age| age > LEFT_BEHIND)
        };
        for (name, entry) in files(&self.place).into_iter().flatten() {
            let Some(other) = other(&entry).filter(|o| o.uid == uid && name != self.name) else { continue };
            if other.file.metadata().is_ok_and(|meta| old(&meta)) && matches!(flags(&other.file), Ok(None)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.place.folder.join(&self.name));
    }
}

/// What one run has of a server's leases, as everybody sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Claim {
    name: String,
    uid: u32,
    held: u32,
    waits: bool,
    limit: Option<u32>,
}

/// The limit of all of a server and what each user has there, as seen by somebody who takes no part; `None` where
/// nobody does, or nothing can be seen.
pub fn look(place: &Place) -> Option<Outlook> {
    let found = crate::names(place.folder.parent()?, place.folder.file_name()?.to_str()?).find(|f| unfit(f).is_none());
    let place = Place { folder: found?, server: plain(&place.server), limit: place.limit, unfit: None };
    let mut outlook = Outlook { limit: place.limit, ..Outlook::default() };
    for (_, entry) in files(&place).ok()? {
        let Some(other) = other(&entry) else { continue };
        let Some((_, limit, held)) = other.has() else { continue };
        *outlook.users.entry(other.uid).or_default() += held;
        outlook.total += held;
        outlook.others = true;
        outlook.limit = place.limit.or([outlook.limit, limit].into_iter().flatten().min());
    }
    outlook.others.then_some(outlook)
}

/// Whether a run waits, and its limit; `None` when no run has this file any more.
fn flags(file: &File) -> io::Result<Option<(bool, Option<u32>)>> {
    let flag = lock::met(file, (FLAGS, END))?.map(|(from, _)| from - FLAGS);
    Ok(flag.map(|flag| (flag % 2 == 1, Some(flag / 2).filter(|limit| *limit > 0))))
}

/// The first folder of this name that all may use, made where there is none; whether it was made, and what was passed
/// over.
fn folder(wanted: &Path) -> Result<(PathBuf, bool, Option<String>), String> {
    let (Some(parent), Some(name)) = (wanted.parent(), wanted.file_name().and_then(|name| name.to_str())) else {
        return Err(format!("{} cannot be a folder for leases", wanted.display()));
    };
    let mut passed = None;
    for folder in crate::names(parent, name) {
        let made = crate::shared::make(&folder).map_err(|e| match e.kind() {
            io::ErrorKind::PermissionDenied => {
                format!("{} is not there, and {} cannot be written", folder.display(), parent.display())
            }
            _ => format!("cannot make {}: {e}", folder.display()),
        })?;
        match unfit(&folder) {
            None => return Ok((folder, made, passed)),
            Some(why) => passed = passed.or(Some(format!("{} {why}, and was passed over", folder.display()))),
        }
    }
    Err(format!("{}; so were all others of that name", passed.unwrap_or_default()))
}

/// Why a folder will not do: in one without the sticky bit others could remove a run's file, into one that is not
/// open to all somebody cannot come, and all must find the same.
fn unfit(folder: &Path) -> Option<String> {
    let meta = match fs::symlink_metadata(folder) {
        Ok(meta) => meta,
        Err(e) => return Some(format!("cannot be looked at: {e}")),
    };
    let (is_link, mode) = (meta.is_symlink(), meta.mode() & 0o7777);
    match (meta.is_dir(), mode) {
        (true, 0o1777) => None,
        (true, _) => Some(format!("is open to {mode:o} and not to all (chmod 1777)")),
        _ if is_link => Some("is a symbolic link".into()),
        _ => Some("is no folder".into()),
    }
}

/// As part of a file's name.
fn plain(server: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || "-.:".contains(c) { c.to_ascii_lowercase() } else { '_' };
    server.chars().take(64).map(fits).collect()
}

/// The run's own file, which nobody else opens to write.
fn own_file(place: &Place) -> io::Result<(String, File)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let host = plain(&rustix::system::uname().nodename().to_string_lossy());
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}@{host}.{}.{number}", place.server, std::process::id());
        let mut options = OpenOptions::new();
        match options.read(true).write(true).create_new(true).mode(0o644).open(place.folder.join(&name)) {
            // A file left behind, or a stranger's.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists && number < 1 << 16 => {}
            made => return made.map(|file| (name, file)),
        }
    }
}

/// The files of this server's runs.
fn files(place: &Place) -> io::Result<Vec<(String, DirEntry)>> {
    let of_server = |name: &String| name.strip_prefix(&place.server).is_some_and(|rest| rest.starts_with('@'));
    let mut all = Vec::new();
    for entry in fs::read_dir(&place.folder)? {
        let entry = entry?;
        all.extend(entry.file_name().into_string().ok().filter(of_server).map(|name| (name, entry)));
    }
    Ok(all)
}

/// What is no regular file, or cannot be opened, holds nothing; a pipe is not waited for.
fn other(entry: &DirEntry) -> Option<Other> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    if !entry.file_type().ok()?.is_file() {
        return None;
    }
    let file = OpenOptions::new().read(true).custom_flags(flags).open(entry.path()).ok()?;
    let meta = file.metadata().ok().filter(|meta| meta.is_file())?;
    Some(Other { inode: meta.ino(), uid: meta.uid(), file, passed_over: None, beat: None })
}

#[cfg(test)]
mod tests;
