//! The way an NFS server exports a volume: how users are mapped, and who may mount besides the volume's clients.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// The users of clients that the server treats as the anonymous user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Squash {
    /// Root alone: root of a client has no rights of root on the server.
    #[default]
    Root,
    /// All users.
    All,
    /// None: root of each client is root on these files.
    None,
}

/// `[up.volume.NAME] export = { ... }`, and the words of `--export-option`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportOptions {
    /// Users that become the anonymous user.
    #[serde(default)]
    pub squash: Squash,
    /// Number of the anonymous user (default: 65534, nobody).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anonuid: Option<u32>,
    /// Number of its group (default: 65534).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anongid: Option<u32>,
    /// Machines that may mount it besides the clients of the volume: names, addresses, networks.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub clients: BTreeSet<String>,
    /// Ways of proof of users, the best first: sys, krb5, krb5i, krb5p (default: sys).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sec: Option<String>,
}

const WAYS: [&str; 4] = ["sys", "krb5", "krb5i", "krb5p"];
/// The server's number of the anonymous user and group, as exports(5) has it.
const NOBODY: u32 = 65534;

impl ExportOptions {
    /// Whether all of it is homing's default.
    pub fn is_default(&self) -> bool {
        *self == ExportOptions::default()
    }

    /// Reads words of exports(5), and `client=ADDRESS`. The error names a word and its replacement.
    pub fn parse(words: &[String]) -> Result<ExportOptions, String> {
        let mut options = ExportOptions::default();
        for word in words.iter().flat_map(|word| word.split(',')) {
            options.add(word.trim())?;
        }
        options.fault().map_or(Ok(options), Err)
    }

    fn add(&mut self, word: &str) -> Result<(), String> {
        let number = |value: &str| {
            value.parse::<u32>().map_err(|_| format!("--export-option {word}: {value:?} is not the number of a user"))
        };
        match word.split_once('=').unwrap_or((word, "")) {
            ("root_squash", "") => self.squash = Squash::Root,
            ("no_root_squash", "") => self.squash = Squash::None,
            ("all_squash", "") => self.squash = Squash::All,
            ("anonuid", value) => self.anonuid = Some(number(value)?),
            ("anongid", value) => self.anongid = Some(number(value)?),
            ("sec", value) => self.sec = Some(value.into()),
            ("client", value) => drop(self.clients.insert(value.into())),
            _ => return Err(refused(word)),
        }
        Ok(())
    }

    /// Returns the reason why no server could have this export.
    pub fn fault(&self) -> Option<String> {
        let ways = self.sec.iter().flat_map(|sec| sec.split(':'));
        let way = ways
            .into_iter()
            .find(|way| !WAYS.contains(way))
            .map(|way| format!("sec: {way:?} is not one of {}; several are separated by colons", WAYS.join(", ")));
        let client = self
            .clients
            .iter()
            .find(|client| !is_client(client))
            .map(|client| format!("clients: {client:?} is no name, address or network, such as 10.1.0.0/24"));
        let anonymous = self.squash == Squash::None && (self.anonuid.is_some() || self.anongid.is_some());
        let anonymous = anonymous.then(|| "anonuid and anongid have no effect without squashed users".to_string());
        way.or(client).or(anonymous)
    }

    /// Returns the words in the brackets of a line of exports(5).
    pub fn words(&self) -> String {
        let sec = self.sec.as_deref().unwrap_or("sys");
        let mut words = format!("rw,no_subtree_check,sec={sec}");
        match self.squash {
            Squash::Root => {}
            Squash::All => words += ",all_squash",
            Squash::None => words += ",no_root_squash",
        }
        let numbers = [("anonuid", self.anonuid), ("anongid", self.anongid)];
        numbers.iter().filter_map(|(key, number)| Some((key, (*number)?))).for_each(|(key, number)| {
            words += &format!(",{key}={number}");
        });
        words
    }

    /// Returns the risks of these options, for the plan.
    pub fn risks(&self) -> Vec<String> {
        let mut risks = Vec::new();
        if self.squash == Squash::None {
            risks.push(
                "no_root_squash: root of each client reads, changes and deletes all files of the volume. It can leave \
                 programs there that run as root (setuid) on the server and on all clients. Use it where the same \
                 people are root everywhere"
                    .into(),
            );
        }
        if self.squash == Squash::All {
            risks.push("all_squash: all users share one number, so each may change the files of all others".into());
        }
        if self.clients.iter().any(|client| client == "*") {
            risks.push("client *: every machine that reaches the server may mount the volume".into());
        }
        if self.sec.as_ref().is_some_and(|sec| sec.split(':').any(|way| way.starts_with("krb5"))) {
            risks.push("sec=krb5: server and clients need a Kerberos keytab each; homing sets up none".into());
        }
        risks
    }
}

impl fmt::Display for ExportOptions {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.words())?;
        self.clients.iter().try_for_each(|client| write!(f, ",client={client}"))
    }
}

/// Explains why a word is not accepted.
fn refused(word: &str) -> String {
    let why = match word.split('=').next().unwrap_or(word) {
        "async" => "the server would confirm writes that a power cut destroys",
        "ro" => "a volume is written; use [up.mount] with the option ro on clients that may only read",
        "rw" | "sync" | "no_subtree_check" => "each export has it already",
        "fsid" | "crossmnt" | "nohide" => "each volume has an export of its own; write others to /etc/exports",
        _ => "use root_squash, no_root_squash, all_squash, anonuid=, anongid=, sec= or client=",
    };
    format!("--export-option {word:?} is not accepted: {why}")
}

/// Whether a text is a client in a line of exports(5), whose readers know no quoting.
fn is_client(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.:/@*?".contains(&b);
    !text.is_empty() && !text.starts_with('-') && text.bytes().all(plain)
}

/// A client in a line of an exports table, with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportedTo {
    /// The client, as the server writes it.
    pub client: String,
    words: BTreeSet<String>,
}

impl ExportedTo {
    /// Reads the lines of one folder in `exportfs -s`, or in a file of exports(5): `FOLDER CLIENT(WORDS) ...`.
    pub fn read(text: &str, folder: &str) -> Vec<ExportedTo> {
        let lines = text.lines().filter_map(|line| {
            let (path, clients) = line.trim().split_once(char::is_whitespace)?;
            (path == folder).then_some(clients)
        });
        let client = |text: &str| {
            let (client, words) = text.trim_end_matches(')').split_once('(')?;
            Some(ExportedTo { client: client.into(), words: words.split(',').map(String::from).collect() })
        };
        lines.flat_map(|clients| clients.split_whitespace().filter_map(client).collect::<Vec<_>>()).collect()
    }

    /// Returns these options as a record has them.
    pub fn options(&self) -> ExportOptions {
        let has = |word: &str| self.words.contains(word);
        let value = |key: &str| self.words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let number = |key: &str| value(key)?.parse().ok().filter(|number| *number != NOBODY);
        let squash = match () {
            () if has("all_squash") => Squash::All,
            () if has("no_root_squash") => Squash::None,
            () => Squash::Root,
        };
        let sec = value("sec").filter(|sec| *sec != "sys").map(String::from);
        ExportOptions { squash, anonuid: number("anonuid"), anongid: number("anongid"), clients: BTreeSet::new(), sec }
    }

    /// Whether clients may only read.
    fn is_read_only(&self) -> bool {
        self.words.contains("ro")
    }

    /// Whether the server maps users as these options want it.
    pub fn fits(&self, wanted: &ExportOptions) -> bool {
        let mut wanted = ExportOptions { clients: BTreeSet::new(), ..wanted.clone() };
        let numbers = [&mut wanted.anonuid, &mut wanted.anongid];
        numbers.into_iter().for_each(|number| *number = number.filter(|number| *number != NOBODY));
        wanted.sec = wanted.sec.filter(|sec| sec != "sys");
        self.options() == wanted && !self.is_read_only()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<ExportOptions, String> {
        ExportOptions::parse(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_read_and_written_or_refused_with_a_reason() {
        assert_eq!(ExportOptions::default().words(), "rw,no_subtree_check,sec=sys");
        let all = parse(&["all_squash,anonuid=2001", "anongid=3000", "sec=krb5p:sys", "client=10.1.0.0/24"]).unwrap();
        assert_eq!(all.words(), "rw,no_subtree_check,sec=krb5p:sys,all_squash,anonuid=2001,anongid=3000");
        assert_eq!(all.clients, ["10.1.0.0/24".to_string()].into());
        assert_eq!(parse(&["no_root_squash"]).unwrap().squash, Squash::None);
        for (word, why) in [
            ("async", "power cut"),
            ("squash", "use root_squash"),
            ("anonuid=bob", "is not the number"),
            ("sec=krb4", "\"krb4\" is not one of"),
            ("client=a b(rw)", "is no name"),
            ("client=a\n/etc b", "is no name"),
            ("anonuid=-1", "is not the number"),
            ("fsid=0", "an export of its own"),
        ] {
            let refused = parse(&[word]).unwrap_err();
            assert!(refused.contains(why), "{word}: {refused}");
        }
        assert!(parse(&["no_root_squash", "anonuid=7"]).unwrap_err().contains("have no effect"));
    }

    /// Lines as nfs-utils 2.6 prints them.
    const IN_FORCE: &str = "/srv/home  n2(sync,wdelay,hide,no_subtree_check,sec=sys,rw,secure,root_squash,no_all_squash)\n\
        /srv/home  10.1.0.0/24(sync,wdelay,hide,no_subtree_check,anonuid=2001,anongid=65534,sec=sys,rw,secure,root_squash,all_squash)\n\
        /srv/home2  n2(ro,no_root_squash)\n";

    #[test]
    fn the_table_in_force_is_compared_with_the_record() {
        let there = ExportedTo::read(IN_FORCE, "/srv/home");
        assert_eq!(there.iter().map(|one| one.client.as_str()).collect::<Vec<_>>(), ["n2", "10.1.0.0/24"]);
        let squashed = parse(&["all_squash", "anonuid=2001", "anongid=65534", "sec=sys"]).unwrap();
        assert!(there[0].fits(&ExportOptions::default()) && !there[0].fits(&squashed));
        assert!(there[1].fits(&squashed) && !there[1].fits(&ExportOptions::default()));
        let other = &ExportedTo::read(IN_FORCE, "/srv/home2")[0];
        assert!(!other.fits(&parse(&["no_root_squash"]).unwrap()), "clients can only read it");
    }
}
