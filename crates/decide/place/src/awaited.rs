//! Explains why tasks wait, for people who watch.

use crate::class::GroupKey;
use crate::host::Storage;
use crate::{HostIx, Placer, ServerIx};
use std::collections::BTreeMap;

/// The thing that a waiting task waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Awaited {
    /// No host of the run can run it.
    Nobody,
    /// A server that takes no more tasks now.
    Server(ServerIx),
    /// A free slot of any host.
    Slot,
    /// A free slot of one of these hosts, which hold its inputs.
    Holders(Vec<HostIx>),
    /// The storage of these hosts takes no more tasks now.
    Storage(Vec<HostIx>),
    /// Memory or named resources.
    Room,
    /// Its turn. There is room: the next decision starts it, or leaves it to a host where it ends sooner.
    Turn,
}

impl Placer {
    /// Returns the number of waiting tasks for each reason.
    pub fn awaited(&self) -> BTreeMap<Awaited, usize> {
        let mut sums = BTreeMap::new();
        for group in self.groups.iter() {
            *sums.entry(self.awaits(&group.key)).or_default() += group.class.len();
        }
        sums
    }

    fn awaits(&self, key: &GroupKey) -> Awaited {
        let fit: Vec<HostIx> = (0..self.hosts.len()).filter(|&h| self.hosts[h].up && self.fits(key, h)).collect();
        if fit.is_empty() {
            return Awaited::Nobody;
        }
        if let Some(server) = key.server.filter(|server| self.full.contains(server)) {
            return Awaited::Server(server);
        }
        let holders: Vec<HostIx> = key.holders.iter().copied().filter(|holder| fit.contains(holder)).collect();
        let wanted = if holders.is_empty() { &fit } else { &holders };
        let full =
            |host: &HostIx| key.server.is_none() && self.presses(key) && self.hosts[*host].storage == Storage::Full;
        if wanted.iter().all(full) {
            return Awaited::Storage(wanted.clone());
        }
        let free: Vec<HostIx> =
            wanted.iter().copied().filter(|host| !full(host) && self.hosts[*host].has_free(key.cpus)).collect();
        match free.is_empty() {
            true if holders.is_empty() => Awaited::Slot,
            true => Awaited::Holders(holders),
            false if !free.iter().any(|host| self.has_room(key, *host)) => Awaited::Room,
            false => Awaited::Turn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Need, Params};

    #[test]
    fn each_task_waits_for_what_is_missing() {
        let mut placer = Placer::new(Params::default());
        assert_eq!(placer.awaited(), BTreeMap::new());
        let (a, b) = (placer.host_up(1, None), placer.host_up(1, None));
        let reads = |host| Need { total: 10, per_host: vec![(host, 10)], cpus: 1, ..Need::default() };
        placer.add(1, reads(a));
        assert_eq!(placer.awaited(), BTreeMap::from([(Awaited::Turn, 1)]));
        placer.pick(a, 1, 0).unwrap();
        for (task, need) in [(2, reads(a)), (3, reads(a)), (4, Need { cpus: 9, ..Need::default() }), (5, reads(b))] {
            placer.add(task, need);
        }
        placer.set_storage(b, Storage::Full);
        let waits = placer.awaited();
        assert_eq!(waits[&Awaited::Holders(vec![a])], 2);
        assert_eq!((waits[&Awaited::Nobody], waits[&Awaited::Storage(vec![b])]), (1, 1));
        // A task without inputs waits for any slot.
        placer.set_storage(b, Storage::Open);
        placer.pick(b, 1, 0).unwrap();
        placer.add(6, Need { cpus: 1, ..Need::default() });
        assert_eq!(placer.awaited()[&Awaited::Slot], 1);
    }
}
