//! The mount table, `/proc/self/mountinfo`.

use crate::LocateError;
use homing_model::{Mount, RawText};

/// One line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountLine {
    /// `st_dev` of files on it.
    pub dev: u64,
    /// The directory of the file system that is mounted (bind mounts, NFS sub-mounts).
    pub root: RawText,
    pub mount: Mount,
}

pub(crate) fn read() -> Result<Vec<MountLine>, LocateError> {
    let text = std::fs::read("/proc/self/mountinfo").map_err(LocateError::Mounts)?;
    Ok(parse(&text))
}

pub(crate) fn parse(text: &[u8]) -> Vec<MountLine> {
    text.split(|b| *b == b'\n').filter_map(line).collect()
}

fn line(line: &[u8]) -> Option<MountLine> {
    let words: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
    let dash = words.iter().position(|w| *w == b"-")?;
    let (major, minor) = std::str::from_utf8(words.get(2)?).ok()?.split_once(':')?;
    Some(MountLine {
        dev: rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?),
        root: RawText(unescape(words.get(3)?)),
        mount: Mount {
            point: RawText(unescape(words.get(4)?)),
            fstype: String::from_utf8_lossy(words.get(dash + 1)?).into_owned(),
            source: RawText(unescape(words.get(dash + 2)?)),
        },
    })
}

/// The kernel writes blanks, tabs, newlines and backslashes as `\ooo`.
fn unescape(word: &[u8]) -> Vec<u8> {
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
        assert!(parse(b"garbage\n\n1 2 x / / - a b").is_empty());
    }
}
