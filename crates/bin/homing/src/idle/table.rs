//! The table of options that do nothing beside others.

/// The condition under which the options of a row do nothing.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// Beside one of these options.
    With(&'static [&'static str]),
    /// Without any of these options.
    Without(&'static [&'static str]),
    /// If this option has one of these values.
    Is(&'static str, &'static [&'static str]),
    /// If this option has this number of values.
    Counts(&'static str, usize),
}

/// Options of a command, and the condition under which they do nothing.
pub struct IdleOptions {
    /// The commands. The words of a command have blanks between them.
    pub commands: &'static [&'static str],
    /// The names of their arguments in the grammar.
    pub options: &'static [&'static str],
    /// The conditions, all of which must hold.
    pub when: &'static [When],
    /// The replacement, or the reason why there is none.
    pub instead: &'static str,
}

use When::{Counts, Is, With, Without};

const RUNS: &[&str] = &["run", "plan"];
/// Options that name the hosts of `check`, `exec` and others.
const TARGETS: &[&str] = &["hosts", "exclude", "all", "group", "exclude_group", "hostfile"];
/// Options that make commands of words and input; a task file has the commands.
const INPUT: &[&str] = &[
    "words",
    "arg_file",
    "null",
    "delimiter",
    "max_args",
    "trim",
    "quote",
    "colsep",
    "shuf",
    "no_run_if_empty",
    "max_replace_args",
    "max_lines",
    "context_replace",
    "many",
    "xargs",
    "max_chars",
    "link",
    "header",
    "skip_first_line",
    "process_slot_var",
    "arg_sep",
    "arg_file_sep",
    "plus",
    "rpl",
    "replace",
    "extensionreplace",
    "basenamereplace",
    "dirnamereplace",
    "basenameextensionreplace",
    "seqreplace",
    "slotreplace",
];
/// Options that are passed on to a batch system.
const BATCH: &[&str] =
    &["partition", "account", "qos", "time", "reservation", "cpus_per_task", "mem_per_task", "batch_arg"];
const OF_A_BATCH: &[&str] = &[
    "words",
    "output",
    "error",
    "stdin",
    "after",
    "slots",
    "ptile",
    "nodes",
    "ppn",
    "net",
    "near",
    "place",
    "timeout",
    "mem",
    "host",
    "wait",
    "queue",
    "quiet",
    "account",
    "qos",
    "slurm_arg",
];

/// All rows.
pub const TABLE: &[IdleOptions] = &[
    IdleOptions {
        commands: RUNS,
        options: INPUT,
        when: &[With(&["tasks"])],
        instead: "each line of a task file has its own command",
    },
    IdleOptions {
        commands: RUNS,
        options: &["near", "output", "workdir"],
        when: &[With(&["tasks"])],
        instead: "'inputs', 'outputs' and 'cwd' of a line in the task file",
    },
    IdleOptions {
        commands: RUNS,
        options: BATCH,
        when: &[Is("on", &["local", "ssh"])],
        instead: "--on slurm or --on lsf; 'cpus' and 'memory' of a line in a task file hold everywhere",
    },
    IdleOptions {
        commands: RUNS,
        options: BATCH,
        when: &[With(&["sshlogin", "sshloginfile"])],
        instead: "--on slurm or --on lsf, without --sshlogin",
    },
    IdleOptions {
        commands: RUNS,
        options: &["nodes"],
        when: &[Is("on", &["local", "ssh"]), Without(&["ppn"])],
        instead: "--hosts NODESET; with --ppn it is the number of hosts of a task",
    },
    IdleOptions {
        commands: RUNS,
        options: &["sshlogin", "sshloginfile"],
        when: &[Is("on", &["local", "slurm"])],
        instead: "--on ssh",
    },
    IdleOptions {
        commands: RUNS,
        options: &["skip_newer"],
        when: &[Without(&["output", "tasks"])],
        instead: "--output PATH names the files that each task writes",
    },
    IdleOptions {
        commands: RUNS,
        options: &["resource"],
        when: &[Without(&["tasks", "gpus_per_task"])],
        instead: "--gpus-per-task N, or 'resources' of a line in a task file, uses it",
    },
    IdleOptions {
        commands: RUNS,
        options: &["container"],
        when: &[With(&["ppn"])],
        instead: "the command itself: homing run --ppn N --nodes N 'podman run ... IMAGE COMMAND'",
    },
    IdleOptions {
        commands: RUNS,
        options: &["gpus_per_task"],
        when: &[With(&["ppn"])],
        instead: "homing sub --nodes N --slurm-arg=--gres=gpu:N on Slurm; the queue counts them only for jobs on one \
            host",
    },
    IdleOptions { commands: &["plan"], options: &["on_exit"], when: &[Without(&["gateway"])], instead: "homing run" },
    IdleOptions { commands: &["run"], options: &["on_exit"], when: &[With(&["dry_run"])], instead: "nothing runs" },
    IdleOptions {
        commands: RUNS,
        options: &["colsep", "trim", "null", "delimiter", "shuf", "link"],
        when: &[With(&["pipe", "pipepart"])],
        instead: "commands read blocks unchanged from standard input; --recend TEXT sets where to cut them",
    },
    IdleOptions { commands: &["run"], options: &["json"], when: &[With(&["dry_run"])], instead: "homing plan --json" },
    IdleOptions {
        commands: &["plan"],
        options: &["dry_run"],
        when: &[Without(&["gateway"])],
        instead: "a plan never runs commands; homing run --dry-run prints them",
    },
    IdleOptions {
        commands: &["exec"],
        options: &["outdir", "errdir", "no_label", "regroup", "color", "progress"],
        when: &[With(&["json"])],
        instead: "the JSON document holds the host and both outputs",
    },
    IdleOptions { commands: &["exec"], options: &["groupbase"], when: &[Without(&["regroup"])], instead: "-r -G" },
    IdleOptions {
        commands: &["exec"],
        options: &["regroup"],
        when: &[Without(&["gather", "gather_all", "line_mode", "diff"])],
        instead: "-b -r",
    },
    IdleOptions {
        commands: &["exec"],
        options: &["user", "ssh_options", "connect_timeout", "persist", "tree"],
        when: &[Is("worker", &["exec"])],
        instead: "-R exec runs the command here and connects to no host",
    },
    IdleOptions {
        commands: &["exec"],
        options: &["no_label"],
        when: &[With(&["diff"])],
        instead: "-b -N prints outputs without host names",
    },
    IdleOptions {
        commands: &["push", "pull"],
        options: &["verify"],
        when: &[With(&["dry_run"])],
        instead: "--checksum compares by content before it copies",
    },
    IdleOptions {
        commands: &["push", "pull"],
        options: &["verbose"],
        when: &[With(&["json"])],
        instead: "'changed' in the JSON document is the number of changed files",
    },
    IdleOptions {
        commands: &["nodeset"],
        options: &[
            "fold",
            "expand",
            "count",
            "regroup",
            "separator",
            "output_format",
            "autostep",
            "axis",
            "split",
            "contiguous",
        ],
        when: &[With(&["list", "list_all", "groupsources"])],
        instead: "-ll lists hosts of groups, -lll counts them",
    },
    IdleOptions {
        commands: &["nodeset"],
        options: &[
            "list",
            "list_all",
            "exclude",
            "intersection",
            "xor",
            "all",
            "group",
            "groupsource",
            "rangeset",
            "slice",
            "pick",
            "json",
            "nodesets",
        ],
        when: &[With(&["groupsources"])],
        instead: "it lists only the sources",
    },
    IdleOptions {
        commands: &["nodeset"],
        options: &["separator"],
        when: &[With(&["json"])],
        instead: "'nodes' in the JSON document is a list",
    },
    IdleOptions {
        commands: &["nodeset"],
        options: &["rangeset"],
        when: &[With(&["all", "group", "list", "list_all"])],
        instead: "groups hold names of nodes, not numbers",
    },
    IdleOptions {
        commands: &["hosts"],
        options: &["engine"],
        when: &[Without(&["prometheus"])],
        instead: "homing jobs --engine",
    },
    IdleOptions {
        commands: &["where"],
        options: &["null"],
        when: &[Without(&["files_from"])],
        instead: "--files-from FILE",
    },
    IdleOptions {
        commands: &["report"],
        options: &["cluster", "lab"],
        when: &[Without(&["cost"])],
        instead: "--cost reads prices from it",
    },
    IdleOptions {
        commands: &["report"],
        options: &["json", "cost"],
        when: &[Is("html", &["-"])],
        instead: "write the page to a file: --html FILE",
    },
    IdleOptions {
        commands: &["usage"],
        options: &["engine"],
        when: &[Without(&["jobs"])],
        instead: "--jobs adds up jobs too",
    },
    IdleOptions {
        commands: &["usage"],
        options: &["json"],
        when: &[With(&["prometheus"])],
        instead: "give one of them",
    },
    IdleOptions {
        commands: &["top"],
        options: &["engine", "cluster", "lab"],
        when: &[Without(&["all", "hosts", "group", "hostfile", "exclude", "exclude_group", "since"])],
        instead: "--all or -w shows hosts and jobs",
    },
    IdleOptions {
        commands: &["sub"],
        options: OF_A_BATCH,
        when: &[With(&["again"])],
        instead: "a repeated job keeps its options; homing wait ID waits for it",
    },
    IdleOptions {
        commands: &["check"],
        options: TARGETS,
        when: &[With(&["explain", "unmute", "slurm_health"])],
        instead: "--explain and --unmute concern all hosts, --slurm-health only this one",
    },
    IdleOptions {
        commands: &["check"],
        options: &["volume", "quick", "deep", "only", "deadline", "json", "prometheus", "tree"],
        when: &[With(&["explain", "mute", "unmute"])],
        instead: "nothing is checked with it",
    },
    IdleOptions {
        commands: &["check"],
        options: &["mute", "unmute", "slurm_health"],
        when: &[With(&["explain"])],
        instead: "give one of them",
    },
    IdleOptions {
        commands: &["check"],
        options: &["unmute", "slurm_health"],
        when: &[With(&["mute"])],
        instead: "give one of them",
    },
    IdleOptions {
        commands: &["check"],
        options: &["slurm_health"],
        when: &[With(&["unmute"])],
        instead: "give one of them",
    },
    IdleOptions {
        commands: &["check"],
        options: &["quick", "prometheus", "tree"],
        when: &[With(&["slurm_health"])],
        instead: "with --slurm-health, Slurm shows the state of the node",
    },
    IdleOptions {
        commands: &["up"],
        options: &["lab"],
        when: &[With(&["resume"])],
        instead: "the interrupted set-up has recorded its lab",
    },
    IdleOptions {
        commands: &["up"],
        options: &["no_check"],
        when: &[With(&["dry_run", "undo", "diff"])],
        instead: "nothing is checked with it",
    },
    IdleOptions {
        commands: &["tune net"],
        options: &["seconds", "not_all"],
        when: &[With(&["undo"])],
        instead: "nothing is measured with it",
    },
    IdleOptions {
        commands: &["topology"],
        options: &["sudo"],
        when: &[With(&["measure"])],
        instead: "lldpd is not queried with it",
    },
    IdleOptions {
        commands: &["bench volume"],
        options: &["server_block", "tune_sizes", "tune_connections", "apply"],
        when: &[Without(&["tune"])],
        instead: "--tune nfs tries these options",
    },
    IdleOptions {
        commands: &["bench volume"],
        options: &[
            "path",
            "hosts",
            "exclude",
            "all",
            "group",
            "exclude_group",
            "hostfile",
            "drop_on",
            "clients",
            "bs",
            "size",
            "in_files",
            "random_size",
            "files",
            "copies",
            "only",
            "trials",
            "link",
            "label",
            "json",
            "save",
            "tune",
            "sudo",
            "cluster",
            "lab",
        ],
        when: &[With(&["compare"])],
        instead: "nothing is measured with it; --html draws both results",
    },
    IdleOptions {
        commands: &["bench net"],
        options: TARGETS,
        when: &[Counts("curve", 2)],
        instead: "--curve A B names its two hosts",
    },
    IdleOptions {
        commands: &["volume list", "volume status", "volume balance-report"],
        options: &["dry_run", "yes"],
        when: &[],
        instead: "the command changes nothing",
    },
    IdleOptions {
        commands: &["runs"],
        options: &["yes"],
        when: &[Without(&["prune"])],
        instead: "only --prune removes runs",
    },
    IdleOptions {
        commands: &["hosts"],
        options: &["yes"],
        when: &[Without(&["schedule", "trust"])],
        instead: "only --schedule and --trust change anything",
    },
];
