//! A whole terminal, and its keys. The earlier content returns at the end, also after a panic or a signal.

use crate::progress;
use homing_watch::{KeyPress, Scene, ViewRequest, WatchView, draw};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The terminal while it shows a scene.
pub struct Screen {
    terminal: DefaultTerminal,
    /// Whether a signal requested the end.
    ends: Arc<AtomicBool>,
    /// Whether the terminal shows more than ASCII.
    pub utf8: bool,
}

/// The interval between two looks for a signal, and the time that an end may take.
const LOOK: Duration = Duration::from_millis(500);
const GRACE: Duration = Duration::from_secs(3);

impl Screen {
    /// Opens the screen. Returns `None` if standard input or output is no terminal.
    pub fn open() -> io::Result<Option<Screen>> {
        if progress::is_dumb() || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
            return Ok(None);
        }
        let ends = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT] {
            signal_hook::flag::register(signal, ends.clone())?;
        }
        end_if_deaf(ends.clone());
        let terminal = ratatui::try_init()?;
        Ok(Some(Screen { terminal, ends, utf8: progress::locale_is_utf8() }))
    }

    /// Returns the columns of the terminal.
    pub fn columns(&self) -> usize {
        self.terminal.size().map_or(80, |size| usize::from(size.width))
    }

    /// Draws a scene.
    pub fn draw(&mut self, scene: &Scene, view: &mut WatchView) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, scene, view)).map(drop)
    }

    /// Returns the wish behind the keys that are pressed within this time. Each key is answered at once, so that a
    /// filter shows while it is typed.
    pub fn wish(&mut self, longest: Duration, scene: &Scene, view: &mut WatchView) -> io::Result<Option<ViewRequest>> {
        // Keys that arrive together are all read at once, and wait here.
        let mut pressed = !is_gone(Duration::ZERO) && is_pressed()?;
        if !pressed {
            if is_gone(longest) || self.ends.load(Ordering::Relaxed) {
                return Ok(Some(ViewRequest::Leave));
            }
            pressed = is_pressed()?;
        }
        if !pressed {
            return Ok(None);
        }
        match event::read()? {
            Event::Key(pressed) if pressed.kind != KeyEventKind::Release => {
                Ok(key(pressed).and_then(|key| view.press(key, scene)))
            }
            _ => Ok(None),
        }
    }
}

/// Ends the program if a signal does not end it within the grace time. If a terminal goes away just when the library
/// begins to read it, the library reads for ever and ignores all signals.
fn end_if_deaf(ends: Arc<AtomicBool>) {
    let watch = move || {
        while !ends.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
        std::thread::sleep(GRACE);
        std::process::exit(128 + signal_hook::consts::SIGHUP);
    };
    // Without a thread, that case stays as it was.
    let _ = homing_os::threads::begin(watch);
}

/// Waits for keys, at most `longest`. Returns whether the terminal is gone. The library reads a lost terminal for
/// ever and ignores signals, so it may read only while there is a terminal.
fn is_gone(longest: Duration) -> bool {
    let stdin = io::stdin();
    let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
    let longest = Timespec::try_from(longest).ok();
    // A signal ends the wait.
    let _ = poll(&mut keys, longest.as_ref());
    keys[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

fn is_pressed() -> io::Result<bool> {
    match event::poll(Duration::ZERO) {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
        other => other,
    }
}

fn key(pressed: KeyEvent) -> Option<KeyPress> {
    Some(match pressed.code {
        KeyCode::Char('c') if pressed.modifiers.contains(KeyModifiers::CONTROL) => KeyPress::Interrupt,
        KeyCode::Char(c) => KeyPress::Char(c),
        KeyCode::Enter => KeyPress::Enter,
        KeyCode::Esc => KeyPress::Escape,
        KeyCode::Backspace => KeyPress::Back,
        KeyCode::Tab => KeyPress::Tab,
        KeyCode::Up => KeyPress::Up,
        KeyCode::Down => KeyPress::Down,
        KeyCode::PageUp => KeyPress::PageUp,
        KeyCode::PageDown => KeyPress::PageDown,
        KeyCode::Home => KeyPress::Home,
        KeyCode::End => KeyPress::End,
        _ => return None,
    })
}

impl Drop for Screen {
    fn drop(&mut self) {
        // If the terminal is gone, there is no place for an error message.
        let _ = ratatui::try_restore();
    }
}
