//! GlusterFS: combines the `glusterfs.pathinfo` attribute, which ordinary users may read, with the volume's own
//! definition. The attribute is not enough for shards and dispersed files; then the bricks are queried.

mod api;
mod bricks;
mod disperse;
mod hash;
mod names;
mod pathinfo;
mod shards;

use crate::volfile::{self, Brick, BrickSet, Definition, Sharing};
use crate::{FileSystem, LocateRequest, Spread};
use bricks::{Bricks, ShardLocation};
use homing_model::{Extent, FileLayout, Replica};
use homing_mounts::{MountLine, holding};
use homing_os::threads::lock;
use names::AddressCache;
use rustix::io::Errno;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Enough for the `glusterfs.pathinfo` of a file in a wide volume, so that one call reads it.
const PATHINFO_MOST: usize = 64 << 10;

/// A link to the folder of the mount's active graph, below the volume's root.
const ACTIVE: &str = ".meta/graphs/active";

pub(crate) struct Gluster {
    lines: Vec<MountLine>,
    /// The last read definition. A volume that was grown has another one.
    volume: Mutex<Arc<VolumeDefinition>>,
    names: AddressCache,
}

/// A volume's definition, or why it cannot be read.
type VolumeDefinition = Result<GlusterConnections, String>;

/// A volume's definition with connections to its bricks.
struct GlusterConnections {
    definition: Definition,
    bricks: Bricks,
    /// The mount that showed the definition.
    mount: PathBuf,
    /// Name of the definition's graph of translators. It changes when the volume changes.
    graph: Option<PathBuf>,
}

impl Gluster {
    /// `lines` are all mounts of this volume on this host.
    pub fn read(lines: &[MountLine]) -> Gluster {
        Gluster { lines: lines.to_vec(), volume: Mutex::new(Arc::new(known(lines))), names: AddressCache::system() }
    }

    fn volume(&self) -> Arc<VolumeDefinition> {
        lock(&self.volume).clone()
    }

    /// Returns the volume if its definition differs from `old`: bricks were added or removed. Most callers are sparse
    /// files, of which there may be many, so the name of the graph is compared first. Reading it takes a sixth of the
    /// time of the definition.
    fn changed_since(&self, old: &VolumeDefinition) -> Option<Arc<VolumeDefinition>> {
        if let Ok(GlusterConnections { mount, graph: Some(name), .. }) = old
            && graph(mount).as_ref() == Some(name)
        {
            return None;
        }
        let new = known(&self.lines).ok()?;
        let same = old.as_ref().is_ok_and(|old| old.definition == new.definition);
        let volume = Arc::new(Ok(new));
        *lock(&self.volume) = Arc::clone(&volume);
        (!same).then_some(volume)
    }

    fn place(&self, volume: &VolumeDefinition, path: &Path, layout: &mut FileLayout) {
        let GlusterConnections { definition, bricks, .. } = match volume {
            Ok(known) => known,
            Err(reason) => return layout.reason = Some(reason.clone()),
        };
        let mut length = layout.size;
        if let Some(block) = definition.shard
            && layout.size > shards::SMALLEST
        {
            let Err(why) = cut(definition, bricks, path, layout) else { return };
            length = block.min(layout.size);
            layout.reason =
                Some(format!("the mount reports the place of its first shard only, and the bricks report none: {why}"));
        }
        match self.whole(definition, bricks, path) {
            Ok(replicas) => layout.extents.push(Extent { offset: 0, length, replicas }),
            Err(reason) => layout.reason = Some(reason),
        }
    }

    /// Returns the hosts of a file that is not cut.
    fn whole(&self, definition: &Definition, bricks: &Bricks, path: &Path) -> Result<Vec<Replica>, String> {
        let mut value = vec![0; PATHINFO_MOST];
        match rustix::fs::getxattr(path, c"glusterfs.pathinfo", &mut value[..]) {
            Ok(n) => {
                let (replicas, all) = self.parse_pathinfo(definition, path, &value[..n])?;
                let better = if all { None } else { query_bricks(definition, bricks, path).ok() };
                Ok(better.unwrap_or(replicas))
            }
            // Since GlusterFS 9 dispersed volumes return this error to every user.
            Err(Errno::NOMEM) => match disperse::any(definition) {
                Some(group) => Ok(replicas(group, group.bricks.iter())),
                None => query_bricks(definition, bricks, path),
            },
            Err(error) => Err(explain(error)),
        }
    }

    /// Returns the hosts in a `glusterfs.pathinfo`, and whether the list is complete.
    fn parse_pathinfo(
        &self,
        definition: &Definition,
        path: &Path,
        value: &[u8],
    ) -> Result<(Vec<Replica>, bool), String> {
        let below = || below(&self.lines, path);
        let pick = |told: &str, defined: &[&str]| self.names.pick(told, defined);
        let found = pathinfo::holders(definition, value, &below, &pick)?;
        let holding: Vec<&Brick> = match found.group.filter(|g| matches!(g.sharing, Sharing::Disperse { .. })) {
            Some(group) => return Ok((replicas(group, group.bricks.iter()), true)),
            None => found.bricks.iter().copied().filter(|b| !b.arbiter).collect(),
        };
        if holding.is_empty() {
            return Err("only an arbiter answered, and an arbiter holds no data; the other bricks are down".into());
        }
        let replicas = holding.iter().map(|b| Replica { host: b.host.clone(), share: 1.0 });
        Ok((once_each(replicas.collect()), found.all))
    }
}

/// Places a file in blocks, on a volume that cuts files.
fn cut(definition: &Definition, bricks: &Bricks, path: &Path, layout: &mut FileLayout) -> Result<(), String> {
    let id = bricks::id_of(path).map_err(explain)?;
    let base = bricks.file(definition, &id);
    if let ShardLocation::Unknown(why) = base {
        return Err(why);
    }
    // The volume's option applies to new files only; each file keeps its own block size.
    let block = bricks.attribute(definition, &id, c"trusted.glusterfs.shard.block-size");
    let block = match block.as_deref().map(<[u8; 8]>::try_from) {
        Some(Ok(bytes)) => u64::from_be_bytes(bytes).max(shards::SMALLEST),
        Some(Err(_)) => return Err("its shard size cannot be read".into()),
        None => layout.size,
    };
    let held = |number| if number == 0 { base.clone() } else { bricks.shard(definition, &id, number) };
    (layout.extents, layout.reason) = shards::place(definition, &shards::Cut { size: layout.size, block }, &held);
    Ok(())
}

/// Returns the hosts of a file that is not cut, from the bricks that have it.
fn query_bricks(definition: &Definition, bricks: &Bricks, path: &Path) -> Result<Vec<Replica>, String> {
    let id = bricks::id_of(path).map_err(explain)?;
    match bricks.file(definition, &id) {
        ShardLocation::At(group, holding) => {
            let group = &definition.groups[group];
            Ok(replicas(group, holding.iter().map(|brick| &group.bricks[*brick])))
        }
        ShardLocation::Nowhere => Err("no brick has the file any more".into()),
        ShardLocation::Unknown(why) => Err(format!("the mount does not report which bricks hold it, and {why}")),
    }
}

/// Returns the hosts of these bricks of one subvolume, each with the part that it can serve by itself.
fn replicas<'b>(group: &BrickSet, holding: impl Iterator<Item = &'b Brick>) -> Vec<Replica> {
    let share = match group.sharing {
        Sharing::Disperse { redundancy } => 1.0 / group.bricks.len().saturating_sub(redundancy).max(1) as f64,
        _ => 1.0,
    };
    once_each(holding.map(|brick| Replica { host: brick.host.clone(), share }).collect())
}

/// Merges several bricks of one host.
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

/// Reads the volume from the first mount that shows its definition.
fn known(lines: &[MountLine]) -> VolumeDefinition {
    // A bind mount of a folder has no `.meta`; the volume's root has it.
    let mut points: Vec<&MountLine> = lines.iter().collect();
    points.sort_by_key(|line| line.root.0 != b"/");
    let mut why = String::from("the volume is not in the mount table");
    for line in points {
        let mount = line.mount.point.as_path();
        // Read before the definition: if the volume changes in between, the next check reads both again.
        let graph = graph(mount);
        let file = mount.join(ACTIVE).join("volfile");
        match std::fs::read_to_string(&file) {
            Ok(text) => match volfile::parse(&text) {
                Some(definition) => {
                    let bricks = Bricks::new(&definition, mount);
                    return Ok(GlusterConnections { definition, bricks, mount: mount.into(), graph });
                }
                None => why = format!("{} lists no bricks", file.display()),
            },
            Err(e) => why = format!("cannot read the volume's definition {}: {e}", file.display()),
        }
    }
    Err(why)
}

/// Returns the name of the mount's active graph, such as `n1-237-2026-11-25-04:42:16.145276 +0000`.
fn graph(mount: &Path) -> Option<PathBuf> {
    std::fs::read_link(mount.join(ACTIVE)).ok()
}

/// Returns the file's path from the volume's root, with a leading slash.
fn below(lines: &[MountLine], path: &Path) -> Option<Vec<u8>> {
    let real = path.canonicalize().ok()?;
    let line = holding(lines, &real)?;
    let mut whole = PathBuf::from("/");
    for part in [folder_of(&line.mount.source.0), &line.root.0] {
        whole.push(Path::new(std::ffi::OsStr::from_bytes(part)).strip_prefix("/").ok()?);
    }
    whole.push(real.strip_prefix(line.mount.point.as_path()).ok()?);
    Some(whole.into_os_string().into_encoded_bytes())
}

/// Returns `/folder` of a source `server:/volume/folder`; `/` if the whole volume is mounted.
fn folder_of(source: &[u8]) -> &[u8] {
    let after = source.iter().rposition(|b| *b == b':').map_or(source, |at| &source[at + 1..]);
    let volume = after.strip_prefix(b"/").unwrap_or(after);
    volume.iter().position(|b| *b == b'/').map_or(b"/", |at| &volume[at..])
}

fn explain(error: Errno) -> String {
    match error {
        Errno::ACCESS => "no permission to read it, which GlusterFS needs to report its place".into(),
        Errno::NOTCONN => "the bricks that hold it are down (gluster volume status)".into(),
        other => format!("GlusterFS did not report its place: {}", std::io::Error::from(other)),
    }
}

impl FileSystem for Gluster {
    fn fill(&self, LocateRequest { path, layout, .. }: &mut LocateRequest) {
        if layout.size == 0 {
            return;
        }
        let volume = self.volume();
        self.place(&volume, path, layout);
        // A file on a recently added brick has no place by the old definition, and its shards look like holes.
        let placed: u64 = layout.extents.iter().map(|extent| extent.length).sum();
        if (layout.reason.is_some() || placed < layout.size)
            && let Some(volume) = self.changed_since(&volume)
        {
            (layout.extents, layout.reason) = (Vec::new(), None);
            self.place(&volume, path, layout);
        }
    }

    fn spread(&self, folder: &Path) -> Option<Spread> {
        let below = below(&self.lines, folder)?;
        let volume = self.volume();
        let sets = whole_files(&volume.as_ref().as_ref().ok()?.definition)?;
        let below = PathBuf::from(std::ffi::OsString::from_vec(below));
        Some(Spread { below: below.strip_prefix("/").ok()?.into(), sets })
    }
}

/// Returns the sets of bricks of a volume that neither cuts its files nor disperses them. Arbiters are left out,
/// because they have names only.
fn whole_files(definition: &Definition) -> Option<Vec<Vec<(String, PathBuf)>>> {
    let disperses = |group: &BrickSet| matches!(group.sharing, Sharing::Disperse { .. });
    if definition.shard.is_some() || definition.groups.iter().any(disperses) {
        return None;
    }
    let place = |brick: &Brick| (brick.host.clone(), PathBuf::from(&brick.dir));
    let set = |group: &BrickSet| group.bricks.iter().filter(|brick| !brick.arbiter).map(place).collect();
    Some(definition.groups.iter().map(set).collect())
}

#[cfg(test)]
mod tests;
