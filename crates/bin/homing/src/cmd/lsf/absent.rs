//! LSF commands that are installed only to name a replacement.

use super::{Refusal, lsf_refusal};

/// Their names, each with its message.
pub const ABSENT: &[(&str, &str)] = &[
    ("bgdel", "a job group ends with its last job; bgdel is not needed"),
    ("bjgroup", "homing does not list job groups; bjobs -g /path lists the jobs of one"),
    ("bresources", "homing has no named resources of hosts; lsload -l"),
    ("bpost", "homing keeps no messages of jobs; print them in the job, and use bpeek ID"),
    ("bread", "homing keeps no messages of jobs; bpeek ID shows the output"),
    ("bresize", "the slots of a job do not change; bsub it with all the slots that it needs, or as several jobs"),
    ("lsgrun", "homing exec -w HOSTS COMMAND"),
];

/// Returns the refusal of such a command.
pub fn refusal(name: &str) -> Refusal {
    let instead = ABSENT.iter().find(|(known, _)| *known == name).map_or("", |(_, instead)| instead);
    lsf_refusal(format!("{name}: not supported by homing: {instead}"))
}
