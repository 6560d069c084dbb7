//! How input is cut into values and values are put into commands.

use homing_model::RawText;
use std::path::PathBuf;

/// Which ends of a value lose their blanks (`--trim`).
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

/// The options of GNU parallel's input language, under their names there.
#[derive(Clone, Debug)]
pub struct InputOptions {
    /// Directory from which relative input files are opened.
    pub cwd: PathBuf,
    /// `--shuf`: random order, the same for the same seed.
    pub shuf: Option<u64>,
    /// `-0`: records of files and standard input end with a zero byte.
    pub null: bool,
    /// `-d`: they end with this; `\n`, `\t`, `\0`, `\xHH` are understood.
    pub delimiter: Option<RawText>,
    /// `--colsep`: a regular expression that cuts a record into columns.
    pub colsep: Option<RawText>,
    /// `-n`/`-N`: this many records for one command.
    pub max_args: Option<usize>,
    /// `-r`: records that are empty or blank are passed over.
    pub no_run_if_empty: bool,
    /// `-a`: files that are input sources, before those on the command line.
    pub arg_files: Vec<PathBuf>,
    /// Templates of the files that a task writes, e.g. `{.}.sam`.
    pub outputs: Vec<RawText>,
    /// `--near`: templates of files that a task reads besides those found in its command.
    pub inputs_extra: Vec<RawText>,
    /// The shell that will run the lines; the csh family needs its own quoting.
    pub shell: RawText,
    /// `-q`: each word of the command stays one word, whatever it holds.
    pub quote: bool,
    /// `--trim`; when not given, `Both` with `--colsep` and `No` without.
    pub trim: Option<Trim>,
    /// Names that only the shell knows (exported functions): a command that
    /// starts with one goes through the shell.
    pub functions: Vec<RawText>,
}

impl Default for InputOptions {
    fn default() -> Self {
        InputOptions {
            cwd: PathBuf::from("."),
            shuf: None,
            null: false,
            delimiter: None,
            colsep: None,
            max_args: None,
            no_run_if_empty: false,
            arg_files: Vec::new(),
            outputs: Vec::new(),
            inputs_extra: Vec::new(),
            shell: "/bin/sh".into(),
            quote: false,
            trim: None,
            functions: Vec::new(),
        }
    }
}
