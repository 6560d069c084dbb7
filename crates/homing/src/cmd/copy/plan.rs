//! Which rsync does the copy: a pure function of the request.

use homing_exec::Way;
use std::collections::HashMap;
use std::ffi::OsString;

/// What is common to all hosts.
#[derive(Clone, Debug, Default)]
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
        let mut words: Vec<String> = ["rsync", "-a", "-s", "--out-format=%i %n%L"].map(String::from).into();
        let mut flag = |on: bool, word: &str| words.extend(on.then(|| word.to_string()));
        flag(self.checksum || self.verify, "--checksum");
        flag(self.dry_run || self.verify, "--dry-run");
        flag(self.delete, "--delete");
        if let Some(way) = way {
            words.extend(["-e".into(), shell_words(way)]);
        }
        words.push("--".into());
        let there = |path: &str| match way {
            None => path.to_string(),
            Some(_) if host.contains(':') => format!("[{host}]:{path}"),
            Some(_) => format!("{host}:{path}"),
        };
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
        assert_eq!(words[4..], ["-e", "ssh -F \"/a b\" -S /s", "--", "/etc/motd", "n1:/etc"]);
        let pull = Request { sources: vec!["/var/log/".into()], dest: "in".into(), ..Request::default() };
        assert_eq!(pull.words("n1", Some(&ssh), &[false])[7..], ["n1:/var/log/", "in/log.n1"]);
        let request = Request { sources: vec!["/var/log".into()], verify: true, ..pull };
        let words = request.words("::1", Some(&ssh), &[true]);
        assert_eq!(words[9..], ["[::1]:/var/log/", "in/log.::1/"]);
        assert!(words.contains(&"--dry-run".to_string()) && words.contains(&"--checksum".to_string()));
        assert_eq!(push.words("localhost", None, &[])[4..], ["--", "/etc/motd", "/etc"]);
    }
}
