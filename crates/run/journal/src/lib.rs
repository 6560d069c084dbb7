//! The journal of a run: one folder, one file of JSON lines, one writer.
//!
//! Resume, report and every list of runs read the journal; there is no other record of a run. It is a plain file
//! rather than a database, because cluster homes lie on network file systems. There, shared memory maps and the locks
//! of SQLite lose data. The file can be read with `less` and `jq`, and followed with `tail -f`. A cut at any byte
//! costs the torn last line and no more.
//!
//! Main types: [`Journal`] appends, [`Replay`] reads, [`RunInfo`] is a line of the list of runs.
//!
//! It does not: interpret events (`report`, `account`), or decide which tasks run again (`dispatch`).

mod counts;
mod environment;
mod error;
mod holder;
mod jobs;
mod kept;
pub mod lessons;
mod list;
mod lock;
mod name;
mod order;
mod prune;
mod ran;
mod read;
mod seal;
mod unbegun;
mod write;

pub use counts::{Counts, RunCounts};
pub use environment::differing;
pub use error::JournalError;
pub use holder::{Holder, Life};
pub use jobs::{note_job, runs_of_job, single_live};
pub use kept::{EarlierInput, Keeping, forget, kept};
pub use list::{RunInfo, RunState, find, find_reported, is_interrupted, is_own_name, labelled, live, names, runs};
pub use name::{root, root_note};
pub use prune::{PRUNED, Pruned, clock_doubt, prune};
pub use ran::ran;
pub use read::{Replay, replay};
pub use unbegun::Unbegun;
pub use write::Journal;

use std::time::Duration;

/// Version of the records, `v` of `run_started`. Added fields and kinds do not raise it.
pub const FORMAT: u32 = 1;

/// The interval at which a follower of a journal reads it: people notice no shorter one. A writer without another
/// reason to write also writes at this interval.
pub const FOLLOWED_EVERY: Duration = Duration::from_millis(500);

/// The journal's file in the folder of a run.
pub const FILE: &str = "journal.jsonl";
