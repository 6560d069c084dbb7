//! Environment variables, files and exit statuses of the commands: the rows of help and man pages. `docs/formats.md`
//! has the details.

/// One row: a name, the commands that it concerns (none: all), and its meaning.
pub struct Fact {
    pub name: &'static str,
    of: &'static [&'static str],
    pub meaning: &'static str,
}

const fn fact(name: &'static str, of: &'static [&'static str], meaning: &'static str) -> Fact {
    Fact { name, of, meaning }
}

const RAN: &[&str] = &["run", "resume"];
const RUNS: &[&str] = &["run", "make", "resume", "runs", "report", "top", "usage", "advise"];
const JOBS: &[&str] = &["sub", "jobs", "kill", "peek", "wait", "lsf", "top", "usage"];
const HOSTS: &[&str] = &[
    "run", "plan", "resume", "hosts", "exec", "push", "pull", "check", "make", "on", "volume", "snapshot", "nodeset",
    "up", "down", "cache", "usage", "top", "advise", "power",
];
const SSH: &[&str] = &[
    "run", "plan", "resume", "hosts", "check", "make", "on", "volume", "snapshot", "up", "down", "cache", "top",
    "usage", "power",
];

/// Commands whose lines are broken at blanks, and coloured on a terminal.
const SHOWN: &[&str] = &["run", "resume", "report", "runs", "usage", "hosts", "check"];

/// Exit statuses.
pub const STATUSES: &[Fact] = &[
    fact("0", &[], "The command succeeded."),
    fact("1 to 100", RAN, "Number of failed tasks; 101: more than 100."),
    fact("the job's own", &["sub", "wait"], "The status of the job (sub: with -K), 128+N if signal N ended it."),
    fact("1", &["exec"], "The command failed on a host (-S: its own status)."),
    fact("1", &["push", "pull"], "Some files could not be copied."),
    fact("1", &["topology"], "The switch of a host is not known, or --diff found differences."),
    fact("1", &["bench net"], "Something is slow, or could not be measured."),
    fact("1", &["tune net"], "A host refused a setting, or lost its connection by one and undid it."),
    fact("1, 2, 3", &["check"], "1: warnings; 2: errors; 3: a host did not answer, or only in part."),
    fact("1", &["up"], "All steps succeeded, but homing check or --diff found something."),
    fact(
        "1",
        &["snapshot"],
        "Some of the source could not be read; diff: there are differences; restore: files that differ were left as \
         they are.",
    ),
    fact("124", &["exec"], "The command did not end in time on a host (-S: 255)."),
    fact("124", &["push", "pull"], "A host did not end in time."),
    fact("70", &[], "A fault of homing itself; a run can be resumed."),
    fact("128+N", &["run", "resume", "make"], "Signal N left tasks undone: 130 SIGINT, 143 SIGTERM, 129 SIGHUP."),
    fact("141", RAN, "The reader of the output has closed it (| head)."),
    fact("make's own", &["make"], "The exit status of make."),
    fact("the command's own", &["on", "lab exec"], "The exit status of the command."),
    fact("254", &[], "A host, a file system or a program that homing needs failed."),
    fact("255", &[], "The request is wrong: options, host names, unreadable input."),
];

/// Environment variables that are read.
pub const VARIABLES: &[Fact] = &[
    fact("HOMING_RUNS", RUNS, "Folder of the runs' journals."),
    fact("HOMING_SHELL", &["run", "plan"], "Shell for command lines, before PARALLEL_SHELL and SHELL."),
    fact("HOMING_CLUSTER", HOSTS, "Cluster file."),
    fact("HOMING_CONFIG", &["run", "plan"], "Config file; empty: none."),
    fact("HOMING_SSH", SSH, "ssh with its options, quoted as in a shell."),
    fact("HOMING_HOSTS", &["on"], "Hosts of `homing on`, as a node set."),
    fact("HOMING_ENGINE", JOBS, "Queue of the jobs: local or slurm."),
    fact("HOMING_QUEUE", JOBS, "Folder of the jobs of this machine; /var/tmp otherwise."),
    fact(
        "HOMING_VOLUMES",
        &["volume", "snapshot", "check", "up", "down", "advise"],
        "Folder of the records of volumes.",
    ),
    fact("HOMING_POWER", &["power", "run", "hosts", "check"], "File of the hosts that are switched off."),
    fact(
        "HOMING_WEBHDFS",
        &["run", "plan", "resume", "where", "make", "sub"],
        "HOST:PORT of WebHDFS, for hdfs paths whose NameNode is elsewhere.",
    ),
    fact("COLUMNS", SHOWN, "Width of lines; default: the width of the terminal, no limit in a file or a pipe."),
    fact("NO_COLOR", SHOWN, "No colours on a terminal."),
    fact("TZ", &["runs", "jobs", "lsf"], "Time zone of the times that are shown."),
    fact("TMPDIR", &["run", "exec"], "Folder for output that does not fit into memory."),
];

/// Files that are read or written.
pub const FILES: &[Fact] = &[
    fact(
        "./cluster.toml, ~/.config/homing/cluster.toml, /etc/homing/cluster.toml",
        HOSTS,
        "Hosts, groups, slots, queues and snapshots.",
    ),
    fact("~/.config/homing/config.toml", &["run", "plan"], "Defaults of options, below [run]: quiet = true, jobs = 8."),
    fact("/etc/clustershell/groups.conf", HOSTS, "ClusterShell's groups, @GROUP."),
    fact("~/.local/state/homing/runs", RUNS, "A folder for each run, with its journal."),
    fact(
        "~/.local/state/homing/volumes",
        &["volume", "up", "down"],
        "Records of volumes, and of changes that were interrupted.",
    ),
    fact(
        "~/.local/state/homing/clusters",
        &["volume", "up", "down", "check"],
        "The same, and mutes, for clusters with an ssh configuration of their own (--lab, HOMING_SSH='ssh -F FILE').",
    ),
    fact("~/.local/state/homing/up", &["up", "down"], "Hosts that were set up, and set-ups that were interrupted."),
    fact("/var/lib/homing/up", &["up", "down"], "On each host: journal of the changes, for the undo."),
    fact("~/.local/state/homing/mutes.json", &["check"], "Muted codes, each with its end and reason."),
    fact(
        "/var/lib/homing/power.json, ~/.local/state/homing/power.json",
        &["power"],
        "Hosts that root and this user have switched off.",
    ),
    fact("/var/tmp", JOBS, "Jobs of this machine, a folder for each user."),
    fact("/var/lib/homing/labs", &["lab"], "Labs that are up."),
    fact("~/.cache/homing", &["run", "plan", "resume"], "On a host of a run: the worker's program."),
];

/// Returns the rows that concern a command, by its path. All rows concern the program itself.
pub fn of(path: &str, facts: &'static [Fact]) -> impl Iterator<Item = &'static Fact> {
    let path = path.to_string();
    facts.iter().filter(move |fact| {
        let first = path.split(' ').next().unwrap_or_default();
        path == "homing" || fact.of.is_empty() || fact.of.iter().any(|c| *c == path || *c == first)
    })
}

/// Returns the variables of a command as a section of its help.
pub fn as_help(path: &str) -> Option<String> {
    let rows: Vec<String> = of(path, VARIABLES).map(|f| format!("  {:14}  {}", f.name, f.meaning)).collect();
    (!rows.is_empty()).then(|| format!("Environment:\n{}", rows.join("\n")))
}
