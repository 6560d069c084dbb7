//! The options of `homing run`: GNU parallel's names and meaning where it has them.

use crate::cluster::ClusterArgs;
use crate::cmd::tree::width;
use crate::nodes::Nodes;
use clap::{Args as _, FromArgMatches};
use homing_dispatch::Container;
use homing_launch::WIDTH;
use homing_model::Failure;
use std::ffi::OsString;
use std::path::PathBuf;

const HOSTS: &str = "Hosts";
const INPUT: &str = "Input";
const DATA: &str = "Data";
const OUTPUT: &str = "Output";
const SHOWN: &str = "Reporting";
const LIMITS: &str = "Failures and limits";

/// Options of `homing run` and `homing plan`.
#[derive(clap::Args, Clone, Debug)]
// The command line wins over the user's config file, whose words come first.
#[command(infer_long_args = true, args_override_self = true)]
pub struct Args {
    /// Where tasks run. `local`: this machine. `ssh`: the hosts of --hosts or cluster.toml, else the hosts that hold
    /// the data. `slurm`, `lsf`: workers that the batch system grants, next to the data first. `auto`: ssh when hosts are
    /// given, else the batch system that answers, else local
    #[arg(help_heading = HOSTS, long, value_name = "ENGINE", default_value = "auto")]
    pub on: On,
    /// Hosts, as a node set: 'n[1-4]', @group, ...
    #[arg(help_heading = HOSTS, short = 'w', long, value_name = "NODESET")]
    hosts: Option<String>,
    /// Hosts of a group, as in `homing exec`; may be repeated
    #[arg(help_heading = HOSTS, short = 'g', value_name = "GROUP")]
    host_groups: Vec<String>,
    #[command(flatten, next_help_heading = HOSTS)]
    pub cluster: ClusterArgs,
    /// Run the whole command on HOST, a member of the cluster, in the same folder; for a machine outside the cluster
    #[arg(help_heading = HOSTS, long, value_name = "HOST")]
    pub gateway: Option<String>,
    /// With more than N hosts, connect to a few of them, which connect to the others by ssh; 0: connect to all from
    /// here
    #[arg(help_heading = HOSTS, long, default_value_t = WIDTH, value_name = "N", value_parser = width)]
    pub tree: usize,
    /// Run nothing unless every host can be used; by default the usable hosts do the work
    #[arg(help_heading = HOSTS, long)]
    pub need_all_hosts: bool,
    /// Slots of each task on each of --nodes hosts, taken all at once. Each task becomes a job of this machine's queue,
    /// as with `homing sub --nodes`; HOMING_HOSTFILE lists its hosts, and mpirun needs no options
    #[arg(help_heading = HOSTS, long, value_name = "N", requires = "nodes", value_parser = clap::value_parser!(u32).range(1..))]
    pub ppn: Option<u32>,
    /// With --ppn: the network of MPI programs, a name in `[host.NAME] addresses` of the cluster file
    #[arg(help_heading = HOSTS, long, value_name = "NAME", requires = "ppn")]
    pub net: Option<String>,
    /// Tasks at once per host: N, +N, -N, N% of its cores; 0: no limit
    #[arg(help_heading = HOSTS, short, long, value_name = "N", allow_hyphen_values = true, short_alias = 'P', alias = "max-procs")]
    pub jobs: Option<String>,

    /// Read tasks from FILE (`-`: standard input), one JSON object a line: name, command or argv, cwd, env, after
    /// (names of other tasks), inputs, outputs, cpus, memory, resources, timeout. A task runs after the tasks that
    /// write its inputs
    #[arg(help_heading = INPUT, long, value_name = "FILE")]
    pub tasks: Option<PathBuf>,
    /// Read input lines from FILE instead of standard input; may be repeated. -a has GNU parallel's meaning: for all
    /// hosts, as `homing exec -a`, write -w @*
    #[arg(help_heading = INPUT, short = 'a', long = "arg-file", value_name = "FILE")]
    pub arg_file: Vec<PathBuf>,
    /// Input items end with NUL, not with a newline
    #[arg(help_heading = INPUT, short = '0', long, overrides_with = "delimiter")]
    pub null: bool,
    /// Input items end with DELIM: one character, \n, \t, \0 or \xHH
    #[arg(help_heading = INPUT, short = 'd', long, value_name = "DELIM", overrides_with = "null")]
    pub delimiter: Option<OsString>,
    /// Use at most N arguments per command. -n and -x have GNU parallel's meaning, and -x has no effect: to leave out a
    /// host, write -w 'n[1-9]!n3'
    #[arg(help_heading = INPUT, short = 'n', long, value_name = "N", value_parser = super::parallel::count)]
    pub max_args: Option<usize>,
    /// Remove blanks at the ends of arguments: n (neither end), l, r, lr
    #[arg(help_heading = INPUT, long, value_name = "ENDS")]
    pub trim: Option<TrimEnds>,
    /// Quote each word of the command for the shell, so that it stays one word
    #[arg(help_heading = INPUT, long)]
    pub quote: bool,
    /// Split input lines into columns {1}, {2}, ... at this regular expression ('\t', ',', '\|')
    #[arg(help_heading = INPUT, short = 'C', long, value_name = "REGEX")]
    pub colsep: Option<String>,
    /// Run tasks in random order
    #[arg(help_heading = INPUT, long)]
    pub shuf: bool,
    /// Do not run a command for empty input lines
    #[arg(help_heading = INPUT, short = 'r', long)]
    pub no_run_if_empty: bool,

    /// Files that count as inputs of each task (may hold {}, {.}, ...); may be repeated
    #[arg(help_heading = DATA, long, value_name = "PATH")]
    pub near: Vec<OsString>,
    /// Do not look for inputs among the words of commands
    #[arg(help_heading = DATA, long)]
    pub no_detect: bool,
    /// Do not make hosts refresh files that other hosts have just written, and use hosts whose clock is more than 1 s
    /// off where GlusterFS is mounted
    #[arg(help_heading = DATA, long)]
    pub no_fence: bool,
    /// Tasks of this run that may use one storage server at once, over all hosts: measured during the run, a number, or
    /// no limit
    #[arg(help_heading = DATA, long, value_name = "auto|N|off", default_value = "auto")]
    pub io: String,
    /// Do not share limits of storage servers with other runs, nor slots of this machine with its queue
    #[arg(help_heading = DATA, long)]
    pub no_share: bool,
    /// Ignore where the data lies, and take hosts in turn
    #[arg(help_heading = DATA, long)]
    pub no_locality: bool,
    /// Files that each task writes (may hold {}, {.}, ...); the files of a failed task are moved aside
    #[arg(help_heading = DATA, long = "output", value_name = "PATH")]
    pub output: Vec<OsString>,
    /// Skip a task whose outputs are all newer than its inputs
    #[arg(help_heading = DATA, long)]
    pub skip_newer: bool,

    /// Print output in the order of the tasks
    #[arg(help_heading = OUTPUT, short, long, alias = "keeporder", overrides_with = "no_keep_order")]
    pub keep_order: bool,
    /// Print whole lines as they come instead of grouping by task
    #[arg(help_heading = OUTPUT, long, visible_alias = "lb", alias = "linebuffer", overrides_with = "group")]
    pub line_buffer: bool,
    /// Begin each line with the task's arguments and a tab
    #[arg(help_heading = OUTPUT, long)]
    pub tag: bool,
    /// Save output below DIR, as GNU parallel lays it out, instead of printing it
    #[arg(help_heading = OUTPUT, long, alias = "res", value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Write GNU parallel's job log (`+FILE`: add to it)
    #[arg(help_heading = OUTPUT, long, alias = "jl", value_name = "FILE")]
    pub joblog: Option<PathBuf>,
    /// Skip tasks that the job log lists
    #[arg(help_heading = OUTPUT, long, requires = "joblog")]
    pub resume: bool,
    /// Skip tasks that the job log lists as successful
    #[arg(help_heading = OUTPUT, long, requires = "joblog")]
    pub resume_failed: bool,
    /// Run only the commands that the job log lists as failed
    #[arg(help_heading = OUTPUT, long, requires = "joblog", conflicts_with_all = ["resume", "resume_failed", "tasks"])]
    pub retry_failed: bool,

    /// Try a task up to N times if it fails or loses its host, on another host if possible (default: once; three times
    /// if its host was lost)
    #[arg(help_heading = LIMITS, long, value_name = "N")]
    pub retries: Option<u32>,
    /// When to stop the run: never, soon,fail=N, now,fail=N%, now,success=1, ...
    #[arg(help_heading = LIMITS, long, value_name = "WHEN", default_value = "never", allow_hyphen_values = true, alias = "halt-on-error")]
    pub halt: String,
    /// End a task after this time: 30, 5m, 1h, or 200% of the median
    #[arg(help_heading = LIMITS, long, value_name = "TIME")]
    pub timeout: Option<String>,
    /// End a task that prints more than SIZE: 10M, 2G (default: no limit). If only 15 % of the disk that keeps output
    /// are free, or 4 GB of a large disk, homing ends the task with the most output
    #[arg(help_heading = LIMITS, long, value_name = "SIZE")]
    pub output_limit: Option<String>,
    /// Wait this long between two starts
    #[arg(help_heading = LIMITS, long, value_name = "TIME")]
    pub delay: Option<String>,
    /// Longest wait for an answer of a file system; a task that names a file of a silent one fails
    #[arg(help_heading = LIMITS, long, value_name = "TIME", default_value = "5", value_parser = crate::cmd::times::fs_timeout)]
    pub fs_timeout: std::time::Duration,
    /// Start only where this much memory is available: 500M, 2G
    #[arg(help_heading = LIMITS, long, value_name = "SIZE")]
    pub memfree: Option<String>,
    /// Units of a resource that each host has, for tasks that take some; may be repeated
    #[arg(help_heading = LIMITS, long, value_name = "NAME=N", value_parser = amount)]
    pub resource: Vec<(String, u64)>,
    /// Graphics processors of each task, or a part of one (0.5); CUDA_VISIBLE_DEVICES holds their numbers
    #[arg(help_heading = LIMITS, long, value_name = "N", value_parser = gpus)]
    pub gpus_per_task: Option<u64>,
    /// Environment variables and Bash functions to send to tasks (default, and `_`: exported variables, except those of
    /// a login or a terminal); may be repeated
    #[arg(help_heading = LIMITS, long, value_name = "NAME,...")]
    pub env: Vec<String>,

    /// Run each task in a container of IMAGE, with its folders at the same paths: by apptainer if IMAGE is a .sif or a
    /// path, else by podman. Options after a colon, separated by commas: bind=FOLDER, arg=WORD, with=PROGRAM
    #[arg(help_heading = LIMITS, long, value_name = "IMAGE[:OPTIONS]", value_parser = container)]
    pub container: Option<Container>,
    /// Run CMD on this machine after the run, successful or not, with HOMING_EXIT, HOMING_DONE, HOMING_FAILED and
    /// HOMING_RUN
    #[arg(help_heading = SHOWN, long, value_name = "CMD")]
    pub on_exit: Option<OsString>,
    /// Print the commands and run nothing
    #[arg(help_heading = SHOWN, long, alias = "dryrun")]
    pub dry_run: bool,
    /// Print for each task where it runs and why
    #[arg(help_heading = SHOWN, long)]
    pub explain: bool,
    /// Show progress even of a short run
    #[arg(help_heading = SHOWN, long, alias = "progress")]
    pub bar: bool,
    /// Show the estimated time left
    #[arg(help_heading = SHOWN, long)]
    pub eta: bool,
    /// Print no evidence at the end
    #[arg(help_heading = SHOWN, short, long)]
    pub quiet: bool,
    /// Print the evidence as JSON on standard error, or write it to FILE, which follows `=` or ends in .json. With
    /// `homing plan`: print the plan as JSON on standard output
    #[arg(help_heading = SHOWN, long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Second name of the run in `homing runs`; `homing report NAME` shows the newest run of that name
    #[arg(help_heading = SHOWN, long, value_name = "NAME", value_parser = label)]
    pub name: Option<String>,

    // Last, because their headings would hold for all options that follow.
    #[command(flatten)]
    pub batch: BatchArgs,
    #[command(flatten)]
    pub parallel: super::parallel::ParallelArgs,

    /// Command and input sources: 'md5sum {}' ::: FILE..., :::: LISTFILE, :::+, ::::+
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub words: Vec<OsString>,
}

impl Args {
    /// Returns the node set of `-w` and `-g`; `None` if neither is given.
    pub fn node_set(&self) -> Option<String> {
        let groups = self.host_groups.iter().map(|group| format!("@{group}"));
        let all: Vec<String> = self.hosts.iter().cloned().chain(groups).collect();
        (!all.is_empty()).then(|| all.join(","))
    }
}

fn amount(text: &str) -> Result<(String, u64), String> {
    let parted = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let read = parted.and_then(|(name, amount)| Some((name.to_string(), amount.parse().ok()?)));
    read.ok_or_else(|| "a resource is a name and a whole number, as in gpu=2".into())
}

/// Reads the graphics processors of a task, in parts of one.
pub fn gpus(text: &str) -> Result<u64, String> {
    match homing_model::resource::parse_amount(text)? {
        0 => Err("leave the option out for a task without graphics processors".into()),
        parts => Ok(parts),
    }
}

fn container(text: &str) -> Result<Container, String> {
    Container::parse(text, std::path::Path::exists)
}

/// Checks the name of a run, which is a cell of a table.
fn label(text: &str) -> Result<String, String> {
    let is_plain =
        !text.is_empty() && text.chars().count() <= 64 && !text.contains(|c: char| c.is_control() || c == '/');
    match text {
        "last" => Err("`last` already means the run that began last".into()),
        _ if is_plain => Ok(text.into()),
        _ => Err("a name has 1 to 64 characters, without a slash".into()),
    }
}

/// Joins `--json FILE.json` before the command into one word. clap takes the file of an option with an optional value
/// only behind `=`.
pub fn join_json(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_file =
        |word: Option<&OsString>| word.and_then(|word| word.to_str()).is_some_and(|word| word.ends_with(".json"));
    let places = (0..words.len()).filter(|at| words[*at] == "--json" && is_file(words.get(at + 1)));
    for at in places.collect::<Vec<_>>() {
        // The words behind the first word of the command belong to the command. The file must be that first word.
        let parsed = grammar().no_binary_name(true).try_get_matches_from(&words[2.min(words.len())..]);
        let first = parsed.ok().and_then(|found| found.get_many::<OsString>("words").map(|of| of.len()));
        if first == Some(words.len() - at - 1) {
            let file = words.remove(at + 1);
            words[at].push("=");
            words[at].push(file);
            break;
        }
    }
    words
}

/// Replaces `-l` and `--max-lines` before the command by `-l1` if no number follows.
pub fn number_lines(mut words: Vec<OsString>) -> Vec<OsString> {
    let takes_none = |word: Option<&OsString>| {
        word.is_some_and(|word| !word.as_encoded_bytes().starts_with(b"-"))
            && word.and_then(|word| word.to_str()).is_none_or(|word| super::parallel::count(word).is_err())
    };
    let places = (2..words.len()).filter(|at| words[*at] == "-l" || words[*at] == "--max-lines");
    for at in places.filter(|at| takes_none(words.get(at + 1))).collect::<Vec<_>>() {
        // Only options precede it. An `-l` behind the first word of the command belongs to the command.
        let before = grammar().no_binary_name(true).try_get_matches_from(&words[2..at]);
        if before.is_ok_and(|found| !found.contains_id("words")) {
            words[at] = "-l1".into();
        }
    }
    words
}

/// Returns whether inputs follow the word, in GNU parallel's notation.
pub fn is_separator(word: &OsString) -> bool {
    matches!(word.to_str(), Some(":::" | "::::" | ":::+" | "::::+"))
}

/// Returns the grammar of `homing run`.
pub fn grammar() -> clap::Command {
    Args::augment_args(clap::Command::new("run"))
}

/// Parses the words of a `homing run`.
pub fn args_of(words: &[OsString]) -> Result<Args, Failure> {
    let grammar = Args::augment_args(clap::Command::new("homing run")).no_binary_name(true);
    grammar.try_get_matches_from(words).and_then(|found| Args::from_arg_matches(&found)).map_err(|e| {
        if let Some(failure) = super::unknown::unknown(&e, self::grammar) {
            return failure;
        }
        let text = e.to_string();
        let first = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        Failure::usage(format!("in the words of homing run: {first}")).hint("homing run --help")
    })
}

/// Options that are passed on to a batch system.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Batch systems")]
pub struct BatchArgs {
    /// Partition or queue of the workers' jobs
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Account or project that pays for these jobs
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
    /// Quality of service of these jobs (Slurm)
    #[arg(long, value_name = "NAME")]
    pub qos: Option<String>,
    /// Time limit of each worker's job, in Slurm's notation: MINUTES, H:MM:SS, D-H; homing then submits the next job
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// Reservation of these jobs
    #[arg(long, value_name = "NAME")]
    pub reservation: Option<String>,
    /// Processors of each task
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub cpus_per_task: u32,
    /// Memory of each task: 500M, 2G
    #[arg(long, value_name = "SIZE")]
    pub mem_per_task: Option<String>,
    /// Number of nodes (default: those that hold the data, else as many as the tasks fill). With --ppn, on any engine:
    /// number of hosts of each task, N, or as many as are free from MIN to MAX
    #[arg(long, value_name = "N|MIN-MAX")]
    pub nodes: Option<Nodes>,
    /// Further argument of srun or bsub, such as --batch-arg=--constraint=ib; may be repeated
    #[arg(long, value_name = "ARG", allow_hyphen_values = true, alias = "slurm-arg")]
    pub batch_arg: Vec<String>,
}

/// Engines.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Chosen by the hosts that are given
    Auto,
    /// This machine
    Local,
    /// OpenSSH
    Ssh,
    /// Slurm
    Slurm,
    /// IBM LSF or OpenLava
    Lsf,
}

/// Ends of an argument that lose their blanks.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimEnds {
    /// Neither end
    N,
    /// Left end
    L,
    /// Right end
    R,
    /// Both ends
    #[value(alias = "rl")]
    Lr,
}

impl From<TrimEnds> for homing_batch::Trim {
    fn from(ends: TrimEnds) -> Self {
        match ends {
            TrimEnds::N => Self::No,
            TrimEnds::L => Self::Left,
            TrimEnds::R => Self::Right,
            TrimEnds::Lr => Self::Both,
        }
    }
}

impl Args {
    /// Whether a word, a list or a task file is given as a source of inputs.
    pub fn names_source(&self) -> bool {
        let own = [&self.parallel.arg_sep, &self.parallel.arg_file_sep];
        let separates = |word: &OsString| is_separator(word) || own.iter().any(|own| own.as_ref() == Some(word));
        self.tasks.is_some() || !self.arg_file.is_empty() || self.words.iter().any(separates)
    }

    /// Whether the tasks come from standard input alone, because no other source of inputs was given.
    pub fn has_no_source(&self) -> bool {
        !(self.names_source() || self.retry_failed || self.parallel.pipe)
    }

    /// Returns whether the job log already lists earlier tasks of the same batch.
    pub(super) fn goes_on(&self) -> bool {
        self.resume || self.resume_failed || self.retry_failed
    }
}
