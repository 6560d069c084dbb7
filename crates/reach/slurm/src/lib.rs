//! Slurm's interface: the nodes that exist, the request for a worker, the allocation of this process, and the end of
//! a job.
//!
//! This crate parses the text formats of Slurm's commands, with chosen columns. They have kept their meaning since
//! Slurm 14, while the JSON changes its shape with every release. All is pure but the module that runs the commands.
//!
//! Main types: [`Allocation`], [`WorkerRequest`], [`Seat`] (the slots of one worker), [`License`], [`SlurmEnd`] of a
//! job.
//!
//! It does not: submit jobs of the queue (`queue`), or set Slurm up (`setup`).

mod account;
mod allocation;
pub mod ask;
mod choose;
mod fate;
mod license;
mod nodes;
mod request;
mod topology;

pub use account::{Booked, SACCT_FORMAT, booked};
pub use allocation::Allocation;
pub use choose::{NodeChoice, NodeWishes, Seat, choose};
pub use fate::{JobState, SlurmEnd, fate, is_passing, job_state, queued_job};
pub use license::{License, is_license, parse_licenses, taken};
pub use nodes::{SINFO_FORMAT, SlurmNode, parse_nodes};
pub use request::{WorkerRequest, advice, gres, job_name};
pub use topology::parse_topology;
