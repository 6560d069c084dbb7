//! Reads the state of hosts before tuning, finds other machines on their segment, and undoes tuning.

use super::{Facts, question, to_take_back};
use crate::net::Hosts;
use homing_exec::{Command, HostResult};
use homing_model::{Failure, NodeSet};
use homing_network::{BackgroundTraffic, NetworkHost, RoundOrder};
use homing_steps::{ChangePhase, FactQuery, Observed, SshExecutor, carry_out, observe, undo};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Prints the machines that this host has exchanged packets with on its interface, except its gateways and the
/// coordinator.
const NEIGHBOURS: &str = r#"set -- ${SSH_CONNECTION:-}
i=$(ip -o -4 addr show | awk -v a="${3:-}" '{ split($4, x, "/"); if (x[1] == a) print $2 }' | head -n 1)
g=$(ip -4 route show default | awk '{ for (i = 1; i < NF; i++) if ($i == "via") print $(i + 1) }')
ip -4 neigh show dev "$i" | awk -v g=" $(echo $g) ${1:-} " '$NF != "FAILED" && $NF != "INCOMPLETE" && !index(g, " " $1 " ") { print $1 }'"#;

/// Reads the state of all hosts. Each has to answer, and commands on it must run as root.
pub fn look(executor: &SshExecutor, hosts: &Hosts) -> Result<BTreeMap<String, Observed>, Failure> {
    let mut seen = BTreeMap::new();
    for host in &hosts.known {
        let question = question(host.interface.as_deref());
        let said = observe(executor, std::slice::from_ref(&host.name), &question);
        let there = said.into_values().next().unwrap_or(Err("no result came from this host".into()));
        let there =
            there.map_err(|why| Failure::system(format!("reading the network settings of {}: {why}", host.name)))?;
        if there.uid != 0 {
            let text =
                format!("you are user {} on {}, and only root may change its network settings", there.uid, host.name);
            return Err(Failure::system(text).hint("--sudo, or HOMING_SSH='ssh -l root'"));
        }
        seen.insert(host.name.clone(), there);
    }
    Ok(seen)
}

/// Collects the facts that trials need. One round measures the bytes under way on a full connection.
pub fn facts(hosts: &Hosts, seen: &BTreeMap<String, Observed>) -> Result<Vec<Facts>, Failure> {
    let round = hosts.carry_out(&RoundOrder { load: BackgroundTraffic::Alone, brief: false, pairs: vec![(0, 1)] })?;
    let pair = &round.pairs[0];
    let rate = pair.there.map_or(0.0, |flow| flow.mbit_per_s);
    // Two halves of a round trip. Mbit/s times microseconds are bits.
    let round_trip = pair.latency.last().map_or(0.0, |took| took.p50_us * 2.0);
    let of = |host: &NetworkHost| {
        let rate = rate.max(host.speed.map_or(0.0, f64::from));
        let seen = seen[&host.name].clone();
        let processors = seen.outputs.get("nproc").and_then(|n| n.trim().parse().ok()).unwrap_or(1);
        let interface = host.interface.clone().unwrap_or_default();
        Facts { host: host.name.clone(), interface, seen, processors, under_way: (rate * round_trip / 8.0) as u64 }
    };
    Ok(hosts.known.iter().map(of).collect())
}

/// Returns an error if a machine outside of `hosts` is on the segment: with its smaller MTU, it would get packets
/// that are too large.
pub fn alone(hosts: &Hosts) -> Result<(), Failure> {
    let said = hosts.all(&Command::argv(["sh", "-c", NEIGHBOURS]));
    let text = |said: Result<HostResult, String>| Some(String::from_utf8_lossy(&said.ok()?.stdout).into_owned());
    let heard: Vec<String> = said.into_iter().filter_map(text).collect();
    let others = others(&hosts.addresses, &heard);
    if others.is_empty() {
        return Ok(());
    }
    let text = format!("--mtu: {others} is on the segment too, but not in -w; nothing was changed");
    Err(Failure::usage(text)
        .hint("name all hosts of the segment in -w; add --not-all if the others have this MTU already"))
}

/// Returns the addresses that hosts have in their neighbour tables, without the hosts' own.
fn others(own: &[Ipv4Addr], heard: &[String]) -> NodeSet {
    let addresses = heard.iter().flat_map(|text| text.lines()).filter_map(|line| line.parse::<Ipv4Addr>().ok());
    addresses.filter(|address| !own.contains(address)).map(|address| address.to_string()).collect()
}

/// Undoes all that tuning has kept. Returns messages for the user, and whether everything was undone.
pub fn take_back(executor: &SshExecutor, names: &[String]) -> (Vec<String>, bool) {
    let journals = observe(executor, names, &question(None));
    let mut question: FactQuery = question(None);
    let changes = journals.values().flatten().flat_map(|seen| &seen.journal).map(|(_, change)| change);
    question.links = FactQuery::of_changes(changes).links;
    let seen = observe(executor, names, &question);
    let (mut phase, mut faults, mut well) =
        (ChangePhase { name: "undoing changes".into(), ..ChangePhase::default() }, Vec::new(), true);
    for (host, there) in seen {
        let mut there = match there {
            Ok(there) => there,
            Err(why) => {
                well = false;
                faults.push(format!("{host}: {why}"));
                continue;
            }
        };
        faults.extend(to_take_back(&mut there).into_iter().map(|why| format!("{host}: {why}")));
        let undone = undo(&there);
        let back = undone.steps.iter().map(|step| format!("{host}: {}", step.change.description()));
        faults.extend(back.chain(undone.changed.iter().map(|why| format!("{host}: {why}"))));
        phase.steps.insert(host.clone(), undone.steps);
        phase.void.insert(host, undone.void);
    }
    let lost = carry_out(executor, &[phase], &mut |_| {});
    faults.extend(lost.iter().map(|(host, why)| format!("{host}: {why}")));
    (faults, well && lost.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_else_is_on_the_segment_is_told_once_and_no_host_of_it() {
        let own = ["10.0.0.1", "10.0.0.2"].map(|a| a.parse().unwrap());
        let heard = ["10.0.0.2\n10.0.0.9\nnoise\n", "10.0.0.1\n10.0.0.9\n10.0.0.7\n"].map(String::from);
        assert_eq!(others(&own, &heard).iter().collect::<Vec<_>>(), ["10.0.0.7", "10.0.0.9"]);
        assert!(others(&own, &heard[..0]).is_empty());
    }
}
