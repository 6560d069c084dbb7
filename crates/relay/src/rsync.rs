//! Which rsync does a copy: a pure function of the request.

use homing_exec::Way;
use homing_snapshot::rsync::EXACT;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ffi::OsString;

/// The part of a leader's folder that has the files.
const FILES: &str = "files";

/// What is common to all hosts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// To the hosts, or from them.
    pub push: bool,
    /// Absolute paths here (push) or paths there (pull).
    pub sources: Vec<String>,
    /// By host, a file here that it gets in the place of `sources` (push).
    pub own: HashMap<String, String>,
    /// A path there (push) or a folder here (pull).
    pub dest: String,
    /// Compare by content.
    pub checksum: bool,
    /// Only say what differs, by content.
    pub verify: bool,
    /// Change nothing.
    pub dry_run: bool,
    /// Remove there what is not here.
    pub delete: bool,
}

impl Request {
    /// The words of rsync for one host. `folders` are the places in `sources`
    /// that are folders there (pull).
    pub fn words(&self, host: &str, way: Way, folders: &[bool]) -> Vec<String> {
        // Before each name: the bytes that were sent for it.
        let format = if self.push { "--out-format=%b %i %n%L" } else { "--out-format=%i %n%L" };
        let mut words: Vec<String> = ["rsync", "-a", "-s", EXACT, format].map(String::from).into();
        let mut flag = |on: bool, word: &str| words.extend(on.then(|| word.to_string()));
        flag(self.checksum || self.verify, "--checksum");
        flag(self.dry_run || self.verify, "--dry-run");
        flag(self.delete, "--delete");
        if let Some(way) = way {
            words.extend(["-e".into(), shell_words(way)]);
        }
        words.push("--".into());
        let there = |path: &str| there(host, way, path);
        if self.push {
            match self.own.get(host) {
                Some(own) => words.push(own.clone()),
                None => words.extend(self.sources.iter().cloned()),
            }
            words.push(there(&self.dest));
        } else {
            let source = &self.sources[0];
            let slash = if folders.first() == Some(&true) { "/" } else { "" };
            words.push(there(&format!("{source}{slash}")));
            words.push(format!("{}/{}.{host}{slash}", self.dest, base(source)));
        }
        words
    }
}

impl Request {
    /// Whether a leader can pass it on: a push of the same files to all hosts, each with a name.
    pub fn can_be_passed_on(&self) -> bool {
        self.push && self.own.is_empty() && !self.dry_run && self.sources.iter().all(|source| !base(source).is_empty())
    }

    /// The words of rsync that give a leader the files, into a folder of its own. What it has at the destination
    /// already is not sent, and needs no room: it gets a second name.
    pub fn load(&self, leader: &str, way: Way, folder: &str) -> Vec<String> {
        let dest = format!("{folder}/{FILES}/");
        let files = Request { dest, delete: false, verify: false, ..self.clone() };
        let mut words = files.words(leader, way, &[]);
        if self.dest.starts_with('/') {
            words.insert(1, format!("--link-dest={}", self.dest));
        }
        words
    }

    /// The request of a leader that has the files in a folder.
    pub fn from(&self, folder: &str) -> Request {
        // Of two files of one name rsync takes the first, and has done so on the way to the leader.
        let mut names: Vec<&str> = Vec::new();
        for name in self.sources.iter().map(|source| base(source)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let sources = names.into_iter().map(|name| format!("{folder}/{FILES}/{name}")).collect();
        Request { sources, ..self.clone() }
    }
}

fn there(host: &str, way: Way, path: &str) -> String {
    match way {
        None => path.to_string(),
        Some(_) if host.contains(':') => format!("[{host}]:{path}"),
        Some(_) => format!("{host}:{path}"),
    }
}

/// The last part of a path.
pub fn base(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or("")
}

/// rsync cuts `-e` at blanks and knows quotes, but no backslash.
fn shell_words(way: &[OsString]) -> String {
    let quote = |word: &OsString| {
        let word = word.to_string_lossy();
        let plain = !word.is_empty() && !word.contains([' ', '\t', '"', '\'']);
        match (plain, word.contains('"')) {
            (true, _) => word.into_owned(),
            (false, false) => format!("\"{word}\""),
            (false, true) => format!("'{word}'"),
        }
    };
    way.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_its_words() {
        let ssh: Vec<OsString> = ["ssh", "-F", "/a b", "-S", "/s"].map(OsString::from).into();
        let push = Request { push: true, sources: vec!["/etc/motd".into()], dest: "/etc".into(), ..Request::default() };
        let words = push.words("n1", Some(&ssh), &[]);
        assert_eq!(words[5..], ["-e", "ssh -F \"/a b\" -S /s", "--", "/etc/motd", "n1:/etc"]);
        let load = push.load("n1", Some(&ssh), "/var/tmp/x");
        assert_eq!((load[1].as_str(), load.last().unwrap().as_str()), ("--link-dest=/etc", "n1:/var/tmp/x/files/"));
        let two = Request { sources: ["/a/motd", "/b/motd", "/b/tree"].map(String::from).into(), ..push.clone() };
        assert_eq!(two.from("/t").sources, ["/t/files/motd", "/t/files/tree"]);
        assert!(two.can_be_passed_on() && !Request { sources: vec!["/".into()], ..two }.can_be_passed_on());
        let pull = Request { sources: vec!["/var/log/".into()], dest: "in".into(), ..Request::default() };
        assert_eq!(pull.words("n1", Some(&ssh), &[false])[8..], ["n1:/var/log/", "in/log.n1"]);
        let request = Request { sources: vec!["/var/log".into()], verify: true, ..pull };
        let words = request.words("::1", Some(&ssh), &[true]);
        assert_eq!(words[10..], ["[::1]:/var/log/", "in/log.::1/"]);
        assert!(words.contains(&"--dry-run".to_string()) && words.contains(&"--checksum".to_string()));
        assert_eq!(push.words("localhost", None, &[])[5..], ["--", "/etc/motd", "/etc"]);
    }
}
