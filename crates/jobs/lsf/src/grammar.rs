//! The options of each command of LSF in homing. An option that homing lacks is refused with its replacement: if it
//! were ignored, the command would do something else than the user wants. An option that only mails or accounts gets
//! a note.

use crate::options::Grammar;

const NO_MAIL: &str = "no mail is sent; the report is at the end of the -o file";
const NO_LIMIT: &str = "homing has no such limit; use ulimit in the job's command";
const NO_GROUP: &str = "homing has no groups of users; leave it out";
const NO_SLA: &str = "homing has no service classes; use a queue, -q";
const NO_LICENSE: &str = "homing has no licenses; leave it out";
const NO_CHECKPOINT: &str = "homing has no checkpoints; leave it out";
const IGNORED_GROUP: &str = "homing has no groups of users; the job is its user's";
const NO_POWER: &str = "not supported by homing; use -R";

/// The base of the other grammars.
const PLAIN: Grammar = Grammar { flags: &["h", "V"], valued: &[], noted: &[], refused: &[], mixed: true };

/// `bsub`, and the `#BSUB` lines of its scripts.
pub const BSUB: Grammar = Grammar {
    flags: &["B", "H", "I", "Ip", "Is", "IS", "ISp", "ISs", "K", "N", "Nd", "Ne", "r", "rn", "x", "Zs", "h", "V"],
    valued: &[
        "app", "c", "cwd", "E", "Ep", "e", "eo", "env", "G", "g", "gpu", "i", "is", "J", "L", "M", "m", "n", "network",
        "o", "oo", "P", "q", "R", "u", "W", "We", "w",
    ],
    noted: &[
        ("B N Nd Ne u", NO_MAIL),
        ("c", "homing has no limit of the processor time of one job; use ulimit -t in its command, or -W"),
        ("G", IGNORED_GROUP),
        ("r rn", "a job that is interrupted becomes LOST; homing sub --again ID runs it again"),
        ("We", "homing has no estimates; -W is the limit"),
        ("Zs", "homing keeps a script from standard input; a script named in the command is read when the job starts"),
    ],
    refused: &[
        ("a", "homing has no application checks (esub); use -app or -env"),
        ("alloc_flags cn_cu cn_mem core_isolation csm freq jobaff jsm ln_mem ln_slots smt", NO_POWER),
        ("b", "homing has no begin time; use -H and bresume, or at(1)"),
        ("C D F hl p S T ul v", NO_LIMIT),
        ("clusters", "homing knows no other clusters; use -m"),
        ("data stage", "homing does not stage data; iobsub sends a job to its data"),
        ("datagrp", NO_GROUP),
        ("eptl ptl", "homing has no pending limit; use bkill"),
        ("ext", "homing has no external schedulers; leave it out"),
        ("f", "homing does not copy files; use cp in the job's command"),
        ("hostfile", "homing takes no file of hosts; use -m"),
        ("IX XF", "homing does not forward X; use ssh -X"),
        ("Jd", "homing keeps no description; use -J"),
        ("jsdl", "homing reads no JSDL files; use #BSUB lines"),
        ("k mig", NO_CHECKPOINT),
        ("Lp", NO_LICENSE),
        ("nnodes", "homing does not count nodes; use -n, or homing sub --slurm-arg=--nodes=N"),
        ("notify", NO_MAIL),
        ("outdir", "homing makes no output directory; use mkdir, and -o DIR/%J"),
        ("pack", "homing has no packs of jobs; use an array, -J 'name[1-9]'"),
        ("Q", "homing does not requeue by exit status; use homing run --retries"),
        ("rnc tn UF", "not supported by homing; leave it out"),
        ("s", "homing has no signal for a queue's window; leave it out"),
        ("sla", NO_SLA),
        ("sp", "homing has no priorities of jobs; use a queue of higher priority, -q"),
        ("t", "homing has no termination deadline; use -W"),
        ("ti", "not supported by homing; a job whose -w can never hold stays pending: bkill it"),
        ("U", "homing has no advance reservations; leave it out"),
        ("wa wt", "homing has no action before the end; use trap in the job's command"),
        ("yaml json", "not supported by homing; use #BSUB lines"),
    ],
    mixed: false,
};

const NO_STAT: &str = "not supported by homing; bjobs -noheader -o jobid with -p, -r or -s lists the jobs to name";
const NAME_THEM: &str = "not supported by homing; name the jobs, or 0 for all of yours";

/// `bkill`.
pub const BKILL: Grammar = Grammar {
    flags: &["r", "h", "V"],
    valued: &["app", "g", "J", "m", "P", "q", "s", "u"],
    noted: &[("r", "ends the jobs as -s KILL does; homing forgets no job before it has ended")],
    refused: &[
        ("a d R", NAME_THEM),
        ("b", "not supported by homing; leave it out"),
        ("C", "homing keeps no reason; leave it out"),
        ("l", "not supported by homing; kill -l lists the signals"),
        ("sla", NO_SLA),
        ("stat", NO_STAT),
    ],
    ..PLAIN
};

/// `bstop` and `bresume`.
pub const BSTOP: Grammar = Grammar {
    valued: &["app", "g", "J", "m", "P", "q", "u"],
    refused: &[("a d R", NAME_THEM), ("C", "homing keeps no reason; leave it out"), ("sla", NO_SLA), ("stat", NO_STAT)],
    ..PLAIN
};

/// `bgadd`.
pub const BGADD: Grammar = Grammar {
    refused: &[
        ("L", "homing has no limit of the jobs of a group; use the limit of an array, -J 'name[1-9]%4'"),
        ("sla", NO_SLA),
    ],
    ..PLAIN
};

/// `lsid`.
pub const LSID: Grammar = PLAIN;

/// `lsclusters`.
pub const LSCLUSTERS: Grammar = Grammar { flags: &["l", "w", "h", "V"], ..PLAIN };

/// `bparams`.
pub const BPARAMS: Grammar = Grammar { flags: &["a", "l", "h", "V"], ..PLAIN };

/// `bjobs`.
pub const BJOBS: Grammar = Grammar {
    flags: &["A", "a", "d", "json", "l", "noheader", "p", "r", "s", "UF", "W", "w", "X", "h", "V"],
    valued: &["app", "g", "J", "m", "o", "P", "q", "u"],
    refused: &[
        ("aff aps cname hms noq pac ti", "not supported by homing; leave it out"),
        ("data", "homing does not stage data; leave it out"),
        ("env", "the environment of a job is not shown; print it in the job"),
        ("fwd", "homing knows no other clusters; leave it out"),
        ("G", NO_GROUP),
        ("gpu", "GPUs of jobs are not shown; leave it out"),
        ("hostfile", "not supported by homing; bjobs -l names the hosts"),
        ("Lp", NO_LICENSE),
        ("N", "homing has no normalised times; use -o cpu_used"),
        ("p0 p1 p2 p3 pe pei pi", "not supported by homing; use -p"),
        ("plan", "homing has no plans; use -p"),
        ("prio", "homing has no priorities of jobs; leave it out"),
        ("psum", "homing has no sums; count the lines of bjobs -noheader -p"),
        ("rusage", "not supported by homing; use -o 'cpu_used max_mem'"),
        ("script", "the script of a job is not shown; bjobs -l shows its command"),
        ("sla ss", NO_SLA),
        ("sum", "homing has no sums; bqueues and busers count jobs"),
        ("U", "homing has no advance reservations; leave it out"),
        ("WF WL WP", "homing has no estimates; leave it out"),
        ("x", "homing has no exceptions of jobs; leave it out"),
    ],
    ..PLAIN
};

const NO_PERIOD: &str =
    "homing knows the jobs of one week and cannot select them by time; use bjobs -a -o 'jobid submit_time'";

/// `bhist`.
pub const BHIST: Grammar = Grammar {
    flags: &["a", "d", "l", "p", "r", "s", "UF", "w", "h", "V"],
    valued: &["app", "g", "J", "m", "n", "P", "q", "u"],
    noted: &[
        ("n", "homing has one history and searches all of it"),
        ("w", "the table is never cut, and has no wide form"),
    ],
    refused: &[
        ("b t", "not supported by homing; use -l"),
        ("C D S T", NO_PERIOD),
        ("e", "not supported by homing; use -d"),
        ("f", "homing has no event files; leave it out"),
        ("G", NO_GROUP),
        ("hostfile", "not supported by homing; bjobs -l names the hosts"),
        ("Lp", NO_LICENSE),
        ("N", "homing has no normalised times; use bjobs -o cpu_used"),
        ("sla", NO_SLA),
    ],
    ..PLAIN
};

/// `bacct`.
pub const BACCT: Grammar = Grammar {
    flags: &["d", "e", "l", "h", "V"],
    valued: &["app", "g", "J", "m", "P", "q", "u"],
    refused: &[
        ("b", "not supported by homing; use bhist"),
        ("C D S", NO_PERIOD),
        ("f", "homing has no event files; leave it out"),
        ("Lp", NO_LICENSE),
        ("N", "homing has no normalised times; leave it out"),
        ("sla", NO_SLA),
        ("U", "homing has no advance reservations; leave it out"),
        ("w", "not supported by homing; use bjobs -a -w"),
        ("x", "homing has no exceptions of jobs; leave it out"),
    ],
    ..PLAIN
};

/// `brequeue`.
pub const BREQUEUE: Grammar = Grammar {
    flags: &["a", "d", "e", "r", "h", "V"],
    valued: &["app", "g", "J", "m", "P", "q", "u"],
    refused: &[
        ("H", "not supported by homing; bstop the job once it waits"),
        ("p", "a waiting job is in the queue; bbot moves it behind the others"),
    ],
    ..PLAIN
};

const NOT_CHANGED: &str = "a submitted job keeps it; bkill the job and bsub it again";

/// `bmod`.
pub const BMOD: Grammar = Grammar {
    flags: &["Mn", "Rn", "Wn", "wn", "h", "V"],
    valued: &["J", "M", "n", "q", "R", "W", "w"],
    refused: &[
        ("app b cwd E e g i m o P Z Zs", NOT_CHANGED),
        ("sp", "homing has no priorities of jobs; use btop, or bswitch"),
    ],
    ..PLAIN
};

/// `bswitch`.
pub const BSWITCH: Grammar = Grammar {
    refused: &[
        ("J m q", "not supported by homing; name the jobs, or 0 for all of yours"),
        ("u", "not supported by homing; name the jobs"),
    ],
    ..PLAIN
};

/// `btop` and `bbot`.
pub const BTOP: Grammar =
    Grammar { refused: &[("u", "jobs are ordered only among the jobs of their user; leave it out")], ..PLAIN };

/// `bwait`.
pub const BWAIT: Grammar =
    Grammar { valued: &["r", "t", "w"], noted: &[("r", "homing checks jobs as often as the queue allows")], ..PLAIN };

/// `bmgroup`.
pub const BMGROUP: Grammar = Grammar {
    flags: &["r", "w", "h", "V"],
    refused: &[
        ("cu", "homing has no compute units; leave it out"),
        ("cname l", "not supported by homing; leave it out"),
    ],
    ..PLAIN
};

/// `bpeek`.
pub const BPEEK: Grammar = Grammar {
    flags: &["f", "h", "V"],
    valued: &["J", "q"],
    refused: &[("m", "not supported by homing; name the job")],
    ..PLAIN
};

/// `bqueues`.
pub const BQUEUES: Grammar = Grammar {
    flags: &["json", "l", "noheader", "w", "h", "V"],
    valued: &["o"],
    refused: &[
        ("alloc", "not supported by homing; leave it out"),
        ("m", "not supported by homing; bqueues -l names the hosts of each queue"),
        ("r", "not supported by homing; use -l"),
        ("u", "not supported by homing; every user may use every queue"),
    ],
    ..PLAIN
};

/// `bhosts`.
pub const BHOSTS: Grammar = Grammar {
    flags: &["json", "l", "noheader", "w", "X", "h", "V"],
    valued: &["o", "R"],
    refused: &[
        ("a", "not supported by homing; use lsload -l"),
        ("e", "not supported by homing; leave it out"),
        ("gpu", "use homing hosts, which shows GPUs"),
        ("s", "homing has no shared resources; use lsload -l"),
        ("x", "homing has no exceptions of hosts; leave it out"),
    ],
    ..PLAIN
};

/// `lshosts`.
pub const LSHOSTS: Grammar = Grammar {
    flags: &["l", "w", "h", "V"],
    valued: &["R"],
    refused: &[
        ("a", "not supported by homing; use lsload -l"),
        ("cname loc T", "not supported by homing; leave it out"),
        ("gpu mig", "use homing hosts, which shows GPUs"),
        ("json o", "not supported by homing; lshosts -w has each column"),
        ("s sl", "homing has no shared resources; use lsload -l"),
    ],
    ..PLAIN
};

/// `lsload`.
pub const LSLOAD: Grammar = Grammar {
    flags: &["l", "w", "h", "V"],
    valued: &["I", "n", "R"],
    refused: &[
        ("E N", "homing has no normalised load; leave it out"),
        ("gpu", "use homing hosts, which shows GPUs and their use"),
        ("o", "not supported by homing; use -I index:index"),
        ("s", "homing has no shared resources; use -l"),
    ],
    ..PLAIN
};

/// `lsrun`.
pub const LSRUN: Grammar = Grammar {
    flags: &["v", "h", "V"],
    valued: &["R", "m"],
    refused: &[
        ("L", "not supported by homing; leave it out"),
        ("P", "homing's lsrun has no terminal; use bsub -Is"),
        ("p", "not supported by homing; use homing run --on ssh"),
        ("S", "not supported by homing; use bsub -Is"),
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
        ("m M", "homing does not distinguish models of hosts; use lshosts"),
        ("r", "not supported by homing; leave it out"),
        ("t", "lshosts shows the types of hosts"),
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
    refused: &[("E N", "homing has no normalised load; leave it out"), ("L", "homing writes no log; use lsmon > FILE")],
    ..PLAIN
};

/// `bugroup`.
pub const BUGROUP: Grammar = Grammar {
    flags: &["l", "r", "w", "h", "V"],
    noted: &[("l", "a group of users has only a name and members")],
    ..PLAIN
};

/// The commands whose options are here, by name.
pub const ALL: &[(&str, &Grammar)] = &[
    ("bsub, iobsub", &BSUB),
    ("bjobs", &BJOBS),
    ("bhist", &BHIST),
    ("bacct", &BACCT),
    ("bkill", &BKILL),
    ("bstop, bresume", &BSTOP),
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
    ("bgadd", &BGADD),
    ("bparams", &BPARAMS),
    ("badmin", &BADMIN),
    ("lsadmin", &LSADMIN),
    ("lsload", &LSLOAD),
    ("lshosts", &LSHOSTS),
    ("lsinfo", &LSINFO),
    ("lsplace", &LSPLACE),
    ("lsmon", &LSMON),
    ("lsrun", &LSRUN),
    ("lsid", &LSID),
    ("lsclusters", &LSCLUSTERS),
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
        let head = "# Options of LSF's commands\n\nGenerated; `make pages`. A refused option \
                    ends the command with this line.\n";
        let page = ALL.iter().fold(head.to_string(), |page, (command, grammar)| page + &table(command, grammar));
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).unwrap().join("docs/lsf-options.md");
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        assert!(
            std::fs::read_to_string(&file).unwrap_or_default() == page,
            "docs/lsf-options.md is not the grammar of this file; `make pages` writes it"
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
