//! The settings of a network interface, as ethtool and the kernel report them.

use std::collections::BTreeMap;

/// One setting of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceSetting {
    /// Its present value.
    pub value: String,
    /// The largest value that the interface takes, if it reports that.
    pub most: Option<u32>,
}

/// The settings of an interface that can be changed: `mtu`, `ring rx`, `offload tso`, `coalesce rx-usecs`, `channels
/// combined`. The word after the blank is ethtool's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceSettings(BTreeMap<String, InterfaceSetting>);

/// Offloads: the name in the output of `ethtool -k`, and the word by which `ethtool -K` sets them.
const OFFLOADS: [(&str, &str); 6] = [
    ("scatter-gather", "sg"),
    ("rx-checksumming", "rx"),
    ("tx-checksumming", "tx"),
    ("tcp-segmentation-offload", "tso"),
    ("generic-segmentation-offload", "gso"),
    ("generic-receive-offload", "gro"),
];

impl InterfaceSettings {
    /// Returns the present value of a setting.
    pub fn value(&self, setting: &str) -> Option<&str> {
        self.0.get(setting).map(|setting| setting.value.as_str())
    }

    /// Returns all settings, by name.
    pub fn all(&self) -> &BTreeMap<String, InterfaceSetting> {
        &self.0
    }

    /// Records the new value of a setting.
    pub(crate) fn set(&mut self, setting: &str, value: &str) {
        self.0.entry(setting.into()).or_default().value = value.into();
    }

    fn put(&mut self, name: String, value: &str, most: Option<u32>) {
        self.0.insert(name, InterfaceSetting { value: value.into(), most });
    }

    /// Reads one answer: `part` is `mtu` for the kernel's, else the letter of ethtool's option.
    pub(crate) fn read(&mut self, part: &str, said: &str) {
        match part {
            "mtu" => self.mtu(said),
            "g" => self.sizes(said, "ring", &[("RX", "rx"), ("TX", "tx")]),
            "l" => self.sizes(said, "channels", &[("Combined", "combined")]),
            "k" => self.offloads(said),
            "c" => self.coalescing(said),
            _ => {}
        }
    }

    /// Reads the number of sysfs, and `maxmtu N` of `ip -d link`.
    fn mtu(&mut self, said: &str) {
        let most = said.lines().find_map(|line| line.strip_prefix("maxmtu ")?.parse().ok());
        if let Some(now) = said.lines().next().filter(|line| line.parse::<u32>().is_ok()) {
            self.put("mtu".into(), now, most);
        }
    }

    /// Reads `ethtool -g` and `-l`: the maximum values, then the present ones. A value that is no number counts as
    /// unknown.
    fn sizes(&mut self, said: &str, kind: &str, names: &[(&str, &str)]) {
        let (most, now) = said.split_once("Current hardware settings:").unwrap_or_default();
        let number = |text: &str, name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')?.trim().parse::<u32>().ok())
        };
        for (told, word) in names {
            if let (Some(most), Some(now)) = (number(most, told), number(now, told)) {
                self.put(format!("{kind} {word}"), &now.to_string(), Some(most));
            }
        }
    }

    /// Reads `ethtool -k`. A fixed offload cannot be set.
    fn offloads(&mut self, said: &str) {
        for (name, value) in said.lines().filter_map(|line| line.split_once(": ")) {
            let word = OFFLOADS.iter().find(|(told, _)| *told == name).map(|(_, word)| word);
            if let Some(word) = word.filter(|_| ["on", "off"].contains(&value.trim())) {
                self.put(format!("offload {word}"), value.trim(), None);
            }
        }
    }

    /// Reads `ethtool -c`. A value of `n/a` cannot be set.
    fn coalescing(&mut self, said: &str) {
        let adaptive = said.lines().find_map(|line| line.strip_prefix("Adaptive RX: ")?.split_whitespace().next());
        if let Some(value) = adaptive.filter(|value| ["on", "off"].contains(value)) {
            self.put("coalesce adaptive-rx".into(), value, None);
        }
        for word in ["rx-usecs", "tx-usecs"] {
            let told = said.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(':'));
            if let Some(value) = told.map(str::trim).filter(|value| value.parse::<u32>().is_ok()) {
                self.put(format!("coalesce {word}"), value, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of e1000e under ethtool 6.1, shortened.
    const RINGS: &str = "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nRX Mini:\tn/a\nTX:\t\t4096\n\
        Current hardware settings:\nRX:\t\t256\nRX Mini:\tn/a\nTX:\t\t256\nRX Buf Len:\tn/a\n";
    const OFFLOADED: &str = "Features for eth0:\nrx-checksumming: on\ntx-checksumming: on\n\ttx-checksum-ipv4: off [fixed]\n\
        tcp-segmentation-offload: off\ngeneric-receive-offload: on [fixed]\nlarge-receive-offload: off [fixed]\n";
    const COALESCED: &str = "Coalesce parameters for eth0:\nAdaptive RX: on  TX: n/a\nrx-usecs: 3\ntx-usecs: n/a\n";

    #[test]
    fn what_can_be_set_is_known_with_its_bounds() {
        let mut link = InterfaceSettings::default();
        link.read("mtu", "1500\nminmtu 68\nmaxmtu 9216\n");
        link.read("g", RINGS);
        link.read("k", OFFLOADED);
        link.read("c", COALESCED);
        link.read("l", "");
        let told: Vec<_> = link.all().iter().map(|(name, s)| (name.as_str(), s.value.as_str(), s.most)).collect();
        assert_eq!(
            told,
            [
                ("coalesce adaptive-rx", "on", None),
                ("coalesce rx-usecs", "3", None),
                ("mtu", "1500", Some(9216)),
                ("offload rx", "on", None),
                ("offload tso", "off", None),
                ("offload tx", "on", None),
                ("ring rx", "256", Some(4096)),
                ("ring tx", "256", Some(4096)),
            ]
        );
    }
}
