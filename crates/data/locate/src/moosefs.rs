//! MooseFS: the master knows the chunkservers of each chunk, and every mount passes queries on to it. If that fails,
//! `mfsfileinfo` is used.

mod fileinfo;
mod master;

use crate::{FileSystem, LocateRequest};
use homing_model::{Extent, FileLayout, Replica};
use homing_mounts::MountLine;
use homing_os::threads::lock;
use master::{ChunkState, Connection, CopyState, Door};
use std::net::Ipv4Addr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Mutex;

/// Length of a chunk, bytes (MFSCHUNKSIZE; the same in every MooseFS).
const CHUNK: u64 = 64 << 20;

pub(crate) struct Moose {
    points: Vec<PathBuf>,
    /// Connections that are not in use.
    idle: Mutex<Vec<Connection>>,
}

impl Moose {
    /// `lines` are all places where this mount is visible here.
    pub fn new(lines: &[MountLine]) -> Moose {
        let points = lines.iter().map(|line| line.mount.point.to_path()).collect();
        Moose { points, idle: Mutex::default() }
    }

    fn door(&self) -> Result<Door, String> {
        let mut why = String::from("the volume is not in the mount table");
        for point in &self.points {
            match Door::at(point) {
                Ok(door) => return Ok(door),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// Queries the master, and retries by a new connection if a kept one fails.
    fn chunks(&self, asks: &[(u32, u32)]) -> Result<Vec<ChunkState>, String> {
        let kept = lock(&self.idle).pop();
        if let Some(connection) = kept
            && let Ok(chunks) = self.chunks_by(connection, asks)
        {
            return Ok(chunks);
        }
        let door = self.door()?;
        let told = door.open().and_then(|connection| self.chunks_by(connection, asks));
        told.map_err(|e| format!("the MooseFS mount did not forward the query to its master ({e})"))
    }

    fn chunks_by(&self, mut connection: Connection, asks: &[(u32, u32)]) -> std::io::Result<Vec<ChunkState>> {
        let chunks = connection.check(asks)?;
        lock(&self.idle).push(connection);
        Ok(chunks)
    }
}

impl FileSystem for Moose {
    fn fill(&self, file: &mut LocateRequest) {
        self.fill_all(std::slice::from_mut(file));
    }

    fn fill_all(&self, files: &mut [LocateRequest]) {
        let count = |file: &LocateRequest| file.layout.size.div_ceil(CHUNK) as u32;
        // An inode of MooseFS has 32 bits.
        let asks: Vec<(u32, u32)> =
            files.iter().flat_map(|f| (0..count(f)).map(|index| (f.meta.ino() as u32, index))).collect();
        match self.chunks(&asks) {
            Ok(chunks) => {
                let mut chunks = chunks.into_iter();
                for file in files {
                    let own: Vec<ChunkState> = chunks.by_ref().take(count(file) as usize).collect();
                    place(&own, &mut file.layout);
                }
            }
            Err(why) => {
                for file in files.iter_mut().filter(|f| f.layout.size > 0) {
                    match fileinfo::chunks(&file.path) {
                        Ok(chunks) => place(&chunks, &mut file.layout),
                        Err(other) => file.layout.reason = Some(format!("{why}; {other}")),
                    }
                }
            }
        }
    }
}

/// Turns chunks, in order, into extents; neighbours on the same hosts are one extent.
fn place(chunks: &[ChunkState], layout: &mut FileLayout) {
    let (mut holes, mut lost) = (0, Vec::new());
    for (index, offset) in (0..layout.size).step_by(CHUNK as usize).enumerate() {
        let length = CHUNK.min(layout.size - offset);
        match chunks.get(index) {
            Some(ChunkState::Empty) => holes += length,
            Some(ChunkState::Copies(copies)) => match hosts(copies) {
                hosts if hosts.is_empty() => lost.push(index),
                hosts => layout.push(Extent { offset, length, replicas: hosts }),
            },
            Some(ChunkState::Refused(why)) => {
                return layout.reason = Some(format!("the MooseFS master answered: {why}"));
            }
            None => {
                return layout.reason = Some("MooseFS reported fewer chunks than the size of the file needs".into());
            }
        }
    }
    layout.reason = match (&lost[..], holes) {
        ([], 0) => None,
        ([], holes) => Some(format!("{holes} bytes of it are a hole and are on no host")),
        (lost, _) => {
            let list: Vec<String> = lost.iter().take(8).map(usize::to_string).collect();
            Some(format!(
                "no chunkserver that is up holds a valid copy of {} of its chunks ({}{}); mfsfileinfo shows them",
                lost.len(),
                list.join(", "),
                if lost.len() > list.len() { ", ..." } else { "" }
            ))
        }
    };
}

/// Returns the hosts of valid copies. A copy that is marked for removal can be read like any other. It counts only if
/// there are no others, because it will soon be gone.
fn hosts(copies: &[(Ipv4Addr, CopyState)]) -> Vec<Replica> {
    let of = |state: CopyState| {
        let mut hosts: Vec<Ipv4Addr> = copies.iter().filter(|(_, s)| *s == state).map(|(ip, _)| *ip).collect();
        hosts.sort_unstable();
        // Several chunkservers may run on one host.
        hosts.dedup();
        hosts
    };
    let mut found = of(CopyState::Valid);
    if found.is_empty() {
        found = of(CopyState::Leaving);
    }
    found.into_iter().map(|ip| Replica { host: ip.to_string(), share: 1.0 }).collect()
}

#[cfg(test)]
mod tests;
