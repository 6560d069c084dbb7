//! GlusterFS: the `glusterfs.pathinfo` attribute, which ordinary users may
//! read, joined with the volume's own definition.

mod disperse;
mod names;
mod pathinfo;

use crate::mounts::MountLine;
use crate::volfile::{self, Definition, Sharing};
use crate::{Asked, FileSystem};
use homing_model::{Extent, Replica};
use names::Names;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// `glusterfs.pathinfo` of a file in a wide volume; one call instead of a second round trip.
const PATHINFO_MOST: usize = 64 << 10;

pub(crate) struct Gluster {
    lines: Vec<MountLine>,
    definition: Result<Definition, String>,
    names: Names,
}

impl Gluster {
    /// `lines` are all places where this volume is mounted here.
    pub fn read(lines: &[MountLine]) -> Gluster {
        Gluster { lines: lines.to_vec(), definition: definition(lines), names: Names::system() }
    }

    fn place(&self, definition: &Definition, path: &Path, value: &[u8], length: u64) -> Result<Extent, String> {
        let below = || below(&self.lines, path);
        let pick = |told: &str, defined: &[&str]| self.names.pick(told, defined);
        let found = pathinfo::holders(definition, value, &below, &pick)?;
        if let Some(group) = found.group.filter(|g| matches!(g.sharing, Sharing::Disperse { .. })) {
            return Ok(disperse::extent(group, length));
        }
        let holding = found.bricks.iter().filter(|b| !b.arbiter);
        let replicas: Vec<Replica> = holding.map(|b| Replica { host: b.host.clone(), share: 1.0 }).collect();
        if replicas.is_empty() {
            return Err("only an arbiter answered, and an arbiter holds no data; the other bricks are down".into());
        }
        Ok(Extent { offset: 0, length, replicas: once_each(replicas) })
    }
}

/// A host with two bricks of one file is still one host.
fn once_each(replicas: Vec<Replica>) -> Vec<Replica> {
    let mut out: Vec<Replica> = Vec::new();
    for replica in replicas {
        match out.iter_mut().find(|r| r.host == replica.host) {
            Some(have) => have.share = (have.share + replica.share).min(1.0),
            None => out.push(replica),
        }
    }
    out
}

fn definition(lines: &[MountLine]) -> Result<Definition, String> {
    // A bind mount of a folder shows no `.meta`; the volume's root does.
    let mut points: Vec<&MountLine> = lines.iter().collect();
    points.sort_by_key(|line| line.root.0 != b"/");
    let mut why = String::from("the volume is not in the mount table");
    for line in points {
        let file = line.mount.point.as_path().join(".meta/graphs/active/volfile");
        match std::fs::read_to_string(&file) {
            Ok(text) => match volfile::parse(&text) {
                Some(definition) => return Ok(definition),
                None => why = format!("{} names no bricks", file.display()),
            },
            Err(e) => why = format!("cannot read the volume's definition {}: {e}", file.display()),
        }
    }
    Err(why)
}

/// The file's path from the volume's root, with a leading slash.
fn below(lines: &[MountLine], path: &Path) -> Option<Vec<u8>> {
    let real = path.canonicalize().ok()?;
    let fits = lines.iter().filter(|l| real.starts_with(l.mount.point.as_path()));
    let line = fits.max_by_key(|l| l.mount.point.0.len())?;
    let mut whole = PathBuf::from("/");
    for part in [folder_of(&line.mount.source.0), &line.root.0] {
        whole.push(Path::new(std::ffi::OsStr::from_bytes(part)).strip_prefix("/").ok()?);
    }
    whole.push(real.strip_prefix(line.mount.point.as_path()).ok()?);
    Some(whole.into_os_string().into_encoded_bytes())
}

/// `/folder` of a source `server:/volume/folder`; `/` when the whole volume is mounted.
fn folder_of(source: &[u8]) -> &[u8] {
    let after = source.iter().rposition(|b| *b == b':').map_or(source, |at| &source[at + 1..]);
    let volume = after.strip_prefix(b"/").unwrap_or(after);
    volume.iter().position(|b| *b == b'/').map_or(b"/", |at| &volume[at..])
}

fn explain(error: rustix::io::Errno) -> String {
    match error {
        rustix::io::Errno::ACCESS => "no permission to read it, which GlusterFS wants for telling its place".into(),
        rustix::io::Errno::NOTCONN => "the bricks that hold it are down (gluster volume status)".into(),
        other => format!("GlusterFS did not tell its place: {}", std::io::Error::from(other)),
    }
}

impl FileSystem for Gluster {
    fn fill(&self, Asked { path, layout, .. }: &mut Asked) {
        if layout.size == 0 {
            return;
        }
        let definition = match &self.definition {
            Ok(definition) => definition,
            Err(reason) => return layout.reason = Some(reason.clone()),
        };
        let length = definition.shard.unwrap_or(u64::MAX).min(layout.size);
        let mut value = vec![0; PATHINFO_MOST];
        let asked = rustix::fs::getxattr(&*path, c"glusterfs.pathinfo", &mut value[..]);
        let placed = match asked {
            Ok(n) => self.place(definition, path, &value[..n], length),
            // Since GlusterFS 9 dispersed volumes answer so, to everybody.
            Err(rustix::io::Errno::NOMEM) => disperse::place(definition, length),
            Err(error) => Err(explain(error)),
        };
        match placed {
            Ok(extent) => layout.extents.push(extent),
            Err(reason) => return layout.reason = Some(reason),
        }
        if length < layout.size {
            layout.reason = Some(format!(
                "it is cut into shards of {length} bytes, and a mount tells the place of the first one only"
            ));
        }
    }
}

#[cfg(test)]
mod tests;
