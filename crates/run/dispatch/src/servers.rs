//! Storage servers that are not hosts of the run, mostly appliances. No worker runs there, so their activity is
//! measured by their clients.

use homing_lease::LeaseFolder;
use homing_model::StorageSample;
use homing_model::hostname::HostIndex;
use homing_os::clock::Mono;
use homing_place::{HostIx, ServerIx};
use std::collections::{BTreeMap, HashMap};

/// All servers that tasks of this run read from, by index.
#[derive(Debug, Default)]
pub(crate) struct ServerTable {
    servers: Vec<ServerClients>,
    names: HostIndex,
    /// The bytes that each host's mounts of a server have moved, by the server's names.
    moved: BTreeMap<(HostIx, String), u64>,
    /// The places of the servers' leases, by the servers' names.
    places: HashMap<String, LeaseFolder>,
}

#[derive(Debug, Default)]
struct ServerClients {
    name: String,
    /// The hosts with tasks that read from it. If a host's kernel counts the bytes that the server has moved for
    /// it, the host stays after its last task. The last of these bytes arrive after the end of the task.
    clients: HashMap<HostIx, Client>,
    /// The sum of all clients' pulses, by the clock of this machine since the first pulse. Each client's own clock
    /// begins at another time.
    sum: StorageSample,
    began: Option<Mono>,
    /// Whether it became a host of the run, and its leases as a server were returned.
    parted: bool,
}

#[derive(Debug, Default)]
struct Client {
    tasks: u32,
    last: Option<StorageSample>,
    /// The bytes that the server had moved for it at the last look, if its kernel counts them.
    moved: Option<u64>,
    /// The number of pulses since the last look at the server.
    fresh: u32,
}

/// The number of another client's pulses after which a silent client is not waited for: it has gone, or its host
/// hangs. A worker sends eight of its first pulses in the time of one of its later ones.
const PULSES: u32 = 16;

impl ServerTable {
    /// Returns the server that a volume calls `name` and that has the names `all`, and `true` if it is new.
    pub fn of(&mut self, name: &str, all: Vec<String>) -> (ServerIx, bool) {
        let met = all.iter().find_map(|known| self.names.find(known));
        let ix = met.unwrap_or(self.servers.len());
        self.names.add(ix, all.iter().map(String::as_str));
        if met.is_none() {
            self.servers.push(ServerClients { name: name.into(), ..ServerClients::default() });
        }
        (ix, met.is_none())
    }

    /// Adds the place of a server's leases. Called before the server is used.
    pub fn lies(&mut self, names: Vec<String>, place: &LeaseFolder) {
        names.into_iter().for_each(|name| _ = self.places.entry(name).or_insert_with(|| place.clone()));
    }

    /// Returns the place of the leases of the server with these names.
    pub fn place(&self, names: &[String]) -> Option<LeaseFolder> {
        names.iter().find_map(|name| self.places.get(name)).cloned()
    }

    pub fn name(&self, server: ServerIx) -> &str {
        &self.servers[server].name
    }

    /// Records that its leases are returned. Returns `false` if they were returned before.
    pub fn part(&mut self, server: ServerIx) -> bool {
        !std::mem::replace(&mut self.servers[server].parted, true)
    }

    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Counts a task on `host` that starts to read from it (`true`), or has ended.
    pub fn used(&mut self, server: ServerIx, host: HostIx, begins: bool) {
        let moved = self.moved_of(server, host);
        let clients = &mut self.servers[server].clients;
        let client = clients.entry(host).or_insert_with(|| Client { moved, ..Client::default() });
        client.tasks = if begins { client.tasks + 1 } else { client.tasks.saturating_sub(1) };
        if client.tasks == 0 {
            (client.last, client.fresh) = (None, 0);
            clients.retain(|of, client| *of != host || client.moved.is_some());
        }
    }

    /// Returns the servers with `host` as a client, also if its last task has ended.
    pub fn used_by(&self, host: HostIx) -> Vec<ServerIx> {
        let used = |s: &ServerIx| self.servers[*s].clients.contains_key(&host);
        (0..self.servers.len()).filter(used).collect()
    }

    /// Sets the bytes that a host's mounts of the server with these names have moved.
    pub fn moved(&mut self, names: Vec<String>, host: HostIx, bytes: u64) {
        self.moved.extend(names.into_iter().map(|name| ((host, name), bytes)));
    }

    /// Returns the bytes that a host's mounts of the server have moved, if its kernel counts them. The host's disks
    /// and interfaces also carry other traffic, so they would be no measure.
    fn moved_of(&self, server: ServerIx, host: HostIx) -> Option<u64> {
        let of_host = self.moved.range((host, String::new())..).take_while(|((of, _), _)| *of == host);
        let told = of_host.into_iter().find(|((_, name), _)| self.names.find(name) == Some(server));
        told.map(|(_, bytes)| *bytes)
    }

    /// Takes a client's pulse. Returns the sum for the server once each client with tasks has sent a pulse since the
    /// last sum. A sum for each pulse would be wrong: hardly any time may pass between the pulses of two clients. The
    /// bytes that the second client read since its own last pulse would count as read in that time.
    pub fn pulse(&mut self, server: ServerIx, host: HostIx, pulse: &StorageSample, now: Mono) -> Option<StorageSample> {
        let told = self.moved_of(server, host);
        let ServerClients { clients, sum, began, .. } = &mut self.servers[server];
        let most = clients.values().filter(|client| client.tasks > 0).count().max(1) as u64;
        let client = clients.entry(host).or_default();
        if let Some(now) = told {
            let before = client.moved.replace(now).unwrap_or(now);
            *sum.moved.get_or_insert(0) += now.saturating_sub(before);
        }
        if client.tasks == 0 {
            return None;
        }
        let pulse = StorageSample { moved: pulse.moved.filter(|_| told.is_none()), ..*pulse };
        match client.last.replace(pulse) {
            Some(before) => add(sum, &before, &pulse, most),
            None => {
                sum.io_some_us = sum.io_some_us.or(pulse.io_some_us.map(|_| 0));
                sum.moved = sum.moved.or(pulse.moved.map(|_| 0));
                sum.reread = sum.reread.or(pulse.reread.map(|_| 0));
            }
        }
        client.fresh += 1;
        sum.at_us = now.us_since(*began.get_or_insert(now));
        sum.longest = sum.longest.max(pulse.longest);
        sum.room = clients.values().map(|c| c.last.as_ref().and_then(|p| p.room)).sum();
        let busy = || clients.values().filter(|client| client.tasks > 0);
        let whole = busy().all(|client| client.fresh > 0) || clients[&host].fresh >= PULSES;
        whole.then(|| {
            clients.values_mut().for_each(|client| client.fresh = 0);
            *sum
        })
    }
}

/// Adds the growth on one of `clients` hosts. Bytes are added up. The time in which some task waited is the mean of
/// the hosts.
fn add(sum: &mut StorageSample, before: &StorageSample, now: &StorageSample, clients: u64) {
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
    sum.blocked_on_io += grown(now.blocked_on_io, before.blocked_on_io);
    sum.read += grown(now.read, before.read);
    sum.cached += grown(now.cached, before.cached);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::Hosts;

    #[test]
    fn one_server_has_many_names() {
        let (mut hosts, mut servers) = (Hosts::default(), ServerTable::default());
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
    fn of_a_clients_bytes_those_of_the_server_count() {
        let mut servers = ServerTable::default();
        let (nas, _) = servers.of("nas", vec!["nas".into(), "10.0.0.9".into()]);
        let (other, _) = servers.of("other", vec!["other".into()]);
        [(nas, 0), (other, 0)].iter().for_each(|(server, host)| servers.used(*server, *host, true));
        let at = |at_us, moved| StorageSample { at_us, moved: Some(moved), ..StorageSample::default() };
        let look = |servers: &mut ServerTable, server, host, at_us, moved| {
            servers.pulse(server, host, &at(at_us, moved), Mono::from_us(at_us)).map(|sum| sum.moved.unwrap())
        };
        let both = |servers: &mut ServerTable, bytes, at_us, moved| {
            servers.moved(vec!["10.0.0.9".into()], 0, bytes);
            [nas, other].map(|server| look(servers, server, 0, at_us, moved))
        };
        assert_eq!(both(&mut servers, 1 << 40, 10, 700), [Some(0), Some(0)], "what was before is nobody's");
        assert_eq!(both(&mut servers, (1 << 40) + 5, 20, 900), [Some(5), Some(200)], "its disk moved the rest");
        // The kernel of another host does not distinguish servers.
        servers.used(nas, 1, true);
        assert_eq!(look(&mut servers, nas, 1, 20, 50), None, "the other host's next pulse is still to come");
        assert_eq!(look(&mut servers, nas, 1, 30, 90), None);
        assert_eq!(look(&mut servers, nas, 0, 40, 990), Some(45));
        // Bytes that arrive after the end of a task count with the next look.
        servers.used(nas, 0, false);
        servers.moved(vec!["nas".into(), "10.0.0.9".into()], 0, (1 << 40) + 9);
        assert_eq!((servers.used_by(0), look(&mut servers, nas, 0, 50, 0)), (vec![nas, other], None));
        assert_eq!(look(&mut servers, nas, 1, 60, 90), Some(49));
        servers.used(nas, 0, true);
        let told: Vec<_> = (1..=PULSES).map(|n| look(&mut servers, nas, 1, 70, 90 + u64::from(n))).collect();
        let (last, before) = told.split_last().unwrap();
        assert_eq!(*last, Some(49 + u64::from(PULSES)), "a host that is silent is not waited for");
        assert!(before.iter().all(Option::is_none));
    }

    #[test]
    fn clients_add_up_and_one_that_has_left_says_nothing_more() {
        let at = |at_us, moved, stood| StorageSample {
            at_us,
            io_some_us: Some(at_us),
            looked: at_us,
            blocked_on_io: stood,
            moved: Some(moved),
            room: Some(5),
            ..StorageSample::default()
        };
        let mut servers = ServerTable::default();
        let (nas, _) = servers.of("nas", vec!["nas".into()]);
        servers.used(nas, 0, true);
        servers.used(nas, 1, true);
        assert_eq!((servers.used_by(0), servers.used_by(2)), (vec![nas], Vec::new()));
        // Their clocks began at different times, and the bytes that they moved before do not count.
        servers.pulse(nas, 0, &at(1_000, 700, 0), Mono::from_us(70_000));
        servers.pulse(nas, 1, &at(9_000, 10, 0), Mono::from_us(70_000));
        servers.pulse(nas, 0, &at(1_500, 800, 100), Mono::from_us(70_400));
        let sum = servers.pulse(nas, 1, &at(9_500, 30, 400), Mono::from_us(70_500)).unwrap();
        assert_eq!((sum.at_us, sum.moved, sum.looked, sum.blocked_on_io), (500, Some(120), 1_000, 500));
        assert_eq!((sum.io_some_us, sum.room), (Some(500), Some(10)), "the mean of the hosts, and the sum");
        servers.used(nas, 1, false);
        assert!(servers.used_by(1).is_empty());
        servers.used(nas, 1, true);
        servers.pulse(nas, 0, &at(1_500, 800, 100), Mono::from_us(71_000));
        let sum = servers.pulse(nas, 1, &at(20_000, 1 << 40, 400), Mono::from_us(72_000)).unwrap();
        assert_eq!(sum.moved, Some(120), "what it did meanwhile was not for this server");
    }
}
