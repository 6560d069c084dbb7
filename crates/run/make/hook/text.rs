//! Parses words and the first bytes of programs. Pure.

/// The kernel's treatment of a file that begins with these bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Program<'a> {
    /// It runs.
    Binary,
    /// Its interpreter runs.
    Script(&'a [u8]),
    /// Make reports an error, or a shell tries to run it.
    Other,
}

/// Recognizes a program by its first bytes, at most 256, as in the kernel.
pub fn program(head: &[u8]) -> Program<'_> {
    if head.starts_with(b"\x7fELF") {
        return Program::Binary;
    }
    let Some(line) = head.strip_prefix(b"#!") else { return Program::Other };
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let word = line.split(|byte| *byte == b' ' || *byte == b'\t').find(|word| !word.is_empty());
    word.map_or(Program::Other, Program::Script)
}

/// Returns the last part of a path.
pub fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Whether a program of this name is make, regardless of its exports.
pub fn is_make(path: &[u8]) -> bool {
    matches!(base(path), b"make" | b"gmake")
}

/// Whether a word may lead to make or to homing. This is a heuristic: a program without such a word seldom starts
/// one.
pub fn leads_on(word: &[u8]) -> bool {
    word.windows(4).any(|part| part == b"make") || word.windows(6).any(|part| part == b"homing")
}

/// Returns the value, if the string is an entry of this variable.
pub fn value<'a>(entry: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    entry.strip_prefix(name)?.strip_prefix(b"=")
}

/// Parses a number as C's `atoi` does.
pub fn number(digits: &[u8]) -> i64 {
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |sum: i64, byte| sum.saturating_mul(10).saturating_add(i64::from(byte - b'0')))
}
