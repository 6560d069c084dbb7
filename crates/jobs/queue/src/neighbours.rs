//! Publishes the state of each runner of a machine in one short record. Thus a runner needs not read the jobs of
//! other users to know whose turn it is.

use crate::files::{self, read_short, write_json_soon};
use crate::places::Places;
use crate::plan::Standing;
use crate::process::ProcessIdentity;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The longest record of another user that is read, bytes: a standing of some hundred hosts.
const LONGEST: u64 = 64 << 10;
/// Its name, in the user's own folder.
const NAME: &str = "runner.json";

/// The content of `runner.json`: the process of a user's runner, and the user's standing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Presence {
    #[serde(flatten)]
    process: ProcessIdentity,
    /// The standing on each host.
    #[serde(default)]
    pub hosts: Vec<Standing>,
    /// Storage servers that serve as many as may use them, each with its users.
    #[serde(default)]
    pub full: BTreeMap<String, String>,
}

impl Presence {
    /// Makes the record of this process.
    pub fn own(hosts: Vec<Standing>, full: BTreeMap<String, String>) -> Presence {
        Presence { process: ProcessIdentity::own(), hosts, full }
    }

    /// Returns the record of a user's runner, alive or not.
    pub fn of(places: &Places, uid: u32) -> Option<Presence> {
        let read = read_short::<Presence>(&places.of(uid).join(NAME), LONGEST);
        read.filter(|(_, owner)| *owner == uid).map(|(presence, _)| presence)
    }

    /// Returns the number of that runner's process.
    pub fn pid(&self) -> u32 {
        self.process.pid
    }

    /// Whether that runner is at work.
    pub fn is_alive(&self, boot_id: &str) -> bool {
        self.process.is_alive(boot_id)
    }

    /// Publishes it to the other runners.
    pub fn publish(&self, own: &Path) -> std::io::Result<()> {
        write_json_soon(&own.join(NAME), self, 0o644).map(drop)
    }
}

/// The other users' records of the last look; an unchanged file is not read again.
#[derive(Default)]
pub(crate) struct Neighbours {
    known: HashMap<u32, (RecordStamp, Presence)>,
}

/// Inode and time of a record, which is a new file each time.
type RecordStamp = (u64, i64, i64);

impl Neighbours {
    /// Returns the records of `users` whose runner lives, without this user.
    pub fn look(&mut self, places: &Places, users: &[u32]) -> Vec<(u32, &Presence)> {
        let boot = files::boot_id();
        self.known.retain(|uid, _| users.contains(uid));
        for uid in users.iter().filter(|uid| **uid != files::uid()) {
            let stamp =
                fs::symlink_metadata(places.of(*uid).join(NAME)).ok().map(|m| (m.ino(), m.mtime(), m.mtime_nsec()));
            if stamp.is_some() && stamp == self.known.get(uid).map(|(stamp, _)| *stamp) {
                continue;
            }
            match (stamp, Presence::of(places, *uid)) {
                (Some(stamp), Some(presence)) => drop(self.known.insert(*uid, (stamp, presence))),
                _ => drop(self.known.remove(uid)),
            }
        }
        let alive = self.known.iter().filter(|(_, (_, p))| p.is_alive(&boot));
        alive.map(|(uid, (_, presence))| (*uid, presence)).collect()
    }
}
