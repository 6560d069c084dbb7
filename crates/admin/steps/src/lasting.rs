//! Makes settings of interfaces outlive a reboot, with a unit of systemd that sets them.

use crate::observe::Observed;
use crate::wanted::HostRequirement;

/// A unit of systemd that sets interfaces.
#[derive(Clone, Copy, Debug)]
pub struct Lasting {
    /// The unit's name.
    pub unit: &'static str,
    /// Its file.
    pub file: &'static str,
    /// The units that start before it.
    after: &'static str,
}

impl Lasting {
    /// The unit for settings that `homing tune net` has kept.
    pub const TUNE: Lasting = Lasting {
        unit: "homing-net.service",
        file: "/etc/systemd/system/homing-net.service",
        // Links that systemd manages are up by then; others are up soon after.
        after: "network-online.target",
    };
    /// The unit for settings of the cluster file, which have priority.
    pub const UP: Lasting = Lasting {
        unit: "homing-mtu.service",
        file: "/etc/systemd/system/homing-mtu.service",
        after: "network-online.target homing-net.service",
    };
}

/// Returns the things that make settings of interfaces last; other settings of the unit stay. Returns nothing if
/// `wanted` has no such setting. The unit is not started now: its settings are in force already, and some cards drop
/// their link for it.
pub fn lasting(of: Lasting, wanted: &[HostRequirement], seen: &Observed) -> Vec<HostRequirement> {
    let lines: Vec<String> = wanted.iter().filter_map(line).collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let before = seen.text(of.file).unwrap_or("").lines().filter(|line| line.starts_with("ExecStart="));
    let before: String = before.map(|line| format!("{line}\n")).collect();
    let text = format!(
        "[Unit]\nDescription=Settings of network interfaces that homing has made\nWants=network-online.target\nAfter={}\n\n\
         [Service]\nType=oneshot\n{}\n[Install]\nWantedBy=multi-user.target\n",
        of.after,
        merged(&before, &lines, " ")
    );
    vec![HostRequirement::file(of.file, text), HostRequirement::AtBoot(of.unit.into())]
}

/// Returns a command of the unit. The `-` before it makes systemd continue with the other settings if one is refused.
fn line(wanted: &HostRequirement) -> Option<String> {
    let HostRequirement::Link { interface, setting, value } = wanted else { return None };
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

/// Merges lines: new lines replace old lines about the same thing. The thing is the text before the last `between`,
/// or before the first for ` = `.
pub fn merged(before: &str, new: &[String], between: &str) -> String {
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
    use super::*;

    #[test]
    fn no_word_of_a_host_becomes_a_command() {
        assert_eq!(
            line(&HostRequirement::Link { interface: "eth0;reboot".into(), setting: "mtu".into(), value: "1".into() }),
            None
        );
    }
}
