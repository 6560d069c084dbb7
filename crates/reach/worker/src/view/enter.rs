//! `homing in-view POINT LOCAL ... -- CWD PROGRAM WORDS`: makes the view around itself, then becomes the program. It
//! is a process of its own. An ordinary user gets a mount namespace only with a user namespace, and that only in a
//! process with one thread.

use super::MountAlias;
use homing_model::RawText;
use homing_os::process::{become_program, refusal};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags};
use rustix::mount::{mount, mount_bind_recursive, mount_change, move_mount, open_tree};
use rustix::thread::UnshareFlags;
use std::ffi::OsString;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Status of a program that cannot be started, as shells give it.
const CANNOT_START: i32 = homing_model::exit::NO_PROGRAM;

/// Returns the words between `in-view` and those of the program.
pub(super) fn arguments(places: &[MountAlias], cwd: &Path, program: &Path) -> Vec<RawText> {
    let mut words: Vec<RawText> = Vec::new();
    for place in places {
        words.extend([RawText::from(place.point.as_path()), RawText::from(place.local.as_path())]);
    }
    words.extend([RawText::from("--"), RawText::from(cwd), RawText::from(program)]);
    words
}

/// Becomes the program; returns only if that failed. `words` are those after `in-view`.
pub fn enter_view(words: &[OsString]) -> i32 {
    let failed = |what: String| {
        homing_os::say!("homing: {what}");
        CANNOT_START
    };
    let Some(at) = words.iter().step_by(2).position(|w| w == "--").map(|pair| pair * 2) else {
        return failed("in-view: this command is for homing itself".into());
    };
    let [cwd, program, name, rest @ ..] = &words[at + 1..] else {
        return failed("in-view: no program".into());
    };
    let places = words[..at].chunks_exact(2).map(|pair| (Path::new(&pair[0]), Path::new(&pair[1])));
    if let Err(why) = make(places) {
        return failed(why);
    }
    if let Err(e) = std::env::set_current_dir(cwd) {
        return failed(format!("{}: {e}", Path::new(cwd).display()));
    }
    let shell = std::env::var_os("HOMING_SHELL").unwrap_or_else(|| homing_os::process::SHELL.into());
    let refused = become_program(Command::new(program).arg0(name).args(rest), &shell);
    let program = Path::new(program);
    failed(format!("{}: {}", program.display(), refusal(program, Path::new(cwd), &refused)))
}

fn make<'p>(places: impl Iterator<Item = (&'p Path, &'p Path)>) -> Result<(), String> {
    unshare().map_err(|e| format!("a mount namespace is not permitted: {e}"))?;
    // Later mounts of other processes appear here; mounts made here stay here.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)
        .map_err(|e| format!("cannot make mounts private: {e}"))?;
    for (point, local) in places {
        // A descriptor, since a mount point that is made here may hide the directory.
        let held = hold(local)?;
        if !point.is_dir() {
            make_point(point)?;
        }
        mount_bind_recursive(handle(&held), point)
            .map_err(|e| format!("cannot show {} as {}: {e}", local.display(), point.display()))?;
    }
    Ok(())
}

fn unshare() -> std::io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    // SAFETY: this process has one thread and keeps no descriptor table or memory apart.
    let unshare = |flags| unsafe { rustix::thread::unshare_unsafe(flags) };
    if unshare(UnshareFlags::NEWNS).is_ok() {
        return Ok(());
    }
    unshare(UnshareFlags::NEWNS | UnshareFlags::NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{0} {0} 1", user.as_raw()))?;
    fs::write("/proc/self/gid_map", format!("{0} {0} 1", group.as_raw()))
}

fn hold(path: &Path) -> Result<OwnedFd, String> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|e| format!("cannot open {}: {e}", path.display()))
}

fn handle(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Makes a mount point without touching the host. For this process only, the nearest existing directory is replaced
/// by one with the same content and the missing name.
fn make_point(point: &Path) -> Result<(), String> {
    let parent = point.ancestors().skip(1).find(|p| p.is_dir()).unwrap_or(Path::new("/"));
    if parent == Path::new("/") {
        // A mount over the root itself has no effect: a new root is made and entered.
        let stage = ["/mnt", "/media", "/srv", "/tmp"].map(Path::new).into_iter().find(|p| p.is_dir());
        let stage = stage.ok_or("no directory to make a new root on")?;
        refill(parent, stage)?;
        rustix::process::chroot(stage).map_err(|e| format!("cannot enter the new root: {e}"))?;
        std::env::set_current_dir("/").map_err(|e| e.to_string())?;
    } else {
        refill(parent, parent)?;
    }
    fs::create_dir_all(point).map_err(|e| format!("cannot make {}: {e}", point.display()))
}

/// Mounts a new file system on `stage`, with all entries of `dir` in it.
fn refill(dir: &Path, stage: &Path) -> Result<(), String> {
    let old = hold(dir)?;
    // A copy of the stage's own tree, taken before it is mounted over.
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    let under = open_tree(CWD, stage, flags);
    let entries: Vec<fs::DirEntry> =
        fs::read_dir(dir).map_err(|e| format!("cannot list {}: {e}", dir.display()))?.flatten().collect();
    mount("homing", stage, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(c"mode=755"))
        .map_err(|e| format!("cannot mount on {}: {e}", stage.display()))?;
    for entry in entries {
        let (from, to) = (handle(&old).join(entry.file_name()), stage.join(entry.file_name()));
        let Ok(kind) = entry.file_type() else { continue };
        // An entry that this user may not show is left out: it could not be read either.
        let _ = if kind.is_symlink() {
            fs::read_link(&from).and_then(|target| std::os::unix::fs::symlink(target, &to))
        } else if dir.join(entry.file_name()) == stage {
            let Ok(tree) = &under else { continue };
            let empty = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            fs::create_dir(&to).and_then(|()| Ok(move_mount(tree, "", CWD, &to, empty)?))
        } else if kind.is_dir() {
            fs::create_dir(&to).and_then(|()| Ok(mount_bind_recursive(&from, &to)?))
        } else {
            fs::write(&to, "").and_then(|()| Ok(mount_bind_recursive(&from, &to)?))
        };
    }
    Ok(())
}
