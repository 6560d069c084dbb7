//! Measures how far the clock that gives files their times is behind this host's, by the time of a new file. Existing
//! files are no use, because the real time of their writing is unknown.

use crate::Fence;
use homing_os::folder::{Existing, make_file};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Returns how far the server of a folder is behind this host. Returns 0 if it is not behind or could not be
/// measured, as in a read-only folder. Returns 0 also if files bear this host's own time.
pub fn behind(folder: &Path) -> Duration {
    let asks = Fence::at(folder).0.is_some_and(|fence| !fence.times_of_writer);
    let given = if asks { given_to_new(folder) } else { None };
    let behind_ns = given.map_or(0, |(asked_ns, given_ns)| asked_ns.saturating_sub(given_ns));
    Duration::from_nanos(u64::try_from(behind_ns).unwrap_or(0))
}

/// Returns this host's time before, and the time that a new file got, nanoseconds since 1970.
fn given_to_new(folder: &Path) -> Option<(i64, i64)> {
    let path = crate::settle::passing(folder);
    let asked_ns = homing_os::clock::system_ns();
    let file = make_file(&path, Existing::Refuse, 0o600).ok()?;
    let given_ns = written(&file);
    let _ = std::fs::remove_file(&path);
    Some((asked_ns, given_ns?))
}

/// Writes and syncs a byte, then returns the file's time. Without the sync NFS shows the client's time.
fn written(mut file: &File) -> Option<i64> {
    std::io::Write::write_all(&mut file, b"0").and_then(|()| file.sync_all()).ok()?;
    let meta = file.metadata().ok()?;
    Some(meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_tells_the_clock_and_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let (asked_ns, given_ns) = given_to_new(dir.path()).unwrap();
        // The kernel's times of files have the resolution of its ticks.
        assert!((asked_ns - 1_000_000_000..asked_ns + 60_000_000_000).contains(&given_ns));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert_eq!(given_to_new(&dir.path().join("none")), None);
        assert_eq!(behind(Path::new("/proc")), Duration::ZERO);
    }
}
