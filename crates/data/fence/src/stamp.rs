//! Reads the state of a file, past the caches if the kernel allows that.

use homing_model::{FileChange, FileStamp};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};
use std::path::Path;

/// Looks at `path` with AT_STATX_FORCE_SYNC; `None` if it does not exist.
pub fn stamp(path: &Path) -> Option<FileStamp> {
    look(path, true)
}

pub(crate) fn look(path: &Path, force: bool) -> Option<FileStamp> {
    let sync = if force { AtFlags::STATX_FORCE_SYNC } else { AtFlags::empty() };
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | sync;
    let found = statx(CWD, path, flags, StatxFlags::BASIC_STATS).ok()?;
    let dir = FileType::from_raw_mode(found.stx_mode.into()) == FileType::Directory;
    Some(FileStamp {
        size: if dir { 0 } else { found.stx_size },
        ino: found.stx_ino,
        mtime_ns: found.stx_mtime.tv_sec * 1_000_000_000 + i64::from(found.stx_mtime.tv_nsec),
        dir,
    })
}

/// Whether a reader that sees `seen` sees the writer's state, or a newer one. `own_marks`: as in a
/// [`Fence`](crate::Fence), for the reader's mount.
pub(crate) fn agrees(change: &FileChange, seen: Option<FileStamp>, own_marks: bool) -> bool {
    match (change.now, seen) {
        // The reader has just opened the file, so it sees the server's state; only folders lag.
        (None, Some(seen)) if own_marks => !seen.dir,
        (Some(want), Some(seen)) if own_marks && !want.dir => {
            let [seen_s, want_s] = [seen, want].map(|stamp| stamp.mtime_ns.div_euclid(1_000_000_000));
            seen_s > want_s || (seen_s, seen.size, seen.dir) == (want_s, want.size, want.dir)
        }
        (None, None) => true,
        // Another file of that name: compilers remove a file before they write it.
        (None, Some(seen)) => change.was.is_some_and(|was| was != seen.ino),
        (Some(want), Some(seen)) if want.dir => seen.dir,
        // Newer: another command has changed it since, and reports its own change.
        (Some(want), Some(seen)) => seen.mtime_ns > want.mtime_ns || seen == want,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_is_wrong_and_newer_is_right() {
        let at = |mtime_ns, size| Some(FileStamp { size, ino: 1, mtime_ns, dir: false });
        let change = |now, was| FileChange { path: "/f".into(), now, fresh: false, was };
        let told = |now, seen| agrees(&change(now, None), seen, false);
        assert!(told(at(5, 1), at(5, 1)));
        assert!(told(at(5, 1), at(6, 9)));
        assert!(!told(at(5, 1), at(4, 1)));
        assert!(!told(at(5, 1), at(5, 2)));
        assert!(!told(at(5, 1), None));
        assert!(!told(None, at(5, 1)));
        assert!(told(None, None));
        assert!(!agrees(&change(None, Some(1)), at(5, 1), false), "the file that was removed");
        assert!(agrees(&change(None, Some(2)), at(5, 1), false), "another one in its place");
    }

    #[test]
    fn a_program_with_marks_of_its_own_is_compared_by_size_and_second() {
        let at = |mtime_ns, size, dir| Some(FileStamp { size, ino: size + 7, mtime_ns, dir });
        let told = |now: Option<FileStamp>, seen| {
            let change =
                FileChange { path: "/f".into(), now: now.map(|s| FileStamp { ino: 1, ..s }), fresh: false, was: None };
            agrees(&change, seen, true)
        };
        let second = 1_000_000_000;
        assert!(told(at(5 * second + 1, 3, false), at(5 * second, 3, false)));
        assert!(told(at(5 * second + 1, 3, false), at(6 * second, 9, false)), "newer");
        assert!(!told(at(5 * second + 1, 3, false), at(5 * second, 2, false)));
        assert!(!told(at(5 * second, 3, false), at(4 * second, 3, false)));
        assert!(!told(at(5 * second, 3, false), None));
        assert!(told(None, None) && told(None, at(1, 1, false)), "made again since");
        assert!(!told(None, at(1, 0, true)), "a folder lags");
        assert!(told(at(9, 0, true), at(1, 0, true)));
    }
}
