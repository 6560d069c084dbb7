//! The results of a run for users: the evidence at its end, and a page that draws it. Both are made from the
//! journal's events alone. This crate connects to no host.
//!
//! Main types: [`Tally`] adds the events of a run up, [`Now`] is its present state, [`Path`] the chain of tasks that
//! took longest. [`RunUsage`] has the resources that a run used, [`ComparedRun`] is one of several runs side by side,
//! and [`Earlier`] has the settled tasks for `resume`. [`chart`] and [`html()`] draw.
//!
//! It does not: find or list runs (`journal`), or add up the use of many (`account`).

mod amplified;
mod change;
pub mod chart;
mod compared;
mod earlier;
mod energy;
mod failures;
mod followed;
mod full;
mod html;
mod load;
#[cfg(test)]
mod made;
mod now;
mod path;
pub mod picture;
pub mod progress;
mod progress_log;
mod replay;
mod tally;
mod text;
mod usage;
mod words;

pub use compared::{ComparedRun, compared_json, compared_text};
pub use earlier::{Earlier, settled};
pub use energy::{HostUsage, Taken, between, two};
pub use failures::{Failures, InputsOfTasks};
pub use followed::Followed;
pub use html::{escape, html};
pub use now::{FailureState, Fetch, HostState, Now, ServerState, TaskState};
pub use path::Path;
pub use progress_log::ProgressLog;
pub use tally::Tally;
pub use text::task_on;
pub use usage::{JobUse, RunUsage, UsageKey, Used, program};
pub use words::{command_line, is_build};
