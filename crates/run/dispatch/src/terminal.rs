//! The terminal on which tasks print and homing draws one line of progress: what is written to it goes
//! through here, so that neither gets into the other's line.

use std::cell::Cell;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::rc::Rc;

/// What stands on the last line of the terminal.
#[derive(Debug, Default)]
pub struct Terminal {
    drawn: Cell<bool>,
    unended: Cell<bool>,
}

impl Terminal {
    /// Draws the line of progress in the place of the one before. A line that a task has printed
    /// without an end stays as it is: nothing is drawn before it is ended.
    pub fn draw(&self, line: &str) {
        if !self.unended.get() {
            write(&format!("\r\x1b[K{line}"));
            self.drawn.set(true);
        }
    }

    /// Takes the line of progress away.
    pub fn clear(&self) {
        if self.drawn.take() {
            write("\r\x1b[K");
        }
    }

    /// Makes room for a line of homing's own.
    pub fn begin_line(&self) {
        self.clear();
        if self.unended.take() {
            write("\n");
        }
    }

    fn printed(&self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.unended.set(*last != b'\n');
        }
    }
}

/// In one call: half a control sequence would be shown. A terminal that is gone misses nothing.
fn write(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// A standard stream for what tasks print, without the standard library's kindness of taking a closed
/// one for a success: what tasks printed would be lost, and the run look fine.
pub(crate) struct Stream {
    to: BorrowedFd<'static>,
    terminal: Option<Rc<Terminal>>,
}

impl Stream {
    pub(crate) fn new(to: BorrowedFd<'static>, terminal: &Rc<Terminal>) -> Stream {
        Stream { to, terminal: rustix::termios::isatty(to).then(|| terminal.clone()) }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(terminal) = &self.terminal {
            terminal.clear();
        }
        let n = rustix::io::write(self.to, bytes)?;
        if let Some(terminal) = &self.terminal {
            terminal.printed(&bytes[..n]);
        }
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
