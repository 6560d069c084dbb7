//! The arguments of restic and its answers.

use crate::image::{BRANCH, Image};
use crate::instant;
use crate::repository::{Make, Repository};
use homing_model::RawText;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Deserialize;
use std::ffi::OsString;

/// The tag of images that homing makes; homing leaves other snapshots of the repository alone.
const OURS: &str = "homing";
/// The tag of an image that is not known to be complete.
const UNFINISHED: &str = "unfinished";

/// Returns the first arguments of every call.
pub fn head(repository: &Repository) -> Vec<OsString> {
    let Repository { host, folder, password_file, ssh } = repository;
    let mut place = OsString::from(host.as_ref().map_or(String::new(), |host| format!("sftp:{host}:")));
    place.push(folder);
    let mut words: Vec<OsString> = vec!["-r".into(), place, "--password-file".into(), password_file.into()];
    if let Some(host) = host {
        let ssh = ssh.as_deref().unwrap_or(crate::plan::SSH);
        words.extend(["-o".into(), format!("sftp.command={ssh} {host} -s sftp").into()]);
    }
    words
}

/// Returns the arguments for a new image, which is marked unfinished at first. `parent`: the image whose files are
/// not read again.
pub fn backup(order: &Make, host: &str, tags: &[String], parent: Option<&str>) -> Vec<OsString> {
    let mut words: Vec<OsString> = ["backup", "--json", "--host", host].map(OsString::from).into();
    words.extend(["--tag".into(), [&[UNFINISHED.to_string()], tags].concat().join(",").into()]);
    if order.xdev {
        words.push("--one-file-system".into());
    }
    let read = order.instant.as_ref().unwrap_or(&order.source);
    let ours = instant::own_patterns();
    let patterns = order.exclude.iter().chain(&ours).map(|pattern| exclude(read, pattern));
    words.extend(patterns.map(|pattern| with("--exclude=", &pattern)));
    words.extend(parent.map(|id| format!("--parent={id}").into()));
    if order.instant.is_some() {
        // A copy has inodes of its own.
        words.extend(["--ignore-inode", "--ignore-ctime"].map(OsString::from));
    }
    // The content of the folder, not its path: the next image may be read elsewhere.
    words.push(".".into());
    words
}

/// Converts a pattern of rsync to restic's form: with a slash in front it begins at the source.
fn exclude(source: &RawText, pattern: &str) -> RawText {
    let pattern = pattern.strip_suffix('/').unwrap_or(pattern);
    match pattern.strip_prefix('/') {
        Some(below) => RawText([&plain(&source.0)[..], b"/", below.as_bytes()].concat()),
        None => pattern.into(),
    }
}

/// Escapes a path to a pattern that matches it alone.
pub fn plain(path: &[u8]) -> Vec<u8> {
    let special = |byte: &u8| b"*?[]\\".contains(byte);
    path.iter().flat_map(|byte| special(byte).then_some(b'\\').into_iter().chain([*byte])).collect()
}

/// Returns an option with a value of any bytes.
pub fn with(option: &str, value: &RawText) -> OsString {
    let mut word = OsString::from(option);
    word.push(value.as_os());
    word
}

/// A snapshot of the output of `snapshots --json`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Snapshot {
    /// When it was begun.
    pub time: Timestamp,
    /// Its name in the repository, which changes with its tags.
    pub id: String,
    #[serde(default)]
    tags: Vec<String>,
}

impl Snapshot {
    /// Returns it as an image of a vault; `None`: it is not one of homing's.
    pub fn image(&self, zone: &TimeZone) -> Option<Image> {
        let has = |tag: &str| self.tags.iter().any(|other| other == tag);
        let value = |key: &str| self.tags.iter().find_map(|tag| tag.strip_prefix(key)?.strip_prefix('='));
        let number = |key: &str| value(key).and_then(|text| text.parse().ok());
        has(OURS).then(|| Image {
            name: self.time.to_zoned(zone.clone()).strftime("%Y%m%d%H%M%S").to_string(),
            branch: BRANCH.into(),
            created: Some(self.time),
            completed: Some(self.time),
            expires: value("expires").and_then(|text| text.parse().ok()),
            status: if has(UNFINISHED) { "incomplete, or some files could not be read" } else { "success" }.into(),
            has_tree: true,
            // Images of older versions are older, and have only their dates.
            sequence: Some(number("sequence").unwrap_or(0)),
            reference: None,
            older: Vec::new(),
            manifest: None,
            files: number("files"),
            bytes: number("bytes"),
            own_bytes: number("own"),
        })
    }
}

/// Returns the tags of an image; with `summary` those of a complete one.
pub fn tags(sequence: u64, expires: Option<Timestamp>, summary: Option<&Summary>) -> Vec<String> {
    let counted = |s: &Summary| [("files", s.entries()), ("bytes", s.total_bytes_processed), ("own", s.data_added)];
    let counted = summary.map(counted).into_iter().flatten().map(|(key, value)| format!("{key}={value}"));
    let sequence = format!("sequence={sequence}");
    let head = [Some(OURS.to_string()), Some(sequence), expires.map(|at| format!("expires={at}"))];
    head.into_iter().flatten().chain(counted).collect()
}

/// The figures of `backup --json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Summary {
    /// The new snapshot.
    pub snapshot_id: String,
    /// New files that were read.
    #[serde(default)]
    pub files_new: u64,
    /// Changed files that were read again.
    #[serde(default)]
    pub files_changed: u64,
    #[serde(default)]
    dirs_new: u64,
    #[serde(default)]
    dirs_changed: u64,
    #[serde(default)]
    dirs_unmodified: u64,
    #[serde(default)]
    total_files_processed: u64,
    /// Bytes of all files.
    #[serde(default)]
    pub total_bytes_processed: u64,
    /// Bytes new in the repository, before they are compressed.
    #[serde(default)]
    pub data_added: u64,
}

impl Summary {
    /// Returns the number of files, links and folders.
    pub fn entries(&self) -> u64 {
        self.total_files_processed + self.dirs_new + self.dirs_changed + self.dirs_unmodified
    }
}

/// A file in an image, of the output of `ls --json`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ResticNode {
    /// Its path below the source, with a slash in front.
    pub path: String,
    /// `file`, `dir`, `symlink` and others.
    #[serde(rename = "type")]
    pub kind: String,
    /// Bytes of a file.
    #[serde(default)]
    pub size: u64,
    /// The time of its last change.
    pub mtime: Timestamp,
}

/// Parses an error of `backup --json`: the file, and why it was not read.
pub fn unread(line: &str) -> Option<(String, String)> {
    let told: serde_json::Value = serde_json::from_str(line).ok().filter(|_| line.contains("\"error\""))?;
    let why = ["/error/message", "/error/Err", "/error/Op"].iter().find_map(|at| told.pointer(at));
    let why = why.map_or_else(String::new, |why| why.as_str().map_or_else(|| why.to_string(), String::from));
    Some((told.get("item")?.as_str()?.to_string(), why))
}

/// Parses a difference of `diff`: the kind of change, and the path below the source.
pub fn difference(line: &str) -> Option<(char, &str)> {
    let (what, path) = line.split_once(' ')?;
    let path = path.trim_start().strip_prefix('/')?;
    let first = what.chars().next().filter(|c| "+-MTU".contains(*c))?;
    Some((first, path.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_with_a_slash_in_front_begin_at_the_source() {
        let told = |pattern: &str| exclude(&"/data/a[b]".into(), pattern).display();
        assert_eq!(told("/tmp/"), "/data/a\\[b\\]/tmp");
        assert_eq!(told("*.o"), "*.o");
    }

    #[test]
    fn images_are_those_of_homing_and_good_when_they_were_finished() {
        let text = r#"[{"time":"2026-11-24T22:29:08.66Z","id":"a6","tags":["homing","expires=2027-01-01T00:00:00Z","files=3"]},
                       {"time":"2026-11-24T23:29:08Z","id":"a7","tags":["unfinished","homing"]},
                       {"time":"2026-11-24T23:29:09Z","id":"a8"}]"#;
        let all: Vec<Snapshot> = serde_json::from_str(text).unwrap();
        let images: Vec<Image> = all.iter().filter_map(|one| one.image(&TimeZone::UTC)).collect();
        assert_eq!(
            images.iter().map(|i| (i.name.as_str(), i.is_good(), i.files)).collect::<Vec<_>>(),
            [("20261124222908", true, Some(3)), ("20261124232908", false, None)]
        );
        assert_eq!(images[0].expires, Some("2027-01-01T00:00:00Z".parse().unwrap()));
    }

    #[test]
    fn what_restic_says_is_read() {
        let line =
            r#"{"message_type":"error","error":{"Op":"open","Path":"x","Err":13},"during":"archival","item":"/s/x"}"#;
        assert_eq!(unread(line).unwrap().0, "/s/x");
        assert_eq!(unread("{\"message_type\":\"status\"}"), None);
        assert_eq!(difference("M    /d/b"), Some(('M', "d/b")));
        assert_eq!(difference("+    /d/"), Some(('+', "d")));
        assert_eq!(difference("Files:           1 new"), None);
        assert_eq!(String::from_utf8(plain(b"/a*[x]")).unwrap(), "/a\\*\\[x\\]");
    }
}
