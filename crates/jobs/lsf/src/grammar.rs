//! The options of each command of LSF in homing. An option that homing lacks is refused with its replacement: if it
//! were ignored, the command would do something else than the user wants. An option that only mails or accounts gets
//! a note.

use crate::options::Grammar;

const NO_MAIL: &str = "no mail is sent; the report is at the end of the -o file";
const NO_LIMIT: &str = "this limit is not there in homing; use ulimit in the job's command";
const NO_GROUP: &str = "groups of users are not there in homing; leave it out";
const NO_SLA: &str = "service classes are not there in homing; use a queue, -q";
const NO_LICENSE: &str = "licenses are not there in homing; leave it out";
const NO_CHECKPOINT: &str = "checkpoints are not there in homing; leave it out";
const NO_POWER: &str = "it is not there in homing; use -R";

/// The base of the other grammars.
const PLAIN: Grammar = Grammar { flags: &["h", "V"], valued: &[], noted: &[], refused: &[], mixed: true };

/// `bsub`, and the `#BSUB` lines of its scripts.
pub const BSUB: Grammar = Grammar {
    flags: &["B", "H", "I", "Ip", "Is", "IS", "ISp", "ISs", "K", "N", "Nd", "Ne", "r", "rn", "x", "Zs", "h", "V"],
    valued: &[
        "app", "cwd", "E", "Ep", "e", "eo", "env", "g", "gpu", "i", "is", "J", "L", "M", "m", "n", "network", "o",
        "oo", "P", "q", "R", "u", "W", "w",
    ],
    noted: &[
        ("B N Nd Ne u", NO_MAIL),
        ("r rn", "a job that is interrupted becomes LOST; homing sub --again ID runs it again"),
        ("Zs", "the script on standard input is kept; one that the command names is read when the job starts"),
    ],
    refused: &[
        ("a", "application checks (esub) are not there in homing; use -app or -env"),
        ("alloc_flags cn_cu cn_mem core_isolation csm freq jobaff jsm ln_mem ln_slots smt", NO_POWER),
        ("b", "a begin time is not there in homing; use -H and bresume, or at(1)"),
        ("C c D F hl p S T ul v", NO_LIMIT),
        ("clusters", "other clusters are not there in homing; use -m"),
        ("data stage", "the staging of data is not there in homing; iobsub sends a job to its data"),
        ("datagrp G", NO_GROUP),
        ("eptl ptl", "a pending limit is not there in homing; use bkill"),
        ("ext", "external schedulers are not there in homing; leave it out"),
        ("f", "copying of files is not there in homing; use cp in the job's command"),
        ("hostfile", "a file of hosts is not there in homing; use -m"),
        ("IX XF", "X forwarding is not there in homing; use ssh -X"),
        ("Jd", "a description is not there in homing; use -J"),
        ("jsdl", "JSDL files are not there in homing; use #BSUB lines"),
        ("k mig", NO_CHECKPOINT),
        ("Lp", NO_LICENSE),
        ("nnodes", "nodes are not counted in homing; use -n, or homing sub --slurm-arg=--nodes=N"),
        ("notify", NO_MAIL),
        ("outdir", "an output directory is not made in homing; use mkdir, and -o DIR/%J"),
        ("pack", "packs of jobs are not there in homing; use an array, -J 'name[1-9]'"),
        ("Q", "requeueing by exit status is not there in homing; use homing run --retries"),
        ("rnc tn UF", "it is not there in homing; leave it out"),
        ("s", "a signal for a queue's window is not there in homing; leave it out"),
        ("sla", NO_SLA),
        ("sp", "priorities of jobs are not there in homing; use a queue of higher priority, -q"),
        ("t", "a termination deadline is not there in homing; use -W"),
        ("ti", "it is not there in homing; a job whose -w cannot come true stays pending: bkill it"),
        ("U", "advance reservations are not there in homing; leave it out"),
        ("wa wt", "an action before the end is not there in homing; use trap in the job's command"),
        ("We", "estimates are not there in homing; use -W"),
        ("yaml json", "it is not there in homing; use #BSUB lines"),
    ],
    mixed: false,
};

/// `bkill`, `bstop`, `bresume`.
pub const BKILL: Grammar = Grammar {
    valued: &["app", "g", "J", "m", "P", "q", "s", "u"],
    refused: &[
        ("a d R", "it is not there in homing; name the jobs, or 0 for all of yours"),
        ("b", "it is not there in homing; leave it out"),
        ("C", "a reason is not kept in homing; leave it out"),
        ("l", "it is not there in homing; kill -l lists the signals"),
        ("r", "a job is not forgotten before it has ended; leave it out, or use -s KILL"),
        ("sla", NO_SLA),
        ("stat", "it is not there in homing; bjobs -noheader -o jobid with -p, -r or -s lists the jobs to name"),
    ],
    ..PLAIN
};

/// `bjobs`.
pub const BJOBS: Grammar = Grammar {
    flags: &["A", "a", "d", "json", "l", "noheader", "p", "r", "s", "W", "w", "X", "h", "V"],
    valued: &["app", "g", "J", "m", "o", "P", "q", "u"],
    refused: &[
        ("aff aps cname hms noq pac ti", "it is not there in homing; leave it out"),
        ("data", "the staging of data is not there in homing; leave it out"),
        ("env", "the environment of a job is not shown; print it in the job"),
        ("fwd", "other clusters are not there in homing; leave it out"),
        ("G", NO_GROUP),
        ("gpu", "GPUs are not counted in homing; leave it out"),
        ("hostfile", "it is not there in homing; bjobs -l names the hosts"),
        ("Lp", NO_LICENSE),
        ("N", "normalised times are not there in homing; use -o cpu_used"),
        ("p0 p1 p2 p3 pe pei pi", "it is not there in homing; use -p"),
        ("plan", "plans are not there in homing; use -p"),
        ("prio", "priorities of jobs are not there in homing; leave it out"),
        ("psum", "sums are not there in homing; count the lines of bjobs -noheader -p"),
        ("rusage", "it is not there in homing; use -o 'cpu_used max_mem'"),
        ("script", "the script of a job is not shown; bjobs -l shows its command"),
        ("sla ss", NO_SLA),
        ("sum", "sums are not there in homing; bqueues and busers count jobs"),
        ("U", "advance reservations are not there in homing; leave it out"),
        ("UF", "the long form is folded at 79 columns; use -o"),
        ("WF WL WP", "estimates are not there in homing; leave it out"),
        ("x", "exceptions of jobs are not there in homing; leave it out"),
    ],
    ..PLAIN
};

const NO_PERIOD: &str = "jobs of a week are known and cannot be chosen by time; use bjobs -a -o 'jobid submit_time'";

/// `bhist`.
pub const BHIST: Grammar = Grammar {
    flags: &["a", "d", "l", "p", "r", "s", "w", "h", "V"],
    valued: &["app", "g", "J", "m", "n", "P", "q", "u"],
    noted: &[
        ("n", "there is one history, and all of it is searched"),
        ("w", "the table is not cut there and has no wide form"),
    ],
    refused: &[
        ("b t UF", "it is not there in homing; use -l"),
        ("C D S T", NO_PERIOD),
        ("e", "it is not there in homing; use -d"),
        ("f", "event files are not there in homing; leave it out"),
        ("G", NO_GROUP),
        ("hostfile", "it is not there in homing; bjobs -l names the hosts"),
        ("Lp", NO_LICENSE),
        ("N", "normalised times are not there in homing; use bjobs -o cpu_used"),
        ("sla", NO_SLA),
    ],
    ..PLAIN
};

/// `bacct`.
pub const BACCT: Grammar = Grammar {
    flags: &["d", "e", "l", "h", "V"],
    valued: &["app", "g", "J", "m", "P", "q", "u"],
    refused: &[
        ("b", "it is not there in homing; use bhist"),
        ("C D S", NO_PERIOD),
        ("f", "event files are not there in homing; leave it out"),
        ("Lp", NO_LICENSE),
        ("N", "normalised times are not there in homing; leave it out"),
        ("sla", NO_SLA),
        ("U", "advance reservations are not there in homing; leave it out"),
        ("w", "it is not there in homing; use bjobs -a -w"),
        ("x", "exceptions of jobs are not there in homing; leave it out"),
    ],
    ..PLAIN
};

/// `brequeue`.
pub const BREQUEUE: Grammar = Grammar {
    flags: &["a", "d", "e", "r", "h", "V"],
    valued: &["app", "g", "J", "m", "P", "q", "u"],
    refused: &[
        ("H", "it is not there in homing; bstop the job once it waits"),
        ("p", "what waits is in the queue; bbot puts it behind the others"),
    ],
    ..PLAIN
};

const NOT_CHANGED: &str = "it is not changed once the job was submitted; bkill it and bsub it again";

/// `bmod`.
pub const BMOD: Grammar = Grammar {
    flags: &["Mn", "Rn", "Wn", "wn", "h", "V"],
    valued: &["J", "M", "n", "q", "R", "W", "w"],
    refused: &[
        ("app b cwd E e g i m o P Z Zs", NOT_CHANGED),
        ("sp", "priorities of jobs are not there in homing; use btop, or bswitch"),
    ],
    ..PLAIN
};

/// `bswitch`.
pub const BSWITCH: Grammar = Grammar {
    refused: &[
        ("J m q", "it is not there in homing; name the jobs, or 0 for all of yours"),
        ("u", "it is not there in homing; name the jobs"),
    ],
    ..PLAIN
};

/// `btop` and `bbot`.
pub const BTOP: Grammar =
    Grammar { refused: &[("u", "jobs are put in order among those of their user; leave it out")], ..PLAIN };

/// `bwait`.
pub const BWAIT: Grammar =
    Grammar { valued: &["r", "t", "w"], noted: &[("r", "jobs are looked at as often as the queue allows")], ..PLAIN };

/// `bmgroup`.
pub const BMGROUP: Grammar = Grammar {
    flags: &["r", "w", "h", "V"],
    refused: &[
        ("cu", "compute units are not there in homing; leave it out"),
        ("cname l", "it is not there in homing; leave it out"),
    ],
    ..PLAIN
};

/// `bpeek`.
pub const BPEEK: Grammar = Grammar {
    flags: &["f", "h", "V"],
    valued: &["J", "q"],
    refused: &[("m", "it is not there in homing; name the job")],
    ..PLAIN
};

/// `bqueues`.
pub const BQUEUES: Grammar = Grammar {
    flags: &["json", "l", "noheader", "w", "h", "V"],
    valued: &["o"],
    refused: &[
        ("alloc", "it is not there in homing; leave it out"),
        ("m", "it is not there in homing; bqueues -l names the hosts of each queue"),
        ("r", "it is not there in homing; use -l"),
        ("u", "it is not there in homing; every user may use every queue"),
    ],
    ..PLAIN
};

/// `bhosts`.
pub const BHOSTS: Grammar = Grammar {
    flags: &["json", "l", "noheader", "w", "X", "h", "V"],
    valued: &["o", "R"],
    refused: &[
        ("a", "it is not there in homing; use lsload -l"),
        ("e", "it is not there in homing; leave it out"),
        ("gpu", "GPUs are not counted in homing; leave it out"),
        ("s", "shared resources are not there in homing; use lsload -l"),
        ("x", "exceptions of hosts are not there in homing; leave it out"),
    ],
    ..PLAIN
};

/// `lshosts`.
pub const LSHOSTS: Grammar = Grammar {
    flags: &["l", "w", "h", "V"],
    valued: &["R"],
    refused: &[
        ("a", "it is not there in homing; use lsload -l"),
        ("cname loc T", "it is not there in homing; leave it out"),
        ("gpu mig", "GPUs are not counted in homing; leave it out"),
        ("json o", "it is not there in homing; lshosts -w has each column"),
        ("s sl", "shared resources are not there in homing; use lsload -l"),
    ],
    ..PLAIN
};

/// `lsload`.
pub const LSLOAD: Grammar = Grammar {
    flags: &["l", "w", "h", "V"],
    valued: &["I", "n", "R"],
    refused: &[
        ("E N", "normalised load is not there in homing; leave it out"),
        ("gpu", "GPUs are not counted in homing; leave it out"),
        ("o", "it is not there in homing; use -I index:index"),
        ("s", "shared resources are not there in homing; use -l"),
    ],
    ..PLAIN
};

/// `lsrun`.
pub const LSRUN: Grammar = Grammar {
    flags: &["v", "h", "V"],
    valued: &["R", "m"],
    refused: &[
        ("L", "it is not there in homing; leave it out"),
        ("P", "a terminal is not there in homing's lsrun; use bsub -Is"),
        ("p", "it is not there in homing; use homing run --on ssh"),
        ("S", "it is not there in homing; use bsub -Is"),
    ],
    mixed: false,
    ..PLAIN
};

/// `badmin`, whose first operand is the action.
pub const BADMIN: Grammar = Grammar { valued: &["C"], ..PLAIN };

/// `lsadmin`, likewise.
pub const LSADMIN: Grammar = PLAIN;

/// `busers`.
pub const BUSERS: Grammar = Grammar { flags: &["w", "h", "V"], ..PLAIN };

/// `lsinfo`.
pub const LSINFO: Grammar = Grammar {
    flags: &["l", "w", "h", "V"],
    refused: &[
        ("m M", "homing does not distinguish models of hosts; lshosts"),
        ("r", "it is not there in homing; leave it out"),
        ("t", "types of hosts are those of lshosts"),
    ],
    ..PLAIN
};

/// `lsplace`.
pub const LSPLACE: Grammar = Grammar {
    valued: &["n", "R", "w"],
    refused: &[("L", "homing does not distinguish types of hosts; leave it out")],
    ..PLAIN
};

/// `lsmon`.
pub const LSMON: Grammar = Grammar {
    valued: &["I", "i", "n", "R"],
    refused: &[
        ("E N", "normalised load is not there in homing; leave it out"),
        ("L", "no log is written; lsmon > FILE"),
    ],
    ..PLAIN
};

/// `bugroup`.
pub const BUGROUP: Grammar = Grammar {
    flags: &["l", "r", "w", "h", "V"],
    noted: &[("l", "a group of users has a name and members, and no more")],
    ..PLAIN
};

/// The commands whose options are here, by name.
pub const ALL: &[(&str, &Grammar)] = &[
    ("bsub, iobsub", &BSUB),
    ("bjobs", &BJOBS),
    ("bhist", &BHIST),
    ("bacct", &BACCT),
    ("bkill, bstop, bresume", &BKILL),
    ("brequeue", &BREQUEUE),
    ("bmod", &BMOD),
    ("bswitch", &BSWITCH),
    ("btop, bbot", &BTOP),
    ("bwait", &BWAIT),
    ("bpeek", &BPEEK),
    ("bqueues", &BQUEUES),
    ("bhosts", &BHOSTS),
    ("busers", &BUSERS),
    ("bmgroup", &BMGROUP),
    ("bugroup", &BUGROUP),
    ("badmin", &BADMIN),
    ("lsadmin", &LSADMIN),
    ("lsload", &LSLOAD),
    ("lshosts", &LSHOSTS),
    ("lsinfo", &LSINFO),
    ("lsplace", &LSPLACE),
    ("lsmon", &LSMON),
    ("lsrun", &LSRUN),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn names(group: &'static str) -> impl Iterator<Item = &'static str> {
        group.split(' ')
    }

    fn table(command: &str, grammar: &Grammar) -> String {
        let note = |name: &str| {
            let of = grammar.noted.iter().find(|(group, _)| names(group).any(|n| n == name));
            of.map_or("taken".to_string(), |(_, what)| format!("taken: {what}"))
        };
        let flags = grammar.flags.iter().map(|name| (format!("`-{name}`"), note(name)));
        let valued = grammar.valued.iter().map(|name| (format!("`-{name} VALUE`"), note(name)));
        let refused = grammar.refused.iter().map(|(group, what)| {
            (names(group).map(|name| format!("`-{name}`")).collect::<Vec<_>>().join(", "), format!("refused: {what}"))
        });
        let rows: String =
            flags.chain(valued).chain(refused).map(|(names, what)| format!("| {names} | {what} |\n")).collect();
        format!("\n## {command}\n\n| option | here |\n|---|---|\n{rows}")
    }

    #[test]
    fn the_page_of_options_is_the_grammar() {
        let head = "# Options of LSF's commands\n\nGenerated; `UPDATE=1 cargo test -p homing-lsf grammar`. A refused option \
                    ends the command with this line.\n";
        let page = ALL.iter().fold(head.to_string(), |page, (command, grammar)| page + &table(command, grammar));
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap().join("docs/lsf-options.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        assert!(
            std::fs::read_to_string(&file).unwrap_or_default() == page,
            "UPDATE=1 cargo test -p homing-lsf grammar"
        );
    }

    #[test]
    fn an_option_is_in_one_list() {
        for (command, grammar) in ALL {
            let refused = grammar.refused.iter().flat_map(|(group, _)| names(group));
            let all: Vec<&str> = grammar.flags.iter().chain(grammar.valued).copied().chain(refused).collect();
            for (at, name) in all.iter().enumerate() {
                assert!(!all[..at].contains(name), "{command} -{name}");
            }
        }
    }
}
