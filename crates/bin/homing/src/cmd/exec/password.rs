//! `-O password_prompt=yes`: a password that each command gets as the first line of its input.

use homing_model::Failure;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};

/// The letter of Ctrl-C.
const INTERRUPT: u8 = 3;

/// Reads a password on the terminal, which does not show it, or as the first line of standard input if there is no
/// terminal. Returns the line with its end.
pub fn read_password() -> Result<Vec<u8>, Failure> {
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/tty");
    let read = terminal.map_or_else(|_| line(&mut io::stdin().lock()), |terminal| hidden(&terminal));
    read.map_err(|e| {
        Failure::usage(format!("-O password_prompt=yes: cannot read a password: {e}"))
            .hint("run it on a terminal, or pass the password as the first line of standard input")
    })
}

/// Reads one line and no byte behind it.
fn line(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    // Letter by letter: the bytes behind the line are for others.
    while from.read(&mut byte)? > 0 {
        line.push(byte[0]);
        if matches!(byte[0], b'\n' | INTERRUPT) {
            break;
        }
    }
    match line.last() {
        Some(b'\n') => Ok(line),
        Some(&INTERRUPT) => Err(io::Error::other("Ctrl-C")),
        _ => Err(io::Error::other("the line has no end")),
    }
}

/// Reads a line while the terminal shows none of it.
fn hidden(terminal: &File) -> io::Result<Vec<u8>> {
    let before = tcgetattr(terminal)?;
    let mut without = before.clone();
    // A signal would end homing before the terminal shows letters again: Ctrl-C ends the line instead.
    without.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
    without.special_codes[SpecialCodeIndex::VEOL] = INTERRUPT;
    without.local_modes.insert(LocalModes::ECHONL);
    tcsetattr(terminal, OptionalActions::Flush, &without)?;
    let read = (&*terminal).write_all(b"Password: ").and_then(|()| line(&mut &*terminal));
    tcsetattr(terminal, OptionalActions::Flush, &before)?;
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_one_line_and_the_rest_stays() {
        let mut input: &[u8] = b"secret\nfirst\n";
        assert_eq!(line(&mut input).unwrap(), b"secret\n");
        assert_eq!(input, b"first\n");
        for wrong in [&b""[..], b"abc", b"ab\x03"] {
            assert!(line(&mut &*wrong).is_err());
        }
    }
}
