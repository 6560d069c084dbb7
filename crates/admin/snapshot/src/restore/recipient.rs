//! The destination of a restore. Its own host examines it, and moves restored entries to their places.

use super::staging::Stagings;
use crate::ask::{Restored, StagedFolder, Staging};
use crate::destination::{Examiner, Presence, RestoreEntry};
use crate::run::Reins;
use homing_model::RawText;
use std::path::Path;

/// The steps of a restore at its destination.
pub trait Recipient {
    /// Returns the state of the destination under the names of entries, in their order, and records the missing ones.
    fn examine(&mut self, entries: Vec<RestoreEntry>) -> Result<Vec<Presence>, String>;
    /// Returns the private folders for the missing entries.
    fn stage(&mut self) -> Result<Staging, String>;
    /// Moves the entries that rsync has written to their places, and returns the restore with its new counts.
    fn place(&mut self, done: Restored) -> Result<Restored, String>;
}

/// A destination of this host.
pub struct LocalRecipient {
    examiner: Examiner,
    /// `None`: the restore writes nothing.
    stagings: Option<Stagings>,
    /// This process as a name in `/proc`, by which rsync finds its open folders.
    process: String,
}

impl LocalRecipient {
    /// Opens the folder. `stages`: missing entries will be written; `is_far`: by an rsync that another host starts.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn open(into: &Path, stages: bool, is_far: bool, reins: &Reins) -> Result<LocalRecipient, String> {
        let examiner = Examiner::open(into)?;
        let stagings = stages.then(|| Stagings::new(into, &examiner, reins)).transpose();
        let stagings = stagings.map_err(|e| format!("{}: {e}", into.display()))?;
        // A child inherits open folders. Another process of the same user finds them by the number of this process.
        let process = if is_far { std::process::id().to_string() } else { "self".into() };
        Ok(LocalRecipient { examiner, stagings, process })
    }
}

impl Recipient for LocalRecipient {
    fn examine(&mut self, entries: Vec<RestoreEntry>) -> Result<Vec<Presence>, String> {
        let mut all = Vec::with_capacity(entries.len());
        for entry in &entries {
            let present = self.examiner.examine(entry);
            if let (Presence::Missing, Some(stagings)) = (&present, &mut self.stagings) {
                stagings.add(&entry.path).map_err(|e| format!("writing the list of files to restore: {e}"))?;
            }
            all.push(present);
        }
        Ok(all)
    }

    fn stage(&mut self) -> Result<Staging, String> {
        let Some(stagings) = &mut self.stagings else { return Err("no files were to be written".into()) };
        stagings.ready(&self.process)
    }

    fn place(&mut self, mut done: Restored) -> Result<Restored, String> {
        let Some(stagings) = self.stagings.take() else { return Err("no files were to be written".into()) };
        stagings.place(&mut done).map(|()| done)
    }
}

/// Takes the place of the destination on another host if the destination is on this one.
pub struct NoRecipient;

impl Recipient for NoRecipient {
    fn examine(&mut self, _: Vec<RestoreEntry>) -> Result<Vec<Presence>, String> {
        Err("the host that gets the files restores them".into())
    }

    fn stage(&mut self) -> Result<Staging, String> {
        Ok(Staging::default())
    }

    fn place(&mut self, done: Restored) -> Result<Restored, String> {
        Ok(done)
    }
}

/// Returns a message of rsync with the path of the destination instead of that of its private folder.
pub(super) fn public(text: &str, folder: &StagedFolder, into: &RawText) -> String {
    text.replace(&folder.tree.display().to_string(), &into.display())
}
