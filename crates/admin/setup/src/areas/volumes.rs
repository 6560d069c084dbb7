//! Decides which volumes are to be made. `homing volume` makes them.

use crate::site::{AllSeen, ClusterSite};
use crate::volumes::SiteVolume;
use homing_steps::{FactQuery, MountEntry, Observed};
use homing_volume::{Spec, VolumeKind, may_be};
use std::collections::BTreeSet;

pub(super) fn request_facts(site: &ClusterSite, question: &mut FactQuery) {
    question.mounts.extend(site.volumes.iter().map(|volume| volume.spec.mount.clone()));
}

/// Whether the volume is mounted there: something is, and it is no other file system. If it is another one, the steps
/// of `homing volume` refuse to mount over it, and name it.
pub(super) fn is_mounted(spec: &Spec, host: &str, there: &Observed) -> bool {
    let is_other = |entry: &MountEntry| !may_be(spec, host, &entry.fstype, &entry.source);
    there.mounts.get(&spec.mount).is_some_and(|(state, _)| state.mounted)
        && !there.mounted.get(&spec.mount).is_some_and(is_other)
}

/// Returns the volumes that are not mounted on one of their clients which answered.
pub fn lacking<'s>(site: &'s ClusterSite, seen: &AllSeen) -> Vec<&'s SiteVolume> {
    let lacks = |volume: &&SiteVolume| {
        let mut clients = volume.spec.clients.iter().filter_map(|host| Some((host, seen.get(host)?.as_ref().ok()?)));
        clients.any(|(host, there)| !is_mounted(&volume.spec, host, there))
    };
    site.volumes.iter().filter(lacks).collect()
}

pub(super) fn notes(site: &ClusterSite, seen: &AllSeen) -> Vec<String> {
    let note = |volume: &SiteVolume| {
        let Spec { name, kind, mount, .. } = &volume.spec;
        format!("volumes: homing makes {name} ({kind}) with the steps of homing volume, and mounts it at {mount}")
    };
    lacking(site, seen).into_iter().map(note).collect()
}

/// Returns the things of the table of families that a host needs for its volumes.
pub(super) fn things(site: &ClusterSite, host: &str) -> BTreeSet<&'static str> {
    let of = |spec: &Spec| {
        let serves = spec.places.iter().any(|place| place.host == host);
        let mounts = spec.clients.iter().any(|client| client == host);
        let leads = spec.kind == VolumeKind::Moosefs && spec.master() == host;
        match spec.kind {
            VolumeKind::Gluster => vec![(serves, "gluster.server"), (mounts, "gluster.mount")],
            VolumeKind::Nfs => vec![(serves, "nfs.server"), (mounts && !serves, "nfs.mount")],
            VolumeKind::Moosefs => {
                vec![(serves, "moosefs.chunkserver"), (mounts, "moosefs.mount"), (leads, "moosefs.master")]
            }
        }
    };
    let of_volumes = site.volumes.iter().flat_map(|volume| of(&volume.spec));
    // The program that copies and compares homes.
    let all = of_volumes.chain([(site.up.homes.is_some(), "homes.copy")]);
    all.filter(|(needed, _)| *needed).map(|(_, thing)| thing).collect()
}
