//! Settings of the cluster file about volumes, and about homes on one.

use homing_volume::{Danger, Spec, VolumeKind};
use serde::Deserialize;

/// `[up.volume.NAME]`: the arguments of `homing volume create`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeSection {
    /// File system: gluster, moosefs, nfs.
    pub kind: VolumeKind,
    /// Hosts and the folder of each that gives its space: `n[1-4]:/brick`, several separated by commas.
    pub hosts: String,
    /// Copies of each file.
    #[serde(default = "one")]
    pub copies: u32,
    /// Whether a third host keeps names alone (GlusterFS).
    #[serde(default)]
    pub arbiter: bool,
    /// Mount point (default: /NAME).
    pub mount: Option<String>,
    /// Hosts that mount it, as a node set (default: all of the cluster).
    pub clients: Option<String>,
    /// Host of the master (MooseFS; default: the first).
    pub master: Option<String>,
    /// Dangers that are accepted, by the options of `homing volume`.
    #[serde(default)]
    pub allow: Vec<String>,
}

/// `[up.homes]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Homes {
    /// The volume of `[up.volume.NAME]` whose folder `home` becomes /home of all hosts that mount it.
    pub volume: String,
    /// The host whose homes are copied there (default: the only one that has any).
    pub from: Option<String>,
}

fn one() -> u32 {
    1
}

/// A volume with the names of its hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteVolume {
    /// The volume as it is made.
    pub spec: Spec,
    /// The dangers that are accepted for it.
    pub allowed: Vec<Danger>,
    /// Whether this machine has a record of it: the rules of new volumes do not bind it any more.
    pub exists: bool,
}

impl VolumeSection {
    /// Returns the dangers by the names of their options; `Err` for an unknown name.
    pub fn allowed(&self) -> Result<Vec<Danger>, String> {
        const CREATE: [Danger; 5] = [
            Danger::SystemDisk,
            Danger::CopiesOnOneHost,
            Danger::MountOverFiles,
            Danger::StoreInUse,
            Danger::HangingWrites,
        ];
        let named = |word: &String| {
            let found = CREATE.into_iter().find(|danger| danger.flag().trim_start_matches('-') == word);
            found.ok_or_else(|| {
                let known = CREATE.map(|danger| danger.flag().trim_start_matches('-'));
                format!("allow = {word:?} is not one of {}", known.join(", "))
            })
        };
        self.allow.iter().map(named).collect()
    }
}
