//! Finds out how a job ended, from the messages of srun and the state in slurmctld.

use crate::BatchEnd;

/// The state of a job in `scontrol show job --oneliner`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobState {
    /// `JobState`, e.g. `RUNNING`.
    pub state: String,
    /// `Reason`, e.g. `TimeLimit`.
    pub reason: String,
}

impl JobState {
    /// Whether nothing of it will run any more.
    pub fn is_over(&self) -> bool {
        !["PENDING", "RUNNING", "SUSPENDED", "CONFIGURING", "COMPLETING"].contains(&self.state.as_str())
    }
}

/// Reads one line of `scontrol show job --oneliner`.
pub fn job_state(line: &str) -> Option<JobState> {
    let field = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    Some(JobState { state: field("JobState")?.into(), reason: field("Reason").unwrap_or("None").into() })
}

/// Causes, with their marks in srun's messages and in slurmctld's state. The order matters: a step that was killed
/// for its memory is also reported as cancelled.
const CAUSES: &[(Cause, &[&str], &[&str])] = &[
    (
        Cause::Memory,
        &["exceeded memory limit", "xceeded job memory limit", "oom_kill", "oom-kill", "Out Of Memory"],
        &["OUT_OF_MEMORY", "OutOfMemory"],
    ),
    (Cause::Time, &["DUE TO TIME LIMIT"], &["TIMEOUT", "TimeLimit", "DEADLINE"]),
    (Cause::Preemption, &["DUE TO PREEMPTION"], &["PREEMPTED"]),
    (Cause::Node, &["DUE TO NODE FAILURE", "ode failure on"], &["NODE_FAIL", "BOOT_FAIL", "NodeDown"]),
    (Cause::Cancelled, &["CANCELLED AT", "has been revoked", "Job is no longer"], &["CANCELLED"]),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Memory,
    Time,
    Preemption,
    Node,
    Cancelled,
}

/// Returns how Slurm ended the worker of `job`. `None` if Slurm has no part in its end.
pub fn fate(job: Option<&str>, state: Option<&JobState>, output: &str) -> Option<BatchEnd> {
    let heard = CAUSES.iter().find(|(_, words, _)| words.iter().any(|w| output.contains(w)));
    let known = || {
        let JobState { state, reason } = state?;
        CAUSES.iter().find(|(_, _, names)| names.iter().any(|n| state.starts_with(n) || reason == n))
    };
    let cause = heard.or_else(known)?.0;
    let name = job.map_or_else(|| "its job".to_string(), |id| format!("job {id}"));
    let (text, counts, ask_again) = match cause {
        Cause::Memory => (format!("Slurm killed {name}: OUT_OF_MEMORY; --mem-per-task requests more"), true, true),
        Cause::Time => (format!("Slurm killed {name}: TIMEOUT; --time requests more"), true, true),
        Cause::Preemption => (format!("Slurm killed {name}: PREEMPTED"), false, true),
        Cause::Node => (format!("Slurm ended {name}: NODE_FAIL"), false, false),
        Cause::Cancelled => (format!("Slurm ended {name}: CANCELLED"), false, false),
    };
    Some(BatchEnd { text, counts, ask_again })
}

/// Returns the number of the job that an srun waits for or got, from its messages.
pub fn queued_job(said: &str) -> Option<String> {
    let words = said.lines().filter_map(|l| l.trim().strip_prefix("srun: job "));
    let mut numbers = words.filter_map(|l| l.split(' ').next()).filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
    numbers.next_back().map(String::from)
}

/// Whether srun failed for a reason that passes: slurmctld restarts, or is too busy to answer.
pub fn is_passing(said: &str) -> bool {
    let passing = [
        "Unable to contact slurm controller",
        "Socket timed out",
        "Connection refused",
        "Connection timed out",
        "Resource temporarily unavailable",
        "Step creation temporarily disabled",
        "slurmctld is down",
        "Transport endpoint is not connected",
        "Zero Bytes were transmitted or received",
    ];
    passing.iter().any(|p| said.contains(p))
}

/// Returns the most useful line of srun's: the last error, else the first line that is no news of the queue.
pub(super) fn complaint(output: &str) -> Option<String> {
    let news = ["queued and waiting", "has been allocated", "Granted job"];
    let plain = |l: &&str| l.starts_with("srun: ") && !news.iter().any(|n| l.contains(n));
    let found = output.lines().rfind(|l| l.contains("error:")).or_else(|| output.lines().find(plain));
    let found = found.or_else(|| output.lines().rfind(|l| !l.trim().is_empty()))?.trim();
    Some(found.trim_start_matches("srun: ").trim_start_matches("error: ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from srun 22.05.
    const TIME: &str = "srun: job 9 queued and waiting for resources\nsrun: job 9 has been allocated resources\n\
        slurmstepd-n2: error: *** STEP 9.0 ON n2 CANCELLED AT 2026-11-21T07:04:39 DUE TO TIME LIMIT ***\n\
        srun: Job step aborted: Waiting up to 5 seconds for job step to finish.\nsrun: error: n2: task 0: Terminated";
    const MEMORY: &str = "slurmstepd-n2: error: StepId=10.0 exceeded memory limit (208224256 > 52428800), being killed\n\
        srun: Exceeded job memory limit\nsrun: Job step aborted: Waiting up to 5 seconds for job step to finish.";
    const PREEMPTED: &str =
        "slurmstepd-n2: error: *** STEP 11.0 ON n2 CANCELLED AT 2026-11-21T07:04:41 DUE TO PREEMPTION ***";
    const CANCELLED: &str = "slurmstepd-n2: error: *** STEP 4.0 ON n2 CANCELLED AT 2026-11-21T07:02:20 ***";

    #[test]
    fn the_words_of_srun() {
        let of = |said| fate(Some("9"), None, said).expect("known");
        assert!(of(TIME).text.contains("job 9: TIMEOUT") && of(TIME).counts);
        assert!(of(MEMORY).text.contains("OUT_OF_MEMORY") && of(MEMORY).counts);
        assert_eq!((of(PREEMPTED).counts, of(PREEMPTED).ask_again), (false, true));
        assert_eq!((of(CANCELLED).counts, of(CANCELLED).ask_again), (false, false));
        assert_eq!(fate(None, None, "srun: error: n2: task 0: Exited with exit code 1"), None);
    }

    #[test]
    fn the_words_of_slurmctld_when_srun_said_nothing() {
        let line = "JobId=9 JobName=tl UserId=root(0) JobState=COMPLETING Reason=TimeLimit Dependency=(null) Requeue=1";
        let state = job_state(line).expect("a job");
        assert!(!state.is_over());
        assert!(fate(Some("9"), Some(&state), "").expect("known").text.contains("TIMEOUT"));
        let failed = JobState { state: "NODE_FAIL".into(), reason: "None".into() };
        assert!(failed.is_over() && !fate(None, Some(&failed), "").expect("known").counts);
        let fine = JobState { state: "COMPLETED".into(), reason: "None".into() };
        assert_eq!(fate(None, Some(&fine), ""), None);
        assert_eq!(job_state("slurm_load_jobs error: Invalid job id specified"), None);
    }

    #[test]
    fn job_numbers_and_passing_faults() {
        assert_eq!(queued_job(TIME).as_deref(), Some("9"));
        assert_eq!(queued_job("srun: job ../x queued"), None);
        assert!(is_passing(
            "srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)"
        ));
        assert!(!is_passing("srun: error: Unable to allocate resources: Invalid partition name specified"));
    }

    #[test]
    fn what_srun_complained_of() {
        let option = "srun: unrecognized option '--nope'\nTry \"srun --help\" for more information";
        assert_eq!(complaint(option).as_deref(), Some("unrecognized option '--nope'"));
        let account = "srun: job 3 queued and waiting for resources\n\
                       srun: error: Unable to allocate resources: Invalid account or account/partition combination specified";
        assert!(complaint(account).is_some_and(|c| c.starts_with("Unable to allocate resources: Invalid account")));
        assert_eq!(complaint("srun: job 3 has been allocated resources\nbye").as_deref(), Some("bye"));
        assert_eq!(complaint(""), None);
    }
}
