//! The file: a head, then places of equal size. Record n is in place n - 1, modulo the number of places. Therefore a
//! new record replaces the oldest, and no other byte is written.
//!
//! An incomplete record fails its checksum. Readers skip it, and the next record takes its number and its place.

use crate::history::record::{BYTES, SampleRecord};
use homing_os::folder::lock::{self, try_lock_all};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The number of places: a week of minutes.
pub const SLOTS: u32 = 7 * 24 * 60;
/// The highest number of places. A larger number means that the file is not a history.
const MOST: u32 = 1 << 20;
/// The begin of the head.
const MAGIC: &[u8; 16] = b"homing history\n\x01";

/// Why the history cannot be written or read.
#[derive(Debug)]
pub enum RingError {
    /// An error of the system.
    Io(PathBuf, io::Error),
    /// The file has another format, or another version.
    Foreign(PathBuf),
}

impl std::fmt::Display for RingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RingError::Io(file, e) => write!(f, "the history {}: {e}", file.display()),
            RingError::Foreign(file) => {
                write!(
                    f,
                    "{} is not a history that this version can read; remove it to begin a new one",
                    file.display()
                )
            }
        }
    }
}

impl std::error::Error for RingError {}

/// A file of records.
#[derive(Debug)]
pub struct Ring {
    file: File,
    path: PathBuf,
    slots: u32,
}

impl Ring {
    /// Opens the file to add records, and makes it with `slots` places if it is missing. Returns `None` while another
    /// process adds records.
    pub fn open(path: &Path, slots: u32) -> Result<Option<Ring>, RingError> {
        let io = |e| RingError::Io(path.into(), e);
        let file = lock::file(path, 0o600).map_err(io)?;
        if !try_lock_all(&file).map_err(io)? {
            return Ok(None);
        }
        let wanted = head(slots);
        let mut begun = vec![0; BYTES];
        let there = read_full(&file, &mut begun, 0).map_err(io)?;
        // The process that made the file was killed while it wrote the head.
        if there < BYTES && wanted.starts_with(&begun[..there]) {
            file.write_all_at(&wanted, 0).map_err(io)?;
            begun = wanted.to_vec();
        }
        let slots = slots_of(&begun).ok_or_else(|| RingError::Foreign(path.into()))?;
        Ok(Some(Ring { file, path: path.into(), slots }))
    }

    /// Opens the file to read it. Returns `None` if it is missing.
    pub fn open_to_read(path: &Path) -> Result<Option<Ring>, RingError> {
        let io = |e| RingError::Io(path.into(), e);
        let file = match homing_os::folder::open_plain_as(path, OpenOptions::new().read(true)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(io)?,
        };
        let mut begun = vec![0; BYTES];
        if read_full(&file, &mut begun, 0).map_err(io)? < BYTES {
            return Ok(None);
        }
        let slots = slots_of(&begun).ok_or_else(|| RingError::Foreign(path.into()))?;
        Ok(Some(Ring { file, path: path.into(), slots }))
    }

    /// Returns the largest size of the file, in bytes.
    pub fn bound(&self) -> u64 {
        (u64::from(self.slots) + 1) * BYTES as u64
    }

    /// Returns all records, the oldest first.
    pub fn records(&self) -> Result<Vec<SampleRecord>, RingError> {
        let mut bytes = vec![0; self.bound() as usize - BYTES];
        let there = read_full(&self.file, &mut bytes, BYTES as u64).map_err(|e| RingError::Io(self.path.clone(), e))?;
        let places = bytes[..there].chunks_exact(BYTES).enumerate();
        let mut records: Vec<SampleRecord> = places
            .filter_map(|(at, place)| {
                SampleRecord::of(place.try_into().ok()?).filter(|r| self.place(r.number) == at as u64)
            })
            .collect();
        records.sort_by_key(|record| record.number);
        // Drops records that are too old for a ring of this size. They come from a wrong number.
        let newest = records.last().map_or(0, |record| record.number);
        records.retain(|record| record.number.saturating_add(self.slots.into()) > newest);
        Ok(records)
    }

    /// Adds a record in the place of the oldest.
    pub fn add(&self, record: &SampleRecord) -> Result<(), RingError> {
        let newest = self.records()?.last().map_or(0, |record| record.number);
        let record = SampleRecord { number: newest.saturating_add(1), ..record.clone() };
        let at = (self.place(record.number) + 1) * BYTES as u64;
        self.file.write_all_at(&record.bytes(), at).map_err(|e| RingError::Io(self.path.clone(), e))
    }

    fn place(&self, number: u64) -> u64 {
        (number - 1) % u64::from(self.slots)
    }
}

fn head(slots: u32) -> [u8; BYTES] {
    let mut head = [0; BYTES];
    head[..MAGIC.len()].copy_from_slice(MAGIC);
    head[16..20].copy_from_slice(&(BYTES as u32).to_le_bytes());
    head[20..24].copy_from_slice(&slots.to_le_bytes());
    head
}

fn slots_of(begun: &[u8]) -> Option<u32> {
    let slots = u32::from_le_bytes(begun.get(20..24)?.try_into().ok()?);
    ((1..=MOST).contains(&slots) && begun == head(slots)).then_some(slots)
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes.
fn read_full(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], at + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::HostSample;
    use proptest::prelude::*;

    fn record(at_ns: i64) -> SampleRecord {
        SampleRecord::new(HostSample { at_ns, ..HostSample::default() }, "ab")
    }

    fn ring(path: &Path, slots: u32) -> Ring {
        Ring::open(path, slots).unwrap().unwrap()
    }

    fn times(path: &Path) -> Vec<i64> {
        let records = Ring::open_to_read(path).unwrap().map_or(Vec::new(), |ring| ring.records().unwrap());
        records.iter().map(|record| record.sample.at_ns).collect()
    }

    #[test]
    fn it_keeps_the_newest_and_is_never_larger_than_its_bound() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ring");
        assert_eq!(times(&path), [] as [i64; 0]);
        for n in 1..=50 {
            let ring = ring(&path, 7);
            ring.add(&record(n)).unwrap();
            assert!(path.metadata().unwrap().len() <= ring.bound(), "{n}");
            assert_eq!(times(&path), ((n - 6).max(1)..=n).collect::<Vec<_>>());
        }
        assert_eq!(path.metadata().unwrap().len(), 8 * 128);
    }

    /// Kill -9 may leave any part of the record in the file. All other records remain, and the next one is added as
    /// usual.
    #[test]
    fn a_writer_that_dies_in_the_middle_of_a_record_costs_that_record_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ring");
        for before in [0, 3, 5, 8, 10, 12] {
            for reached in 0..=BYTES {
                let _ = std::fs::remove_file(&path);
                let begun = ring(&path, 5);
                (1..=before).for_each(|n| begun.add(&record(n)).unwrap());
                let dying = SampleRecord { number: before as u64 + 1, ..record(99) }.bytes();
                let place = (begun.place(before as u64 + 1) + 1) * BYTES as u64;
                let mut old = [0; BYTES];
                read_full(&begun.file, &mut old, place).unwrap();
                begun.file.write_all_at(&dying[..reached], place).unwrap();
                drop(begun);
                let now = [&dying[..reached], &old[reached..]].concat();
                let mut want: Vec<i64> = ((before - 4).max(1)..=before).collect();
                // The oldest record was being overwritten. Both records have the same bytes at their beginning and
                // end.
                if before >= 5 && now != old {
                    want.remove(0);
                }
                let is_there = path.metadata().unwrap().len() >= place + BYTES as u64;
                want.extend((is_there && now == dying).then_some(99));
                let seen = times(&path);
                assert_eq!(seen, want, "{before} {reached}");
                ring(&path, 5).add(&record(100)).unwrap();
                assert_eq!(times(&path).last(), Some(&100));
                assert!(path.metadata().unwrap().len() <= 6 * 128);
            }
        }
    }

    #[test]
    fn a_head_that_was_begun_is_ended_and_another_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ring");
        for reached in 0..BYTES {
            std::fs::write(&path, &head(3)[..reached]).unwrap();
            assert_eq!(times(&path), [] as [i64; 0]);
            ring(&path, 3).add(&record(1)).unwrap();
            assert_eq!(times(&path), [1]);
        }
        for foreign in [b"notes".to_vec(), vec![0; 4096], [&head(0)[..], &[1; 128]].concat()] {
            std::fs::write(&path, &foreign).unwrap();
            assert!(matches!(Ring::open(&path, 3), Err(RingError::Foreign(_))));
            assert_eq!(std::fs::read(&path).unwrap(), foreign);
        }
        // The number of places is in the file. The size that the caller wants does not matter.
        std::fs::write(&path, head(3)).unwrap();
        assert_eq!(ring(&path, 9).bound(), 4 * 128);
    }

    #[test]
    fn two_do_not_add_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ring");
        let first = ring(&path, 3);
        assert!(Ring::open(&path, 3).unwrap().is_none());
        drop(first);
        assert!(Ring::open(&path, 3).unwrap().is_some());
    }

    proptest! {
        /// Readers and writers accept any bytes after a head.
        #[test]
        fn bytes_of_any_kind_are_read_and_added_to(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("ring");
            std::fs::write(&path, [&head(7)[..], &bytes].concat()).unwrap();
            ring(&path, 7).add(&record(5)).unwrap();
            prop_assert_eq!(times(&path), [5]);
        }
    }
}
