//! A user's records of a cluster as JSON, each in a file in [`crate::folder::cluster_state`].

use crate::folder::{cluster_state, write_whole};
use homing_model::Failure;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Such a file. All users may read it, because the node exporter is another user.
pub struct RecordFile(PathBuf);

impl RecordFile {
    /// Returns the record of that name.
    pub fn of(name: &str) -> RecordFile {
        RecordFile(cluster_state().join(name))
    }

    /// Reads the record; returns the default if there is no file.
    pub fn load<T: DeserializeOwned + Default>(&self) -> Result<T, Failure> {
        let file = self.0.display();
        match std::fs::read(&self.0) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|e| Failure::system(format!("{file} is damaged: {e}")).hint(format!("rm {file}"))),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(T::default()),
            Err(e) => Err(Failure::system(format!("reading {file}: {e}"))),
        }
    }

    /// Replaces the record.
    pub fn save(&self, what: &impl Serialize) -> Result<(), Failure> {
        let folder = cluster_state();
        crate::names::make_folder(&folder, 0o777)
            .map_err(|e| Failure::system(format!("making {}: {e}", folder.display())))?;
        let text = serde_json::to_string_pretty(what).map_err(Failure::system)? + "\n";
        let written = write_whole(&self.0, text.as_bytes(), Some(0o644));
        written.map_err(|e| Failure::system(format!("writing {}: {e}", self.0.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_damaged_is_told_with_what_to_remove_and_what_is_missing_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let kept = RecordFile(dir.path().join("x.json"));
        assert!(kept.load::<Vec<u32>>().unwrap().is_empty());
        std::fs::write(&kept.0, "[1, 2]").unwrap();
        assert_eq!(kept.load::<Vec<u32>>().unwrap(), [1_u32, 2]);
        std::fs::write(&kept.0, "[1,").unwrap();
        let failure = kept.load::<Vec<u32>>().unwrap_err();
        let file = kept.0.display().to_string();
        assert!(failure.message.starts_with(&format!("{file} is damaged: ")), "{}", failure.message);
        assert_eq!(failure.hint, Some(format!("rm {file}")));
    }
}
