//! Hosts that take part in a measurement: facts about their links, and the rates between pairs of them.

use super::pings::pings;
use crate::ends::{self, End, EndOrder, PORT, PairEnd, PairReport, PairsOrder};
use homing_exec::{Command, CommandInput, CommandOutcome, HostResult, InputSpool, Options, Remote};
use homing_model::Failure;
use homing_model::text::shown;
use homing_network::{BackgroundTraffic, FlowRate, Latency, NetworkHost, Pair, Round, RoundOrder};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Prints the address by which this host was reached, its interface, and the kernel's facts about that interface.
const FACTS: &str = r#"set -- ${SSH_CONNECTION:-}
a=${3:-$(hostname -I | cut -d ' ' -f 1)}
i=$(ip -o -4 addr show | awk -v a="$a" '{ split($4, x, "/"); if (x[1] == a) print $2 }' | head -n 1)
l=/sys/class/net/$i
s=$(cat "$l/speed" 2> /dev/null)
# A container's link tells 10000 whatever it carries: drivers/net/veth.c.
case $(ip -o -d link show dev "$i") in *" veth "*) s= ;; esac
echo "$a|$i|$s|$(cat "$l/mtu" 2> /dev/null)|$(cat "$l/duplex" 2> /dev/null)""#;

/// Sizes of the messages whose latency is measured, bytes: one byte, one packet, several packets.
const MESSAGES: [u32; 3] = [1, 1024, 16384];
/// The largest message of a curve, as a power of two: on 100 Gbit/s it takes longer than the latency of a network.
const LARGEST: u32 = 20;
/// Time limit of a command on a host, unless the user gave one: a host that answers no sooner is lost.
const COMMAND: Duration = Duration::from_secs(60);

/// All hosts, and the connections to them.
pub struct Hosts {
    remote: Remote,
    seconds: f64,
    /// Facts about each host, as it reported them.
    pub known: Vec<NetworkHost>,
    /// The addresses by which they were reached.
    pub addresses: Vec<Ipv4Addr>,
    /// Hosts that did not answer, each with the reason. They take no part.
    pub silent: Vec<(String, String)>,
    /// Whether a round has begun on all of its hosts.
    begun: Cell<bool>,
}

impl Hosts {
    /// Queries all hosts; each has to answer.
    pub fn query(options: Options, names: &[String], seconds: f64) -> Result<Hosts, Failure> {
        let hosts = Hosts::answering(options, names, seconds)?;
        match hosts.silent.first() {
            None => Ok(hosts),
            Some((host, why)) => {
                let failure = Failure::system(format!("reading the address of {host}: {why}"));
                Err(failure.hint(format!("-x {host} leaves it out")))
            }
        }
    }

    /// Queries all hosts. Those that cannot be reached are left out, unless fewer than two others are left.
    pub fn answering(mut options: Options, names: &[String], seconds: f64) -> Result<Hosts, Failure> {
        // The hosts measure at the same time.
        options.fan_out = options.fan_out.max(names.len());
        options.command_timeout.get_or_insert(COMMAND);
        let remote = Remote::new(options);
        let mut said: Vec<HostResult> = remote.run(names, &Command::argv(["sh", "-c", FACTS])).collect();
        said.sort_by_key(|result| names.iter().position(|name| *name == result.host));
        let is_silent = |result: &HostResult| matches!(result.outcome, CommandOutcome::Unreachable(_));
        let left = said.iter().filter(|result| !is_silent(result)).count();
        let (silent, said): (Vec<HostResult>, Vec<HostResult>) =
            said.into_iter().partition(|result| left >= 2 && is_silent(result));
        let silent = silent.iter().map(|result| (result.host.clone(), shown(&result.why()))).collect();
        let names: Vec<&str> = said.iter().map(|result| result.host.as_str()).collect();
        let facts = said.iter().map(facts).collect::<Result<Vec<_>, _>>()?;
        let (known, addresses): (Vec<NetworkHost>, Vec<Ipv4Addr>) = facts.into_iter().unzip();
        for (i, address) in addresses.iter().enumerate() {
            if let Some(same) = addresses[..i].iter().position(|other| other == address) {
                let text = format!("{} and {} are one host: ssh reaches both at {address}", names[same], names[i]);
                return Err(Failure::usage(text).hint("name each host once, and by its own address"));
            }
        }
        Ok(Hosts { remote, seconds, known, addresses, silent, begun: Cell::new(false) })
    }

    /// Runs a command on all hosts and returns the results in the order of hosts.
    pub fn all(&self, command: &Command) -> Vec<Result<HostResult, String>> {
        let names: Vec<&str> = self.known.iter().map(|host| host.name.as_str()).collect();
        let mut said: Vec<Result<HostResult, String>> =
            names.iter().map(|_| Err("no result came from this host".into())).collect();
        for result in self.remote.run(&names, command) {
            if let Some(at) = names.iter().position(|name| *name == result.host) {
                said[at] = Ok(result);
            }
        }
        said
    }

    /// Runs a command on some of the hosts and returns the results in any order.
    pub fn on(&self, names: &[String], command: &Command) -> Vec<HostResult> {
        self.remote.run(names, command).collect()
    }

    /// Returns how long each part of a round loads a pair, seconds.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Sends packets of `bytes` bytes that must not be fragmented, and returns the pairs where none arrives, as `n1
    /// to 10.0.0.2`.
    pub fn lost(&self, bytes: u32) -> Vec<String> {
        let addresses: Vec<IpAddr> = self.addresses.iter().map(|address| IpAddr::V4(*address)).collect();
        let said = self.all(&Command::shell(pings(bytes, &addresses)));
        let of = |(host, said): (&NetworkHost, Result<HostResult, String>)| match said {
            Ok(said) if said.outcome == CommandOutcome::Exited(0) => {
                let lines = String::from_utf8_lossy(&said.stdout).into_owned();
                lines.lines().map(|line| format!("{} to {}", host.name, shown(line))).collect::<Vec<_>>()
            }
            Ok(said) => vec![format!("{}: {}", host.name, shown(&said.why()))],
            Err(why) => vec![format!("{}: {why}", host.name)],
        };
        self.known.iter().zip(said).flat_map(of).collect()
    }

    /// Measures the pairs of a round.
    pub fn carry_out(&self, order: &RoundOrder) -> Result<Round, Failure> {
        self.with_messages(order, &MESSAGES)
    }

    /// Measures messages of all sizes between the first host and the second, while no other pair is loaded.
    pub fn curve(&self) -> Result<Pair, Failure> {
        let sizes: Vec<u32> = (0..=LARGEST).map(|power| 1 << power).collect();
        let order = RoundOrder { load: BackgroundTraffic::Alone, brief: false, pairs: vec![(0, 1)] };
        Ok(self.with_messages(&order, &sizes)?.pairs.remove(0))
    }

    fn with_messages(&self, order: &RoundOrder, sizes: &[u32]) -> Result<Round, Failure> {
        let token = homing_os::folder::unguessable();
        let token = token.map_err(|e| Failure::system(format!("reading a random number from the kernel: {e}")))?;
        let own = pair_ends(&order.pairs, &self.addresses);
        let RoundEnds { open, mut lost } = self.open_ends(own.keys().copied().collect())?;
        // A host is given the pairs whose other host is there, too.
        let is_open: Vec<bool> =
            order.pairs.iter().map(|(a, b)| open.contains_key(a) && open.contains_key(b)).collect();
        let mut given: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut orders = Vec::new();
        for (host, end) in open {
            let pairs: Vec<(usize, PairEnd)> = own[&host].iter().filter(|(nth, _)| is_open[*nth]).cloned().collect();
            if pairs.is_empty() {
                continue;
            }
            let (numbers, pairs) = pairs.into_iter().unzip();
            let (token, seconds, brief, sizes) = (token.clone(), self.seconds, order.brief, sizes.to_vec());
            orders.push((end, EndOrder::Pairs(PairsOrder { token, seconds, brief, sizes, pairs })));
            given.push((host, numbers));
        }
        let mut reports: BTreeMap<(usize, usize), PairReport> = BTreeMap::new();
        for ((host, numbers), result) in given.into_iter().zip(ends::carry_out::<Vec<PairReport>>(orders)) {
            match result {
                Ok(all) => {
                    let of_pairs = numbers.into_iter().map(|nth| (nth, host));
                    reports.extend(of_pairs.zip(all.into_iter().map(checked)));
                }
                Err(why) => drop(lost.insert(host, shown(&why))),
            }
        }
        // A host whose partner was lost before it began has no report.
        let mut report = |nth: usize, host: usize, other: usize| {
            let why = || lost.get(&host).or(lost.get(&other)).map_or("no result came from this host", String::as_str);
            let none = || PairReport { failed: Some(why().into()), ..PairReport::default() };
            reports.remove(&(nth, host)).unwrap_or_else(none)
        };
        let pair = |(nth, &(a, b)): (usize, &(usize, usize))| read(a, b, &report(nth, a, b), &report(nth, b, a));
        Ok(Round { load: order.load, pairs: order.pairs.iter().enumerate().map(pair).collect() })
    }

    /// Starts the ends of a round.
    fn open_ends(&self, hosts: Vec<usize>) -> Result<RoundEnds, Failure> {
        let names: Vec<String> = hosts.iter().map(|host| self.known[*host].name.clone()).collect();
        let RoundEnds { mut open, mut lost } = RoundEnds::default();
        for (host, end) in hosts.into_iter().zip(ends::open(&self.remote, &names)) {
            match end {
                Ok(end) => drop(open.insert(host, end)),
                // Before the first round nothing is known that a report could show.
                Err(why) if !self.begun.get() => return Err(Failure::system(why)),
                Err(why) => drop(lost.insert(host, shown(&why))),
            }
        }
        self.begun.set(true);
        Ok(RoundEnds { open, lost })
    }
}

/// The hosts of a round, by their index.
#[derive(Default)]
struct RoundEnds {
    open: BTreeMap<usize, End>,
    /// The reasons why some hosts have no end.
    lost: BTreeMap<usize, String>,
}

/// Returns the pairs of each host, with their numbers in the round. The first host of a pair connects to the second.
fn pair_ends(pairs: &[(usize, usize)], addresses: &[Ipv4Addr]) -> BTreeMap<usize, Vec<(usize, PairEnd)>> {
    let mut own: BTreeMap<usize, Vec<(usize, PairEnd)>> = BTreeMap::new();
    for (nth, &(a, b)) in pairs.iter().enumerate() {
        // A host that several hosts connect to listens at as many ports.
        let port = PORT + pairs[..nth].iter().filter(|(_, other)| *other == b).count() as u16;
        let [at_a, at_b] = [a, b].map(|host| IpAddr::V4(addresses[host]));
        own.entry(a).or_default().push((nth, PairEnd { own: at_a, other: at_b, port, connects: true }));
        own.entry(b).or_default().push((nth, PairEnd { own: at_b, other: at_a, port, connects: false }));
    }
    own
}

/// Returns a report without the values that are none. No host is trusted.
fn checked(report: PairReport) -> PairReport {
    let known = |n: &f64| n.is_finite() && *n >= 0.0;
    let is_known = |took: &Latency| [took.p50_us, took.p99_us, took.max_us].iter().all(known);
    PairReport {
        latency: report.latency.into_iter().filter(is_known).collect(),
        received: report.received.filter(known),
        sent_again: Some(report.sent_again).filter(known).map_or(0.0, |share| share.min(1.0)),
        both: report.both.filter(known),
        stalled: report.stalled,
        failed: report.failed.map(|why| shown(&why)),
    }
}

/// Makes a script the standard input of a command.
pub fn input(script: &str) -> Result<CommandInput, Failure> {
    let spool = InputSpool::of(script.as_bytes());
    let spool = spool.map_err(|e| {
        Failure::system(format!("making a temporary file for the script: {e}"))
            .hint("TMPDIR=FOLDER names another folder for temporary files")
    })?;
    Ok(CommandInput::Spool(spool))
}

/// Reads the facts of a host about the interface that has its address.
fn facts(said: &HostResult) -> Result<(NetworkHost, Ipv4Addr), Failure> {
    let name = &said.host;
    if said.outcome != CommandOutcome::Exited(0) {
        return Err(Failure::system(format!("reading the address of {name}: {}", shown(&said.why()))));
    }
    let text = String::from_utf8_lossy(&said.stdout);
    let line = text.lines().last().unwrap_or_default();
    let mut words = line.split('|').map(str::trim);
    let mut word = || words.next().unwrap_or_default();
    let address = word().parse().map_err(|_| {
        Failure::system(format!("{name} is reached at {:?}, which is not an IPv4 address", shown(line)))
            .hint("name this host by its IPv4 address, or by a name that has one")
    })?;
    let interface = Some(shown(word())).filter(|name| !name.is_empty());
    // Links that do not know their speed report -1.
    let (speed, mtu) = (word().parse().ok().filter(|speed| *speed > 0), word().parse().ok());
    Ok((NetworkHost { name: name.clone(), interface, speed, mtu, half_duplex: word() == "half" }, address))
}

/// Joins the reports of both ends. The bytes that one end receives are those that the other sent.
fn read(a: usize, b: usize, first: &PairReport, second: &PairReport) -> Pair {
    let stalled = first.stalled || second.stalled;
    let failed = first.failed.clone().or(second.failed.clone()).filter(|_| !stalled);
    let known = !stalled && failed.is_none();
    let flow =
        |mbit_per_s: Option<f64>, again| mbit_per_s.filter(|_| known).map(|rate| FlowRate { mbit_per_s: rate, again });
    let both = flow(second.both, 0.0).zip(flow(first.both, 0.0));
    Pair {
        a,
        b,
        latency: first.latency.clone(),
        there: flow(second.received, first.sent_again),
        back: flow(first.received, second.sent_again),
        both,
        stalled,
        failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_receives_is_what_the_other_sent() {
        let latency = vec![Latency { bytes: 1, p50_us: 25.0, p99_us: 30.0, max_us: 99.0 }];
        let first = PairReport {
            latency: latency.clone(),
            sent_again: 0.5,
            received: Some(90.0),
            both: Some(80.0),
            ..PairReport::default()
        };
        let second = PairReport { received: Some(40.0), both: Some(30.0), ..PairReport::default() };
        let pair = read(3, 5, &first, &second);
        assert_eq!(pair.there, Some(FlowRate { mbit_per_s: 40.0, again: 0.5 }));
        assert_eq!(pair.back, Some(FlowRate { mbit_per_s: 90.0, again: 0.0 }));
        assert_eq!(pair.both.map(|(there, back)| (there.mbit_per_s, back.mbit_per_s)), Some((30.0, 80.0)));
        assert_eq!(pair.latency, latency);
    }

    #[test]
    fn each_host_has_its_end_of_each_of_its_pairs() {
        let addresses = [1, 2, 9].map(|last| Ipv4Addr::new(10, 0, 0, last));
        let own = pair_ends(&[(0, 2), (1, 2), (0, 1)], &addresses);
        let of =
            |host: usize| own[&host].iter().map(|(nth, end)| (*nth, end.port - PORT, end.connects)).collect::<Vec<_>>();
        assert_eq!(of(0), [(0, 0, true), (2, 0, true)]);
        assert_eq!(of(1), [(1, 1, true), (2, 0, false)]);
        assert_eq!(of(2), [(0, 0, false), (1, 1, false)], "a server listens at a port for each client");
        let (_, end) = &own[&2][1];
        assert_eq!((end.own, end.other), (IpAddr::V4(addresses[2]), IpAddr::V4(addresses[1])));
    }

    #[test]
    fn a_pair_that_stalled_carried_nothing_and_did_not_fail() {
        let failed = Some("10.0.0.1 closed the connection".into());
        let first = PairReport { stalled: true, received: Some(1.0), ..PairReport::default() };
        let pair = read(0, 1, &first, &PairReport { failed, ..PairReport::default() });
        assert_eq!((pair.stalled, pair.there, pair.back, pair.failed), (true, None, None, None));
    }

    #[test]
    fn what_is_no_number_is_unknown() {
        let took = |p50_us| Latency { bytes: 1, p50_us, ..Latency::default() };
        let report = checked(PairReport {
            latency: vec![took(f64::NAN), took(2.0), took(-1.0)],
            received: Some(f64::INFINITY),
            sent_again: f64::NAN,
            both: Some(-3.0),
            stalled: false,
            failed: Some("a\u{1b}[2Jb".into()),
        });
        assert_eq!((report.received, report.both, report.sent_again), (None, None, 0.0));
        assert_eq!(report.latency, [took(2.0)]);
        assert_eq!(report.failed.as_deref(), Some("a\\u{1b}[2Jb"));
    }

    #[test]
    fn facts_of_a_link_that_says_nothing_are_unknown() {
        let said = |stdout: &str| {
            let (outcome, stdout) = (CommandOutcome::Exited(0), stdout.into());
            facts(&HostResult { host: "n1".into(), outcome, stdout, ..empty() })
        };
        let (host, address) = said("10.0.0.1|eth0|-1|1500|full\n").unwrap();
        assert_eq!((host.speed, host.mtu, address), (None, Some(1500), Ipv4Addr::new(10, 0, 0, 1)));
        let refused = said("'); system('id|eth0").unwrap_err();
        assert!(refused.message.contains("not an IPv4 address"), "{refused}");
    }

    fn empty() -> HostResult {
        HostResult {
            host: String::new(),
            giver: homing_exec::Giver::Here,
            outcome: CommandOutcome::Killed,
            stdout: Vec::new(),
            stderr: Vec::new(),
            dropped: 0,
            elapsed: Duration::ZERO,
        }
    }
}
