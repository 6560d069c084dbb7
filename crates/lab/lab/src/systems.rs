//! Roots of other systems than the machine's: Debian's releases by debootstrap, made once for all labs, and folders of
//! the user.

use crate::error::{Doing, LabError, Result};
use crate::mounts;
use crate::plan::LabPlan;
use crate::program::{self, run};
use crate::spec::{HostSystem, ROOTS};
use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::path::Path;

/// Packages beside Debian's essential ones: those of a host, and those that commands of homing use there.
const PACKAGES: &str = "systemd,systemd-sysv,dbus,openssh-server,openssh-client,iproute2,iputils-ping,procps,kmod,netbase,\
                        ca-certificates,rsync,attr,fuse3,lldpd,ethtool";

/// Files that a root must have, without which no host comes up.
const NEEDED: [&str; 4] =
    ["usr/lib/systemd/systemd", "usr/lib/systemd/systemd-networkd", "usr/sbin/sshd", "usr/bin/sh"];

/// Refuses systems that cannot be had, before anything is made.
pub(crate) fn check(systems: &[HostSystem]) -> Result<()> {
    for system in systems {
        let root = system.root();
        match system {
            HostSystem::This => {}
            HostSystem::Folder(_) => {
                if let Some(file) = NEEDED.iter().find(|file| root.join(file).symlink_metadata().is_err()) {
                    let root = root.display();
                    return Err(LabError::Request(format!("{root} is no root for a host: {root}/{file} is missing")));
                }
            }
            _ if root.exists() => {}
            _ => program::require(program::FOR_DEBIAN)?,
        }
    }
    Ok(())
}

/// Makes the roots that the lab needs and that are missing.
pub(crate) fn make(plan: &LabPlan, tell: &dyn Fn(&str)) -> Result<()> {
    for system in &plan.spec.systems {
        let root = system.root();
        if !root.exists() {
            tell(&format!("making the root of Debian {system} in {}, once for all labs: some minutes", root.display()));
            bootstrap(&system.to_string(), &root)?;
        }
    }
    Ok(())
}

/// Makes a root under another name first, so that an interrupted one is never taken for whole.
fn bootstrap(release: &str, root: &Path) -> Result<()> {
    let kept = Path::new(ROOTS);
    fs::create_dir_all(kept).doing("making", kept)?;
    let gate = File::open(kept).doing("opening", kept)?;
    rustix::fs::flock(&gate, FlockOperation::LockExclusive).doing("locking", kept)?;
    if root.exists() {
        return Ok(());
    }
    let fresh = kept.join(format!(".{release}.new"));
    // An interrupted one left the file systems of the kernel mounted.
    mounts::unmount_below(&fresh)?;
    let _ = fs::remove_dir_all(&fresh);
    let include = format!("--include={PACKAGES}");
    let (doing, folder) = (format!("making the root of Debian {release}"), fresh.display().to_string());
    run(&doing, "debootstrap", &["--variant=minbase", &include, release, &folder])?;
    fs::rename(&fresh, root).doing("making", root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_a_system_is_refused_with_the_file_that_is_missing() {
        let root = tempfile::tempdir().unwrap();
        let of = || check(&[HostSystem::This, HostSystem::Folder(root.path().into())]);
        assert!(of().unwrap_err().to_string().contains("usr/lib/systemd/systemd is missing"));
        for file in NEEDED {
            crate::root::write(&root.path().join(file), "", 0o755).unwrap();
        }
        assert!(of().is_ok());
        assert_eq!(HostSystem::Trixie.root(), Path::new("/var/cache/homing/roots/trixie"));
    }
}
