//! Hosts that take part in a measurement: facts about their links, and the rates between pairs of them.

use super::pings::pings;
use homing_exec::{Command, CommandInput, CommandOutcome, HostResult, InputSpool, Options, Remote};
use homing_model::Failure;
use homing_model::text::shown;
use homing_network::{BackgroundTraffic, FlowRate, Latency, NetworkHost, Pair, Round, RoundOrder};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// The script that runs on both hosts of a pair.
const ENDS: &str = include_str!("ends.pl");

/// Prints the address by which this host was reached, its interface, and the kernel's facts about that interface.
const FACTS: &str = r#"set -- ${SSH_CONNECTION:-}
a=${3:-$(hostname -I | cut -d ' ' -f 1)}
command -v perl > /dev/null || { echo "no perl; install the package perl-base" >&2; exit 1; }
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
/// Time for a round without its load: making connections, trying sizes of messages, and giving up on a pair that
/// stalls.
const ROUND: Duration = Duration::from_secs(60);

/// All hosts, and the connections to them.
pub struct Hosts {
    remote: Remote,
    seconds: f64,
    /// Facts about each host, as it reported them.
    pub known: Vec<NetworkHost>,
    /// The addresses by which they were reached.
    pub addresses: Vec<Ipv4Addr>,
}

impl Hosts {
    /// Queries all hosts; each has to answer.
    pub fn query(mut options: Options, names: &[String], seconds: f64) -> Result<Hosts, Failure> {
        // Both hosts of a pair run their script at the same time.
        options.fan_out = options.fan_out.max(names.len());
        options.command_timeout.get_or_insert(ROUND + Duration::from_secs_f64(seconds * 10.0));
        let remote = Remote::new(options);
        let mut said: Vec<HostResult> = remote.run(names, &Command::argv(["sh", "-c", FACTS])).collect();
        said.sort_by_key(|result| names.iter().position(|name| *name == result.host));
        let facts = said.iter().map(facts).collect::<Result<Vec<_>, _>>()?;
        let (known, addresses): (Vec<NetworkHost>, Vec<Ipv4Addr>) = facts.into_iter().unzip();
        for (i, address) in addresses.iter().enumerate() {
            if let Some(same) = addresses[..i].iter().position(|other| other == address) {
                let text = format!("{} and {} are one host: ssh reaches both at {address}", names[same], names[i]);
                return Err(Failure::usage(text).hint("name each host once, and by its own address"));
            }
        }
        Ok(Hosts { remote, seconds, known, addresses })
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
        let command = Command::argv(["perl", "-"]).input(input(&self.script(order, sizes)?)?);
        let hosts: BTreeSet<usize> = order.pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
        let hosts: Vec<&str> = hosts.into_iter().map(|host| &*self.known[host].name).collect();
        let said: Vec<HostResult> = self.remote.run(&hosts, &command).collect();
        let of = |host: usize| said.iter().find(|result| result.host == self.known[host].name);
        let end = |host: usize, a: usize, b: usize| PairEndReport::of(of(host), [self.addresses[a], self.addresses[b]]);
        let pair = |&(a, b): &(usize, usize)| read(a, b, &end(a, a, b), &end(b, a, b));
        Ok(Round { load: order.load, pairs: order.pairs.iter().map(pair).collect() })
    }

    /// Returns the script of a round. It contains a secret by which two hosts know each other, and therefore goes
    /// through a pipe: no table of processes shows it.
    fn script(&self, order: &RoundOrder, sizes: &[u32]) -> Result<String, Failure> {
        let token = homing_os::folder::unguessable();
        let token = token.map_err(|e| Failure::system(format!("reading a random number from the kernel: {e}")))?;
        let (seconds, brief) = (self.seconds, u8::from(order.brief));
        let sizes = sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let mut text = format!(
            "our @sizes = ({sizes});\nour ($token, $for, $brief) = ('{token}', {seconds}, {brief});\nour @pairs = ("
        );
        for (nth, &(a, b)) in order.pairs.iter().enumerate() {
            // A host that several hosts connect to listens at as many ports.
            let port = order.pairs[..nth].iter().filter(|(_, other)| *other == b).count();
            let _ = write!(text, "['{}', '{}', {port}],", self.addresses[a], self.addresses[b]);
        }
        Ok(text + ");\n" + ENDS)
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

/// The report of one end of a pair.
#[derive(Default)]
struct PairEndReport {
    latency: Vec<Latency>,
    received: Option<f64>,
    sent_again: f64,
    both: Option<f64>,
    stalled: bool,
    failed: Option<String>,
}

impl PairEndReport {
    /// Reads the lines about this pair. If a host has several pairs, `pair` and two addresses precede the lines of
    /// each.
    fn of(said: Option<&HostResult>, pair: [Ipv4Addr; 2]) -> PairEndReport {
        let Some(said) = said else {
            return PairEndReport { failed: Some("no result came from this host".into()), ..PairEndReport::default() };
        };
        let text = String::from_utf8_lossy(&said.stdout);
        let head = format!("pair\t{}\t{}\n", pair[0], pair[1]);
        let own = text.split_once(&head).map_or(&*text, |(_, own)| own.split("pair\t").next().unwrap_or_default());
        let mut end = own.lines().fold(PairEndReport::default(), PairEndReport::with);
        if said.outcome != CommandOutcome::Exited(0) {
            end.failed = Some(format!("{}: {}", said.host, shown(&said.outcome.to_string())));
        }
        end
    }

    fn with(mut self, line: &str) -> PairEndReport {
        let words: Vec<&str> = line.split('\t').collect();
        let number = |at: usize| words.get(at)?.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
        match words[0] {
            "latency" => self.latency.extend(latency(number)),
            "received" => self.received = number(1),
            "sent" => self.sent_again = number(1).unwrap_or_default().min(1.0),
            "both" => self.both = number(1),
            "stalled" => self.stalled = true,
            "failed" => self.failed = Some(shown(words.get(1).unwrap_or(&"the host gave no reason"))),
            _ => {}
        }
        self
    }
}

fn latency(number: impl Fn(usize) -> Option<f64>) -> Option<Latency> {
    Some(Latency { bytes: number(1)? as u32, p50_us: number(2)?, p99_us: number(3)?, max_us: number(4)? })
}

fn read(a: usize, b: usize, first: &PairEndReport, second: &PairEndReport) -> Pair {
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

    fn end(text: &str) -> PairEndReport {
        text.lines().fold(PairEndReport::default(), PairEndReport::with)
    }

    #[test]
    fn what_a_host_receives_is_what_the_other_sent() {
        let first = end("latency\t1\t25\t30\t99\nsent\t0.5\nreceived\t90\nboth\t80\ndone");
        let second = end("received\t40\nsent\t0\nboth\t30\ndone");
        let pair = read(3, 5, &first, &second);
        assert_eq!(pair.there, Some(FlowRate { mbit_per_s: 40.0, again: 0.5 }));
        assert_eq!(pair.back, Some(FlowRate { mbit_per_s: 90.0, again: 0.0 }));
        assert_eq!(pair.both.map(|(there, back)| (there.mbit_per_s, back.mbit_per_s)), Some((30.0, 80.0)));
        assert_eq!(pair.latency, [Latency { bytes: 1, p50_us: 25.0, p99_us: 30.0, max_us: 99.0 }]);
    }

    #[test]
    fn of_several_pairs_each_has_its_own_lines() {
        let stdout = b"pair\t10.0.0.1\t10.0.0.9\nreceived\t5\ndone\npair\t10.0.0.2\t10.0.0.9\nreceived\t7\n".to_vec();
        let said = HostResult { outcome: CommandOutcome::Exited(0), stdout, ..empty() };
        let of =
            |last| PairEndReport::of(Some(&said), [Ipv4Addr::new(10, 0, 0, last), Ipv4Addr::new(10, 0, 0, 9)]).received;
        assert_eq!((of(1), of(2)), (Some(5.0), Some(7.0)));
    }

    #[test]
    fn a_pair_that_stalled_carried_nothing_and_did_not_fail() {
        let pair = read(0, 1, &end("latency\t1\t1\t1\t1\nstalled"), &end("failed\t10.0.0.1 closed the connection"));
        assert_eq!((pair.stalled, pair.there, pair.failed), (true, None, None));
    }

    /// Starts one end as a process that measures both directions for `seconds`, with this test as its partner.
    /// Returns the process and three connections: for words, for the flow that the end sends, and for the one that it
    /// receives.
    fn with_partner(port: u16, seconds: u32) -> (std::process::Child, [std::net::TcpStream; 3]) {
        use std::io::{Read, Write};
        let open = std::net::TcpListener::bind(("127.0.0.2", port)).unwrap();
        let nth = port - 47113;
        let set =
            format!("@pairs = (['127.0.0.1', '127.0.0.2', {nth}]); ($token, $for, $brief) = ('secret', {seconds}, 1);");
        let mut perl = std::process::Command::new("perl");
        perl.args(["-e", &format!("{set}\n{ENDS}")]).env("SSH_CONNECTION", "127.0.0.2 1 127.0.0.1 22");
        let end = perl.stdout(std::process::Stdio::piped()).spawn().unwrap();
        let connections = [(); 3].map(|()| {
            let (mut connection, _) = open.accept().unwrap();
            connection.read_exact(&mut [0; 6]).unwrap();
            connection.write_all(b"go").unwrap();
            connection
        });
        (end, connections)
    }

    /// Returns all output of an end. If there is no more to read, all writers have ended.
    fn read_output(mut end: std::process::Child) -> String {
        let said = std::io::read_to_string(end.stdout.take().unwrap()).unwrap();
        assert!(end.wait().unwrap().success());
        said
    }

    #[test]
    fn an_end_whose_partner_is_killed_ends_too() {
        use std::io::{Read, Write};
        let (end, mut partner) = with_partner(47113, 600);
        partner[0].write_all(b"n").unwrap();
        partner[2].write_all(b"d").unwrap();
        // The end is in the middle of its flow, and so is the child that sends for it.
        partner[1].read_exact(&mut vec![0; 1 << 20]).unwrap();
        drop(partner);
        let said = read_output(end);
        assert!(said.contains("failed\t127.0.0.2 closed the connection"), "{said}");
    }

    #[test]
    fn what_a_slow_port_has_not_taken_of_a_flow_is_not_waited_for() {
        use std::io::{Read, Write};
        let (end, mut partner) = with_partner(47114, 1);
        partner[0].write_all(b"n").unwrap();
        // This end takes only the first byte of the flow that is sent to it, and leaves the rest.
        let [words, mut takes, mut gives] = partner;
        takes.read_exact(&mut [0]).unwrap();
        let block = [b'd'; 1 << 16];
        while gives.write_all(&block).is_ok() {}
        drop(takes);
        let said = read_output(end);
        assert!(said.contains("both\t") && said.ends_with("done\n"), "{said}");
        drop(words);
    }

    #[test]
    fn what_is_no_number_is_unknown() {
        let first = end("received\tinf\nboth\t-3\nsent\tNaN\nlatency\t1\t2\n\nfailed\ta\u{1b}[2Jb");
        assert_eq!((first.received, first.both, first.sent_again), (None, None, 0.0));
        assert!(first.latency.is_empty());
        assert_eq!(first.failed.as_deref(), Some("a\\u{1b}[2Jb"));
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
