//! Licences of Slurm's that the workers of a run take of the file servers of its inputs: jobs and runs of everybody
//! on Slurm have one limit then, and need no leases.

use super::args::Args;
use super::io_limit;
use crate::cluster::{Cluster, Server};
use crate::failure::Failure;
use homing_dispatch::{Io, Licensed};
use homing_slurm::{License, Seat, ask};
use std::collections::BTreeMap;

/// The licences, with the servers that they are of, that each of these workers takes.
pub fn of(
    args: &Args,
    cluster: &Cluster,
    holders: &[String],
    seats: &[Seat],
) -> Result<Vec<(String, Licensed)>, Failure> {
    let mut said = cluster.servers();
    said.retain(|_, server| server.license.is_some());
    let own = io_limit(&args.io)?;
    if args.no_share || own == Io::Off || said.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<String> =
        holders.iter().flat_map(|name| [vec![name.clone()], homing_names::addresses(name)].concat()).collect();
    said.retain(|section, _| crate::leases::is_one_of(section, &names));
    let known = if said.is_empty() { Vec::new() } else { ask::licenses().map_err(Failure::system)? };
    Ok(shares(&said, &known, own, seats))
}

fn shares(said: &BTreeMap<String, Server>, known: &[License], own: Io, seats: &[Seat]) -> Vec<(String, Licensed)> {
    let slots = seats.iter().map(|seat| seat.slots).max().unwrap_or(1);
    let one = |(section, server): (&String, &Server)| {
        let license = server.license.clone()?;
        let total = known.iter().find(|known| known.name == license).map(|known| known.total);
        let own = if let Io::Fixed(limit) = own { Some(limit) } else { None };
        let limit = [own, server.io.map(|io| io.get()), total].into_iter().flatten().min();
        // As much as all of them may have, spread over them: who has too few waits for those that others give back.
        let each = limit.map_or(slots, |limit| limit / seats.len().max(1) as u32).clamp(1, slots.max(1));
        let names = [vec![section.clone()], crate::addresses::of_soon(section)].concat();
        Some((license, Licensed { names, each }))
    };
    said.iter().filter_map(one).collect()
}

/// What srun is told.
pub fn word(licensed: &[(String, Licensed)]) -> Option<String> {
    let counts: BTreeMap<&str, u32> = licensed.iter().map(|(name, server)| (name.as_str(), server.each)).collect();
    let words: Vec<String> = counts.into_iter().map(|(name, count)| format!("{name}:{count}")).collect();
    (!words.is_empty()).then(|| words.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_workers_together_take_what_the_run_may_have() {
        let said: BTreeMap<String, Server> =
            toml::from_str("[\"192.0.2.1\"]\nlicense = \"nas\"\nio = 12\n[\"192.0.2.2\"]\nlicense = \"b@db\"\n")
                .unwrap();
        let nas = License { name: "nas".into(), total: 100, used: 0, users: BTreeMap::new() };
        let seats: Vec<Seat> = (0..4).map(|n| Seat { node: format!("n{n}"), slots: 8 }).collect();
        let of = |own, seats: &[Seat]| word(&shares(&said, std::slice::from_ref(&nas), own, seats)).unwrap();
        assert_eq!(of(Io::Fixed(8), &seats), "b@db:2,nas:2");
        assert_eq!(of(Io::Auto, &seats), "b@db:8,nas:3", "of one nothing is known");
        assert_eq!(of(Io::Fixed(2), &seats), "b@db:1,nas:1", "two workers begin");
        assert_eq!(of(Io::Auto, &seats[..1]), "b@db:8,nas:8", "no more than it has slots");
        assert_eq!(word(&[]), None);
    }
}
