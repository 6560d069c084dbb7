//! The topmost missing entries: those of folders that exist. They are moved with all their entries.

use crate::destination::{is_beneath, parts};
use homing_model::RawText;
use std::collections::HashSet;

/// Separates the missing entries of folders that exist from those of missing folders.
#[derive(Default)]
pub(super) struct Tops {
    last: Option<RawText>,
    /// Folders of the destination with missing entries, and those above them.
    pub leading: HashSet<RawText>,
}

impl Tops {
    /// Takes a missing entry, a folder before its entries. Returns true if the folder that contains it exists.
    pub fn take(&mut self, path: &RawText) -> bool {
        if self.last.as_ref().is_some_and(|top| is_beneath(path, top)) {
            return false;
        }
        let mut above = parts(&path.0).0;
        // No folder is above the destination itself.
        while !path.0.is_empty() && self.leading.insert(RawText(above.to_vec())) {
            above = parts(above).0;
        }
        self.last = Some(path.clone());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_missing_folders_are_no_tops_and_the_folders_above_a_top_lead_to_it() {
        let mut tops = Tops::default();
        let taken = ["a/b/new", "a/b/new/x", "a/b/new-er", "a/c", "z"].map(|path| tops.take(&path.into()));
        assert_eq!(taken, [true, false, true, true, true]);
        let mut leading: Vec<String> = tops.leading.iter().map(RawText::display).collect();
        leading.sort();
        assert_eq!(leading, ["", "a", "a/b"]);
        let mut whole = Tops::default();
        assert_eq!(["", "a", "a/b"].map(|path| whole.take(&path.into())), [true, false, false]);
        assert!(whole.leading.is_empty());
    }
}
