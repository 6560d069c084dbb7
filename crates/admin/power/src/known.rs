//! What was seen of hosts before.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Of hosts by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// Those of which anything is known.
    pub hosts: BTreeMap<String, Since>,
    /// When all were looked at last, seconds since 1970.
    #[serde(default)]
    pub looked_s: u64,
}

/// Since when a host is as it is. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Since {
    /// Each look since then found it idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<u64>,
    /// It was switched off then, and not on since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_s: Option<u64>,
    /// While it was off somebody called it: it may boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called_s: Option<u64>,
    /// Its processors, when it last answered.
    #[serde(default)]
    pub cores: u32,
}

impl Known {
    /// When a host was switched off, if it is off.
    pub fn off_s(&self, host: &str) -> Option<u64> {
        self.hosts.get(host)?.off_s
    }

    /// Hosts that are off, with their processors.
    pub fn off(&self) -> impl Iterator<Item = (&str, u32)> {
        self.hosts.iter().filter(|(_, since)| since.off_s.is_some()).map(|(host, since)| (host.as_str(), since.cores))
    }

    /// A host was switched off.
    pub fn switched_off(&mut self, host: &str, now_s: u64) {
        let since = self.hosts.entry(host.into()).or_default();
        *since = Since { off_s: Some(now_s), cores: since.cores, ..Since::default() };
    }

    /// A host that is off was called, and answers soon; true where it is known to be off.
    pub fn called(&mut self, host: &str, now_s: u64) -> bool {
        let off = self.hosts.get_mut(host).filter(|since| since.off_s.is_some());
        off.map(|since| since.called_s = Some(now_s)).is_some()
    }

    /// A host was switched on.
    pub fn switched_on(&mut self, host: &str) {
        if let Some(since) = self.hosts.get_mut(host) {
            *since = Since { cores: since.cores, ..Since::default() };
        }
    }
}
