//! Makes a cluster of hosts that have ssh, area by area. It compares the cluster file with the observed state of all
//! hosts, and plans the steps of each host. It does no input or output.
//!
//! Main types: [`Up`] is the section of the cluster file, [`ClusterSite`] adds hosts and volumes. Each [`Area`]
//! queries and plans. [`set_up()`] repeats query, plan and act until nothing is
//! left to do.
//!
//! It does not: run a command on a host (`steps`), make volumes (`volume`), or prompt the user: callers of [`set_up()`]
//! do these as [`SetupEffects`].

pub mod areas;
pub mod cache;
mod disks;
mod families;
mod host_based;
mod leave;
mod login_limit;
mod plan;
mod record;
mod remains;
mod rounds;
mod site;
mod template;
mod texts;
mod undoing;
mod values;
mod volumes;

pub use areas::Area;
pub use areas::homes::homes_mark;
pub use areas::slurm::{BlockingJobs, drain, held, proof, unfit};
pub use areas::volumes::lacking;
pub use disks::DiskSection;
pub use host_based::{HOST_BASED, failed_login, host_based_faults};
pub use plan::question;
pub use record::SetupRecord;
pub use remains::{remains, remains_question};
pub use rounds::{HostFailures, RoundPlan, SetupEffects, SetupOutcome, set_up, set_up_plan};
pub use site::{AllSeen, ClusterSite, GroupSection, MountSection, Slurm, SshWay, Up, UserSection};
pub use template::expand;
pub use undoing::{mounts_end, parts};
pub use volumes::{Homes, SiteVolume, VolumeSection};
