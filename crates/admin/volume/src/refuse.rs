//! What loses data, or could, and the words by which a user takes it on.

use serde::{Deserialize, Serialize};

/// Things that are done only when told in so many words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Danger {
    /// Data on the partition of the system: a full volume stops the host.
    SystemDisk,
    /// Two copies of a file on one host: both are gone with it.
    CopiesOnOneHost,
    /// Fewer copies than the volume promises, or the last one.
    LastCopy,
    /// Files of the volume are deleted.
    DeleteFiles,
    /// A mount that hides files.
    MountOverFiles,
    /// A store that already holds something.
    StoreInUse,
    /// Writes of a known defect of the file system may never end.
    HangingWrites,
}

impl Danger {
    /// The option that takes it on.
    pub fn flag(self) -> &'static str {
        match self {
            Danger::SystemDisk => "--allow-system-disk",
            Danger::CopiesOnOneHost => "--allow-copies-on-one-host",
            Danger::LastCopy => "--allow-losing-copies",
            Danger::DeleteFiles => "--delete-files",
            Danger::MountOverFiles => "--mount-over-files",
            Danger::StoreInUse => "--use-store-with-content",
            Danger::HangingWrites => "--allow-hanging-writes",
        }
    }
}

/// Why a plan is not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// One line: what, where, and what could be lost.
    pub why: String,
    /// `None`: it cannot be done at all.
    pub danger: Option<Danger>,
}

impl Refusal {
    pub(crate) fn danger(danger: Danger, why: String) -> Refusal {
        Refusal { why, danger: Some(danger) }
    }
    /// What cannot be done at all.
    pub fn never(why: impl Into<String>) -> Refusal {
        Refusal { why: why.into(), danger: None }
    }
}

/// The refusals that `allowed` does not lift.
pub(crate) fn lifted(all: Vec<Refusal>, allowed: &[Danger]) -> Result<(), Vec<Refusal>> {
    let left: Vec<Refusal> = all.into_iter().filter(|r| r.danger.is_none_or(|d| !allowed.contains(&d))).collect();
    if left.is_empty() { Ok(()) } else { Err(left) }
}
