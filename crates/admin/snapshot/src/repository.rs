//! What is asked of a repository of restic.

use crate::doubt::HostClock;
use crate::image::When;
use crate::rsync::At;
use homing_model::RawText;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The repository's folder in a vault.
pub const FOLDER: &str = "restic";

/// A repository, as the source's host reaches it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// The bank's host; `None`: it is the source's.
    pub host: Option<String>,
    /// Its folder there.
    pub folder: PathBuf,
    /// A file with its password on the source's host.
    pub password_file: PathBuf,
    /// ssh and its options.
    pub ssh: Option<String>,
}

/// What is asked of a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Of which.
    pub repository: Repository,
    /// What.
    pub act: Act,
}

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Make an image.
    Make(Make),
    /// Tell the images.
    List,
    /// Remove what has expired; the values are those of [`crate::ask::Expire`].
    Expire {
        /// Clocks of other hosts.
        clocks: Vec<HostClock>,
        /// A person has looked at the clock.
        trust: bool,
    },
    /// Tell the bytes of a file.
    Cat(When, RawText),
    /// Tell what differs between an image and a later one.
    Diff(When, When),
    /// Write files back.
    Restore(Restore),
    /// Restore this many files of an image to a place of their own.
    Verify(When, usize),
}

/// A new image; its settings are those of [`crate::section::Section`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Make {
    /// The source.
    pub source: RawText,
    /// The folder that is read, where it is an instant copy of the source.
    pub instant: Option<RawText>,
    /// Patterns to leave out.
    pub exclude: Vec<String>,
    /// Leave out other file systems.
    pub xdev: bool,
    /// When it goes, without a rule.
    pub expire: String,
    /// When it goes.
    pub rules: Vec<String>,
    /// Clocks of other hosts.
    pub clocks: Vec<HostClock>,
}

/// What is written back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// From which image.
    pub when: When,
    /// What of it: below the source.
    pub below: RawText,
    /// The folder that gets it.
    pub into: At,
    /// Replace what is there.
    pub overwrite: bool,
    /// Only find out what would be written.
    pub trial: bool,
}
