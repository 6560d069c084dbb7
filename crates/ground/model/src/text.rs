//! Bytes that are nearly always text: file names, arguments, environment.
//!
//! Linux file names are bytes. A human-readable format writes them as a string if they are UTF-8, else as `{"b64":
//! "..."}`. So `jq` reads the common case, and no bytes are lost in the other.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A byte string that is usually UTF-8, without a guarantee.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RawText(pub Vec<u8>);

impl RawText {
    /// Returns the bytes as an `OsStr`, for system calls.
    pub fn as_os(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }
    /// Returns the bytes as a path.
    pub fn as_path(&self) -> &Path {
        Path::new(self.as_os())
    }
    /// Returns an owned path of the same bytes.
    pub fn to_path(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.0.clone()))
    }
    /// Formats the text for people: invalid UTF-8 becomes U+FFFD, control characters are escaped.
    pub fn display(&self) -> String {
        shown(&String::from_utf8_lossy(&self.0))
    }
}

/// Returns a text of unknown origin as one line for a terminal, with control characters escaped. Otherwise a name or
/// a reason could move the cursor, set the title, or imitate a line of homing.
pub fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// As [`shown`], for a text that may have several lines.
pub fn shown_lines(text: &str) -> String {
    text.split('\n').map(shown).collect::<Vec<_>>().join("\n")
}

/// Formats rows as lines, each column as wide as its longest cell; the columns of `right` are aligned to the right.
pub fn aligned<const N: usize>(rows: &[[String; N]], right: Range<usize>) -> String {
    crate::fit::aligned(rows, right, None)
}

/// Returns the last line that is not blank, as [`shown`], cut to `longest` bytes.
pub fn last_line(bytes: &[u8], longest: usize) -> Option<String> {
    let line = bytes.rsplit(|b| matches!(b, b'\n' | b'\r')).find(|line| !line.trim_ascii().is_empty())?;
    let line = &line[..line.len().min(longest)];
    let mut text = shown(&String::from_utf8_lossy(line));
    while text.len() > longest {
        text.pop();
    }
    Some(text)
}

/// Appends bytes to an output and keeps its last `most` bytes.
pub fn keep_tail(tail: &mut Vec<u8>, bytes: &[u8], most: usize) {
    tail.extend_from_slice(&bytes[bytes.len().saturating_sub(most)..]);
    tail.drain(..tail.len().saturating_sub(most));
}

/// Quotes a word for any POSIX shell, in single quotes.
pub fn quoted(word: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' => out.extend(b"'\\''"),
            other => out.push(*other),
        }
    }
    out.push(b'\'');
    out
}

/// The reader of a line with quoted words. It decides which characters need no quotes.
///
/// `homing_batch::quote` has a set of its own, that of GNU parallel: job logs and dry runs of both then look the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordReader {
    /// Any login shell. `=` is not plain, since zsh looks for a program after it; neither is `~`, the sign of a home.
    LoginShell,
    /// `sh`. With `=` as a plain character, options such as `--mode=script` stay readable.
    Sh,
    /// A person who reads which command was typed. Letters of any language and `{}` are plain.
    Person,
}

impl WordReader {
    /// Returns a word unchanged if it has only characters that are plain to this reader, else in single quotes.
    pub fn quoted(self, word: &str) -> String {
        let plain = |c: char| match self {
            WordReader::LoginShell => c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c),
            WordReader::Sh => c.is_ascii_alphanumeric() || "-_./:@%+,=".contains(c),
            WordReader::Person => c.is_alphanumeric() || "-_./:@%+,={}".contains(c),
        };
        if !word.is_empty() && word.chars().all(plain) { word.into() } else { always_quoted(word) }
    }
}

/// Returns a word in single quotes.
pub fn always_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl fmt::Debug for RawText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl From<&str> for RawText {
    fn from(s: &str) -> Self {
        RawText(s.as_bytes().to_vec())
    }
}
impl From<String> for RawText {
    fn from(s: String) -> Self {
        RawText(s.into_bytes())
    }
}
impl From<OsString> for RawText {
    fn from(s: OsString) -> Self {
        RawText(s.into_vec())
    }
}
impl From<&OsStr> for RawText {
    fn from(s: &OsStr) -> Self {
        RawText(s.as_bytes().to_vec())
    }
}
impl From<&Path> for RawText {
    fn from(p: &Path) -> Self {
        RawText(p.as_os_str().as_bytes().to_vec())
    }
}

impl Serialize for RawText {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if !s.is_human_readable() {
            return s.serialize_bytes(&self.0);
        }
        match std::str::from_utf8(&self.0) {
            Ok(text) => s.serialize_str(text),
            Err(_) => {
                let mut map = s.serialize_map(Some(1))?;
                map.serialize_entry("b64", &STANDARD.encode(&self.0))?;
                map.end()
            }
        }
    }
}

struct RawTextVisitor;

impl<'de> Visitor<'de> for RawTextVisitor {
    type Value = RawText;
    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a string, or {\"b64\": \"...\"} for bytes that are not UTF-8")
    }
    fn visit_str<E: de::Error>(self, v: &str) -> Result<RawText, E> {
        Ok(RawText(v.as_bytes().to_vec()))
    }
    fn visit_bytes<E: de::Error>(self, v: &[u8]) -> Result<RawText, E> {
        Ok(RawText(v.to_vec()))
    }
    fn visit_byte_buf<E: de::Error>(self, v: Vec<u8>) -> Result<RawText, E> {
        Ok(RawText(v))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawText, A::Error> {
        let Some((key, value)) = map.next_entry::<String, String>()? else {
            return Err(de::Error::custom("an empty object is no text"));
        };
        if key != "b64" {
            return Err(de::Error::unknown_field(&key, &["b64"]));
        }
        STANDARD.decode(value).map(RawText).map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for RawText {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        if d.is_human_readable() { d.deserialize_any(RawTextVisitor) } else { d.deserialize_byte_buf(RawTextVisitor) }
    }
}

/// Splits table rows whose first column has several names separated by blanks into one row per name.
pub fn by_name<'t>(rows: &[(&'t str, &'t str)]) -> impl Iterator<Item = (&'t str, &'t str)> {
    rows.iter().flat_map(|(names, said)| names.split(' ').map(move |name| (name, *said)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_moves_its_column_for_all() {
        let rows = [["NAME", "MOUNT"], ["a-volume-with-a-name", "/a"], ["b", "/b"]].map(|row| row.map(String::from));
        assert_eq!(
            aligned(&rows, 0..0),
            "NAME                  MOUNT\na-volume-with-a-name  /a\nb                     /b\n"
        );
    }

    #[test]
    fn columns_are_as_wide_as_their_longest_cell_in_characters() {
        let rows = [["A", "N", "LAST"], ["é", "10", ""], ["long", "9", "x "]].map(|row| row.map(String::from));
        assert_eq!(aligned(&rows, 1..2), "A      N  LAST\né     10\nlong   9  x\n");
        assert_eq!(aligned::<2>(&[], 0..2), "");
    }

    #[test]
    fn the_reader_decides_which_words_need_quotes() {
        for (word, login, sh, person) in [
            ("a/b-c_d.e:1", "a/b-c_d.e:1", "a/b-c_d.e:1", "a/b-c_d.e:1"),
            ("--mode=x", "'--mode=x'", "--mode=x", "--mode=x"),
            ("{}", "'{}'", "'{}'", "{}"),
            ("\u{fc}", "'\u{fc}'", "'\u{fc}'", "\u{fc}"),
            ("~x", "'~x'", "'~x'", "'~x'"),
            ("it's", r"'it'\''s'", r"'it'\''s'", r"'it'\''s'"),
            ("", "''", "''", "''"),
        ] {
            let quoted = [WordReader::LoginShell, WordReader::Sh, WordReader::Person].map(|reader| reader.quoted(word));
            assert_eq!(quoted, [login, sh, person]);
        }
    }

    #[test]
    fn a_last_line_is_printable_and_bounded() {
        assert_eq!(last_line(b"one\ntwo \x1b[2J\n \n\n", 200).as_deref(), Some("two \\u{1b}[2J"));
        assert_eq!(last_line(b"10 %\r20 %", 200).as_deref(), Some("20 %"));
        assert_eq!(last_line(" \n".as_bytes(), 200), None);
        assert_eq!(last_line("\u{e9}\u{e9}".as_bytes(), 3).as_deref(), Some("\u{e9}"));
        assert!(last_line(&[0x1b; 200], 200).is_some_and(|line| line.len() <= 200));
    }

    #[test]
    fn a_tail_keeps_the_end() {
        let mut tail = Vec::new();
        for bytes in [&b"one "[..], b"two ", b"", b"three"] {
            keep_tail(&mut tail, bytes, 7);
        }
        assert_eq!(tail, b"o three");
        keep_tail(&mut tail, b"longer than that", 4);
        assert_eq!(tail, b"that");
    }

    #[test]
    fn json_keeps_every_byte() {
        for bytes in [&b"plain"[..], b"new\nline>", b"\xff\xfe", b""] {
            let text = RawText(bytes.to_vec());
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::from_str::<RawText>(&json).unwrap(), text, "{json}");
        }
        assert_eq!(serde_json::to_string(&RawText(b"\xff".to_vec())).unwrap(), r#"{"b64":"/w=="}"#);
    }
}
