//! `--halt`, and the exit status of a run, in GNU parallel's form.

use crate::error::BatchError;
use homing_model::Outcome;
use std::str::FromStr;

/// The tasks that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltOn {
    /// Tasks that failed.
    Fail,
    /// Tasks that succeeded.
    Success,
    /// Tasks that ended.
    Done,
}

/// The number of them at which the run stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// This many.
    Count(u64),
    /// This part of all tasks, in percent.
    Percent(u32),
}

/// The condition for stopping a run early.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Halt {
    /// All tasks run.
    #[default]
    Never,
    /// The run stops at `limit`.
    At {
        /// Whether running tasks are killed (`now`); else homing waits for them (`soon`).
        now: bool,
        /// The tasks that are counted.
        on: HaltOn,
        /// The number at which the run stops.
        limit: Limit,
    },
}

impl FromStr for Halt {
    type Err = BatchError;

    /// Reads `never`, `soon,fail=3`, `now,success=1`, `soon,done=10%`, and the old short forms `0`, `1`, `2`, `-1`,
    /// `-2`, `10%`.
    fn from_str(text: &str) -> Result<Self, BatchError> {
        let bad = |reason: &str| BatchError::value("--halt", text, reason);
        let short_percent = text.strip_suffix('%').filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
        let expanded = match text {
            "never" | "0" => return Ok(Halt::Never),
            "1" => "soon,fail=1".to_owned(),
            "2" => "now,fail=1".to_owned(),
            "-1" => "soon,success=1".to_owned(),
            "-2" => "now,success=1".to_owned(),
            _ if short_percent.is_some() => format!("soon,fail={text}"),
            _ => text.to_owned(),
        };
        let (when, why) = expanded.split_once(',').unwrap_or((&expanded, ""));
        let now = match when {
            "now" => true,
            "soon" => false,
            _ => return Err(bad("it must be 'never', or start with 'soon' or 'now', e.g. soon,fail=3")),
        };
        let (on, limit) = why.split_once('=').unwrap_or((why, ""));
        let on = match on {
            "fail" => HaltOn::Fail,
            "success" => HaltOn::Success,
            "done" => HaltOn::Done,
            _ => return Err(bad("after the comma comes fail=, success= or done=, e.g. now,fail=1")),
        };
        let number =
            |digits: &str| digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<u32>().ok()).flatten();
        let limit = match limit.strip_suffix('%') {
            Some(percent) => number(percent).map(Limit::Percent),
            None => number(limit).filter(|&n| n > 0).map(|n| Limit::Count(n.into())),
        };
        let limit =
            limit.ok_or_else(|| bad("after '=' comes a number from 1, or a percentage, e.g. fail=3 or fail=10%"))?;
        Ok(Halt::At { now, on, limit })
    }
}

/// The action of a run after a task has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Go,
    /// Start nothing more, and wait for the running tasks.
    DrainThenStop,
    /// Kill the running tasks, then stop.
    KillNow,
}

/// Numbers of tasks of the whole run by how they ended, also in its earlier parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct TaskCounts {
    /// Tasks that succeeded.
    pub done: u64,
    /// Tasks that failed.
    pub failed: u64,
    /// Number of all tasks, if it is known; a percentage waits until it is.
    pub total: Option<u64>,
}

impl TaskCounts {
    fn failed_percent(&self, of: u64) -> i32 {
        (self.failed * 100).div_ceil(of.max(1)).min(100) as i32
    }
}

/// Decides when a run stops early. Pure: no clock, no processes; the caller counts.
#[derive(Clone, Debug, Default)]
pub struct HaltState {
    halt: Halt,
    /// The decision and the exit status, set once, when the limit is reached.
    verdict: Option<(Decision, i32)>,
}

impl HaltState {
    /// Makes the state in which nothing has ended yet.
    pub fn new(halt: Halt) -> Self {
        HaltState { halt, verdict: None }
    }

    /// Decides after a task had its last attempt, which `ends` includes already. Its outcome is remembered: `--halt
    /// now,fail=1` makes that the exit status of the run.
    pub fn ended(&mut self, outcome: &Outcome, ends: TaskCounts) -> Decision {
        if let Some((decision, _)) = self.verdict {
            return decision;
        }
        let status = failed_exit_status(outcome);
        let Halt::At { now, on, limit } = self.halt else { return Decision::Go };
        let count = match on {
            HaltOn::Fail if status != 0 => ends.failed,
            HaltOn::Success if status == 0 => ends.done,
            HaltOn::Done => ends.done + ends.failed,
            _ => return Decision::Go,
        };
        let reached = match (limit, ends.total) {
            (Limit::Count(enough), _) => count >= enough,
            (Limit::Percent(percent), Some(total)) => {
                u128::from(count) * 100 >= u128::from(total) * u128::from(percent)
            }
            (Limit::Percent(_), None) => false,
        };
        if !reached {
            return Decision::Go;
        }
        let decision = if now { Decision::KillNow } else { Decision::DrainThenStop };
        let exit = match (on, limit) {
            (HaltOn::Success, _) => 0,
            (_, Limit::Count(1)) => status,
            (_, Limit::Count(_)) => ends.failed.min(101) as i32,
            (_, Limit::Percent(_)) => ends.failed_percent(ends.total.unwrap_or(0)),
        };
        self.verdict = Some((decision, exit));
        decision
    }

    /// Returns the exit status of the run: 0 if none failed, 1 to 100 for that number of failures, 101 for more.
    /// After a halt on failures it is the status of the failed task (limit 1), their number, or their percentage;
    /// after a halt on successes 0. Errors of homing itself are 255, which the caller returns.
    pub fn exit_status(&self, ends: TaskCounts) -> i32 {
        match (self.verdict, self.halt) {
            (Some((_, exit)), _) => exit,
            (None, Halt::At { limit: Limit::Percent(_), .. }) => ends.failed_percent(ends.done + ends.failed),
            (None, _) => ends.failed.min(101) as i32,
        }
    }
}

/// Returns a task's outcome as an exit status: 128 + signal as in shells, 127 if it never started, 255 if it was
/// ended or lost.
pub fn failed_exit_status(outcome: &Outcome) -> i32 {
    match outcome {
        Outcome::Exit(status) => *status,
        Outcome::Signal(signal) => 128 + signal,
        Outcome::CannotStart(_) | Outcome::NotRun(_) => 127,
        Outcome::TimedOut | Outcome::Killed | Outcome::Lost(_) | Outcome::OutputLimit => 255,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(halt: &str, statuses: &[i32]) -> (usize, Decision, i32) {
        let mut state = HaltState::new(halt.parse().unwrap());
        let mut ends = TaskCounts { total: Some(statuses.len() as u64), ..TaskCounts::default() };
        for (i, status) in statuses.iter().enumerate() {
            *if *status == 0 { &mut ends.done } else { &mut ends.failed } += 1;
            let decision = state.ended(&Outcome::Exit(*status), ends);
            if decision != Decision::Go {
                return (i + 1, decision, state.exit_status(ends));
            }
        }
        (statuses.len(), Decision::Go, state.exit_status(ends))
    }

    /// The statuses were observed with GNU parallel 20221122 and `-j1 'exit {}'`.
    #[test]
    fn halts_as_gnu_parallel() {
        use Decision::{DrainThenStop, Go, KillNow};
        let statuses = [0, 3, 4, 5, 0];
        for (halt, want) in [
            ("never", (5, Go, 3)),
            ("soon,fail=1", (2, DrainThenStop, 3)),
            ("now,fail=1", (2, KillNow, 3)),
            ("2", (2, KillNow, 3)),
            ("now,success=1", (1, KillNow, 0)),
            ("soon,fail=50%", (4, DrainThenStop, 60)),
            ("50%", (4, DrainThenStop, 60)),
            ("now,done=2", (2, KillNow, 1)),
            ("soon,success=2", (5, DrainThenStop, 0)),
            ("soon,done=2", (2, DrainThenStop, 1)),
            ("soon,fail=9", (5, Go, 3)),
        ] {
            assert_eq!(run(halt, &statuses), want, "{halt}");
        }
        assert_eq!(run("never", &[1; 100]).2, 100);
        assert_eq!(run("never", &[1; 102]).2, 101);
        let mut state = HaltState::new("now,fail=1".parse().unwrap());
        let ends = TaskCounts { failed: 1, ..TaskCounts::default() };
        state.ended(&Outcome::Signal(9), ends);
        assert_eq!(state.exit_status(ends), 137);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in
            ["", "foo,bar", "soon", "now,", "now,fail", "now,fail=", "now,fail=0", "now,fail=x", "soon,ok=1", "%"]
        {
            assert!(text.parse::<Halt>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_percentage_waits_for_the_total() {
        let mut state = HaltState::new("now,fail=10%".parse().unwrap());
        let failed = Outcome::Exit(1);
        assert_eq!(state.ended(&failed, TaskCounts { failed: 1, ..TaskCounts::default() }), Decision::Go);
        assert_eq!(
            state.ended(&failed, TaskCounts { failed: 2, total: Some(20), ..TaskCounts::default() }),
            Decision::KillNow
        );
    }
}
