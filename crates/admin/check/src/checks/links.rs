//! Are the links as fast as those of the other hosts, and free of errors?

use crate::compare::{Split, split};
use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use std::collections::BTreeSet;

/// The most errors per million packets: a good cable has fewer.
const PER_MILLION: u64 = 1;
/// The least errors that count: fewer may come from the moment when the cable was plugged in.
const LEAST_ERRORS: u64 = 100;

static SPEED: Code = Code {
    name: "HC-NET-01",
    severity: Severity::Error,
    what: "a link is slower than on the other hosts",
    means: "all traffic to and from the host is slower, ten times if 10G fell back to 1G",
    seen: "/sys/class/net/*/speed",
    mend: "change the cable, then the port; `ethtool INTERFACE` shows the modes of both ends",
};
static DUPLEX: Code = Code {
    name: "HC-NET-02",
    severity: Severity::Error,
    what: "a link is half duplex",
    means: "a few percent of its rate are left when both ends send",
    seen: "/sys/class/net/*/duplex",
    mend: "turn on auto-negotiation at both ends: ethtool -s INTERFACE autoneg on",
};
static MTU: Code = Code {
    name: "HC-NET-03",
    severity: Severity::Error,
    what: "the MTU differs from that of other hosts",
    means: "connections open and then hang at the first large packet",
    seen: "/sys/class/net/*/mtu",
    mend: "ip link set dev INTERFACE mtu NUMBER, and the same value in the network configuration",
};
static ERRORS: Code = Code {
    name: "HC-NET-04",
    severity: Severity::Warning,
    what: "a link damages or drops packets",
    means: "each loss interrupts a transfer: a loss of 0.01 % halves the rate",
    seen: "/sys/class/net/*/statistics",
    mend: "change the cable or the transceiver; for drops: ethtool -G INTERFACE rx 4096",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "links",
    // Interfaces with an address that others can reach: bridges of containers have none, or one of their own.
    script: r#"for i in $(ip -o -4 addr show scope global up | awk '{sub("@.*", "", $2); print $2}' | sort -u); do
  case $i in docker*|virbr*|br-*|veth*|cni*|flannel*|podman*|lxc*) continue ;; esac
  d=/sys/class/net/$i s=$d/statistics; set --
  for f in speed duplex mtu statistics/rx_packets statistics/tx_packets; do n=; read -r n < $d/$f; set -- "$@" "$n"; done
  e=0; for f in rx_errors tx_errors rx_missed_errors collisions; do n=0; read -r n < $s/$f; e=$((e + n)); done
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$i" "$1" "$2" "$3" $(($4 + $5)) $e
done"#,
    waits: false,
    slow: false,
    root: None,
    codes: &[&SPEED, &DUPLEX, &MTU, &ERRORS],
    judge,
};

/// A host's row of an interface.
type InterfaceRow<'a> = (&'a HostAnswers, &'a [String]);

fn all(answers: &Answers) -> Vec<InterfaceRow<'_>> {
    answers.each(CHECK.key).filter(|(_, row)| row.len() == 6).collect()
}

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let links = all(answers);
    let names: BTreeSet<&str> = links.iter().map(|(_, row)| row[0].as_str()).collect();
    let mut found: Vec<HostFinding> = links.iter().flat_map(|link| [half(link), errors(link)]).flatten().collect();
    for name in names {
        let same: Vec<InterfaceRow> = links.iter().filter(|(_, row)| row[0] == name).copied().collect();
        found.extend(speed(name, &same));
        found.extend(mtu(name, &same));
    }
    found
}

fn half((host, row): &InterfaceRow) -> Option<HostFinding> {
    let name = &row[0];
    let found = DUPLEX.on(host, format!("{name} is half duplex"), format!("/sys/class/net/{name}/duplex: half"));
    (row[2] == "half").then(|| found.mend(format!("ethtool -s {} autoneg on", word(name))))
}

fn errors((host, row): &InterfaceRow) -> Option<HostFinding> {
    let (name, number) = (&row[0], |n: usize| row[n].parse::<u64>().unwrap_or(0));
    let (packets, errors) = (number(4), number(5));
    let ill = errors > LEAST_ERRORS && errors.saturating_mul(1_000_000) > packets.saturating_mul(PER_MILLION);
    let seen = format!("/sys/class/net/{name}/statistics: {errors} of {packets}");
    let found = ERRORS.on(host, format!("{name} damages or drops packets"), seen);
    ill.then(|| found.look(format!("ip -s -s link show {0}; ethtool -S {0}", word(name))))
}

/// Compares the speeds. A virtual link reports -1 or nothing, and its speed is unknown.
fn speed(name: &str, same: &[InterfaceRow]) -> Vec<HostFinding> {
    let known = same.iter().filter_map(|(h, row)| Some((*h, row[1].parse::<u64>().ok().filter(|s| *s > 0)?)));
    let Some(split) = split(known) else { return Vec::new() };
    let (right, like) = (split.most, split.most_of());
    let slower = split.others.iter().filter(|(_, own)| *own < right);
    slower
        .map(|(host, own)| {
            let what = format!("{name} runs at {own} Mbit/s, but at {right} on {like}");
            SPEED.on(host, what, format!("/sys/class/net/{name}/speed: {own}")).look(format!("ethtool {}", word(name)))
        })
        .collect()
}

/// Splits hosts by the MTU of their interfaces of one name.
fn mtus<'a>(same: &[InterfaceRow<'a>]) -> Option<Split<'a, &'a str>> {
    split(same.iter().map(|(host, row)| (*host, row[3].as_str())))
}

/// Returns the MTU that HC-NET-03 reports for a host; of several the smallest.
pub(super) fn odd_mtu(answers: &Answers, host: &str) -> Option<u32> {
    let links = all(answers);
    let of_host = links.iter().filter(|(one, _)| one.name == host);
    let odd = of_host.filter_map(|(_, own)| {
        let same: Vec<InterfaceRow> = links.iter().filter(|(_, row)| row[0] == own[0]).copied().collect();
        let mtus = mtus(&same)?;
        mtus.others.iter().find(|(other, _)| other.name == host)?.1.parse().ok()
    });
    odd.min()
}

fn mtu(name: &str, same: &[InterfaceRow]) -> Vec<HostFinding> {
    let Some(split) = mtus(same) else { return Vec::new() };
    let (right, like) = (split.most, split.most_of());
    let finding = |(host, own): (&HostAnswers, &str)| {
        let found = MTU.on(
            host,
            format!("{name} has the MTU {own}, but {right} on {like}"),
            format!("/sys/class/net/{name}/mtu: {own}"),
        );
        found.mend(format!("ip link set dev {} mtu {}", word(name), word(right)))
    };
    split.others.into_iter().map(finding).collect()
}
