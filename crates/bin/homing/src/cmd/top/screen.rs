//! A whole terminal, and its keys. What was there before comes back, also after a panic or a signal.

use crate::progress;
use homing_watch::{Key, Scene, View, Wish, draw};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The terminal while it shows something.
pub struct Screen {
    terminal: DefaultTerminal,
    /// Somebody ends us from outside.
    ends: Arc<AtomicBool>,
    /// It shows more than ASCII.
    pub utf8: bool,
}

/// Interval between two looks for a signal, and the time that an end may take.
const LOOK: Duration = Duration::from_millis(500);
const GRACE: Duration = Duration::from_secs(3);

impl Screen {
    /// None where keys and screen are no terminal.
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

    /// Columns.
    pub fn columns(&self) -> usize {
        self.terminal.size().map_or(80, |size| usize::from(size.width))
    }

    /// Shows it.
    pub fn draw(&mut self, scene: &Scene, view: &mut View) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, scene, view)).map(drop)
    }

    /// What the keys wish that are pressed within this time. Each is answered at once, so that a filter is seen while it
    /// is typed.
    pub fn wish(&mut self, longest: Duration, scene: &Scene, view: &mut View) -> io::Result<Option<Wish>> {
        // Keys that came together are all read at once, and wait here.
        let mut pressed = !is_gone(Duration::ZERO) && is_pressed()?;
        if !pressed {
            if is_gone(longest) || self.ends.load(Ordering::Relaxed) {
                return Ok(Some(Wish::Leave));
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

/// Ends the program a while after a signal that asks for its end. A terminal that goes in the moment in which the library
/// begins to read it is read for ever, past all signals.
fn end_if_deaf(ends: Arc<AtomicBool>) {
    let watch = move || {
        while !ends.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
        std::thread::sleep(GRACE);
        std::process::exit(128 + signal_hook::consts::SIGHUP);
    };
    // Without a thread the moment is as it was.
    let _ = homing_os::threads::begin(watch);
}

/// Waits for keys so long; whether there is no terminal any more. The library reads one that is gone for good, deaf to
/// signals, so it is asked only while there is one.
fn is_gone(longest: Duration) -> bool {
    let stdin = io::stdin();
    let mut keys = [PollFd::new(&stdin, PollFlags::IN)];
    let longest = Timespec::try_from(longest).ok();
    // A signal ends the waiting.
    let _ = poll(&mut keys, longest.as_ref());
    keys[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

fn is_pressed() -> io::Result<bool> {
    match event::poll(Duration::ZERO) {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
        other => other,
    }
}

fn key(pressed: KeyEvent) -> Option<Key> {
    Some(match pressed.code {
        KeyCode::Char('c') if pressed.modifiers.contains(KeyModifiers::CONTROL) => Key::Interrupt,
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Back,
        KeyCode::Tab => Key::Tab,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        _ => return None,
    })
}

impl Drop for Screen {
    fn drop(&mut self) {
        // There is nobody to tell where it is gone.
        let _ = ratatui::try_restore();
    }
}
