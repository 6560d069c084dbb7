//! Which brick goes where: sets of copies, never two of one set on one host
//! when there are hosts enough.

use super::xml::{Brick, Volume};
use crate::spec::Spec;
use std::collections::BTreeSet;

/// Bricks of a new volume in definition order. Places are dealt round by round
/// so that the neighbours, which hold the same files, are on different hosts.
pub(crate) fn bricks(spec: &Spec) -> Vec<Brick> {
    let copies = spec.copies.max(1) as usize;
    let mut data: Vec<Brick> = Vec::new();
    let mut left: Vec<Brick> =
        spec.places.iter().map(|p| Brick { host: p.host.clone(), path: spec.store(p), arbiter: false }).collect();
    while !left.is_empty() {
        let set: BTreeSet<String> = data[data.len() - data.len() % copies..].iter().map(|b| b.host.clone()).collect();
        let fits = left.iter().position(|b| !set.contains(&b.host)).unwrap_or(0);
        data.push(left.remove(fits));
    }
    if !spec.arbiter {
        return data;
    }
    let servers = spec.servers();
    let sets = data.chunks(copies).enumerate();
    sets.flat_map(|(i, set)| {
        let mut set = set.to_vec();
        // The next host after the set's own; arbiters are spread that way.
        let free = (0..servers.len()).map(|k| &servers[(i * copies + copies + k) % servers.len()]);
        let host = free.clone().find(|h| set.iter().all(|b| b.host != **h)).or(free.clone().next());
        if let Some(host) = host {
            let place = spec.places.iter().find(|p| p.host == *host);
            let path = place.map(|p| format!("{}.arbiter{}", spec.store(p), i + 1)).unwrap_or_default();
            set.push(Brick { host: host.clone(), path, arbiter: true });
        }
        set
    })
    .collect()
}

/// Sets with two bricks on one host, as their hosts.
pub(crate) fn doubled(bricks: &[Brick], set_size: usize) -> Vec<String> {
    let sets = bricks.chunks(set_size.max(1));
    let twice = |set: &&[Brick]| set.iter().map(|b| &b.host).collect::<BTreeSet<_>>().len() < set.len();
    sets.filter(twice).map(|set| set.iter().map(Brick::word).collect::<Vec<_>>().join(" ")).collect()
}

/// A folder for one more brick of the volume on a host: NAME, NAME.2, NAME.3, ...
/// Names of earlier bricks are not used again: GlusterFS refuses folders that were bricks.
pub(crate) fn free_path(spec: &Spec, base: &str, host: &str, taken: &[Brick]) -> String {
    let first = format!("{base}/{}", spec.name);
    let used = |path: &str| taken.iter().any(|b| b.host == host && b.path == path);
    let names = std::iter::once(first.clone()).chain((2..).map(|i| format!("{first}.{i}")));
    names.into_iter().find(|p| !used(p)).unwrap_or(first)
}

/// Where `host` gives space to the volume: the folder above its first brick.
pub(crate) fn base_of(spec: &Spec, volume: &Volume, host: &str) -> Option<String> {
    let place = spec.places.iter().find(|p| p.host == host).map(|p| p.path.clone());
    let brick = volume.bricks.iter().find(|b| b.host == host);
    place.or_else(|| Some(brick?.path.rsplit_once('/')?.0.to_string()))
}
