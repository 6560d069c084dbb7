//! Decides where bricks lie: in sets of copies, and never two of one set on one host if there are enough hosts.

use super::xml::{Brick, GlusterVolume};
use crate::spec::Spec;
use std::collections::BTreeSet;

/// Returns the bricks of a new volume in definition order. Places are dealt round by round: neighbours hold the same
/// files and must be on different hosts.
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
        // The next host after those of the set; this spreads the arbiters.
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

/// Returns the sets with two bricks on one host, as their bricks.
pub(crate) fn doubled(bricks: &[Brick], set_size: usize) -> Vec<String> {
    let sets = bricks.chunks(set_size.max(1));
    let twice = |set: &&[Brick]| set.iter().map(|b| &b.host).collect::<BTreeSet<_>>().len() < set.len();
    sets.filter(twice).map(|set| set.iter().map(Brick::word).collect::<Vec<_>>().join(" ")).collect()
}

/// Returns a folder for one more brick of the volume on a host: NAME, NAME.2, NAME.3, ... Names of bricks in `taken`
/// are not used again: GlusterFS refuses folders that were bricks.
pub(crate) fn free_path(spec: &Spec, base: &str, host: &str, taken: &[Brick]) -> String {
    let first = format!("{base}/{}", spec.name);
    let used = |path: &str| taken.iter().any(|b| b.host == host && b.path == path);
    let names = std::iter::once(first.clone()).chain((2..).map(|i| format!("{first}.{i}")));
    names.into_iter().find(|p| !used(p)).unwrap_or(first)
}

/// Returns the folder in which `host` gives space to the volume: the one above its first brick.
pub(crate) fn base_of(spec: &Spec, volume: &GlusterVolume, host: &str) -> Option<String> {
    let place = spec.places.iter().find(|p| p.host == host).map(|p| p.path.clone());
    let brick = volume.bricks.iter().find(|b| b.host == host);
    place.or_else(|| Some(brick?.path.rsplit_once('/')?.0.to_string()))
}
