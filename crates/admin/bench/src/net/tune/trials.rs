//! Derives the possible trials from the facts about hosts. It does no input or output.

use super::nfs::{self, Mounted};
use super::up;
use homing_model::NodeSet;
use homing_steps::{HostRequirement, InterfaceSetting, Observed};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A kind of setting that can be tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TunableKind {
    /// Work that the network card or the kernel does for many packets at once.
    Offloads,
    /// Packets that the card keeps until the kernel takes them.
    Rings,
    /// How long the card waits before it interrupts.
    Coalescing,
    /// Queues of the card, one for each processor.
    Queues,
    /// The algorithm by which TCP finds its rate.
    Congestion,
    /// The most bytes that a TCP connection may have under way.
    Buffers,
    /// The largest packet.
    Mtu,
    /// Connections of mounts of NFS.
    Nconnect,
}

impl TunableKind {
    /// All kinds, in the order in which they are tried: settings that are cheap to take back come first.
    pub const ALL: [TunableKind; 8] = [
        TunableKind::Offloads,
        TunableKind::Rings,
        TunableKind::Queues,
        TunableKind::Coalescing,
        TunableKind::Congestion,
        TunableKind::Buffers,
        TunableKind::Mtu,
        TunableKind::Nconnect,
    ];

    /// Returns its word for `--only`.
    pub fn name(self) -> &'static str {
        match self {
            TunableKind::Offloads => "offloads",
            TunableKind::Rings => "rings",
            TunableKind::Coalescing => "coalescing",
            TunableKind::Queues => "queues",
            TunableKind::Congestion => "congestion",
            TunableKind::Buffers => "buffers",
            TunableKind::Mtu => "mtu",
            TunableKind::Nconnect => "nconnect",
        }
    }
}

/// Facts about a host before anything is tried.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Its name.
    pub host: String,
    /// The interface that has its address.
    pub interface: String,
    /// Its state, as it reported it.
    pub seen: Observed,
    /// Number of its processors.
    pub processors: u32,
    /// Most bytes under way on a full connection: rate times round trip.
    pub under_way: u64,
}

/// The wishes of the user.
#[derive(Clone, Debug, Default)]
pub struct TuningOptions {
    /// Only these kinds; if empty, all.
    pub only: Vec<TunableKind>,
    /// The MTU that all hosts are to have.
    pub mtu: Option<u32>,
    /// Whether nothing is to be written for the next boot.
    pub until_boot: bool,
}

/// A setting that is tried on all hosts that lack it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Its kind.
    pub kind: TunableKind,
    /// Its description.
    pub name: String,
    /// The wanted values, by host.
    pub wanted: BTreeMap<String, Vec<HostRequirement>>,
    /// For connections: how a mount is to reach its server. The wanted values are known only when the trial is kept.
    pub through: Option<Through>,
}

/// How a mount reaches its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Through {
    /// The mount.
    pub mounted: Mounted,
    /// Connections that are tried.
    pub connections: u32,
}

/// The kernel's own limits of a connection, which we never reduce: 6 MiB received, 4 MiB sent (tcp_init of
/// net/ipv4/tcp.c).
const USUAL: [(&str, u64); 2] = [("net.ipv4.tcp_rmem", 6 << 20), ("net.ipv4.tcp_wmem", 4 << 20)];
/// Numbers of connections of a mount that are tried; the kernel makes at most 16 (NFS_MAX_CONNECTIONS of
/// fs/nfs/fs_context.c).
const CONNECTIONS: [u32; 2] = [4, 8];
/// The congestion control of TCP, and the available ones.
pub(super) const CONGESTION: &str = "net.ipv4.tcp_congestion_control";
pub(super) const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";

/// Returns the trials, and a sentence for each kind that is not tried.
pub fn trials(hosts: &[Facts], wish: &TuningOptions) -> (Vec<Trial>, Vec<String>) {
    let (mut all, mut left) = (Vec::new(), Vec::new());
    for kind in TunableKind::ALL.into_iter().filter(|kind| wish.only.is_empty() || wish.only.contains(kind)) {
        match of_kind(kind, hosts, wish) {
            Ok(trials) => all.extend(trials),
            Err(why) => left.push(format!("{}: not tried: {why}", kind.name())),
        }
    }
    (all, left)
}

fn of_kind(kind: TunableKind, hosts: &[Facts], wish: &TuningOptions) -> Result<Vec<Trial>, String> {
    let one = |name: String, of: &dyn Fn(&Facts) -> Vec<HostRequirement>| trial(kind, name, hosts, of);
    match kind {
        TunableKind::Offloads => settings(hosts, "offload ", "no interface allows it")
            .and_then(|()| one("all offloads".into(), &offloads).ok_or("all offloads that can be set are on".into())),
        TunableKind::Rings => settings(
            hosts,
            "ring ",
            "no interface has rings that can be set: it is virtual, or its driver does not report them",
        )
        .and_then(|()| one("largest rings".into(), &rings).ok_or("all rings have their largest size".into())),
        TunableKind::Queues => settings(hosts, "channels ", "no interface has queues that can be set").and_then(|()| {
            one("one queue per processor".into(), &queues)
                .ok_or("each interface has a queue per processor, or as many as it can".into())
        }),
        TunableKind::Coalescing => settings(hosts, "coalesce ", "no interface allows it").and_then(|()| {
            one("interrupts without delay".into(), &at_once).ok_or("no interface delays its interrupts".into())
        }),
        TunableKind::Congestion => return congestion(hosts),
        TunableKind::Buffers => {
            told_by_up(hosts, &USUAL.map(|(key, _)| key))?;
            let wanted = USUAL.map(|(key, least)| (key, buffer(hosts, key, least)));
            let name = "larger socket buffers".to_string();
            one(name, &|facts| wanted.iter().filter_map(|(key, most)| larger(facts, key, *most)).collect())
                .ok_or("the buffers of each host are larger than these links can fill".into())
        }
        TunableKind::Mtu => return mtu(hosts, wish.mtu),
        TunableKind::Nconnect => return nconnect(hosts, wish.until_boot),
    }
    .map(|trial| vec![trial])
}

fn settings(hosts: &[Facts], prefix: &str, else_why: &str) -> Result<(), String> {
    let any = hosts.iter().any(|facts| own(facts).any(|(name, _)| name.starts_with(prefix)));
    any.then_some(()).ok_or(else_why.into())
}

fn own(facts: &Facts) -> impl Iterator<Item = (&String, &InterfaceSetting)> {
    facts.seen.links.get(&facts.interface).into_iter().flat_map(|links| links.all())
}

fn trial(
    kind: TunableKind,
    name: String,
    hosts: &[Facts],
    of: &dyn Fn(&Facts) -> Vec<HostRequirement>,
) -> Option<Trial> {
    let wanted: BTreeMap<String, Vec<HostRequirement>> =
        hosts.iter().map(|facts| (facts.host.clone(), of(facts))).filter(|(_, wanted)| !wanted.is_empty()).collect();
    (!wanted.is_empty()).then_some(Trial { kind, name, wanted, through: None })
}

fn link(facts: &Facts, setting: &str, value: impl ToString) -> HostRequirement {
    HostRequirement::Link { interface: facts.interface.clone(), setting: setting.into(), value: value.to_string() }
}

fn offloads(facts: &Facts) -> Vec<HostRequirement> {
    let off = own(facts).filter(|(name, setting)| name.starts_with("offload ") && setting.value == "off");
    let mut wanted: Vec<HostRequirement> = off.map(|(name, _)| link(facts, name, "on")).collect();
    // The kernel refuses segmentation without scatter-gather and checksums; these come first.
    let first = |one: &HostRequirement| !matches!(one, HostRequirement::Link { setting, .. } if ["offload sg", "offload tx"].contains(&setting.as_str()));
    wanted.sort_by_key(first);
    wanted
}

fn larger_than(facts: &Facts, prefix: &str, bound: u32) -> Vec<HostRequirement> {
    let number = |setting: &InterfaceSetting| setting.value.parse::<u32>().ok();
    let of = |(name, setting): (&String, &InterfaceSetting)| {
        let most = setting.most?.min(bound);
        (name.starts_with(prefix) && number(setting)? < most).then(|| link(facts, name, most))
    };
    own(facts).filter_map(of).collect()
}

fn rings(facts: &Facts) -> Vec<HostRequirement> {
    larger_than(facts, "ring ", u32::MAX)
}

fn queues(facts: &Facts) -> Vec<HostRequirement> {
    larger_than(facts, "channels ", facts.processors)
}

/// Turns off waiting before interrupts: the time that a card waits for more packets is added to the latency of each
/// message.
fn at_once(facts: &Facts) -> Vec<HostRequirement> {
    let of = |(name, setting): (&String, &InterfaceSetting)| match (name.as_str(), setting.value.as_str()) {
        ("coalesce adaptive-rx", "on") => Some(link(facts, name, "off")),
        ("coalesce rx-usecs", value) if value != "0" => Some(link(facts, name, 0)),
        _ => None,
    };
    own(facts).filter_map(of).collect()
}

/// Tries each congestion control that all hosts have, on all hosts.
fn congestion(hosts: &[Facts]) -> Result<Vec<Trial>, String> {
    let words = |facts: &Facts| -> BTreeSet<String> {
        let listed = facts.seen.sysctls.get(AVAILABLE).map_or("", String::as_str);
        listed.split_whitespace().map(String::from).collect()
    };
    let common = hosts.iter().map(words).reduce(|a, b| &a & &b).unwrap_or_default();
    let differs = |facts: &Facts, name: &str| facts.seen.sysctls.get(CONGESTION).is_some_and(|now| now != name);
    told_by_up(hosts, &[CONGESTION])?;
    // Reno is always available, and slower than its successors.
    let others = common.iter().filter(|name| *name != "reno");
    let of = |name: &String| {
        let wanted = |facts: &Facts| {
            let one = HostRequirement::Sysctl { key: CONGESTION.into(), value: name.clone() };
            if differs(facts, name) { vec![one] } else { Vec::new() }
        };
        trial(TunableKind::Congestion, format!("congestion control {name}"), hosts, &wanted)
    };
    let all: Vec<Trial> = others.filter_map(of).collect();
    if all.is_empty() { Err("no other congestion control is loaded on all hosts".into()) } else { Ok(all) }
}

/// Returns an error if the cluster file sets one of the keys: it has the user's own choice.
fn told_by_up(hosts: &[Facts], keys: &[&str]) -> Result<(), String> {
    let of_up = |key: &&&str| hosts.iter().any(|facts| up::sets_key(&facts.seen, key));
    keys.iter().find(of_up).map_or(Ok(()), |key| Err(format!("the cluster file sets {key}, and homing up has set it")))
}

fn largest(facts: &Facts, key: &str) -> Option<u64> {
    facts.seen.sysctls.get(key)?.split_whitespace().nth(2)?.parse().ok()
}

/// Returns the wanted size of a connection's buffer: twice the bytes under way on the path. It is at least the
/// kernel's limit and the largest value of all hosts.
fn buffer(hosts: &[Facts], key: &str, least: u64) -> u64 {
    let path = hosts.iter().map(|facts| facts.under_way * 2).max().unwrap_or(0);
    let others = hosts.iter().filter_map(|facts| largest(facts, key)).max().unwrap_or(0);
    path.next_power_of_two().max(others).max(least)
}

fn larger(facts: &Facts, key: &str, most: u64) -> Option<HostRequirement> {
    let now = facts.seen.sysctls.get(key)?;
    let [low, usual, _] = now.split_whitespace().collect::<Vec<_>>()[..] else { return None };
    let value = format!("{low} {usual} {most}");
    (largest(facts, key)? < most).then(|| HostRequirement::Sysctl { key: key.into(), value })
}

/// Sets the MTU on all hosts or on none.
fn mtu(hosts: &[Facts], wanted: Option<u32>) -> Result<Vec<Trial>, String> {
    let bytes = wanted
        .ok_or("name a size with --mtu BYTES, for all hosts of a segment; its switches must accept it already")?;
    let of = |facts: &Facts| own(facts).find(|(name, _)| *name == "mtu").map(|(_, setting)| setting.clone());
    let refuses = |facts: &&Facts| of(facts).is_none_or(|setting| setting.most.is_some_and(|most| most < bytes));
    let small: NodeSet = hosts.iter().filter(refuses).map(|facts| facts.host.clone()).collect();
    if !small.is_empty() {
        return Err(format!("the interface of {small} does not accept an MTU of {bytes}"));
    }
    let differs = |facts: &Facts| of(facts).is_some_and(|setting| setting.value != bytes.to_string());
    let one = |facts: &Facts| if differs(facts) { vec![link(facts, "mtu", bytes)] } else { Vec::new() };
    let trial = trial(TunableKind::Mtu, format!("MTU {bytes}"), hosts, &one);
    trial.map(|trial| vec![trial]).ok_or(format!("all hosts have the MTU {bytes} already"))
}

/// Tries connections on all hosts that mount the same export of one server. Few hosts load the link of a server as
/// much as one.
fn nconnect(hosts: &[Facts], until_boot: bool) -> Result<Vec<Trial>, String> {
    if until_boot {
        return Err("it takes effect at the next mount, and --until-boot writes no file for that".into());
    }
    let mut by_mount: Vec<(Mounted, Vec<&Facts>)> = Vec::new();
    let mounts = hosts.iter().flat_map(|facts| nfs::mounted(&facts.seen).into_iter().map(move |mount| (facts, mount)));
    let (lines, mounts): (Vec<_>, Vec<_>) = mounts.partition(|(_, mount)| mount.by_line);
    for (facts, mount) in mounts {
        match by_mount.iter_mut().find(|(other, _)| other.source == mount.source && other.version == mount.version) {
            Some((_, all)) => all.push(facts),
            None => by_mount.push((mount, vec![facts])),
        }
    }
    let of = |(mounted, all): &(Mounted, Vec<&Facts>), connections: u32| {
        let few = |facts: &&&Facts| nfs::connections(&facts.seen, &mounted.server) < connections;
        let wanted: BTreeMap<String, Vec<HostRequirement>> =
            all.iter().filter(few).map(|facts| (facts.host.clone(), Vec::new())).collect();
        let name = format!("{connections} connections to {} per mount", mounted.server);
        let through = Some(Through { mounted: mounted.clone(), connections });
        (!wanted.is_empty()).then_some(Trial { kind: TunableKind::Nconnect, name, wanted, through })
    };
    let all: Vec<Trial> =
        by_mount.iter().flat_map(|one| CONNECTIONS.into_iter().filter_map(move |number| of(one, number))).collect();
    match (all.is_empty(), by_mount.is_empty(), lines.is_empty()) {
        (false, ..) => Ok(all),
        (_, false, _) => Err("all mounts already have the most connections that homing tries".into()),
        (_, _, false) => Err("lines of /etc/fstab have nconnect, which overrides the value set here".into()),
        _ => Err("no host has a mount of NFS 4".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    fn host(name: &str, links: &str, sysctls: &[(&str, &str)]) -> Facts {
        let mut text = String::new();
        let said = |part: &str, said: &str| {
            format!("link\teth0\t{part}\t{}\n", homing_steps::FileContent::from(said).encoded())
        };
        for part in ["mtu", "g", "k", "c", "l"] {
            let of = links.split("--\n").find_map(|one| one.strip_prefix(part)?.strip_prefix('\n'));
            text += &said(part, of.unwrap_or(""));
        }
        for (key, value) in sysctls {
            let _ = writeln!(text, "kernel\t{key}\t{value}");
        }
        let seen = Observed::read(&(text + "done")).unwrap();
        Facts { host: name.into(), interface: "eth0".into(), seen, processors: 4, under_way: 250_000 }
    }

    const CARD: &str = "mtu\n1500\nmaxmtu 9000\n--\ng\nRX: 4096\nTX: 512\nCurrent hardware settings:\nRX: 256\nTX: 512\n--\nk\ntx-checksumming: off\ntcp-segmentation-offload: off\ngeneric-receive-offload: off [fixed]\n--\nc\nAdaptive RX: on  TX: off\nrx-usecs: 3\n--\nl\nCombined: 16\nCurrent hardware settings:\nCombined: 1\n";
    const KERNEL: [(&str, &str); 4] = [
        (CONGESTION, "cubic"),
        (AVAILABLE, "reno cubic bbr"),
        ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
        ("net.ipv4.tcp_wmem", "4096 16384 262144"),
    ];

    #[test]
    fn what_can_be_better_is_tried_and_the_rest_is_told() {
        let wish = TuningOptions { mtu: Some(9000), ..TuningOptions::default() };
        let (all, left) = trials(&[host("n1", CARD, &KERNEL), host("n2", CARD, &KERNEL)], &wish);
        let shown: Vec<String> = all
            .iter()
            .map(|trial| {
                let one = |wanted: &HostRequirement| match wanted {
                    HostRequirement::Link { setting, value, .. } => format!("{setting}={value}"),
                    HostRequirement::Sysctl { key, value } => format!("{key}={value}"),
                    other => format!("{other:?}"),
                };
                assert_eq!(trial.wanted.len(), 2, "{trial:?}");
                format!("{}: {}", trial.name, trial.wanted["n1"].iter().map(one).collect::<Vec<_>>().join(","))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "all offloads: offload tx=on,offload tso=on",
                "largest rings: ring rx=4096",
                "one queue per processor: channels combined=4",
                "interrupts without delay: coalesce adaptive-rx=off,coalesce rx-usecs=0",
                "congestion control bbr: net.ipv4.tcp_congestion_control=bbr",
                "larger socket buffers: net.ipv4.tcp_wmem=4096 16384 4194304",
                "MTU 9000: mtu=9000",
            ]
        );
        assert_eq!(left, ["nconnect: not tried: no host has a mount of NFS 4"]);
        let bare = Facts { host: "n3".into(), interface: "eth0".into(), ..Facts::default() };
        let (all, left) = trials(&[bare], &TuningOptions::default());
        assert_eq!((all.len(), left.len()), (0, 8), "{left:?}");
    }

    #[test]
    fn an_mtu_is_of_all_hosts_or_of_none() {
        let small = host("n2", "mtu\n1500\nmaxmtu 1500\n", &[]);
        let wish = TuningOptions { only: vec![TunableKind::Mtu], mtu: Some(9000), ..TuningOptions::default() };
        let (all, left) = trials(&[host("n1", CARD, &[]), small], &wish);
        assert_eq!(
            (all.len(), left),
            (0, vec!["mtu: not tried: the interface of n2 does not accept an MTU of 9000".into()])
        );
    }

    #[test]
    fn connections_are_tried_by_server_where_there_are_fewer() {
        let of = |name: &str, mounts: &str| {
            let mut facts = host(name, "", &[]);
            facts.seen.outputs.insert(nfs::MOUNTS.into(), mounts.into());
            facts
        };
        let names = |hosts: &[Facts]| match nconnect(hosts, false) {
            Ok(all) => all.iter().map(|t| format!("{} on {:?}", t.name, t.wanted.keys().collect::<Vec<_>>())).collect(),
            Err(why) => vec![why],
        };
        let few = of("n2", "n1:/home rw,vers=4.2\n");
        let hosts = [of("n1", ""), few, of("n3", "n1:/home rw,vers=4.2,nconnect=4\n")];
        assert_eq!(
            names(&hosts),
            ["4 connections to n1 per mount on [\"n2\"]", "8 connections to n1 per mount on [\"n2\", \"n3\"]"]
        );
        assert!(names(&[of("n2", "n1:/ rw,vers=4.2,nconnect=2\nfstab n1:/\n")])[0].starts_with("lines of /etc/fstab"));
        assert!(
            names(&[of("n2", "n1:/ rw,vers=4.2,nconnect=8\n")])[0]
                .starts_with("all mounts already have the most connections")
        );
        assert!(nconnect(&hosts, true).is_err());
    }
}
