//! Indexes of packages, for hosts that have no way out. apt on each host compares them with the signature that it trusts:
//! neither the host that fetched them nor this machine has to be trusted.

use super::call;
use std::collections::BTreeMap;

/// What apt asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Index {
    /// The SHA-256 of its address, in hexadecimal.
    pub name: String,
    /// Where it is fetched.
    pub uri: String,
}

/// How a file of an index is called. A host that fetches has networks that others do not have, and does not ask there for
/// anything else on their behalf.
const NAMES: [&str; 10] = [
    "InRelease",
    "Release",
    "Packages",
    "Sources",
    "Translation-",
    "Components-",
    "Contents-",
    "Commands-",
    "icons-",
    "Index",
];

/// How apt calls what is packed.
const PACKED: [&str; 6] = ["zst", "lz4", "xz", "bz2", "lzma", "gz"];

impl Index {
    /// `None`: it is none.
    fn read(line: &str) -> Option<Index> {
        let (name, uri) = line.split_once(' ')?;
        let is_hex = |text: &str, digits: &[usize]| {
            digits.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
        };
        let is_web = ["http://", "https://"].iter().any(|scheme| uri.starts_with(scheme));
        let is_plain = uri.bytes().all(|b| b.is_ascii_graphic() && !b"?#'\\".contains(&b));
        let (folder, file) = uri.rsplit_once('/')?;
        let by_hash = is_hex(file, &[32, 64, 128]) && folder.rsplit('/').nth(1) == Some("by-hash");
        let is_index = by_hash || NAMES.iter().any(|name| file.starts_with(name)) || is_language(file);
        (is_hex(name, &[64]) && is_web && is_plain && is_index).then(|| Index { name: name.into(), uri: uri.into() })
    }
}

/// A source without a list of its files is asked for descriptions by the name of a language alone: `en.xz`, `pt_BR`.
fn is_language(file: &str) -> bool {
    let (language, packed) = file.split_once('.').map_or((file, None), |(language, packed)| (language, Some(packed)));
    let (tongue, country) = language.split_once('_').unwrap_or((language, "XX"));
    let is_of = |text: &str, lengths: &[usize], is: fn(&u8) -> bool| {
        lengths.contains(&text.len()) && text.as_bytes().iter().all(is)
    };
    is_of(tongue, &[2, 3], u8::is_ascii_lowercase)
        && is_of(country, &[2], u8::is_ascii_uppercase)
        && packed.is_none_or(|packed| PACKED.contains(&packed))
}

/// What a host says.
#[derive(Debug, Default, PartialEq)]
pub struct Said {
    /// In the order in which apt asks.
    pub lacks: Vec<Index>,
    /// apt's own words, where nothing lacks.
    pub words: Vec<String>,
}

/// `Err`: a line that names no index.
pub fn said(text: &str) -> Result<Said, String> {
    let mut said = Said::default();
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("said", words)) => said.words.push(words.into()),
            Some(("lacks", index)) => {
                let index = Index::read(index).ok_or_else(|| format!("it asks for {index:?}, which is no index"))?;
                said.lacks.push(index);
            }
            _ => return Err(format!("it says {line:?} of its indexes")),
        }
    }
    Ok(said)
}

/// Each once, in the order of the hosts, then of apt.
pub fn union<'a>(lacks: impl Iterator<Item = &'a Index>) -> Vec<Index> {
    let (mut seen, mut all) = (BTreeMap::new(), Vec::new());
    for index in lacks {
        if seen.insert(index, ()).is_none() {
            all.push(index.clone());
        }
    }
    all
}

/// When a host is asked.
#[derive(Clone, Copy, PartialEq)]
pub enum Turn {
    /// Nothing has come.
    Anew,
    /// Something has come.
    More,
    /// Nothing more will come.
    Last,
}

/// A script that has apt take the indexes that have come, and tells what lacks.
pub fn asked(turn: Turn) -> String {
    let word = match turn {
        Turn::Anew => "anew",
        Turn::More => "more",
        Turn::Last => "last",
    };
    call("indexes", [word.to_string()]) + "main </dev/null\n"
}

/// A script that fetches indexes and writes them to its standard output, as tar. Beside what cannot be had lies an empty
/// file with this ending.
pub fn fetch(indexes: &[Index]) -> String {
    call("fetch_indexes", indexes.iter().flat_map(|index| [index.name.clone(), index.uri.clone()]))
        + "main </dev/null\n"
}

/// Of a file that could not be had.
pub const NONE: &str = ".none";

/// A script, for `sh -c`, that takes files on its standard input.
pub fn came() -> String {
    call("indexes_came", []) + "main\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(uri: &str) -> String {
        format!("lacks {} {uri}\n", "a".repeat(64))
    }

    #[test]
    fn what_is_no_index_is_not_asked_for() {
        let by_hash = format!("http://m/debian/dists/s/main/binary-amd64/by-hash/SHA256/{}", "0".repeat(64));
        for uri in [
            "https://m/dists/s/InRelease",
            "http://m/./Packages.xz",
            "http://m/i18n/Translation-en.xz",
            "http://m/./en.xz",
            "http://m/./pt_BR",
            &by_hash,
        ] {
            assert_eq!(said(&line(uri)).unwrap().lacks[0].uri, uri);
        }
        let beside = format!("http://m/by-hash-{}", "0".repeat(64));
        for uri in [
            "file:/etc/shadow",
            "http://169.254.169.254/latest/meta-data/",
            "http://m/a?x=InRelease",
            "http://m/en.php",
            "http://m/users",
            &beside,
        ] {
            assert!(said(&line(uri)).unwrap_err().contains("which is no index"), "{uri}");
        }
        assert!(said("lacks ../x http://m/InRelease\n").is_err() && said("other\n").is_err());
    }

    #[test]
    fn an_index_is_fetched_once_and_apts_words_are_kept() {
        let one = said(&(line("http://m/s/InRelease") + &line("http://m/t/InRelease"))).unwrap().lacks;
        assert_eq!(union(one.iter().chain(&one)), one);
        assert!(fetch(&one[..1]).contains(&format!("\nfetch_indexes {} http://m/s/InRelease\n", "a".repeat(64))));
        assert_eq!(said("said the repository is not signed\n").unwrap().words, ["the repository is not signed"]);
    }
}
