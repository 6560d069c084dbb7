//! Requests to a repository of restic.

use crate::doubt::HostClock;
use crate::image::When;
use crate::rsync::HostFolder;
use homing_model::RawText;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The repository's folder in a vault.
pub const FOLDER: &str = "restic";

/// A repository, as the source's host reaches it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    /// The bank's host; `None`: the source's host keeps the bank, too.
    pub host: Option<String>,
    /// Its folder there.
    pub folder: PathBuf,
    /// A file with its password on the source's host.
    pub password_file: PathBuf,
    /// ssh and its options.
    pub ssh: Option<String>,
}

/// A request to a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepositoryRequest {
    /// The repository.
    pub repository: Repository,
    /// The action.
    pub act: Act,
}

/// The actions on a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// Make an image.
    Make(Make),
    /// Return the images.
    List,
    /// Remove the images that have expired.
    Expire {
        /// Clocks of other hosts.
        clocks: Vec<HostClock>,
        /// Whether a person has checked the clock.
        trust: bool,
    },
    /// Return the bytes of a file.
    Cat(When, RawText),
    /// Return the differences between an image and a later one.
    Diff(When, When),
    /// Write files back.
    Restore(Restore),
    /// Restore this many files of an image to a folder of their own.
    Verify(When, usize),
}

/// A new image; its settings are those of [`crate::section::Section`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Make {
    /// The source.
    pub source: RawText,
    /// The folder that is read if it is an instant copy of the source.
    pub instant: Option<RawText>,
    /// Patterns to leave out.
    pub exclude: Vec<String>,
    /// Whether to leave out other file systems.
    pub xdev: bool,
    /// When the image expires if no rule matches.
    pub expire: String,
    /// Rules for when the image expires.
    pub rules: Vec<String>,
    /// Clocks of other hosts.
    pub clocks: Vec<HostClock>,
}

/// A request to write files of an image back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restore {
    /// The image.
    pub when: When,
    /// The part of the image to restore, below the source.
    pub below: RawText,
    /// The folder that gets it.
    pub into: HostFolder,
    /// Whether to replace files that are there.
    pub overwrite: bool,
    /// Whether to report only the files that would be written.
    pub trial: bool,
}
