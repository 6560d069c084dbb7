//! Lustre: a file's layout is its `lustre.lov` attribute, which users may read. The client's own tables show which
//! host serves each target.
//!
//! This code was written without a running Lustre. The formats are those of lustre_user.h (2.15 and the development
//! branch) and of the manual's examples.

mod getstripe;
mod lov;
mod place;

use crate::{FileSystem, LocateRequest};
use homing_mounts::MountLine;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The kernel's own limit for an attribute; layouts of thousands of stripes fit.
const LOV_MOST: usize = 64 << 10;

/// How a component keeps its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pattern {
    /// Stripes over objects on OSTs.
    Raid0,
    /// On the metadata target.
    Mdt,
    /// In another system.
    Foreign,
    /// A pattern that this program does not know, by its number.
    Other(u32),
}

/// A range of a file in one mirror.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Component {
    /// First byte, and the one after the last (`u64::MAX`: no end).
    range: (u64, u64),
    mirror: u32,
    /// Whether it has objects that are up to date and on line.
    usable: bool,
    /// Whether its bytes were moved to an archive (HSM).
    released: bool,
    pattern: Pattern,
    stripe_size: u64,
    /// Index of the OST of each object.
    osts: Vec<u32>,
}

/// The hosts that serve the targets, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Targets {
    osts: HashMap<u32, String>,
    mdts: HashMap<u32, String>,
}

pub(crate) struct Lustre {
    targets: Targets,
}

impl Lustre {
    pub fn read(line: &MountLine) -> Lustre {
        let source = String::from_utf8_lossy(&line.mount.source.0).into_owned();
        let name = file_system_of(&source);
        let (osts, mdts) = (served(name, "osc", "ost_conn_uuid"), served(name, "mdc", "mds_conn_uuid"));
        Lustre { targets: Targets { osts, mdts } }
    }

    /// Returns the host of the metadata target that has the file's data.
    fn mds(&self, path: &Path) -> Option<String> {
        let mut all = self.targets.mdts.values();
        match (all.next(), all.next()) {
            (Some(only), None) => Some(only.clone()),
            _ => self.targets.mdts.get(&mdt_index(path)?).cloned(),
        }
    }
}

/// Returns `lfs1` of `10.0.0.1@tcp:10.0.0.2@tcp:/lfs1/folder`.
fn file_system_of(source: &str) -> &str {
    let after = source.rsplit_once(":/").map_or(source, |(_, after)| after);
    after.split('/').next().unwrap_or(after)
}

/// Returns the host of each target of a kind, from the client's table, or from `lctl`, which reads the same.
fn served(name: &str, kind: &str, parameter: &str) -> HashMap<u32, String> {
    let mut found = HashMap::new();
    for base in ["/sys/fs/lustre", "/proc/fs/lustre"] {
        for entry in std::fs::read_dir(format!("{base}/{kind}")).into_iter().flatten().flatten() {
            let device = entry.file_name().to_string_lossy().into_owned();
            let uuid = std::fs::read_to_string(entry.path().join(parameter)).unwrap_or_default();
            found.extend(target(name, &device, &uuid));
        }
    }
    if found.is_empty() {
        let asked = Command::new("lctl")
            .args(["get_param", &format!("{kind}.{name}-*.{parameter}")])
            .stdin(Stdio::null())
            .output();
        let text = asked.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
        found.extend(text.lines().filter_map(|line| lctl_line(name, line)));
    }
    found
}

/// Parses `osc.lfs1-OST0003-osc-ffff8800.ost_conn_uuid=10.0.0.5@tcp`.
fn lctl_line(name: &str, line: &str) -> Option<(u32, String)> {
    let (left, uuid) = line.split_once('=')?;
    target(name, left.split_once('.')?.1, uuid)
}

/// Parses index and host from `lfs1-OST0003-osc-ffff8800` and `10.0.0.5@tcp`.
fn target(name: &str, device: &str, uuid: &str) -> Option<(u32, String)> {
    let rest = device.strip_prefix(name)?.strip_prefix('-')?;
    let digits = rest.strip_prefix("OST").or_else(|| rest.strip_prefix("MDT"))?.split('-').next()?;
    let host = uuid.trim().split('@').next().filter(|h| !h.is_empty())?;
    Some((u32::from_str_radix(digits, 16).ok()?, host.to_string()))
}

fn mdt_index(path: &Path) -> Option<u32> {
    let said = lfs(&["getstripe", "-m"], path).ok()?;
    String::from_utf8_lossy(&said).trim().parse().ok()
}

fn lfs(words: &[&str], path: &Path) -> Result<Vec<u8>, String> {
    // Absolute, so that no name is taken for an option.
    let path: PathBuf = std::path::absolute(path).map_err(|e| e.to_string())?;
    let asked = Command::new("lfs").args(words).arg(&path).env("LC_ALL", "C").stdin(Stdio::null()).output();
    let asked = asked.map_err(|e| format!("cannot run lfs: {e}"))?;
    if asked.status.success() {
        return Ok(asked.stdout);
    }
    Err(format!("lfs {}: {}", words.join(" "), String::from_utf8_lossy(&asked.stderr).trim().escape_debug()))
}

/// Reads the components from the attribute, or from `lfs` if a client does not show the attribute.
fn components(path: &Path) -> Result<Vec<Component>, String> {
    let mut value = vec![0; LOV_MOST];
    let by_attribute = match rustix::fs::getxattr(path, c"lustre.lov", &mut value[..]) {
        Ok(n) => lov::parse(&value[..n]).ok_or_else(|| "its lustre.lov attribute has an unknown form".to_string()),
        Err(e) => Err(format!("cannot read its lustre.lov attribute: {}", std::io::Error::from(e))),
    };
    by_attribute.or_else(|why| {
        let said = lfs(&["getstripe", "-y"], path).map_err(|other| format!("{why}; {other}"))?;
        // The first line may be the file's name, with any content.
        let name = [path.as_os_str().as_bytes(), b"\n"].concat();
        let text = said.strip_prefix(&name[..]).unwrap_or(&said);
        getstripe::parse(&String::from_utf8_lossy(text)).ok_or(why)
    })
}

impl FileSystem for Lustre {
    fn fill(&self, LocateRequest { path, layout, .. }: &mut LocateRequest) {
        if layout.size == 0 {
            return;
        }
        match components(path) {
            Ok(components) => place::place(&components, &self.targets, &|| self.mds(path), layout),
            Err(reason) => layout.reason = Some(reason),
        }
    }
}

#[cfg(test)]
mod tests;
