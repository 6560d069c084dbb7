//! Settings of the cluster file about volumes, and about homes on one.

use crate::texts::texts;
use homing_volume::{Danger, ExportOptions, Spec, VolumeKind, read_option};
use serde::Deserialize;
use std::collections::BTreeMap;

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
    /// Options of the file system by name (GlusterFS).
    #[serde(default, deserialize_with = "texts")]
    pub option: BTreeMap<String, String>,
    /// The way in which it is exported (NFS).
    #[serde(default)]
    pub export: ExportOptions,
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
    /// Returns the options of the file system; `Err` for one that no volume can have.
    pub fn options(&self) -> Result<BTreeMap<String, String>, String> {
        let read = |(key, value): (&String, &String)| {
            let (key, value) = read_option(&format!("{key}={value}"))?;
            Ok((key.clone(), value.ok_or_else(|| format!("option {key} has no value"))?))
        };
        self.option.iter().map(read).collect()
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use homing_volume::Squash;

    fn section(more: &str) -> Result<VolumeSection, String> {
        toml::from_str(&format!("kind = \"nfs\"\nhosts = \"n1:/export\"\n{more}")).map_err(|e| e.to_string())
    }

    #[test]
    fn options_and_exports_are_read_by_their_keys() {
        let all = section("option = { \"performance.io-thread-count\" = 8, \"auth.allow\" = \"n1\" }").unwrap();
        assert_eq!(all.options().unwrap()["performance.io-thread-count"], "8");
        let refused = |line: &str| section(line).unwrap().options().unwrap_err();
        assert!(refused("option = { \"features.shard\" = \"on\" }").contains("use --stripe"));
        assert!(refused("option = { \"auth.allow\" = \"\" }").contains("has no value"));
        let export = "export = { squash = \"all\", anonuid = 2001, sec = \"krb5\", clients = [\"10.1.0.0/24\"] }";
        let export = section(export).unwrap().export;
        assert_eq!((export.squash, export.anonuid, export.clients.len()), (Squash::All, Some(2001), 1));
        assert!(section("export = { squash = \"some\" }").is_err());
        assert!(section("export = { async = true }").unwrap_err().contains("unknown field `async`"));
    }
}
