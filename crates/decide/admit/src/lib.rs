//! Decides how many tasks may use one storage server at once.
//!
//! Pure: the measurements of a host and the tasks of the run there go in; a limit comes out. The limit matters only
//! while tasks wait for storage, which pressure shows. Then the number of tasks with the highest throughput is
//! sought. Throughput is the bytes that the storage moved, without those moved again because the page cache could
//! not keep them. It is that of the whole storage, not of this run. Two runs that share a disk therefore have one
//! aim, and neither gains by crowding the other out.
//!
//! No task is stopped once it runs. A trial of a number that is too high lasts until the tasks that began with it
//! have ended, and counts at that price. Without new measurements the limit stays as it is.
//!
//! `docs/admission.md` explains the parts.
//!
//! It does not: count tasks of other users at the same server (`lease`), or hold tasks back itself (`dispatch`).

mod controller;
mod span;
mod tuning;

pub use controller::{AdmissionSettings, Controller, LimitChange};
pub use span::TaskLoad;
pub use tuning::Tuning;
