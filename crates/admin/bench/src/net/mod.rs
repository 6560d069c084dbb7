//! Measures pairs of hosts, round after round, until it is known which hosts are slow.

mod ask;
mod page;
mod pings;
mod second;
mod show;
pub mod tune;

pub use ask::{Hosts, input};
pub use page::page;
pub use pings::pings;
pub use second::mpi;
pub use show::{Curve, curve, curve_json, json, more, points, text};

use crate::ProgressReporter;
use homing_model::Failure;
use homing_model::units::count;
use homing_network::{BackgroundTraffic, NetworkMeasurements, Pair, RoundOrder, ServerRates, mixed, next};

/// Runs rounds until all is known; with `all`, each host is measured with each other.
///
/// `seed` determines the pairs.
pub fn measure(
    hosts: &Hosts,
    all: bool,
    seed: u64,
    reporter: ProgressReporter,
) -> Result<NetworkMeasurements, Failure> {
    let order = mixed(hosts.known.len(), seed);
    let mut measured = NetworkMeasurements { hosts: hosts.known.clone(), rounds: Vec::new() };
    while let Some(round) = next(&measured, &order, all) {
        (reporter.progress)(&round_description(measured.rounds.len() + 1, &round, hosts));
        measured.rounds.push(hosts.carry_out(&round)?);
    }
    Ok(measured)
}

/// Measures the rates of servers: to some hosts alone, one after the other, and to all at once. Hosts are given by
/// their index.
pub fn serving(hosts: &Hosts, servers: &[usize], reporter: ProgressReporter) -> Result<Vec<ServerRates>, Failure> {
    let all = 0..hosts.known.len();
    let clients: Vec<usize> = all.filter(|host| !servers.contains(host)).collect();
    let of = |server: &usize| {
        // A server that has no other clients serves the other servers.
        let others = (0..hosts.known.len()).filter(|host| host != server);
        let clients: Vec<usize> = if clients.is_empty() { others.collect() } else { clients.clone() };
        let name = &hosts.known[*server].name;
        (reporter.progress)(&format!("{name}: {} alone, then {} at once", ALONE.min(clients.len()), clients.len()));
        let order = |clients: &[usize]| RoundOrder {
            load: BackgroundTraffic::Alone,
            brief: false,
            pairs: clients.iter().map(|client| (*client, *server)).collect(),
        };
        let alone = clients.iter().take(ALONE).map(|client| hosts.carry_out(&order(&[*client])));
        let alone: Vec<Pair> =
            alone.collect::<Result<Vec<_>, _>>()?.into_iter().flat_map(|round| round.pairs).collect();
        let together = hosts.carry_out(&order(&clients))?.pairs;
        if let Some(why) = alone.iter().chain(&together).find_map(|pair| pair.failed.as_ref()) {
            (reporter.note)(&format!("{name}: some hosts could not be measured with it: {why}"));
        }
        Ok(ServerRates::of(&hosts.known, &alone, &together))
    };
    Ok(servers.iter().map(of).collect::<Result<Vec<_>, Failure>>()?.into_iter().flatten().collect())
}

/// Hosts that are measured with a server alone: the median of three is not the value of a single faulty host.
const ALONE: usize = 3;

/// Describes the round that is measured now.
fn round_description(nth: usize, round: &RoundOrder, hosts: &Hosts) -> String {
    let name = |host: usize| &hosts.known[host].name;
    match (round.load, &round.pairs[..]) {
        (BackgroundTraffic::Alone, [(a, b)]) => format!("round {nth}: {} with {}, alone", name(*a), name(*b)),
        (_, pairs) => format!("round {nth}: {} at once", count(pairs.len() as u64, "pair")),
    }
}
