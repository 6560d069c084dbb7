//! Compares the rate of a storage server for many hosts at once with its rate for one.

use crate::judge::SLOW;
use crate::measured::{NetworkHost, Pair};
use homing_model::NodeSet;
use serde::Serialize;

/// One direction between a server and its clients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DirectionRates {
    /// The rate of one client alone, Mbit/s: the median of the tried ones.
    pub alone: f64,
    /// The rate of all clients together, Mbit/s.
    pub together: f64,
}

/// A server and its clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerRates {
    /// The server.
    pub server: String,
    /// Its clients.
    pub clients: Vec<String>,
    /// The rate at which clients receive from it.
    pub read: DirectionRates,
    /// The rate at which it receives from clients.
    pub write: DirectionRates,
}

impl ServerRates {
    /// Derives it from pairs whose second host is the server: some alone, and all at once. `None` if nothing was
    /// measured.
    pub fn of(hosts: &[NetworkHost], alone: &[Pair], together: &[Pair]) -> Option<ServerRates> {
        let server = together.first()?.b;
        let rate = |pair: &Pair, read: bool| Some(if read { pair.back? } else { pair.there? }.mbit_per_s);
        let way = |read: bool| {
            let mut one: Vec<f64> = alone.iter().filter_map(|pair| rate(pair, read)).collect();
            one.sort_by(f64::total_cmp);
            let together = together.iter().filter_map(|pair| rate(pair, read)).sum();
            Some(DirectionRates { alone: *one.get(one.len() / 2)?, together })
        };
        let name = |host: usize| hosts[host].name.clone();
        let clients = together.iter().map(|pair| name(pair.a)).collect();
        Some(ServerRates { server: name(server), clients, read: way(true)?, write: way(false)? })
    }

    /// Describes it for people.
    pub fn sentences(&self) -> Vec<String> {
        [self.sentence(self.read, "read from", "read"), self.sentence(self.write, "write to", "write")].into()
    }

    fn sentence(&self, way: DirectionRates, verb: &str, verb_alone: &str) -> String {
        let (clients, hosts) = (self.clients.iter().cloned().collect::<NodeSet>(), self.clients.len() as f64);
        let (DirectionRates { alone, together }, server) = (way, &self.server);
        let each = together / hosts;
        let said = format!(
            "{clients} {verb} {server} at {together:.0} Mbit/s together, {each:.0} each; one alone at {alone:.0}"
        );
        if together >= SLOW * alone * hosts {
            return format!("{said}: the server's link carries all of them");
        }
        let full = (together / alone).round().max(1.0);
        let enough = if full == 1.0 { "one host fills".into() } else { format!("{full:.0} hosts fill") };
        format!("{said}: {enough} the server's link; more hosts {verb_alone} no faster")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::FlowRate;

    fn pair(a: usize, there: f64, back: f64) -> Pair {
        let flow = |mbit_per_s| Some(FlowRate { mbit_per_s, again: 0.0 });
        Pair { a, b: 4, there: flow(there), back: flow(back), ..Pair::default() }
    }

    #[test]
    fn a_full_link_is_told_with_how_many_hosts_fill_it() {
        let names =
            ["n1", "n2", "n3", "n4", "nas"].map(|name| NetworkHost { name: name.into(), ..NetworkHost::default() });
        let alone = [pair(0, 450.0, 940.0), pair(1, 460.0, 930.0), pair(2, 455.0, 935.0)];
        let together = [0, 1, 2, 3].map(|at| pair(at, 230.0, 235.0));
        let told = ServerRates::of(&names, &alone, &together).unwrap().sentences();
        assert_eq!(
            told,
            [
                "n[1-4] read from nas at 940 Mbit/s together, 235 each; one alone at 935: one host fills the server's link; \
                 more hosts read no faster",
                "n[1-4] write to nas at 920 Mbit/s together, 230 each; one alone at 455: 2 hosts fill the server's link; \
                 more hosts write no faster",
            ]
        );
        let wide = [0, 1].map(|at| pair(at, 450.0, 900.0));
        assert!(ServerRates::of(&names, &alone, &wide).unwrap().sentences()[0].ends_with("link carries all of them"));
        assert_eq!(ServerRates::of(&names, &[], &wide), None);
    }
}
