//! Storage servers that are no hosts of the run: appliances, mostly. No worker
//! runs there, so what they serve is what their clients measure.

use homing_folder::lease::Place;
use homing_model::Pulse;
use homing_place::{HostIx, ServerIx};
use std::collections::HashMap;

/// All servers that tasks of this run read from, by index.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    servers: Vec<Server>,
    alias: HashMap<String, ServerIx>,
    /// Where the leases of servers are, by their names.
    places: HashMap<String, Place>,
}

#[derive(Debug)]
struct Server {
    name: String,
    /// Tasks that read from it, by the host that they run on, with the last pulse of that host.
    clients: HashMap<HostIx, Client>,
    /// What all clients together would say.
    sum: Pulse,
}

#[derive(Debug, Default)]
struct Client {
    tasks: u32,
    last: Option<Pulse>,
    /// The sum's clock when this host's first pulse was added, less this host's.
    ahead_us: i128,
}

impl Servers {
    /// The server that a volume calls `name`, and that has these names in all; `true` when it was not known.
    pub fn of(&mut self, name: &str, all: Vec<String>) -> (ServerIx, bool) {
        let met = all.iter().find_map(|known| self.alias.get(known)).copied();
        let ix = met.unwrap_or(self.servers.len());
        all.into_iter().for_each(|known| _ = self.alias.insert(known, ix));
        if met.is_none() {
            self.servers.push(Server { name: name.into(), clients: HashMap::new(), sum: Pulse::default() });
        }
        (ix, met.is_none())
    }

    /// Its leases are there; told before it is used.
    pub fn lies(&mut self, names: Vec<String>, place: &Place) {
        names.into_iter().for_each(|name| _ = self.places.entry(name).or_insert_with(|| place.clone()));
    }

    /// Where the leases are of the server that has these names.
    pub fn place(&self, names: &[String]) -> Option<Place> {
        names.iter().find_map(|name| self.places.get(name)).cloned()
    }

    pub fn name(&self, server: ServerIx) -> &str {
        &self.servers[server].name
    }

    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// A task on `host` begins to read from it (`true`), or has ended.
    pub fn used(&mut self, server: ServerIx, host: HostIx, begins: bool) {
        let clients = &mut self.servers[server].clients;
        let client = clients.entry(host).or_default();
        client.tasks = if begins { client.tasks + 1 } else { client.tasks.saturating_sub(1) };
        if client.tasks == 0 {
            clients.remove(&host);
        }
    }

    /// Servers that tasks on `host` read from now.
    pub fn used_by(&self, host: HostIx) -> Vec<ServerIx> {
        let used = |s: &ServerIx| self.servers[*s].clients.contains_key(&host);
        (0..self.servers.len()).filter(used).collect()
    }

    /// A client's pulse came: what the server would say of itself, as far as its clients know.
    pub fn pulse(&mut self, server: ServerIx, host: HostIx, pulse: &Pulse) -> Pulse {
        let Server { clients, sum, .. } = &mut self.servers[server];
        let most = clients.len().max(1) as u64;
        let client = clients.entry(host).or_default();
        let last = client.last.replace(*pulse);
        match last {
            Some(before) => add(sum, &before, pulse, most),
            None => {
                client.ahead_us = i128::from(sum.at_us) - i128::from(pulse.at_us);
                sum.io_some_us = sum.io_some_us.or(pulse.io_some_us.map(|_| 0));
                sum.moved = sum.moved.or(pulse.moved.map(|_| 0));
                sum.reread = sum.reread.or(pulse.reread.map(|_| 0));
            }
        }
        sum.at_us = sum.at_us.max((i128::from(pulse.at_us) + client.ahead_us) as u64);
        sum.longest = sum.longest.max(pulse.longest);
        sum.room = clients.values().map(|c| c.last.as_ref().and_then(|p| p.room)).sum();
        *sum
    }
}

/// What grew on one of `clients` hosts. Bytes add up; of the time in which
/// somebody waited the sum has the mean of the hosts.
fn add(sum: &mut Pulse, before: &Pulse, now: &Pulse, clients: u64) {
    let grown = |now: u64, before: u64| now.saturating_sub(before);
    let more = |sum: &mut Option<u64>, now: Option<u64>, before: Option<u64>, share: u64| {
        if let (Some(sum), Some(now), Some(before)) = (sum.as_mut(), now, before) {
            *sum += grown(now, before) / share;
        }
    };
    more(&mut sum.io_some_us, now.io_some_us, before.io_some_us, clients);
    more(&mut sum.moved, now.moved, before.moved, 1);
    more(&mut sum.reread, now.reread, before.reread, 1);
    sum.looked += grown(now.looked, before.looked);
    sum.stood += grown(now.stood, before.stood);
    sum.read += grown(now.read, before.read);
    sum.cached += grown(now.cached, before.cached);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::Hosts;

    #[test]
    fn one_server_has_many_names() {
        let (mut hosts, mut servers) = (Hosts::default(), Servers::default());
        hosts.same(&["nas".into(), "10.0.0.9".into(), "fd00::9".into()]);
        let mut of = |hosts: &Hosts, name: &str| servers.of(name, hosts.names_of(name));
        let nas = of(&hosts, "nas").0;
        for name in ["NAS", "nas.lab.example", "10.0.0.9", "::ffff:10.0.0.9", "[fd00::9]"] {
            assert_eq!(of(&hosts, name), (nas, false), "{name}");
        }
        assert_eq!(of(&hosts, "10.0.0.8"), (1, true), "another");
        hosts.same(&["old".into(), "10.0.0.8".into()]);
        assert_eq!(of(&hosts, "old"), (1, false), "an address that was met before its name");
    }

    #[test]
    fn clients_add_up_and_one_that_has_left_says_nothing_more() {
        let at = |at_us, moved, stood| Pulse {
            at_us,
            io_some_us: Some(at_us),
            looked: at_us,
            stood,
            moved: Some(moved),
            room: Some(5),
            ..Pulse::default()
        };
        let mut servers = Servers::default();
        let (nas, _) = servers.of("nas", vec!["nas".into()]);
        servers.used(nas, 0, true);
        servers.used(nas, 1, true);
        assert_eq!((servers.used_by(0), servers.used_by(2)), (vec![nas], Vec::new()));
        // Their clocks began at different times, and what they moved before is nobody's.
        servers.pulse(nas, 0, &at(1_000, 700, 0));
        servers.pulse(nas, 1, &at(9_000, 10, 0));
        servers.pulse(nas, 0, &at(1_500, 800, 100));
        let sum = servers.pulse(nas, 1, &at(9_500, 30, 400));
        assert_eq!((sum.at_us, sum.moved, sum.looked, sum.stood), (500, Some(120), 1_000, 500));
        assert_eq!((sum.io_some_us, sum.room), (Some(500), Some(10)), "the mean of the hosts, and the sum");
        servers.used(nas, 1, false);
        assert!(servers.used_by(1).is_empty());
        servers.used(nas, 1, true);
        let sum = servers.pulse(nas, 1, &at(20_000, 1 << 40, 400));
        assert_eq!(sum.moved, Some(120), "what it did meanwhile was not for this server");
    }
}
