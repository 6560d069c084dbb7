//! Counts the tasks of a run by their outcome, over all parts of a run that was resumed.

use homing_model::event::EventKind;
use homing_model::{Outcome, TaskId};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The counts of tasks by outcome, kept in this one place. The caller passes every event in order. Failed and killed
/// tasks are kept by number, since a resumed run may run them again and succeed. Memory grows with these tasks alone.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// All tasks, when that was known at the start.
    pub total: Option<u64>,
    /// Tasks that succeeded.
    pub done: u64,
    /// Tasks that were not run since there was no need, with those that a replacement string skipped.
    pub skipped: u64,
    /// The part of `skipped` without task numbers: a replacement string skipped them in this part of the run.
    unnumbered: u64,
    failed: BTreeSet<TaskId>,
    killed: BTreeSet<TaskId>,
    not_run: BTreeSet<TaskId>,
    left: Option<u64>,
}

impl Counts {
    /// Whether the run had no task at all.
    pub fn is_none(&self) -> bool {
        self.over() == 0 && self.killed.is_empty() && self.unfinished().is_none_or(|n| n == 0)
    }

    /// Takes the next event.
    pub fn add(&mut self, what: &EventKind) {
        match what {
            EventKind::RunStarted { tasks, .. } => self.total = *tasks,
            EventKind::RunResumed { .. } => {
                self.left = None;
                // The resumed part reads the whole input again, and skips them again.
                self.skipped = self.skipped.saturating_sub(std::mem::take(&mut self.unnumbered));
            }
            EventKind::RunEnded { counts, .. } => {
                let of = |name| counts.get(name).copied().unwrap_or(0);
                self.left = Some(of("unfinished"));
                self.skip_unnumbered(of("skipped").saturating_sub(self.skipped));
            }
            EventKind::TaskSkipped { .. } => self.skipped += 1,
            EventKind::TaskEnded { task, outcome, last: true, .. } => self.end(*task, outcome),
            EventKind::TaskAgain { task } if self.failed.remove(task) => {}
            EventKind::TaskAgain { .. } => self.done = self.done.saturating_sub(1),
            _ => {}
        }
    }

    /// Counts tasks that a replacement string skipped (`{uniq}`, `skip()`). They have no number, and the journal has
    /// their count in `run_ended` alone.
    pub fn skip_unnumbered(&mut self, tasks: u64) {
        self.skipped += tasks;
        self.unnumbered += tasks;
    }

    fn end(&mut self, task: TaskId, outcome: &Outcome) {
        self.failed.remove(&task);
        self.killed.remove(&task);
        self.not_run.remove(&task);
        match outcome {
            // Ended at someone's wish: it neither succeeded nor failed, and resume runs it again.
            Outcome::Killed => drop(self.killed.insert(task)),
            Outcome::NotRun(_) => drop(self.not_run.insert(task)),
            outcome if outcome.is_success() => self.done += 1,
            _ => drop(self.failed.insert(task)),
        }
    }

    /// Tasks whose last outcome is a failure.
    pub fn failed(&self) -> u64 {
        self.failed.len() as u64
    }

    /// Whether every task has its last outcome, and `settled` accepts each failed task.
    pub fn is_settled(&self, settled: impl Fn(TaskId) -> bool) -> bool {
        self.unfinished() == Some(0) && self.failed.iter().all(|task| settled(*task))
    }

    /// Whether the last outcome of a task is a failure.
    pub fn has_failed(&self, task: TaskId) -> bool {
        self.failed.contains(&task)
    }

    /// Tasks that did not run because a task that they need has failed.
    pub fn not_run(&self) -> u64 {
        self.not_run.len() as u64
    }

    /// Tasks that need no further run: done, failed, not run or skipped.
    pub fn over(&self) -> u64 {
        self.done + self.failed() + self.not_run() + self.skipped
    }

    /// Returns the number of all tasks, if it was known at the start, or if the run ended without a task left. With
    /// tasks left, the input may not have been read to its end.
    pub fn all(&self) -> Option<u64> {
        self.total.or_else(|| (self.left == Some(0)).then(|| self.over()))
    }

    /// Tasks without a last outcome, when their number is known.
    pub fn unfinished(&self) -> Option<u64> {
        self.total.map(|t| t.saturating_sub(self.over())).or(self.left)
    }

    /// Returns the counts of a run that ends now, as `run_ended` contains them. `waiting` tasks never started. If the
    /// source was `cut` off, the number of its further tasks is unknown, so at least one task counts as left.
    pub fn at_the_end(&mut self, waiting: u64, cut: bool) -> BTreeMap<String, u64> {
        self.left = Some((waiting + self.killed.len() as u64).max(u64::from(cut)));
        self.named()
    }

    /// Returns the counts by name, as `run_ended` contains them. Leaves out each count that is zero.
    pub fn named(&self) -> BTreeMap<String, u64> {
        let unfinished = self.unfinished().unwrap_or(0);
        let all = [
            ("done", self.done),
            ("failed", self.failed()),
            ("not_run", self.not_run()),
            ("skipped", self.skipped),
            ("unfinished", unfinished),
        ];
        all.into_iter().filter(|(_, n)| *n > 0).map(|(key, n)| (key.to_string(), n)).collect()
    }
}

/// The numbers of a run's tasks by outcome, for a list of runs. `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunCounts {
    /// Tasks that succeeded.
    pub done: Option<u64>,
    /// Tasks whose last outcome is a failure.
    pub failed: Option<u64>,
    /// Tasks that did not run because a task that they need has failed.
    pub not_run: Option<u64>,
    /// Tasks that were not run since there was no need.
    pub skipped: Option<u64>,
    /// Tasks without a last outcome. Unknown while the input of the run may have more tasks.
    pub unfinished: Option<u64>,
}

impl RunCounts {
    /// Returns the counts of a `run_ended` record, which leaves out zeros.
    pub(crate) fn of_record(named: &BTreeMap<String, u64>) -> RunCounts {
        let of = |name| Some(named.get(name).copied().unwrap_or(0));
        RunCounts {
            done: of("done"),
            failed: of("failed"),
            not_run: of("not_run"),
            skipped: of("skipped"),
            unfinished: of("unfinished"),
        }
    }
}

impl From<&Counts> for RunCounts {
    fn from(counts: &Counts) -> RunCounts {
        RunCounts {
            done: Some(counts.done),
            failed: Some(counts.failed()),
            not_run: Some(counts.not_run()),
            skipped: Some(counts.skipped),
            unfinished: counts.unfinished(),
        }
    }
}

#[cfg(test)]
#[path = "../../../../tests/ended.rs"]
mod ended;

#[cfg(test)]
mod tests {
    use super::*;
    use ended::End;

    #[test]
    fn a_task_that_a_replacement_string_skipped_is_not_unfinished() {
        let mut counts = Counts { total: Some(3), ..Counts::default() };
        counts.add(&End { task: 1, outcome: Outcome::Exit(0), ..End::default() }.into());
        counts.skip_unnumbered(1);
        counts.add(&EventKind::TaskSkipped { task: 2, reason: "newer".into() });
        let end = EventKind::RunEnded { exit: 0, counts: counts.at_the_end(0, false) };
        // The writer of the journal and its reader count the same.
        let mut read = Counts { total: Some(3), ..Counts::default() };
        read.add(&End { task: 1, outcome: Outcome::Exit(0), ..End::default() }.into());
        read.add(&EventKind::TaskSkipped { task: 2, reason: "newer".into() });
        for counts in [&mut counts, &mut read] {
            counts.add(&end);
            assert_eq!((counts.done, counts.skipped, counts.unfinished()), (1, 2, Some(0)));
        }
        // The resumed part skips it again.
        read.add(&EventKind::RunResumed { host: "n1".into(), pid: 1 });
        assert_eq!((read.skipped, read.unfinished()), (1, Some(1)));
        read.skip_unnumbered(1);
        assert_eq!((read.skipped, read.unfinished()), (2, Some(0)));
    }

    #[test]
    fn the_number_of_all_tasks_of_a_pipe_is_known_when_none_is_left() {
        let mut counts = Counts::default();
        counts.add(&End { task: 1, outcome: Outcome::Exit(0), ..End::default() }.into());
        counts.add(&End { task: 2, outcome: Outcome::Exit(1), ..End::default() }.into());
        assert_eq!(counts.all(), None, "more may come");
        let end = |unfinished| {
            let counts = BTreeMap::from([("done".to_string(), 1), ("unfinished".to_string(), unfinished)]);
            EventKind::RunEnded { exit: 1, counts }
        };
        counts.add(&end(1));
        assert_eq!(counts.all(), None, "the source may have been cut off");
        counts.add(&end(0));
        assert_eq!(counts.all(), Some(2));
        counts.add(&EventKind::RunResumed { host: "n1".into(), pid: 1 });
        assert_eq!(counts.all(), None);
        assert_eq!(Counts { total: Some(4), ..counts }.all(), Some(4));
    }

    #[test]
    fn a_resumed_run_counts_each_task_once() {
        let ended = |task, outcome| EventKind::from(End { task, outcome, ..End::default() });
        let mut counts = Counts { total: Some(4), ..Counts::default() };
        for what in [
            ended(1, Outcome::Exit(0)),
            ended(2, Outcome::Exit(1)),
            ended(3, Outcome::Lost("gone".into())),
            ended(4, Outcome::Killed),
            EventKind::RunResumed { host: "n1".into(), pid: 1 },
            ended(3, Outcome::Exit(0)),
        ] {
            counts.add(&what);
        }
        let named = |numbers: &[(&str, u64)]| numbers.iter().map(|(k, n)| (k.to_string(), *n)).collect();
        assert_eq!(counts.named(), named(&[("done", 2), ("failed", 1), ("unfinished", 1)]));
        counts.add(&EventKind::TaskAgain { task: 1 });
        counts.add(&EventKind::TaskAgain { task: 2 });
        assert_eq!(counts.named(), named(&[("done", 1), ("unfinished", 3)]));
        counts.add(&ended(1, Outcome::Exit(0)));
        assert_eq!(counts.named(), named(&[("done", 2), ("unfinished", 2)]));
    }
}
