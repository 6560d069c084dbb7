//! The specification of a volume.

use crate::export::ExportOptions;
use homing_model::folders;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The file system of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VolumeKind {
    /// GlusterFS: distributed, replicated, with sharding.
    Gluster,
    /// MooseFS 3: a master, chunkservers, a goal for each file.
    Moosefs,
    /// A directory of one host, exported by the kernel's NFS server.
    Nfs,
}

impl VolumeKind {
    /// Returns the settings that a user changes in place of GlusterFS's options.
    pub fn options_instead(self) -> &'static str {
        match self {
            VolumeKind::Gluster => "homing volume set-option NAME KEY=VALUE",
            VolumeKind::Moosefs => {
                "MooseFS has lines of /etc/mfs/mfsmaster.cfg, mfschunkserver.cfg and mfsmount.cfg on its hosts; \
                 homing volume set-copies sets its goals"
            }
            VolumeKind::Nfs => "NFS has --export-option, and homing bench volume --tune nfs for its clients",
        }
    }

    /// Returns the setting that decides who may mount a volume of this kind.
    fn who_may_mount(self) -> &'static str {
        match self {
            VolumeKind::Gluster => "has --option auth.allow=ADDRESSES and server.root-squash=on",
            VolumeKind::Moosefs => "has /etc/mfs/mfsexports.cfg on its master",
            VolumeKind::Nfs => "has --export-option",
        }
    }
}

impl fmt::Display for VolumeKind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            VolumeKind::Gluster => "gluster",
            VolumeKind::Moosefs => "moosefs",
            VolumeKind::Nfs => "nfs",
        })
    }
}

impl FromStr for VolumeKind {
    type Err = String;
    fn from_str(s: &str) -> Result<VolumeKind, String> {
        match s {
            "gluster" | "glusterfs" => Ok(VolumeKind::Gluster),
            "moosefs" | "mfs" => Ok(VolumeKind::Moosefs),
            "nfs" => Ok(VolumeKind::Nfs),
            "ceph" | "cephfs" => {
                Err("homing makes no volumes of CephFS: `cephadm` and `ceph config set` make and set \
                                      them, [up.mount] mounts one; homing makes gluster, moosefs and nfs"
                    .into())
            }
            _ => Err(format!("unknown kind {s:?}: use gluster, moosefs or nfs")),
        }
    }
}

/// A directory of a host that gives its space.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StorageFolder {
    /// Host name.
    pub host: String,
    /// Absolute path there. A volume uses the folder of its own name in it.
    pub path: String,
}

/// The wanted state of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Its name.
    pub name: String,
    /// Its file system.
    pub kind: VolumeKind,
    /// Folders with its bytes.
    pub places: Vec<StorageFolder>,
    /// Copies of each file: GlusterFS's replica count, MooseFS's goal.
    pub copies: u32,
    /// Whether a third host keeps names but no bytes, to prevent that two copies disagree (GlusterFS).
    #[serde(default)]
    pub arbiter: bool,
    /// Size of the pieces that files are cut into, bytes (GlusterFS's shards).
    #[serde(default)]
    pub stripe: Option<u64>,
    /// Mount point on all clients.
    pub mount: String,
    /// Hosts that mount it.
    pub clients: Vec<String>,
    /// Host of the MooseFS master.
    #[serde(default)]
    pub master: Option<String>,
    /// Options of the file system that the user wants, by name (GlusterFS).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// The way in which it is exported (NFS).
    #[serde(default, skip_serializing_if = "ExportOptions::is_default")]
    pub export: ExportOptions,
}

/// Changes of options by name; `None` resets an option to its default.
pub type OptionChanges = BTreeMap<String, Option<String>>;

/// Options that other settings of a volume own, with the command for each.
const OWNED: [(&str, &str); 2] = [
    ("features.shard", "use --stripe SIZE, or homing volume set-stripe"),
    ("features.shard-block-size", "use --stripe SIZE, or homing volume set-stripe"),
];

/// Reads `KEY=VALUE`; `KEY=` resets an option.
pub fn read_option(text: &str) -> Result<(String, Option<String>), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not an option, KEY=VALUE"))?;
    let (key, value) = (key.trim(), value.trim());
    option_fault(key, value).map_or_else(|| Ok((key.into(), (!value.is_empty()).then(|| value.into()))), Err)
}

/// Returns why no option can have this name or value.
fn option_fault(key: &str, value: &str) -> Option<String> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    if key.is_empty() || key.starts_with('-') || !key.bytes().all(fits) {
        return Some(format!("option {key:?}: a name has letters, digits, - _ and ."));
    }
    if value.starts_with('-') || value.contains(char::is_control) {
        return Some(format!("option {key}: the value {value:?} begins with - or has more than one line"));
    }
    let owner = OWNED.iter().find(|(owned, _)| *owned == key);
    owner.map(|(_, instead)| format!("option {key} is not accepted here: {instead}"))
}

/// A specification that is impossible.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct SpecError(pub String);

fn no<T>(text: String) -> Result<T, SpecError> {
    Err(SpecError(text))
}

/// Whether a text is safe in configuration files: paths and names are written to files whose readers know no quoting.
fn plain(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b))
}

/// Refuses a path that is not absolute or has characters that fstab and exports would misread.
pub fn check_path(path: &str) -> Result<(), SpecError> {
    let parts_fit = path.split('/').skip(1).all(|p| !p.is_empty() && p != "." && p != "..");
    if !path.starts_with('/') || path.len() < 2 || !plain(path) || !parts_fit {
        return no(format!("{path:?} is not accepted: write an absolute path of letters, digits, - _ . and /"));
    }
    Ok(())
}

impl Spec {
    /// Returns the volume's own folder in a place.
    pub fn store(&self, place: &StorageFolder) -> String {
        format!("{}/{}", place.path, self.name)
    }

    /// Whether the volume has all that `wanted` has.
    pub fn covers(&self, wanted: &Spec) -> bool {
        let places = self.places.len() == wanted.places.len() && wanted.places.iter().all(|p| self.places.contains(p));
        let settings = self.lacking_options(wanted).is_empty() && self.export == wanted.export;
        settings && places && wanted.clients.iter().all(|client| self.clients.contains(client))
    }

    /// Returns the wanted options that it does not have, or has with another value.
    pub fn lacking_options(&self, wanted: &Spec) -> OptionChanges {
        let lacking = wanted.options.iter().filter(|(key, value)| self.options.get(*key) != Some(value));
        lacking.map(|(key, value)| (key.clone(), Some(value.clone()))).collect()
    }

    /// Returns the wanted places that it does not have. The error names places or settings of it that are not wanted,
    /// which no command removes.
    pub fn lacks(&self, wanted: &Spec) -> Result<Vec<StorageFolder>, String> {
        let gone = self.places.iter().filter(|p| !wanted.places.contains(p));
        let gone: Vec<String> = gone.map(|p| format!("{}:{}", p.host, p.path)).collect();
        let same = self.kind == wanted.kind && self.copies == wanted.copies && self.mount == wanted.mount;
        match (gone.is_empty(), same) {
            (true, true) => Ok(wanted.places.iter().filter(|place| !self.places.contains(place)).cloned().collect()),
            (true, false) => Err("has other settings".into()),
            (false, _) => Err(format!("also has {}", gone.join(", "))),
        }
    }

    /// Returns the hosts of places and clients, each once, servers first.
    pub fn hosts(&self) -> Vec<String> {
        let mut hosts: Vec<String> = Vec::new();
        let all = self.places.iter().map(|p| &p.host).chain(self.master.iter()).chain(&self.clients);
        for host in all {
            if !hosts.contains(host) {
                hosts.push(host.clone());
            }
        }
        hosts
    }

    /// Returns the hosts that give space, each once.
    pub fn servers(&self) -> Vec<String> {
        let mut hosts: Vec<String> = Vec::new();
        for place in &self.places {
            if !hosts.contains(&place.host) {
                hosts.push(place.host.clone());
            }
        }
        hosts
    }

    /// Returns the host of the MooseFS master: the given one, else the first.
    pub fn master(&self) -> &str {
        self.master.as_deref().or(self.places.first().map(|p| p.host.as_str())).unwrap_or("")
    }

    /// Refuses impossible specifications before any host is queried.
    pub fn check(&self) -> Result<(), SpecError> {
        self.check_existing()?;
        if self.kind == VolumeKind::Gluster { self.check_sets() } else { Ok(()) }
    }

    /// Refuses specifications that no volume can have. GlusterFS's rule on the number of places is one for new volumes.
    /// A volume that hosts have left keeps several folders on one of the others.
    pub fn check_existing(&self) -> Result<(), SpecError> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if self.name.is_empty() || self.name.len() > 64 || self.name.starts_with('-') || !self.name.bytes().all(fits) {
            return no(format!("{:?} is not a volume name: use up to 64 letters, digits, - and _", self.name));
        }
        if self.kind == VolumeKind::Gluster && matches!(self.name.as_str(), "all" | "volume") {
            return no(format!("GlusterFS reserves the name {:?}", self.name));
        }
        check_path(&self.mount)?;
        if let Some(why) = folders::system_folder(&self.mount) {
            return no(format!("{:?} cannot be the mount point of a volume: {why}", self.mount));
        }
        self.places.iter().try_for_each(|p| check_path(&p.path))?;
        if self.places.is_empty() {
            return no("a volume needs at least one host: --hosts 'n[1-4]:/brick'".into());
        }
        if let Some(p) = self.places.iter().find(|p| self.places.iter().filter(|q| q == p).count() > 1) {
            return no(format!("{}:{} is named twice", p.host, p.path));
        }
        self.check_kind()?;
        match self.kind {
            VolumeKind::Gluster => self.check_gluster(),
            VolumeKind::Moosefs => self.check_moosefs(),
            VolumeKind::Nfs => self.check_nfs(),
        }
    }

    fn check_sets(&self) -> Result<(), SpecError> {
        let (copies, places) = (self.copies as usize, self.places.len());
        if copies == 0 || places % copies != 0 {
            return no(format!(
                "{copies} copies need a multiple of {copies} folders, not {places}. Files are spread over sets of {copies}: \
                 give each host more folders (--hosts NODESET:/brick/a --hosts NODESET:/brick/b), or name other hosts"
            ));
        }
        Ok(())
    }

    fn check_gluster(&self) -> Result<(), SpecError> {
        if self.arbiter && (self.copies != 2 || self.servers().len() < 3) {
            return no("an arbiter needs 2 copies, and a third host for itself".into());
        }
        if self.stripe.is_some_and(|s| !(4 << 20..=4 << 40).contains(&s) || s % 512 != 0) {
            return no("GlusterFS accepts shards of 4M to 4T, in multiples of 512 bytes".into());
        }
        Ok(())
    }

    /// Refuses options of another kind of volume.
    fn check_kind(&self) -> Result<(), SpecError> {
        if self.arbiter && self.kind != VolumeKind::Gluster {
            return no(
                "only GlusterFS has an arbiter (--arbiter); MooseFS with --copies 3 has three whole copies".into()
            );
        }
        if self.master.is_some() && self.kind != VolumeKind::Moosefs {
            return no("only MooseFS has a master (--master)".into());
        }
        self.check_options()?;
        if !self.export.is_default() && self.kind != VolumeKind::Nfs {
            return no(format!("only NFS has export options; {} {}", self.kind, self.kind.who_may_mount()));
        }
        self.export.fault().map_or(Ok(()), |why| no(format!("export: {why}")))
    }

    /// Refuses options of the file system that it cannot have, by name.
    fn check_options(&self) -> Result<(), SpecError> {
        let Some(key) = self.options.keys().next() else { return Ok(()) };
        if self.kind != VolumeKind::Gluster {
            return no(format!("option {key}: only GlusterFS has such options; {}", self.kind.options_instead()));
        }
        let fault = self.options.iter().find_map(|(key, value)| option_fault(key, value));
        fault.map_or(Ok(()), no)
    }

    fn check_moosefs(&self) -> Result<(), SpecError> {
        if self.stripe.is_some() {
            return no("MooseFS always cuts files into chunks of 64 MiB; --stripe cannot change that".into());
        }
        if !(1..=9).contains(&self.copies) {
            return no(format!("MooseFS accepts goals from 1 to 9, not {}", self.copies));
        }
        Ok(())
    }

    fn check_nfs(&self) -> Result<(), SpecError> {
        if self.places.len() != 1 {
            return no("NFS serves a volume from one host: --hosts n1:/export --clients 'n[2-4]'".into());
        }
        if self.copies != 1 || self.stripe.is_some() {
            return no("NFS keeps one copy, in one piece; gluster and moosefs keep several".into());
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn spec(hosts: &[&str], copies: u32) -> Spec {
        Spec {
            name: "data".into(),
            kind: VolumeKind::Gluster,
            places: hosts.iter().map(|h| StorageFolder { host: h.to_string(), path: "/brick".into() }).collect(),
            copies,
            arbiter: false,
            stripe: None,
            mount: "/data".into(),
            clients: hosts.iter().map(|h| h.to_string()).collect(),
            master: None,
            options: BTreeMap::new(),
            export: ExportOptions::default(),
        }
    }

    #[test]
    fn options_are_read_or_refused_by_name() {
        assert_eq!(read_option("auth.allow=a,b"), Ok(("auth.allow".into(), Some("a,b".into()))));
        assert_eq!(read_option("a.b="), Ok(("a.b".into(), None)));
        for (text, why) in [
            ("a.b", "KEY=VALUE"),
            ("--x=1", "a name has letters"),
            ("a b=1", "a name has letters"),
            ("a.b=-x", "begins with -"),
            ("features.shard=on", "use --stripe"),
        ] {
            assert!(read_option(text).unwrap_err().contains(why), "{text}");
        }
        let refused = |kind, places: usize| {
            let options = [("auth.allow".to_string(), "n1".to_string())].into();
            let spec = spec(&["n1", "n2"][..places], 1);
            Spec { kind, options, ..spec }.check().map_err(|why| why.0)
        };
        assert_eq!(refused(VolumeKind::Gluster, 2), Ok(()));
        assert!(refused(VolumeKind::Moosefs, 2).unwrap_err().contains("auth.allow: only GlusterFS has such options"));
        assert!(refused(VolumeKind::Nfs, 1).unwrap_err().contains("--export-option"));
        let export = ExportOptions { anonuid: Some(1), ..ExportOptions::default() };
        let exported = Spec { export, ..spec(&["n1", "n2"], 1) };
        assert!(
            exported.check().unwrap_err().0.contains("only NFS has export options; gluster has --option auth.allow")
        );
        assert!("cephfs".parse::<VolumeKind>().unwrap_err().contains("ceph config set"));
    }

    #[test]
    fn a_volume_with_other_options_does_not_cover_the_wanted_one() {
        let plain = spec(&["a", "b"], 2);
        let option = |value: &str| [("auth.allow".to_string(), value.to_string())].into();
        let wanted = Spec { options: option("n1"), ..plain.clone() };
        assert!(!plain.covers(&wanted) && wanted.covers(&plain), "an option that the file does not name stays");
        let other = Spec { options: option("n2"), ..plain };
        assert_eq!(other.lacking_options(&wanted), [("auth.allow".to_string(), Some("n1".to_string()))].into());
    }

    #[test]
    fn a_volume_takes_in_places_and_gives_none_back_by_itself() {
        let (two, three) = (spec(&["a", "b"], 2), spec(&["a", "b", "c"], 2));
        assert_eq!(two.lacks(&three).unwrap(), three.places[2..]);
        assert!(three.lacks(&two).unwrap_err().starts_with("also has c:/"));
        assert_eq!(two.lacks(&Spec { copies: 1, ..two.clone() }), Err("has other settings".into()));
        assert!(two.covers(&two) && !two.covers(&three) && !three.covers(&two));
        assert!(!two.covers(&Spec { clients: vec!["z".into()], ..two.clone() }));
    }

    #[test]
    fn the_number_of_places_is_a_rule_for_new_volumes_alone() {
        let three = spec(&["n1", "n2", "n3"], 2);
        assert!(three.check().unwrap_err().0.contains("not 3") && three.check_existing().is_ok());
        assert!(Spec { mount: "/usr".into(), ..three }.check_existing().is_err());
    }

    #[test]
    fn what_cannot_work_is_said_at_the_door() {
        assert_eq!(spec(&["n1", "n2"], 2).check(), Ok(()));
        let wrong = |change: fn(&mut Spec)| {
            let mut s = spec(&["n1", "n2", "n3", "n4"], 2);
            change(&mut s);
            s.check().unwrap_err()
        };
        wrong(|s| s.copies = 3);
        wrong(|s| s.copies = 0);
        wrong(|s| s.name = "-x".into());
        wrong(|s| s.name = "a b".into());
        wrong(|s| s.mount = "data".into());
        wrong(|s| s.mount = "/".into());
        wrong(|s| s.mount = "/usr".into());
        wrong(|s| s.mount = "/proc/data".into());
        wrong(|s| s.mount = "/data\n/etc x".into());
        wrong(|s| s.places[0].path = "/a/../b".into());
        wrong(|s| s.places[1] = s.places[0].clone());
        wrong(|s| s.stripe = Some(1000));
        wrong(|s| s.kind = VolumeKind::Nfs);
    }
}
