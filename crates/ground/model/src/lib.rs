//! The nouns that all crates share: hosts, layouts, tasks, outcomes and the events of a run. No I/O and no clock: times
//! are arguments. A record has nanoseconds since the Unix epoch (`i64`), a duration is in microseconds.
//!
//! Main types: [`Task`] and [`Outcome`], [`FileLayout`], [`event::Event`], [`NodeSet`], and [`Failure`], the error
//! that a user reads. [`graph`] orders tasks that wait for each other, [`shell`] quotes words for scripts, [`units`]
//! prints sizes.
//!
//! It does not: open files, start processes, or decide where a task runs (`place`).

pub mod alike;
pub mod change;
pub mod container;
pub mod document;
pub mod energy;
pub mod event;
pub mod exit;
pub mod failure;
pub mod fit;
pub mod folders;
pub mod graph;
pub mod host;
pub mod hostname;
pub mod layout;
pub mod links;
pub mod live;
pub mod metrics;
pub mod nodeset;
pub mod resource;
pub mod rsync;
pub mod shell;
pub mod signal;
pub mod task;
pub mod text;
pub mod units;

pub use change::{FileChange, FileStamp};
pub use energy::{Energy, MeteredBy};
pub use event::Event;
pub use failure::Failure;
pub use host::{Ahead, HostFacts, HostSample, Indices, Mount, Mover, ServerTraffic, StorageSample};
pub use layout::{Extent, FileLayout, Replica};
pub use links::ClusterLinks;
pub use live::Live;
pub use nodeset::NodeSet;
pub use task::{Block, Command, IoCounters, IoWait, Outcome, Task, TaskId, WAIT_ASKED_FROM_US};
pub use text::RawText;
