//! Finds where one record ends and the next begins: `--recend`, `--recstart`, `--regexp`.

use crate::edit::regex;
use crate::error::BatchError;
use crate::options::Blocking;
use memchr::memmem;
use regex::bytes::Regex;

/// The place between two records.
#[derive(Clone, Debug)]
pub(crate) enum Boundary {
    /// This text, of which this many bytes belong to the record before.
    Text(Vec<u8>, usize),
    /// The end of the first group of this expression.
    Pattern(Regex),
}

impl Boundary {
    pub(crate) fn of(how: &Blocking) -> Result<Boundary, BatchError> {
        let (end, start) = (&how.recend.0, &how.recstart.0);
        if !how.regexp {
            return Ok(Boundary::Text([end.as_slice(), start].concat(), end.len()));
        }
        let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        let pattern = format!("({})(?:{})", text(end), text(start));
        let found = regex(&pattern).map_err(|why| BatchError::value("--regexp", &pattern, &why))?;
        Ok(Boundary::Pattern(found))
    }

    /// Whether records have no end: a block may then be cut anywhere.
    pub(crate) fn is_anywhere(&self) -> bool {
        match self {
            Boundary::Text(text, _) => text.is_empty(),
            Boundary::Pattern(found) => found.is_match(b""),
        }
    }

    /// Returns the end of the last record that is whole in `text`.
    pub(crate) fn last(&self, text: &[u8]) -> Option<usize> {
        match self {
            Boundary::Text(between, end) => Some(memmem::rfind(text, between)? + end),
            Boundary::Pattern(found) => Some(found.captures_iter(text).last()?.get(1)?.end()),
        }
    }

    /// Returns the end of the first record that is whole in `text`.
    pub(crate) fn first(&self, text: &[u8]) -> Option<usize> {
        match self {
            Boundary::Text(between, end) => Some(memmem::find(text, between)? + end),
            Boundary::Pattern(found) => Some(found.captures(text)?.get(1)?.end()),
        }
    }

    /// Returns the end of record `number`, counted from 1. As in GNU parallel, none is empty.
    pub(crate) fn nth(&self, text: &[u8], number: usize) -> Option<usize> {
        match self {
            Boundary::Text(between, end) => {
                let next = |at: usize, _| Some(at + 1 + memmem::find(text.get(at + 1..)?, between)?);
                Some((0..number).try_fold(0, next)? + end)
            }
            Boundary::Pattern(found) => {
                let ends = found.captures_iter(text).filter_map(|found| Some(found.get(1)?.end()));
                ends.filter(|end| *end > 0).nth(number.checked_sub(1)?)
            }
        }
    }

    /// Returns the number of bytes at the end of a text in which a boundary may have begun.
    pub(crate) fn overlap(&self) -> usize {
        match self {
            Boundary::Text(text, _) => text.len().saturating_sub(1),
            Boundary::Pattern(_) => LONGEST,
        }
    }
}

/// Most bytes that an expression between two records may span.
const LONGEST: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::BlockSize;

    fn boundary(recstart: &str, recend: &str, regexp: bool) -> Boundary {
        let (recstart, recend) = (recstart.into(), recend.into());
        let how = Blocking { size: BlockSize::Bytes(1), recstart, recend, regexp, piped: None };
        Boundary::of(&how).unwrap()
    }

    #[test]
    fn records_end_at_texts_and_at_expressions() {
        for (boundary, text, first, nth, last) in [
            (boundary("", "\n", false), "a\nb\nc", 2, [Some(2), Some(4)], 4),
            (boundary("", "\\n", true), "a\nb\nc", 2, [Some(2), Some(4)], 4),
            (boundary("", "[0-9]+", true), "a1b22c333d", 2, [Some(2), Some(5)], 9),
            (boundary("[a-z]", "", true), "a1b22c", 0, [Some(2), Some(5)], 5),
            (boundary("[b-d]", "[0-9]+", true), "a1b22x3", 2, [Some(2), None], 2),
            (boundary(">", "", false), ">a>b", 0, [Some(2), None], 2),
        ] {
            let text = text.as_bytes();
            let found = (boundary.first(text), [1, 2].map(|n| boundary.nth(text, n)), boundary.last(text));
            assert_eq!(found, (Some(first), nth, Some(last)), "{boundary:?}");
        }
    }
}
