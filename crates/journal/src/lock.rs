//! One writer per journal, told by a file `lock` that names it.
//!
//! Not `flock`: on a network file system that depends on a lock daemon which
//! clusters often lack, and it cannot say who holds it. The boot id tells a
//! restarted host apart, the process's start time a reused process id.

use crate::JournalError;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The writer of a journal, as its lock file names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Host name.
    pub host: String,
    /// Process id there.
    pub pid: u32,
    /// That host's boot.
    pub boot_id: String,
    /// The process's start, clock ticks since that boot; 0 when unknown.
    pub start: u64,
}

impl Holder {
    fn me() -> Holder {
        let pid = std::process::id();
        Holder { host: host_name(), pid, boot_id: boot_id(), start: start_of(pid).unwrap_or(0) }
    }

    /// False only when it is certain that the process is gone; a process on
    /// another host counts as alive.
    pub fn may_live(&self) -> bool {
        if self.host != host_name() {
            return true;
        }
        self.boot_id == boot_id() && start_of(self.pid).is_some_and(|start| self.start == 0 || self.start == start)
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_string()
}

/// Field 22 of `/proc/PID/stat`; the name in field 2 may itself contain spaces and brackets.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut after = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    // A zombie holds nothing any more.
    if matches!(after.next()?, "Z" | "X") {
        return None;
    }
    after.nth(18)?.parse().ok()
}

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    me: Holder,
}

impl Lock {
    /// Takes the lock of a run's folder, also from a writer that is surely gone.
    pub(crate) fn take(dir: &Path) -> Result<Lock, JournalError> {
        let path = dir.join("lock");
        let me = Holder::me();
        // The second round is for a lock that vanished or was stale in the first.
        for _ in 0..3 {
            match place(dir, &path, &me) {
                Ok(()) => return Ok(Lock { path, me }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => clear_if_stale(&path)?,
                Err(e) => return Err(JournalError::io("write the lock", &path)(e)),
            }
        }
        let holder = read(&path).unwrap_or(me);
        Err(JournalError::Held { holder, lock: path })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if read(&self.path).as_ref() == Some(&self.me) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The holder of a run's lock, if it has one that can be read.
pub(crate) fn holder(dir: &Path) -> Option<Holder> {
    read(&dir.join("lock"))
}

fn read(path: &Path) -> Option<Holder> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Writes a complete file and links it to the lock's name: on a network file
/// system `link` is what cannot succeed twice, and no reader sees half a lock.
fn place(dir: &Path, path: &Path, me: &Holder) -> io::Result<()> {
    let own = dir.join(format!("lock.{}.{}", me.host, me.pid));
    let mut line = serde_json::to_vec(me)?;
    line.push(b'\n');
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&own)?;
    let placed = file.write_all(&line).and_then(|()| match fs::hard_link(&own, path) {
        // Some file systems have no links; there O_EXCL must do.
        Err(e) if matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) => {
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
            file.write_all(&line)
        }
        other => other,
    });
    let _ = fs::remove_file(&own);
    placed
}

/// Moves a dead writer's lock away, or says who is alive. What was moved is
/// looked at again: between look and move another process may have taken over.
fn clear_if_stale(path: &Path) -> Result<(), JournalError> {
    let Some(seen) = read(path) else {
        return match fs::metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            _ => {
                let source = io::Error::new(io::ErrorKind::InvalidData, "it does not name a writer; remove it");
                Err(JournalError::io("read the lock", path)(source))
            }
        };
    };
    if seen.may_live() {
        return Err(JournalError::Held { holder: seen, lock: path.to_path_buf() });
    }
    let aside = path.with_file_name(format!("lock.stale.{}", std::process::id()));
    if let Err(e) = fs::rename(path, &aside) {
        return if e.kind() == io::ErrorKind::NotFound {
            Ok(())
        } else {
            Err(JournalError::io("clear the lock", path)(e))
        };
    }
    let moved = read(&aside);
    if moved.as_ref() == Some(&seen) {
        let _ = fs::remove_file(&aside);
        return Ok(());
    }
    let _ = fs::hard_link(&aside, path);
    let _ = fs::remove_file(&aside);
    Err(JournalError::Held { holder: moved.unwrap_or(seen), lock: path.to_path_buf() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_living_writer_keeps_it_and_a_dead_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let lock = Lock::take(dir.path()).unwrap();
        let refused = Lock::take(dir.path()).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        drop(lock);
        drop(Lock::take(dir.path()).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        for stale in [
            Holder { start: 1, ..Holder::me() },
            Holder { boot_id: "another".into(), ..Holder::me() },
            Holder { pid: u32::MAX, ..Holder::me() },
        ] {
            fs::write(dir.path().join("lock"), serde_json::to_vec(&stale).unwrap()).unwrap();
            drop(Lock::take(dir.path()).unwrap());
        }
    }

    #[test]
    fn a_writer_on_another_host_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let far = Holder { host: "elsewhere".into(), pid: 12, boot_id: String::new(), start: 0 };
        fs::write(dir.path().join("lock"), serde_json::to_vec(&far).unwrap()).unwrap();
        let refused = Lock::take(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("process 12 on elsewhere"), "{refused}");
    }
}
