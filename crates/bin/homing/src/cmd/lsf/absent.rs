//! LSF commands that are installed only to name a replacement.

use super::{Refusal, lsf_refusal};

/// Their names, each with its message.
pub const ABSENT: &[(&str, &str)] = &[
    ("bgadd", "a job group needs no bgadd; bsub -g /path"),
    ("bgdel", "a job group needs no bgdel; it is gone with its jobs"),
    ("bjgroup", "job groups are not listed; bjobs -g /path lists the jobs of one"),
    ("bresources", "resources of hosts are not kept by name; lsload -l"),
    ("bpost", "no messages are kept with a job; let it print, and use bpeek ID"),
    ("bread", "no messages are kept with a job; bpeek ID shows its output"),
    ("bresize", "the slots of a job are its own until its end; bsub it with those that it needs, or as several jobs"),
    ("lsgrun", "homing exec -w HOSTS COMMAND"),
];

/// Returns the refusal of such a command.
pub fn refusal(name: &str) -> Refusal {
    let instead = ABSENT.iter().find(|(known, _)| *known == name).map_or("", |(_, instead)| instead);
    lsf_refusal(format!("{name}: it is not there in homing: {instead}"))
}
