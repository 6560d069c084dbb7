//! Makes an instant copy of a folder and keeps it for as long as a channel is open. If the program is killed, the
//! next copy removes its remains.

use crate::ask::{Freeze, SnapshotReply};
use crate::instant::{FOLDER, InstantMethod};
use crate::{remove, run};
use homing_mounts::MountLine;
use homing_os::folder::lock::FileLock;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{self, BufRead};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `BTRFS_FIRST_FREE_OBJECTID` of linux/btrfs_tree.h: the inode of each subvolume's root.
const SUBVOLUME_ROOT: u64 = 256;

/// Makes a copy, reports its path, and removes it when the channel ends. If a copy was expected but could not be
/// made, it sends a note.
pub fn hold(
    order: &Freeze,
    orders: impl BufRead,
    say: &mut dyn FnMut(SnapshotReply) -> io::Result<()>,
) -> io::Result<()> {
    let made = match Frozen::new(order) {
        Ok(made) => made,
        Err(why) => {
            let folder = order.folder.display();
            say(SnapshotReply::Note(format!("homing copies {folder} directly, not from an instant copy: {why}")))?;
            None
        }
    };
    say(SnapshotReply::Frozen(made.as_ref().map(|made| (made.way, made.seen.as_path().into()))))?;
    // Input is ignored; only its end matters.
    orders.lines().map_while(Result::ok).for_each(drop);
    let removed = made.map_or(Ok(()), |made| {
        let place = made.copy.parent().map(Path::to_path_buf);
        let removed = made.remove();
        // Other processes may have theirs in it.
        place.map(fs::remove_dir);
        removed
    });
    removed.or_else(|why| say(SnapshotReply::Note(why)))
}

/// An instant copy that exists.
struct Frozen {
    way: InstantMethod,
    /// The source of the copy: a dataset's name, or a path.
    from: PathBuf,
    /// Its folder, in the folder for instant copies.
    copy: PathBuf,
    /// The source folder inside the copy.
    seen: PathBuf,
    _held: FileLock,
}

impl Frozen {
    /// Makes a copy. `None`: the file system has no such copies, or none are wanted.
    fn new(order: &Freeze) -> Result<Option<Frozen>, String> {
        let folder = order.folder.as_path();
        let failed = |e: io::Error| e.to_string();
        let real = folder.canonicalize().map_err(failed)?;
        let lines = homing_mounts::read().map_err(failed)?;
        let Some(line) = homing_mounts::holding(&lines, &real) else { return Ok(None) };
        let Some(way) = InstantMethod::of(&line.mount, order.wanted) else { return Ok(None) };
        if !rustix::process::geteuid().is_root() {
            return Err(format!("only root can make one on {}", way.name()));
        }
        let root = root(way, &real, line)?;
        let place = place(&root)?;
        let from = if way == InstantMethod::Zfs { line.mount.source.to_path() } else { root.clone() };
        sweep(way, &from, &place);
        let (name, held) = lock(&place)?;
        let copy = place.join(&name);
        let below = real.strip_prefix(&root).unwrap_or(Path::new(""));
        let seen = match way {
            InstantMethod::Btrfs => copy.join(below),
            InstantMethod::Zfs => root.join(".zfs/snapshot").join(format!("homing-{name}")).join(below),
            InstantMethod::MooseFs | InstantMethod::Reflink => copy.clone(),
        };
        let frozen = Frozen { way, from, copy, seen: seen.components().collect(), _held: held };
        match frozen.make(&real, &place).and_then(|()| frozen.is_there(&real)) {
            Ok(()) => Ok(Some(frozen)),
            Err(why) => {
                let _ = frozen.remove();
                Err(why)
            }
        }
    }

    fn make(&self, real: &Path, place: &Path) -> Result<(), String> {
        let whole = match self.way {
            InstantMethod::Btrfs | InstantMethod::Zfs => vec![self.from.as_path()],
            InstantMethod::MooseFs | InstantMethod::Reflink => vec![real],
        };
        // A folder cannot be copied into itself.
        if !place.starts_with(real) || matches!(self.way, InstantMethod::Btrfs | InstantMethod::Zfs) {
            return run_all(&self.way.make(&whole, &self.copy, false));
        }
        let failed = |e: io::Error| format!("{}: {e}", self.copy.display());
        DirBuilder::new().mode(0o700).create(&self.copy).map_err(failed)?;
        let parts = entries(real, place).map_err(failed)?;
        let parts: Vec<&Path> = parts.iter().map(PathBuf::as_path).collect();
        run_all(&self.way.make(&parts, &self.copy, true))?;
        run_all(&[attributes(real, &self.copy)])
    }

    /// Checks that the copy is a folder, and not empty if the source is not empty.
    fn is_there(&self, real: &Path) -> Result<(), String> {
        let any = |path: &Path| fs::read_dir(path).map(|mut entries| entries.next().is_some());
        let found = any(&self.seen).map_err(|e| format!("{}: {e}", self.seen.display()))?;
        let same = found || !any(real).unwrap_or(true);
        same.then_some(()).ok_or_else(|| format!("{} is empty", self.seen.display()))
    }

    fn remove(self) -> Result<(), String> {
        take_away(self.way, &self.from, &self.copy)
    }
}

/// Returns the topmost folder of the file system or subvolume, as far as it is mounted here.
fn root(way: InstantMethod, real: &Path, line: &MountLine) -> Result<PathBuf, String> {
    let point = line.mount.point.to_path();
    if way != InstantMethod::Btrfs {
        return Ok(point);
    }
    let is_root = |folder: &&Path| fs::metadata(folder).is_ok_and(|meta| meta.ino() == SUBVOLUME_ROOT);
    let found = real.ancestors().take_while(|folder| folder.starts_with(&point)).find(is_root);
    found
        .map(Path::to_path_buf)
        .ok_or_else(|| format!("the root of its subvolume is not mounted at {}", point.display()))
}

/// Returns the folder for instant copies, which no other user can replace.
fn place(root: &Path) -> Result<PathBuf, String> {
    let doing = |e: io::Error| format!("{}: {e}", root.join(FOLDER).display());
    if let Some(folder) = homing_os::folder::who_could_swap(root).map_err(doing)? {
        return Err(format!("other users could replace files that root makes in {}", folder.display()));
    }
    homing_os::folder::own(root, FOLDER, 0o700).map_err(doing)
}

/// Returns an unused name and its lock, which shows that its maker lives.
fn lock(place: &Path) -> Result<(String, FileLock), String> {
    let doing = |e: io::Error| format!("{}: {e}", place.display());
    let name = homing_os::folder::unguessable().map_err(doing)?;
    let held = FileLock::try_take(&place.join(format!("{name}{LOCK}"))).map_err(doing)?;
    held.map(|held| (name, held)).ok_or_else(|| format!("{}: another process took each new name", place.display()))
}

/// The ending of the name of a copy's lock.
const LOCK: &str = ".lock";

/// Removes copies whose makers do not live any more.
fn sweep(way: InstantMethod, from: &Path, place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let lock = entry.path();
        let name = entry.file_name().into_string().unwrap_or_default();
        let Some(name) = name.strip_suffix(LOCK) else { continue };
        if let Ok(Some(_held)) = FileLock::try_take(&lock) {
            let _ = take_away(way, from, &place.join(name));
        }
    }
}

/// Removes a copy, even an incomplete one, and then its lock.
fn take_away(way: InstantMethod, from: &Path, copy: &Path) -> Result<(), String> {
    let there = way == InstantMethod::Zfs || fs::symlink_metadata(copy).is_ok();
    let removed = match way.remove(from, copy) {
        _ if !there => Ok(()),
        Some(words) => run_all(&[words]),
        None => {
            run::lowest();
            remove::delete(copy).map_err(|e| format!("{}: {e}", copy.display()))
        }
    };
    // A MooseFS copy in parts is in a folder that is no copy itself. A copy that was never made is no failure.
    let gone = fs::symlink_metadata(copy).is_err() || remove::delete(copy).is_ok();
    let mut lock = copy.as_os_str().to_owned();
    lock.push(LOCK);
    match removed {
        Err(why) if !gone => Err(format!("removing the instant copy: {why}")),
        _ => fs::remove_file(lock).map_err(|e| format!("{}: {e}", copy.display())),
    }
}

/// Returns the entries of a folder, without the folder for instant copies.
fn entries(real: &Path, place: &Path) -> io::Result<Vec<PathBuf>> {
    let all: io::Result<Vec<PathBuf>> = fs::read_dir(real)?.map(|entry| Ok(entry?.path())).collect();
    Ok(all?.into_iter().filter(|path| path != place).collect())
}

/// Returns the command that gives a folder the owner, mode, time, ACLs and attributes of another.
fn attributes(from: &Path, to: &Path) -> Vec<OsString> {
    let slash = |path: &Path| {
        let mut word = OsString::from(path);
        word.push("/");
        word
    };
    let words = ["rsync", "-aAXd", "--no-r", "--numeric-ids", "--exclude=*", "--"].map(OsString::from);
    words.into_iter().chain([slash(from), slash(to)]).collect()
}

fn run_all(all: &[Vec<OsString>]) -> Result<(), String> {
    all.iter().try_for_each(|words| run_it(words))
}

fn run_it(words: &[OsString]) -> Result<(), String> {
    let (program, rest) = words.split_first().ok_or("no command")?;
    let told = |why: String| format!("{}: {why}", program.to_string_lossy());
    let mut command = Command::new(program);
    command.args(rest).env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::null());
    run::polite(&mut command);
    let output = command.stderr(Stdio::piped()).output().map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => told("it is not installed on this host".into()),
        _ => told(e.to_string()),
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or_else(|| told(said.trim().to_string()))
}
