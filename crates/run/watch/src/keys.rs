//! Carries out keys.

use crate::Scene;
use crate::view::{HostOrder, Pane, Shown, TaskOrder, View};
use homing_model::TaskId;

/// The rows of a page, for any size of the screen.
const PAGE: isize = 10;

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Return.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Back,
    /// Tab.
    Tab,
    /// An arrow up.
    Up,
    /// An arrow down.
    Down,
    /// A page up.
    PageUp,
    /// A page down.
    PageDown,
    /// To the first row.
    Home,
    /// To the last row.
    End,
    /// Ctrl-C.
    Interrupt,
}

/// A request of the user that the view alone cannot fulfil.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Leave the program.
    Leave,
    /// Pause or continue the replay.
    Pause,
    /// Double the speed.
    Faster,
    /// Halve the speed.
    Slower,
    /// Show the output of a task.
    Output(TaskId),
    /// End a task. The user has confirmed it.
    End(TaskId),
}

impl View {
    /// Carries out a key, and returns the request that the caller must fulfil.
    pub fn press(&mut self, key: Key, scene: &Scene) -> Option<Wish> {
        self.told.clear();
        if key == Key::Interrupt {
            return Some(Wish::Leave);
        }
        match std::mem::replace(&mut self.shown, Shown::All) {
            Shown::Filter => self.type_filter(key),
            Shown::Question(task) => return matches!(key, Key::Char('y' | 'Y')).then_some(Wish::End(task)),
            Shown::Help => {}
            Shown::Output { task, text, back } => self.read(key, task, text, back),
            Shown::All => return self.choose(key, scene),
        }
        None
    }

    fn choose(&mut self, key: Key, scene: &Scene) -> Option<Wish> {
        match key {
            Key::Char('q') => return Some(Wish::Leave),
            Key::Escape if self.filter.is_empty() => return Some(Wish::Leave),
            Key::Escape => self.filter.clear(),
            Key::Char(' ') => return Some(Wish::Pause),
            Key::Char('+') => return Some(Wish::Faster),
            Key::Char('-') => return Some(Wish::Slower),
            Key::Char('?' | 'h') => self.shown = Shown::Help,
            Key::Char('/') => self.shown = Shown::Filter,
            Key::Char('f') => self.fold = Some(!self.folds(scene)),
            Key::Char('s') => self.sort(),
            Key::Tab => self.pane = if self.pane == Pane::Hosts { Pane::Tasks } else { Pane::Hosts },
            Key::Enter | Key::Char('o') => return self.meant(scene).map(Wish::Output),
            Key::Char('k') => self.shown = self.meant(scene).map_or(Shown::All, Shown::Question),
            Key::Up => self.go(-1),
            Key::Down => self.go(1),
            Key::PageUp => self.go(-PAGE),
            Key::PageDown => self.go(PAGE),
            Key::Home => self.go(isize::MIN),
            Key::End => self.go(isize::MAX),
            _ => {}
        }
        None
    }

    /// Returns the marked task if the user can act on it. Otherwise sets the text of the last line to the reason.
    fn meant(&mut self, scene: &Scene) -> Option<TaskId> {
        if !scene.is_live {
            self.told = "this is over, or was begun by another: nothing can be asked for".into();
            return None;
        }
        let task = self.tasks(scene).get(self.at(Pane::Tasks)).map(|task| task.id);
        if task.is_none() {
            self.told = "no task is under way".into();
        }
        task
    }

    fn sort(&mut self) {
        match self.pane {
            Pane::Hosts => self.host_order = HostOrder::after(self.host_order),
            Pane::Tasks => self.task_order = TaskOrder::after(self.task_order),
        }
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Char(c) => self.filter.push(c),
            Key::Back => drop(self.filter.pop()),
            Key::Escape => return self.filter.clear(),
            Key::Enter => return,
            _ => {}
        }
        self.shown = Shown::Filter;
    }

    /// Scrolls in the output of a task. At first its end is shown.
    fn read(&mut self, key: Key, task: TaskId, text: String, back: usize) {
        let page = PAGE as usize;
        let back = match key {
            Key::Up => back + 1,
            Key::Down => back.saturating_sub(1),
            Key::PageUp => back + page,
            Key::PageDown => back.saturating_sub(page),
            Key::Home => text.lines().count(),
            Key::End => 0,
            _ => return,
        };
        self.shown = Shown::Output { task, back: back.min(text.lines().count()), text };
    }
}
