//! Output as it comes, cut into lines with the host in front.

use crate::gathered::{Style, print_line};
use std::collections::HashMap;
use std::io::{self, Write};

/// Size, bytes, of the pieces in which a line without an end is printed.
const LONGEST: usize = 1 << 20;

/// Unfinished lines of all hosts on one of the two outputs.
#[derive(Default)]
pub struct PendingLines {
    begun: HashMap<usize, Vec<u8>>,
}

impl PendingLines {
    /// Adds bytes and prints the lines that are whole.
    pub fn push(&mut self, host: usize, name: &str, bytes: &[u8], style: Style, to: &mut dyn Write) -> io::Result<()> {
        let begun = self.begun.entry(host).or_default();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            begun.extend(&rest[..end]);
            print_line(name, begun, style, to)?;
            begun.clear();
            rest = &rest[end + 1..];
        }
        begun.extend(rest);
        if begun.len() > LONGEST {
            print_line(name, begun, style, to)?;
            begun.clear();
        }
        Ok(())
    }

    /// Prints a last line that has no end.
    pub fn finish(&mut self, host: usize, name: &str, style: Style, to: &mut dyn Write) -> io::Result<()> {
        match self.begun.remove(&host) {
            Some(line) if !line.is_empty() => print_line(name, &line, style, to),
            _ => Ok(()),
        }
    }
}
