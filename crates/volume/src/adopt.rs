//! What a volume was asked to be, read back from its hosts: for volumes whose
//! record is elsewhere, or was lost, or never was.

use crate::observe::{MountPoint, Observed};
use crate::spec::{Kind, Place, Spec};

/// The question with which [`spec`] is to be asked: a volume of which only the name is known.
pub fn unknown(name: &str, hosts: &[String]) -> Spec {
    Spec {
        name: name.into(),
        kind: Kind::Gluster,
        places: Vec::new(),
        copies: 1,
        arbiter: false,
        stripe: None,
        mount: format!("/{name}"),
        clients: hosts.to_vec(),
        master: None,
    }
}

/// The volume as the hosts tell it; `None` when none of them knows it.
pub fn spec(name: &str, hosts: &[String], seen: &Observed) -> Option<Spec> {
    let mut spec = unknown(name, hosts);
    let line = seen.hosts.values().flatten().find_map(|f| f.fstab.clone());
    if let Some([_, point, ..]) = &line {
        spec.mount = point.clone();
    }
    let has_line = |h: &&String| {
        seen.host(h).is_some_and(|f| f.fstab.is_some() || (line.is_none() && f.point == MountPoint::Ours))
    };
    spec.clients = hosts.iter().filter(has_line).cloned().collect();
    gluster(&spec, seen)
}

fn gluster(spec: &Spec, seen: &Observed) -> Option<Spec> {
    let volume = crate::gluster::volume(spec, seen)?;
    let mut spec = spec.clone();
    for brick in volume.bricks.iter().filter(|b| !b.arbiter) {
        let (base, _) = brick.path.rsplit_once('/')?;
        let place = Place { host: brick.host.clone(), path: base.into() };
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
