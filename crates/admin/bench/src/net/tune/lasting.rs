//! Makes values outlive a reboot, with a unit of systemd that sets interfaces and a file of sysctl.

use super::nfs;
use super::trials::{AVAILABLE, CONGESTION, Trial};
use super::up;
use homing_steps::{ChangeStep, FactQuery, HostChange, HostRequirement, Lasting, Observed, lasting, merged, plan};
use std::collections::BTreeSet;

/// sysctl reads it before the file of `homing up`.
const SYSCTL_FILE: &str = "/etc/sysctl.d/59-homing-net.conf";
/// Values of the kernel that are tuned.
const KEYS: [&str; 3] = [CONGESTION, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];

/// The facts that a host is queried for before tuning, and before tuning is undone.
pub fn question(interface: Option<&str>) -> FactQuery {
    let names = |all: &[&str]| all.iter().map(|name| name.to_string()).collect();
    FactQuery {
        files: names(&[Lasting::TUNE.file, SYSCTL_FILE, up::FILE, Lasting::UP.file, nfs::FILE]),
        units: names(&[Lasting::TUNE.unit]),
        sysctls: names(&[&KEYS[..], &[AVAILABLE]].concat()),
        links: interface.into_iter().map(String::from).collect(),
        outputs: names(&["nproc", nfs::MOUNTS]),
        journal: true,
        ..FactQuery::default()
    }
}

/// Reduces the journal of a host to the changes that tuning has made and may take back. Returns a message for each
/// change that stays: if `homing up` has set the same value, its own undo restores the value from before both.
pub fn to_take_back(seen: &mut Observed) -> Vec<String> {
    let mut journal = std::mem::take(&mut seen.journal);
    journal.retain(|(_, change)| is_own(change));
    let of_up = |change: &HostChange| match change {
        HostChange::Sysctl { key, .. } => up::sets_key(seen, key),
        HostChange::Link { interface, setting, .. } => up::sets(seen, interface, setting),
        _ => false,
    };
    let (stays, own): (Vec<_>, Vec<_>) = journal.into_iter().partition(|(_, change)| of_up(change));
    let things: BTreeSet<String> = stays.iter().map(|(_, change)| change.thing()).collect();
    seen.journal = own;
    things
        .into_iter()
        .map(|thing| format!("{thing}: homing up has set it too; it stays until homing up --undo"))
        .collect()
}

/// Whether a change is one that tuning makes.
pub(super) fn is_own(change: &HostChange) -> bool {
    match change {
        HostChange::Link { .. } => true,
        HostChange::File { path, .. } => [Lasting::TUNE.file, SYSCTL_FILE, nfs::FILE].contains(&path.as_str()),
        HostChange::Unit { name, .. } => name == Lasting::TUNE.unit,
        HostChange::Sysctl { key, .. } => KEYS.contains(&key.as_str()),
        _ => false,
    }
}

/// Returns the steps that make the tried values outlive a reboot of a host. `None` where it has no systemd.
pub(super) fn steps(trial: &Trial, host: &str, seen: &mut Observed) -> Result<Vec<ChangeStep>, String> {
    let wanted = trial.wanted.get(host).map(Vec::as_slice).unwrap_or_default();
    let values: Vec<String> = wanted.iter().filter_map(value).collect();
    let mut files = lasting(Lasting::TUNE, wanted, seen);
    if !values.is_empty() {
        let text = merged(seen.text(SYSCTL_FILE).unwrap_or(""), &values, " = ");
        files.insert(0, HostRequirement::file(SYSCTL_FILE, text));
    }
    plan(&files, seen).map_err(|why| why.join("; "))
}

fn value(wanted: &HostRequirement) -> Option<String> {
    let HostRequirement::Sysctl { key, value } = wanted else { return None };
    Some(format!("{key} = {value}"))
}

#[cfg(test)]
mod tests {
    use super::super::trials::TunableKind;
    use super::*;

    fn trial(wanted: Vec<HostRequirement>) -> Trial {
        Trial { kind: TunableKind::Rings, name: "x".into(), wanted: [("n1".to_string(), wanted)].into(), through: None }
    }

    fn link(setting: &str, value: &str) -> HostRequirement {
        HostRequirement::Link { interface: "eth0".into(), setting: setting.into(), value: value.into() }
    }

    #[test]
    fn what_was_kept_before_stays_and_is_written_once() {
        let mut seen = Observed::default();
        let first = trial(vec![link("ring rx", "4096"), link("mtu", "9000")]);
        assert_eq!(steps(&first, "n1", &mut seen).unwrap().len(), 2, "a file and its unit");
        let second =
            trial(vec![link("ring rx", "512"), HostRequirement::Sysctl { key: "a.b".into(), value: "1 2 3".into() }]);
        assert_eq!(steps(&second, "n1", &mut seen).unwrap().len(), 2, "two files");
        let text = seen.text(Lasting::TUNE.file).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("Exec")).collect();
        assert_eq!(
            lines,
            ["ExecStart=-/usr/bin/env ip link set dev eth0 mtu 9000", "ExecStart=-/usr/bin/env ethtool -G eth0 rx 512"]
        );
        assert_eq!(seen.text(SYSCTL_FILE), Some("a.b = 1 2 3\n"));
        assert!(steps(&second, "n1", &mut seen).unwrap().is_empty(), "it is so already");
    }

    #[test]
    fn what_the_cluster_file_says_is_not_taken_back() {
        let set =
            |key: &str, from: &str, to: &str| HostChange::Sysctl { key: key.into(), from: from.into(), to: to.into() };
        let mut seen = Observed::default();
        let (both, ours) = ("net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem");
        let all = [set(both, "1", "2"), set(ours, "1", "2"), set(both, "2", "3"), set("vm.swappiness", "60", "1")];
        for (n, change) in all.into_iter().enumerate() {
            seen.apply(&change);
            seen.journal.push((format!("{n:08}.json"), change));
        }
        plan(&[HostRequirement::file(up::FILE, format!("vm.swappiness = 1\n{both} = 3\n"))], &mut seen).unwrap();
        assert!(up::sets_key(&seen, both) && !up::sets_key(&seen, ours));
        let stays = to_take_back(&mut seen);
        assert_eq!(stays, ["sysctl net.ipv4.tcp_wmem: homing up has set it too; it stays until homing up --undo"]);
        let back = homing_steps::undo(&seen);
        assert_eq!(back.steps.iter().map(|step| step.change.clone()).collect::<Vec<_>>(), [set(ours, "2", "1")]);
        // A value that a user set stays too.
        seen.apply(&set(ours, "2", "9"));
        let back = homing_steps::undo(&seen);
        assert_eq!((back.steps.len(), back.changed.len()), (0, 1), "{:?}", back.changed);
        // An MTU of the cluster file stays too.
        let mtu = |interface: &str| HostChange::Link {
            interface: interface.into(),
            setting: "mtu".into(),
            from: "1500".into(),
            to: "9000".into(),
        };
        seen.journal = vec![("1.json".into(), mtu("eth0")), ("2.json".into(), mtu("eth1"))];
        let wanted = HostRequirement::Link { interface: "eth1".into(), setting: "mtu".into(), value: "9000".into() };
        plan(&lasting(Lasting::UP, &[wanted], &seen), &mut seen).unwrap();
        let stays = to_take_back(&mut seen);
        assert!(stays[0].starts_with("mtu of eth1: homing up has set it too") && seen.journal.len() == 1, "{stays:?}");
    }
}
