//! GNU parallel's words beside those that are homing's own options too.

use crate::failure::Failure;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use homing_batch::{BlockSize, Blocking, Each, Packing, Replacements};
use homing_model::RawText;
use std::ffi::OsString;
use std::path::PathBuf;

/// Options that GNU parallel has under these names.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "GNU parallel")]
pub struct ParallelArgs {
    /// As -n; the text around {} is repeated with it (`-N0`: one argument, and do not put it into the command)
    #[arg(short = 'N', long, value_name = "N")]
    pub max_replace_args: Option<usize>,
    /// N lines per command; a line that ends in a blank goes on in the next
    #[arg(short = 'L', long, value_name = "N")]
    pub max_lines: Option<usize>,
    /// As many arguments per command as its line holds, shared between the slots; the text around {} is repeated
    #[arg(short = 'X')]
    pub context_replace: bool,
    /// As -X, the text around {} once
    #[arg(short = 'm')]
    pub many: bool,
    /// As -m, and not shared between the slots
    #[arg(long)]
    pub xargs: bool,
    /// A command line is shorter than N bytes
    #[arg(short = 's', long, value_name = "N")]
    pub max_chars: Option<usize>,
    /// All input sources in step, the shorter ones again from their beginning
    #[arg(long, alias = "xapply")]
    pub link: bool,
    /// `:`: the first line names the columns, {name} is one of them
    #[arg(long, value_name = ":")]
    pub header: Option<String>,
    /// Stands for :::
    #[arg(long, value_name = "WORD")]
    pub arg_sep: Option<OsString>,
    /// Stands for ::::
    #[arg(long, value_name = "WORD")]
    pub arg_file_sep: Option<OsString>,
    /// More replacement strings: {+/} {+.} {..} {/..} {##} {0#} {:-text} {#start} {%end} {/from/to} {^a} {,A}
    #[arg(long)]
    pub plus: bool,
    /// A replacement string of one's own: '{name} s/RE/TEXT/g'; may be repeated
    #[arg(long, value_name = "STRING")]
    pub rpl: Vec<OsString>,
    /// Stands for {}
    #[arg(short = 'I', value_name = "STRING")]
    pub replace: Option<OsString>,
    /// Stands for {.}
    #[arg(long, alias = "er", value_name = "STRING", hide = true)]
    pub extensionreplace: Option<OsString>,
    /// Stands for {/}
    #[arg(long, alias = "bnr", value_name = "STRING", hide = true)]
    pub basenamereplace: Option<OsString>,
    /// Stands for {//}
    #[arg(long, alias = "dnr", value_name = "STRING", hide = true)]
    pub dirnamereplace: Option<OsString>,
    /// Stands for {/.}
    #[arg(long, alias = "bner", value_name = "STRING", hide = true)]
    pub basenameextensionreplace: Option<OsString>,
    /// Stands for {#}
    #[arg(long, value_name = "STRING", hide = true)]
    pub seqreplace: Option<OsString>,
    /// Stands for {%}
    #[arg(long, value_name = "STRING", hide = true)]
    pub slotreplace: Option<OsString>,

    /// Cut standard input into blocks, each of them the standard input of one command; -N, -L: of so many records, lines
    #[arg(long, alias = "spreadstdin", group = "cuts", conflicts_with = "tasks")]
    pub pipe: bool,
    /// As --pipe with the files of -a, each block run where it lies
    #[arg(long, alias = "pipe-part", requires = "arg_file", group = "cuts", conflicts_with = "tasks")]
    pub pipepart: bool,
    /// Bytes of a block: of --pipe at most (default: 1M), of --pipepart before the rest of its last record; -N: so many
    /// blocks of --pipepart for each slot of this machine (default: -10)
    #[arg(
        long,
        alias = "block-size",
        alias = "blocksize",
        value_name = "SIZE",
        allow_hyphen_values = true,
        requires = "cuts"
    )]
    pub block: Option<String>,
    /// What a record begins with (default: nothing)
    #[arg(long, value_name = "TEXT", requires = "cuts")]
    pub recstart: Option<String>,
    /// What a record ends with (default: a newline; nothing with --recstart)
    #[arg(long, value_name = "TEXT", requires = "cuts")]
    pub recend: Option<String>,

    /// Begin each line with this text, which may hold replacement strings, and a tab
    #[arg(long, value_name = "TEXT")]
    pub tagstring: Option<OsString>,
    /// Print each command before its output
    #[arg(short = 'v')]
    pub verbose: bool,
    /// Print each command on standard error before its output
    #[arg(short = 't', long = "verbose")]
    pub trace: bool,
    /// Print whole lines as they come, as --line-buffer does
    #[arg(short = 'u', long)]
    pub ungroup: bool,
    /// Group output by task, as is done without it
    #[arg(long, hide = true)]
    pub group: bool,
    /// Nothing: homing asks for no citation
    #[arg(long, hide = true)]
    pub will_cite: bool,
    /// Where each task runs; made if it is not there; may hold replacement strings
    #[arg(long, alias = "wd", value_name = "DIR")]
    pub workdir: Option<OsString>,
    /// Lower the priority of tasks by so much
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub nice: Option<i32>,
    /// Start only where the load average of one minute, and the slots that are taken, are below this: N, +N, -N, N% of
    /// the cores
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub load: Option<String>,
    /// Hosts as GNU parallel writes them: N/user@host,...; `:` is this machine; may be repeated
    #[arg(short = 'S', long, value_name = "HOST,...")]
    pub sshlogin: Vec<String>,
    /// A file of such hosts, one a line
    #[arg(long, alias = "slf", value_name = "FILE")]
    pub sshloginfile: Vec<PathBuf>,
}

impl ParallelArgs {
    /// How many records become one command; `args` is `-n`, `slots` how many run at once.
    pub fn packing(&self, args: Option<usize>, slots: usize) -> Packing {
        let shared = self.context_replace || self.many;
        let records = self.max_replace_args.or(args).or(self.max_lines);
        let counted = self.max_replace_args.is_some() || self.max_lines.is_some();
        Packing {
            records,
            full: shared || self.xargs,
            length: self.max_chars,
            spread: shared.then_some(slots),
            context: self.context_replace || (counted && !self.many && !self.xargs),
            continued: self.max_lines.is_some(),
        }
    }

    /// Whether commands or tags say which slot they are in.
    pub fn names_the_slot(&self, words: &[OsString]) -> bool {
        let names = |word: &OsString| ["{%}", "{slot}"].iter().any(|name| word.to_string_lossy().contains(name));
        self.slotreplace.is_some()
            || words.iter().chain(&self.tagstring).any(names)
            || self.rpl.iter().any(|word| word.to_string_lossy().contains("slot()"))
    }

    /// The replacement strings besides GNU parallel's own.
    pub fn replacements(&self) -> Replacements {
        let renamed = [
            (&self.replace, "{}"),
            (&self.extensionreplace, "{.}"),
            (&self.basenamereplace, "{/}"),
            (&self.dirnamereplace, "{//}"),
            (&self.basenameextensionreplace, "{/.}"),
            (&self.seqreplace, "{#}"),
            (&self.slotreplace, "{%}"),
        ];
        let renamed = renamed.into_iter().filter_map(|(name, own)| Some((RawText::from(name.clone()?), own)));
        Replacements {
            plus: self.plus,
            renamed: renamed.collect(),
            defined: self.rpl.iter().cloned().map(RawText::from).collect(),
        }
    }

    /// `--pipe` and `--pipepart`; `args` is `-n`, `slots` how many run at once.
    pub fn blocks(&self, args: Option<usize>, slots: usize) -> Result<Option<Blocking>, Failure> {
        if !self.pipe && !self.pipepart {
            return Ok(None);
        }
        let size = self.block.as_deref().unwrap_or(if self.pipe { "1M" } else { "-10" });
        let size = match size.strip_prefix('-').map(str::parse::<u64>) {
            Some(Ok(number)) => BlockSize::Number(number * slots as u64),
            _ => BlockSize::Bytes(homing_batch::parse_size("--block", size).map_err(Failure::usage)?),
        };
        let unsaid = if self.recstart.is_some() { "" } else { "\n" };
        let text = |text: &str| RawText::from(text.replace("\\n", "\n").replace("\\t", "\t").as_str());
        Ok(Some(Blocking {
            size,
            recstart: text(self.recstart.as_deref().unwrap_or_default()),
            recend: text(self.recend.as_deref().unwrap_or(unsaid)),
            piped: self.pipe.then(|| self.each(args)),
        }))
    }

    /// What `--pipe` makes a block of; `args` is `-n`.
    fn each(&self, args: Option<usize>) -> Each {
        let counted = |count: Option<usize>| count.filter(|n| *n > 0);
        match (counted(self.max_replace_args.or(args)), counted(self.max_lines)) {
            (Some(records), lines) => Each::Records(records.saturating_mul(lines.unwrap_or(1))),
            (None, Some(lines)) => Each::Lines(lines),
            (None, None) => Each::Fitting,
        }
    }

    /// `--header :`, and no pattern.
    pub fn has_header(&self) -> Result<bool, Failure> {
        match self.header.as_deref() {
            None | Some("0") => Ok(false),
            Some(":") => Ok(true),
            Some(other) => {
                Err(Failure::usage(format!("--header takes ':', the first line as names of columns, not {other:?}")))
            }
        }
    }
}

/// One host of `--sshlogin`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// `host`, `user@host`, or `:` for this machine.
    pub target: String,
    /// As many tasks at once.
    pub slots: Option<u32>,
}

/// The hosts of `--sshlogin` and `--sshloginfile`, in their order.
pub fn logins(given: &ParallelArgs) -> Result<Vec<Login>, Failure> {
    let mut found = Vec::new();
    for text in &given.sshlogin {
        for word in text.split(',').filter(|word| !word.is_empty()) {
            found.push(login(word)?);
        }
    }
    for path in &given.sshloginfile {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::usage(format!("cannot read the hosts in {}: {e}", path.display())))?;
        for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
            found.extend((!line.is_empty()).then(|| login(line)).transpose()?);
        }
    }
    Ok(found)
}

fn login(text: &str) -> Result<Login, Failure> {
    let (slots, target) = match text.split_once('/') {
        Some((slots, target)) => (slots.parse().ok().filter(|n| *n > 0), target),
        None => (None, text),
    };
    let odd = target.is_empty() || target.starts_with(['-', '@']) || target.contains(char::is_whitespace);
    if odd || (text.contains('/') && slots.is_none()) {
        let hint = "options of ssh go into ~/.ssh/config, or HOMING_SSH='ssh -F FILE'; groups: --hosts @group";
        return Err(Failure::usage(format!("--sshlogin takes [N/][user@]host or ':', not {text:?}")).hint(hint));
    }
    Ok(Login { target: target.to_string(), slots })
}

/// GNU parallel's options that are not there, and what does their work.
const ABSENT: &[(&str, &str)] = &[
    ("--round-robin", "--pipe gives each block a command of its own; a large --block makes few of them"),
    ("--roundrobin", "--pipe gives each block a command of its own; a large --block makes few of them"),
    ("--tee", "give each task the file"),
    ("--cat", "--pipe, and /dev/stdin as the name of the file"),
    ("--fifo", "--pipe, and /dev/stdin as the name of the file"),
    ("--regexp", "cut the file with csplit(1)"),
    ("--groupby", "sort the file and cut it with csplit(1)"),
    ("--noswap", "--memfree waits for memory"),
    ("--memsuspend", "--memfree waits for memory"),
    ("--limit", "--memfree and --io bound what starts"),
    ("--tmux", "`homing sub` runs a command detached, `homing peek` shows what it prints"),
    ("--tmuxpane", "`homing sub` runs a command detached, `homing peek` shows what it prints"),
    ("--semaphore", "flock(1), or `homing sub` with a queue of so many slots"),
    ("--semaphorename", "flock(1), or `homing sub` with a queue of so many slots"),
    ("--semaphoretimeout", "flock(1), or `homing sub` with a queue of so many slots"),
    ("--sqlmaster", "--tasks FILE: one JSON object a line, and --joblog or the run's journal for what became of them"),
    ("--sql", "--tasks FILE: one JSON object a line, and --joblog or the run's journal for what became of them"),
    ("--sqlworker", "--tasks FILE on a host of the run"),
    ("--sqlandworker", "--tasks FILE: one JSON object a line"),
    ("--filter", "let what makes the list leave those out (grep, awk), or `::: $(...)`"),
    ("--transfer", "the hosts see the same files: put them on a volume that all mount, or `homing push`"),
    ("--transferfile", "the hosts see the same files: put them on a volume that all mount, or `homing push`"),
    ("--return", "--output names what a task writes on a volume; `homing pull` fetches from hosts"),
    ("--trc", "--output names what a task writes on a volume; `homing push` and `homing pull` copy"),
    ("--cleanup", "what homing starts on a host is cleaned up"),
    ("--basefile", "`homing push FILE` before the run"),
    ("--nonall", "`homing exec -w HOSTS COMMAND`"),
    ("--onall", "`homing exec -w HOSTS COMMAND` for each argument"),
    ("--controlmaster", "connections are kept without it"),
    ("--ssh", "HOMING_SSH names another ssh"),
    ("--profile", "a shell alias, or a script"),
    ("--csv", "--colsep ','"),
    ("--files", "--results DIR"),
    ("--compress", "--results on a file system that compresses"),
    ("--latest-line", "--bar"),
    ("--ll", "--bar"),
    ("--color", "--tag tells tasks apart"),
    ("--ctag", "--tag tells tasks apart"),
    ("--ctagstring", "--tagstring"),
    ("--termseq", "a task ends by TERM, and by KILL if it does not"),
    ("--total-jobs", "the number of tasks is known where the input is"),
    ("--template", "a script that takes the arguments"),
    ("--hostgroups", "@group in --hosts"),
    ("--embed", "a script that calls `homing run`"),
    ("--session", "--env names what tasks get"),
    ("--parset", "x=$(homing run ...)"),
    ("--shebang", "a script that calls `homing run`"),
    ("--shebang-wrap", "a script that calls `homing run`"),
    ("--interactive", "--dry-run shows what would run"),
    ("-p", "--dry-run shows what would run"),
    ("-M", "connections are kept without it"),
    ("-D", "`homing run --explain`"),
    ("-E", "let sed or awk end the list: sed '/END/Q'"),
    ("-i", "-I STRING"),
    ("-l", "-L N"),
    ("-x", "-s N"),
    ("--eof", "let sed or awk end the list: sed '/END/Q'"),
    ("--max-line-length-allowed", "getconf ARG_MAX"),
    ("--number-of-cpus", "nproc, or `homing hosts`"),
    ("--number-of-cores", "nproc, or `homing hosts`"),
    ("--number-of-threads", "nproc, or `homing hosts`"),
    ("--process-slot-var", "{%} or $PARALLEL_JOBSLOT"),
    ("--delay-auto", "--delay TIME"),
    ("--shellquote", "--dry-run shows words as the shell wants them"),
    ("--skip-first-line", "tail -n +2 FILE | homing run ..., or --header :"),
    ("--wait", "homing run waits; `homing wait` waits for jobs of `homing sub`"),
    ("--bg", "`homing sub`"),
    ("--fg", "homing run waits"),
    ("--bin", "sort the file and cut it with csplit(1)"),
    ("--shard", "sort the file and cut it with csplit(1)"),
    ("--group-by", "sort the file and cut it with csplit(1)"),
    ("--block-timeout", "--pipe -N cuts after so many records"),
    ("--bt", "--pipe -N cuts after so many records"),
    ("--remove-rec-sep", "tr or sed in the command takes separators away"),
    ("--removerecsep", "tr or sed in the command takes separators away"),
    ("--rrs", "tr or sed in the command takes separators away"),
    ("--bf", "`homing push FILE` before the run"),
    ("--tf", "the hosts see the same files: put them on a volume that all mount, or `homing push`"),
    ("--rsync-opts", "the hosts see the same files: put them on a volume that all mount, or `homing push`"),
    ("--cf", "--tag tells tasks apart"),
    ("--color-failed", "the failures are listed at the end, and by `homing report`"),
    ("--compress-program", "--results on a file system that compresses"),
    ("--decompress-program", "--results on a file system that compresses"),
    ("--tmpdir", "HOMING_RUNS names the folder that keeps output"),
    ("--output-as-files", "--results DIR"),
    ("--outputasfiles", "--results DIR"),
    ("--res", "--results DIR"),
    ("--jl", "--joblog FILE"),
    ("--filter-hosts", "a host that does not answer is left out, and named"),
    ("--hgrp", "@group in --hosts"),
    ("--exit", "`homing exec -w HOSTS COMMAND`"),
    ("--gnu", "nothing: it is so without it"),
    ("--plain", "HOMING_CONFIG=/dev/null leaves the user's defaults out"),
    ("--silent", "nothing: commands are printed only with -v or -t"),
    ("--no-keep-order", "nothing: it is so without -k"),
    ("--hashbang", "a script that calls `homing run`"),
    ("--semaphore-name", "flock(1), or `homing sub` with a queue of so many slots"),
    ("--semaphore-timeout", "flock(1), or `homing sub` with a queue of so many slots"),
    ("--id", "flock(1), or `homing sub` with a queue of so many slots"),
    ("--st", "flock(1), or `homing sub` with a queue of so many slots"),
    ("--minversion", "homing --version"),
    ("--version", "homing --version"),
    ("-V", "homing --version"),
    ("--number-of-sockets", "nproc, or `homing hosts`"),
    ("--use-cores-instead-of-threads", "-j N, or N/host in -S"),
    ("--use-cpus-instead-of-cores", "-j N, or N/host in -S"),
    ("--use-sockets-instead-of-threads", "-j N, or N/host in -S"),
    ("--open-tty", "a task has no terminal; `homing sub` or a shell loop"),
    ("--tty", "a task has no terminal; `homing sub` or a shell loop"),
    ("-o", "a task has no terminal; `homing sub` or a shell loop"),
    ("--parens", "{= perl =} is not there; --rpl, or a command that works on its argument"),
    ("--record-env", "--env names what tasks get"),
    ("--replace", "-I STRING"),
    ("--shell-completion", "homing completions SHELL"),
    ("--shell-quote", "--dry-run shows words as the shell wants them"),
    ("--show-limits", "getconf ARG_MAX"),
    ("--sql-master", "--tasks FILE: one JSON object a line, and --joblog or the run's journal for what became of them"),
    ("--sql-and-worker", "--tasks FILE: one JSON object a line"),
    ("--sql-worker", "--tasks FILE on a host of the run"),
    ("--ssh-delay", "HOMING_SSH names another ssh, which may wait"),
    ("--term-seq", "a task ends by TERM, and by KILL if it does not"),
    ("--tmpl", "a script that takes the arguments"),
    ("-J", "a shell alias, or a script"),
    ("-e", "let sed or awk end the list: sed '/END/Q'"),
];

fn absent(name: &str, instead: &str) -> Failure {
    let text = format!("GNU parallel's {name} is not there; instead: {instead}");
    Failure::usage(text).hint("docs/manual/parallel.md has all of its options")
}

/// An option that `homing run` does not have, with what does its work: clap would offer the
/// option whose name is most alike, which is about something else.
pub fn unknown(error: &clap::Error) -> Option<Failure> {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let name = given.split('=').next().unwrap_or_default();
    let known = ABSENT.iter().find(|(known, _)| *known == name);
    let begun = || {
        let mut found = ABSENT.iter().filter(|(known, _)| name.len() > 3 && known.starts_with(name));
        found.next().filter(|_| found.next().is_none())
    };
    Some(match known.or_else(begun) {
        Some((name, instead)) => absent(name, instead),
        None => Failure::usage(format!("homing run has no option {name}")).hint(
            "homing run --help; what belongs to the command goes into its quotes: homing run 'CMD -x {}' ::: FILES",
        ),
    })
}
