//! The writing side: records gather in memory and leave in whole writes.

use crate::lock::Lock;
use crate::seal;
use crate::{FILE, JournalError};
use homing_model::Event;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes in memory beyond which `append` writes by itself.
const ENOUGH: usize = 256 << 10;

/// The one writer of a run's journal. Dropping it writes what is in memory
/// and gives the lock back.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    /// Number of the next record.
    next: u64,
    // Dropped after the last write above.
    _lock: Lock,
}

impl Journal {
    /// Makes the run's folder (mode 0700) and an empty journal in it.
    pub fn create(root: &Path, run: &str) -> Result<Journal, JournalError> {
        if !is_name(run) {
            return Err(JournalError::BadName { name: run.to_string() });
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(root)
            .map_err(JournalError::io("make the folder", root))?;
        let dir = root.join(run);
        match DirBuilder::new().mode(0o700).create(&dir) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                return Err(JournalError::Exists { run: run.to_string(), root: root.to_path_buf() });
            }
            other => other.map_err(JournalError::io("make the folder", &dir))?,
        }
        let begun = Journal::begin(&dir);
        if begun.is_err() {
            // A folder without a journal would be listed as no run and never go.
            let _ = std::fs::remove_dir_all(&dir);
        }
        begun
    }

    fn begin(dir: &Path) -> Result<Journal, JournalError> {
        let path = dir.join(FILE);
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let file = file.map_err(JournalError::io("create", &path))?;
        let lock = Lock::take(dir, &file)?;
        Ok(Journal { dir: dir.to_path_buf(), path, file, buffer: Vec::new(), next: 1, _lock: lock })
    }

    /// Opens the journal of an earlier run to go on with it. Refuses while
    /// another writer may be alive; cuts a torn last line.
    pub fn reopen(dir: &Path) -> Result<Journal, JournalError> {
        let path = dir.join(FILE);
        let file = OpenOptions::new().read(true).append(true).open(&path);
        let mut file = file.map_err(JournalError::io("open", &path))?;
        let lock = Lock::take(dir, &file)?;
        cut_torn_line(&mut file).map_err(JournalError::io("repair the end of", &path))?;
        let next = next_number(&mut file).map_err(JournalError::io("read", &path))?;
        Ok(Journal { dir: dir.to_path_buf(), path, file, buffer: Vec::new(), next, _lock: lock })
    }

    /// The folder of the run; output of tasks and other files may lie there.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Adds a record in memory. Writes only when much has gathered.
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

    /// Hands all records to the kernel: they then survive the end of this
    /// process. After an error the unwritten rest is kept, and a later call
    /// goes on where this one stopped, in the middle of a line if need be.
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

    /// Flushes, and waits until the disk or the file server has it.
    pub fn sync(&mut self) -> Result<(), JournalError> {
        self.flush()?;
        self.file.sync_data().map_err(JournalError::io("sync", &self.path))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Whoever needs to know calls `flush` or `sync` before.
        let _ = self.flush();
    }
}

fn is_name(run: &str) -> bool {
    !run.is_empty()
        && run.len() <= 128
        && !run.starts_with('.')
        && run.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

/// Shortens the file to its last newline, searched from the end in steps.
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

/// The number of the record that follows the last line.
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
    use homing_model::event::What;

    #[test]
    fn a_full_disk_is_said_and_loses_nothing_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(dir.path(), "r").unwrap();
        let real = std::mem::replace(&mut journal.file, OpenOptions::new().write(true).open("/dev/full").unwrap());
        journal.append(&Event { at_ns: 1, what: What::Note { text: "kept".into() } }).unwrap();
        let said = journal.flush().unwrap_err().to_string();
        assert!(said.starts_with("no space left to write the journal"), "{said}");
        journal.file = real;
        journal.sync().unwrap();
        assert_eq!(crate::replay(journal.dir()).unwrap().count(), 1);
    }

    #[test]
    fn names_that_would_leave_the_root_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for bad in ["", "..", "a/b", ".hidden", "a b", "a\n"] {
            assert!(matches!(Journal::create(dir.path(), bad), Err(JournalError::BadName { .. })), "{bad:?}");
        }
    }
}
