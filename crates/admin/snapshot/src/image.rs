//! An image of a vault, as its summary describes it.

use crate::conf::Conf;
use crate::expiry::{Expiry, moment, written};
use homing_model::text::shown;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

/// The branch of a vault without other branches, by dirvish's name.
pub const BRANCH: &str = "default";
/// The ending of the name of an incomplete image.
pub const PARTIAL: &str = ".partial";
/// The ending of the name of an image that is being removed.
pub const EXPIRED: &str = ".expired";

/// The choice of an image of a vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// The newest good one.
    Newest,
    /// The newest good one of this moment or before.
    Until(Timestamp),
    /// The one of this name, good or not.
    Named(String),
}

/// One state of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Its folder in the vault.
    pub name: String,
    /// The series that it belongs to.
    pub branch: String,
    /// The start of its copy, the moment whose state it represents; dirvish's older summaries have only the end.
    pub created: Option<Timestamp>,
    /// The end of its copy.
    pub completed: Option<Timestamp>,
    /// The moment of its expiry; `None`: never.
    pub expires: Option<Timestamp>,
    /// Its number, which no clock decides: later images have greater ones.
    /// `None`: dirvish or an older version made it.
    #[serde(default)]
    pub sequence: Option<u64>,
    /// The image whose files it shares.
    #[serde(default)]
    pub reference: Option<String>,
    /// The images without a number that were there before it, in their order.
    #[serde(skip)]
    pub older: Vec<String>,
    /// SHA-256 of its manifest, if it was noted.
    #[serde(default)]
    pub manifest: Option<String>,
    /// How the copy ended: `success`, or the reason of a failure.
    pub status: String,
    /// Whether the tree exists.
    pub has_tree: bool,
    /// Entries of the tree, if homing made it.
    pub files: Option<u64>,
    /// Bytes of its regular files.
    pub bytes: Option<u64>,
    /// Bytes that it does not share with the image before.
    pub own_bytes: Option<u64>,
}

impl Image {
    /// Reads the text of a summary; `None`: it is not the summary of an image.
    pub fn of(name: &str, summary: &str, has_tree: bool, zone: &TimeZone) -> Option<Image> {
        let conf = Conf::of_summary(summary);
        let date = |words: &str| moment(words, Timestamp::UNIX_EPOCH, zone);
        let number = |key| conf.value(key).and_then(|n| n.parse().ok());
        let expires = conf.value("Expire").and_then(|words| date(words.rsplit("== ").next().unwrap_or(words)));
        conf.value("Image")?;
        let completed = conf.value("Backup-complete").and_then(date);
        Some(Image {
            name: name.into(),
            branch: conf.value("branch").unwrap_or(BRANCH).into(),
            created: conf.value("Image-now").or(conf.value("Backup-begin")).and_then(date).or(completed),
            completed,
            expires,
            sequence: number("Sequence"),
            reference: conf.value("Reference").filter(|name| *name != "-").map(String::from),
            older: conf.list("Older"),
            manifest: conf.value("Manifest-sha256").map(String::from),
            status: conf.value("Status").unwrap_or("unfinished").into(),
            has_tree,
            files: number("Files"),
            bytes: number("Bytes"),
            own_bytes: number("Own-bytes"),
        })
    }

    /// Whether the image can be relied upon: as the reference of the next one, or as the last one that stays.
    pub fn is_good(&self) -> bool {
        self.status.starts_with("success") && self.has_tree
    }
}

/// The content of the summary of a complete image.
#[derive(Clone, Debug)]
pub struct Summary<'a> {
    /// The host of the source.
    pub client: &'a str,
    /// The folder there.
    pub tree: &'a str,
    /// The host of the bank.
    pub server: &'a str,
    /// The bank's folder.
    pub bank: &'a str,
    /// The vault's name.
    pub vault: &'a str,
    /// The branch.
    pub branch: &'a str,
    /// The image's name.
    pub image: &'a str,
    /// The image whose files it shares.
    pub reference: Option<&'a str>,
    /// Its number.
    pub sequence: u64,
    /// Images without a number that already exist, in their order.
    pub older: &'a [String],
    /// The start of the copy.
    pub begun: Timestamp,
    /// The end of the copy.
    pub completed: Timestamp,
    /// When the image expires.
    pub expiry: &'a Expiry,
    /// Patterns of names that were left out.
    pub exclude: &'a [String],
    /// Whether other file systems below the source were left out.
    pub xdev: bool,
    /// `success`, or the reason of a failure.
    pub status: &'a str,
    /// Entries of the tree.
    pub files: u64,
    /// Bytes of regular files.
    pub bytes: u64,
    /// Bytes not shared with the reference.
    pub own_bytes: u64,
    /// SHA-256 of the manifest.
    pub manifest: &'a str,
}

impl Summary<'_> {
    /// Returns the text, in the form that dirvish reads.
    pub fn text(&self, zone: &TimeZone) -> String {
        let reference = self.reference.unwrap_or("-");
        let mut lines: Vec<String> = [
            ("client", self.client),
            ("tree", self.tree),
            ("Server", self.server),
            ("Bank", self.bank),
            ("vault", self.vault),
            ("branch", self.branch),
            ("Image", self.image),
            ("Reference", reference),
            ("Image-now", &written(self.begun, zone)),
            ("Expire", &expire_words(self.expiry, zone)),
        ]
        .map(|(key, value)| format!("{key}: {}", shown(value)))
        .into();
        lines.extend(self.expiry.rule.iter().map(|rule| format!("Expire-rule: {rule}")));
        if !self.exclude.is_empty() {
            lines.push("exclude:".into());
            lines.extend(self.exclude.iter().map(|pattern| format!("\t{}", shown(pattern))));
        }
        lines.push(format!("Sequence: {}", self.sequence));
        let plain = |name: &&String| !name.contains(char::is_control);
        if self.older.iter().any(|name| plain(&name)) {
            lines.push("Older:".into());
            lines.extend(self.older.iter().filter(plain).map(|name| format!("\t{name}")));
        }
        lines.push(format!("{} xdev", if self.xdev { "SET" } else { "UNSET" }));
        lines.push(format!("Files: {}", self.files));
        lines.push(format!("Bytes: {}", self.bytes));
        lines.push(format!("Own-bytes: {}", self.own_bytes));
        lines.push(format!("Manifest-sha256: {}", self.manifest));
        lines.push(format!("Backup-begin: {}", written(self.begun, zone)));
        lines.push(format!("Backup-complete: {}", written(self.completed, zone)));
        lines.push(format!("Status: {}\n", shown(self.status)));
        lines.join("\n")
    }

    /// Returns the line for the branch's history.
    pub fn history(&self, zone: &TimeZone) -> String {
        let (at, reference) = (written(self.completed, zone), self.reference.unwrap_or("-"));
        format!("{}\t{at}\t{reference}\t{}\n", self.image, expire_words(self.expiry, zone))
    }
}

/// The first line of a history, with dirvish's spelling mistake.
pub const HISTORY_HEAD: &str = "#IMAGE\tCREATED\tREFERECE\tEXPIRES\n";

fn expire_words(expiry: &Expiry, zone: &TimeZone) -> String {
    match (&expiry.words, expiry.at) {
        (Some(words), Some(at)) => format!("{words} == {}", written(at, zone)),
        _ => "Never".into(),
    }
}
