//! Packages for many hosts, of which one fetches each file. A host's own signed index determines its files. The host
//! compares received files with that index before it installs them: it need not trust this machine or the host that
//! fetched them.

pub mod indexes;

use homing_model::text::WordReader;
use homing_steps::APT;
use std::collections::{BTreeMap, BTreeSet};

const SCRIPT: &str = concat!(include_str!("cache.sh"), include_str!("cache/indexes.sh"));

/// A package's file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackageFile {
    /// The name under which apt keeps it.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
    /// Its address.
    pub uri: String,
}

impl PackageFile {
    /// Whether it is on the host already, or in a folder that all hosts have.
    pub fn is_at_hand(&self) -> bool {
        ["file:", "copy:", "cdrom:"].iter().any(|scheme| self.uri.starts_with(scheme))
    }

    /// Reads a line of `apt-get --print-uris` with `Acquire::ForceHash=SHA256`. `None` for a line without that hash,
    /// or with an invalid file name.
    fn read(line: &str) -> Option<PackageFile> {
        let (uri, rest) = line.strip_prefix('\'')?.split_once("' ")?;
        let [name, size, hash] = *rest.split(' ').collect::<Vec<_>>() else { return None };
        let sha256 = hash.strip_prefix("SHA256:")?;
        let is_hash = sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit());
        let is_name = name.ends_with(".deb") && !name.contains('/') && !name.starts_with(['.', '-']);
        (is_hash && is_name).then_some(())?;
        Some(PackageFile { name: name.into(), size: size.parse().ok()?, sha256: sha256.into(), uri: uri.into() })
    }
}

/// Reads a host's output of [`wanted`]; `Err` for a line that names no file, or one without a hash.
pub fn files(output: &str) -> Result<BTreeSet<PackageFile>, String> {
    let one = |line: &str| {
        PackageFile::read(line)
            .ok_or_else(|| format!("its package index has no SHA-256 for {line}, so homing cannot verify that file"))
    };
    output.lines().map(one).collect()
}

/// Returns the files to fetch once for all hosts. Two different files with one name are two builds of one version;
/// the hosts of the second are returned.
pub fn union(wanted: &BTreeMap<String, BTreeSet<PackageFile>>) -> (Vec<PackageFile>, Vec<(String, String)>) {
    let mut all: BTreeMap<&str, &PackageFile> = BTreeMap::new();
    let mut odd = Vec::new();
    for (host, files) in wanted {
        for file in files {
            let first = *all.entry(&file.name).or_insert(file);
            if first.sha256 != file.sha256 {
                odd.push((
                    host.clone(),
                    format!("its package index has a different {} than the index of other hosts", file.name),
                ));
            }
        }
    }
    (all.into_values().cloned().collect(), odd)
}

fn call(function: &str, words: impl IntoIterator<Item = String>) -> String {
    let words: String = words.into_iter().map(|word| format!(" {}", WordReader::Sh.quoted(&word))).collect();
    format!("{APT}{SCRIPT}main() {{\nready\n{function}{words}\n}}\n")
}

/// The purpose of packages on a host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Purpose {
    /// `homing cache install`: no package may be removed for them.
    Install,
    /// Steps, which themselves check for further effects.
    Steps,
}

/// The action of a host that finds a package in none of its indexes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MissingPackageAction {
    /// It prints [`STALE`], and another host may fetch indexes for it.
    Ask,
    /// It fetches indexes.
    FetchIndexes,
    /// It reports that there is none.
    Fail,
}

/// The output of a host whose indexes do not have a package.
pub const STALE: &str = "stale\n";

/// Returns a script that prints the files which a host needs for packages.
pub fn wanted(packages: &[String], purpose: Purpose, unknown: MissingPackageAction) -> String {
    let function = match purpose {
        Purpose::Install => "wanted",
        Purpose::Steps => "needed",
    };
    let mode = match unknown {
        MissingPackageAction::Ask => "ask",
        MissingPackageAction::FetchIndexes => "anew",
        MissingPackageAction::Fail => "keep",
    };
    call(function, [mode.to_string()].into_iter().chain(packages.iter().cloned())) + "main </dev/null\n"
}

/// Returns a script that prints within seconds whether a host can fetch these packages; [`no_way`] reads that.
pub fn way(packages: &[String]) -> String {
    call("way", packages.iter().cloned()) + "main </dev/null\n"
}

/// Returns a script that prints, as [`way`] does, whether a host can fetch from other hosts' mirrors.
pub fn reach(mirrors: &BTreeSet<String>) -> String {
    call("reach", mirrors.iter().cloned()) + "main </dev/null\n"
}

/// The answer of a host that cannot fetch.
#[derive(Clone, Debug, PartialEq)]
pub struct NoWay {
    /// The reason.
    pub why: String,
    /// An index of each of its mirrors.
    pub mirrors: BTreeSet<String>,
}

/// Reads the output of [`way`]; `None` if the host can fetch.
pub fn no_way(output: &str) -> Option<NoWay> {
    let mut lines = output.lines();
    let why = lines.next()?.strip_prefix("none ")?.to_string();
    let mirrors = lines.filter_map(|line| line.strip_prefix("at ")).filter(|uri| indexes::is_index(uri));
    Some(NoWay { why, mirrors: mirrors.map(String::from).collect() })
}

/// Returns a script that fetches files and writes them to its standard output, as tar.
pub fn fetch(files: &[PackageFile]) -> String {
    let words = files.iter().flat_map(|file| [file.uri.clone(), file.name.clone(), file.sha256.clone()]);
    call("fetch", words) + "main </dev/null\n"
}

/// Returns a script for `sh -c` that installs packages from the files on its standard input.
pub fn came(packages: &[String]) -> String {
    call("came", packages.iter().cloned()) + "main\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, hash: &str) -> String {
        format!("'http://mirror/pool/{name}' {name} 1200 SHA256:{}\n", hash.repeat(64))
    }

    #[test]
    fn a_host_without_a_way_has_a_reason() {
        assert_eq!(no_way("way\n"), None);
        let answer = "none http://m: no answer in 10 s\nat http://m/dists/s/InRelease\nat http://m/users\n";
        let no = no_way(answer).unwrap();
        assert_eq!(no.why, "http://m: no answer in 10 s");
        let of_index = BTreeSet::from(["http://m/dists/s/InRelease".to_string()]);
        assert_eq!(no.mirrors, of_index, "another machine requests an index, and nothing else");
        assert!(reach(&of_index).contains("\nreach http://m/dists/s/InRelease\n"));
    }

    #[test]
    fn each_file_is_fetched_once_whoever_wants_it() {
        let of = |text: String| files(&text).unwrap();
        let both = of(line("a_1_all.deb", "a") + &line("b_1%3a2_all.deb", "b"));
        let hosts: BTreeMap<_, _> = [("n1".to_string(), both), ("n2".to_string(), of(line("a_1_all.deb", "a")))].into();
        let (all, odd) = union(&hosts);
        assert_eq!(all.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["a_1_all.deb", "b_1%3a2_all.deb"]);
        assert_eq!((all[0].size, all[0].uri.as_str(), odd), (1200, "http://mirror/pool/a_1_all.deb", vec![]));
        assert!(fetch(&all).contains("\nfetch http://mirror/pool/a_1_all.deb a_1_all.deb aaaa"));
    }

    #[test]
    fn a_file_that_nobody_vouches_for_or_that_leads_elsewhere_is_refused() {
        assert!(files("'http://m/a.deb' a.deb 3 MD5Sum:abc\n").unwrap_err().contains("no SHA-256"));
        assert!(files(&line("../a.deb", "a")).is_err());
        assert!(files(&line("-a.deb", "a")).is_err());
        let of = |hash| files(&line("a.deb", hash)).unwrap();
        let (_, odd) = union(&[("n1".to_string(), of("a")), ("n2".to_string(), of("b"))].into());
        assert_eq!(
            odd,
            [("n2".to_string(), "its package index has a different a.deb than the index of other hosts".to_string())]
        );
        let asked = wanted(&["a b; c".into()], Purpose::Install, MissingPackageAction::Ask);
        assert!(asked.contains("\nwanted ask 'a b; c'\n"), "{asked}");
    }
}
