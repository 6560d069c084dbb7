//! A whole terminal, drawn anew again and again, and its keys.

use crate::progress;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

/// Where a terminal does not tell its size.
const USUAL: (usize, usize) = (24, 80);

/// What a person wants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// `q`, Ctrl-C or Escape.
    Leave,
    /// The space bar.
    Pause,
}

/// A terminal in its other page, with keys as they are pressed. What was there before comes back.
pub struct Screen {
    before: Termios,
    /// It shows more than ASCII.
    pub utf8: bool,
}

impl Screen {
    /// None where keys and screen are no terminal.
    pub fn open() -> io::Result<Option<Screen>> {
        if progress::is_dumb() || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Ok(None);
        }
        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut keys = before.clone();
        // Ctrl-C is a key like the others, so that the terminal is put back before the end.
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &keys)?;
        print(b"\x1b[?1049h\x1b[?25l")?;
        Ok(Some(Screen { before, utf8: progress::locale_is_utf8() }))
    }

    /// Lines and columns that are free.
    pub fn size(&self) -> (usize, usize) {
        let size =
            tcgetwinsize(rustix::stdio::stdout()).map(|size| (usize::from(size.ws_row), usize::from(size.ws_col)));
        let (rows, columns) = size.ok().filter(|(rows, columns)| *rows > 1 && *columns > 1).unwrap_or(USUAL);
        (rows - 1, columns - 1)
    }

    /// All lines at once, so that nothing flickers; the hint in the last one.
    pub fn draw(&self, lines: &[String], hint: &str) -> io::Result<()> {
        let (rows, columns) = self.size();
        let mut text = String::from("\x1b[H");
        for line in lines.iter().take(rows) {
            text.push_str(line);
            text.push_str("\x1b[K\r\n");
        }
        let hint: String = hint.chars().take(columns).collect();
        text.push_str(&format!("\x1b[J\x1b[{};1H{hint}", rows + 1));
        print(text.as_bytes())
    }

    /// The next key that means something, for at most so long.
    pub fn key(&self, longest: Duration) -> io::Result<Option<Key>> {
        let stdin = rustix::stdio::stdin();
        let wait = Timespec { tv_sec: longest.as_secs() as i64, tv_nsec: i64::from(longest.subsec_nanos()) };
        match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&wait)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
            other => other?,
        };
        let mut pressed = [0; 16];
        let read = rustix::io::read(stdin, &mut pressed)?;
        Ok(match pressed[..read].first() {
            // The terminal is gone.
            None => Some(Key::Leave),
            Some(b'q' | 3) => Some(Key::Leave),
            // Arrows and the like begin with an escape, too.
            Some(27) if read == 1 => Some(Key::Leave),
            Some(b' ') => Some(Key::Pause),
            Some(_) => None,
        })
    }
}

/// Puts the terminal back, also where an error leaves early; what follows stands behind what was there before.
impl Drop for Screen {
    fn drop(&mut self) {
        // There is nobody to tell where it is gone.
        let _ = print(b"\x1b[?25h\x1b[?1049l");
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &self.before);
    }
}

fn print(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}
