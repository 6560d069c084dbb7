//! Indexes of packages, for hosts without internet access. apt on each host compares them with the signature that it
//! trusts: it need not trust this machine or the host that fetched them.

use super::call;
use std::collections::BTreeMap;

/// An index that apt requests.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Index {
    /// The SHA-256 of its address, in hexadecimal.
    pub name: String,
    /// Its address.
    pub uri: String,
}

/// The beginnings of index file names. A host that fetches may have networks that other hosts do not have: it
/// requests nothing else on their behalf.
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

/// The extensions of compressed indexes.
const PACKED: [&str; 6] = ["zst", "lz4", "xz", "bz2", "lzma", "gz"];

impl Index {
    /// Reads a line; `None` if it is no index.
    fn read(line: &str) -> Option<Index> {
        let (name, uri) = line.split_once(' ')?;
        (is_hex(name, &[64]) && is_index(uri)).then(|| Index { name: name.into(), uri: uri.into() })
    }
}

fn is_hex(text: &str, digits: &[usize]) -> bool {
    digits.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
}

/// Whether an address is that of an index on the web.
pub(super) fn is_index(uri: &str) -> bool {
    let is_web = ["http://", "https://"].iter().any(|scheme| uri.starts_with(scheme));
    let is_plain = uri.bytes().all(|b| b.is_ascii_graphic() && !b"?#'\\".contains(&b));
    let Some((folder, file)) = uri.rsplit_once('/') else { return false };
    let by_hash = is_hex(file, &[32, 64, 128]) && folder.rsplit('/').nth(1) == Some("by-hash");
    is_web && is_plain && (by_hash || NAMES.iter().any(|name| file.starts_with(name)) || is_language(file))
}

/// Whether a file name is a language alone: `en.xz`, `pt_BR`. apt requests such names for descriptions from a source
/// without a list of its files.
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

/// The answer of a host.
#[derive(Debug, Default, PartialEq)]
pub struct IndexReport {
    /// Missing indexes, in the order in which apt requests them.
    pub lacks: Vec<Index>,
    /// apt's own messages, if nothing is missing.
    pub words: Vec<String>,
}

/// Reads an answer; `Err` for a line that names no index.
pub fn parse_report(text: &str) -> Result<IndexReport, String> {
    let mut said = IndexReport::default();
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("said", words)) => said.words.push(words.into()),
            Some(("lacks", index)) => {
                let index =
                    Index::read(index).ok_or_else(|| format!("its apt requests {index:?}, which is not an index"))?;
                said.lacks.push(index);
            }
            _ => return Err(format!("its report on indexes has the line {line:?}, which homing cannot read")),
        }
    }
    Ok(said)
}

/// Returns each index once, in the order of the hosts, then of apt.
pub fn union<'a>(lacks: impl Iterator<Item = &'a Index>) -> Vec<Index> {
    let (mut seen, mut all) = (BTreeMap::new(), Vec::new());
    for index in lacks {
        if seen.insert(index, ()).is_none() {
            all.push(index.clone());
        }
    }
    all
}

/// The stage at which a host is queried.
#[derive(Clone, Copy, PartialEq)]
pub enum QueryStage {
    /// Nothing has arrived.
    Anew,
    /// Something has arrived.
    More,
    /// Nothing more will arrive.
    Last,
}

/// Returns a script in which apt takes the indexes that have arrived, and that prints the missing ones.
pub fn update_script(turn: QueryStage) -> String {
    let word = match turn {
        QueryStage::Anew => "anew",
        QueryStage::More => "more",
        QueryStage::Last => "last",
    };
    call("indexes", [word.to_string()]) + "main </dev/null\n"
}

/// Returns a script that fetches indexes and writes them to its standard output, as tar. An index that cannot be
/// fetched has an empty file with the ending [`NONE`].
pub fn fetch(indexes: &[Index]) -> String {
    call("fetch_indexes", indexes.iter().flat_map(|index| [index.name.clone(), index.uri.clone()]))
        + "main </dev/null\n"
}

/// The ending of a file that could not be fetched.
pub const NONE: &str = ".none";

/// Returns a script for `sh -c` that takes files from its standard input.
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
            assert_eq!(parse_report(&line(uri)).unwrap().lacks[0].uri, uri);
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
            assert!(parse_report(&line(uri)).unwrap_err().contains("which is not an index"), "{uri}");
        }
        assert!(parse_report("lacks ../x http://m/InRelease\n").is_err() && parse_report("other\n").is_err());
    }

    #[test]
    fn an_index_is_fetched_once_and_apts_words_are_kept() {
        let one = parse_report(&(line("http://m/s/InRelease") + &line("http://m/t/InRelease"))).unwrap().lacks;
        assert_eq!(union(one.iter().chain(&one)), one);
        assert!(fetch(&one[..1]).contains(&format!("\nfetch_indexes {} http://m/s/InRelease\n", "a".repeat(64))));
        assert_eq!(
            parse_report("said the repository is not signed\n").unwrap().words,
            ["the repository is not signed"]
        );
    }
}
