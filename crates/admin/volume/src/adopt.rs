//! Reconstructs the specification of a volume from its hosts, if its record is elsewhere, was lost, or never existed.

use crate::export::{ExportOptions, ExportedTo};
use crate::observe::{MountPoint, Observed};
use crate::spec::{Spec, StorageFolder, VolumeKind};
use std::collections::BTreeMap;

/// Returns the query for [`spec`], for a volume of which only the name is known.
pub fn unknown(name: &str, hosts: &[String]) -> Spec {
    Spec {
        name: name.into(),
        kind: VolumeKind::Gluster,
        places: Vec::new(),
        copies: 1,
        arbiter: false,
        stripe: None,
        mount: format!("/{name}"),
        clients: hosts.to_vec(),
        master: None,
        options: BTreeMap::new(),
        export: ExportOptions::default(),
    }
}

/// Returns the volume as its hosts describe it; `None` if no host knows it.
pub fn spec(name: &str, hosts: &[String], seen: &Observed) -> Option<Spec> {
    let mut spec = unknown(name, hosts);
    // The line of the NFS server itself is a bind mount, which has fewer facts.
    let lines = || seen.hosts.values().flatten().filter_map(|f| f.fstab.clone());
    let line = lines().find(|l| l[2] != "none").or_else(|| lines().next());
    if let Some([_, point, ..]) = &line {
        spec.mount = point.clone();
    }
    let has_line = |h: &&String| {
        seen.host(h).is_some_and(|f| f.fstab.is_some() || (line.is_none() && f.point == MountPoint::Ours))
    };
    spec.clients = hosts.iter().filter(has_line).cloned().collect();
    if let Some([source, _, fstype, _]) = &line {
        match fstype.as_str() {
            "moosefs" => return Some(moosefs(spec, seen, source)),
            "nfs4" | "nfs" => return nfs(spec, seen, source),
            _ => {}
        }
    }
    gluster(&spec, seen)
}

fn moosefs(mut spec: Spec, seen: &Observed, source: &str) -> Spec {
    spec.kind = VolumeKind::Moosefs;
    spec.master = source.split(':').next().map(String::from);
    let goal = seen.hosts.values().flatten().find_map(crate::moosefs::goals::of_root);
    spec.copies = goal.unwrap_or(spec.copies);
    for (host, facts) in seen.hosts.iter().filter_map(|(h, f)| Some((h, f.as_ref().ok()?))) {
        let ours = facts
            .texts
            .get("mfschunkserver.cfg")
            .is_some_and(|t| t.contains(&format!("# homing volume {}", spec.name)));
        let store =
            facts.texts.get("mfshdd.cfg").and_then(|t| t.lines().find(|l| !l.is_empty() && !l.starts_with('#')));
        let path = store.and_then(|l| l.trim_start_matches('*').split(' ').next()?.rsplit_once('/'));
        if let (true, Some((base, _))) = (ours, path) {
            spec.places.push(StorageFolder { host: host.clone(), path: base.into() });
        }
    }
    spec
}

fn nfs(mut spec: Spec, seen: &Observed, source: &str) -> Option<Spec> {
    let (host, path) = source.split_once(':')?;
    spec.kind = VolumeKind::Nfs;
    spec.places = vec![StorageFolder { host: host.into(), path: path.rsplit_once('/')?.0.into() }];
    let file = seen.host(host).and_then(|facts| facts.texts.get("exports"));
    // Machines of the export that are none of the queried hosts: they stay in it.
    let text = file.map_or("", String::as_str);
    let all = ExportedTo::read(text, text.split_whitespace().next().unwrap_or_default());
    spec.export = all.first().map(ExportedTo::options).unwrap_or_default();
    let others = all.into_iter().map(|exported| exported.client).filter(|client| !spec.clients.contains(client));
    spec.export.clients = others.collect();
    Some(spec)
}

fn gluster(spec: &Spec, seen: &Observed) -> Option<Spec> {
    let volume = crate::gluster::volume(spec, seen)?;
    let mut spec = spec.clone();
    for brick in volume.bricks.iter().filter(|b| !b.arbiter) {
        let (base, _) = brick.path.rsplit_once('/')?;
        let place = StorageFolder { host: brick.host.clone(), path: base.into() };
        if !spec.places.contains(&place) {
            spec.places.push(place);
        }
    }
    spec.copies = volume.copies() as u32;
    spec.arbiter = volume.arbiters > 0;
    let sharded = volume.options.get("features.shard").is_some_and(|v| v == "on");
    // 64 MiB is GlusterFS's own default.
    let size = volume.options.get("features.shard-block-size").and_then(|s| s.parse().ok()).unwrap_or(64 << 20);
    spec.stripe = sharded.then_some(size);
    Some(spec)
}
