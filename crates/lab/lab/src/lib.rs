//! A cluster on one machine. Hosts boot a real systemd and sshd in systemd-nspawn over the machine's own root. They
//! have addresses, shaped links, limited processors and disks of their own. With NFS, hosts are guests with kernels
//! of their own. `homing lab`, tests and benchmarks use it. Needs root.
//!
//! State is in `/var/lib/homing/labs/NAME`. The lab never records which parts are alive; it always looks them up. So
//! `down` works after any crash.
//!
//! It does not: simulate a network or a disk. Hosts are real, their links are shaped, and one kernel serves all of
//! them unless they are guests.

mod boot;
mod ceph;
mod cgroup;
pub mod demo;
mod disk;
mod down;
mod error;
mod exec;
mod failure;
mod folder;
mod gluster;
mod guest;
mod hidden;
mod inotify;
mod kernel;
mod moosefs;
mod mounts;
mod net;
mod nfs;
pub mod plan;
mod process;
mod program;
mod qemu;
mod root;
mod slurm;
pub mod spec;
mod status;
mod switches;
mod systems;
mod uml;
mod up;
mod wires;

pub use boot::{power_off, power_on, reboot, remount};
pub use down::down;
pub use error::{LabError, Result};
pub use exec::exec;
pub use folder::{is_up, load, names, reach};
pub use net::counters;
pub use plan::LabPlan;
pub use process::leader_of;
pub use spec::{
    CephSpec, DiskModel, GlusterSpec, Guests, HostSystem, LabSpec, MooseSpec, NetworkSpec, NfsSpec, SwitchesSpec,
    parse_rate, parse_size,
};
pub use status::{HostState, HostStatus, LabStatus, status};
pub use up::{up, up_with};
