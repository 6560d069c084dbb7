//! A plan, and the hosts that it is made for.

use crate::{HostIx, Reason};
use homing_model::TaskId;
use homing_model::links::SwitchIx;

/// A host in the simulation.
#[derive(Clone, Debug)]
pub struct HostModel {
    /// Number of tasks at once.
    pub slots: u32,
    /// Rate of its link, bytes per second; `None` means the default of the parameters.
    pub nic_bytes_per_s: Option<u64>,
    /// How much longer its own tasks take for each task that fetches from it, as a share; 0 if unknown.
    pub serving: f64,
    /// The switch that it is on, in the links of the parameters.
    pub switch: Option<SwitchIx>,
}

/// One task of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The task.
    pub task: TaskId,
    /// The host where it would run.
    pub host: HostIx,
    /// The reason why it would run there.
    pub why: Reason,
    /// Bytes of its inputs there.
    pub local: u64,
    /// Bytes that it would fetch.
    pub remote: u64,
    /// Simulated start, microseconds from the start of the batch.
    pub start_us: u64,
    /// Simulated end, microseconds from the start of the batch.
    pub end_us: u64,
}
