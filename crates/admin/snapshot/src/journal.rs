//! The journal of a vault: one line for each event.

use crate::ask::Proof;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The journal's name in the vault's folder `dirvish`.
pub const NAME: &str = "homing.journal";

/// An event in a vault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VaultEvent {
    /// An image was begun.
    Begun {
        /// Its name.
        image: String,
        /// The image whose files it shares.
        reference: Option<String>,
        /// The kernel's id of the boot in which it was begun.
        boot: String,
    },
    /// An image was broken off.
    Stopped {
        /// Its name.
        image: String,
        /// The reason.
        why: String,
    },
    /// An image is whole.
    Finished {
        /// Its name.
        image: String,
        /// Its number; 0 from older versions.
        #[serde(default)]
        sequence: u64,
        /// SHA-256 of its manifest; `None` from older versions.
        #[serde(default)]
        manifest: Option<String>,
    },
    /// An image is removed.
    Expired {
        /// Its name.
        image: String,
    },
    /// A sample was restored and compared.
    Proved(Proof),
}

#[derive(Serialize, Deserialize)]
struct VaultJournalLine {
    at: Timestamp,
    #[serde(flatten)]
    event: VaultEvent,
}

/// Adds a line, which is on disk when this returns.
pub fn add(folder: &Path, event: VaultEvent) -> io::Result<()> {
    let mut text = serde_json::to_string(&VaultJournalLine { at: Timestamp::now(), event })?;
    text.push('\n');
    let mut options = OpenOptions::new();
    let mut file =
        options.append(true).create(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(folder.join(NAME))?;
    file.write_all(text.as_bytes())?;
    file.sync_data()
}

/// Returns all events, the oldest first. It skips a line that was cut short by a power cut.
/// `None`: this user may not read them.
pub fn read(folder: &Path) -> Option<Vec<VaultEvent>> {
    let text = match std::fs::read(folder.join(NAME)) {
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return None,
        text => text.unwrap_or_default(),
    };
    let lines = text.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice::<VaultJournalLine>(line).ok());
    Some(lines.map(|line| line.event).collect())
}

/// Returns the hash of an image's manifest, as it was noted when the image was finished.
pub fn manifest_of(folder: &Path, name: &str) -> Option<String> {
    read(folder)?.into_iter().rev().find_map(|event| match event {
        VaultEvent::Finished { image, manifest, .. } if image == name => manifest,
        _ => None,
    })
}
