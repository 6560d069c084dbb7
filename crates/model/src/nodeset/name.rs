//! Names cut into text and numbers, and the order in which they are listed.

use std::cmp::Ordering;

/// A host's name: `r1n02x` is the pattern `r%sn%sx` with the indexes 1 and 02.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// What sets of names are folded by, and first sorted by: ClusterShell's
    /// own notation, since the order of listings follows from it.
    pub(super) pattern: String,
    /// Digits as they were written: 01 and 1 are two hosts.
    pub(super) indexes: Vec<String>,
    pub(super) text: String,
}

impl Name {
    pub(super) fn new(text: String) -> Name {
        let (mut pattern, mut indexes) = (String::with_capacity(text.len() + 2), Vec::<String>::new());
        let mut in_number = false;
        for c in text.chars() {
            match (c.is_ascii_digit(), in_number) {
                (true, false) => {
                    pattern.push_str("%s");
                    indexes.push(c.to_string());
                }
                (true, true) => indexes.last_mut().expect("a number was begun").push(c),
                (false, _) if c == '%' => pattern.push_str("%%"),
                (false, _) => pattern.push(c),
            }
            in_number = c.is_ascii_digit();
        }
        Name { pattern, indexes, text }
    }
}

/// Numbers by their value; of equal ones the shorter first: 1, 2, 10, 01, 02 are
/// sorted 1, 2, 01, 02, 10.
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
