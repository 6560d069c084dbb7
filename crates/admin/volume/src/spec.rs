//! The specification of a volume.

use homing_model::folders;
use serde::{Deserialize, Serialize};
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
        places && wanted.clients.iter().all(|client| self.clients.contains(client))
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
        Ok(())
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
        }
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
