//! Finds where one record ends and the next begins: `--recend`, `--recstart`, `--regexp`.

use crate::edit::regex;
use crate::error::BatchError;
use crate::options::Blocking;
use homing_model::RawText;
use memchr::memmem;
use regex::bytes::Regex;
use std::ops::Range;

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

/// Compiles the header of blocks: `:` is the first line, a number so many lines, other text a regular expression.
pub(crate) fn header(text: &str) -> Result<Regex, BatchError> {
    let lines = text.parse::<usize>().ok().or((text == ":").then_some(1));
    let pattern = lines.map_or_else(|| text.to_owned(), |lines| ".*\n".repeat(lines));
    regex(&format!("^(?:{pattern})")).map_err(|why| BatchError::value("--header", text, &why))
}

/// The texts between the records of a block, which `--rrs` leaves out.
#[derive(Clone, Debug)]
pub(crate) struct Separators([Regex; 3]);

impl Separators {
    pub(crate) fn of(how: &Blocking) -> Result<Separators, BatchError> {
        let text = |part: &RawText| match how.regexp {
            true => String::from_utf8_lossy(&part.0).into_owned(),
            false => part.0.iter().map(|byte| format!("\\x{byte:02x}")).collect(),
        };
        let (end, start) = (text(&how.recend), text(&how.recstart));
        let compile = |pattern: String| regex(&pattern).map_err(|why| BatchError::value("--rrs", &pattern, &why));
        let patterns = [format!("(?:{end})(?:{start})"), format!("\\A(?:{start})"), format!("(?:{end})\\z")];
        let [between, first, last] = patterns.map(compile);
        Ok(Separators([between?, first?, last?]))
    }

    /// Returns the parts of a block that are left.
    pub(crate) fn left(&self, block: &[u8]) -> Vec<Range<usize>> {
        let found = self.0.iter().flat_map(|pattern| pattern.find_iter(block).map(|found| found.range()));
        let mut gone: Vec<Range<usize>> = found.filter(|range| !range.is_empty()).collect();
        gone.sort_by_key(|range| range.start);
        let (mut left, mut at) = (Vec::new(), 0);
        let end = block.len()..block.len();
        for range in gone.into_iter().chain(std::iter::once(end)) {
            if range.start > at {
                left.push(at..range.start);
            }
            at = at.max(range.end);
        }
        left
    }
}

/// Most bytes that an expression between two records may span.
const LONGEST: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::BlockSize;

    fn blocking(recstart: &str, recend: &str, regexp: bool) -> Blocking {
        let (recstart, recend) = (recstart.into(), recend.into());
        let size = BlockSize::Bytes(1);
        Blocking { size, recstart, recend, regexp, header: None, tee: false, removes_separators: false, piped: None }
    }

    #[test]
    fn separators_are_left_out() {
        for (start, end, regexp, block, left) in [
            ("", "\n", false, "a\nb\n", "ab"),
            ("", "+", false, "a+b\n", "ab\n"),
            (">", "", false, ">a>b", "ab"),
            ("<", "/", false, "<a/<b/", "ab"),
            ("", "[0-9]+", true, "a12b3", "ab"),
            ("", "", false, "ab", "ab"),
        ] {
            let separators = Separators::of(&blocking(start, end, regexp)).unwrap();
            let parts: String = separators.left(block.as_bytes()).into_iter().map(|range| &block[range]).collect();
            assert_eq!(parts, left, "{block:?}");
        }
    }

    #[test]
    fn a_header_is_lines_or_an_expression() {
        for (text, input, length) in [
            (":", "h\n1\n", Some(2)),
            ("2", "h\ni\n1\n", Some(4)),
            ("#.*\n#.*\n", "#a\n#\n1", Some(5)),
            (":", "h", None),
        ] {
            assert_eq!(header(text).unwrap().find(input.as_bytes()).map(|found| found.end()), length, "{text}");
        }
    }

    fn boundary(recstart: &str, recend: &str, regexp: bool) -> Boundary {
        Boundary::of(&blocking(recstart, recend, regexp)).unwrap()
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
