//! A host with a kernel of its own, over the same root as the others. NFS needs it, because its client and its server
//! are in the kernel. The kernel's client of CephFS needs it, too.

use crate::disk::detach;
use crate::error::{Doing, LabError, Result};
use crate::kernel::Kernel;
use crate::plan::{BOOTED, HostPlan, LabPlan};
use crate::program;
use crate::root::write;
use crate::spec::Guests;
use crate::{cgroup, net, qemu, uml};
use std::fs::File;
use std::path::Path;
use std::process::Child;

/// The kernel that guests boot.
pub(crate) enum Booted {
    Qemu(Kernel),
    /// Its kernel is the program.
    Uml,
}

impl Guests {
    /// Returns the program, as the process table shows it.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Guests::Qemu => qemu::PROGRAM,
            Guests::Uml => uml::PROGRAM,
        }
    }

    /// Refuses when a program is missing.
    pub(crate) fn require(self) -> Result<()> {
        program::require(match self {
            Guests::Qemu => program::FOR_QEMU,
            Guests::Uml => program::FOR_UML,
        })
    }

    /// Finds the kernel, or fetches it.
    pub(crate) fn kernel(self) -> Result<Booted> {
        match self {
            Guests::Qemu => Kernel::find().map(Booted::Qemu),
            Guests::Uml => Ok(Booted::Uml),
        }
    }
}

/// Options of mkfs for a disk that the guest mounts at `/scratch` soon.
pub(crate) const LAZY: [&str; 2] = ["-E", "lazy_itable_init=1,lazy_journal_init=1"];

/// Starts the guest, which has this file for its disk.
pub(crate) fn start(plan: &LabPlan, host: &HostPlan, kernel: &Booted, disk: &Path) -> Result<Child> {
    write(&host.root().join(BOOTED.trim_start_matches('/')), INIT, 0o755)?;
    net::make_tap(plan, host)?;
    let mut c = match kernel {
        Booted::Qemu(kernel) => qemu::command_of(plan, host, kernel, disk)?,
        Booted::Uml => uml::command_of(plan, host, disk)?,
    };
    let doors = cgroup::make(&host.cgroup(), plan.spec.cpus)?;
    let log = host.dir().join(LOG);
    let out = File::create(&log).doing("making", &log)?;
    let err = out.try_clone().doing("opening", &log)?;
    c.stdout(out).stderr(err);
    detach(&mut c);
    cgroup::enter(&mut c, doors);
    c.spawn().doing("starting a guest on", host.root())
}

/// The log of the guest's program.
const LOG: &str = "guest.log";

/// The first process of the guest, on its real root.
const INIT: &str = "\
#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t tmpfs tmpfs /run
mkdir -p /dev/pts /dev/shm /run/sshd /run/lock
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
/usr/sbin/sshd
# A shell that waits also buries what loses its parent.
while :; do sleep 1000; done
";

/// Returns why a guest ended, with the words of its program.
pub(crate) fn complaint(host: &HostPlan) -> Option<LabError> {
    let said = std::fs::read_to_string(host.dir().join(LOG)).ok().filter(|s| !s.trim().is_empty())?;
    let why = format!("{} ended{}", host.program(), if host.program() == uml::PROGRAM { uml::hint() } else { "" });
    Some(LabError::Boot { host: host.name(), why, console: said })
}
