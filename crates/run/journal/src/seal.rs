//! The end of each line: its number in the journal and a checksum.
//!
//! `...,"n":17,"sum":"0a1b2c3d"}`: CRC-32 (IEEE 802.3) of the line before `,"sum"`. It detects every burst of damage
//! of up to 32 bits, and costs less than a microsecond. A cryptographic sum would not help against a user who may
//! write the file. A gap in the numbers shows lost lines.

use std::io::Write;

const SUM: &[u8] = b",\"sum\":\"";
const NUMBER: &[u8] = b",\"n\":";
/// `,"sum":"`, eight digits, `"}`.
const TAIL: usize = SUM.len() + 8 + 2;

/// The result of reading the seal of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seal {
    /// The line has no seal: homing 0.1 wrote it.
    None,
    /// The line is as written. Its number in the journal counts from 1.
    Number(u64),
    /// The line differs from the written line.
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

/// Whether a line without a seal ends with the rest of one: `...s":"0a1b2c3d"}`. If bytes in the middle are lost, a
/// field of one line may continue in the seal of another. A line of homing 0.1 would need a text of eight such digits
/// at its end.
fn is_rest(line: &[u8]) -> bool {
    let Some(text) = line.strip_suffix(b"\"}") else { return false };
    let Some((key, digits)) = text.len().checked_sub(8).map(|at| text.split_at(at)) else { return false };
    key.ends_with(b"\":\"") && sum(digits).is_some()
}

/// Parses eight digits in the form that `add` writes. Other forms are damage: one flipped bit turns `a` into `A`.
fn sum(digits: &[u8]) -> Option<u32> {
    let written = digits.iter().all(|d| matches!(d, b'0'..=b'9' | b'a'..=b'f'));
    let text = std::str::from_utf8(digits).ok().filter(|_| written)?;
    u32::from_str_radix(text, 16).ok()
}

fn number(body: &[u8]) -> Option<u64> {
    let at = body.windows(NUMBER.len()).rposition(|w| w == NUMBER)?;
    std::str::from_utf8(&body[at + NUMBER.len()..]).ok()?.parse().ok()
}

/// Returns the number of the record after this line. The expected number of this line is `next`.
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
