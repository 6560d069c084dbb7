//! The batch systems that homing knows.

use crate::BatchSystem;
use crate::lsf::LsfSystem;
use crate::slurm::SlurmSystem;

/// A batch system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Slurm.
    Slurm,
    /// IBM LSF, and OpenLava.
    Lsf,
}

impl System {
    /// All of them, in the order in which they are tried.
    pub const ALL: [System; 2] = [System::Slurm, System::Lsf];

    /// Returns its interface.
    pub fn words(self) -> &'static dyn BatchSystem {
        match self {
            System::Slurm => &SlurmSystem,
            System::Lsf => &LsfSystem,
        }
    }
}
