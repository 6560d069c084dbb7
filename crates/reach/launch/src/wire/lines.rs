//! Messages as lines of JSON, for channels with so few messages that a person can read a log of them.

use std::io::{self, BufRead, ErrorKind, Read, Write};

/// Writes one message, and the bytes that belong to it, in one call.
pub fn write_message(to: &mut (impl Write + ?Sized), what: &impl serde::Serialize, bytes: &[u8]) -> io::Result<()> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    line.extend(bytes);
    to.write_all(&line).and_then(|()| to.flush())
}

/// Reads the next line with its line end; `None` at the end of the stream. A line without an end, or longer than
/// `most` bytes, is an error.
pub fn next(from: &mut impl BufRead, most: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    from.by_ref().take(most as u64).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(line)),
        Some(_) => Err(io::Error::new(ErrorKind::InvalidData, "a line has no end")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_of_bounded_length() {
        let mut said = Vec::new();
        write_message(&mut said, &"a\nb", b"").unwrap();
        write_message(&mut said, &3, b"raw").unwrap();
        let mut from = &said[..];
        let mut next = || super::next(&mut from, 7);
        assert_eq!(next().unwrap().as_deref(), Some(&b"\"a\\nb\"\n"[..]));
        assert_eq!(next().unwrap().as_deref(), Some(&b"3\n"[..]));
        assert_eq!(next().unwrap_err().kind(), ErrorKind::InvalidData);
        assert!(next().unwrap().is_none());
        let endless = &mut io::BufReader::new(io::repeat(b'x'));
        assert_eq!(super::next(endless, crate::wire::MAX_FRAME).unwrap_err().kind(), ErrorKind::InvalidData);
        assert!(super::next(&mut &said[..], 6).is_err(), "a byte too long");
    }
}
