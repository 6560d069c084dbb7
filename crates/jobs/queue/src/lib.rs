//! Detached jobs, kept by an [`Engine`]: the [`Embedded`] queue of this machine, which needs no server, or [`Slurm`].
//!
//! In the embedded queue, a job is a folder in a spool that all users of the machine share. Each user has at most one
//! *runner*. A submitting command starts it, and it ends when nothing is left to do. Each running job has a *keeper*
//! that holds its slots, waits for it and records its end. A job for another host is also a job of the queue there
//! ([`far`]). The state of a job follows from files and from locks, which the kernel releases when their holder dies.
//! Thus a killed process leaves no wrong state behind. `docs/formats.md` has the layout.
//!
//! A job whose keeper was killed, or whose machine restarted, is [`ElementState::Lost`]. It is not run again by
//! itself, and the user's next runner kills the processes that it left. The glossary calls a keeper the supervisor of
//! its job.
//!
//! The alternative was one runner for all users; it would need root, and be a daemon. [`plan`], [`state`], [`depend`]
//! and [`array`] are pure.
//!
//! It does not: print or parse LSF's tables (`lsf`), choose hosts by their data (`cluster::home`), or run batches
//! (`dispatch`).

mod amend;
pub mod array;
mod bell;
mod cache;
pub mod contract;
pub mod control;
pub mod depend;
mod embedded;
pub mod engine;
mod entry;
mod error;
pub mod far;
mod files;
mod followed;
mod front;
pub mod index;
pub mod job;
mod keeper;
mod load;
mod metrics;
mod neighbours;
pub mod network;
mod orders;
mod pattern;
mod places;
pub mod plan;
mod process;
mod read;
pub mod report;
mod requests;
pub mod require;
mod retry;
mod runner;
mod seats;
pub mod several;
mod slots;
mod slurm;
mod spool;
pub mod state;
mod tender;
pub mod terminal;
mod tree;
mod turn;
mod unit;
mod waiting;
mod words;

pub use amend::Amend;
pub use embedded::Embedded;
pub use engine::{Engine, Machine};
pub use entry::{Job, JobElement};
pub use error::QueueError;
pub use files::{boot_id, host_name, uid, user_name};
pub use followed::{Followed, until_over};
pub use job::{JobEnd, JobSpec, Private, Reads, Share, Start, Storage, Style};
pub use keeper::keep;
pub use load::{INDICES, LoadIndices, all_thresholds, measure, thresholds, watch};
pub use metrics::prometheus;
pub use pattern::pattern_fits;
pub use process::ProcessIdentity;
pub use runner::run as run_queue;
pub use seats::Seats;
pub use slurm::{Joined, Slurm};
pub use spool::JobSpool;
pub use state::ElementState;
pub use tender::Tender;

#[cfg(test)]
#[path = "../../../../tests/until.rs"]
mod until;
