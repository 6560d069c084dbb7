//! How many tasks may use one storage host at once.
//!
//! Pure: what a host measured goes in, with its time; a limit comes out. The
//! host's pressure says whether storage is what tasks wait for. Only then does
//! the limit matter, and it is sought by climbing on what the storage gets
//! done: bytes that it moved, less those that it had moved before and the page
//! cache could not keep, and a little for each task that ended. It is the
//! storage's whole throughput, not this run's, so that two runs that share a
//! disk have one aim and neither gains by crowding the other out.
//!
//! `docs/admission.md` explains the parts.

mod climb;
mod controller;
mod memory;
mod seen;

pub use controller::{Change, Controller, Settings};
pub use seen::Seen;
