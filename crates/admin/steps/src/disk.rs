//! Disks as hosts tell of them: what stands against making a file system on one, and what one of homing's is.
//!
//! A whole disk is given to a file system, without a table of partitions: that would be one more thing that can be half
//! made, and a second one to be made larger when the disk is. Its UUID is not chance but made of the names of the host
//! and the disk, so that it is known before the disk is touched, and a file system that has it is homing's.

use crate::content::Content;
use sha2::{Digest, Sha256};

/// A disk that was asked for, as `disk_facts` tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disk {
    /// The kernel's path of it now.
    pub node: String,
    /// What its maker calls it, or what is behind it; empty where nothing tells it from others.
    pub id: String,
    /// As its maker has it.
    pub model: String,
    /// Its size.
    pub bytes: u64,
    /// Why it can be given no file system, whatever it holds.
    pub unfit: Vec<String>,
    /// The root file system lies on it.
    pub is_root: bool,
    /// Who has it, or a part of it.
    pub uses: Vec<String>,
    /// What says of itself what it is: type, where, and the UUID of a file system.
    pub signs: Vec<(String, String, String)>,
    /// Bytes that are not zero and say nothing of themselves, and where.
    pub data: Vec<String>,
    /// File systems of homing's that were begun on it and have not come to their end.
    pub begun: Vec<String>,
    /// Its file system holds no files.
    pub is_empty: bool,
    /// SHA-256 of all that was told.
    pub facts: String,
}

impl Disk {
    /// What the probe printed; `None` where there is no disk.
    pub(crate) fn read(text: &str) -> Option<Disk> {
        let mut disk = Disk { facts: Content::from(text).hash(), ..Disk::default() };
        for line in text.lines() {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            match key {
                "node" => disk.node = value.into(),
                "id" => disk.id = value.into(),
                "model" => disk.model = value.trim().into(),
                "bytes" => disk.bytes = value.parse().ok()?,
                "not" => disk.unfit.push(format!("it is not {value}")),
                "unread" => disk.unfit.push(format!("{value} cannot be read, and nobody knows what it holds")),
                "root" => disk.is_root = true,
                "use" => disk.uses.push(value.into()),
                "sign" => {
                    let mut words = value.splitn(3, ' ').map(String::from);
                    let sign = (words.next()?, words.next()?, words.next().unwrap_or_default());
                    // Of a table or a pool there are several.
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

    /// UUID of the file system that homing makes on it for a host; `name` stands for a disk that has no name of its own.
    pub fn uuid(&self, host: &str, name: &str) -> String {
        let of = if self.id.is_empty() { name } else { &self.id };
        let mut bytes = Sha256::digest(format!("homing disk\n{host}\n{of}"));
        // Version 8, which is anybody's own way to make one, and the variant of RFC 9562.
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex: String = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// The file system with this UUID is there.
    pub fn has(&self, uuid: &str) -> bool {
        self.signs.iter().any(|(_, _, there)| there == uuid)
    }

    /// Where it is mounted.
    pub fn mounted_at(&self) -> impl Iterator<Item = &str> {
        self.uses.iter().filter_map(|used| used.strip_prefix("mounted at "))
    }

    /// It was begun and is not whole: nobody can have used it yet.
    pub(crate) fn is_half_made(&self, uuid: &str) -> bool {
        let own = |(_, _, there): &(String, String, String)| there == uuid && self.is_empty;
        self.uses.is_empty() && self.begun.iter().any(|begun| begun == uuid) && self.signs.iter().all(own)
    }

    /// What it holds, as people call it.
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

    /// What no word in any file can set aside.
    fn never(&self) -> Vec<String> {
        let mut why = self.unfit.clone();
        if self.is_root {
            why.push("the root file system lies on it, and it is never written to".into());
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
                vec![format!("it holds {holds}, and wipe names {serial:?}, which is not this one")]
            }
            None if self.id.is_empty() => vec![format!(
                "it holds {holds}, and without a serial number it cannot be said for certain that it is meant: \
                 look at it, and if all of it may go: blkdiscard -z {0} there",
                self.node
            )],
            None => vec![format!("it holds {holds}; if all of that may go: wipe = {:?} for this host", self.id)],
        }
    }
}
