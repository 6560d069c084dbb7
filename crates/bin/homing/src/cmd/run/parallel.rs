//! Options of GNU parallel that are not also options of homing itself.

use homing_batch::{BlockSize, Blocking, Each, Login, Packing, Replacements};
use homing_dispatch::Colours;
use homing_model::{Failure, RawText};
use std::ffi::OsString;
use std::path::PathBuf;

/// Options that GNU parallel has under these names.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "GNU parallel")]
pub struct ParallelArgs {
    /// As -n, with the text around {} repeated (`-N0`: read one argument, and do not put it into the command)
    #[arg(short = 'N', long, value_name = "N", value_parser = count)]
    pub max_replace_args: Option<usize>,
    /// Use N lines per command; a line that ends in a blank continues in the next
    #[arg(short = 'L', value_name = "N", value_parser = count)]
    pub max_lines: Option<usize>,
    /// Put as many arguments into a command line as fit, divided among the slots, with the text around {} repeated
    #[arg(short = 'X')]
    pub context_replace: bool,
    /// As -X, with the text around {} once
    #[arg(short = 'm')]
    pub many: bool,
    /// As -m, but not divided among the slots
    #[arg(long)]
    pub xargs: bool,
    /// Keep command lines shorter than N bytes
    #[arg(short = 's', long, value_name = "N", value_parser = count)]
    pub max_chars: Option<usize>,
    /// Read all input sources in step; shorter sources start again from their beginning
    #[arg(long, alias = "xapply")]
    pub link: bool,
    /// `:`: the first line names the columns, used as {name}; `0`: {FILE} is replaced by a value from that file. For
    /// blocks: N lines or a regular expression, the beginning of the input that precedes each block
    #[arg(long, value_name = ":|0|N|REGEX")]
    pub header: Option<String>,
    /// Leave out the first line of the first input source
    #[arg(long)]
    pub skip_first_line: bool,
    /// Set the variable NAME to the number of the task's slot, counted from 0
    #[arg(long, value_name = "NAME")]
    pub process_slot_var: Option<OsString>,
    /// Use WORD in place of :::
    #[arg(long, value_name = "WORD")]
    pub arg_sep: Option<OsString>,
    /// Use WORD in place of ::::
    #[arg(long, value_name = "WORD")]
    pub arg_file_sep: Option<OsString>,
    /// More replacement strings: {+/} {+.} {..} {/..} {##} {0#} {:-text} {#start} {%end} {/from/to} {^a} {,A}
    #[arg(long)]
    pub plus: bool,
    /// Define a replacement string: '{name} s/RE/TEXT/g'; may be repeated
    #[arg(long, value_name = "STRING")]
    pub rpl: Vec<OsString>,
    /// Use STRING in place of {}
    #[arg(short = 'I', value_name = "STRING")]
    pub replace: Option<OsString>,
    /// As -I; the next word is STRING unless it is an option (default: {})
    #[arg(short = 'i', long = "replace", value_name = "STRING", num_args = 0..=1, default_missing_value = "{}")]
    pub replace_by: Option<OsString>,
    /// As -L (default: 1)
    #[arg(short = 'l', long = "max-lines", value_name = "N", num_args = 0..=1, default_missing_value = "1", value_parser = count)]
    pub lines: Option<usize>,
    /// End an input source at the line TEXT
    #[arg(short = 'E', value_name = "TEXT")]
    pub end: Option<OsString>,
    /// As -E; the next word is TEXT unless it is an option (default: no such line)
    #[arg(short = 'e', long = "eof", value_name = "TEXT", num_args = 0..=1, default_missing_value = "", hide = true)]
    pub eof: Option<OsString>,
    /// No effect: a command line that is too long is an error
    #[arg(short = 'x', hide = true)]
    pub exit_if_too_long: bool,
    /// Use STRING in place of {.}
    #[arg(long, alias = "er", value_name = "STRING", hide = true)]
    pub extensionreplace: Option<OsString>,
    /// Use STRING in place of {/}
    #[arg(long, alias = "bnr", value_name = "STRING", hide = true)]
    pub basenamereplace: Option<OsString>,
    /// Use STRING in place of {//}
    #[arg(long, alias = "dnr", value_name = "STRING", hide = true)]
    pub dirnamereplace: Option<OsString>,
    /// Use STRING in place of {/.}
    #[arg(long, alias = "bner", value_name = "STRING", hide = true)]
    pub basenameextensionreplace: Option<OsString>,
    /// Use STRING in place of {#}
    #[arg(long, value_name = "STRING", hide = true)]
    pub seqreplace: Option<OsString>,
    /// Use STRING in place of {%}
    #[arg(long, value_name = "STRING", hide = true)]
    pub slotreplace: Option<OsString>,

    /// Cut standard input into blocks, each the standard input of one command; -N: records of a block, -L: its lines
    #[arg(long, alias = "spreadstdin", group = "cuts", conflicts_with = "tasks")]
    pub pipe: bool,
    /// As --pipe for the files of -a or `::::`; each command runs on the host that holds its block
    #[arg(long, alias = "pipe-part", group = "cuts", conflicts_with = "tasks")]
    pub pipepart: bool,
    /// Size of a block: of --pipe at most (default: 1M), of --pipepart before the rest of its last record. -N: N blocks
    /// of --pipepart for each slot of this machine (default: -10)
    #[arg(
        long,
        alias = "block-size",
        alias = "blocksize",
        value_name = "SIZE",
        allow_hyphen_values = true,
        requires = "cuts"
    )]
    pub block: Option<String>,
    /// Text at the start of a record (default: none)
    #[arg(long, value_name = "TEXT", requires = "cuts")]
    pub recstart: Option<String>,
    /// Text at the end of a record (default: a newline; none with --recstart)
    #[arg(long, value_name = "TEXT", requires = "cuts")]
    pub recend: Option<String>,
    /// Read --recstart and --recend as regular expressions
    #[arg(long, requires = "cuts")]
    pub regexp: bool,
    /// Give all of standard input to each command of the values behind `:::`
    #[arg(long, requires = "cuts")]
    pub tee: bool,
    /// Leave out the texts between the records of --pipe
    #[arg(long, alias = "remove-rec-sep", alias = "removerecsep", requires = "cuts")]
    pub rrs: bool,

    /// Begin each line with TEXT, which may hold replacement strings and \t, and a tab
    #[arg(long, value_name = "TEXT")]
    pub tagstring: Option<OsString>,
    /// Print the lines of each task in a colour of its own
    #[arg(long, alias = "colour")]
    pub color: bool,
    /// Print the lines of failed tasks in red
    #[arg(long, alias = "colour-failed", alias = "cf")]
    pub color_failed: bool,
    /// As --color --tag
    #[arg(long)]
    pub ctag: bool,
    /// As --color --tagstring TEXT
    #[arg(long, value_name = "TEXT", conflicts_with = "tagstring")]
    pub ctagstring: Option<OsString>,
    /// Print each command before its output
    #[arg(short = 'v')]
    pub verbose: bool,
    /// Print each command on standard error before its output
    #[arg(short = 't', long = "verbose")]
    pub trace: bool,
    /// Print whole lines as they come, as --line-buffer does
    #[arg(short = 'u', long, overrides_with = "group")]
    pub ungroup: bool,
    /// Group output by task (default)
    #[arg(long, hide = true, overrides_with_all = ["line_buffer", "ungroup"])]
    pub group: bool,
    /// No effect: homing wants no citation
    #[arg(long, hide = true)]
    pub will_cite: bool,
    /// No effect: options have GNU parallel's meaning without it
    #[arg(long, hide = true)]
    pub gnu: bool,
    /// No effect: commands are printed only with -v or -t
    #[arg(long, hide = true)]
    pub silent: bool,
    /// No effect: large output is kept uncompressed in files of the run's folder
    #[arg(long, hide = true)]
    pub compress: bool,
    /// Likewise
    #[arg(long, hide = true, value_name = "COMMAND")]
    pub compress_program: Option<String>,
    /// Likewise
    #[arg(long, hide = true, value_name = "COMMAND")]
    pub decompress_program: Option<String>,
    /// Print output as tasks end (default)
    #[arg(long, hide = true, overrides_with = "keep_order")]
    pub no_keep_order: bool,
    /// Leave out the options of ~/.parallel/config and $PARALLEL
    #[arg(long)]
    pub plain: bool,
    /// Options from ~/.parallel/NAME in the place of ~/.parallel/config; may be repeated
    #[arg(short = 'J', long, value_name = "NAME")]
    pub profile: Vec<String>,
    /// Folder in which each task runs, made if missing; may hold replacement strings
    #[arg(long, alias = "wd", value_name = "DIR")]
    pub workdir: Option<OsString>,
    /// Lower the priority of tasks by N
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub nice: Option<i32>,
    /// Start tasks only on hosts whose one-minute load average and number of used slots are below this: N, +N, -N, N%
    /// of the cores
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub load: Option<String>,
    /// Hosts as GNU parallel writes them: N/user@host,...; `:` is this machine; may be repeated
    #[arg(short = 'S', long, value_name = "HOST,...")]
    pub sshlogin: Vec<String>,
    /// Read such hosts from FILE, one a line
    #[arg(long, alias = "slf", value_name = "FILE")]
    pub sshloginfile: Vec<PathBuf>,
}

impl ParallelArgs {
    /// Returns how many records become one command. `args` is `-n`; `slots` is the number of commands that run at
    /// once.
    pub fn packing(&self, args: Option<usize>, slots: usize) -> Packing {
        let shared = self.context_replace || self.many;
        let records = self.max_replace_args.or(args).or(self.max_lines());
        let counted = self.max_replace_args.is_some() || self.max_lines().is_some();
        Packing {
            records,
            full: shared || self.xargs,
            length: self.max_chars,
            spread: shared.then_some(slots),
            context: self.context_replace || (counted && !self.many && !self.xargs),
            continued: self.max_lines().is_some(),
        }
    }

    /// Returns whether commands or tags contain the number of their slot.
    pub fn names_the_slot(&self, words: &[OsString]) -> bool {
        let names = |word: &OsString| ["{%}", "{slot}"].iter().any(|name| word.to_string_lossy().contains(name));
        self.slotreplace.is_some()
            || self.process_slot_var.is_some()
            || words.iter().chain(&self.tagstring).any(names)
            || self.rpl.iter().any(|word| word.to_string_lossy().contains("slot()"))
    }

    /// Returns the replacement strings that the options rename, define or add.
    pub fn replacements(&self) -> Replacements {
        let renamed = [
            (if self.replace.is_some() { &self.replace } else { &self.replace_by }, "{}"),
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

    /// Returns the blocks of `--pipe` and `--pipepart`. `args` is `-n`; `slots` is the number of commands that run at
    /// once.
    pub fn blocks(&self, args: Option<usize>, slots: usize) -> Result<Option<Blocking>, Failure> {
        if !self.pipe && !self.pipepart {
            return Ok(None);
        }
        let size = self.block.as_deref().unwrap_or(if self.pipe { "1M" } else { "-10" });
        let number = |text: &str| homing_batch::scaled(text).filter(|number| *number > 0.0);
        let size = match size.strip_prefix('-').map(number) {
            Some(Some(number)) => BlockSize::Number(number * slots as f64),
            _ => BlockSize::Bytes(homing_batch::parse_size("--block", size).map_err(Failure::usage)?),
        };
        let unsaid = if self.recstart.is_some() { "" } else { "\n" };
        let text = |text: &str| match self.regexp {
            true => text.into(),
            false => RawText(homing_batch::unescaped(text.as_bytes())),
        };
        Ok(Some(Blocking {
            size,
            recstart: text(self.recstart.as_deref().unwrap_or_default()),
            recend: text(self.recend.as_deref().unwrap_or(unsaid)),
            regexp: self.regexp,
            header: self.header.clone(),
            tee: self.tee,
            removes_separators: self.rrs,
            piped: self.pipe.then(|| self.each(args)),
        }))
    }

    /// Returns the unit of which `--pipe` makes a block. `args` is `-n`.
    fn each(&self, args: Option<usize>) -> Each {
        let counted = |count: Option<usize>| count.filter(|n| *n > 0);
        match (counted(self.max_replace_args.or(args)), counted(self.max_lines())) {
            (Some(records), lines) => Each::Records(records.saturating_mul(lines.unwrap_or(1))),
            (None, Some(lines)) => Each::Lines(lines),
            (None, None) => Each::Fitting,
        }
    }

    /// Returns whether columns have names (`--header :`), and whether input files are names and no patterns
    /// (`--header 0`).
    pub fn header(&self) -> Result<[bool; 2], Failure> {
        match self.header.as_deref() {
            None => Ok([false, false]),
            Some(":") => Ok([true, false]),
            Some("0") => Ok([false, true]),
            // The beginning of the input of blocks, which names no column.
            Some(_) if self.pipe || self.pipepart => Ok([false, false]),
            Some(other) => {
                let why = format!("--header takes ':', the first line as names of columns, or 0, not {other:?}");
                Err(Failure::usage(why).hint("tail -n +2 FILE leaves out a line"))
            }
        }
    }

    /// Returns the most input lines of one command.
    fn max_lines(&self) -> Option<usize> {
        // GNU parallel takes `-l0` for one line; `-L0` is none.
        self.max_lines.or(self.lines.map(|lines| lines.max(1)))
    }

    /// Returns which tasks have colours.
    pub fn colours(&self) -> Option<Colours> {
        let all = self.color || self.ctag || self.ctagstring.is_some();
        match (all, self.color_failed) {
            (true, true) => Some(Colours::AllAndFailed),
            (true, false) => Some(Colours::All),
            (false, failed) => failed.then_some(Colours::Failed),
        }
    }

    /// Returns the text that ends an input source.
    pub fn end(&self) -> Option<RawText> {
        self.end.as_ref().or(self.eof.as_ref()).filter(|text| !text.is_empty()).cloned().map(RawText::from)
    }

    /// Returns the text that begins each line of output. `tag`: `--tag` was given.
    pub fn tag(&self, tag: bool) -> Option<RawText> {
        let tag = tag || self.ctag;
        let own = self
            .tagstring
            .clone()
            .or_else(|| self.ctagstring.clone())
            .map(|text| RawText(homing_batch::unescaped(&RawText::from(text).0)));
        own.or_else(|| tag.then(|| "{}".into()))
    }
}

/// Parses a number as GNU parallel writes it: 12, 1k, 1Ki.
pub fn count(text: &str) -> Result<usize, String> {
    let number = homing_batch::parse_size("it", text).map_err(|_| "a number is needed, as in 12 or 1k".to_string())?;
    usize::try_from(number).map_err(|e| e.to_string())
}

impl ParallelArgs {
    /// Whether hosts are given in GNU parallel's notation.
    pub fn names_logins(&self) -> bool {
        !(self.sshlogin.is_empty() && self.sshloginfile.is_empty())
    }
}

/// Returns the hosts of `--sshlogin` and `--sshloginfile`, in their order.
pub fn logins(given: &ParallelArgs) -> Result<Vec<Login>, Failure> {
    let mut found = Vec::new();
    for text in &given.sshlogin {
        found.extend(homing_batch::logins(text)?);
    }
    for path in &given.sshloginfile {
        let text = std::fs::read_to_string(path)
            .map_err(|e| Failure::usage(format!("cannot read the hosts in {}: {e}", path.display())))?;
        found.extend(homing_batch::logins_of_file(&text)?);
    }
    Ok(found)
}
