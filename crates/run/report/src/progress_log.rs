//! Progress for outputs without a redrawn line, such as a log of cron or a notebook. Decides when a new line is due.

use crate::progress::words;
use homing_model::live::RunProgress;
use std::time::Duration;

/// The part of the tasks, percent, after which a new line is due.
const STEP_PERCENT: u64 = 5;
/// The longest time between two lines.
const LONGEST: Duration = Duration::from_secs(60);
/// The shortest time between two lines, so that a batch of a second fills no log.
const SHORTEST: Duration = Duration::from_millis(200);
/// The time after which a run without requested progress mentions `homing top` once.
const NAMED_AFTER: Duration = Duration::from_secs(600);

/// The progress lines of one run. The default has none.
#[derive(Debug, Default)]
pub struct ProgressLog {
    run: String,
    /// Whether lines are wanted. Otherwise only `homing top` is mentioned.
    wanted: bool,
    last: Duration,
    percent: u64,
    named: bool,
}

impl ProgressLog {
    /// Makes the lines of a run.
    pub fn new(run: &str, wanted: bool) -> ProgressLog {
        ProgressLog { run: run.into(), wanted, ..ProgressLog::default() }
    }

    /// Returns the next line if one is due.
    pub fn line(&mut self, progress: &RunProgress, read_per_s: Option<u64>) -> Option<String> {
        if self.run.is_empty() {
            return None;
        }
        if !self.wanted {
            let due = !self.named && progress.elapsed >= NAMED_AFTER;
            self.named |= due;
            return due.then(|| format!("{}; homing top {} shows it", words(progress, read_per_s), self.run));
        }
        let percent = progress.total.filter(|total| *total > 0).map_or(0, |total| progress.over * 100 / total);
        let since = progress.elapsed.saturating_sub(self.last);
        let is_due = since >= LONGEST || (percent >= self.percent + STEP_PERCENT && since >= SHORTEST);
        is_due.then(|| {
            (self.last, self.percent) = (progress.elapsed, percent);
            words(progress, read_per_s)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, over: u64, total: Option<u64>) -> RunProgress {
        let elapsed = Duration::from_secs(seconds);
        RunProgress { over, total, running: 1, slots: 1, hosts: 1, elapsed, ..RunProgress::default() }
    }

    #[test]
    fn a_line_is_due_each_five_percent_and_each_minute() {
        let mut log = ProgressLog::new("r", true);
        assert_eq!(log.line(&at(1, 4, Some(100)), None), None);
        assert!(log.line(&at(2, 5, Some(100)), None).unwrap().starts_with("5 % 5/100"));
        assert_eq!(log.line(&at(3, 9, Some(100)), None), None);
        assert!(log.line(&at(62, 9, Some(100)), None).unwrap().starts_with("9 % 9/100"), "a minute has passed");
        assert_eq!(log.line(&at(63, 10, None), None), None);
        assert!(log.line(&at(122, 70, None), None).unwrap().starts_with("70 done"), "how many there are is unknown");
    }

    #[test]
    fn a_run_that_nobody_watches_names_top_once() {
        let mut log = ProgressLog::new("20261127-r", false);
        assert_eq!(log.line(&at(599, 50, Some(100)), None), None);
        assert!(log.line(&at(600, 50, Some(100)), None).unwrap().ends_with("homing top 20261127-r shows it"));
        assert_eq!(log.line(&at(9000, 60, Some(100)), None), None);
    }
}
