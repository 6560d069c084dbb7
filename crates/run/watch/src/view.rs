//! The choices of the user: pane, order, filter.

use crate::{Scene, hosts};
use homing_model::TaskId;
use homing_report::{HostState, TaskState};
use ratatui::widgets::TableState;
use std::cmp::Reverse;

/// Up to so many hosts have a row each, unless the user wants it otherwise. With as many tasks they fill a screen.
const FOLDED_FROM: usize = 20;

/// The pane with the marked row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pane {
    Hosts,
    #[default]
    Tasks,
}

/// The order of the hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HostOrder {
    /// Hosts in trouble first, then hosts with the most running tasks.
    #[default]
    Busy,
    Name,
    Cpu,
    Stalled,
    Net,
}

impl HostOrder {
    pub fn after(self) -> HostOrder {
        match self {
            HostOrder::Busy => HostOrder::Name,
            HostOrder::Name => HostOrder::Cpu,
            HostOrder::Cpu => HostOrder::Stalled,
            HostOrder::Stalled => HostOrder::Net,
            HostOrder::Net => HostOrder::Busy,
        }
    }
}

/// The order of the tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TaskOrder {
    /// Tasks that run longest first.
    #[default]
    Age,
    Moved,
    Host,
    Number,
}

impl TaskOrder {
    pub fn after(self) -> TaskOrder {
        match self {
            TaskOrder::Age => TaskOrder::Moved,
            TaskOrder::Moved => TaskOrder::Host,
            TaskOrder::Host => TaskOrder::Number,
            TaskOrder::Number => TaskOrder::Age,
        }
    }
}

/// The content of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Shown {
    /// Hosts, tasks and the small tables between them.
    #[default]
    All,
    /// The help on keys.
    Help,
    /// The prompt for a filter.
    Filter,
    /// The question whether to end this task.
    Question(TaskId),
    /// The output of a task.
    Output {
        /// The task.
        task: TaskId,
        /// The end of the output.
        text: String,
        /// The lines below the last shown line.
        back: usize,
    },
}

/// The choices of the user.
#[derive(Clone, Debug, Default)]
pub struct WatchView {
    /// The content of the screen.
    pub shown: Shown,
    /// The message in the last line, until the next key.
    pub message: String,
    /// Whether colours may be used.
    pub colors: bool,
    pub(crate) pane: Pane,
    pub(crate) host_order: HostOrder,
    pub(crate) task_order: TaskOrder,
    pub(crate) filter: String,
    pub(crate) fold: Option<bool>,
    pub(crate) host_table: TableState,
    pub(crate) task_table: TableState,
}

impl WatchView {
    /// Makes the view at the start, with or without colours.
    pub fn new(colors: bool) -> WatchView {
        WatchView { colors, ..WatchView::default() }
    }

    /// Returns the same view with a marked row of the hosts, for scenes without tasks.
    pub fn on_hosts(self) -> WatchView {
        WatchView { pane: Pane::Hosts, ..self }
    }

    /// Shows output of a task that has arrived.
    pub fn output(&mut self, task: TaskId, text: String) {
        let back = match self.shown {
            Shown::Output { task: known, back, .. } if known == task => back,
            _ => 0,
        };
        self.shown = Shown::Output { task, text, back };
    }

    pub(crate) fn folds(&self, scene: &Scene) -> bool {
        self.fold.unwrap_or(scene.hosts.len() > FOLDED_FROM)
    }

    fn fits(&self, words: [&str; 3]) -> bool {
        let wanted = self.filter.to_lowercase();
        wanted.is_empty() || words.iter().any(|word| word.to_lowercase().contains(&wanted))
    }

    /// Returns the hosts that are shown, in their order.
    pub(crate) fn hosts(&self, scene: &Scene) -> Vec<HostState> {
        let fits = |host: &&HostState| self.fits([&host.name, host.trouble.as_deref().unwrap_or(""), ""]);
        // If no host fits the filter, it names a command, and all hosts are shown.
        let chosen: Vec<HostState> = scene.hosts.iter().filter(fits).cloned().collect();
        let chosen = if chosen.is_empty() { scene.hosts.clone() } else { chosen };
        let mut hosts = if self.folds(scene) { hosts::folded(&chosen) } else { chosen };
        let most = |value: Option<f64>| Reverse((value.unwrap_or(-1.0) * 1e3) as i64);
        match self.host_order {
            HostOrder::Busy => hosts.sort_by_key(HostState::rank),
            HostOrder::Name => {}
            HostOrder::Cpu => hosts.sort_by_key(|host| most(host.cpu)),
            HostOrder::Stalled => hosts.sort_by_key(|host| most(host.stalled)),
            HostOrder::Net => hosts.sort_by_key(|host| most(host.net)),
        }
        hosts
    }

    /// Returns the tasks that are shown, in their order.
    pub(crate) fn tasks<'a>(&self, scene: &'a Scene) -> Vec<&'a TaskState> {
        let fits = |task: &&TaskState| self.fits([&task.name, &task.host, &task.command]);
        let mut tasks: Vec<&TaskState> = scene.tasks.iter().filter(fits).collect();
        match self.task_order {
            TaskOrder::Age => tasks.sort_by_key(|task| Reverse(task.age)),
            TaskOrder::Moved => tasks.sort_by_key(|task| Reverse(task.moved)),
            TaskOrder::Host => tasks.sort_by(|a, b| a.host.cmp(&b.host)),
            TaskOrder::Number => tasks.sort_by_key(|task| task.id),
        }
        tasks
    }

    pub(crate) fn table(&mut self, pane: Pane) -> &mut TableState {
        match pane {
            Pane::Hosts => &mut self.host_table,
            Pane::Tasks => &mut self.task_table,
        }
    }

    /// Returns the marked row.
    pub(crate) fn at(&self, pane: Pane) -> usize {
        let table = if pane == Pane::Hosts { &self.host_table } else { &self.task_table };
        table.selected().unwrap_or(0)
    }

    /// Marks another row. Drawing limits it to the existing rows.
    pub(crate) fn go(&mut self, by: isize) {
        let pane = self.pane;
        let at = self.at(pane).saturating_add_signed(by);
        self.table(pane).select(Some(at));
    }
}
