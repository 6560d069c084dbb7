//! What outlives a reboot: a unit of systemd that sets interfaces, and a file of sysctl.

use super::trials::{AVAILABLE, CONGESTION, Trial};
use homing_steps::{Change, Observed, Question, Seen, Step, UnitState, Wanted, plan};
use std::fmt::Write;

const UNIT: &str = "homing-net.service";
const UNIT_FILE: &str = "/etc/systemd/system/homing-net.service";
const SYSCTL_FILE: &str = "/etc/sysctl.d/90-homing-net.conf";
/// Values of the kernel that are tuned.
const KEYS: [&str; 3] = [CONGESTION, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];
/// Where a link is kept up by systemd it is there by then; that of others is up soon after.
const HEAD: &str = "[Unit]\nDescription=Settings of network interfaces that homing tune net found to be better\n\
    Wants=network-online.target\nAfter=network-online.target\n\n[Service]\nType=oneshot\n";
const TAIL: &str = "\n[Install]\nWantedBy=multi-user.target\n";

/// What a host is asked before it is tuned, and before that is undone.
pub fn question(interface: Option<&str>) -> Question {
    let names = |all: &[&str]| all.iter().map(|name| name.to_string()).collect();
    Question {
        files: names(&[UNIT_FILE, SYSCTL_FILE]),
        units: names(&[UNIT]),
        sysctls: names(&[&KEYS[..], &[AVAILABLE]].concat()),
        links: interface.into_iter().map(String::from).collect(),
        outputs: names(&["nproc"]),
        journal: true,
        ..Question::default()
    }
}

/// Whether a change is one that tuning makes.
pub fn is_own(change: &Change) -> bool {
    match change {
        Change::Link { .. } => true,
        Change::File { path, .. } => [UNIT_FILE, SYSCTL_FILE].contains(&path.as_str()),
        Change::Unit { name, .. } => name == UNIT,
        Change::Sysctl { key, .. } => KEYS.contains(&key.as_str()),
        _ => false,
    }
}

/// The steps that make what was tried on a host outlive a reboot. `None` where it has no systemd.
pub(super) fn steps(trial: &Trial, host: &str, seen: &mut Observed) -> Result<Vec<Step>, String> {
    let wanted = trial.wanted.get(host).map(Vec::as_slice).unwrap_or_default();
    let lines: Vec<String> = wanted.iter().filter_map(line).collect();
    let values: Vec<String> = wanted.iter().filter_map(value).collect();
    let mut all = Vec::new();
    if !values.is_empty() {
        let text = merged(seen.text(SYSCTL_FILE).unwrap_or(""), &values, " = ");
        all.extend(written(SYSCTL_FILE, text, seen)?);
    }
    if !lines.is_empty() {
        let before: String = seen.text(UNIT_FILE).unwrap_or("").lines().filter(|l| l.starts_with("ExecStart=")).fold(
            String::new(),
            |mut text, line| {
                let _ = writeln!(text, "{line}");
                text
            },
        );
        let text = format!("{HEAD}{}{TAIL}", merged(&before, &lines, " "));
        all.extend(written(UNIT_FILE, text, seen)?);
        let from = seen.units.get(UNIT).map(|(state, _)| *state).unwrap_or_default();
        // It is not started now: all that it does is so already, and some cards drop their link for it.
        let change = Change::Unit { name: UNIT.into(), from, to: UnitState { enabled: true, active: from.active } };
        if !change.is_nothing() {
            seen.apply(&change);
            all.push(Step { change, undoes: None });
        }
    }
    Ok(all)
}

fn written(path: &str, text: String, seen: &mut Observed) -> Result<Vec<Step>, String> {
    seen.files.entry(path.into()).or_insert(Seen::Absent);
    plan(&[Wanted::file(path, text)], seen).map_err(|why| why.join("; "))
}

/// A command of the unit. A `-` before it: where one setting is refused, the others are set still.
fn line(wanted: &Wanted) -> Option<String> {
    let Wanted::Link { interface, setting, value } = wanted else { return None };
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let is_plain = interface.chars().chain(value.chars()).all(plain);
    let words = match setting.split_once(' ') {
        None => format!("ip link set dev {interface} {setting}"),
        Some((kind, word)) => {
            let letter = [("ring", "G"), ("offload", "K"), ("coalesce", "C"), ("channels", "L")];
            let letter = letter.iter().find(|(name, _)| *name == kind)?.1;
            format!("ethtool -{letter} {interface} {word}")
        }
    };
    is_plain.then(|| format!("ExecStart=-/usr/bin/env {words} {value}"))
}

fn value(wanted: &Wanted) -> Option<String> {
    let Wanted::Sysctl { key, value } = wanted else { return None };
    Some(format!("{key} = {value}"))
}

/// Lines of before, but for those of the same thing: what stands before the last `between`, or the first of values.
fn merged(before: &str, new: &[String], between: &str) -> String {
    let thing = |line: &str| match between {
        " = " => line.split_once(between).map(|(thing, _)| thing.to_string()),
        _ => line.rsplit_once(between).map(|(thing, _)| thing.to_string()),
    };
    let things: Vec<Option<String>> = new.iter().map(|line| thing(line)).collect();
    let kept = before.lines().filter(|line| !things.contains(&thing(line)));
    kept.chain(new.iter().map(String::as_str)).fold(String::new(), |text, line| text + line + "\n")
}

#[cfg(test)]
mod tests {
    use super::super::trials::Kind;
    use super::*;

    fn trial(wanted: Vec<Wanted>) -> Trial {
        Trial { kind: Kind::Rings, name: "x".into(), wanted: [("n1".to_string(), wanted)].into() }
    }

    fn link(setting: &str, value: &str) -> Wanted {
        Wanted::Link { interface: "eth0".into(), setting: setting.into(), value: value.into() }
    }

    #[test]
    fn what_was_kept_before_stays_and_is_written_once() {
        let mut seen = Observed::default();
        let first = trial(vec![link("ring rx", "4096"), link("mtu", "9000")]);
        assert_eq!(steps(&first, "n1", &mut seen).unwrap().len(), 2, "a file and its unit");
        let second = trial(vec![link("ring rx", "512"), Wanted::Sysctl { key: "a.b".into(), value: "1 2 3".into() }]);
        assert_eq!(steps(&second, "n1", &mut seen).unwrap().len(), 2, "two files");
        let text = seen.text(UNIT_FILE).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("Exec")).collect();
        assert_eq!(
            lines,
            ["ExecStart=-/usr/bin/env ip link set dev eth0 mtu 9000", "ExecStart=-/usr/bin/env ethtool -G eth0 rx 512"]
        );
        assert_eq!(seen.text(SYSCTL_FILE), Some("a.b = 1 2 3\n"));
        assert!(steps(&second, "n1", &mut seen).unwrap().is_empty(), "it is so already");
    }

    #[test]
    fn no_word_of_a_host_becomes_a_command() {
        assert_eq!(
            line(&Wanted::Link { interface: "eth0;reboot".into(), setting: "mtu".into(), value: "1".into() }),
            None
        );
    }
}
