//! Volumes of file systems that span hosts: made, grown, shrunk and deleted.
//!
//! A specification ([`Spec`]) and the facts of hosts ([`Observed`]) make a [`VolumePlan`]: commands for each host, in
//! phases. Each command has a reason and a command that undoes it. Planning does no input or output. [`execute`]
//! carries a plan out and keeps a [`VolumeRecord`] of the begun phases: the next call finishes or undoes an interrupted
//! one. Everything that the plans need can be read from the hosts again: with a lost record only the undo is lost.
//!
//! Two changes of one volume at once are refused, but only on one machine and by one user: the lock is beside the
//! record.
//!
//! It does not: find the bytes of a file (`locate`), or copy the files of a volume.

pub mod adopt;
mod change;
mod changes;
mod drive;
pub mod execute;
mod export;
pub mod gluster;
pub mod gluster_xml;
pub mod health;
pub mod lustre;
mod metrics;
pub mod moosefs;
mod mount;
pub mod mounts;
mod needs;
pub mod nfs;
pub mod observe;
pub mod progress;
mod record;
mod refuse;
mod spec;
mod status;
mod step;
mod watch;

pub use change::VolumeChange;
pub use drive::{Drive, Manner, PlanResult};
pub use export::{ExportOptions, Squash};
pub use metrics::prometheus;
pub use observe::{HostFacts, Observed, may_be};
pub use record::{VolumeRecord, folder, holders};
pub use refuse::{Danger, Refusal};
pub use spec::{OptionChanges, Spec, SpecError, StorageFolder, VolumeKind, check_path, read_option};
pub use status::{
    ChangedOption, Figures, HostFault, HostFaultKind, OnHost, foreign_mount_look, host_faults, stores, tasks,
};
pub use step::{CommandPhase, CommandStep, DataMovement, MadeBeside, Then, VolumePlan, shown};

/// Returns the units that a host of the volume has to run, and that do not run there.
pub(crate) fn stopped_units(spec: &Spec, host: &str, facts: &HostFacts) -> Vec<&'static str> {
    units(spec, host).into_iter().filter(|unit| !facts.active.contains(*unit)).collect()
}

/// Returns the units that a host of the volume has to run.
pub fn units(spec: &Spec, host: &str) -> Vec<&'static str> {
    let serves = spec.places.iter().any(|p| p.host == host);
    let mut units = Vec::new();
    match spec.kind {
        VolumeKind::Gluster if serves => units.push("glusterd"),
        VolumeKind::Nfs if serves => units.push("nfs-server"),
        VolumeKind::Moosefs => {
            units.extend((spec.master() == host).then_some("moosefs-master"));
            units.extend(serves.then_some("moosefs-chunkserver"));
        }
        _ => {}
    }
    units
}
