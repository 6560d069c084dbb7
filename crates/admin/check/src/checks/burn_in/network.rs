//! A connection from each host to the next of the set, and from the last to the first, all at the same time.
//!
//! The part of the script finds the address by which other hosts know this one. The caller then makes the hosts send
//! to each other, and adds the results.

use super::{SHARE, positive, rows_of_kind, than_before};
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use homing_model::text::shown;
use std::net::IpAddr;

/// The name of this part.
const KEY: &str = "burn_network";

static SLOW: Code = Code {
    name: "HC-NET-08",
    severity: Severity::Warning,
    what: "the network is slower than on others of the model, or than before",
    means: "the host reads remote files more slowly",
    seen: "one TCP connection to the next host of the set",
    mend: "check with ethtool INTERFACE: cable, port, driver, MTU",
};
const LOOK: &str = "for i in /sys/class/net/*; do echo ${i##*/} $(cat $i/speed $i/mtu $i/statistics/rx_errors); done";

pub(crate) static CHECK: HostCheck = HostCheck {
    key: KEY,
    // An address of a name counts if this host has it. Debian gives a host's own name 127.0.1.1, and a name of ssh's
    // configuration has none: then it is the address at which ssh arrived.
    script: r#"own=" $(hostname -I)"
for h; do
  a=$(getent ahostsv4 -- "${h##*@}" | awk 'NR == 1 {print $1}')
  case $own in *" $a "*) printf 'at\t%s\t%s\n' "$h" "$a";; esac
done
set -- ${SSH_CONNECTION:-}
printf 'at\t\t%s\n' "${3:-$(hostname -I | cut -d ' ' -f 1)}""#,
    waits: false,
    slow: true,
    root: None,
    codes: &[&SLOW],
    judge,
};

/// A host that sends to the next one.
#[derive(Clone, Debug, PartialEq)]
pub struct RingHost {
    /// Its name.
    pub name: String,
    /// The address at which it sends and receives.
    pub own: IpAddr,
}

/// Returns the hosts that can send to each other, in order. The other hosts get a note.
pub fn ring(answers: &mut Answers) -> Vec<RingHost> {
    let mut hosts = Vec::new();
    for host in &mut answers.hosts {
        // The part was not wanted, or its end is unknown, which the report shows.
        let Some(rows) = host.rows(KEY) else { continue };
        match own_address(&host.name, rows) {
            Some(own) => hosts.push(RingHost { name: host.name.clone(), own }),
            None => note(host, "this host has no address that other hosts reach"),
        }
    }
    hosts
}

fn own_address(name: &str, rows: &[Vec<String>]) -> Option<IpAddr> {
    let of = |name: &str| {
        let row = rows.iter().find(|row| row.len() == 3 && row[0] == "at" && row[1] == name)?;
        row[2].parse().ok().filter(|at: &IpAddr| !at.is_loopback() && !at.is_unspecified())
    };
    of(name).or_else(|| of(""))
}

/// Adds the rate from a host to another, in bytes per second, or the reason why there is none.
pub fn add_flow(answers: &mut Answers, from: &str, to: &str, rate: &Result<f64, String>) {
    let Some(host) = answers.hosts.iter_mut().find(|host| host.name == from) else { return };
    match rate {
        Ok(rate) => {
            host.add_row(KEY, &["rate", "network", &format!("{:.2}", rate / 1e6)]);
            host.add_row(KEY, &["to", to]);
        }
        Err(why) => note(host, &format!("to {to}: {}", shown(why))),
    }
}

/// Adds the reason why a host does not take part.
pub fn add_note(answers: &mut Answers, host: &str, why: &str) {
    if let Some(host) = answers.hosts.iter_mut().find(|known| known.name == host) {
        note(host, &shown(why));
    }
}

fn note(host: &mut HostAnswers, why: &str) {
    host.add_row(KEY, &["note", &format!("network: {why}")]);
}

/// The flow from one host to the next.
struct HostFlow<'a> {
    from: &'a HostAnswers,
    to: &'a str,
    rate: f64,
}

fn flow(host: &HostAnswers) -> Option<HostFlow<'_>> {
    let rate =
        positive(rows_of_kind(host, "rate").find(|row| row.get(1).is_some_and(|what| what == "network"))?.get(2)?)?;
    Some(HostFlow { from: host, to: rows_of_kind(host, "to").next()?.get(1)?, rate })
}

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let flows: Vec<HostFlow> = answers.hosts.iter().filter_map(flow).collect();
    let right = usual(&flows);
    let is_slow = |flow: &HostFlow| right.is_some_and(|right| flow.rate < right * SHARE);
    // A bad link slows down both directions: its host is named once, and its neighbours are not.
    let of = |name: &str| -> Vec<&HostFlow> {
        flows.iter().filter(|flow| flow.from.name == name || flow.to == name).collect()
    };
    let both = |name: &str| of(name).len() > 1 && of(name).into_iter().all(is_slow);
    // A flow that is far slower than the receiver's other flow is not the receiver's fault, however slow the receiver
    // is.
    let explains = |to: &str, slow: &HostFlow| {
        let others = of(to).into_iter().filter(|flow| flow.from.name != slow.from.name || flow.to != slow.to);
        both(to) && slow.rate >= others.map(|flow| flow.rate).fold(f64::INFINITY, f64::min) * SHARE
    };
    let finding = |flow: &HostFlow| {
        let HostFlow { from, to, rate } = flow;
        let seen = format!("--deep: network {rate:.0} MB/s to {to}");
        let twins = is_slow(flow).then(|| format!("{:.0} MB/s between others", right.unwrap_or_default()));
        let than: Vec<String> = [twins, than_before(from, "network", *rate)].into_iter().flatten().collect();
        let what = format!("network: {rate:.0} MB/s to {to}, but {}", than.join(" and "));
        let its_own = both(&from.name) || !explains(to, flow);
        (its_own && !than.is_empty()).then(|| SLOW.on(from, what, seen).look(LOOK))
    };
    flows.iter().filter_map(finding).collect()
}

/// Returns the rate that two thirds of the flows do not exceed: one bad host of three spoils two of three flows.
fn usual(flows: &[HostFlow]) -> Option<f64> {
    let mut rates: Vec<f64> = flows.iter().map(|flow| flow.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() * 2 / 3).copied().filter(|_| rates.len() > super::TWINS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, rows: &str) -> HostAnswers {
        let lines: String = rows.lines().map(|row| format!("={KEY}\t{row}\n")).collect();
        HostAnswers::read(name, &[(0.0, format!("{lines}=end\t{KEY}\t0\n").into_bytes())])
    }

    #[test]
    fn a_host_is_known_by_its_name_or_else_where_ssh_arrived() {
        let mut answers = Answers {
            hosts: vec![
                host("n1", "at\tn1\t10.0.0.1\nat\t\t10.9.0.1"),
                // Its own name is none that others can use, and another name of the set is its own, too.
                host("n2", "at\tn2\t127.0.1.1\nat\talias\t10.0.0.7\nat\t\t10.9.0.2"),
                host("n3", "at\t\tfe80::1%eth0"),
                HostAnswers::named("n4"),
                host("n5", "at\t\t2001:db8::5"),
            ],
        };
        let ring = ring(&mut answers);
        let known: Vec<(&str, String)> = ring.iter().map(|host| (&*host.name, host.own.to_string())).collect();
        let expected = [("n1", "10.0.0.1"), ("n2", "10.9.0.2"), ("n5", "2001:db8::5")];
        assert_eq!(known, expected.map(|(name, own)| (name, own.to_string())));
        let notes: Vec<&str> = answers.hosts.iter().flat_map(super::super::notes).collect();
        assert_eq!(notes, ["network: this host has no address that other hosts reach"]);
    }

    #[test]
    fn a_flow_is_a_rate_or_a_note() {
        let mut answers = Answers { hosts: vec![host("n1", ""), host("n2", "")] };
        add_flow(&mut answers, "n1", "n2", &Ok(117_500_000.0));
        add_flow(&mut answers, "n2", "n1", &Err("refused\u{1b}[2J".into()));
        assert_eq!(flow(&answers.hosts[0]).map(|flow| (flow.to, flow.rate)), Some(("n2", 117.5)));
        assert!(flow(&answers.hosts[1]).is_none());
        let notes: Vec<&str> = super::super::notes(&answers.hosts[1]).collect();
        assert_eq!(notes, ["network: to n1: refused\\u{1b}[2J"]);
    }

    #[test]
    fn this_host_prints_an_address_of_its_own() {
        let ask = |name: &str, way: Option<&str>| {
            let mut sh = std::process::Command::new("sh");
            sh.args(["-c", CHECK.script, "sh", name]).env_remove("SSH_CONNECTION");
            way.map(|way| sh.env("SSH_CONNECTION", way));
            String::from_utf8(sh.output().unwrap().stdout).unwrap()
        };
        assert_eq!(ask("localhost", Some("10.0.0.9 1 10.0.0.1 22")), "at\t\t10.0.0.1\n", "no name of its own");
        assert_eq!(ask("no.such.name.invalid", Some("a 1 b 22")), "at\t\tb\n");
    }
}
