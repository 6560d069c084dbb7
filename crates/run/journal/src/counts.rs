//! What became of the tasks of a run, over all the parts of a run that was resumed.

use homing_model::event::What;
use homing_model::{Outcome, TaskId};
use std::collections::{BTreeMap, BTreeSet};

/// Tasks by what became of them: the one place where they are counted. Hand it
/// every event, in order. Failed and killed tasks are kept by number, since a
/// resumed run may run them again and succeed; memory grows with these alone.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// All tasks, when that was known at the start.
    pub total: Option<u64>,
    /// Tasks that succeeded.
    pub done: u64,
    /// Tasks that were not run since there was no need.
    pub skipped: u64,
    failed: BTreeSet<TaskId>,
    killed: BTreeSet<TaskId>,
    not_run: BTreeSet<TaskId>,
    left: Option<u64>,
}

impl Counts {
    /// Takes the next event.
    pub fn add(&mut self, what: &What) {
        match what {
            What::RunStarted { tasks, .. } => self.total = *tasks,
            What::RunResumed { .. } => self.left = None,
            What::RunEnded { counts, .. } => self.left = Some(counts.get("unfinished").copied().unwrap_or(0)),
            What::TaskSkipped { .. } => self.skipped += 1,
            What::TaskEnded { task, outcome, last: true, .. } => self.end(*task, outcome),
            What::TaskAgain { task } if self.failed.remove(task) => {}
            What::TaskAgain { .. } => self.done = self.done.saturating_sub(1),
            _ => {}
        }
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

    /// Tasks whose last word is a failure.
    pub fn failed(&self) -> u64 {
        self.failed.len() as u64
    }

    /// Whether every task has its last word, and each failure is one of those that `settled` names.
    pub fn is_settled(&self, settled: impl Fn(TaskId) -> bool) -> bool {
        self.unfinished() == Some(0) && self.failed.iter().all(|task| settled(*task))
    }

    /// Whether a task's last word is a failure.
    pub fn has_failed(&self, task: TaskId) -> bool {
        self.failed.contains(&task)
    }

    /// Tasks that were not run since one that they need has failed.
    pub fn not_run(&self) -> u64 {
        self.not_run.len() as u64
    }

    /// Tasks that need no further look: done, failed, not run or skipped.
    pub fn over(&self) -> u64 {
        self.done + self.failed() + self.not_run() + self.skipped
    }

    /// Tasks that have no last word, when that can be known.
    pub fn unfinished(&self) -> Option<u64> {
        self.total.map(|t| t.saturating_sub(self.over())).or(self.left)
    }

    /// The counts of a run that ends now, as `run_ended` has them; `waiting`: tasks that were never started.
    /// Of a source that was `cut` off nobody knows what it would still have given: one task at least is left.
    pub fn at_the_end(&mut self, waiting: u64, cut: bool) -> BTreeMap<String, u64> {
        self.left = Some((waiting + self.killed.len() as u64).max(u64::from(cut)));
        self.named()
    }

    /// By name, as `run_ended` has them; what is zero is left out.
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

#[cfg(test)]
#[path = "../../../../tests/ended.rs"]
mod ended;

#[cfg(test)]
mod tests {
    use super::*;
    use ended::End;

    #[test]
    fn a_resumed_run_counts_each_task_once() {
        let ended = |task, outcome| What::from(End { task, outcome, ..End::default() });
        let mut counts = Counts { total: Some(4), ..Counts::default() };
        for what in [
            ended(1, Outcome::Exit(0)),
            ended(2, Outcome::Exit(1)),
            ended(3, Outcome::Lost("gone".into())),
            ended(4, Outcome::Killed),
            What::RunResumed { host: "n1".into(), pid: 1 },
            ended(3, Outcome::Exit(0)),
        ] {
            counts.add(&what);
        }
        let named = |numbers: &[(&str, u64)]| numbers.iter().map(|(k, n)| (k.to_string(), *n)).collect();
        assert_eq!(counts.named(), named(&[("done", 2), ("failed", 1), ("unfinished", 1)]));
        counts.add(&What::TaskAgain { task: 1 });
        counts.add(&What::TaskAgain { task: 2 });
        assert_eq!(counts.named(), named(&[("done", 1), ("unfinished", 3)]));
        counts.add(&ended(1, Outcome::Exit(0)));
        assert_eq!(counts.named(), named(&[("done", 2), ("unfinished", 2)]));
    }
}
