//! The results of installing packages that one host fetches for all, as text and as JSON.

use crate::{PackagesByHost, TransferReport};
use homing_model::units::{bytes, count};
use homing_model::{NodeSet, alike, document};
use homing_setup::cache::PackageFile;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The files that are fetched once, for all.
#[derive(Default)]
pub struct Fetched {
    /// The host that fetched.
    pub by: Option<String>,
    /// Names and sizes of the files.
    pub files: Vec<(String, u64)>,
    /// Bytes that all hosts want.
    pub wanted_bytes: u64,
    /// Bytes that left this machine for the hosts.
    pub sent: u64,
}

impl Fetched {
    /// Describes the files before they are fetched.
    pub fn of(files: &[PackageFile], wanted: &PackagesByHost) -> Fetched {
        let mut fetched = Fetched::default();
        fetched.add(files, wanted);
        fetched
    }

    /// Adds files for these hosts.
    pub fn add(&mut self, files: &[PackageFile], wanted: &PackagesByHost) {
        self.files.extend(files.iter().map(|file| (file.name.clone(), file.size)));
        self.wanted_bytes += wanted.values().flatten().map(|file| file.size).sum::<u64>();
    }

    /// Returns the bytes that are fetched.
    pub fn once(&self) -> u64 {
        self.files.iter().map(|(_, size)| size).sum()
    }

    /// Describes the bytes that were saved.
    pub fn line(&self) -> String {
        let who = self.by.as_ref().map_or("once".into(), |host| format!("by {host}"));
        let (once, asked) = (bytes(self.once()), bytes(self.wanted_bytes));
        let sent = if self.sent > 0 { format!("; sent from here: {}", bytes(self.sent)) } else { String::new() };
        let files = count(self.files.len() as u64, "file");
        format!("fetched {who}: {files}, {once}; if each host fetched its own: {asked}{sent}")
    }
}

/// The results of hosts.
#[derive(Default)]
pub struct PackageReport {
    /// The packages to install, for people.
    pub packages: Vec<String>,
    /// The files that were fetched for all.
    pub fetched: Fetched,
    /// Hosts that had all.
    pub has: BTreeSet<String>,
    /// Hosts that want some, if nothing is done.
    pub wants: BTreeSet<String>,
    /// Hosts that have taken the files sent to them.
    pub installed: BTreeSet<String>,
    /// Hosts that have not, with the reason.
    pub failed: Vec<(String, String)>,
}

impl PackageReport {
    /// Adds the results of hosts that files were sent to.
    pub fn take(&mut self, gone: TransferReport) {
        self.fetched.sent += gone.bytes;
        for (host, said) in gone.came {
            match said {
                Ok(()) => drop(self.installed.insert(host)),
                Err(why) => self.failed.push((host, why)),
            }
        }
    }

    /// Returns the results as text for people.
    pub fn text(&self) -> String {
        let packages = self.packages.join(" ");
        let line = |hosts: &BTreeSet<String>, what: &str| {
            let set: NodeSet = hosts.iter().cloned().collect();
            if hosts.is_empty() { String::new() } else { format!("{}: {packages} {what}\n", alike::label(&set)) }
        };
        let mut text = line(&self.has, "already installed")
            + &line(&self.installed, "installed")
            + &line(&self.wants, "would be installed");
        if self.fetched.by.is_some() || !self.wants.is_empty() {
            text += &(self.fetched.line() + "\n");
        }
        text
    }

    /// Describes the failures; hosts with the same reason are together.
    pub fn failures(&self) -> String {
        let each = alike::folded(self.failed.iter().map(|(host, why)| (host.as_str(), why.as_str())));
        format!("not every host has all packages:\n  {}", each.join("\n  "))
    }

    /// Returns the results as JSON.
    pub fn json(&self, hosts: &[String], status: i32) -> String {
        let row = |host: &String| {
            let failed: Vec<&str> =
                self.failed.iter().filter(|(h, _)| h == host).map(|(_, why)| why.as_str()).collect();
            json!({ "host": host, "ok": failed.is_empty(), "installed": self.installed.contains(host), "failed": failed })
        };
        let rows: Vec<Value> = hosts.iter().map(row).collect();
        let of = &self.fetched;
        let files: Vec<Value> = of.files.iter().map(|(name, size)| json!({ "name": name, "bytes": size })).collect();
        let fetched = json!({ "host": of.by, "bytes": of.once(), "files": files });
        document::line(
            json!({ "hosts": rows, "fetched": fetched, "wanted_bytes": of.wanted_bytes, "sent_bytes": of.sent, "exit": status }),
        )
    }
}
