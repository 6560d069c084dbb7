//! Are the same versions installed everywhere?

use super::alike::{ValueRow, differing};
use crate::{Answers, Code, HostCheck, HostFinding, Severity};

macro_rules! version {
    ($id:ident, $name:literal, $severity:ident, $noun:literal, $means:literal, $seen:literal) => {
        static $id: Code = Code {
            name: $name,
            severity: Severity::$severity,
            what: concat!("hosts have different versions of ", $noun),
            means: $means,
            seen: $seen,
            mend: "install the same version everywhere",
        };
    };
}

version!(
    KERNEL,
    "HC-VER-01",
    Warning,
    "the kernel",
    "drivers and file systems behave differently; a newer kernel may wait for a reboot",
    "`uname -r`"
);
version!(
    LIBC,
    "HC-VER-02",
    Error,
    "the C library",
    "programs built with the newer one do not start with the older",
    "`getconf GNU_LIBC_VERSION`"
);
version!(
    SYSTEM,
    "HC-VER-03",
    Warning,
    "the distribution",
    "programs, paths and defaults differ from host to host",
    "/etc/os-release"
);
version!(
    GLUSTER,
    "HC-VER-04",
    Error,
    "GlusterFS",
    "options and repairs do not work between versions",
    "`glusterfs --version`"
);
version!(
    MOOSEFS,
    "HC-VER-05",
    Error,
    "MooseFS",
    "clients and chunk servers newer than the master are refused",
    "`mfsmount -V`"
);
version!(NFS, "HC-VER-06", Warning, "the NFS tools", "mounts have different default options", "`mount.nfs -V`");
version!(
    SLURM,
    "HC-VER-07",
    Error,
    "Slurm",
    "daemons of versions too far apart refuse each other",
    "`slurmd -V`, `sinfo -V`"
);

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "versions",
    script: r#"v() { printf '%s\t%s\n' "$1" "$2"; }
v kernel "$(uname -r)"
v libc "$(getconf GNU_LIBC_VERSION)"
v system "$(. /etc/os-release; echo "$NAME $VERSION_ID")"
command -v glusterfs >/dev/null && v gluster "$(glusterfs --version | awk 'NR == 1 {print $2}')"
command -v mfsmount >/dev/null && v moosefs "$(mfsmount -V 2>&1 | awk 'NR == 1 {print $NF}')"
command -v mount.nfs >/dev/null && v nfs "$(mount.nfs -V 2>&1 | awk '{print $NF; exit}')"
if command -v slurmd >/dev/null; then v slurm "$(slurmd -V)"; elif command -v sinfo >/dev/null; then v slurm "$(sinfo -V)"; fi
true"#,
    waits: true,
    slow: false,
    root: None,
    codes: &[&LIBC, &GLUSTER, &MOOSEFS, &SLURM, &KERNEL, &SYSTEM, &NFS],
    judge,
};

const fn row(name: &'static str, code: &'static Code, noun: &'static str, look: &'static str) -> ValueRow {
    ValueRow { name, code, noun, mend: None, look }
}

static ROWS: [ValueRow; 7] = [
    row("kernel", &KERNEL, "the kernel", "uname -a; ls -t /boot/vmlinuz* | head -3"),
    row("libc", &LIBC, "the C library", "ldd --version | head -1"),
    row("system", &SYSTEM, "the distribution", "cat /etc/os-release"),
    row("gluster", &GLUSTER, "GlusterFS", "command -v glusterfs; glusterfs --version"),
    row("moosefs", &MOOSEFS, "MooseFS", "command -v mfsmount; mfsmount -V"),
    row("nfs", &NFS, "the NFS tools", "command -v mount.nfs; mount.nfs -V"),
    row("slurm", &SLURM, "Slurm", "command -v slurmd sinfo; sinfo -V"),
];

fn judge(answers: &Answers) -> Vec<HostFinding> {
    differing(answers, CHECK.key, &ROWS)
}
