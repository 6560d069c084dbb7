//! Inputs from HDFS. They are on no volume, and each task fetches them again.

use super::{CommandInputs, Finder, PathBytes, PathFacts, remember};
use homing_model::RawText;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

impl Finder {
    /// Locates all of them within the time limit of one query.
    pub(super) fn add_remote(&self, words: &[PathBuf], inputs: &mut CommandInputs) {
        let until = self.locator.hdfs().until();
        for word in words {
            match self.remote(word, until) {
                Ok(place) => {
                    inputs.remote |= place.bytes > 0;
                    inputs.add(&place);
                }
                Err(why) => {
                    _ = inputs.untold.get_or_insert(format!("{}: {why}", RawText::from(word.as_path()).display()))
                }
            }
        }
    }

    /// Queries the place of a file of HDFS, unless it is known from a moment ago.
    fn remote(&self, word: &Path, until: Instant) -> Result<Arc<PathBytes>, String> {
        let hdfs = self.locator.hdfs();
        let mark = (0, 0, hdfs.turn(), 0);
        let kept = self.known().get(word).filter(|known| known.mark == mark).and_then(|known| known.place.clone());
        if let Some(place) = kept {
            return Ok(place);
        }
        let layout = hdfs.locate(word, until)?;
        let place = Arc::new(PathBytes::of([&layout], false));
        // A missing file may be created at any time, so it is not remembered.
        if layout.reason.is_none() {
            remember(self.known(), word, PathFacts { folder: false, mark, place: Some(place.clone()), named: 0 });
        }
        Ok(place)
    }
}
