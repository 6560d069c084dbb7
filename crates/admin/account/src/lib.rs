//! Accounts of what was run.
//!
//! | module | does |
//! |---|---|
//! | [`usage`] | adds up what runs and jobs used, and what it cost, by user, project, command or host |
//! | [`advise`] | predicts what another layout of the files that tasks read would bring; pure |
//!
//! It reads journals and records of jobs. It does not measure (`probe`, `worker`) or draw (`report`).

pub mod advise;
pub mod usage;
