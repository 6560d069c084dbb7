//! Builds the rsync command of a copy: a pure function of the request.

use homing_exec::SshCommand;
use homing_model::text::quoted;
use homing_snapshot::rsync::EXACT;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ffi::OsString;

/// The part of a leader's folder that has the files.
const FILES: &str = "files";
/// An rsync that takes names of the other side literally. With `-s` that side's rsync expands `*`, `?` and `[` in
/// them (rsync(1), --secluded-args). Without it a shell reads them, and we quote them. A newer rsync would quote them
/// once more; `RSYNC_OLD_ARGS` turns that off, and an older one ignores it.
const LITERAL: [&str; 5] = ["env", "RSYNC_OLD_ARGS=1", "rsync", "-a", "--no-s"];

/// The part of a copy that is common to all hosts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RsyncRequest {
    /// Whether files go to the hosts, or come from them.
    pub push: bool,
    /// Absolute paths here (push) or paths there (pull).
    pub sources: Vec<String>,
    /// By host, a file here that it gets in place of `sources` (push).
    pub own: HashMap<String, String>,
    /// A path there (push) or a folder here (pull).
    pub dest: String,
    /// Whether files are compared by content.
    pub checksum: bool,
    /// Whether only differences are printed, by content.
    pub verify: bool,
    /// Whether nothing is changed.
    pub dry_run: bool,
    /// Whether files there that are not here are removed.
    pub delete: bool,
}

impl RsyncRequest {
    /// Returns the words of rsync for one host. `folders` states which `sources` are folders there (pull).
    pub fn words(&self, host: &str, way: SshCommand, folders: &[bool]) -> Vec<String> {
        // The bytes that were sent for a file come before its name.
        let format = if self.push { "--out-format=%b %i %n%L" } else { "--out-format=%i %n%L" };
        let mut words: Vec<String> = LITERAL.into_iter().chain([EXACT, format]).map(String::from).collect();
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

impl RsyncRequest {
    /// Whether a leader can pass it on: a push of the same files to all hosts, each with a name.
    pub fn can_be_passed_on(&self) -> bool {
        self.push && self.own.is_empty() && !self.dry_run && self.sources.iter().all(|source| !base(source).is_empty())
    }

    /// Returns the words of rsync that give a leader the files, into a folder of its own. Files that it has at the
    /// destination already are not sent, and need no space: they get a second name. A destination with signs of a
    /// shell in its name does without.
    pub fn load(&self, leader: &str, way: SshCommand, folder: &str) -> Vec<String> {
        let dest = format!("{folder}/{FILES}/");
        let files = RsyncRequest { dest, delete: false, verify: false, ..self.clone() };
        let mut words = files.words(leader, way, &[]);
        if self.dest.starts_with('/') && self.dest.chars().all(is_no_shell_sign) {
            words.insert(LITERAL.len(), format!("--link-dest={}", self.dest));
        }
        words
    }

    /// Returns the request of a leader that has the files in a folder.
    pub fn from(&self, folder: &str) -> RsyncRequest {
        let sources = self.sources.iter().map(|source| format!("{folder}/{FILES}/{}", base(source))).collect();
        RsyncRequest { sources, ..self.clone() }
    }
}

/// Returns a path on a host. A relative path gets `./` in front: then a leading `-` begins no option, and a colon
/// ends no host name.
fn there(host: &str, way: SshCommand, path: &str) -> String {
    let path = if path.starts_with('/') { path.to_string() } else { format!("./{path}") };
    match way {
        None => path,
        Some(_) if host.contains(':') => format!("[{host}]:{}", word(&path)),
        Some(_) => format!("{host}:{}", word(&path)),
    }
}

/// Whether a character has no meaning to a shell. rsync before 3.5 passes the value of an option to the shell of the
/// host unchanged, and rsync 3.5 quotes it, with `RSYNC_OLD_ARGS` too. Only a value without such signs is right for
/// both.
fn is_no_shell_sign(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._-+@%:,=".contains(c)
}

/// Quotes a path for the shell of a host.
fn word(path: &str) -> String {
    String::from_utf8_lossy(&quoted(path.as_bytes())).into_owned()
}

/// Returns two sources with the same last part, of which one would replace the other.
pub fn same_name(sources: &[String]) -> Option<[&str; 2]> {
    let clash = |(at, one): (usize, &'_ String)| {
        sources[..at].iter().position(|other| base(other) == base(one)).map(|other| [other, at])
    };
    sources.iter().enumerate().find_map(clash).map(|pair| pair.map(|at| sources[at].as_str()))
}

/// Returns the last part of a path.
pub fn base(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or("")
}

/// Joins words for `-e`: rsync splits it at blanks and knows quotes, but no backslash.
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
        let push = RsyncRequest {
            push: true,
            sources: vec!["/etc/motd".into()],
            dest: "/etc".into(),
            ..RsyncRequest::default()
        };
        let words = push.words("n1", Some(&ssh), &[]);
        assert_eq!(words[7..], ["-e", "ssh -F \"/a b\" -S /s", "--", "/etc/motd", "n1:'/etc'"]);
        let load = push.load("n1", Some(&ssh), "/var/tmp/x");
        assert_eq!((load[5].as_str(), load.last().unwrap().as_str()), ("--link-dest=/etc", "n1:'/var/tmp/x/files/'"));
        let odd = RsyncRequest { dest: "/a b".into(), ..push.clone() };
        assert!(!odd.load("n1", Some(&ssh), "/x").iter().any(|word| word.starts_with("--link-dest")));
        let two = RsyncRequest { sources: ["/a/motd", "/b/tree"].map(String::from).into(), ..push.clone() };
        assert_eq!(two.from("/t").sources, ["/t/files/motd", "/t/files/tree"]);
        assert!(two.can_be_passed_on() && !RsyncRequest { sources: vec!["/".into()], ..two }.can_be_passed_on());
        let pull = RsyncRequest { sources: vec!["/var/log/".into()], dest: "in".into(), ..RsyncRequest::default() };
        assert_eq!(pull.words("n1", Some(&ssh), &[false])[10..], ["n1:'/var/log/'", "in/log.n1"]);
        let request = RsyncRequest { sources: vec!["/var/log".into()], verify: true, ..pull };
        let words = request.words("::1", Some(&ssh), &[true]);
        assert_eq!(words[12..], ["[::1]:'/var/log/'", "in/log.::1/"]);
        assert!(words.contains(&"--dry-run".to_string()) && words.contains(&"--checksum".to_string()));
        assert_eq!(push.words("localhost", None, &[])[7..], ["--", "/etc/motd", "/etc"]);
    }

    #[test]
    fn a_name_is_one_word_of_a_shell_and_no_option_and_no_host() {
        let ssh: Vec<OsString> = vec!["ssh".into()];
        for (path, far, here) in [
            ("a b", "n1:'./a b'", "./a b"),
            ("-x", "n1:'./-x'", "./-x"),
            ("a:b", "n1:'./a:b'", "./a:b"),
            ("/f[1]*?", "n1:'/f[1]*?'", "/f[1]*?"),
            ("/it's", "n1:'/it'\\''s'", "/it's"),
            ("~/$(id)\n", "n1:'./~/$(id)\n'", "./~/$(id)\n"),
        ] {
            assert_eq!((there("n1", Some(&ssh), path).as_str(), there("localhost", None, path).as_str()), (far, here));
        }
    }

    #[test]
    fn two_sources_of_one_name_are_found() {
        let of = |paths: &[&str]| {
            same_name(&paths.iter().map(|p| p.to_string()).collect::<Vec<_>>()).map(|two| two.map(String::from))
        };
        assert_eq!(of(&["x/a", "x/conf", "y/conf/"]), Some(["x/conf".into(), "y/conf/".into()]));
        assert_eq!(of(&["x/a", "a.b", "A"]), None);
    }
}
