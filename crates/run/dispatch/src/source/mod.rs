//! What a run takes from this machine: its input sources, kept in its folder as they are read; what each task reads, where
//! that lies, and whether the task has to run at all; the environment that travels with tasks; the job log.

pub mod environment;
mod inputs;
pub mod joblog;
pub mod leases;
mod nonce;
mod reading;
mod results;
mod stream;

pub use inputs::{Inputs, KeptInputs, status_of};
pub use nonce::Nonces;
pub use reading::{Source, Sourcing};
pub use results::results_files;
