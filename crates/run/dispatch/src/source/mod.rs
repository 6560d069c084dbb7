//! Feeds a run from this machine. It keeps the input sources in the run's folder as they are read. For each task it
//! finds the files, where they are, and whether the task must run at all. It also provides the environment that
//! travels with tasks, and the job log.

pub mod environment;
mod inputs;
pub mod joblog;
pub mod leases;
mod nonce;
mod reading;
mod results;
mod stream;

pub use inputs::{KeptInputs, RunInputs, status_of};
pub use nonce::Nonces;
pub use reading::{OfferStream, Sourcing};
pub use results::results_files;
