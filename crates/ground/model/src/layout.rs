//! Where the bytes of a file lie, as its file system reports it.

use crate::RawText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One copy (or, on a dispersed volume, one fragment) of an extent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replica {
    /// The storage host, as the volume's own definition names it.
    pub host: String,
    /// The part of the extent's bytes that this host can serve by itself:
    /// 1 for a full copy, 1/(bricks - redundancy) for a dispersed fragment.
    #[serde(default = "whole", skip_serializing_if = "is_whole")]
    pub share: f64,
}

fn whole() -> f64 {
    1.0
}
fn is_whole(share: &f64) -> bool {
    *share == 1.0
}

/// A run of bytes whose copies lie on the same hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Extent {
    /// First byte in the file.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// The hosts that hold it, in no particular order.
    pub replicas: Vec<Replica>,
}

/// The layout of one file. A file that could not be placed has `reason` set and no extents, because homing never
/// guesses a place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileLayout {
    /// The requested path.
    pub path: RawText,
    /// Size in bytes.
    pub size: u64,
    /// The volume, e.g. `gluster:n1/data`, `nfs:nas:/export`, `local:/dev/sda1`.
    pub volume: String,
    /// In order of offset. Empty for an empty file.
    pub extents: Vec<Extent>,
    /// Why the file (or the rest of it) could not be placed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether its file system answered that there is no such file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
    /// For network file systems with one server: the path of this file there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_path: Option<RawText>,
}

impl FileLayout {
    /// Adds an extent behind all others. If it continues the last one on the same hosts, it extends that one.
    pub fn push(&mut self, next: Extent) {
        match self.extents.last_mut() {
            Some(last) if last.offset + last.length == next.offset && last.replicas == next.replicas => {
                last.length += next.length
            }
            _ => self.extents.push(next),
        }
    }

    /// Returns the bytes that each host can serve from its own disks.
    pub fn bytes_per_host(&self) -> BTreeMap<String, u64> {
        let mut sum: BTreeMap<String, f64> = BTreeMap::new();
        for e in &self.extents {
            for r in &e.replicas {
                *sum.entry(r.host.clone()).or_default() += e.length as f64 * r.share;
            }
        }
        sum.into_iter().map(|(h, b)| (h, b as u64)).collect()
    }
}
