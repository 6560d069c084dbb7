//! Facts of hosts about their disks: objections to a file system on a disk, and how homing recognizes its own.
//!
//! A whole disk gets a file system, without a table of partitions. A table is one more thing that can be incomplete,
//! and a second one to extend when the disk grows. The UUID is not random but derived from the names of the host and
//! the disk: it is known before the disk is written. A file system with it is homing's.

use crate::content::FileContent;
use sha2::{Digest, Sha256};

/// A queried disk, as `disk_facts` reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskFacts {
    /// The kernel's present path of it.
    pub node: String,
    /// The maker's identifier of it, or of the device behind it; empty if nothing distinguishes it from others.
    pub id: String,
    /// The maker's model name.
    pub model: String,
    /// Its size.
    pub bytes: u64,
    /// Reasons why it can get no file system, whatever it holds.
    pub unfit: Vec<String>,
    /// Whether the root file system is on it.
    pub is_root: bool,
    /// Users of the disk or of a part of it.
    pub uses: Vec<String>,
    /// Signatures on it: type, device, and the UUID of a file system.
    pub signs: Vec<(String, String, String)>,
    /// Bytes that are not zero and have no known signature, with their place.
    pub data: Vec<String>,
    /// File systems of homing that were begun on it and are incomplete.
    pub begun: Vec<String>,
    /// Whether its file system holds no files.
    pub is_empty: bool,
    /// SHA-256 of all reported facts.
    pub facts: String,
}

impl DiskFacts {
    /// Reads the output of the probe; `None` if there is no disk.
    pub(crate) fn read(text: &str) -> Option<DiskFacts> {
        let mut disk = DiskFacts { facts: FileContent::from(text).hash(), ..DiskFacts::default() };
        for line in text.lines() {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            match key {
                "node" => disk.node = value.into(),
                "id" => disk.id = value.into(),
                "model" => disk.model = value.trim().into(),
                "bytes" => disk.bytes = value.parse().ok()?,
                "not" => disk.unfit.push(format!("it is not {value}")),
                "unread" => disk.unfit.push(format!("{value} cannot be read, so its content is unknown")),
                "root" => disk.is_root = true,
                "use" => disk.uses.push(value.into()),
                "sign" => {
                    let mut words = value.splitn(3, ' ').map(String::from);
                    let sign = (words.next()?, words.next()?, words.next().unwrap_or_default());
                    // A table or a pool may have several signatures.
                    if !disk.signs.iter().any(|(kind, on, _)| (kind, on) == (&sign.0, &sign.1)) {
                        disk.signs.push(sign);
                    }
                }
                "data" => disk.data.push(format!("bytes {value} that are not zero")),
                "hidden" => disk.data.push(value.into()),
                "begun" => disk.begun.push(value.into()),
                "empty" => disk.is_empty = true,
                _ => {}
            }
        }
        (!disk.node.is_empty()).then_some(disk)
    }

    /// Returns the UUID of the file system that homing makes on it for a host. `name` is used if the disk has no
    /// identifier.
    pub fn uuid(&self, host: &str, name: &str) -> String {
        let of = if self.id.is_empty() { name } else { &self.id };
        let mut bytes = Sha256::digest(format!("homing disk\n{host}\n{of}"));
        // Version 8, which is free for custom schemes, and the variant of RFC 9562.
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex: String = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// Whether it has the file system with this UUID.
    pub fn has(&self, uuid: &str) -> bool {
        self.signs.iter().any(|(_, _, there)| there == uuid)
    }

    /// Returns its mount points.
    pub fn mounted_at(&self) -> impl Iterator<Item = &str> {
        self.uses.iter().filter_map(|used| used.strip_prefix("mounted at "))
    }

    /// Whether a file system was begun on it and is incomplete: no process can have used it yet.
    pub(crate) fn is_half_made(&self, uuid: &str) -> bool {
        let own = |(_, _, there): &(String, String, String)| there == uuid && self.is_empty;
        self.uses.is_empty() && self.begun.iter().any(|begun| begun == uuid) && self.signs.iter().all(own)
    }

    /// Describes its content in common terms.
    pub fn holds(&self) -> String {
        let sign = |(kind, on, _): &(String, String, String)| {
            if *on == self.node { kind.clone() } else { format!("{kind} on {on}") }
        };
        self.signs.iter().map(sign).chain(self.data.clone()).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn described(&self) -> String {
        let model = if self.model.is_empty() { String::new() } else { format!("{}, ", self.model) };
        let id = if self.id.is_empty() { "without a serial number" } else { &self.id };
        format!("{model}{}, {id}", homing_model::units::bytes(self.bytes))
    }

    /// Returns the objections that no configuration can lift.
    fn never(&self) -> Vec<String> {
        let mut why = self.unfit.clone();
        if self.is_root {
            why.push("it holds the root file system, and homing never writes to such a disk".into());
        }
        if !self.uses.is_empty() {
            why.push(format!("it is in use ({})", self.uses.join(", ")));
        }
        why
    }

    pub(crate) fn against(&self, uuid: &str, wipe: Option<&str>) -> Vec<String> {
        let why = self.never();
        let holds = self.holds();
        if !why.is_empty() || holds.is_empty() || self.is_half_made(uuid) {
            return why;
        }
        match wipe {
            Some(serial) if !serial.is_empty() && serial == self.id => Vec::new(),
            Some(serial) => {
                vec![format!("it holds {holds}, and wipe names {serial:?}, which is another disk")]
            }
            None if self.id.is_empty() => vec![format!(
                "it holds {holds}, and has no serial number that wipe could name: check its content, and to erase all of \
                 it, run there: blkdiscard -z {0}",
                self.node.replace(',', "; blkdiscard -z ")
            )],
            None => vec![format!("it holds {holds}; to erase all of that, set wipe = {:?} for this host", self.id)],
        }
    }
}
