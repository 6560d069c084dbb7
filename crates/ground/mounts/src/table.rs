//! Reads `/proc/PID/mountinfo`, as bytes: a mount point need not be UTF-8.

use homing_model::{Mount, RawText};
use std::io;
use std::path::Path;

/// A line of the mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountLine {
    /// `st_dev` of files on it.
    pub dev: u64,
    /// The directory of the file system that is mounted (bind mounts, NFS sub-mounts).
    pub root: RawText,
    /// Its mount point, type and source.
    pub mount: Mount,
    /// Options of this mount: `rw`, `noexec`, ...
    pub options: Vec<String>,
    /// Options of its file system, which all its mounts share.
    pub of_super: Vec<String>,
}

/// Reads the mount table of this process.
///
/// # Errors
/// The system's error if `/proc` is missing.
pub fn read() -> io::Result<Vec<MountLine>> {
    std::fs::read("/proc/self/mountinfo").map(|text| parse(&text))
}

/// Reads the mount table of another process.
///
/// # Errors
/// The system's error if the process is gone, or belongs to another user.
pub fn of_process(pid: i32) -> io::Result<Vec<MountLine>> {
    std::fs::read(format!("/proc/{pid}/mountinfo")).map(|text| parse(&text))
}

/// Returns the lines of a mountinfo text, in its order. Malformed lines are left out.
pub fn parse(text: &[u8]) -> Vec<MountLine> {
    text.split(|b| *b == b'\n').filter_map(line).collect()
}

/// Returns the line of the mount that contains a path without symbolic links, by its name alone. Of equal mount
/// points the last one is on top.
pub fn holding<'l>(lines: &'l [MountLine], path: &Path) -> Option<&'l MountLine> {
    let fits = lines.iter().filter(|l| path.starts_with(l.mount.point.as_path()));
    fits.max_by_key(|l| l.mount.point.0.len())
}

#[cfg(target_os = "linux")]
use rustix::fs::makedev as device;

/// Other systems have no such table, and device numbers of another width.
#[cfg(not(target_os = "linux"))]
fn device(major: u32, minor: u32) -> u64 {
    u64::from(major) << 32 | u64::from(minor)
}

fn line(line: &[u8]) -> Option<MountLine> {
    let words: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
    let dash = words.iter().position(|w| *w == b"-")?;
    let (major, minor) = std::str::from_utf8(words.get(2)?).ok()?.split_once(':')?;
    Some(MountLine {
        dev: device(major.parse().ok()?, minor.parse().ok()?),
        root: RawText(unescape(words.get(3)?)),
        mount: Mount {
            point: RawText(unescape(words.get(4)?)),
            fstype: String::from_utf8_lossy(words.get(dash + 1)?).into_owned(),
            source: RawText(unescape(words.get(dash + 2)?)),
        },
        options: options(words.get(5)?),
        of_super: words.get(dash + 3).map(|word| options(word)).unwrap_or_default(),
    })
}

fn options(word: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(word).split(',').map(String::from).collect()
}

/// Decodes `\ooo`, by which the kernel and `exportfs` write blanks, tabs, newlines and backslashes.
pub fn unescape(word: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|d| *first == b'\\' && d.iter().all(|b| (b'0'..=b'7').contains(b)));
        match octal {
            Some(digits) => {
                out.push(digits.iter().fold(0u8, |n, d| n.wrapping_mul(8).wrapping_add(d - b'0')));
                rest = &after[3..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_optional_ones_and_escapes_undone() {
        let text =
            b"36 35 0:40 /sub /my\\040data rw,noatime shared:7 master:1 - nfs4 [fe80::1]:/ex\\134port rw,addr=x\n";
        let lines = parse(text);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].root, "/sub".into());
        assert_eq!(lines[0].mount.point, "/my data".into());
        assert_eq!(lines[0].mount.fstype, "nfs4");
        assert_eq!(lines[0].mount.source, "[fe80::1]:/ex\\port".into());
        assert_eq!(
            (lines[0].options.join(" "), lines[0].of_super.join(" ")),
            ("rw noatime".into(), "rw addr=x".into())
        );
        assert!(parse(b"garbage\n\n1 2 x / / - a b").is_empty());
    }

    #[test]
    fn the_innermost_mount_and_of_equal_ones_the_last_holds_a_path() {
        let lines = parse(
            b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / /d rw - autofs auto rw\n3 2 0:6 / /d rw - nfs4 n1:/ rw\n\
            4 3 0:7 / /d\\011x rw - nfs4 n1:/x rw\n",
        );
        let at = |path: &str| holding(&lines, Path::new(path)).map(|l| l.mount.source.display());
        assert_eq!(at("/d/f").as_deref(), Some("n1:/"));
        assert_eq!(at("/d\tx/f").as_deref(), Some("n1:/x"));
        assert_eq!(at("/data").as_deref(), Some("/dev/sda1"));
        assert_eq!(at("relative"), None);
    }
}
