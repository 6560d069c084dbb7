//! Keys of LSF's lsb.queues that homing's queues do not have. If a cluster file has one, homing names the
//! replacement.

use homing_model::text::by_name;

/// Their names in lower case, those with the same message together, and the message.
const ABSENT: &[(&str, &str)] = &[
    ("administrators", "root and the owner of $HOMING_QUEUE close and open queues"),
    ("backfill", "no slots are kept free for wide jobs, so there is nothing to fill"),
    ("chkpnt", "no checkpoints are made; a job that was interrupted is LOST until homing sub --again"),
    ("exclusive", "a job requests a whole host itself: bsub -x"),
    ("fairshare", "users take turns: the one with the fewest slots is next"),
    ("filelimit", "limits of files: [up.limits], or ulimit in job_starter"),
    ("corelimit", "limits of core files: [up.limits], or ulimit in job_starter"),
    ("datalimit swaplimit", "memory_limit counts all processes of a job together"),
    ("stacklimit", "limits of stacks: [up.limits], or ulimit in job_starter"),
    ("processlimit", "limits of processes: [up.limits], or ulimit in job_starter"),
    ("interactive", "bsub -I works in every queue"),
    ("job_controls", "a job gets SIGTERM and is ended after 5 s; it is suspended by SIGSTOP"),
    ("jobs_per_user", "per_user"),
    ("migrate", "no job moves; brequeue starts it anew"),
    ("pjob_limit", "per_host"),
    ("preemption", "no job is ended or suspended for another one; priority decides which starts next"),
    ("proclimit tasklimit", "slots, per_user and per_host"),
    ("requeue_exit_values", "brequeue -e puts failed jobs back; homing run --retries tries again"),
    ("rerunnable", "a job that was interrupted is LOST until brequeue or homing sub --again"),
    ("resume_cond stop_cond", "load = { INDEX = \"START/STOP\" }"),
    ("run_window", "dispatch_window sets when jobs start, run_limit for how long they run"),
    ("slot_reserve", "no slots are kept free for wide jobs"),
    ("terminate_when", "a suspended job is continued or ended by its user: bresume, bkill"),
];

/// Returns the replacement of the unknown key in an error message, if LSF has that key.
pub fn instead(complaint: &str) -> Option<String> {
    let key = complaint.split("unknown key `").nth(1)?.split('`').next()?.to_lowercase();
    by_name(ABSENT).find(|(known, _)| *known == key).map(|(_, instead)| format!("LSF's {key}: {instead}"))
}
