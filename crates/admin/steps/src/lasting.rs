//! Settings of interfaces that outlive a reboot: a unit of systemd sets them.

use crate::observe::Observed;
use crate::wanted::Wanted;

/// A unit, and its file.
#[derive(Clone, Copy, Debug)]
pub struct Lasting {
    /// The unit's name.
    pub unit: &'static str,
    /// Its file.
    pub file: &'static str,
    /// The unit that it comes after.
    after: &'static str,
}

impl Lasting {
    /// Of what `homing tune net` has kept.
    pub const TUNE: Lasting = Lasting {
        unit: "homing-net.service",
        file: "/etc/systemd/system/homing-net.service",
        // Where a link is kept up by systemd it is there by then; that of others is up soon after.
        after: "network-online.target",
    };
    /// Of what the cluster file says, which counts more.
    pub const UP: Lasting = Lasting {
        unit: "homing-mtu.service",
        file: "/etc/systemd/system/homing-mtu.service",
        after: "network-online.target homing-net.service",
    };
}

/// What makes settings of interfaces last; what the unit sets besides stays. Nothing where none of `wanted` is one. The
/// unit is not started now: all that it does is so already, and some cards drop their link for it.
pub fn lasting(of: Lasting, wanted: &[Wanted], seen: &Observed) -> Vec<Wanted> {
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
    vec![Wanted::file(of.file, text), Wanted::AtBoot(of.unit.into())]
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

/// Lines of before, but for those of the same thing: what stands before the last `between`, or the first of values.
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
            line(&Wanted::Link { interface: "eth0;reboot".into(), setting: "mtu".into(), value: "1".into() }),
            None
        );
    }
}
