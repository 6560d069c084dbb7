//! What came of packages, as text and as JSON.

use crate::{Gone, Wanted};
use homing_model::units::bytes;
use homing_model::{NodeSet, alike};
use homing_setup::cache::PackageFile;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What is fetched once, for all.
#[derive(Default)]
pub struct Fetched {
    /// Who fetched.
    pub by: Option<String>,
    /// Names and sizes.
    pub files: Vec<(String, u64)>,
    /// Bytes that all hosts want.
    pub asked: u64,
    /// Bytes that left this machine for the hosts.
    pub sent: u64,
}

impl Fetched {
    /// Before anybody fetches.
    pub fn of(files: &[PackageFile], wanted: &Wanted) -> Fetched {
        let mut fetched = Fetched::default();
        fetched.add(files, wanted);
        fetched
    }

    /// More, for these hosts.
    pub fn add(&mut self, files: &[PackageFile], wanted: &Wanted) {
        self.files.extend(files.iter().map(|file| (file.name.clone(), file.size)));
        self.asked += wanted.values().flatten().map(|file| file.size).sum::<u64>();
    }

    /// Bytes that are fetched.
    pub fn once(&self) -> u64 {
        self.files.iter().map(|(_, size)| size).sum()
    }

    /// What it saves.
    pub fn line(&self) -> String {
        let who = self.by.as_ref().map_or("once".into(), |host| format!("by {host}"));
        let (once, asked) = (bytes(self.once()), bytes(self.asked));
        let sent = if self.sent > 0 { format!("; sent from here: {}", bytes(self.sent)) } else { String::new() };
        format!("fetched {who}: {} files, {once}; each host by itself: {asked}{sent}", self.files.len())
    }
}

/// What became of hosts.
#[derive(Default)]
pub struct Came {
    /// What was to be installed, in words.
    pub packages: Vec<String>,
    /// What was fetched for all.
    pub fetched: Fetched,
    /// Hosts that had all.
    pub has: BTreeSet<String>,
    /// Hosts that want some, where nothing is done.
    pub wants: BTreeSet<String>,
    /// Hosts that have taken what was sent to them.
    pub installed: BTreeSet<String>,
    /// Hosts that have not, and why.
    pub failed: Vec<(String, String)>,
}

impl Came {
    /// Takes what became of hosts that were sent what they install.
    pub fn take(&mut self, gone: Gone) {
        self.fetched.sent += gone.bytes;
        for (host, said) in gone.came {
            match said {
                Ok(()) => drop(self.installed.insert(host)),
                Err(why) => self.failed.push((host, why)),
            }
        }
    }

    /// For a person.
    pub fn text(&self) -> String {
        let packages = self.packages.join(" ");
        let line = |hosts: &BTreeSet<String>, what: &str| {
            let set: NodeSet = hosts.iter().cloned().collect();
            if hosts.is_empty() { String::new() } else { format!("{}: {packages} {what}\n", alike::label(&set)) }
        };
        let mut text = line(&self.has, "was there")
            + &line(&self.installed, "installed")
            + &line(&self.wants, "would be installed");
        if self.fetched.by.is_some() || !self.wants.is_empty() {
            text += &(self.fetched.line() + "\n");
        }
        text
    }

    /// What failed, hosts of one reason together.
    pub fn failures(&self) -> String {
        let each = alike::folded(self.failed.iter().map(|(host, why)| (host.as_str(), why.as_str())));
        format!("not every host has it all:\n  {}", each.join("\n  "))
    }

    /// For a program.
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
        json!({ "hosts": rows, "fetched": fetched, "wanted_bytes": of.asked, "sent_bytes": of.sent, "exit": status })
            .to_string()
            + "\n"
    }
}
