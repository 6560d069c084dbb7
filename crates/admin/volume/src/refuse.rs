//! Dangers to data, and the options by which a user accepts them.

use crate::observe::Observed;
use serde::{Deserialize, Serialize};

/// Dangers that a user must accept explicitly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Danger {
    /// Data on a partition of the system: a full volume would stop the host.
    SystemDisk,
    /// Two copies of a file on one host: both are lost with it.
    CopiesOnOneHost,
    /// Fewer copies than the volume promises, or the last one.
    LastCopy,
    /// Files of the volume are deleted.
    DeleteFiles,
    /// A mount that hides files.
    MountOverFiles,
    /// A store that already holds something.
    StoreInUse,
    /// Writes may never end, because of a known defect of the file system.
    HangingWrites,
}

impl Danger {
    /// Returns the option that accepts it.
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

/// A reason why a plan is not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// One line: the fault, the place, and the data that could be lost.
    pub why: String,
    /// The danger to accept; `None` if it cannot be done at all.
    pub danger: Option<Danger>,
    /// Whether a host or its daemon is the cause, and not the request.
    pub of_host: bool,
    /// Whether the cause may pass by itself in a few seconds.
    #[serde(skip)]
    pub passing: bool,
    /// A command that removes the cause.
    pub remedy: Option<String>,
}

impl Refusal {
    pub(crate) fn danger(danger: Danger, why: String) -> Refusal {
        Refusal { danger: Some(danger), ..Refusal::never(why) }
    }
    /// Makes a refusal that no option lifts.
    pub fn never(why: impl Into<String>) -> Refusal {
        Refusal { why: why.into(), danger: None, of_host: false, passing: false, remedy: None }
    }
    /// Makes a refusal whose cause is a host or its daemon; the command removes the cause.
    pub(crate) fn of_host(why: impl Into<String>, remedy: Option<String>) -> Refusal {
        Refusal { of_host: true, remedy, ..Refusal::never(why) }
    }
}

/// Refuses for each of these hosts that did not answer.
pub(crate) fn of_silent(seen: &Observed, is_needed: impl Fn(&str) -> bool) -> Vec<Refusal> {
    let silent = seen.silent().into_iter().filter(|(host, _)| is_needed(host));
    silent.map(|(host, why)| Refusal::of_host(format!("{host} does not answer: {why}"), None)).collect()
}

/// Succeeds if `allowed` lifts all of these refusals; the error has the rest.
pub(crate) fn lifted(all: Vec<Refusal>, allowed: &[Danger]) -> Result<(), Vec<Refusal>> {
    let left: Vec<Refusal> = all.into_iter().filter(|r| r.danger.is_none_or(|d| !allowed.contains(&d))).collect();
    if left.is_empty() { Ok(()) } else { Err(left) }
}
