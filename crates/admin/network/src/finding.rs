//! Describes the faults of a network in sentences.

use crate::groups::LinkGroups;
use crate::judge::{HALF, Judge, SLOW, quartile};
use crate::measured::{BackgroundTraffic, NetworkMeasurements, Pair, Round};
use crate::next::{Side, crossed, sides, slow_paths};
use homing_model::NodeSet;
use serde::Serialize;
use std::collections::BTreeMap;

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// A host's link negotiated less than the others'.
    Negotiated,
    /// A host's interface has another MTU than the others'.
    Mtu,
    /// Small packets reach a host, and large ones do not.
    LargePackets,
    /// A host sends slowly.
    Send,
    /// A host receives slowly.
    Receive,
    /// A host does both slowly.
    SendReceive,
    /// Packets that a host sends, or that are sent to it, are lost.
    Loss,
    /// A host's link takes one direction at a time.
    HalfDuplex,
    /// Two hosts are slow with each other only.
    Path,
    /// Groups of hosts with one link between them.
    Shared,
    /// Hosts that are slow, and no healthy host is left to compare with.
    Unclear,
    /// Nothing could be measured.
    Unmeasured,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetworkFinding {
    /// Its kind.
    pub kind: FaultKind,
    /// The hosts concerned; for a shared link, a node set for each side.
    pub hosts: Vec<String>,
    /// The observation.
    pub sentence: String,
    /// The things to check.
    pub look: &'static str,
}

/// The share of retransmitted bytes that counts as a fault, if other hosts have none.
const LOSS: f64 = 0.01;
/// Retransmissions must exceed the usual share by this factor.
const LOSSES: f64 = 10.0;
/// If flows carry a smaller share of the negotiated speed, that speed is no measure: a virtual interface invents it.
const HONEST: f64 = 0.6;

const CABLE: &str =
    "its cable, port or NIC: see `ethtool INTERFACE` and `ethtool -S INTERFACE`; try another cable, another port";
const PORT: &str =
    "the MTU of its switch port and of the ports between: hosts of a segment need the same, switches at least that";
const LINK: &str = "the link between their switches: its speed, and whether a second link is in use";

/// Returns all faults, those of hosts first.
pub fn findings(measured: &NetworkMeasurements) -> Vec<NetworkFinding> {
    let judge = Judge::new(measured);
    let groups = LinkGroups::new(&judge);
    let faults = NetworkFaults { judge: &judge, of: measured, groups: &groups };
    let hosts = 0..measured.hosts.len();
    let mut all = faults.unmeasured();
    all.extend(faults.negotiated());
    all.extend(faults.mtu());
    all.extend(hosts.filter_map(|host| faults.host(host)));
    all.extend(faults.unclear());
    all.extend(faults.paths());
    all.extend(faults.shared());
    all
}

struct NetworkFaults<'a> {
    judge: &'a Judge<'a>,
    of: &'a NetworkMeasurements,
    groups: &'a LinkGroups,
}

impl NetworkFaults<'_> {
    fn name(&self, host: usize) -> &str {
        &self.of.hosts[host].name
    }

    fn set(&self, hosts: &[usize]) -> String {
        hosts.iter().map(|h| self.name(*h).to_string()).collect::<NodeSet>().to_string()
    }

    fn about(&self, kind: FaultKind, hosts: &[usize], sentence: String, look: &'static str) -> NetworkFinding {
        NetworkFinding { kind, hosts: hosts.iter().map(|h| self.name(*h).to_string()).collect(), sentence, look }
    }

    /// Returns the hosts that could not be measured, each once; then pairs.
    fn unmeasured(&self) -> Vec<NetworkFinding> {
        let failed = |pair: &Pair| pair.failed.is_some();
        let never = |host: usize| {
            let mut own = self.of.pairs().filter(|pair| pair.has(host)).peekable();
            own.peek().is_some() && own.all(failed)
        };
        let mut found: BTreeMap<Vec<usize>, String> = BTreeMap::new();
        for pair in self.of.pairs().filter(|pair| failed(pair)) {
            let hosts: Vec<usize> = match [pair.a, pair.b].into_iter().filter(|h| never(*h)).collect::<Vec<_>>() {
                alone if alone.len() == 1 => alone,
                _ => vec![pair.a.min(pair.b), pair.a.max(pair.b)],
            };
            found.entry(hosts).or_insert_with(|| pair.failed.clone().unwrap_or_default());
        }
        let look = "firewalls between these hosts: each round of the measurement needs TCP port 47113";
        let fault = |(hosts, why): (Vec<usize>, String)| {
            let sentence = format!("{} could not be measured: {why}", self.set(&hosts));
            self.about(FaultKind::Unmeasured, &hosts, sentence, look)
        };
        found.into_iter().map(fault).collect()
    }

    /// Returns the value of most hosts, and the hosts with other values.
    fn unlike(&self, of: impl Fn(usize) -> Option<u32>) -> Option<(u32, BTreeMap<u32, Vec<usize>>)> {
        let mut by: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (value, host) in (0..self.of.hosts.len()).filter_map(|host| Some((of(host)?, host))) {
            by.entry(value).or_default().push(host);
        }
        let most = by.iter().max_by_key(|(value, hosts)| (hosts.len(), **value)).map(|(value, _)| *value)?;
        by.remove(&most);
        Some((most, by))
    }

    fn negotiated(&self) -> Vec<NetworkFinding> {
        let Some((most, others)) = self.unlike(|host| self.of.hosts[host].speed) else { return Vec::new() };
        let less = others.into_iter().filter(|(speed, _)| *speed < most);
        less.map(|(speed, hosts)| {
            let sentence = format!("{} negotiated {speed} Mbit/s, most others {most}", self.set(&hosts));
            self.about(FaultKind::Negotiated, &hosts, sentence, CABLE)
        })
        .collect()
    }

    fn mtu(&self) -> Vec<NetworkFinding> {
        let Some((most, others)) = self.unlike(|host| self.of.hosts[host].mtu) else { return Vec::new() };
        let fault = |(mtu, hosts): (u32, Vec<usize>)| {
            let sentence = format!("{}: MTU {mtu}, most others {most}", self.set(&hosts));
            self.about(
                FaultKind::Mtu,
                &hosts,
                sentence,
                "their MTU: `ip link set INTERFACE mtu BYTES` sets it; hosts of a segment need the same",
            )
        };
        others.into_iter().map(fault).collect()
    }

    /// Returns the fault of a single host.
    fn host(&self, host: usize) -> Option<NetworkFinding> {
        if self.stalls(host) {
            let own = self.of.hosts[host].mtu.map(|mtu| format!("; its interface sends up to {mtu} bytes"));
            let sentence =
                format!("{}: small packets pass, large ones do not{}", self.name(host), own.unwrap_or_default());
            return Some(self.about(FaultKind::LargePackets, &[host], sentence, PORT));
        }
        self.slow(host).or_else(|| self.loss(host)).or_else(|| self.half(host))
    }

    /// Whether no large packet ever passed, although large packets pass among others.
    fn stalls(&self, host: usize) -> bool {
        let ever = |host: usize| self.of.pairs().any(|pair| pair.has(host) && !pair.stalled && pair.failed.is_none());
        let met = self.of.pairs().filter(|pair| pair.has(host) && pair.stalled);
        !ever(host) && met.flat_map(|pair| [pair.a, pair.b]).any(|other| other != host && ever(other))
    }

    fn slow(&self, host: usize) -> Option<NetworkFinding> {
        if self.judge.times_alone(host) == 0 {
            return None;
        }
        let slow = |share: Option<f64>| share.filter(|share| *share < SLOW);
        let (sends, receives) = (self.judge.sends(host), self.judge.receives(host));
        let (kind, mut sentence) = match (slow(sends), slow(receives)) {
            (Some(sends), Some(receives)) => {
                let both = format!(
                    "sends at {} and receives at {}",
                    percent(self.share(host, sends)),
                    self.of_what(host, receives)
                );
                (FaultKind::SendReceive, format!("{} {both}", self.name(host)))
            }
            (Some(sends), None) => (
                FaultKind::Send,
                format!("{} sends at {}; receiving is normal", self.name(host), self.of_what(host, sends)),
            ),
            (None, Some(receives)) => (
                FaultKind::Receive,
                format!("{} receives at {}; sending is normal", self.name(host), self.of_what(host, receives)),
            ),
            (None, None) => return None,
        };
        if let Some(lost) = self.lost(host) {
            sentence = format!("{sentence}; {lost}");
        }
        Some(self.about(kind, &[host], sentence, CABLE))
    }

    /// Returns the negotiated speed of a host's link, if it is plausible.
    fn link(&self, host: usize) -> Option<f64> {
        self.of.hosts[host].speed.map(f64::from).filter(|speed| self.usual(host) > speed * HONEST)
    }

    /// Returns the usual rate of a host's link with others of its kind, Mbit/s.
    fn usual(&self, host: usize) -> f64 {
        let others = (0..self.of.hosts.len()).filter(|other| *other != host);
        others.map(|other| self.judge.expected(host, other)).filter(|rate| rate.is_finite()).fold(0.0, f64::max)
    }

    /// Returns the share of the negotiated speed, if that is known, or of the usual rate.
    fn share(&self, host: usize, share: f64) -> f64 {
        self.link(host).map_or(share, |speed| share * self.usual(host) / speed)
    }

    fn of_what(&self, host: usize, share: f64) -> String {
        let rate = share * self.usual(host);
        let (what, whole) = match self.link(host) {
            Some(speed) => ("the negotiated speed", speed),
            None => ("the usual rate of other hosts", self.usual(host)),
        };
        format!("{} of {what} ({rate:.0} of {whole:.0} Mbit/s)", percent(self.share(host, share)))
    }

    fn lost(&self, host: usize) -> Option<String> {
        let hosts = 0..self.of.hosts.len();
        let usual = |of: &dyn Fn(usize) -> Option<f64>| quartile(hosts.clone().filter_map(of), 2).unwrap_or(0.0);
        // Packets that cross a full link are lost there; such flows do not count.
        let to = |host: usize| self.judge.again(|from, to| to == host && !self.groups.apart(from, to));
        let from = |host: usize| self.judge.again(|from, to| from == host && !self.groups.apart(from, to));
        let much = |share: Option<f64>, usual: f64| share.filter(|share| *share >= LOSS.max(usual * LOSSES));
        let of = |share: f64, what: &str| format!("{} of the bytes {what} are retransmitted", percent(share));
        let to = much(to(host), usual(&to)).map(|share| of(share, "sent to it"));
        to.or(much(from(host), usual(&from)).map(|share| of(share, "that it sends")))
    }

    fn loss(&self, host: usize) -> Option<NetworkFinding> {
        let lost = self.lost(host)?;
        Some(self.about(FaultKind::Loss, &[host], format!("{}: {lost}", self.name(host)), CABLE))
    }

    fn half(&self, host: usize) -> Option<NetworkFinding> {
        let slow = self.judge.at_once(host).filter(|share| *share < HALF && self.judge.times_alone(host) > 0);
        let seen = match slow {
            Some(share) => {
                format!("both directions at once reach {} of the usual rate; each alone is normal", percent(share))
            }
            None if self.of.hosts[host].half_duplex => {
                "its link is half duplex: it carries one direction at a time".into()
            }
            None => return None,
        };
        let look =
            "duplex at both ends: run `ethtool -s INTERFACE autoneg on`, and set the switch port to auto-negotiation";
        Some(self.about(FaultKind::HalfDuplex, &[host], format!("{}: {seen}", self.name(host)), look))
    }

    /// Returns the suspects that could not be measured with any good host.
    fn unclear(&self) -> Option<NetworkFinding> {
        let hosts = 0..self.of.hosts.len();
        let unclear =
            |host: &usize| self.judge.suspect(*host) && self.judge.times_alone(*host) == 0 && !self.stalls(*host);
        let suspects: Vec<usize> = hosts.filter(unclear).collect();
        let sentence = match suspects[..] {
            [] => return None,
            _ => format!(
                "{} were slow in every pair measured; no healthy host is left to compare with",
                self.set(&suspects)
            ),
        };
        Some(self.about(
            FaultKind::Unclear,
            &suspects,
            sentence,
            "these hosts beside one that is known to be good: add it to -w",
        ))
    }

    fn paths(&self) -> Vec<NetworkFinding> {
        let alone = |&(a, b): &(usize, usize)| self.of.under(BackgroundTraffic::Alone).any(|pair| pair.is(a, b));
        let fault = |(a, b): (usize, usize)| {
            let way = |from, to| {
                let share = self.judge.path(from, to).filter(|share| *share < SLOW)?;
                Some(format!("{} of the usual rate from {} to {}", percent(share), self.name(from), self.name(to)))
            };
            let ways: Vec<String> = [way(a, b), way(b, a)].into_iter().flatten().collect();
            let sentence = format!("{}; both hosts are normal with others", ways.join(", "));
            self.about(FaultKind::Path, &[a, b], sentence, "the switches and routes between the two")
        };
        slow_paths(self.judge, self.groups).into_iter().filter(alone).map(fault).collect()
    }

    fn shared(&self) -> Vec<NetworkFinding> {
        let fault = |side: Side| {
            let carries = self.carries(crossed(self.of, &side)?)?;
            let (one, other) = (self.set(&side.0), self.set(&side.1));
            let sentence = format!("{one} and {other} share one link of {carries:.0} Mbit/s");
            Some(NetworkFinding { kind: FaultKind::Shared, hosts: vec![one, other], sentence, look: LINK })
        };
        sides(&self.groups.all()).into_iter().filter_map(fault).collect()
    }

    /// Returns the rate of a link each way, Mbit/s, if it is lower than the rate of the hosts.
    fn carries(&self, round: &Round) -> Option<f64> {
        let flows = |way: usize| round.pairs.iter().filter_map(move |pair| pair.at_once().nth(way));
        let sum = |way| flows(way).map(|(_, _, flow)| flow.mbit_per_s).sum::<f64>();
        let pairs: Vec<f64> = round.pairs.iter().filter_map(|pair| self.judge.both(pair)).collect();
        let full = !pairs.is_empty() && pairs.iter().sum::<f64>() / (pairs.len() as f64) < SLOW;
        full.then(|| f64::max(sum(0), sum(1)))
    }
}

fn percent(share: f64) -> String {
    match share * 100.0 {
        small if small < 10.0 => format!("{small:.1} %"),
        large => format!("{large:.0} %"),
    }
}
