//! The terminal on which tasks print and homing draws one line of progress. All writes pass through here, so that
//! output and progress never share a line.

use std::cell::Cell;
use std::io::{self, Write};
use std::os::fd::BorrowedFd;
use std::rc::Rc;

/// The state of the last line of the terminal.
#[derive(Debug, Default)]
pub struct Terminal {
    drawn: Cell<bool>,
    unended: Cell<bool>,
}

impl Terminal {
    /// Draws the line of progress in the place of the one before. An unfinished line of a task stays as it is: no
    /// progress is drawn before it ends.
    pub fn draw(&self, line: &str) {
        if !self.unended.get() {
            write(&format!("\r\x1b[K{line}"));
            self.drawn.set(true);
        }
    }

    /// Removes the line of progress.
    pub fn clear(&self) {
        if self.drawn.take() {
            write("\r\x1b[K");
        }
    }

    /// Prepares the terminal for a line of homing's own.
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

/// Writes in one call, because half a control sequence would be visible. Errors of a vanished terminal are ignored.
fn write(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// A standard stream for the output of tasks. The standard library takes a write to a closed stream for a success:
/// output would be lost, and the run would look fine.
pub(crate) struct OutputTerminal {
    to: BorrowedFd<'static>,
    terminal: Option<Rc<Terminal>>,
}

impl OutputTerminal {
    pub(crate) fn new(to: BorrowedFd<'static>, terminal: &Rc<Terminal>) -> OutputTerminal {
        OutputTerminal { to, terminal: rustix::termios::isatty(to).then(|| terminal.clone()) }
    }
}

impl Write for OutputTerminal {
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
