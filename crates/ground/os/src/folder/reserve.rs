//! Keeps free space on the disk where homing stores the output of others, because a full disk harms all users. It
//! limits the output of tasks, the output of `homing exec`, and the files that a fetching host receives.

use rustix::fs::{fstat, fstatvfs};
use std::collections::HashMap;
use std::fs::File;

/// The part of a file system that stays free, in percent, and its upper limit, bytes. systemd's journal uses the same
/// values (`SystemKeepFree=`, journald.conf(5)).
const KEEP_PERCENT: u64 = 15;
const KEEP_MOST: u64 = 4 << 30;
/// Bytes between two queries of a file system. Writing them takes a hundred times as long as a query.
const ASK_EVERY: u64 = 256 << 10;

/// Watches the free space of the file systems to which output is written.
#[derive(Default)]
pub struct Reserve {
    /// Bytes that stay free, by device.
    keep: HashMap<u64, u64>,
    unasked: u64,
}

impl Reserve {
    /// Counts bytes written to the file. Returns true if there is no room for more.
    pub fn is_used_up(&mut self, file: &File, bytes: usize) -> bool {
        self.unasked += bytes as u64;
        if self.unasked < ASK_EVERY {
            return false;
        }
        self.unasked = 0;
        let (Ok(stat), Ok(of)) = (fstatvfs(file), fstat(file)) else { return false };
        let (all, free) = (stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize);
        free < *self.keep.entry(of.st_dev).or_insert_with(|| keep(all, free))
    }
}

/// Returns the bytes that stay free of a file system of `all` bytes. If less is free at the first write of a run,
/// half of the free space stays free.
fn keep(all: u64, free: u64) -> u64 {
    (all / 100 * KEEP_PERCENT).min(KEEP_MOST).min(free / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_stays_free_of_small_disks_large_ones_and_those_that_are_nearly_full() {
        const G: u64 = 1 << 30;
        for (all, free, kept) in
            [(100 << 20, 90 << 20, 15728640), (10_000 * G, 900 * G, 4 * G), (100 * G, 3 * G, 3 * G / 2)]
        {
            assert_eq!(keep(all, free) >> 10, kept >> 10, "{free} of {all}");
        }
    }
}
