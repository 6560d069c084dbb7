//! A guest of user-mode Linux: its kernel is a program of the machine. It computes at the machine's speed, but page
//! faults and the start of a process take longer.

use crate::error::Result;
use crate::plan::{BOOTED, HostPlan, LabPlan};
use crate::program::command;
use crate::root::write;
use std::path::Path;
use std::process::Command;

/// The program, as the process table shows it.
pub(crate) const PROGRAM: &str = "linux.uml";

/// Memory of a guest, MiB. nfsd needs this much to let clients write in pieces of 256 KiB.
const MEMORY_MIB: u32 = 1536;

/// The path of the first process.
const FIRST: &str = "/etc/homing-uml-init";

/// Returns a remedy where a guest does not start: Linux 6.1 keeps a process's registers in less room than AMX takes.
pub(crate) fn hint() -> &'static str {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if processors.contains(" amx_tile") {
        "; Debian's UML 6.1 does not start on processors with AMX, as in this machine: use --guests qemu"
    } else {
        ""
    }
}

/// Returns the command that runs the guest.
pub(crate) fn command_of(plan: &LabPlan, host: &HostPlan, disk: &Path) -> Result<Command> {
    write(&host.root().join(FIRST.trim_start_matches('/')), &first_steps(plan, host), 0o755)?;
    let mut c = command(PROGRAM);
    c.args(arguments(host, disk));
    Ok(c)
}

fn arguments(host: &HostPlan, disk: &Path) -> Vec<String> {
    vec![
        format!("mem={MEMORY_MIB}M"),
        format!("umid={}", host.machine()),
        format!("uml_dir={}/", host.dir().display()),
        format!("ubd0={}", disk.display()),
        "rootfstype=hostfs".into(),
        format!("rootflags={}", host.root().display()),
        "ro".into(),
        format!("init={FIRST}"),
        // Without gro it drops large pieces from the machine.
        format!("vec0:transport=tap,ifname={},mac=52:54:00:{},gro=1", host.veth(), host.mac_end()),
        "con=null".into(),
        "con0=null,fd:1".into(),
        "quiet".into(),
    ]
}

/// The script that runs before the root is there. A file that an ordinary user makes on hostfs itself would be
/// root's, so hostfs is below a layer of memory. The package keeps its modules where no other kernel looks. The disk
/// need not outlive a power failure: with barriers each commit of NFS waits for the machine's disk.
fn first_steps(plan: &LabPlan, host: &HostPlan) -> String {
    format!(
        "#!/bin/sh\n\
         export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
         mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t tmpfs tmpfs /mnt\n\
         modules=/usr/lib/uml/modules/$(uname -r)\n\
         insmod $modules/kernel/fs/overlayfs/overlay.ko; mkdir /mnt/u /mnt/w /mnt/new\n\
         mount -t overlay -o lowerdir=/,upperdir=/mnt/u,workdir=/mnt/w overlay /mnt/new\n\
         cd /mnt/new && mkdir -p scratch lib/modules && ln -sfn $modules lib/modules/\n\
         mount -t ext4 -o noatime,nobarrier /dev/ubda /mnt/new/scratch\n\
         for d in proc sys dev; do mount -n --move /$d /mnt/new/$d; done\n\
         ip link set lo up; ip link set vec0 name eth0; ip addr add {address}/24 dev eth0; ip link set eth0 up\n\
         ip route add default via {gateway}\n\
         hostname {name}\n\
         mount -n --move . / && exec chroot . {BOOTED}\n",
        address = host.address(),
        gateway = plan.gateway(),
        name = host.name(),
    )
}
