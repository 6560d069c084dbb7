//! The nouns that all crates share: hosts, layouts, tasks, outcomes and the events of a run. No I/O and no clock: times
//! are arguments. A record has nanoseconds since the Unix epoch (`i64`), a duration is in microseconds.
//!
//! Main types: [`Task`] and [`Outcome`], [`FileLayout`], [`event::Event`], [`NodeSet`], and [`Failure`], the error
//! that a user reads.
//!
//! | module | has |
//! |---|---|
//! | [`task`], [`graph`], [`resource`] | tasks and outcomes, which task waits for which, amounts of `gpu`. |
//! | [`event`], [`live`] | records of the journal, data for programs that watch a run. |
//! | [`exit`], [`failure`], [`signal`] | exit statuses, the error with its status, names of signals. |
//! | [`text`] | bytes that are nearly always text, quoted for a shell or made printable. |
//! | [`shell`] | functions of POSIX shell for scripts on hosts (`sh_own`, `sh_fresh`, `sh_digits`). |
//! | [`fit`], [`units`], [`alike`] | tables, sizes and times for people, equal messages of hosts merged. |
//! | [`document`], [`metrics`] | JSON documents, metrics for Prometheus. |
//! | [`hostname`], [`nodeset`] | whether two names mean one host (this machine: `os::names`), sets of names. |
//! | [`host`], [`energy`], [`links`] | facts and samples of hosts, their energy, the switches between them. |
//! | [`layout`], [`change`] | where the bytes of a file are, changes that a command made. |
//! | [`container`], [`folders`], [`rsync`] | programs that run containers, rules on paths, versions of rsync. |
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
