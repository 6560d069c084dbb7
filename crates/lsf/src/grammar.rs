//! Which options each command of LSF has here. An option that LSF has and
//! homing has not is refused with what to use: taken in silence it would do
//! something else than was asked for. What only mails or accounts is noted.

use crate::options::Grammar;

const NO_MAIL: &str = "no mail is sent; the report stands at the end of the -o file";
const NO_LIMIT: &str = "this limit is not there in homing; use ulimit in the job's command";
const NO_GROUP: &str = "groups of users are not there in homing; leave it out";
const NO_SLA: &str = "service classes are not there in homing; use a queue, -q";
const NO_LICENSE: &str = "licenses are not there in homing; leave it out";
const NO_CHECKPOINT: &str = "checkpoints are not there in homing; leave it out";
const NO_POWER: &str = "it is not there in homing; use -R";

/// `bsub`, and the `#BSUB` lines of its scripts.
pub const BSUB: Grammar = Grammar {
    flags: &["B", "H", "I", "Ip", "Is", "IS", "ISp", "ISs", "K", "N", "Nd", "Ne", "r", "rn", "x", "Zs", "h", "V"],
    valued: &[
        "app", "cwd", "E", "Ep", "e", "eo", "env", "g", "i", "is", "J", "L", "M", "m", "n", "network", "o", "oo", "P",
        "q", "R", "u", "W", "w",
    ],
    noted: &[
        ("B", NO_MAIL),
        ("N", NO_MAIL),
        ("Nd", NO_MAIL),
        ("Ne", NO_MAIL),
        ("u", NO_MAIL),
        ("r", "a job that is interrupted becomes LOST; homing sub --again ID runs it again"),
        ("rn", "a job that is interrupted becomes LOST; homing sub --again ID runs it again"),
        ("Zs", "the script on standard input is kept; one that the command names is read when the job starts"),
    ],
    refused: &[
        ("a", "application checks (esub) are not there in homing; use -app or -env"),
        ("alloc_flags", NO_POWER),
        ("b", "a begin time is not there in homing; use -H and bresume, or at(1)"),
        ("C", NO_LIMIT),
        ("c", NO_LIMIT),
        ("clusters", "other clusters are not there in homing; use -m"),
        ("cn_cu", NO_POWER),
        ("cn_mem", NO_POWER),
        ("core_isolation", NO_POWER),
        ("csm", NO_POWER),
        ("D", NO_LIMIT),
        ("data", "the staging of data is not there in homing; iobsub sends a job to its data"),
        ("datagrp", NO_GROUP),
        ("eptl", "a pending limit is not there in homing; use bkill"),
        ("ext", "external schedulers are not there in homing; leave it out"),
        ("F", NO_LIMIT),
        ("f", "copying of files is not there in homing; use cp in the job's command"),
        ("freq", NO_POWER),
        ("G", NO_GROUP),
        ("gpu", "GPUs are not counted in homing; on Slurm: homing sub --slurm-arg=--gpus=1"),
        ("hl", NO_LIMIT),
        ("hostfile", "a file of hosts is not there in homing; use -m"),
        ("IX", "X forwarding is not there in homing; use ssh -X"),
        ("Jd", "a description is not there in homing; use -J"),
        ("jobaff", NO_POWER),
        ("jsdl", "JSDL files are not there in homing; use #BSUB lines"),
        ("jsm", NO_POWER),
        ("k", NO_CHECKPOINT),
        ("ln_mem", NO_POWER),
        ("ln_slots", NO_POWER),
        ("Lp", NO_LICENSE),
        ("mig", NO_CHECKPOINT),
        ("nnodes", "nodes are not counted in homing; use -n, or homing sub --slurm-arg=--nodes=N"),
        ("notify", NO_MAIL),
        ("outdir", "an output directory is not made in homing; use mkdir, and -o DIR/%J"),
        ("p", NO_LIMIT),
        ("pack", "packs of jobs are not there in homing; use an array, -J 'name[1-9]'"),
        ("ptl", "a pending limit is not there in homing; use bkill"),
        ("Q", "requeueing by exit status is not there in homing; use homing run --retries"),
        ("rnc", "it is not there in homing; leave it out"),
        ("S", NO_LIMIT),
        ("s", "a signal for a queue's window is not there in homing; leave it out"),
        ("sla", NO_SLA),
        ("smt", NO_POWER),
        ("sp", "priorities of jobs are not there in homing; use a queue of higher priority, -q"),
        ("stage", "the staging of data is not there in homing; iobsub sends a job to its data"),
        ("T", NO_LIMIT),
        ("t", "a termination deadline is not there in homing; use -W"),
        ("ti", "it is not there in homing; a job whose -w cannot come true stays pending: bkill it"),
        ("tn", "it is not there in homing; leave it out"),
        ("U", "advance reservations are not there in homing; leave it out"),
        ("UF", "it is not there in homing; leave it out"),
        ("ul", NO_LIMIT),
        ("v", NO_LIMIT),
        ("wa", "an action before the end is not there in homing; use trap in the job's command"),
        ("We", "estimates are not there in homing; use -W"),
        ("wt", "an action before the end is not there in homing; use trap in the job's command"),
        ("XF", "X forwarding is not there in homing; use ssh -X"),
        ("yaml", "it is not there in homing; use #BSUB lines"),
        ("json", "it is not there in homing; use #BSUB lines"),
    ],
    mixed: false,
};

/// `bkill`, `bstop`, `bresume`.
pub const BKILL: Grammar = Grammar {
    flags: &["h", "V"],
    valued: &["app", "g", "J", "m", "P", "q", "s", "u"],
    noted: &[],
    refused: &[
        ("a", "it is not there in homing; name the jobs, or 0 for all of yours"),
        ("b", "it is not there in homing; leave it out"),
        ("C", "a reason is not kept in homing; leave it out"),
        ("d", "it is not there in homing; name the jobs, or 0 for all of yours"),
        ("l", "it is not there in homing; kill -l lists the signals"),
        ("R", "it is not there in homing; name the jobs, or 0 for all of yours"),
        ("r", "a job is not forgotten before it has ended; leave it out, or use -s KILL"),
        ("sla", NO_SLA),
        ("stat", "it is not there in homing; bjobs -noheader -o jobid with -p, -r or -s lists the jobs to name"),
    ],
    mixed: true,
};

/// `bjobs`.
pub const BJOBS: Grammar = Grammar {
    flags: &["A", "a", "d", "json", "l", "noheader", "p", "r", "s", "w", "X", "h", "V"],
    valued: &["app", "g", "J", "m", "o", "P", "q", "u"],
    noted: &[],
    refused: &[
        ("aff", "it is not there in homing; leave it out"),
        ("aps", "it is not there in homing; leave it out"),
        ("cname", "it is not there in homing; leave it out"),
        ("data", "the staging of data is not there in homing; leave it out"),
        ("env", "the environment of a job is not shown; print it in the job"),
        ("G", NO_GROUP),
        ("gpu", "GPUs are not counted in homing; leave it out"),
        ("hms", "it is not there in homing; leave it out"),
        ("hostfile", "it is not there in homing; bjobs -l names the hosts"),
        ("Lp", NO_LICENSE),
        ("N", "normalised times are not there in homing; use -o cpu_used"),
        ("noq", "it is not there in homing; leave it out"),
        ("p0", "it is not there in homing; use -p"),
        ("p1", "it is not there in homing; use -p"),
        ("p2", "it is not there in homing; use -p"),
        ("p3", "it is not there in homing; use -p"),
        ("pac", "it is not there in homing; leave it out"),
        ("pe", "it is not there in homing; use -p"),
        ("pei", "it is not there in homing; use -p"),
        ("pi", "it is not there in homing; use -p"),
        ("plan", "plans are not there in homing; use -p"),
        ("prio", "priorities of jobs are not there in homing; leave it out"),
        ("psum", "sums are not there in homing; count the lines of bjobs -noheader -p"),
        ("rusage", "it is not there in homing; use -o 'cpu_used max_mem'"),
        ("script", "the script of a job is not shown; bjobs -l shows its command"),
        ("sla", NO_SLA),
        ("ss", NO_SLA),
        ("sum", "sums are not there in homing; bqueues and busers count jobs"),
        ("ti", "it is not there in homing; leave it out"),
        ("U", "advance reservations are not there in homing; leave it out"),
        ("UF", "the long form is folded at 79 columns; use -o"),
        ("W", "it is not there in homing; use -o 'jobid stat start_time finish_time cpu_used'"),
        ("WF", "estimates are not there in homing; leave it out"),
        ("WL", "estimates are not there in homing; leave it out"),
        ("WP", "estimates are not there in homing; leave it out"),
        ("x", "exceptions of jobs are not there in homing; leave it out"),
    ],
    mixed: true,
};

const NO_PERIOD: &str = "jobs of a week are known and cannot be chosen by time; use bjobs -a -o 'jobid submit_time'";

/// `bhist`.
pub const BHIST: Grammar = Grammar {
    flags: &["a", "d", "l", "p", "r", "s", "w", "h", "V"],
    valued: &["app", "g", "J", "m", "P", "q", "u"],
    noted: &[("w", "the table is not cut there and has no wide form")],
    refused: &[
        ("b", "it is not there in homing; use -l"),
        ("C", NO_PERIOD),
        ("D", NO_PERIOD),
        ("e", "it is not there in homing; use -d"),
        ("f", "event files are not there in homing; leave it out"),
        ("G", NO_GROUP),
        ("hostfile", "it is not there in homing; bjobs -l names the hosts"),
        ("Lp", NO_LICENSE),
        ("N", "normalised times are not there in homing; use bjobs -o cpu_used"),
        ("n", "event files are not there in homing; leave it out"),
        ("S", NO_PERIOD),
        ("sla", NO_SLA),
        ("T", NO_PERIOD),
        ("t", "it is not there in homing; use -l"),
        ("UF", "it is not there in homing; use -l"),
    ],
    mixed: true,
};

/// `bacct`.
pub const BACCT: Grammar = Grammar {
    flags: &["d", "e", "l", "h", "V"],
    valued: &["app", "g", "J", "m", "P", "q", "u"],
    noted: &[],
    refused: &[
        ("b", "it is not there in homing; use bhist"),
        ("C", NO_PERIOD),
        ("D", NO_PERIOD),
        ("f", "event files are not there in homing; leave it out"),
        ("Lp", NO_LICENSE),
        ("N", "normalised times are not there in homing; leave it out"),
        ("S", NO_PERIOD),
        ("sla", NO_SLA),
        ("U", "advance reservations are not there in homing; leave it out"),
        ("w", "it is not there in homing; use bjobs -a -w"),
        ("x", "exceptions of jobs are not there in homing; leave it out"),
    ],
    mixed: true,
};

/// `brequeue`.
pub const BREQUEUE: Grammar = Grammar {
    flags: &["a", "d", "e", "r", "h", "V"],
    valued: &["app", "g", "J", "m", "P", "q", "u"],
    noted: &[],
    refused: &[
        ("H", "it is not there in homing; bstop the job once it waits"),
        ("p", "what waits is in the queue; bbot puts it behind the others"),
    ],
    mixed: true,
};

const NOT_CHANGED: &str = "it is not changed once the job was submitted; bkill it and bsub it again";

/// `bmod`.
pub const BMOD: Grammar = Grammar {
    flags: &["Mn", "Rn", "Wn", "wn", "h", "V"],
    valued: &["J", "M", "n", "q", "R", "W", "w"],
    noted: &[],
    refused: &[
        ("app", NOT_CHANGED),
        ("b", NOT_CHANGED),
        ("cwd", NOT_CHANGED),
        ("E", NOT_CHANGED),
        ("e", NOT_CHANGED),
        ("g", NOT_CHANGED),
        ("i", NOT_CHANGED),
        ("m", NOT_CHANGED),
        ("o", NOT_CHANGED),
        ("P", NOT_CHANGED),
        ("sp", "priorities of jobs are not there in homing; use btop, or bswitch"),
        ("Z", NOT_CHANGED),
        ("Zs", NOT_CHANGED),
    ],
    mixed: true,
};

/// `bswitch`.
pub const BSWITCH: Grammar = Grammar {
    flags: &["h", "V"],
    valued: &[],
    noted: &[],
    refused: &[
        ("J", "it is not there in homing; name the jobs, or 0 for all of yours"),
        ("m", "it is not there in homing; name the jobs, or 0 for all of yours"),
        ("q", "it is not there in homing; name the jobs, or 0 for all of yours"),
        ("u", "it is not there in homing; name the jobs"),
    ],
    mixed: true,
};

/// `btop` and `bbot`.
pub const BTOP: Grammar = Grammar {
    flags: &["h", "V"],
    valued: &[],
    noted: &[],
    refused: &[("u", "jobs are put in order among those of their user; leave it out")],
    mixed: true,
};

/// `bwait`.
pub const BWAIT: Grammar = Grammar {
    flags: &["h", "V"],
    valued: &["r", "t", "w"],
    noted: &[("r", "jobs are looked at as often as the queue allows")],
    refused: &[],
    mixed: true,
};

/// `bmgroup`.
pub const BMGROUP: Grammar = Grammar {
    flags: &["r", "w", "h", "V"],
    valued: &[],
    noted: &[],
    refused: &[
        ("cu", "compute units are not there in homing; leave it out"),
        ("cname", "it is not there in homing; leave it out"),
        ("l", "it is not there in homing; leave it out"),
    ],
    mixed: true,
};

/// `bpeek`.
pub const BPEEK: Grammar = Grammar {
    flags: &["f", "h", "V"],
    valued: &["J", "q"],
    noted: &[],
    refused: &[("m", "it is not there in homing; name the job")],
    mixed: true,
};

/// `bqueues`.
pub const BQUEUES: Grammar = Grammar {
    flags: &["l", "w", "h", "V"],
    valued: &[],
    noted: &[],
    refused: &[
        ("alloc", "it is not there in homing; leave it out"),
        ("m", "it is not there in homing; bqueues -l names the hosts of each queue"),
        ("noheader", "it is not there in homing; use tail -n +2"),
        ("o", "it is not there in homing; its columns stand in one order"),
        ("r", "it is not there in homing; use -l"),
        ("u", "it is not there in homing; every user may use every queue"),
    ],
    mixed: true,
};

/// `bhosts` and `lshosts`.
pub const BHOSTS: Grammar = Grammar {
    flags: &["l", "w", "X", "h", "V"],
    valued: &["R"],
    noted: &[],
    refused: &[
        ("a", "it is not there in homing; use lsload -l"),
        ("e", "it is not there in homing; leave it out"),
        ("gpu", "GPUs are not counted in homing; leave it out"),
        ("o", "it is not there in homing; its columns stand in one order"),
        ("s", "shared resources are not there in homing; use lsload -l"),
        ("x", "exceptions of hosts are not there in homing; leave it out"),
    ],
    mixed: true,
};

/// `lsload`.
pub const LSLOAD: Grammar = Grammar {
    flags: &["l", "w", "h", "V"],
    valued: &["I", "n", "R"],
    noted: &[],
    refused: &[
        ("E", "normalised load is not there in homing; leave it out"),
        ("gpu", "GPUs are not counted in homing; leave it out"),
        ("N", "normalised load is not there in homing; leave it out"),
        ("o", "it is not there in homing; use -I index:index"),
        ("s", "shared resources are not there in homing; use -l"),
    ],
    mixed: true,
};

/// `lsrun`.
pub const LSRUN: Grammar = Grammar {
    flags: &["v", "h", "V"],
    valued: &["R", "m"],
    noted: &[],
    refused: &[
        ("L", "it is not there in homing; leave it out"),
        ("P", "a terminal is not there in homing's lsrun; use bsub -Is"),
        ("p", "it is not there in homing; use homing run --on ssh"),
        ("S", "it is not there in homing; use bsub -Is"),
    ],
    mixed: false,
};

/// `badmin`, whose first operand says what is to be done.
pub const BADMIN: Grammar = Grammar { flags: &["h", "V"], valued: &["C"], noted: &[], refused: &[], mixed: true };

/// `busers`.
pub const BUSERS: Grammar = Grammar { flags: &["w", "h", "V"], valued: &[], noted: &[], refused: &[], mixed: true };

/// `lsinfo`.
pub const LSINFO: Grammar = Grammar {
    flags: &["l", "w", "h", "V"],
    valued: &[],
    noted: &[],
    refused: &[
        ("m", "models of hosts are not told apart in homing; lshosts"),
        ("M", "models of hosts are not told apart in homing; lshosts"),
        ("r", "it is not there in homing; leave it out"),
        ("t", "types of hosts are those of lshosts"),
    ],
    mixed: true,
};

/// `lsplace`.
pub const LSPLACE: Grammar = Grammar {
    flags: &["h", "V"],
    valued: &["n", "R", "w"],
    noted: &[],
    refused: &[("L", "types of hosts are not told apart in homing; leave it out")],
    mixed: true,
};

/// `lsmon`.
pub const LSMON: Grammar = Grammar {
    flags: &["h", "V"],
    valued: &["I", "i", "n", "R"],
    noted: &[],
    refused: &[
        ("E", "normalised load is not there in homing; leave it out"),
        ("L", "no log is written; lsmon > FILE"),
        ("N", "normalised load is not there in homing; leave it out"),
    ],
    mixed: true,
};

/// `bugroup`.
pub const BUGROUP: Grammar = Grammar {
    flags: &["l", "r", "w", "h", "V"],
    valued: &[],
    noted: &[("l", "a group of users has a name and members, and no more")],
    refused: &[],
    mixed: true,
};
