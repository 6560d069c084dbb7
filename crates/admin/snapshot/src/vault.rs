//! A vault on disk: a folder of images, and dirvish's folder in it.

use crate::ask::{Listed, Proof, VaultLocation};
use crate::conf::Conf;
use crate::dirvish;
use crate::doubt::ClockReading;
use crate::image::{EXPIRED, Image, PARTIAL, When};
use crate::journal::{self, VaultEvent};
use crate::order::{misdated, ordered};
use crate::section::vault_name;
use homing_os::folder::lock::FileLock;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustix::fs::AtFlags;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a run waits for the lock: a killed run may leave an rsync that ends a moment later.
const ENDING: Duration = Duration::from_secs(3);

/// The file in dirvish's folder of a vault that a run locks.
const LOCK: &str = "homing.lock";

/// A vault that was checked.
#[derive(Clone, Debug)]
pub struct Vault {
    /// Its folder.
    pub path: PathBuf,
}

/// Why a vault cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Another process uses it.
    Busy(String),
    /// The bank has no such vault.
    Absent(String),
    /// The reason, with an advice for the user.
    Advised(String, String),
    /// Any other reason.
    Failed(String),
}

impl From<String> for Refused {
    fn from(why: String) -> Refused {
        Refused::Failed(why)
    }
}

impl Vault {
    /// Opens an existing vault. Only root and this user may be able to replace its folder.
    pub fn open(site: &VaultLocation) -> Result<Vault, String> {
        vault_name(&site.vault)?;
        let path = site.bank.join(&site.vault);
        match homing_os::folder::who_could_swap(&site.bank) {
            // A bank is a disk that the administrator chose: if it is not mounted, no folder is made on the system's
            // own disk.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let bank = site.bank.display();
                return Err(format!(
                    "the bank {bank} is missing: mount its disk, or make the folder with mkdir {bank}"
                ));
            }
            Err(e) => return Err(format!("the bank {}: {e}", site.bank.display())),
            Ok(Some(folder)) => {
                let why = "other users could replace its files; it must belong to root or you, and be writable by no other user";
                return Err(format!("the bank {}: {}: {why}", site.bank.display(), folder.display()));
            }
            Ok(None) => {}
        }
        sound(&path)?;
        Ok(Vault { path })
    }

    /// Fails if the bank is there and has no such vault.
    pub fn must_exist(site: &VaultLocation) -> Result<(), Refused> {
        let path = site.bank.join(&site.vault);
        let is_missing = matches!(fs::symlink_metadata(&path), Err(e) if e.kind() == io::ErrorKind::NotFound);
        match is_missing && site.bank.is_dir() && vault_name(&site.vault).is_ok() {
            true => Err(Refused::Absent(format!("there is no vault {} in {}", site.vault, site.bank.display()))),
            false => Ok(()),
        }
    }

    /// The same, but makes the vault if it does not exist.
    pub fn make(site: &VaultLocation) -> Result<Vault, String> {
        vault_name(&site.vault)?;
        let path = site.bank.join(&site.vault);
        if fs::symlink_metadata(&path).is_err() && site.bank.is_dir() {
            let made = DirBuilder::new().mode(0o755).create(&path);
            made.map_err(|e| format!("cannot make the vault {}: {}", path.display(), full(&site.bank, &e)))?;
        }
        let vault = Vault::open(site)?;
        let own = vault.own();
        match DirBuilder::new().mode(0o700).create(&own) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                return Err(format!("cannot make {}: {}", own.display(), full(&site.bank, &e)));
            }
            _ => sound(&own)?,
        }
        Ok(vault)
    }

    /// Returns dirvish's folder, which holds configuration, histories, the journal and the locks.
    pub fn own(&self) -> PathBuf {
        self.path.join("dirvish")
    }

    /// Locks the vault against other runs for as long as the result lives.
    pub fn lock(&self) -> Result<FileLock, Refused> {
        let theirs = self.own().join("lock_file");
        if fs::symlink_metadata(&theirs).is_ok() {
            let why = "dirvish works on this vault; if it does not run, remove that file";
            return Err(Refused::Busy(format!("{}: {why}", theirs.display())));
        }
        let path = self.own().join(LOCK);
        let begun = Instant::now();
        loop {
            match FileLock::try_take(&path) {
                Ok(Some(held)) => return Ok(held),
                Ok(None) if begun.elapsed() < ENDING => std::thread::sleep(ENDING / 50),
                Ok(None) => {
                    return Err(Refused::Busy(format!(
                        "another process makes a snapshot of {} now",
                        self.path.display()
                    )));
                }
                Err(e) => return Err(Refused::Failed(format!("{}: {e}", path.display()))),
            }
        }
    }

    /// Returns dirvish's configuration of this vault.
    ///
    /// # Errors
    /// A file that cannot be read, or a key that homing would ignore, with the replacement.
    pub fn conf(&self) -> Result<Conf, String> {
        let conf = dirvish::load(Path::new(dirvish::ETC), &self.own())?;
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        dirvish::check(&conf, &name.unwrap_or_default()).map(|()| conf)
    }

    /// Returns the names in the vault with this ending.
    pub fn ending(&self, end: &str) -> Vec<String> {
        let mut names = self.names();
        names.retain(|name| name.len() > end.len() && name.ends_with(end));
        names
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let mut names: Vec<String> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Returns the images that are complete, or were given up incomplete, the oldest first.
    pub fn images(&self, zone: &TimeZone) -> Vec<Image> {
        let image = |name: String| {
            let folder = self.path.join(&name);
            let summary = String::from_utf8_lossy(&fs::read(folder.join("summary")).ok()?).into_owned();
            let tree = fs::symlink_metadata(folder.join("tree")).is_ok_and(|meta| meta.is_dir());
            Image::of(&name, &summary, tree, zone)
        };
        let whole = |name: &String| !name.ends_with(PARTIAL) && !name.ends_with(EXPIRED) && name != "dirvish";
        ordered(self.names().into_iter().filter(whole).filter_map(image).collect())
    }

    /// Returns the number of the next image: greater than that of any other, also of a removed one.
    pub fn next_number(&self, images: &[Image]) -> u64 {
        let finished = |event| if let VaultEvent::Finished { sequence, .. } = event { Some(sequence) } else { None };
        let noted = journal::read(&self.own()).unwrap_or_default().into_iter().filter_map(finished);
        images.iter().filter_map(|image| image.sequence).chain(noted).max().unwrap_or(0).saturating_add(1)
    }

    /// Compares this host's clock with that of the bank's file system, and with the records in all vaults of the
    /// bank.
    pub fn readings(&self) -> io::Result<Vec<ClockReading>> {
        let lock = self.own().join(LOCK);
        let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
        rustix::fs::utimensat(rustix::fs::CWD, &lock, &times, AtFlags::SYMLINK_NOFOLLOW)?;
        let here = Timestamp::now();
        let reading = |of: &str, path: &Path, may_be_old| {
            let at = Timestamp::try_from(fs::symlink_metadata(path).ok()?.modified().ok()?).ok()?;
            Some(ClockReading { of: format!("{of}, {},", path.display()), at, here, may_be_old })
        };
        let written = reading("the time of a new file in the bank", &lock, false);
        let bank = self.path.parent().unwrap_or(&self.path);
        let newest = records(bank)
            .iter()
            .filter_map(|path| reading("the time of the newest record of the bank", path, true))
            .max_by_key(|r| r.at);
        Ok(written.into_iter().chain(newest).collect())
    }

    /// Returns the image that is meant.
    pub fn pick(&self, when: &When, zone: &TimeZone) -> Result<Image, String> {
        let images = self.images(zone);
        let vault = self.path.display();
        let wrong = misdated(&images);
        // A date does not count if it contradicts the image's position.
        let is_of = |image: &Image, until| image.created <= Some(until) && !wrong.contains(&image.name);
        let good = |until: Option<Timestamp>| {
            let fits = |image: &&Image| image.is_good() && until.is_none_or(|until| is_of(image, until));
            images.iter().rev().find(fits).cloned()
        };
        match when {
            When::Newest => good(None).ok_or_else(|| format!("{vault} has no good image")),
            When::Until(at) => good(Some(*at)).ok_or_else(|| format!("{vault} has no good image up to {at}")),
            When::Named(name) => {
                let found = images.iter().find(|image| image.name == *name && image.has_tree).cloned();
                found.ok_or_else(|| format!("{vault} has no image {name:?}"))
            }
        }
    }

    /// Returns the folder of an image.
    pub fn folder(&self, image: &str) -> PathBuf {
        self.path.join(image)
    }

    /// Returns the state of the vault for `list`.
    pub fn list(&self, zone: &TimeZone) -> Listed {
        let events = journal::read(&self.own());
        let known = events.is_some();
        let last = events.into_iter().flatten().rev();
        let proved =
            last.filter_map(|event| if let VaultEvent::Proved(proof) = event { Some(proof) } else { None }).next();
        Listed {
            images: self.images(zone),
            unfinished: self.ending(PARTIAL),
            removing: self.ending(EXPIRED),
            proved,
            journal: known,
            free: free(&self.path).map_or(0, |(bytes, _)| bytes),
            now: Timestamp::now(),
        }
    }

    /// Records the result of a trial restore.
    pub fn prove(&self, proof: Proof) -> Result<(), String> {
        let kept = journal::add(&self.own(), VaultEvent::Proved(proof));
        kept.map_err(|e| format!("{}: {e}", self.own().display()))
    }
}

/// Returns the files of all vaults of a bank that record each image: journals and histories.
fn records(bank: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_record = |path: &PathBuf| path.ends_with(journal::NAME) || path.extension().is_some_and(|end| end == "hist");
    entries(bank).flat_map(|vault| entries(&vault.join("dirvish")).collect::<Vec<_>>()).filter(is_record).collect()
}

/// Checks that it is a folder, no link, of root or this user, and not writable by others.
fn sound(path: &Path) -> Result<(), String> {
    let meta: Metadata = fs::symlink_metadata(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let own = rustix::process::geteuid().as_raw();
    let why = match () {
        () if meta.is_symlink() => "is a symbolic link, which any user may have made",
        () if !meta.is_dir() => "is not a folder",
        () if ![0, own].contains(&meta.uid()) => "belongs to another user",
        () if meta.mode() & 0o022 != 0 => "is writable by other users (chmod go-w)",
        () => return Ok(()),
    };
    Err(format!("{} {why}", path.display()))
}

/// Returns free bytes and free inodes, for this user.
pub fn free(path: &Path) -> io::Result<(u64, u64)> {
    let all = rustix::fs::statvfs(path)?;
    Ok((all.f_bavail * all.f_frsize, all.f_favail))
}

/// Returns the text of an error; if it means a full bank, with figures.
pub fn full(bank: &Path, e: &io::Error) -> String {
    if e.kind() != io::ErrorKind::StorageFull && e.raw_os_error() != Some(libc::EDQUOT) {
        return e.to_string();
    }
    full_words(bank)
}

/// Returns the message that the bank is full.
pub fn full_words(bank: &Path) -> String {
    let (bytes, inodes) = free(bank).unwrap_or_default();
    let bytes = homing_model::units::bytes(bytes);
    format!("the bank {} is full: {bytes} and {inodes} inodes are free", bank.display())
}

/// Writes a file, which is on disk when this returns.
pub fn write_synced(path: &Path, text: &[u8]) -> io::Result<()> {
    fs::write(path, text)?;
    File::open(path)?.sync_all()
}

/// Syncs a folder: a new name in it is on disk when this returns.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}
