//! Hides the machine's own files from the hosts: its users' homes, temporary files, and homing's queue, runs, caches
//! and state. A host begins without them, though the machine's root is below its own. A file is hidden as overlayfs
//! removes one: by a device of the number 0 in the upper layer.

use crate::error::{Doing, Result};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// In root's home: keys and homing's folders. Programs that are installed there stay.
const OF_ROOT: [&str; 4] = [".ssh", ".cache/homing", ".local/state/homing", ".config/homing"];
/// Folders in which everything is hidden: homes, and temporary files of programs, such as a queue or
/// the marks of a job.
const OF_ALL: [&str; 3] = ["home", "var/tmp", "tmp"];
/// Homing's own folders of the system, and a file of Docker's images. That file turns apt's caches off: each call of
/// apt then reads all indexes, which takes seconds.
const OF_SYSTEM: [&str; 3] = ["etc/homing", "var/lib/homing", "etc/apt/apt.conf.d/docker-clean"];
/// The machine's ssh keys.
const HOST_KEYS: &str = "etc/ssh";

/// Hides these files from a host whose upper layer is `upper`, before that is mounted over `lower`. The folder of the
/// program at `shown` stays: a host runs it from there.
pub(crate) fn hide(lower: &Path, upper: &Path, shown: &Path) -> Result<()> {
    all(lower, shown).iter().try_for_each(|path| white_out(lower, upper, path))
}

/// Returns the hidden paths below the root, without its slash.
fn all(lower: &Path, shown: &Path) -> Vec<PathBuf> {
    let names = |folder: &str| {
        let entries = fs::read_dir(lower.join(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).collect::<Vec<_>>()
    };
    let of_all = OF_ALL
        .iter()
        .flat_map(|folder| names(folder).into_iter().map(|name| Path::new(folder).join(name)).collect::<Vec<_>>());
    let of_root = OF_ROOT.iter().map(|name| Path::new("root").join(name));
    let of_system = OF_SYSTEM.iter().map(PathBuf::from);
    let is_key = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("ssh_host_");
    let keys = names(HOST_KEYS).into_iter().filter(is_key).map(|name| Path::new(HOST_KEYS).join(name));
    let found = of_all.chain(of_root).chain(of_system).chain(keys);
    found.filter(|path| lower.join(path).symlink_metadata().is_ok() && !shown.starts_with(lower.join(path))).collect()
}

fn white_out(lower: &Path, upper: &Path, path: &Path) -> Result<()> {
    let folders: Vec<&Path> = path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()).collect();
    for folder in folders.into_iter().rev() {
        let (below, above) = (lower.join(folder), upper.join(folder));
        if above.exists() {
            continue;
        }
        // A folder of the upper layer would show its own owner and mode, so it gets those of the lower one.
        let meta = below.metadata().doing("reading", &below)?;
        fs::create_dir(&above).doing("making", &above)?;
        chown(&above, Some(meta.uid()), Some(meta.gid())).doing("changing the owner of", &above)?;
        fs::set_permissions(&above, Permissions::from_mode(meta.mode() & 0o7777)).doing("protecting", &above)?;
    }
    let above = upper.join(path);
    let made = mknodat(CWD, &above, FileType::CharacterDevice, Mode::empty(), 0);
    made.map_err(std::io::Error::from).doing("hiding", &above)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileTypeExt;

    /// Makes a machine with files of its own, and with other files.
    fn machine() -> tempfile::TempDir {
        let machine = tempfile::tempdir().unwrap();
        for folder in [
            "home/ann/work",
            "home/bob/bin",
            "var/tmp/homing-queue",
            "var/tmp/other",
            "tmp/homing-0",
            "tmp/go",
            "root/.ssh",
            "root/.cache/homing",
            "root/.cache/pip",
            "root/.cargo/bin",
            "etc/homing",
            "etc/ssh",
            "var/lib/homing/labs",
        ] {
            fs::create_dir_all(machine.path().join(folder)).unwrap();
        }
        for key in ["ssh_host_rsa_key", "ssh_host_rsa_key.pub", "sshd_config"] {
            fs::write(machine.path().join("etc/ssh").join(key), "").unwrap();
        }
        fs::set_permissions(machine.path().join("root"), Permissions::from_mode(0o700)).unwrap();
        machine
    }

    #[test]
    fn what_is_the_machines_own_is_hidden_and_its_programs_are_not() {
        let machine = machine();
        let hidden = all(machine.path(), &machine.path().join("home/bob/bin/homing"));
        let mut hidden: Vec<String> = hidden.iter().map(|path| path.display().to_string()).collect();
        hidden.sort();
        let wanted = [
            "etc/homing",
            "etc/ssh/ssh_host_rsa_key",
            "etc/ssh/ssh_host_rsa_key.pub",
            "home/ann",
            "root/.cache/homing",
            "root/.ssh",
            "tmp/go",
            "tmp/homing-0",
            "var/lib/homing",
            "var/tmp/homing-queue",
            "var/tmp/other",
        ];
        assert_eq!(hidden, wanted);
    }

    #[test]
    fn a_hidden_file_is_a_device_of_the_number_0_below_folders_that_are_as_they_were() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("SKIPPED: only root makes devices");
            return;
        }
        let (machine, upper) = (machine(), tempfile::tempdir().unwrap());
        match hide(machine.path(), upper.path(), Path::new("/usr/bin/homing")) {
            // A container may lack the right to make such devices.
            Err(refused) if refused.to_string().contains("not permitted") => eprintln!("SKIPPED: {refused}"),
            done => done.unwrap(),
        }
        let root = upper.path().join("root").metadata().unwrap();
        assert_eq!(root.mode() & 0o7777, 0o700);
        for path in ["home/ann", "root/.ssh", "root/.cache/homing"] {
            let meta = upper.path().join(path).symlink_metadata().unwrap();
            assert!(meta.file_type().is_char_device() && meta.rdev() == 0, "{path}");
        }
        assert!(!upper.path().join("root/.cargo").exists());
    }
}
