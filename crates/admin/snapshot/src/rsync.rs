//! The arguments of rsync and its answers.

use crate::sender::{POLITE_RSYNC, marked};
use homing_model::RawText;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::Path;

/// The status of an rsync that could not write its messages ("errors with program diagnostics"). They go into a file of
/// the bank, so the bank is full.
const UNWRITTEN: i32 = 13;
/// Owner, mode, times, hard links, ACLs, extended attributes, sparse files; owners as numbers.
const ALL: [&str; 2] = ["-aHAXS", "--numeric-ids"];
/// Compares times to the nanosecond. By default rsync compares whole seconds (`--modify-window` of rsync(1)). A file
/// written twice, with the same size, within the second of its copy would then keep its first content for ever.
pub const EXACT: &str = "--modify-window=-1";

/// A folder on a host; `None`: on the host where rsync runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFolder {
    /// The host, by its name for ssh there.
    pub host: Option<String>,
    /// The folder.
    pub path: RawText,
}

impl HostFolder {
    /// Returns rsync's argument, with a slash at the end: the content of the folder, not the folder itself.
    pub fn word(&self) -> OsString {
        let mut word = OsString::new();
        if let Some(host) = &self.host {
            let address = host.rsplit('@').next().is_some_and(|host| host.contains(':'));
            word.push(if address { format!("[{host}]:") } else { format!("{host}:") });
        }
        word.push(self.path.as_os());
        if !self.path.0.ends_with(b"/") {
            word.push("/");
        }
        word
    }
}

/// The settings of a copy into an image.
#[derive(Clone, Debug)]
pub struct Copy<'a> {
    /// The host and folder with the bytes.
    pub from: &'a HostFolder,
    /// The image's tree.
    pub to: &'a Path,
    /// The tree of the image whose files are shared.
    pub reference: Option<&'a Path>,
    /// A file of patterns to leave out, one a line.
    pub exclude_from: &'a Path,
    /// Whether to leave out other file systems below the source.
    pub xdev: bool,
    /// Whether to compare the bytes of existing files, which may be damaged though they look the same.
    pub distrust: bool,
    /// Whether the image's file system keeps times to the nanosecond.
    pub exact: bool,
    /// ssh and its options.
    pub ssh: &'a str,
    /// Options, besides those of every copy.
    pub options: &'a [OsString],
    /// The mark of the rsync on the source's host.
    pub mark: Option<&'a str>,
}

impl Copy<'_> {
    /// Returns rsync's arguments.
    pub fn words(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = ALL.iter().map(OsString::from).collect();
        // rsync prints the excluded names and the statistics; `-s`: no shell reads the names.
        words.extend(
            ["--delete", "--delete-excluded", "--stats", "--no-human-readable", "--debug=FILTER1", "-s"]
                .map(OsString::from),
        );
        if self.distrust {
            words.push("--checksum".into());
        }
        words.push(with("--exclude-from=", self.exclude_from.as_os_str()));
        self.places(words)
    }

    /// Returns the same for a part: the files of a list on the source's host, each ended by a zero byte. Patterns do
    /// not apply to files of a list.
    pub fn part_words(&self, list: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = ALL.iter().map(OsString::from).collect();
        words.extend(["--stats", "--no-human-readable", "-s", "--from0", "--ignore-missing-args"].map(OsString::from));
        let there = if self.from.host.is_some() { "--files-from=:" } else { "--files-from=" };
        words.push(with(there, list.as_os_str()));
        self.places(words)
    }

    fn places(&self, mut words: Vec<OsString>) -> Vec<OsString> {
        words.extend_from_slice(self.options);
        if self.xdev {
            words.push("-x".into());
        }
        if self.exact {
            words.push(EXACT.into());
        }
        if let Some(reference) = self.reference {
            words.push(with("--link-dest=", reference.as_os_str()));
        }
        if self.from.host.is_some() {
            let there = self.mark.map_or(POLITE_RSYNC.into(), |mark| marked(mark, POLITE_RSYNC));
            words.push(format!("--rsync-path={there}").into());
        }
        words.push(with("--rsh=", self.ssh.as_ref()));
        let to = HostFolder { host: None, path: self.to.into() };
        words.extend(["--".into(), self.from.word(), to.word()]);
        words
    }
}

/// Returns a path as a list of [`restore_words`] has it. rsync would take a name that begins with # for a comment.
pub fn listed(path: &RawText) -> Vec<u8> {
    [b"./", &path.0[..], b"\0"].concat()
}

/// The list of the restored entries, each name ended by a zero byte.
#[derive(Clone, Copy, Debug)]
pub enum RestoreList<'a> {
    /// No list: the whole source.
    All,
    /// A file of this host.
    Here(&'a Path),
    /// A file of the destination's host.
    There(&'a Path),
}

/// Returns the arguments of a restore from the current folder. A trial only reports the files that would be written.
pub fn restore_words(names: RestoreList, from: &RawText, to: &HostFolder, ssh: &str, trial: bool) -> Vec<OsString> {
    let mut words: Vec<OsString> = ALL.iter().map(OsString::from).collect();
    words.extend(["-s", EXACT, "--mkpath", "--out-format=%i %n"].map(OsString::from));
    words.push(with("--rsh=", ssh.as_ref()));
    if trial {
        words.push("-n".into());
    }
    let mut source = OsString::from("./");
    match names {
        RestoreList::Here(list) | RestoreList::There(list) => {
            // Files that appeared after the examination are left, too.
            words.extend(["--from0", "--no-implied-dirs", "--no-r", "--ignore-existing"].map(OsString::from));
            let is_there = to.host.is_some() && matches!(names, RestoreList::There(_));
            words.push(with(if is_there { "--files-from=:" } else { "--files-from=" }, list.as_os_str()));
        }
        RestoreList::All if from.0 == b"." => {}
        RestoreList::All => source.push(from.as_os()),
    }
    words.extend(["--".into(), source, to.word()]);
    words
}

fn with(option: &str, value: &std::ffi::OsStr) -> OsString {
    let mut word = OsString::from(option);
    word.push(value);
    word
}

/// Returns a warning about the rsync of `host`, whose version is `line`; `None` if there is nothing to warn of.
pub fn warning(host: &str, line: Option<&str>) -> Option<String> {
    let version = homing_model::rsync::with_races(line?)?;
    let why = "a user who may write to the source can make it read or write other files during the copy; 3.4 is safe";
    Some(format!("rsync {version} on {host}: {why}"))
}

/// The figures of `--stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Entries of the source, folders included.
    pub entries: u64,
    /// Files whose bytes were read on the source's host.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that the two ends sent each other.
    pub sent: u64,
}

impl Stats {
    /// Parses a line of rsync's output; false if it holds no statistic of these.
    pub fn take(&mut self, line: &str) -> bool {
        let number = |rest: &str| rest.split_whitespace().next().and_then(|n| n.replace(',', "").parse().ok());
        let Some((key, rest)) = line.split_once(": ") else { return false };
        let Some(value) = number(rest) else { return false };
        match key {
            "Number of files" => self.entries = value,
            "Number of regular files transferred" => self.files = value,
            "Total transferred file size" => self.bytes = value,
            "Total bytes sent" | "Total bytes received" => self.sent += value,
            _ => return false,
        }
        true
    }
}

/// Returns the path that a line reports as left out by a pattern.
pub fn excluded(line: &str) -> Option<&str> {
    let rest = line.split_once("] hiding ")?.1;
    let (_, rest) = rest.split_once(' ')?;
    rest.rsplit_once(" because of pattern ").map(|(path, _)| path)
}

/// How a copy ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyOutcome {
    /// All files were copied (0), or the missing ones had vanished meanwhile (24).
    Whole,
    /// Some files could not be read (23).
    Incomplete,
    /// The bank had no room.
    Full,
    /// It was broken off, for this reason.
    Failed(String),
}

/// The most lines of a reason: ssh's warning of a changed key is longer, and its last lines matter.
const LAST: usize = 3;

/// Returns how rsync ended, by its status and its error output.
pub fn end(status: Option<i32>, errors: &str) -> CopyOutcome {
    let full = ["No space left on device", "Disk quota exceeded"].iter().any(|words| errors.contains(words))
        || status == Some(UNWRITTEN);
    match status {
        Some(0 | 24) => CopyOutcome::Whole,
        _ if full => CopyOutcome::Full,
        Some(23) => CopyOutcome::Incomplete,
        Some(code) => CopyOutcome::Failed(format!("rsync ended with status {code}: {}", last_words(errors))),
        None => CopyOutcome::Failed(format!("rsync was killed: {}", last_words(errors))),
    }
}

/// Returns the last lines with a reason. If the connection ended, ssh's lines rank before those of rsync, which knows
/// no reason.
fn last_words(errors: &str) -> String {
    let said = || errors.lines().map(str::trim).filter(|line| !line.is_empty());
    let rank = |line: &str| match line {
        line if line.starts_with("rsync error:") => 2,
        line if line.starts_with("rsync") && line.contains("connection unexpectedly closed") => 1,
        _ => 0,
    };
    let Some(best) = said().map(rank).min() else { return "it printed nothing".into() };
    let lines: Vec<&str> = said().filter(|line| rank(line) == best).collect();
    lines[lines.len().saturating_sub(LAST)..].join("; ")
}

/// Decodes a name that rsync printed: a byte that is not printable is `\#` and three octal digits.
pub fn name(printed: &[u8]) -> RawText {
    let mut bytes = Vec::with_capacity(printed.len());
    let mut rest = printed;
    while let Some((first, behind)) = rest.split_first() {
        let code = rest.strip_prefix(b"\\#").and_then(|r| r.get(..3)).and_then(octal);
        match code {
            Some(byte) => (bytes.push(byte), rest = &rest[5..]),
            None => (bytes.push(*first), rest = behind),
        };
    }
    RawText(bytes)
}

fn octal(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    u8::from_str_radix(text, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_are() {
        for (printed, bytes) in [
            (&b"a b"[..], &b"a b"[..]),
            (b"x\\#012y", b"x\ny"),
            (b"\\#377", b"\xff"),
            (b"\\#134#012", b"\\#012"),
            (b"end\\#1", b"end\\#1"),
        ] {
            assert_eq!(name(printed).0, bytes);
        }
    }

    #[test]
    fn a_full_bank_and_what_cannot_be_read_are_told_apart() {
        let denied = "rsync: [sender] send_files failed to open \"/x\": Permission denied (13)\n\
                      rsync error: some files/attrs were not transferred (code 23) at main.c(1338)\n";
        assert_eq!(end(Some(23), denied), CopyOutcome::Incomplete);
        assert_eq!(end(Some(24), "file has vanished: \"/x\"\n"), CopyOutcome::Whole);
        assert_eq!(end(Some(13), "rsync: [generator] write error: Broken pipe (32)\n"), CopyOutcome::Full);
        assert_eq!(end(Some(11), "rsync: write failed on \"/b/x\": No space left on device (28)\n"), CopyOutcome::Full);
        let CopyOutcome::Failed(why) = end(Some(255), "ssh: connect to host n9: No route to host\n") else { panic!() };
        assert!(why.contains("255") && why.contains("No route to host"), "{why}");
        let refused = "ssh: connect to host n9 port 22: Connection refused\r\n\
                       rsync: connection unexpectedly closed (0 bytes received so far) [Receiver]\n\
                       rsync error: unexplained error (code 255) at io.c(232) [Receiver=3.5.0]\n";
        let CopyOutcome::Failed(why) = end(Some(255), refused) else { panic!() };
        assert_eq!(why, "rsync ended with status 255: ssh: connect to host n9 port 22: Connection refused");
        let CopyOutcome::Failed(why) = end(Some(12), &refused[refused.find("rsync:").unwrap()..]) else { panic!() };
        assert!(why.contains("unexpectedly closed"), "{why}");
    }

    #[test]
    fn figures_and_what_was_left_out_are_read() {
        let mut stats = Stats::default();
        let text = "Number of files: 10,102 (reg: 10,001, dir: 101)\nNumber of regular files transferred: 3\n\
                    Total transferred file size: 4096 bytes\nTotal bytes sent: 10\nTotal bytes received: 5\nLiteral data: 9 bytes";
        assert_eq!(text.lines().filter(|line| stats.take(line)).count(), 5);
        assert_eq!(stats, Stats { entries: 10_102, files: 3, bytes: 4096, sent: 15 });
        assert_eq!(excluded("[sender] hiding file a b.o because of pattern *.o"), Some("a b.o"));
        assert_eq!(excluded("[sender] hiding directory tmp because of pattern /tmp"), Some("tmp"));
    }

    #[test]
    fn an_rsync_with_known_races_is_named_with_its_host() {
        let of = |line: &str| warning("n1", Some(line));
        assert!(of("rsync  version 3.2.7  protocol version 31").unwrap().starts_with("rsync 3.2.7 on n1: "));
        assert_eq!((of("rsync  version 3.4.1  protocol version 32"), warning("n1", None)), (None, None));
    }

    #[test]
    fn a_host_by_its_address_stands_in_brackets() {
        let at = |host: &str| HostFolder { host: Some(host.into()), path: "/a b".into() }.word().into_string().unwrap();
        assert_eq!((at("n1").as_str(), at("fe80::1").as_str()), ("n1:/a b/", "[fe80::1]:/a b/"));
    }
}
