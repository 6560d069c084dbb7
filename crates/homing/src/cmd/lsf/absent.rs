//! Commands of LSF's that are installed only to say what to use instead.

use super::{Refusal, said};

/// Their names, and what is said.
pub const ABSENT: &[(&str, &str)] = &[
    (
        "bmod",
        "a job is not changed once it was submitted; bkill it and bsub it again; over Slurm: scontrol update jobid=ID ...",
    ),
    (
        "bswitch",
        "a job stays in its queue; bkill it and bsub -q QUEUE; over Slurm: scontrol update jobid=ID partition=QUEUE",
    ),
    (
        "btop",
        "jobs of a queue start in their order; bstop those that are to wait, or bsub -q with a queue of higher priority; over Slurm: scontrol top ID",
    ),
    (
        "bbot",
        "jobs of a queue start in their order; bstop ID holds it back until bresume ID; over Slurm: scontrol update jobid=ID nice=1000",
    ),
    ("bgadd", "a job group needs no bgadd; bsub -g /path"),
    ("bgdel", "a job group needs no bgdel; it is gone with its jobs"),
    ("bjgroup", "job groups are not listed; bjobs -g /path lists the jobs of one"),
    ("bresources", "resources of hosts are not kept by name; lsload -l"),
    ("blaunch", "lsrun -m HOST COMMAND, or homing exec -w HOSTS COMMAND"),
    ("bpost", "no messages are kept with a job; let it print, and use bpeek ID"),
    ("bread", "no messages are kept with a job; bpeek ID shows what it prints"),
    ("bresize", "the slots of a job are its own until its end; bsub it with those that it needs, or as several jobs"),
    ("lsgrun", "homing exec -w HOSTS COMMAND"),
];

/// The refusal of such a command.
pub fn refusal(name: &str) -> Refusal {
    let instead = ABSENT.iter().find(|(known, _)| *known == name).map_or("", |(_, instead)| instead);
    said(format!("{name}: it is not there in homing: {instead}"))
}
