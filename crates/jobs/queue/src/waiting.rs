//! Counts the waiting jobs of one user, and bounds them. The count is in a file of the user. A submitter adds to it
//! under the lock of submissions, and the user's runner writes its own count.

use crate::front::Front;
use crate::job::JobSpec;
use crate::plan::Config;
use crate::{JobSpool, QueueError, bell, files};
use homing_os::folder::lock::FileLock;
use std::fs;
use std::path::PathBuf;

/// The most jobs and elements of arrays that one user may have waiting or running: two arrays of the greatest length.
/// A runner takes up to 200 bytes of memory for each, and 1 s for the first look at 20,000.
pub const MOST_WAITING: usize = 200_000;

/// A file in the user's folder.
const NAME: &str = "waiting.json";

impl JobSpool {
    fn waiting_file(&self) -> PathBuf {
        self.places.of(files::uid()).join(NAME)
    }

    fn counted(&self) -> usize {
        files::read_json::<usize>(&self.waiting_file()).map_or(0, |(count, _)| count)
    }

    /// Counts a submission; the error means that it would be too much. The caller holds the lock of submissions.
    pub(crate) fn make_room_for(&self, spec: &JobSpec) -> Result<(), QueueError> {
        let more = spec.array.as_ref().map_or(1, |array| array.indices.len());
        let mut known = self.counted();
        if known + more > MOST_WAITING {
            // Some may have ended since the runner counted, or while there was none.
            known = self.count_all();
        }
        if known + more > MOST_WAITING {
            return Err(QueueError::Request(format!(
                "{known} jobs and elements of yours wait, and the limit of a user is {MOST_WAITING}; submit {more} \
                 more when some have ended, or use one batch: homing sub --batch"
            )));
        }
        // The runner counts it too, so that a failure does no harm.
        let _ = files::write_json_soon(&self.waiting_file(), &(known + more), 0o644);
        Ok(())
    }

    /// Counts this user's waiting elements in all folders.
    fn count_all(&self) -> usize {
        let (mut front, rung) = (Front::default(), bell::Rung::default());
        loop {
            front.look(self, &Config::default(), &rung);
            if let Some(count) = front.waiting() {
                return count;
            }
        }
    }

    /// Writes the runner's count, unless a submission is under way.
    pub(crate) fn note_waiting(&self, count: Option<usize>) {
        let Some(count) = count.filter(|count| *count != self.counted()) else { return };
        let lock = self.places.of(files::uid()).join("submit.lock");
        let Ok(Some(_no_submission)) = FileLock::try_take(&lock) else { return };
        if fs::exists(self.waiting_file()).unwrap_or(false) || count > 0 {
            let _ = files::write_json_soon(&self.waiting_file(), &count, 0o644);
        }
    }
}
