//! Writes the journal: gathers records in memory and writes many of them at once. The caller decides when records are
//! flushed to the kernel and synced to the disk; `dispatch` syncs once a second.

use crate::lock::Lock;
use crate::name::new_run_name;
use crate::{FILE, JournalError, order, seal};
use homing_model::Event;
use homing_os::threads::begin;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// The bytes in memory beyond which `append` writes by itself.
const ENOUGH: usize = 256 << 10;

/// The number of names that are tried for a run. So many in a row are taken only if nearly all names of that second
/// are.
const MOST_NAMES: i64 = 100;

/// The only writer of a run's journal. Dropping it writes the records in memory and releases the lock.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    /// The number of the next record.
    next: u64,
    /// The thread that syncs the file while records are still added.
    aside: Option<JoinHandle<io::Result<()>>>,
    // Dropped after the last write of `Drop`.
    _lock: Lock,
}

impl Journal {
    /// Makes the journal of a run that begins now, under a name that no other run has. There are 32,768 names
    /// ([`new_run_name`]) per second. If a loop begins a hundred runs in one second, two of them get the same name
    /// one time in seven.
    pub fn create_anew(root: &Path, now_ns: i64, pid: u32) -> Result<Journal, JournalError> {
        let make = |other| Journal::create(root, &new_run_name(now_ns + other, pid));
        let is_taken = |made: &Result<Journal, JournalError>| matches!(made, Err(JournalError::Exists { .. }));
        (1..MOST_NAMES).map(make).find(|made| !is_taken(made)).unwrap_or_else(|| make(MOST_NAMES))
    }

    /// Makes the run's folder (mode 0700) and an empty journal in it.
    pub fn create(root: &Path, run: &str) -> Result<Journal, JournalError> {
        if !is_name(run) {
            return Err(JournalError::BadName { name: run.to_string() });
        }
        homing_os::names::make_folder(root, 0o700).map_err(JournalError::io("make the folder", root))?;
        let dir = root.join(run);
        match DirBuilder::new().mode(0o700).create(&dir) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                return Err(JournalError::Exists { run: run.to_string(), root: root.to_path_buf() });
            }
            other => other.map_err(JournalError::io("make the folder", &dir))?,
        }
        let begun = Journal::begin(&dir);
        if begun.is_err() {
            // A folder without a journal is not listed as a run, so it would never be removed.
            let _ = std::fs::remove_dir_all(&dir);
            return begun;
        }
        // If the order cannot be noted, the run still works, and counts as older.
        let _ = order::note(root, run);
        begun
    }

    fn begin(dir: &Path) -> Result<Journal, JournalError> {
        let path = dir.join(FILE);
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(JournalError::io("create", &path))?;
        let lock = Lock::take(dir, &file)?;
        Ok(Journal { dir: dir.to_path_buf(), path, file, buffer: Vec::new(), next: 1, aside: None, _lock: lock })
    }

    /// Opens the journal of an earlier run and continues it. Refuses while another writer may be alive. Cuts a torn
    /// last line.
    pub fn reopen(dir: &Path) -> Result<Journal, JournalError> {
        let path = dir.join(FILE);
        let file = OpenOptions::new().read(true).append(true).open(&path);
        let mut file = file.map_err(JournalError::io("open", &path))?;
        let lock = Lock::take(dir, &file)?;
        cut_torn_line(&mut file).map_err(JournalError::io("repair the end of", &path))?;
        let next = next_number(&mut file).map_err(JournalError::io("read", &path))?;
        Ok(Journal { dir: dir.to_path_buf(), path, file, buffer: Vec::new(), next, aside: None, _lock: lock })
    }

    /// Returns the name of the run.
    pub fn run(&self) -> String {
        self.dir.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }

    /// Returns the folder of the run. Output of tasks and other files may lie there.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Adds a record in memory. Writes to the file only when much has gathered.
    pub fn append(&mut self, event: &Event) -> Result<(), JournalError> {
        let before = self.buffer.len();
        if let Err(e) = serde_json::to_writer(&mut self.buffer, event) {
            self.buffer.truncate(before);
            return Err(JournalError::io("write a record to", &self.path)(e.into()));
        }
        seal::add(&mut self.buffer, before, self.next);
        self.next = self.next.saturating_add(1);
        self.buffer.push(b'\n');
        if self.buffer.len() >= ENOUGH { self.flush() } else { Ok(()) }
    }

    /// Writes all records to the kernel, where they survive the end of this process. After an error the unwritten
    /// rest is kept. A later call continues where this one stopped, in the middle of a line if needed.
    pub fn flush(&mut self) -> Result<(), JournalError> {
        let mut written = 0;
        let result = loop {
            if written == self.buffer.len() {
                break Ok(());
            }
            match self.file.write(&self.buffer[written..]) {
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => written += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => break Err(e),
            }
        };
        self.buffer.drain(..written);
        result.map_err(JournalError::io("write", &self.path))
    }

    /// Flushes, and waits until the data is on the disk or the file server.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.flush()?;
        self.file.sync_data().map_err(JournalError::io("sync", &self.path))
    }

    /// Flushes, and starts a thread that syncs the file: on busy disks a sync takes seconds. While an earlier sync
    /// goes on, no new one starts. The error may be that of the earlier sync.
    pub fn sync_aside(&mut self) -> Result<(), JournalError> {
        self.flush()?;
        if self.aside.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(());
        }
        self.aside.take().map_or(Ok(()), joined).map_err(JournalError::io("sync", &self.path))?;
        match self.file.try_clone().and_then(|file| begin(move || file.sync_data())) {
            Ok(thread) => self.aside = Some(thread),
            // Without a free thread or descriptor, the caller waits.
            Err(_) => return self.sync(),
        }
        Ok(())
    }
}

fn joined(thread: JoinHandle<io::Result<()>>) -> io::Result<()> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Callers that need the result call `flush` or `sync` before.
        let _ = self.flush();
    }
}

fn is_name(run: &str) -> bool {
    !run.is_empty()
        && run.len() <= 128
        && !run.starts_with('.')
        && run.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// Shortens the file to its last newline, which is searched from the end in steps.
fn cut_torn_line(file: &mut File) -> io::Result<()> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut end = length;
    let mut chunk = Vec::new();
    while end > 0 {
        let from = end.saturating_sub(64 << 10);
        chunk.resize((end - from) as usize, 0);
        file.seek(SeekFrom::Start(from))?;
        file.read_exact(&mut chunk)?;
        if let Some(at) = chunk.iter().rposition(|b| *b == b'\n') {
            end = from + at as u64 + 1;
            break;
        }
        end = from;
    }
    if end < length { file.set_len(end) } else { Ok(()) }
}

/// Returns the number of the record after the last line.
fn next_number(file: &mut File) -> io::Result<u64> {
    file.rewind()?;
    let mut from = BufReader::with_capacity(256 << 10, file);
    let (mut line, mut next) = (Vec::new(), 1);
    while from.read_until(b'\n', &mut line)? > 0 {
        next = seal::after(line.strip_suffix(b"\n").unwrap_or(&line), next);
        line.clear();
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::event::EventKind;

    #[test]
    fn runs_that_begin_at_the_same_time_have_names_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let begun: Vec<Journal> = (0..20).map(|_| Journal::create_anew(dir.path(), 7, 7).unwrap()).collect();
        let folders = std::fs::read_dir(dir.path()).unwrap().flatten().filter(|entry| entry.path().is_dir());
        assert_eq!(folders.count(), begun.len());
        assert!(matches!(Journal::create_anew(Path::new("/dev/null"), 7, 7), Err(JournalError::Io { .. })));
    }

    #[test]
    fn a_full_disk_is_said_and_loses_nothing_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(dir.path(), "r").unwrap();
        let real = std::mem::replace(&mut journal.file, OpenOptions::new().write(true).open("/dev/full").unwrap());
        journal.append(&Event { at_ns: 1, what: EventKind::Note { text: "kept".into() } }).unwrap();
        let said = journal.flush().unwrap_err().to_string();
        assert!(said.starts_with("no space left to write the journal"), "{said}");
        journal.file = real;
        journal.sync().unwrap();
        assert_eq!(crate::replay(journal.dir()).unwrap().count(), 1);
    }

    #[test]
    fn what_the_disk_answers_aside_is_told_by_the_next_call() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(dir.path(), "r").unwrap();
        journal.sync_aside().unwrap();
        let finished = journal.aside.replace(begin(|| Err(io::Error::other("the disk is gone"))).unwrap());
        joined(finished.unwrap()).unwrap();
        while !journal.aside.as_ref().unwrap().is_finished() {
            std::thread::yield_now();
        }
        let said = journal.sync_aside().unwrap_err().to_string();
        assert!(said.contains("the disk is gone"), "{said}");
        journal.sync_aside().unwrap();
        let (end, ends) = std::sync::mpsc::channel();
        journal.aside = Some(begin(move || ends.recv().map_err(io::Error::other)).unwrap());
        // A wait for the disk would block here forever.
        journal.sync_aside().unwrap();
        end.send(()).unwrap();
    }

    #[test]
    fn names_that_would_leave_the_root_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for bad in ["", "..", "a/b", ".hidden", "a b", "a\n"] {
            assert!(matches!(Journal::create(dir.path(), bad), Err(JournalError::BadName { .. })), "{bad:?}");
        }
    }
}
