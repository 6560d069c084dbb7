//! Names cut into text and numbers, and the order in which they are listed.

use std::cmp::Ordering;

/// The most digits of an index. A longer number cannot be in brackets, so it stays text.
pub(super) const MOST_DIGITS: usize = 18;

/// A host's name: `r1n02x` is the pattern `r%sn%sx` with the indexes 1 and 02.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// The key by which sets of names are folded and first sorted. It is ClusterShell's own notation, because the
    /// order of listings follows from it.
    pub(super) pattern: String,
    /// Digits as they were written: 01 and 1 are two hosts.
    pub(super) indexes: Vec<String>,
    pub(super) text: String,
}

impl Name {
    pub(super) fn new(text: String) -> Name {
        let (mut pattern, mut indexes) = (String::with_capacity(text.len() + 2), Vec::<String>::new());
        for part in text.as_bytes().chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
            let part = String::from_utf8_lossy(part);
            if part.starts_with(|c: char| c.is_ascii_digit()) && part.len() <= MOST_DIGITS {
                pattern.push_str("%s");
                indexes.push(part.into_owned());
            } else {
                pattern.push_str(&part.replace('%', "%%"));
            }
        }
        Name { pattern, indexes, text }
    }
}

/// Compares numbers first by their length, then as text: 1, 2, 10, 01, 02 are sorted 1, 2, 01, 02, 10.
pub(super) fn by_number(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        let indexes = || {
            let pairs = self.indexes.iter().zip(&other.indexes).map(|(a, b)| by_number(a, b));
            pairs.fold(Ordering::Equal, Ordering::then)
        };
        self.pattern.cmp(&other.pattern).then_with(indexes)
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Puts indexes back into a pattern.
pub(super) fn fill(pattern: &str, indexes: &[String]) -> String {
    let (mut out, mut rest, mut indexes) = (String::new(), pattern, indexes.iter());
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        match rest.as_bytes().get(at + 1) {
            Some(b's') => out.push_str(indexes.next().map_or("", String::as_str)),
            _ => out.push('%'),
        }
        rest = rest.get(at + 2..).unwrap_or("");
    }
    out + rest
}
