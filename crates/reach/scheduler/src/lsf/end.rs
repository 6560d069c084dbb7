//! The messages of bsub, and how a job ended by `bjobs -l`.

use crate::BatchEnd;

/// Returns the number of the job that a bsub waits for or got: `Job <117> is submitted to default queue <normal>.`
pub fn queued_job(output: &str) -> Option<String> {
    let numbers = output.lines().filter_map(|line| line.trim().strip_prefix("Job <")?.split_once("> is submitted to"));
    numbers.map(|(id, _)| id).rfind(|id| id.bytes().all(|b| b.is_ascii_digit())).map(String::from)
}

/// Whether bsub failed for a reason that passes: a daemon restarts.
pub fn is_passing(message: &str) -> bool {
    let passing = [
        "Connection refused by server",
        "daemon not responding",
        "still trying",
        "Failed in an LSF library call: Communication time out",
        "Server not responding",
        "LIM is down",
        "LSF daemon is down",
    ];
    passing.iter().any(|text| message.contains(text))
}

/// Returns the last line that is no news of the queue.
pub fn complaint(output: &str) -> Option<String> {
    let is_news = |line: &str| line.starts_with("<<") || (line.starts_with("Job <") && line.contains("is submitted"));
    output.lines().map(str::trim).rfind(|line| !line.is_empty() && !is_news(line)).map(String::from)
}

/// Returns how LSF ended a job, from `bjobs -l`, whose lines are folded; `None` if it has no part in its end.
pub fn end(job: &str, bjobs: &str) -> Option<BatchEnd> {
    // A line may be folded in the middle of a word.
    let text: String = bjobs.split_whitespace().collect();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let (text, counts, ask_again) = if has(&["TERM_MEMLIMIT", "TERM_SWAP"]) {
        (format!("LSF killed job {job} for its memory; --mem-per-task requests more"), true, true)
    } else if has(&["TERM_RUNLIMIT", "TERM_CPULIMIT", "TERM_DEADLINE", "Exitedwithexitcode140"]) {
        (format!("LSF killed job {job} for its time limit; --time requests more"), true, true)
    } else if has(&["TERM_PREEMPT", "TERM_REQUEUE"]) {
        (format!("LSF preempted job {job}"), false, true)
    } else if has(&["Status<UNKWN>", "Status<ZOMBI>", "TERM_ZOMBIE"]) {
        (format!("LSF lost the host of job {job}"), false, false)
    } else if has(&["TERM_OWNER", "TERM_ADMIN", "TERM_FORCE", "TERM_CWD", "Exitedwithexitcode130"]) {
        (format!("LSF ended job {job}: it was cancelled"), false, false)
    } else {
        return None;
    };
    Some(BatchEnd { text, counts, ask_again })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_complaints_and_passing_faults() {
        let waits = "Job <117> is submitted to default queue <normal>.\n<<Waiting for dispatch ...>>\n";
        assert_eq!(queued_job(waits).as_deref(), Some("117"));
        assert_eq!(queued_job("Job <../x> is submitted to queue <q>."), None);
        assert_eq!(complaint(waits), None);
        let unknown = "n9: Bad host name, host group name or cluster name. Job not submitted.";
        assert_eq!(complaint(&format!("{unknown}\n")).as_deref(), Some(unknown));
        assert!(is_passing("Connection refused by server") && !is_passing(unknown));
    }

    #[test]
    fn the_end_of_a_job_in_folded_lines() {
        let of = |text: &str| end("9", text).map(|end| (end.counts, end.ask_again));
        let time = "Job <9>, Job Name <homing-r>, Status <EXIT>\nFri Nov 27: Exited with exit co\n    de 140. The CPU time used is 0.1 seconds.";
        assert_eq!(of(time), Some((true, true)));
        assert_eq!(
            of("Exited; TERM_MEM\n       LIMIT: job killed after reaching LSF memory usage limit."),
            Some((true, true))
        );
        assert_eq!(of("Exited with exit code 130."), Some((false, false)));
        assert_eq!(of("Status <UNKWN>"), Some((false, false)));
        assert_eq!(of("Status <DONE>"), None);
        assert_eq!(of("Exited with exit code 1."), None);
    }
}
