//! The kernel of guests: the machine's own when it is Debian's, else Debian's
//! package, unpacked beside the system and never installed.

use crate::error::{Doing, LabError, Result};
use crate::program::{command, finish, run};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the unpacked package, once for all labs.
const KEPT: &str = "/var/cache/homing/kernel";

/// A kernel with its modules.
pub(crate) struct Kernel {
    pub version: String,
    pub image: PathBuf,
    /// `.../lib/modules/VERSION`.
    pub modules: PathBuf,
}

impl Kernel {
    /// Finds one that can serve NFS, or fetches it (70 MB, once).
    pub fn find() -> Result<Kernel> {
        let kept = Path::new(KEPT);
        if let Some(found) = below(Path::new("/")).or_else(|| below(kept)) {
            return Ok(found);
        }
        fetch(kept)?;
        below(kept).ok_or_else(|| LabError::Request(format!("Debian's kernel package left no usable kernel in {KEPT}")))
    }

    /// Returns the files of these modules and of their dependencies, in the order of loading.
    pub fn needed_for(&self, names: &[&str]) -> Result<Vec<PathBuf>> {
        let file = self.modules.join("modules.dep");
        let text = fs::read_to_string(&file).doing("reading", &file)?;
        let order = order(&text, names).map_err(|name| {
            LabError::Request(format!("the kernel {} has no module {name}; guests cannot boot it", self.version))
        })?;
        Ok(order.into_iter().map(|module| self.modules.join(module)).collect())
    }
}

/// Parses lines of `module.ko: needed.ko needed-by-that.ko ...`.
fn order<'t>(dep: &'t str, names: &[&str]) -> std::result::Result<Vec<&'t str>, String> {
    let mut order: Vec<&str> = Vec::new();
    for name in names {
        let is_it = |path: &str| path.rsplit('/').next().is_some_and(|f| f.split('.').next() == Some(name));
        let line = dep.lines().find(|l| l.split(':').next().is_some_and(is_it)).ok_or(name.to_string())?;
        let (module, needs) = line.split_once(':').unwrap_or((line, ""));
        for one in needs.split_whitespace().rev().chain([module]) {
            if !order.contains(&one) {
                order.push(one);
            }
        }
    }
    Ok(order)
}

fn below(root: &Path) -> Option<Kernel> {
    let mut found: Vec<PathBuf> = fs::read_dir(root.join("lib/modules")).ok()?.flatten().map(|e| e.path()).collect();
    found.sort();
    found.into_iter().rev().find_map(|modules| {
        let version = modules.file_name()?.to_str()?.to_string();
        let image = root.join(format!("boot/vmlinuz-{version}"));
        // Compressed modules would need more than busybox's insmod.
        let usable =
            image.exists() && modules.join("modules.dep").exists() && modules.join("kernel/fs/nfsd/nfsd.ko").exists();
        usable.then_some(Kernel { version, image, modules })
    })
}

fn fetch(into: &Path) -> Result<()> {
    let doing = "fetching Debian's kernel for guests";
    let depends = run(doing, "apt-cache", &["depends", "linux-image-amd64"])?;
    let package =
        depends.lines().find_map(|l| l.trim().strip_prefix("Depends: ")).unwrap_or("linux-image-amd64").to_string();
    let fresh = into.with_extension("new");
    let _ = fs::remove_dir_all(&fresh);
    fs::create_dir_all(&fresh).doing("making", &fresh)?;
    let mut download = command("apt-get");
    download.args(["-q", "-o", "APT::Sandbox::User=root", "download", &package]).current_dir(&fresh);
    finish(doing, &mut download)?;
    let files = fs::read_dir(&fresh).doing("reading", &fresh)?.flatten();
    for file in files.map(|f| f.path()).filter(|f| f.extension().is_some_and(|e| e == "deb")) {
        run(doing, "dpkg", &["-x".as_ref(), file.as_path(), fresh.as_path()])?;
        fs::remove_file(&file).doing("removing", &file)?;
    }
    for modules in fs::read_dir(fresh.join("lib/modules")).doing("reading", &fresh)?.flatten() {
        let version = modules.file_name();
        run(doing, "depmod", &["-b".as_ref(), fresh.as_os_str(), version.as_os_str()])?;
    }
    let _ = fs::remove_dir_all(into);
    fs::rename(&fresh, into).doing("making", into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_loaded_after_what_they_need() {
        let dep = "kernel/a/a.ko: kernel/b/b.ko kernel/c/c.ko\nkernel/b/b.ko: kernel/c/c.ko\nkernel/c/c.ko:\n";
        assert_eq!(order(dep, &["b", "a"]), Ok(vec!["kernel/c/c.ko", "kernel/b/b.ko", "kernel/a/a.ko"]));
        assert_eq!(order(dep, &["d"]), Err("d".into()));
    }
}
