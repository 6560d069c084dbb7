//! Queries the bricks themselves about a file, if the mount does not know its place.

use super::api::{BrickEntry, Connection};
use super::hash::Ranges;
use crate::volfile::{Brick, Definition, Sharing};
use homing_os::threads::lock;
use std::ffi::{CStr, CString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// GlusterFS's id of a file (GFID).
pub(super) type Id = [u8; 16];

/// The folder of shards below a volume's root; their names are the file's id and their number.
const SHARDS: &str = ".shard";

/// The place of a file, or of one of its shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ShardLocation {
    /// The number of the subvolume, and the numbers of its bricks that hold it.
    At(usize, Vec<usize>),
    /// On no brick: a hole.
    Nowhere,
    /// Some brick could not be queried, for this reason.
    Unknown(String),
}

/// Connections to a volume's bricks, each made at its first use.
pub(super) struct Bricks {
    /// A place where the volume is mounted.
    mount: PathBuf,
    connections: Vec<Vec<Mutex<Option<Arc<Connection>>>>>,
    shards: OnceLock<Ranges>,
}

impl Bricks {
    pub fn new(definition: &Definition, mount: &Path) -> Bricks {
        let group = |bricks: &Vec<Brick>| bricks.iter().map(|_| Mutex::default()).collect();
        let connections = definition.groups.iter().map(|g| group(&g.bricks)).collect();
        Bricks { mount: mount.to_path_buf(), connections, shards: OnceLock::new() }
    }

    /// Finds a file, or its first shard.
    pub fn file(&self, definition: &Definition, id: &Id) -> ShardLocation {
        self.search(definition, None, &|brick| brick.by_id(id, None).map(|(kept, _)| kept))
    }

    /// Returns an attribute of a file, from the first brick that has it.
    pub fn attribute(&self, definition: &Definition, id: &Id, name: &CStr) -> Option<Vec<u8>> {
        data(definition).find_map(|(group, brick)| {
            let (kept, value) = self.connection(definition, group, brick).ok()?.by_id(id, Some(name)).ok()?;
            (kept == BrickEntry::File && !value.is_empty()).then_some(value)
        })
    }

    /// Finds shard `number` of a file; the first one that is called a shard has number 1.
    pub fn shard(&self, definition: &Definition, id: &Id, number: u64) -> ShardLocation {
        let name = format!("{}.{number}", written(id));
        let path = CString::new(format!("/{SHARDS}/{name}")).unwrap_or_default();
        let first = self.shards.get_or_init(|| self.ranges(definition)).of(name.as_bytes());
        self.search(definition, first, &|brick| brick.at(&path))
    }

    fn ranges(&self, definition: &Definition) -> Ranges {
        let path = CString::new(format!("/{SHARDS}")).unwrap_or_default();
        let mut ranges = Ranges::default();
        let (mut asked, mut told) = (None, false);
        for (group, brick) in data(definition) {
            if asked == Some(group) && told {
                continue;
            }
            let value = self.connection(definition, group, brick).ok();
            let value = value.and_then(|brick| brick.attribute(&path, c"trusted.glusterfs.dht"));
            (asked, told) = (Some(group), value.is_some());
            ranges.add(group, &value.unwrap_or_default());
        }
        ranges
    }

    fn search(&self, definition: &Definition, first: Option<usize>, ask: BrickQuery) -> ShardLocation {
        let others = (0..definition.groups.len()).filter(|group| Some(*group) != first);
        let mut unknown = None;
        for group in first.into_iter().chain(others) {
            match self.group(definition, group, ask) {
                ShardLocation::Nowhere => {}
                ShardLocation::Unknown(why) => unknown = unknown.or(Some(why)),
                held => return held,
            }
        }
        unknown.map_or(ShardLocation::Nowhere, ShardLocation::Unknown)
    }

    fn group(&self, definition: &Definition, group: usize, ask: BrickQuery) -> ShardLocation {
        let (mut holding, mut answered, mut why) = (Vec::new(), 0, String::new());
        for (_, brick) in data(definition).filter(|(g, _)| *g == group) {
            let found = self.connection(definition, group, brick).and_then(|connection| {
                ask(&connection).map_err(|error| explain(&definition.groups[group].bricks[brick], &error))
            });
            match found {
                Ok(BrickEntry::File) => holding.push(brick),
                Ok(BrickEntry::Nothing) => answered += 1,
                Err(error) => why = error,
            }
        }
        if !holding.is_empty() {
            return ShardLocation::At(group, holding);
        }
        // A copy that lacks a file may wait for its healing, and a dispersed file needs most fragments.
        let bricks = data(definition).filter(|(g, _)| *g == group).count();
        let needed = match definition.groups[group].sharing {
            Sharing::Disperse { redundancy } => bricks.saturating_sub(redundancy),
            _ => bricks,
        };
        if answered >= needed { ShardLocation::Nowhere } else { ShardLocation::Unknown(why) }
    }

    fn connection(&self, definition: &Definition, group: usize, brick: usize) -> Result<Arc<Connection>, String> {
        let mut slot = lock(&self.connections[group][brick]);
        if let Some(connection) = &*slot {
            return Ok(connection.clone());
        }
        let defined = &definition.groups[group].bricks[brick];
        if !self.reached(defined) {
            return Err(format!("brick {}:{} is down", defined.host, defined.dir));
        }
        let connection =
            Connection::open(&defined.volfile).map_err(|e| format!("brick {}:{}: {e}", defined.host, defined.dir))?;
        Ok(slot.insert(Arc::new(connection)).clone())
    }

    /// Whether the mount is connected to the brick. A query to a host that is off would wait for minutes.
    fn reached(&self, brick: &Brick) -> bool {
        let told = std::fs::read_to_string(self.mount.join(".meta/graphs/active").join(&brick.client).join("private"));
        let down = |text: &str| text.lines().any(|l| l.split('=').map(str::trim).eq(["connected", "0"]));
        !told.is_ok_and(|text| down(&text))
    }
}

type BrickQuery<'a> = &'a dyn Fn(&Connection) -> io::Result<BrickEntry>;

/// Returns all bricks that hold data, with the numbers of their subvolumes.
fn data(definition: &Definition) -> impl Iterator<Item = (usize, usize)> {
    definition.groups.iter().enumerate().flat_map(|(group, defined)| {
        let holding = defined.bricks.iter().enumerate().filter(|(_, brick)| !brick.arbiter);
        holding.map(move |(brick, _)| (group, brick))
    })
}

fn explain(brick: &Brick, error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!("brick {}:{} refuses this user", brick.host, brick.dir),
        Some(libc::ENOTCONN) => format!("brick {}:{} is down", brick.host, brick.dir),
        _ => format!("brick {}:{}: {error}", brick.host, brick.dir),
    }
}

/// Formats an id as in names of shards: `1f8be953-57c0-409c-b1f9-d171b75ae4c0`.
fn written(id: &Id) -> String {
    let mut text: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    for at in [20, 16, 12, 8] {
        text.insert(at, '-');
    }
    text
}

/// Returns the id of a file on a mount.
pub(super) fn id_of(path: &Path) -> Result<Id, rustix::io::Errno> {
    let mut text = [0; 64];
    let length = rustix::fs::getxattr(path, c"glusterfs.gfid.string", &mut text[..])?;
    read(&text[..length]).ok_or(rustix::io::Errno::INVAL)
}

fn read(text: &[u8]) -> Option<Id> {
    let digits: Vec<u8> = text.iter().filter_map(|b| (*b as char).to_digit(16)).map(|d| d as u8).collect();
    let bytes: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_read_and_written() {
        let text = "1f8be953-57c0-409c-b1f9-d171b75ae4c0";
        assert_eq!(written(&read(format!("{text}\0").as_bytes()).unwrap()), text);
        assert_eq!(read(b"1f8be953"), None);
    }
}
