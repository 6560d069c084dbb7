//! What flows between pairs of hosts, round after round until it is known who is slow.

mod ask;
mod show;

pub use ask::{Hosts, input};
pub use show::{curve, curve_json, json, points, text};

use crate::{BenchError, Tell};
use homing_model::units::count;
use homing_network::{Load, Measured, Order, mixed, next};

/// Rounds until all is known; with `all`, each host with each other.
///
/// `seed` chooses who is paired with whom.
pub fn measure(hosts: &Hosts, all: bool, seed: u64, tell: Tell) -> Result<Measured, BenchError> {
    let order = mixed(hosts.known.len(), seed);
    let mut measured = Measured { hosts: hosts.known.clone(), rounds: Vec::new() };
    while let Some(round) = next(&measured, &order, all) {
        (tell.progress)(&said(measured.rounds.len() + 1, &round, hosts));
        measured.rounds.push(hosts.carry_out(&round)?);
    }
    Ok(measured)
}

/// What is measured now.
fn said(nth: usize, round: &Order, hosts: &Hosts) -> String {
    let name = |host: usize| &hosts.known[host].name;
    match (round.load, &round.pairs[..]) {
        (Load::Alone, [(a, b)]) => format!("round {nth}: {} with {}, alone", name(*a), name(*b)),
        (_, pairs) => format!("round {nth}: {} at once", count(pairs.len() as u64, "pair")),
    }
}
