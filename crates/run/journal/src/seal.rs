//! The end of each line: its number in the journal and a checksum.
//!
//! `...,"n":17,"sum":"0a1b2c3d"}`: CRC-32 (IEEE 802.3) of all that stands in the
//! line before `,"sum"`. It finds every burst of damage of up to 32 bits, and
//! costs less than a microsecond; a cryptographic sum would not help against
//! somebody who may write the file. A gap in the numbers shows lost lines.

use std::io::Write;

const SUM: &[u8] = b",\"sum\":\"";
const NUMBER: &[u8] = b",\"n\":";
/// `,"sum":"`, eight digits, `"}`.
const TAIL: usize = SUM.len() + 8 + 2;

/// What the end of a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seal {
    /// It has none: homing 0.1 wrote it.
    None,
    /// The line is what was written, as this record of the journal, from 1.
    Number(u64),
    /// The line is not what was written.
    Broken,
}

/// Seals the JSON object that begins at `from`.
pub(crate) fn add(line: &mut Vec<u8>, from: usize, number: u64) {
    line.pop();
    // Writing to memory cannot fail.
    let _ = write!(line, ",\"n\":{number}");
    let sum = crc32fast::hash(&line[from..]);
    let _ = write!(line, ",\"sum\":\"{sum:08x}\"}}");
}

/// Reads the seal of a line without its newline.
pub(crate) fn of(line: &[u8]) -> Seal {
    let none = || if is_rest(line) { Seal::Broken } else { Seal::None };
    let Some(at) = line.len().checked_sub(TAIL) else { return none() };
    let (body, tail) = line.split_at(at);
    if !tail.starts_with(SUM) || !tail.ends_with(b"\"}") {
        return none();
    }
    if sum(&tail[SUM.len()..SUM.len() + 8]) != Some(crc32fast::hash(body)) {
        return Seal::Broken;
    }
    number(body).map_or(Seal::Broken, Seal::Number)
}

/// Whether a line without a seal ends as if with the rest of one: `...s":"0a1b2c3d"}`. Where bytes between two places
/// are gone, a field of the one line may run into the seal of the other. A line of homing 0.1 would need a text of
/// eight such digits at its end.
fn is_rest(line: &[u8]) -> bool {
    let Some(text) = line.strip_suffix(b"\"}") else { return false };
    let Some((key, digits)) = text.len().checked_sub(8).map(|at| text.split_at(at)) else { return false };
    key.ends_with(b"\":\"") && sum(digits).is_some()
}

/// The number that eight digits are, if they are as they are written here: one flipped bit makes `A` of `a`.
fn sum(digits: &[u8]) -> Option<u32> {
    let written = digits.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f'));
    let text = std::str::from_utf8(digits).ok().filter(|_| written)?;
    u32::from_str_radix(text, 16).ok()
}

fn number(body: &[u8]) -> Option<u64> {
    let at = body.windows(NUMBER.len()).rposition(|w| w == NUMBER)?;
    std::str::from_utf8(&body[at + NUMBER.len()..]).ok()?.parse().ok()
}

/// The number of the record after this line, which was to be number `next`.
pub(crate) fn after(line: &[u8], next: u64) -> u64 {
    match of(line) {
        Seal::Number(n) => n.saturating_add(1),
        Seal::None | Seal::Broken => next.saturating_add(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_flipped_bit_is_found() {
        let mut line = b"{\"at_ns\":1,\"event\":\"note\",\"text\":\"a\"}".to_vec();
        add(&mut line, 0, 17);
        assert!(String::from_utf8_lossy(&line).contains("\"text\":\"a\",\"n\":17,\"sum\":\""));
        assert_eq!(of(&line), Seal::Number(17));
        for at in 0..line.len() * 8 {
            let mut other = line.clone();
            other[at / 8] ^= 1 << (at % 8);
            assert!(!matches!(of(&other), Seal::Number(_)), "{}", String::from_utf8_lossy(&other));
        }
        assert_eq!(of(b"{}"), Seal::None);
        assert_eq!(of(b"{\"at_ns\":1,\"event\":\"note\",\"text\":\"written by homing 0.1\"}"), Seal::None);
    }
}
