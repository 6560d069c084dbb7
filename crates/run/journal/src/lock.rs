//! One writer per journal. A file `lock` names the writer.
//!
//! The file names the holder, and works on network file systems whose lock daemon is missing. Its content is proof
//! only in the holder's own pid namespace. There the boot id detects a restarted host, and the start time of the
//! process a reused process id.
//!
//! Where the file system has them, the writer also holds an open file description lock on the journal. The kernel
//! releases that lock with the process. It is visible across namespaces, and across hosts if the server of the file
//! system keeps it. That lock alone is not enough: if a file system keeps it on each host separately, two hosts both
//! get it.

use crate::holder::{Holder, Life, start_of};
use crate::{FILE, JournalError};
use homing_os::folder::lock::{is_locked, try_lock_all};
use homing_os::folder::move_if_free;
use rustix::fs::CWD;
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time in which another process that wants the lock writes its name or gives up: 30 looks, 10 ms apart. That is
/// a few round trips to a busy file server.
const CONTENDER_LOOKS: u32 = 30;
const CONTENDER_LOOK: Duration = Duration::from_millis(10);

/// The lock, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    me: Holder,
}

impl Lock {
    /// Takes the lock of a run's folder, also from a writer that is certainly gone.
    pub(crate) fn take(dir: &Path, journal: &File) -> Result<Lock, JournalError> {
        let path = dir.join("lock");
        let locked = try_lock_soon(&path, journal);
        if let Ok(false) = locked {
            // The holder of the kernel's lock lives, except for a process whose first thread has ended.
            let (holder, me) = (read(&path), Holder::me());
            let ends = |holder: &Holder| holder.is_on_kernel_of(&me) && holder.life(&me, start_of) == Life::Gone;
            let life = if holder.as_ref().is_some_and(ends) { Life::Gone } else { Life::Alive };
            let holder = holder.unwrap_or(Holder { host: "an unknown host".into(), pid: 0, ..me });
            return Err(JournalError::Held { holder: holder.into(), life, lock: path });
        }
        let me = Holder { locked: locked.is_ok(), ..Holder::me() };
        // Further rounds are for a lock that vanished or was stale in the round before.
        for _ in 0..3 {
            match place(dir, &path, &me) {
                Ok(()) => return Ok(Lock { path, me }),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => clear_if_stale(&path, &me)?,
                Err(e) => return Err(JournalError::io("write the lock", &path)(e)),
            }
        }
        let holder = read(&path).unwrap_or(me);
        Err(JournalError::Held { holder: holder.into(), life: Life::Unknown, lock: path })
    }
}

/// Takes the kernel's lock on the journal. If the file names a dead writer, or is missing, a holder of the lock is
/// about to write the file or to give up. Without a wait for that, two processes that start at once on two hosts
/// would both give up. The holder may also be a child of a dead writer that has not yet executed its program.
fn try_lock_soon(path: &Path, journal: &File) -> io::Result<bool> {
    let stale = || read(path).is_none_or(|holder| holder.life(&Holder::me(), start_of) == Life::Gone);
    for _ in 0..CONTENDER_LOOKS {
        if try_lock_all(journal)? {
            return Ok(true);
        }
        if !stale() {
            return Ok(false);
        }
        std::thread::sleep(CONTENDER_LOOK);
    }
    try_lock_all(journal)
}

impl Drop for Lock {
    fn drop(&mut self) {
        if read(&self.path).as_ref() == Some(&self.me) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns the holder of a run's lock, unless it is certainly gone.
pub(crate) fn living(dir: &Path) -> Option<Holder> {
    let holder = read(&dir.join("lock"))?;
    let me = Holder::me();
    let gone = match holder.life(&me, start_of) {
        Life::Alive => false,
        Life::Gone => true,
        Life::Unknown if holder.locked && holder.is_on_kernel_of(&me) => {
            File::open(dir.join(FILE)).and_then(|journal| is_locked(&journal)).is_ok_and(|locked| !locked)
        }
        Life::Unknown => false,
    };
    (!gone).then_some(holder)
}

/// Reads the lock file. A pipe of that name, in a folder of another user, would block the read.
fn read(path: &Path) -> Option<Holder> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Writes a complete file and links it to the name of the lock. On a network file system, a `link` cannot succeed
/// twice, and no reader sees half a lock.
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

/// Moves the lock of a dead writer away, or returns the live writer as an error. If a writer of this kernel had
/// locked the journal, it is dead when `me` gets that lock. The moved file is read again, because another process may
/// have taken over between the first read and the move.
fn clear_if_stale(path: &Path, me: &Holder) -> Result<(), JournalError> {
    let Some(seen) = read(path) else {
        return match fs::metadata(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            _ => {
                let source = io::Error::new(io::ErrorKind::InvalidData, "it does not name a writer; remove it");
                Err(JournalError::io("read the lock", path)(source))
            }
        };
    };
    let life = seen.life(me, start_of);
    let gave_back = seen.locked && me.locked && seen.is_on_kernel_of(me);
    if life != Life::Gone && !gave_back {
        let lock = path.to_path_buf();
        return Err(JournalError::Held { holder: seen.into(), life, lock });
    }
    // Processes of two hosts may have one number.
    let aside = path.with_file_name(format!("lock.stale.{}.{}", me.host, me.pid));
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
    // It is a living writer's: back, unless another one has taken the name.
    if move_if_free(CWD, aside.as_os_str(), CWD, path.as_os_str()) == Err(Errno::EXIST) {
        let _ = fs::remove_file(&aside);
    }
    Err(JournalError::Held { holder: moved.unwrap_or(seen).into(), life: Life::Unknown, lock: path.to_path_buf() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(dir: &Path) -> File {
        File::options().append(true).create(true).open(dir.join(FILE)).unwrap()
    }

    fn hold(dir: &Path, holder: &Holder) {
        fs::write(dir.join("lock"), serde_json::to_vec(holder).unwrap()).unwrap();
    }

    #[test]
    fn a_living_writer_keeps_it_and_a_dead_one_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let first = journal(dir.path());
        let lock = Lock::take(dir.path(), &first).unwrap();
        let refused = Lock::take(dir.path(), &journal(dir.path())).unwrap_err().to_string();
        assert!(refused.contains(&format!("process {}", std::process::id())), "{refused}");
        assert!(refused.contains("still going on") && !refused.contains("remove"), "{refused}");
        drop((lock, first));
        drop(Lock::take(dir.path(), &journal(dir.path())).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        for stale in [
            Holder { start: 1, ..Holder::me() },
            Holder { boot_id: "another".into(), ..Holder::me() },
            Holder { pid: u32::MAX, ..Holder::me() },
        ] {
            hold(dir.path(), &stale);
            drop(Lock::take(dir.path(), &journal(dir.path())).unwrap());
        }
    }

    #[test]
    fn a_contender_that_gives_up_does_not_keep_another_from_a_dead_writers_journal() {
        let dir = tempfile::tempdir().unwrap();
        hold(dir.path(), &Holder { start: 1, ..Holder::me() });
        let contender = journal(dir.path());
        assert!(try_lock_all(&contender).unwrap());
        let (begun, begins) = std::sync::mpsc::channel();
        let gives_up = std::thread::spawn(move || {
            begins.recv().unwrap();
            std::thread::sleep(CONTENDER_LOOK);
            drop(contender);
        });
        begun.send(()).unwrap();
        drop(Lock::take(dir.path(), &journal(dir.path())).unwrap());
        gives_up.join().unwrap();
    }

    #[test]
    fn a_child_of_a_writer_that_has_ended_may_have_the_lock_for_a_moment() {
        let dir = tempfile::tempdir().unwrap();
        let its = journal(dir.path());
        assert!(try_lock_all(&its).unwrap());
        let executes = std::thread::spawn(move || {
            std::thread::sleep(CONTENDER_LOOK);
            drop(its);
        });
        drop(Lock::take(dir.path(), &journal(dir.path())).unwrap());
        executes.join().unwrap();
    }

    /// A thread that waits for a file system keeps the open files of its process, even if the process was killed.
    #[test]
    fn a_writer_that_was_killed_and_cannot_end_is_not_said_to_go_on() {
        let dir = tempfile::tempdir().unwrap();
        hold(dir.path(), &Holder { pid: u32::MAX, locked: true, ..Holder::me() });
        let its = journal(dir.path());
        assert!(try_lock_all(&its).unwrap());
        let refused = Lock::take(dir.path(), &journal(dir.path())).unwrap_err().to_string();
        assert!(refused.contains("cannot end") && !refused.contains("still going on"), "{refused}");
        fs::remove_file(dir.path().join("lock")).unwrap();
        let refused = Lock::take(dir.path(), &journal(dir.path())).unwrap_err().to_string();
        assert!(refused.contains("still going on") && refused.contains("an unknown host"), "{refused}");
        drop(its);
        drop(Lock::take(dir.path(), &journal(dir.path())).unwrap());
    }

    #[test]
    fn a_writer_that_cannot_be_seen_from_here_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let me = Holder::me();
        let far = Holder { host: "elsewhere".into(), boot_id: "another".into(), pid: 12, ..me.clone() };
        let namesake = Holder { machine: "another".into(), boot_id: "another".into(), ..me.clone() };
        let container = Holder { pid_ns: me.pid_ns + 1, pid: u32::MAX, ..me.clone() };
        for (holder, word) in [(far, "process 12 on elsewhere"), (namesake, "remove"), (container, "remove")] {
            hold(dir.path(), &holder);
            let refused = Lock::take(dir.path(), &journal(dir.path())).unwrap_err().to_string();
            assert!(refused.contains(word), "{refused}");
            assert!(living(dir.path()).is_some());
        }
    }

    #[test]
    fn the_lock_on_the_journal_tells_of_a_writer_in_another_namespace() {
        let dir = tempfile::tempdir().unwrap();
        let container = Holder { pid_ns: Holder::me().pid_ns + 1, locked: true, ..Holder::me() };
        hold(dir.path(), &container);
        let its = journal(dir.path());
        assert!(try_lock_all(&its).unwrap());
        let refused = Lock::take(dir.path(), &journal(dir.path())).unwrap_err().to_string();
        assert!(refused.contains("still going on"), "{refused}");
        assert!(living(dir.path()).is_some());
        drop(its);
        assert!(living(dir.path()).is_none());
        drop(Lock::take(dir.path(), &journal(dir.path())).unwrap());
    }

    #[test]
    fn a_pipe_as_a_lock_is_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let dir = tempfile::tempdir().unwrap();
        mknodat(CWD, dir.path().join("lock"), FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap();
        assert!(living(dir.path()).is_none());
        assert!(Lock::take(dir.path(), &journal(dir.path())).unwrap_err().to_string().contains("remove it"));
    }

    #[test]
    fn a_lock_of_homing_0_1_is_read() {
        let old = r#"{"host":"n1","pid":12,"boot_id":"b","start":5}"#;
        let old: Holder = serde_json::from_str(old).unwrap();
        let me = Holder { host: "n1".into(), boot_id: "b".into(), ..Holder::me() };
        assert_eq!(old.life(&me, |_| Some(5)), Life::Alive);
        assert_eq!(old.life(&me, |_| Some(6)), Life::Gone);
        assert_eq!(old.life(&me, |_| None), Life::Gone);
        assert_eq!(old.life(&Holder { boot_id: "c".into(), ..me.clone() }, |_| Some(5)), Life::Gone);
        assert_eq!(old.life(&Holder { host: "n2".into(), ..me }, |_| None), Life::Unknown);
    }
}
