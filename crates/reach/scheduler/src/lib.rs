//! Batch systems that grant workers: the nodes that exist, the request for a worker, the allocation around this process,
//! and the end of a job.
//!
//! [`BatchSystem`] is the interface. Each system has a module with its words and its commands. Their output
//! is parsed by pure functions. Callers know a system by [`System`] only, but for the parts that a single system has.
//!
//! Main types: [`BatchNode`], [`Allocation`], [`WorkerRequest`], [`Seat`] (the slots of one worker), [`BatchEnd`] of a
//! job.
//!
//! It does not: submit jobs of the queue (`queue`), or set a system up (`setup`).

mod allocation;
mod choose;
mod command;
mod known;
mod lsf;
mod node;
mod request;
pub mod slurm;
mod system;

pub use allocation::Allocation;
pub use choose::{NodeChoice, NodeWishes, Seat, choose};
pub use command::{AskError, command};
pub use known::System;
pub use node::BatchNode;
pub use request::{BatchEnd, WorkerRequest, job_name};
pub use system::{BatchSystem, WorkerStart};
