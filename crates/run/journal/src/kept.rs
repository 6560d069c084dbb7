//! Copies the input of a run into its folder. `resume` then makes the same tasks of the copy, even if the file or the
//! program that wrote it is gone.
//!
//! Bytes are added to the copy before they are used. At the end of the input, the copy is synced and a mark with its
//! length and checksum is renamed into place beside it. Without the mark, more input may have followed, and the last
//! item of the copy may be half an item. With the mark, the copy is complete.

use crate::JournalError;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// An input that an earlier part of the run has read, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierInput {
    /// The path of the copy.
    pub copy: PathBuf,
    /// Bytes.
    pub length: u64,
    /// Whether the end of the input was read.
    pub whole: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    bytes: u64,
    sha256: String,
}

fn mark_of(copy: &Path) -> PathBuf {
    let mut name = copy.as_os_str().to_owned();
    name.push(".end");
    name.into()
}

/// Returns the kept part of the input `name` in a run's folder, or `None` if no part of it was read.
pub fn kept(dir: &Path, name: &str) -> Result<Option<EarlierInput>, JournalError> {
    let copy = dir.join(name);
    let length = match fs::metadata(&copy) {
        Ok(meta) => meta.len(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(JournalError::io("read the kept input", &copy)(e)),
    };
    let mark = match fs::read(mark_of(&copy)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Some(EarlierInput { copy, length, whole: false })),
        other => other.map_err(JournalError::io("read the mark beside", &copy))?,
    };
    let of_copy = File::open(&copy).and_then(|mut file| sum_of(&mut file));
    let (sum, bytes) = of_copy.map_err(JournalError::io("read the kept input", &copy))?;
    let same = serde_json::from_slice(&mark).is_ok_and(|mark: Mark| mark == Mark { bytes, sha256: hex(sum) });
    if same { Ok(Some(EarlierInput { copy, length, whole: true })) } else { Err(JournalError::DamagedInput { copy }) }
}

/// Frees the space of an input that is not needed any more.
pub fn forget(dir: &Path, name: &str) -> io::Result<()> {
    let copy = dir.join(name);
    // The copy is removed first. A mark without a copy means no input, but a copy without a mark means an input that
    // was cut off.
    fs::remove_file(&copy)?;
    fs::remove_file(mark_of(&copy))
}

fn sum_of(from: &mut impl Read) -> io::Result<(Sha256, u64)> {
    let mut sum = Sha256::new();
    let bytes = io::copy(from, &mut sum)?;
    Ok((sum, bytes))
}

fn hex(sum: Sha256) -> String {
    sum.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// The copy of an input that is being read.
#[derive(Debug)]
pub struct Keeping {
    copy: PathBuf,
    file: File,
    sum: Sha256,
    bytes: u64,
}

impl Keeping {
    /// Starts the copy of an input that was not read yet.
    pub fn begin(dir: &Path, name: &str) -> io::Result<Keeping> {
        let copy = dir.join(name);
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&copy)?;
        Ok(Keeping { copy, file, sum: Sha256::new(), bytes: 0 })
    }

    /// Continues the copy of an earlier part of the run.
    pub fn go_on(kept: &EarlierInput) -> io::Result<Keeping> {
        let mut file = OpenOptions::new().read(true).append(true).open(&kept.copy)?;
        let (sum, bytes) = sum_of(&mut file)?;
        Ok(Keeping { copy: kept.copy.clone(), file, sum, bytes })
    }

    /// Returns the path of the copy.
    pub fn copy(&self) -> &Path {
        &self.copy
    }

    /// Adds bytes of the input, before they are used.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.sum.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Writes the mark after the end of the input, before any reader learns of the end.
    pub fn end(self) -> io::Result<()> {
        self.file.sync_data()?;
        let mark = Mark { bytes: self.bytes, sha256: hex(self.sum) };
        let path = mark_of(&self.copy);
        let unready = path.with_extension("unready");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unready)?;
        file.write_all(&serde_json::to_vec(&mark)?)?;
        file.sync_data()?;
        fs::rename(unready, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeping(dir: &Path, bytes: &[u8]) -> Keeping {
        let mut keeping = Keeping::begin(dir, "stdin").unwrap();
        keeping.add(bytes).unwrap();
        keeping
    }

    fn of(dir: &Path) -> (u64, bool) {
        let kept = kept(dir, "stdin").unwrap().unwrap();
        (kept.length, kept.whole)
    }

    #[test]
    fn it_is_whole_only_when_its_end_was_read() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(kept(dir.path(), "stdin").unwrap(), None);
        drop(keeping(dir.path(), b"a\nb"));
        assert_eq!(of(dir.path()), (3, false));
        let part = kept(dir.path(), "stdin").unwrap().unwrap();
        let mut rest = Keeping::go_on(&part).unwrap();
        rest.add(b"c\n").unwrap();
        assert_eq!(of(dir.path()), (5, false));
        rest.end().unwrap();
        assert_eq!(of(dir.path()), (5, true));
        assert_eq!(fs::read(dir.path().join("stdin")).unwrap(), b"a\nbc\n");
    }

    #[test]
    fn a_copy_that_is_not_what_was_read_is_refused() {
        for damage in [&b"a\nB\n"[..], b"a\n", b"a\nb\nc\n", b""] {
            let dir = tempfile::tempdir().unwrap();
            keeping(dir.path(), b"a\nb\n").end().unwrap();
            fs::write(dir.path().join("stdin"), damage).unwrap();
            let said = kept(dir.path(), "stdin").unwrap_err().to_string();
            assert!(said.contains("stdin"), "{said}");
        }
    }

    #[test]
    fn a_crash_between_mark_and_name_leaves_it_without_end() {
        let dir = tempfile::tempdir().unwrap();
        drop(keeping(dir.path(), b"a\n"));
        fs::write(dir.path().join("stdin.unready"), "{\"bytes\":").unwrap();
        assert_eq!(of(dir.path()), (2, false));
    }

    #[test]
    fn nobody_else_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        keeping(dir.path(), b"secret").end().unwrap();
        for name in ["stdin", "stdin.end"] {
            assert_eq!(fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
