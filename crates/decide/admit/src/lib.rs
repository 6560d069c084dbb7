//! Decides how many tasks may use one storage server at once.
//!
//! Pure: the measurements of a host and the tasks of the run there go in; a limit comes out. Pressure shows whether
//! tasks wait for storage. Only then does the limit matter. It is sought by throughput: the bytes that the storage
//! moved, without those moved again because the page cache could not keep them. It is the throughput of the whole
//! storage, not of this run. Two runs that share a disk therefore have one aim, and neither gains by crowding the
//! other out.
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
