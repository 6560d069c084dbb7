//! The room that what others send leaves on the disk where it is kept: whoever fills a disk takes it from all. Output of
//! tasks, output of `homing exec`, and what a host that fetches sends stay within it.

use rustix::fs::{fstat, fstatvfs};
use std::collections::HashMap;
use std::fs::File;

/// Part of a file system that stays free, and the most that this is, bytes: what systemd's journal leaves
/// (`SystemKeepFree=`, journald.conf(5)).
const KEEP_PERCENT: u64 = 15;
const KEEP_MOST: u64 = 4 << 30;
/// A file system is asked once in so many bytes, which take a hundred times as long to write.
const ASK_EVERY: u64 = 256 << 10;

/// Looks after the file systems to which output is written.
#[derive(Default)]
pub struct Reserve {
    /// Bytes that stay free, by device.
    keep: HashMap<u64, u64>,
    unasked: u64,
}

impl Reserve {
    /// So many bytes were written to the file. True when there is no room for more.
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

/// Bytes that stay free of a file system of so many bytes. One that has less than the rule asks for when a run first
/// writes there lends it the half of that.
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
