//! Does the switch at the other end of a host's cable, as lldpd sees it, agree with the host, and is it the usual
//! port?

use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use std::collections::BTreeMap;

static DUPLEX: Code = Code {
    name: "HC-NET-11",
    severity: Severity::Error,
    what: "the switch port has a different duplex than the host",
    means: "the half-duplex end treats each packet of the other end as a collision: a few percent of the rate are left",
    seen: "lldpcli show neighbors details: MAU oper type; /sys/class/net/*/duplex",
    mend: "turn on auto-negotiation at both ends: ethtool -s INTERFACE autoneg on, and at the switch port",
};
static FRAME: Code = Code {
    name: "HC-NET-12",
    severity: Severity::Error,
    what: "the switch port accepts smaller frames than the host sends",
    means: "connections open and then hang at the first large packet",
    seen: "lldpcli show neighbors details: MFS; /sys/class/net/*/mtu",
    mend: "raise the MTU of the switch port, or lower the host's: ip link set dev INTERFACE mtu NUMBER",
};
static MOVED: Code = Code {
    name: "HC-NET-13",
    severity: Severity::Warning,
    what: "a host is on another switch or port than it should be",
    means: "jobs that should stay on one switch cross to another, and its cable is not where the plan has it",
    seen: "lldpcli show neighbors; [switch.NAME] of the cluster file, or the last `homing topology`",
    mend: "put the cable back; or accept the new place with homing topology --diff",
};
static SHARED: Code = Code {
    name: "HC-NET-14",
    severity: Severity::Warning,
    what: "hosts share one port of a switch",
    means: "they share its rate: a small switch or a hub is between them",
    seen: "lldpcli show neighbors on these hosts",
    mend: "give each host its own port",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "switch",
    script: r#"lldpcli -f keyvalue show neighbors details 2>/dev/null | awk -v T="$T" '
function own(what,  f, v) { f = "/sys/class/net/" i "/" what; getline v < f; close(f); return v }
function told() { if (i != "" && n++ < 64) print i T c T s T p T b T m T u T own("duplex") T own("mtu"); c = s = p = b = m = u = "" }
{ at = index($0, "="); k = substr($0, 1, at - 1); v = substr($0, at + 1); sub(/^lldp\./, "", k) }
k ~ /\.via$/ { told(); i = k; sub(/\.via$/, "", i) }
k ~ /\.chassis\.(mac|local|ifname|ip)$/ { c = v }
k ~ /\.chassis\.name$/ { s = v }
k ~ /\.port\.(mac|local|ifname)$/ { if (p == "") p = v; if (k ~ /mac$/) a = p }
k ~ /\.port\.descr$/ { if (p == "" || p == a) p = v }
k ~ /\.chassis\.Bridge\.enabled$/ { b = v }
k ~ /\.port\.mfs$/ { m = v }
k ~ /\.port\.auto-negotiation\.current$/ { u = v }
END { told() }'"#,
    waits: false,
    slow: false,
    root: None,
    codes: &[&DUPLEX, &FRAME, &MOVED, &SHARED],
    judge,
};

/// The part with the known place of a host, which does not come from the host itself.
const PLACE: &str = "place";

impl Answers {
    /// Adds the place of a host: a switch of this name or chassis, and this port where it is known. `who` names the
    /// source of that.
    pub fn should_be(&mut self, host: &str, switch: &str, port: Option<&str>, who: &str) {
        if let Some(host) = self.hosts.iter_mut().find(|one| one.name == host) {
            let row = [switch, port.unwrap_or(""), who].map(String::from).to_vec();
            let rows = host.begun(PLACE).iter().cloned().chain([row]).collect();
            host.set_rows(PLACE, rows);
        }
    }
}

/// A neighbour, from a row.
struct Port<'a> {
    interface: &'a str,
    chassis: &'a str,
    name: &'a str,
    port: &'a str,
    frame: Option<u32>,
    /// The negotiated mode, in lldpd's words.
    negotiated: &'a str,
    /// The host's own end: its duplex, and its MTU.
    own: (&'a str, Option<u32>),
}

impl Port<'_> {
    fn label(&self) -> String {
        let switch = if self.name.is_empty() { self.chassis } else { self.name };
        format!("{switch} port {}", self.port)
    }

    fn seen(&self) -> String {
        format!("lldpcli: {} sees {}", self.interface, self.label())
    }
}

/// Returns the switch of each interface that receives from a single one: with several another switch is in between.
fn ports(host: &HostAnswers) -> Vec<Port<'_>> {
    let rows = host.rows(CHECK.key).unwrap_or_default().iter().filter(|row| row.len() == 9 && row[4] == "on");
    let mut by: BTreeMap<&str, Vec<Port>> = BTreeMap::new();
    for row in rows {
        let [interface, chassis, name, port, frame, negotiated] = [0, 1, 2, 3, 5, 6].map(|at| row[at].as_str());
        let (frame, own) = (frame.parse().ok(), (row[7].as_str(), row[8].parse().ok()));
        by.entry(interface).or_default().push(Port { interface, chassis, name, port, frame, negotiated, own });
    }
    by.into_values().filter(|ports| ports.len() == 1).flatten().collect()
}

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let of_host = |host: &HostAnswers| -> Vec<HostFinding> {
        let ports = ports(host);
        let each = ports.iter().flat_map(|port| [duplex(host, port), frame(host, port)].into_iter().flatten());
        each.chain(moved(host, &ports)).collect()
    };
    answers.hosts.iter().flat_map(of_host).chain(shared(answers)).collect()
}

fn duplex(host: &HostAnswers, port: &Port) -> Option<HostFinding> {
    let own = port.own.0;
    let other = ["half", "full"].into_iter().find(|word| port.negotiated.contains(&format!("{word} duplex")))?;
    if !["half", "full"].contains(&own) || own == other {
        return None;
    }
    let what = format!("{} is {own} duplex, but its switch port {} is {other}", port.interface, port.label());
    let line = format!("ethtool -s {} autoneg on", crate::finding::word(port.interface));
    Some(DUPLEX.on(host, what, format!("{}: {}", port.seen(), port.negotiated)).mend(line))
}

/// Compares the frame size with the MTU. IEEE 802.3 counts header and check sum of a frame, and some switches do not:
/// only a frame smaller than the packet is reported.
fn frame(host: &HostAnswers, port: &Port) -> Option<HostFinding> {
    let (mtu, frame) = (port.own.1?, port.frame?);
    let what =
        format!("{} has the MTU {mtu}, but its switch port {} accepts {frame} bytes", port.interface, port.label());
    let found = FRAME.on(host, what, format!("{}: MFS {frame}", port.seen()));
    (frame < mtu).then(|| found.look(format!("ip -d link show {}", crate::finding::word(port.interface))))
}

/// Returns a switch's name as other programs write it in their files.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' }).collect()
}

fn moved(host: &HostAnswers, ports: &[Port]) -> Vec<HostFinding> {
    let is = |port: &Port, row: &[String]| {
        [port.chassis, port.name, &plain(port.name)].contains(&row[0].as_str())
            && (row[1].is_empty() || row[1] == port.port)
    };
    let told = |row: &Vec<String>| {
        let at = ports.iter().map(Port::label).collect::<Vec<_>>().join(", ");
        let port = if row[1].is_empty() { String::new() } else { format!(" port {}", row[1]) };
        let what = format!("it is on {at}, but {} has {}{port}", row[2], row[0]);
        MOVED.on(host, what, ports[0].seen()).look("lldpcli show neighbors")
    };
    let rows = host.begun(PLACE).iter().filter(|row| row.len() == 3 && !ports.is_empty());
    rows.filter(|row| !ports.iter().any(|port| is(port, row))).take(1).map(told).collect()
}

fn shared(answers: &Answers) -> Vec<HostFinding> {
    let mut by: BTreeMap<(&str, &str), Vec<(&HostAnswers, String)>> = BTreeMap::new();
    for host in &answers.hosts {
        for port in ports(host) {
            by.entry((port.chassis, port.port)).or_default().push((host, port.label()));
        }
    }
    let told = |hosts: Vec<(&HostAnswers, String)>| {
        let names: Vec<&str> = hosts.iter().map(|(host, _)| host.name.as_str()).collect();
        let (what, seen) =
            (format!("{} is also the port of {}", hosts[0].1, names.join(", ")), "lldpcli: both hosts see it");
        hosts.iter().map(|(host, _)| SHARED.on(host, what.clone(), seen)).collect::<Vec<_>>()
    };
    by.into_values().filter(|hosts| hosts.len() > 1).flat_map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, rows: &str) -> HostAnswers {
        let rows: String = rows.lines().map(|row| format!("=switch\t{row}\tfull\t9000\n")).collect();
        HostAnswers::read(name, &[(1.0, format!("{rows}=end\tswitch\t0\n").into_bytes())])
    }

    fn found(answers: &Answers) -> Vec<(&'static str, String)> {
        judge(answers).into_iter().map(|found| (found.code.name, found.what)).collect()
    }

    #[test]
    fn a_host_is_where_it_should_be_or_it_is_told() {
        let at = |port: &str| host("n1", &format!("eth0\t02:00\ts1\t{port}\ton\t9216\t1000BaseTFD - full duplex mode"));
        let mut answers = Answers { hosts: vec![at("Gi1/1")] };
        answers.should_be("n1", "s1", None, "the cluster file");
        answers.should_be("n1", "02:00", Some("Gi1/1"), "the last topology");
        assert_eq!(found(&answers), []);
        let mut answers = Answers { hosts: vec![at("Gi1/7")] };
        answers.should_be("n1", "02:00", Some("Gi1/1"), "the last topology");
        let what = "it is on s1 port Gi1/7, but the last topology has 02:00 port Gi1/1";
        assert_eq!(found(&answers), [("HC-NET-13", what.to_string())]);
    }

    #[test]
    fn two_switches_on_one_port_are_no_place() {
        let both = "eth0\t02:00\ts1\tp1\ton\t1500\thalf duplex\neth0\t03:00\ts2\tp1\ton\t1500\thalf duplex";
        let mut answers = Answers { hosts: vec![host("n1", both)] };
        answers.should_be("n1", "s9", None, "the cluster file");
        assert_eq!(found(&answers), []);
    }
}
