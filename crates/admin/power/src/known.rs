//! Facts about hosts from earlier runs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The facts, by the names of hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PowerFacts {
    /// Hosts with known facts.
    pub hosts: BTreeMap<String, Since>,
    /// The time of the last query of all hosts, seconds since 1970.
    #[serde(default)]
    pub looked_s: u64,
}

/// The times since which a host is in its state, seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Since {
    /// Each query since then found it idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<u64>,
    /// It was switched off then, and has not been on since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_s: Option<u64>,
    /// The time at which it was switched on for a connection: it may boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_s: Option<u64>,
    /// Its processors, when it last answered.
    #[serde(default)]
    pub cores: u32,
}

impl PowerFacts {
    /// Returns the time when a host was switched off, if it is off.
    pub fn off_s(&self, host: &str) -> Option<u64> {
        self.hosts.get(host)?.off_s
    }

    /// Returns the hosts that are off, with their processors.
    pub fn off(&self) -> impl Iterator<Item = (&str, u32)> {
        self.hosts.iter().filter(|(_, since)| since.off_s.is_some()).map(|(host, since)| (host.as_str(), since.cores))
    }

    /// Records that a host was switched off.
    pub fn switched_off(&mut self, host: &str, now_s: u64) {
        let since = self.hosts.entry(host.into()).or_default();
        *since = Since { off_s: Some(now_s), cores: since.cores, ..Since::default() };
    }

    /// Records that a host which is off was called, and answers soon. Returns whether it is known to be off.
    pub fn called(&mut self, host: &str, now_s: u64) -> bool {
        let off = self.hosts.get_mut(host).filter(|since| since.off_s.is_some());
        off.map(|since| since.called_s = Some(now_s)).is_some()
    }

    /// Records that a host was switched on.
    pub fn switched_on(&mut self, host: &str) {
        if let Some(since) = self.hosts.get_mut(host) {
            *since = Since { cores: since.cores, ..Since::default() };
        }
    }
}
