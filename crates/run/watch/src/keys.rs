//! Carries out keys.

use crate::Scene;
use crate::view::{HostOrder, Pane, Shown, TaskOrder, WatchView};
use homing_model::TaskId;

/// The rows of a page, for any size of the screen.
const PAGE: isize = 10;

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPress {
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
pub enum ViewRequest {
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

impl WatchView {
    /// Carries out a key, and returns the request that the caller must fulfil.
    pub fn press(&mut self, key: KeyPress, scene: &Scene) -> Option<ViewRequest> {
        self.message.clear();
        if key == KeyPress::Interrupt {
            return Some(ViewRequest::Leave);
        }
        match std::mem::replace(&mut self.shown, Shown::All) {
            Shown::Filter => self.type_filter(key),
            Shown::Question(task) => return matches!(key, KeyPress::Char('y' | 'Y')).then_some(ViewRequest::End(task)),
            Shown::Help => {}
            Shown::Output { task, text, back } => self.read(key, task, text, back),
            Shown::All => return self.choose(key, scene),
        }
        None
    }

    fn choose(&mut self, key: KeyPress, scene: &Scene) -> Option<ViewRequest> {
        match key {
            KeyPress::Char('q') => return Some(ViewRequest::Leave),
            KeyPress::Escape if self.filter.is_empty() => return Some(ViewRequest::Leave),
            KeyPress::Escape => self.filter.clear(),
            KeyPress::Char(' ') => return Some(ViewRequest::Pause),
            KeyPress::Char('+') => return Some(ViewRequest::Faster),
            KeyPress::Char('-') => return Some(ViewRequest::Slower),
            KeyPress::Char('?' | 'h') => self.shown = Shown::Help,
            KeyPress::Char('/') => self.shown = Shown::Filter,
            KeyPress::Char('f') => self.fold = Some(!self.folds(scene)),
            KeyPress::Char('s') => self.sort(),
            KeyPress::Tab => self.pane = if self.pane == Pane::Hosts { Pane::Tasks } else { Pane::Hosts },
            KeyPress::Enter | KeyPress::Char('o') => return self.meant(scene).map(ViewRequest::Output),
            KeyPress::Char('k') => self.shown = self.meant(scene).map_or(Shown::All, Shown::Question),
            KeyPress::Up => self.go(-1),
            KeyPress::Down => self.go(1),
            KeyPress::PageUp => self.go(-PAGE),
            KeyPress::PageDown => self.go(PAGE),
            KeyPress::Home => self.go(isize::MIN),
            KeyPress::End => self.go(isize::MAX),
            _ => {}
        }
        None
    }

    /// Returns the marked task if the user can act on it. Otherwise sets the text of the last line to the reason.
    fn meant(&mut self, scene: &Scene) -> Option<TaskId> {
        if !scene.is_live {
            self.message = "the run is over, or another user's: it takes no requests".into();
            return None;
        }
        let task = self.tasks(scene).get(self.at(Pane::Tasks)).map(|task| task.id);
        if task.is_none() {
            self.message = "no task is running".into();
        }
        task
    }

    fn sort(&mut self) {
        match self.pane {
            Pane::Hosts => self.host_order = HostOrder::after(self.host_order),
            Pane::Tasks => self.task_order = TaskOrder::after(self.task_order),
        }
    }

    fn type_filter(&mut self, key: KeyPress) {
        match key {
            KeyPress::Char(c) => self.filter.push(c),
            KeyPress::Back => drop(self.filter.pop()),
            KeyPress::Escape => return self.filter.clear(),
            KeyPress::Enter => return,
            _ => {}
        }
        self.shown = Shown::Filter;
    }

    /// Scrolls in the output of a task. At first its end is shown.
    fn read(&mut self, key: KeyPress, task: TaskId, text: String, back: usize) {
        let page = PAGE as usize;
        let back = match key {
            KeyPress::Up => back + 1,
            KeyPress::Down => back.saturating_sub(1),
            KeyPress::PageUp => back + page,
            KeyPress::PageDown => back.saturating_sub(page),
            KeyPress::Home => text.lines().count(),
            KeyPress::End => 0,
            _ => return,
        };
        self.shown = Shown::Output { task, back: back.min(text.lines().count()), text };
    }
}
