//! Reads the kernel's counters of each mount; only NFS has any.

use crate::unescape;

/// The file of these counters; any user may read it.
pub const STATS: &str = "/proc/self/mountstats";

/// A mount and its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted<'t> {
    /// The source, with the kernel's escapes.
    pub source: &'t [u8],
    /// Where it is mounted.
    pub point: Vec<u8>,
    /// The type.
    pub fstype: &'t [u8],
    /// All text after its first line.
    after: &'t [u8],
}

impl<'t> Counted<'t> {
    /// Returns the lines about it that are text.
    pub fn lines(&self) -> impl Iterator<Item = &'t str> + use<'t> {
        let lines = self.after.split(|b| *b == b'\n').take_while(|line| !line.starts_with(b"device "));
        lines.filter_map(|line| std::str::from_utf8(line).ok())
    }
}

/// Parses the content of [`STATS`] and returns the mounts in order. Of two at one place the last is on top.
pub fn counted(stats: &[u8]) -> Vec<Counted<'_>> {
    let (mut all, mut rest) = (Vec::new(), stats);
    while !rest.is_empty() {
        let end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        let (line, after) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
        let words: Vec<&[u8]> = line.split(|b| *b == b' ').collect();
        if let [b"device", source, b"mounted", b"on", point, b"with", b"fstype", fstype, ..] = words[..] {
            all.push(Counted { source, point: unescape(point), fstype, after });
        }
        rest = after;
    }
    all
}
