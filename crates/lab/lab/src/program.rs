//! Runs the machine's programs, such as `ip`, `tc` and `mount`.

use crate::error::{LabError, Result};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Programs that every lab needs, with the Debian packages that hold them.
const NEEDED: &[(&str, &str)] = &[
    ("systemd-nspawn", "systemd-container"),
    ("sshd", "openssh-server"),
    ("ssh-keygen", "openssh-client"),
    ("ip", "iproute2"),
    ("tc", "iproute2"),
    ("mkfs.ext4", "e2fsprogs"),
    ("losetup", "mount"),
    ("mount", "mount"),
    ("nsenter", "util-linux"),
];

/// Needed for a disk with one head.
pub(crate) const FOR_HDD: &[(&str, &str)] = &[("nbdfuse", "libnbd-bin"), ("nbdkit", "nbdkit")];
/// Needed for a GlusterFS volume.
pub(crate) const FOR_GLUSTER: &[(&str, &str)] =
    &[("glusterd", "glusterfs-server"), ("mount.glusterfs", "glusterfs-client")];

/// Needed for Slurm.
pub(crate) const FOR_SLURM: &[(&str, &str)] =
    &[("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("srun", "slurm-client"), ("munged", "munge")];

/// Needed for switches that announce themselves.
pub(crate) const FOR_SWITCHES: &[(&str, &str)] = &[("lldpd", "lldpd"), ("unshare", "util-linux")];

/// Needed to make the root of a release of Debian.
pub(crate) const FOR_DEBIAN: &[(&str, &str)] = &[("debootstrap", "debootstrap")];

/// Needed for MooseFS.
pub(crate) const FOR_MOOSEFS: &[(&str, &str)] = &[
    ("mfsmaster", "moosefs-master"),
    ("mfschunkserver", "moosefs-chunkserver"),
    ("mfsmount", "moosefs-client"),
    ("mfscli", "moosefs-cli"),
];

/// Needed for CephFS.
pub(crate) const FOR_CEPH: &[(&str, &str)] = &[
    ("ceph-mon", "ceph-mon"),
    ("ceph-mgr", "ceph-mgr"),
    ("ceph-osd", "ceph-osd"),
    ("ceph-mds", "ceph-mds"),
    ("ceph-fuse", "ceph-fuse"),
    ("ceph", "ceph-common"),
];

/// Needed for guests that serve and mount NFS.
pub(crate) const FOR_NFS: &[(&str, &str)] = &[("exportfs", "nfs-kernel-server"), ("mount.nfs", "nfs-common")];

/// Needed for guests of QEMU.
pub(crate) const FOR_QEMU: &[(&str, &str)] =
    &[("qemu-system-x86_64", "qemu-system-x86"), ("busybox", "busybox-static"), ("depmod", "kmod")];

/// Needed for guests of user-mode Linux.
pub(crate) const FOR_UML: &[(&str, &str)] = &[("linux.uml", "user-mode-linux")];

/// The folders of system programs, which are searched even when the caller's PATH lacks them.
const SBIN: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

/// Refuses unless the caller is root.
pub(crate) fn need_root() -> Result<()> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(LabError::NotRoot) }
}

/// Refuses when a program is missing.
pub(crate) fn require(more: &'static [(&'static str, &'static str)]) -> Result<()> {
    for &(program, package) in NEEDED.iter().chain(more) {
        if !SBIN.split(':').any(|d| Path::new(d).join(program).exists()) {
            return Err(LabError::Missing { program, package });
        }
    }
    let python = Path::new("/usr/lib");
    if more.iter().any(|(p, _)| *p == "nbdkit") && !has_python_plugin(python) {
        return Err(LabError::Missing { program: "nbdkit-python-plugin.so", package: "nbdkit-plugin-python" });
    }
    Ok(())
}

fn has_python_plugin(lib: &Path) -> bool {
    let Ok(triples) = lib.read_dir() else { return false };
    triples.flatten().any(|d| d.path().join("nbdkit/plugins/nbdkit-python-plugin.so").exists())
}

/// Returns a command with a known PATH and language and no standard input.
pub(crate) fn command(program: &str) -> Command {
    let mut c = Command::new(program);
    c.env("PATH", SBIN).env("LC_ALL", "C").stdin(Stdio::null());
    c
}

/// Runs a program to its end and returns its standard output.
pub(crate) fn run<A: AsRef<OsStr>>(doing: &str, program: &str, args: &[A]) -> Result<String> {
    let mut c = command(program);
    c.args(args);
    finish(doing, &mut c)
}

/// Runs a prepared command to its end and returns its standard output.
pub(crate) fn finish(doing: &str, c: &mut Command) -> Result<String> {
    let shown = std::iter::once(c.get_program())
        .chain(c.get_args())
        .map(|a| a.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ");
    let failed = |status: String, stderr: String| LabError::Program {
        doing: doing.to_string(),
        command: shown.clone(),
        status,
        stderr,
    };
    end_with_the_caller(c);
    let Output { status, stdout, stderr } = c.output().map_err(|e| failed(spawn_status(&e), String::new()))?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).into_owned());
    }
    let mut said = String::from_utf8_lossy(&stderr).trim().to_string();
    if said.is_empty() {
        said = String::from_utf8_lossy(&stdout).trim().to_string();
    }
    Err(failed(status.to_string(), said))
}

/// Makes the program end with the caller. A `mount` that outlived a killed `lab up` would mount after `lab down`.
fn end_with_the_caller(c: &mut Command) {
    // SAFETY: prctl is async-signal-safe and touches no memory of the parent.
    unsafe {
        c.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            Ok(())
        });
    }
}

fn spawn_status(e: &io::Error) -> String {
    format!("no start ({e})")
}
