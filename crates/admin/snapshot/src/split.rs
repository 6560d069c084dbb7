//! Decides which host reads which files of a volume whose files are whole on the bricks of several hosts. The module
//! is pure.
//!
//! The parts only save time. They are copied first, and then the copy goes over everything, as it does to continue an
//! interrupted one.

use homing_model::RawText;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The bytes from which several hosts read. One host gets them in nine seconds over a link of 1 Gbit/s, which carries
/// 117 MB/s of TCP (IEEE 802.3 frames of 1500 bytes: 949 of 1000 bits). To query the other hosts and examine their
/// files again takes one or two seconds.
pub const PAYS: u64 = 1 << 30;

/// When several hosts read a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum When {
    /// From [`PAYS`] on.
    #[default]
    Large,
    /// At any amount.
    Always,
    /// One host reads all.
    Never,
}

impl When {
    /// Returns whether this many bytes are worth it.
    pub fn pays(self, bytes: u64) -> bool {
        match self {
            When::Large => bytes >= PAYS,
            When::Always => bytes > 0,
            When::Never => false,
        }
    }
}

/// A brick of a host, and its turn among the hosts that have the same files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrickTurn {
    /// The brick's folder.
    pub brick: RawText,
    /// Its number among them, from 0.
    pub nth: u32,
    /// The number of hosts.
    pub of: u32,
}

impl BrickTurn {
    /// Returns whether this host reads a file, given by its path below the source.
    pub fn is_ours(&self, path: &[u8]) -> bool {
        self.of > 0 && hash(path) % u64::from(self.of) == u64::from(self.nth)
    }
}

/// FNV-1a (draft-eastlake-fnv): the same on all hosts.
fn hash(path: &[u8]) -> u64 {
    path.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the bricks that each host reads.
/// `sets`: bricks with the same files, by host and folder. `readers`: hosts that can read.
/// `bank`: the bank's host, if it is one of them: its own files cross no network.
pub fn deal(
    sets: &[Vec<(String, PathBuf)>],
    readers: &[String],
    bank: Option<&str>,
) -> BTreeMap<String, Vec<BrickTurn>> {
    let mut dealt: BTreeMap<String, Vec<BrickTurn>> = BTreeMap::new();
    for set in sets {
        let mut able: Vec<&(String, PathBuf)> = set.iter().filter(|(host, _)| readers.contains(host)).collect();
        able.sort();
        able.dedup_by(|a, b| a.0 == b.0);
        if let Some(own) = able.iter().copied().find(|(host, _)| Some(host.as_str()) == bank) {
            able = vec![own];
        }
        for (nth, (host, brick)) in (0..).zip(&able) {
            let turn = BrickTurn { brick: brick.as_path().into(), nth, of: able.len() as u32 };
            dealt.entry(host.clone()).or_default().push(turn);
        }
    }
    dealt
}

/// A request of the bank's host before it copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deal {
    /// Patterns that are left out, in rsync's words.
    pub exclude: Vec<String>,
    /// Files that have not changed since are in the image whose files are shared.
    pub since: Option<Timestamp>,
}

/// A request to a host to find files on its bricks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Its bricks.
    pub turns: Vec<BrickTurn>,
    /// The source's path below each brick.
    pub below: RawText,
    /// The request of the bank's host.
    pub deal: Deal,
    /// The mark of the rsync that reads there.
    pub mark: String,
}

/// The files that a host has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFiles {
    /// The file with the paths, each ended by a zero byte. It exists for as long as the channel is open.
    pub list: PathBuf,
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A part of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyPart {
    /// The host that reads, by its name for users.
    pub name: String,
    /// Its name for ssh on the bank's host; `None`: the bank's host itself.
    pub host: Option<String>,
    /// The source's path there.
    pub path: RawText,
    /// The list of its files there.
    pub list: PathBuf,
    /// The mark of its rsync.
    pub mark: String,
}

/// The result of a part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartResult {
    /// The host that has read.
    pub host: String,
    /// Files that were read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes over the network; `None`: the bank's host has read.
    pub network: Option<u64>,
    /// Why it did not read all of its part; the last copy has read the rest.
    pub why: Option<String>,
}

/// Returns which hosts may read with this many leases: the first ones that have not ended yet.
pub fn may_read(ended: &[bool], leases: u32) -> Vec<bool> {
    let mut left = leases;
    let mut one = |ended: &bool| !ended && left.checked_sub(1).map(|rest| left = rest).is_some();
    ended.iter().map(&mut one).collect()
}

/// Returns rsync's arguments that list the files on a brick as the copy would take them: one name a line after `=`.
/// Excluded patterns come on standard input. `empty`: an empty folder.
pub fn look_words(folder: &Path, empty: &Path) -> Vec<OsString> {
    // Links, devices and pipes are included: rsync reports skipped entries in another form, without the sign.
    let mut words = ["-rlDn", "-s", "--out-format==%n", "--exclude=/.glusterfs", "--exclude-from=-", "--"]
        .map(OsString::from)
        .to_vec();
    for path in [folder, empty] {
        let mut word = path.as_os_str().to_owned();
        word.push("/");
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sets(sets: &[&[&str]]) -> Vec<Vec<(String, PathBuf)>> {
        let brick = |host: &&str| (host.to_string(), PathBuf::from(format!("/b/{host}")));
        sets.iter().map(|set| set.iter().map(brick).collect()).collect()
    }

    fn hosts(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn each_file_of_a_set_is_read_by_exactly_one_of_its_hosts() {
        let all = hosts(&["n1", "n2", "n3", "n4", "n5"]);
        let dealt = deal(&sets(&[&["n1", "n2", "n3"], &["n4", "n5"]]), &all, None);
        assert_eq!(dealt.len(), 5);
        for set in [["n1", "n2", "n3"].as_slice(), &["n4", "n5"]] {
            let mut counts = vec![0_usize; set.len()];
            for i in 0..3000 {
                let path = format!("home/ann/f{i}");
                let ours: Vec<bool> = set.iter().map(|host| dealt[*host][0].is_ours(path.as_bytes())).collect();
                assert_eq!(ours.iter().filter(|ours| **ours).count(), 1, "{path}");
                counts[ours.iter().position(|ours| *ours).unwrap()] += 1;
            }
            let fair = 3000 / set.len();
            assert!(counts.iter().all(|count| count.abs_diff(fair) < fair / 10), "{counts:?}");
        }
    }

    #[test]
    fn the_banks_own_files_cross_no_network_and_who_cannot_read_has_no_part() {
        let two = sets(&[&["n1", "n2"], &["n3", "n4"]]);
        let dealt = deal(&two, &hosts(&["n1", "n2", "n3", "n4"]), Some("n2"));
        assert_eq!(dealt.keys().collect::<Vec<_>>(), ["n2", "n3", "n4"]);
        assert_eq!(dealt["n2"], [BrickTurn { brick: "/b/n2".into(), nth: 0, of: 1 }]);
        let dealt = deal(&two, &hosts(&["n1", "n2", "n4"]), None);
        assert_eq!(dealt["n4"], [BrickTurn { brick: "/b/n4".into(), nth: 0, of: 1 }]);
        assert!(!dealt.contains_key("n3"));
        // Two bricks of one set on one host, which GlusterFS accepts with `force`, and bricks of two sets.
        let dealt = deal(&sets(&[&["n1", "n1"], &["n1", "n2"]]), &hosts(&["n1", "n2"]), None);
        assert_eq!(dealt["n1"].iter().map(|turn| turn.of).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn several_hosts_read_what_is_large() {
        assert!(When::Large.pays(PAYS) && !When::Large.pays(PAYS - 1));
        assert!(When::Always.pays(1) && !When::Always.pays(0) && !When::Never.pays(u64::MAX));
    }

    #[test]
    fn leases_go_to_the_first_that_still_read() {
        assert_eq!(may_read(&[false, false, false], 2), [true, true, false]);
        assert_eq!(may_read(&[true, false, false], 2), [false, true, true]);
        assert_eq!(may_read(&[false, false], 0), [false, false]);
        assert!(may_read(&[], 3).is_empty());
    }
}
