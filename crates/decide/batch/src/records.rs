//! Reads records of a file or of standard input, and holds values compactly.

use crate::blanks::{is_space, trimmed_end, trimmed_start};
use crate::edit::regex;
use crate::error::BatchError;
use crate::options::{InputOptions, Trim};
use homing_model::RawText;
use regex::bytes::Regex;
use std::io::{self, BufRead, Read};
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes of an item. Linux allows 32 pages of 4 KiB for one argument with its zero byte (`MAX_ARG_STRLEN`), and
/// a command line for a shell is one argument.
pub(crate) const LONGEST_ITEM: usize = 32 * 4096 - 1;

/// Most bytes of an item that is cut into columns: the Linux limit for all arguments together, whatever the limit on
/// the stack is.
pub(crate) const LONGEST_LINE: usize = 6 << 20;

/// The mark that some editors put before the text of a UTF-8 file (RFC 8259, section 8.1).
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Notes on the input for the user. All readers of a batch add to the same ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct InputNotes(Arc<Mutex<Vec<String>>>);

impl InputNotes {
    /// Returns the notes since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, note: Option<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(note);
    }
}

/// Rules for cutting bytes into records and records into values.
#[derive(Clone, Debug)]
pub(crate) struct Cutting {
    delimiter: Vec<u8>,
    columns: Option<Regex>,
    trim: Trim,
    skip_blank: bool,
    continued: bool,
    end: Option<RawText>,
}

impl Cutting {
    pub(crate) fn new(options: &InputOptions) -> Result<Self, BatchError> {
        let delimiter = match &options.delimiter {
            _ if options.null => vec![0],
            Some(text) => delimiter_bytes(&text.0)?,
            None => vec![b'\n'],
        };
        let tab = options.header.then(|| RawText::from("\t"));
        let columns = options.colsep.as_ref().or(tab.as_ref()).map(column_separator).transpose()?;
        let trim = options.trim.unwrap_or(if options.colsep.is_some() { Trim::Both } else { Trim::No });
        let continued = options.packing.continued;
        let end = options.end.clone();
        Ok(Cutting { delimiter, columns, trim, skip_blank: options.no_run_if_empty, continued, end })
    }

    /// Whether a record ends its source.
    pub(crate) fn ends(&self, record: &[u8]) -> bool {
        self.end.as_ref().is_some_and(|end| end.0 == record)
    }

    /// Whether the record continues in the next.
    pub(crate) fn goes_on(&self, record: &[u8]) -> bool {
        self.continued && record.last().is_some_and(is_space)
    }

    fn longest(&self) -> usize {
        if self.columns.is_some() { LONGEST_LINE } else { LONGEST_ITEM }
    }

    pub(crate) fn wants(&self, record: &[u8]) -> bool {
        !(self.skip_blank && record.iter().all(is_space))
    }

    /// Appends the values of one record.
    pub(crate) fn values(&self, record: &[u8], to: &mut Vec<RawText>) {
        let mut put = |value: &[u8]| to.push(RawText(self.trimmed(value).to_vec()));
        match &self.columns {
            Some(separator) => separator.split(record).for_each(&mut put),
            None => put(record),
        }
    }

    /// Returns a note if the first line of a source has the marks of a file of Windows. They become a part of a
    /// value, as with GNU parallel, and no command finds a file by such a name.
    fn marks(&self, line: &[u8], source: &str) -> Option<String> {
        let ends = line.ends_with(b"\r") && !matches!(self.trim, Trim::Right | Trim::Both);
        let (fault, cure) = match (line.starts_with(BOM), ends) {
            _ if self.delimiter != b"\n" => return None,
            (false, false) => return None,
            (true, false) => ("begins with a byte order mark", r"sed '1s/^\xEF\xBB\xBF//'"),
            (false, true) => (r"ends with \r", r"sed 's/\r$//'"),
            (true, true) => (r"begins with a byte order mark and ends with \r", r"sed '1s/^\xEF\xBB\xBF//; s/\r$//'"),
        };
        Some(format!(
            "line 1 of {source} {fault}, as in files of Windows, and commands get that too; {cure} removes it"
        ))
    }

    fn trimmed<'a>(&self, value: &'a [u8]) -> &'a [u8] {
        match self.trim {
            Trim::No => value,
            Trim::Left => trimmed_start(value),
            Trim::Right => trimmed_end(value),
            Trim::Both => trimmed_end(trimmed_start(value)),
        }
    }
}

fn column_separator(text: &RawText) -> Result<Regex, BatchError> {
    let bad = |reason: String| BatchError::Separator { option: "--colsep", value: text.display(), reason };
    let pattern = std::str::from_utf8(&text.0).map_err(|e| bad(e.to_string()))?;
    let separator = regex(pattern).map_err(bad)?;
    // It would match between any two characters, and make a column there.
    let everywhere = separator.is_match(b"");
    let hint = || bad(format!("this regular expression matches empty text; a literal text is '{}'", literal(pattern)));
    if everywhere { Err(hint()) } else { Ok(separator) }
}

/// Returns a regular expression that matches a text literally.
fn literal(text: &str) -> String {
    let special = |c: char| "\\.+*?()|[]{}^$#&-~".contains(c);
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}

/// Decodes a text of `--tagstring`, `--recstart` or `--recend`. `\n`, `\t`, `\r`, `\0` and three octal digits are as
/// in C and in GNU parallel; all other text is literal.
pub fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        let octal = behind.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let octal = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let (made, taken) = match (byte, behind.first()) {
            (b'\\', Some(b'n')) => (b'\n', 2),
            (b'\\', Some(b't')) => (b'\t', 2),
            (b'\\', Some(b'r')) => (b'\r', 2),
            (b'\\', Some(b'0'..=b'7')) if octal.is_some() => (octal.unwrap_or_default(), 4),
            (b'\\', Some(b'0')) => (0, 2),
            _ => (byte, 1),
        };
        out.push(made);
        rest = &rest[taken..];
    }
    out
}

/// Decodes `\n`, `\t`, `\r`, `\0`, `\xHH` and `\\` as in C; all other text is literal.
fn delimiter_bytes(text: &[u8]) -> Result<Vec<u8>, BatchError> {
    let bad = |reason: &str| BatchError::Separator {
        option: "--delimiter",
        value: String::from_utf8_lossy(text).into_owned(),
        reason: reason.to_owned(),
    };
    let mut out = Vec::new();
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next() {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'0') => 0,
            Some(b'\\') => b'\\',
            Some(b'x') => {
                let digits = [bytes.next().unwrap_or(0), bytes.next().unwrap_or(0)];
                let hex = std::str::from_utf8(&digits).ok().and_then(|d| u8::from_str_radix(d, 16).ok());
                hex.ok_or_else(|| bad("'\\x' needs two hexadecimal digits"))?
            }
            _ => return Err(bad("an unknown escape; known are \\n \\t \\r \\0 \\\\ \\xHH")),
        });
    }
    if out.is_empty() { Err(bad("it is empty")) } else { Ok(out) }
}

/// The records of a stream, one at a time.
pub(crate) struct Records {
    from: Box<dyn BufRead + Send>,
    name: String,
    cutting: Cutting,
    notes: InputNotes,
    read: u64,
    ended: bool,
}

impl Records {
    pub(crate) fn new(from: Box<dyn BufRead + Send>, name: String, cutting: Cutting, notes: InputNotes) -> Self {
        Records { from, name, cutting, notes, read: 0, ended: false }
    }

    /// Returns the next record that is not skipped, without its delimiter.
    pub(crate) fn next(&mut self) -> Result<Option<Vec<u8>>, BatchError> {
        while !self.ended {
            let Some(mut record) = self.read()? else { return Ok(None) };
            if self.read == 1 {
                self.notes.add(self.cutting.marks(&record, &self.name));
            }
            if self.cutting.ends(&record) {
                self.ended = true;
                break;
            }
            while self.cutting.goes_on(&record) {
                match self.read()? {
                    Some(more) if self.cutting.ends(&more) => {
                        self.ended = true;
                        break;
                    }
                    Some(more) => record.extend(more),
                    None => break,
                }
            }
            if self.cutting.wants(&record) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Leaves out the next record.
    pub(crate) fn skip(&mut self) -> Result<(), BatchError> {
        self.read().map(drop)
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>, BatchError> {
        let delimiter = &self.cutting.delimiter;
        let limit = self.cutting.longest();
        let last = *delimiter.last().expect("a delimiter is never empty");
        let mut record = Vec::new();
        self.read += 1;
        loop {
            let got = read_until(&mut self.from, last, limit + delimiter.len(), &mut record);
            let got = got.map_err(|source| BatchError::Read { name: self.name.clone(), source })?;
            if record.ends_with(delimiter) {
                record.truncate(record.len() - delimiter.len());
                return Ok(Some(record));
            }
            if record.len() >= limit + delimiter.len() {
                return Err(BatchError::TooLong { name: self.name.clone(), item: self.read, limit });
            }
            if got == 0 {
                return Ok((!record.is_empty()).then_some(record));
            }
        }
    }

    pub(crate) fn hold(mut self) -> Result<ByteStrings, BatchError> {
        let mut values = ByteStrings::default();
        while let Some(record) = self.next()? {
            values.push(&record);
        }
        Ok(values)
    }
}

/// Appends bytes up to and with the next `last`, or until `to` holds `most` bytes. Returns the number of read bytes.
pub(crate) fn read_until(from: &mut dyn BufRead, last: u8, most: usize, to: &mut Vec<u8>) -> io::Result<usize> {
    from.take((most - to.len().min(most)) as u64).read_until(last, to)
}

/// Many byte strings in two allocations, with eight bytes of overhead each.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteStrings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ByteStrings {
    /// Makes a single empty value.
    pub(crate) fn one_empty() -> Self {
        ByteStrings { bytes: Vec::new(), ends: vec![0] }
    }
    /// Removes and returns the first value.
    pub(crate) fn take_first(&mut self) -> Option<Vec<u8>> {
        let first = *self.ends.first()?;
        self.ends.remove(0);
        self.ends.iter_mut().for_each(|end| *end -= first);
        Some(self.bytes.drain(..first).collect())
    }
    pub(crate) fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(input: &'static [u8], options: InputOptions) -> Vec<String> {
        let cutting = Cutting::new(&options).unwrap();
        let mut records = Records::new(Box::new(input), "test".into(), cutting, InputNotes::default());
        std::iter::from_fn(|| records.next().unwrap()).map(|r| String::from_utf8(r).unwrap()).collect()
    }

    #[test]
    fn records_end_where_told() {
        let with = |d: &str| InputOptions { delimiter: Some(d.into()), ..Default::default() };
        assert_eq!(records(b"a b\n\nc \n  d", InputOptions::default()), ["a b", "", "c ", "  d"]);
        assert_eq!(
            records(b"a\n \x0b\n\t\nb\n", InputOptions { no_run_if_empty: true, ..Default::default() }),
            ["a", "b"]
        );
        assert_eq!(records(b"a\nb\0c\n\0", InputOptions { null: true, ..Default::default() }), ["a\nb", "c\n"]);
        assert_eq!(records(b"a;b;c\n", with(";")), ["a", "b", "c\n"]);
        assert_eq!(records(b"axxbxc", with("xx")), ["a", "bxc"]);
        assert_eq!(records(b"a\tb", with("\\t")), ["a", "b"]);
        assert_eq!(records(b"a,b", with("\\x2c")), ["a", "b"]);
        assert!(Cutting::new(&with("\\q")).is_err());
        assert!(Cutting::new(&with("")).is_err());
    }

    #[test]
    fn the_marks_of_a_file_of_windows_are_noted_once_where_commands_get_them() {
        let notes = |input: &'static [u8], options: InputOptions| {
            let notes = InputNotes::default();
            let cutting = Cutting::new(&options).unwrap();
            Records::new(Box::new(input), "list".into(), cutting, notes.clone()).hold().unwrap();
            notes.take()
        };
        let plain = InputOptions::default;
        let ends = notes(b"a\r\nb\r\n", plain());
        assert_eq!(ends.len(), 1, "{ends:?}");
        assert!(ends[0].starts_with(r"line 1 of list ends with \r, as in files of Windows"), "{ends:?}");
        assert!(notes(b"\xef\xbb\xbfa\nb\n", plain())[0].contains(r"a byte order mark, as"));
        assert!(notes(b"\xef\xbb\xbfa\r\n", plain())[0].contains(r"sed '1s/^\xEF\xBB\xBF//; s/\r$//' removes it"));
        for (input, options) in [
            (&b"a\nb\n"[..], plain()),
            (b"a\r\n", InputOptions { trim: Some(Trim::Both), ..plain() }),
            (b"a\r\nb", InputOptions { delimiter: Some("\\r\\n".into()), ..plain() }),
            (b"a\r\0", InputOptions { null: true, ..plain() }),
        ] {
            assert_eq!(notes(input, options), [""; 0]);
        }
    }

    #[test]
    fn columns_are_cut_and_trimmed() {
        let cut = |colsep: &str, record: &[u8]| {
            let cutting = Cutting::new(&InputOptions { colsep: Some(colsep.into()), ..Default::default() }).unwrap();
            let mut values = Vec::new();
            cutting.values(record, &mut values);
            values
        };
        assert_eq!(cut(",", b"a , b"), ["a".into(), "b".into()]);
        assert_eq!(cut("[,;]", b"a;b,c"), ["a".into(), "b".into(), "c".into()]);
        assert_eq!(cut("\\t", b"a\t\xff"), ["a".into(), RawText(b"\xff".to_vec())]);
    }

    #[test]
    fn an_escape_of_a_tag_is_its_character() {
        for (text, bytes) in [
            ("a\\tb", &b"a\tb"[..]),
            ("\\n\\r", b"\n\r"),
            ("\\\\t", b"\\\t"),
            ("\\101\\0\\08", b"A\0\x008"),
            ("a\\qb\\x41\\", b"a\\qb\\x41\\"),
        ] {
            assert_eq!(unescaped(text.as_bytes()), bytes, "{text}");
        }
    }

    #[test]
    fn a_separator_of_columns_that_is_everywhere_is_refused_with_the_literal_one() {
        let of = |colsep: &str| Cutting::new(&InputOptions { colsep: Some(colsep.into()), ..Default::default() });
        for (colsep, instead) in [("|", "'\\|'"), ("", "''"), (" *", "' \\*'"), ("a|", "'a\\|'")] {
            let why = of(colsep).map(drop).unwrap_err().to_string();
            assert!(why.contains(instead), "{colsep}: {why}");
        }
        let all = |colsep: &str| {
            let mut values = Vec::new();
            of(colsep).unwrap().values(b"x|y z", &mut values);
            values
        };
        assert_eq!((all("\\|"), all(" +")), (vec!["x".into(), "y z".into()], vec!["x|y".into(), "z".into()]));
    }
}
