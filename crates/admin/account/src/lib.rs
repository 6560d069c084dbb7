//! Accounts of runs and jobs.
//!
//! | module | does |
//! |---|---|
//! | [`usage`] | adds up the resources that runs and jobs used, and their cost, by user, project, command or host. |
//! | [`advise`] | predicts the effect of another layout of the files that tasks read; pure. |
//!
//! It reads journals and records of jobs. It does not measure (`probe`, `worker`) or draw (`report`).

pub mod advise;
pub mod usage;
