//! Errors of a batch; each message names the next step.

use homing_model::RawText;
use std::io;

/// A batch that cannot be made, or one record of it that cannot.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// An input source cannot be opened.
    #[error("cannot open the input file {path}: {source}")]
    Open {
        /// The name that the user gave.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// An input source failed while it was read.
    #[error("cannot read {name}: {source}")]
    Read {
        /// The file, or `standard input`.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// An item without an end, or too long for a command line.
    #[error(
        "{name}: item {item} is longer than {limit} bytes, which no command line of Linux can carry; \
         is this a list, one item a line (-0 or -d for others)?"
    )]
    TooLong {
        /// The file, or `standard input`.
        name: String,
        /// The number of the item, from 1.
        item: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// A value leads out of the folder of the template of `--results`.
    #[error(
        "--results {} leads to {}, out of its folder; name the files by {{#}}, the number of the task, or by {{/}}, the \
         last part of the value",
        .results.display(), .path.display()
    )]
    LeadsOut {
        /// The template.
        results: RawText,
        /// The path with the values of a task.
        path: RawText,
    },
    /// There is no input source, and standard input is a terminal.
    #[error(
        "nothing to run: no input after ':::' or '::::', and standard input is a terminal; \
         add '::: VALUES', ':::: FILE' or pipe lines in"
    )]
    NoInput,
    /// `-` was named more than once.
    #[error("standard input is named as an input source twice; it can be read only once")]
    StdinTwice,
    /// `:::+` has nothing to be linked to.
    #[error("'{0}' links to the source before it, but it is the first source; use '{plain}'", plain = .0.trim_end_matches('+'))]
    LinkFirst(String),
    /// `::::` without a file.
    #[error("'::::' is followed by no file; name one, or '-' for standard input")]
    NoFile,
    /// An invalid separator.
    #[error("{option} '{value}': {reason}")]
    Separator {
        /// `--colsep` or `--delimiter`.
        option: &'static str,
        /// The given value.
        value: String,
        /// Its fault.
        reason: String,
    },
    /// Perl in a replacement string.
    #[error(
        "the replacement string '{0}' is Perl, which homing does not run; use {{}} {{.}} {{/}} {{//}} {{/.}} {{1}}, \
         those of --plus, or --rpl '{{x}} s/RE/TEXT/g'"
    )]
    Perl(String),
    /// One record already fills more than a command line.
    #[error("a command of {length} bytes is too long already with one argument: the limit is {limit} (--max-chars)")]
    LongCommand {
        /// The length in bytes.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// There are more combinations than can be counted.
    #[error("the input sources together make more than 2^63 combinations")]
    TooMany,
    /// A value has a zero byte, which no command line can carry.
    #[error("task {task}: a value holds a zero byte, which no command line can carry; {hint}")]
    Nul {
        /// The number that the task would have had.
        task: u64,
        /// The next step, by the input and the options.
        hint: &'static str,
    },
    /// A line of a task file.
    #[error("{name} line {line}: {reason}")]
    TaskLine {
        /// The file.
        name: String,
        /// The number of the line, from 1.
        line: u64,
        /// The fault.
        reason: String,
    },
    /// An option value that does not follow its grammar.
    #[error("{option} '{value}': {reason}")]
    Value {
        /// The option, e.g. `--halt`.
        option: &'static str,
        /// The given value.
        value: String,
        /// A description of the right value.
        reason: String,
    },
    /// A joblog that cannot be used.
    #[error("joblog line {line} is not in GNU parallel's format: '{text}'; move the file away to start a new one")]
    Joblog {
        /// The number of the line, from 1.
        line: u64,
        /// The line.
        text: String,
    },
}

impl BatchError {
    /// Whether nothing can be read after it.
    pub(crate) fn ends_the_input(&self) -> bool {
        matches!(
            self,
            BatchError::Read { .. } | BatchError::TooLong { .. } | BatchError::LongCommand { .. } | BatchError::TooMany
        )
    }

    pub(crate) fn value(option: &'static str, value: &str, reason: impl Into<String>) -> Self {
        BatchError::Value { option, value: value.to_owned(), reason: reason.into() }
    }
}
