//! What a run's own file says to the others, and the two ways to say it.

use super::Place;
use super::place::own_file;
use super::said::Said;
use crate::lock;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

/// By what a run tells others what it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Bytes of its file are locked, which the file server gives back when the run ends, however it ends.
    Locks,
    /// Its file is named so. On FUSE: a lock request that a signal interrupts blocked GlusterFS 10.3's client for good
    /// (its issue 4371; two processes killed in `fcntl`, 37 times), and a brick that healed waited for ever to remove
    /// a file that had been locked, so that the folder could not be written on any host.
    Names,
}

/// FUSE_SUPER_MAGIC of linux/magic.h.
#[cfg(target_os = "linux")]
const FUSE: u64 = 0x6573_5546;

impl By {
    /// What the file system of this folder bears.
    #[cfg(target_os = "linux")]
    pub(super) fn of(folder: &Path) -> By {
        match rustix::fs::statfs(folder) {
            Ok(found) if found.f_type as u64 == FUSE => By::Names,
            _ => By::Locks,
        }
    }

    /// No client of another system is known to suffer.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn of(_: &Path) -> By {
        By::Locks
    }

    /// A run touches its file so often.
    pub(super) fn beat(self) -> Duration {
        match self {
            By::Locks => Duration::from_secs(5),
            By::Names => Duration::from_secs(3),
        }
    }

    /// A run counts as gone when nobody has seen it touch its file for this long. Of locks: whatever they say, since
    /// MooseFS kept those of a host that died for more than 150 s, NFS 4 for 90 s. Of names: four beats, and longer
    /// than the 10 s that a GlusterFS stands still when a brick dies (`network.ping-timeout`, as `homing volume create`
    /// sets it). A file server that is slow must not make a run seem dead.
    pub(super) fn gone(self) -> Duration {
        match self {
            By::Locks => Duration::from_secs(30),
            By::Names => Duration::from_secs(12),
        }
    }
}

/// The file of this run.
#[derive(Debug)]
pub(super) struct Own {
    folder: PathBuf,
    /// What it is called now.
    name: String,
    /// The part of its name that stays.
    pub(super) stem: String,
    pub(super) file: File,
    by: By,
    said: Option<Said>,
    _remover: Option<Remover>,
}

impl Own {
    /// Makes it; it says nothing yet.
    pub(super) fn make(place: &Place, by: By) -> io::Result<Own> {
        let (name, file) = own_file(place)?;
        let _remover = (by == By::Names).then(|| Remover::begin(&place.folder.join(&name))).and_then(Result::ok);
        Ok(Own { folder: place.folder.clone(), stem: name.clone(), name, file, by, said: None, _remover })
    }

    /// What it says.
    pub(super) fn said(&self) -> Option<Said> {
        self.said
    }

    /// Says it from now on; `false` when somebody else's lock is in the way.
    pub(super) fn say(&mut self, said: Said) -> io::Result<bool> {
        if self.said == Some(said) {
            return Ok(true);
        }
        match self.by {
            By::Locks if !self.lock(said)? => return Ok(false),
            By::Locks => {}
            By::Names => {
                let name = said.named(&self.stem);
                fs::rename(self.path(), self.folder.join(&name))?;
                self.name = name;
            }
        }
        self.said = Some(said);
        Ok(true)
    }

    fn lock(&self, said: Said) -> io::Result<bool> {
        let held = self.said.map_or(0, |before| before.held);
        // From the first byte on: others ask for one lock, and not every file system joins those that only touch.
        if said.held > held && !lock::try_add(&self.file, (0, Some(said.held)))? {
            return Ok(false);
        }
        if said.held < held {
            lock::give_back(&self.file, (said.held, Some(held)))?;
        }
        let (flag, before) = (said.flag(), self.said.map(Said::flag));
        if before != Some(flag) {
            lock::try_add(&self.file, (flag, Some(flag + 1)))?;
            before.map_or(Ok(()), |before| lock::give_back(&self.file, (before, Some(before + 1))))?;
        }
        Ok(true)
    }

    /// The run is still there.
    pub(super) fn beat(&self) {
        let _ = self.file.set_modified(SystemTime::now());
    }

    /// Where it is.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.path());
    }
}

/// Waits for the end of its input, which comes with that of the run, whatever ends it; signals for the run are not for
/// this process.
const REMOVE: &str = r#"trap '' HUP INT QUIT TERM; read -r end; exec rm -f -- "$1" "$1"+*"#;

/// A process that removes the file of a run that was killed, so that others need not wait until it counts as gone.
#[derive(Debug)]
struct Remover(Child);

impl Remover {
    fn begin(file: &Path) -> io::Result<Remover> {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", REMOVE, "homing-leases"]).arg(file);
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        shell.current_dir("/").env_clear().env("PATH", "/usr/bin:/bin").process_group(0).spawn().map(Remover)
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_run_that_was_killed_is_removed_whatever_it_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("nas@it's *.1.0");
        let (said, other) = (dir.path().join("nas@it's *.1.0+3+8w"), dir.path().join("nas@it's *.1.01+3+8"));
        [&said, &other].into_iter().for_each(|path| fs::write(path, "").unwrap());
        let mut remover = Remover::begin(&file).unwrap();
        drop(remover.0.stdin.take());
        assert!(remover.0.wait().unwrap().success());
        assert_eq!((said.exists(), other.exists()), (false, true));
    }

    #[test]
    fn who_is_slow_for_as_long_as_a_brick_takes_to_die_is_not_gone() {
        for by in [By::Locks, By::Names] {
            assert!(by.gone() >= 4 * by.beat() && by.gone() > Duration::from_secs(10));
        }
    }
}
