//! Finds room for more bricks: the host that takes the next one, and the folder there.

use super::layout;
use super::xml::{Brick, GlusterVolume};
use crate::observe::Observed;
use crate::spec::Spec;
use std::collections::BTreeMap;

/// Free bytes of the volume's hosts, less the bytes that were promised.
pub(super) struct FreeSpace(BTreeMap<String, u64>);

impl FreeSpace {
    pub(super) fn of(seen: &Observed) -> FreeSpace {
        let free = |f: &crate::observe::HostFacts| f.stores.iter().map(|s| s.free).max().unwrap_or(0);
        FreeSpace(seen.hosts.iter().filter_map(|(h, f)| Some((h.clone(), free(f.as_ref().ok()?)))).collect())
    }

    /// Returns the host with the most room that is not in `without`.
    pub(super) fn widest(&mut self, hosts: &[String], without: &[String]) -> Option<String> {
        let fits = hosts.iter().filter(|h| !without.contains(h));
        let best = fits.max_by_key(|h| self.0.get(*h).copied().unwrap_or(0))?.clone();
        // Half of its room counts as promised: the next set goes elsewhere if it can.
        if let Some(free) = self.0.get_mut(&best) {
            *free /= 2;
        }
        Some(best)
    }
}

pub(super) fn brick(spec: &Spec, there: &GlusterVolume, taken: &[Brick], host: &str, arbiter: bool) -> Brick {
    let base = layout::base_of(spec, there, host).unwrap_or_else(|| "/brick".into());
    let all: Vec<Brick> = there.bricks.iter().chain(taken).cloned().collect();
    Brick { host: host.into(), path: layout::free_path(spec, &base, host, &all), arbiter }
}
