//! How many tasks may use one storage host at once.
//!
//! Pure: what a host measured and what the run has there go in; a limit comes
//! out. Pressure says whether storage is what tasks wait for. Only then does
//! the limit matter, and it is sought by throughput: bytes that the storage
//! moved, less those that it had moved before and the page cache could not
//! keep. It is the storage's whole throughput, not this run's, so that two runs
//! that share a disk have one aim and neither gains by crowding the other out.
//!
//! No task is stopped once it runs: a trial of a number that is too high lasts
//! until those that began with it have ended, and is counted at that price.
//!
//! `docs/admission.md` explains the parts.
//!
//! It does not: count tasks of other users at the same server (`lease`), or hold tasks back itself (`dispatch`).

mod controller;
mod span;
mod tuning;

pub use controller::{Change, Controller, Settings};
pub use span::Load;
pub use tuning::Tuning;
