//! Options for cutting input into values, and for putting values into commands.

use crate::perl::Perl;
use crate::shell::ShellFunctions;
use crate::strings::Replacements;
use homing_model::RawText;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The ends of a value that lose their blanks (`--trim`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// `n`
    No,
    /// `l`
    Left,
    /// `r`
    Right,
    /// `lr` or `rl`
    Both,
}

/// The number of records that become one command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packing {
    /// `-n`, `-N`, `-L`: the most records; `Some(0)`: one, which is not passed to the command.
    pub records: Option<usize>,
    /// `-X`, `-m`, `--xargs`: as many as fit on a command line.
    pub full: bool,
    /// `-s`: the bytes that a command line must stay below.
    pub length: Option<usize>,
    /// `-X`, `-m`: the records of the last command are divided among this many slots.
    pub spread: Option<usize>,
    /// `-X`, `-N`, `-L`: the text around `{}` is repeated with it.
    pub context: bool,
    /// `-L`: a line that ends in a blank continues in the next.
    pub continued: bool,
}

/// The way in which files or standard input are cut.
#[derive(Clone, Debug)]
pub struct Blocking {
    /// The size of a block, before the rest of its last record.
    pub size: BlockSize,
    /// The beginning of a record; it is not cut off.
    pub recstart: RawText,
    /// The end of a record; it is not cut off.
    pub recend: RawText,
    /// `--regexp`: both are regular expressions.
    pub regexp: bool,
    /// `--header`: the beginning of the input that precedes each block, as a regular expression or a number of lines.
    pub header: Option<String>,
    /// `--tee`: each command of the values behind `:::` reads all of standard input.
    pub tee: bool,
    /// `--rrs`: texts between records are left out.
    pub removes_separators: bool,
    /// The unit of standard input that becomes a block; `None`: the files of `-a` are cut.
    pub piped: Option<Each>,
}

/// Size of blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BlockSize {
    /// Bytes.
    Bytes(u64),
    /// The size that gives this many blocks of all files together.
    Number(f64),
}

/// The unit of standard input that becomes one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Each {
    /// The whole records in the bytes of `--block`.
    Fitting,
    /// `-N`: this many records.
    Records(usize),
    /// `-L`: the lines in the bytes of `--block`, a multiple of this.
    Lines(usize),
}

/// The options of GNU parallel's input language, under their names there.
#[derive(Clone, Debug)]
pub struct InputOptions {
    /// The directory from which relative input files are opened.
    pub cwd: PathBuf,
    /// `--shuf`: random order, the same for the same seed.
    pub shuf: Option<u64>,
    /// `-0`: records of files and standard input end with a zero byte.
    pub null: bool,
    /// `-d`: records end with this; `\n`, `\t`, `\0`, `\xHH` are understood.
    pub delimiter: Option<RawText>,
    /// `--colsep`: a regular expression that cuts a record into columns.
    pub colsep: Option<RawText>,
    /// The number of records that become one command.
    pub packing: Packing,
    /// `--pipe`, `--pipepart`: standard input or the files of `-a` are cut, and each block is the standard input of a
    /// command.
    pub blocks: Option<Blocking>,
    /// `--header`: the first record of each source names its columns.
    pub header: bool,
    /// `--header 0`: the name of a file of input is a replacement string for its values.
    pub names_files: bool,
    /// `--link`: all sources advance together, and the shorter ones start again.
    pub link: bool,
    /// `--arg-sep`: replaces `:::`.
    pub arg_sep: RawText,
    /// `--arg-file-sep`: replaces `::::`.
    pub arg_file_sep: RawText,
    /// Replacement strings besides GNU parallel's own.
    pub replacements: Replacements,
    /// `--tag`, `--tagstring`: the beginning of each line of output.
    pub tag: Option<RawText>,
    /// `--workdir`: the folder where each task runs.
    pub workdir: Option<RawText>,
    /// `-E`: a record that is this text ends its source.
    pub end: Option<RawText>,
    /// Evaluates `{= =}` and `--rpl`; without it only substitutions are known.
    pub perl: Option<Arc<dyn Perl>>,
    /// `--skip-first-line`: the first record of the first source, or the first line of blocks, is left out.
    pub skip_first_line: bool,
    /// `--process-slot-var`: the variable that holds the number of the task's slot, counted from 0.
    pub slot_variable: Option<RawText>,
    /// `-r`: records that are empty or blank are skipped.
    pub no_run_if_empty: bool,
    /// `-a`: files that are input sources, before those on the command line.
    pub arg_files: Vec<PathBuf>,
    /// Templates of the files that a task writes, e.g. `{.}.sam`.
    pub outputs: Vec<RawText>,
    /// `--near`: templates of files that a task reads besides those found in its command.
    pub inputs_extra: Vec<RawText>,
    /// The shell that will run the lines; the csh family needs its own quoting.
    pub shell: RawText,
    /// `-q`: each word of the command stays one word, whatever characters it contains.
    pub quote: bool,
    /// `--trim`; the default is `Both` with `--colsep` and `No` without.
    pub trim: Option<Trim>,
    /// A command that starts with one of these goes through the shell.
    pub functions: ShellFunctions,
    /// The largest amount of each named resource on a host of the run, in parts of a unit.
    pub resources: BTreeMap<String, u64>,
}

impl Default for InputOptions {
    fn default() -> Self {
        InputOptions {
            cwd: PathBuf::from("."),
            shuf: None,
            null: false,
            delimiter: None,
            colsep: None,
            packing: Packing::default(),
            blocks: None,
            header: false,
            names_files: false,
            link: false,
            arg_sep: ":::".into(),
            arg_file_sep: "::::".into(),
            replacements: Replacements::default(),
            tag: None,
            workdir: None,
            end: None,
            perl: None,
            skip_first_line: false,
            slot_variable: None,
            no_run_if_empty: false,
            arg_files: Vec::new(),
            outputs: Vec::new(),
            inputs_extra: Vec::new(),
            shell: "/bin/sh".into(),
            quote: false,
            trim: None,
            functions: ShellFunctions::default(),
            resources: BTreeMap::new(),
        }
    }
}
