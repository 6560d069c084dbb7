//! What came of packages, as text and as JSON.

use homing_model::units::bytes;
use homing_model::{NodeSet, alike};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What became of hosts.
#[derive(Default)]
pub struct Came {
    pub packages: Vec<String>,
    /// Who fetched.
    pub fetcher: Option<String>,
    /// Names and sizes of what is fetched once.
    pub files: Vec<(String, u64)>,
    /// Bytes that all hosts want.
    pub asked: u64,
    /// Hosts that had all.
    pub has: BTreeSet<String>,
    /// Hosts that want some, where nothing is done.
    pub wants: BTreeSet<String>,
    pub installed: BTreeSet<String>,
    pub failed: Vec<(String, String)>,
}

impl Came {
    fn once(&self) -> u64 {
        self.files.iter().map(|(_, size)| size).sum()
    }
}

/// For a person.
pub fn text(came: &Came) -> String {
    let packages = came.packages.join(" ");
    let line = |hosts: &BTreeSet<String>, what: &str| {
        let set: NodeSet = hosts.iter().cloned().collect();
        if hosts.is_empty() { String::new() } else { format!("{}: {packages} {what}\n", alike::label(&set)) }
    };
    let mut text =
        line(&came.has, "was there") + &line(&came.installed, "installed") + &line(&came.wants, "would be installed");
    if came.fetcher.is_some() || !came.wants.is_empty() {
        let who = came.fetcher.as_ref().map_or("once".into(), |host| format!("by {host}"));
        let (once, asked) = (bytes(came.once()), bytes(came.asked));
        text += &format!("fetched {who}: {} files, {once}; each host by itself: {asked}\n", came.files.len());
    }
    text
}

/// What failed, hosts of one reason together.
pub fn failures(came: &Came) -> String {
    let each = alike::folded(came.failed.iter().map(|(host, why)| (host.as_str(), why.as_str())));
    format!("not everything is installed:\n  {}", each.join("\n  "))
}

/// For a program.
pub fn json(hosts: &[String], came: &Came, status: i32) -> String {
    let row = |host: &String| {
        let failed: Vec<&str> = came.failed.iter().filter(|(h, _)| h == host).map(|(_, why)| why.as_str()).collect();
        json!({ "host": host, "ok": failed.is_empty(), "installed": came.installed.contains(host), "failed": failed })
    };
    let rows: Vec<Value> = hosts.iter().map(row).collect();
    let files: Vec<Value> = came.files.iter().map(|(name, size)| json!({ "name": name, "bytes": size })).collect();
    let fetched = json!({ "host": came.fetcher, "bytes": came.once(), "files": files });
    json!({ "hosts": rows, "fetched": fetched, "wanted_bytes": came.asked, "exit": status }).to_string() + "\n"
}
