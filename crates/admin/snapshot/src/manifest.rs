//! The manifest of an image: one line of JSON for each entry with the hash of each file, in the order of the walk.

use homing_model::RawText;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::io::{self, BufRead};

/// The manifest's name beside the tree.
pub const NAME: &str = "manifest";

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ManifestKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, a pipe or a socket.
    Other,
}

/// A file, a folder or a link of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageEntry {
    /// Path below the tree; empty for the tree itself.
    pub path: RawText,
    /// Its kind.
    pub kind: ManifestKind,
    /// Permission bits.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Bytes of a regular file; 0 for others.
    pub size: u64,
    /// Time of the last change of its content, nanoseconds since 1970.
    pub mtime_ns: i128,
    /// SHA-256 of a file's bytes or of a link's target, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// SHA-256 of its extended attributes and ACLs, see [`crate::attributes`]; `None`: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xattrs: Option<String>,
    /// The line, from 0, of the first name of a file with several names in the tree; set on all other names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_name: Option<u64>,
}

/// Compares two paths by the order of the walk: a folder before its entries, names by their bytes.
pub fn order(a: &RawText, b: &RawText) -> Ordering {
    let parts = |path: &RawText| path.0.split(|b| *b == b'/').map(<[u8]>::to_vec).collect::<Vec<_>>();
    match (a.0.is_empty(), b.0.is_empty()) {
        (false, false) => parts(a).cmp(&parts(b)),
        (a, b) => b.cmp(&a),
    }
}

/// Returns the entries of a manifest.
pub fn read(from: impl BufRead) -> impl Iterator<Item = io::Result<ImageEntry>> {
    let entry = |line: io::Result<Vec<u8>>| Ok(serde_json::from_slice(&line?)?);
    from.split(b'\n').map(entry)
}

/// A difference between an entry of one image and the same entry of another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryChange {
    /// The kind of the difference.
    pub what: ChangeKind,
    /// Its path below the source.
    pub path: RawText,
}

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChangeKind {
    /// The entry is in the later image only.
    New,
    /// The entry is in the earlier image only.
    Gone,
    /// Its bytes, its target or its kind differ.
    Changed,
    /// Only its owner, mode or time differ.
    Touched,
}

/// Calls `each` for the differences of two manifests, in their order.
///
/// # Errors
/// The error of reading or of `each`.
pub fn compare(
    before: impl Iterator<Item = io::Result<ImageEntry>>,
    after: impl Iterator<Item = io::Result<ImageEntry>>,
    mut each: impl FnMut(EntryChange) -> io::Result<()>,
) -> io::Result<()> {
    let (mut before, mut after) = (before.peekable(), after.peekable());
    loop {
        let side = match (before.peek(), after.peek()) {
            (None, None) => return Ok(()),
            (Some(Ok(old)), Some(Ok(new))) => order(&old.path, &new.path),
            (Some(Err(_)), _) | (_, None) => Ordering::Less,
            (_, Some(_)) => Ordering::Greater,
        };
        let old = if side.is_le() { before.next().transpose()? } else { None };
        let new = if side.is_ge() { after.next().transpose()? } else { None };
        if let Some(what) = change(old.as_ref(), new.as_ref()) {
            let path = new.or(old).map(|entry| entry.path).unwrap_or_else(|| RawText(Vec::new()));
            each(EntryChange { what, path })?;
        }
    }
}

fn change(old: Option<&ImageEntry>, new: Option<&ImageEntry>) -> Option<ChangeKind> {
    let (old, new) = match (old, new) {
        (Some(old), Some(new)) => (old, new),
        (None, Some(_)) => return Some(ChangeKind::New),
        (Some(_), None) => return Some(ChangeKind::Gone),
        (None, None) => return None,
    };
    if (old.kind, old.size, &old.sha256) != (new.kind, new.size, &new.sha256) {
        return Some(ChangeKind::Changed);
    }
    // A folder's time changes with its entries.
    let time = |entry: &ImageEntry| (entry.kind != ManifestKind::Folder).then_some(entry.mtime_ns);
    let same = (old.mode, old.uid, old.gid, time(old)) == (new.mode, new.uid, new.gid, time(new));
    if same { None } else { Some(ChangeKind::Touched) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(path: &[u8], sha: &str, mode: u32) -> ImageEntry {
        let path = RawText(path.to_vec());
        let sha256 = Some(sha.into());
        ImageEntry {
            path,
            kind: ManifestKind::File,
            mode,
            uid: 0,
            gid: 0,
            size: 1,
            mtime_ns: 5,
            sha256,
            xattrs: None,
            first_name: None,
        }
    }

    #[test]
    fn any_name_comes_back_and_differences_are_told_in_order() {
        let before = [entry(b"a/x\ny", "1", 0o644), entry(b"a-b", "2", 0o644), entry(b"b\xff", "3", 0o644)];
        let after = [entry(b"a/x\ny", "9", 0o644), entry(b"b\xff", "3", 0o600), entry(b"c", "4", 0o644)];
        let text =
            |all: &[ImageEntry]| all.iter().map(|e| serde_json::to_string(e).unwrap() + "\n").collect::<String>();
        let (old, new) = (text(&before), text(&after));
        let mut found = Vec::new();
        compare(read(old.as_bytes()), read(new.as_bytes()), |change| {
            found.push((change.what, change.path.0));
            Ok(())
        })
        .unwrap();
        let wanted: [(ChangeKind, &[u8]); 4] = [
            (ChangeKind::Changed, b"a/x\ny"),
            (ChangeKind::Gone, b"a-b"),
            (ChangeKind::Touched, b"b\xff"),
            (ChangeKind::New, b"c"),
        ];
        assert_eq!(found, wanted.map(|(what, path)| (what, path.to_vec())));
    }

    #[test]
    fn a_line_that_is_cut_short_is_an_error_and_not_the_end() {
        let text = serde_json::to_string(&entry(b"a", "1", 0o644)).unwrap();
        let cut = &text[..text.len() - 4];
        assert!(compare(read(cut.as_bytes()), read(&b""[..]), |_| Ok(())).is_err());
    }
}
