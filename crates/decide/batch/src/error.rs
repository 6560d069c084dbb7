//! What can be wrong with a batch, said so that the next step is plain.

use homing_model::RawText;
use std::io;

/// A batch that cannot be made, or one record of it that cannot.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// An input source cannot be opened.
    #[error("cannot open the input file {path}: {source}")]
    Open {
        /// As the user named it.
        path: String,
        /// What the system answered.
        source: io::Error,
    },
    /// An input source broke while it was read.
    #[error("cannot read {name}: {source}")]
    Read {
        /// The file, or `standard input`.
        name: String,
        /// What the system answered.
        source: io::Error,
    },
    /// An item without end, or one that no command line can carry.
    #[error(
        "{name}: item {item} is longer than {limit} bytes, which no command line of Linux can carry; \
         is this a list, one item a line (-0 or -d for others)?"
    )]
    TooLong {
        /// The file, or `standard input`.
        name: String,
        /// From 1.
        item: u64,
        /// Bytes.
        limit: usize,
    },
    /// A value in the template of `--results` leads out of its folder.
    #[error(
        "--results {} leads to {}, out of its folder; name the files by {{#}}, the number of the task, or by {{/}}, the \
         last part of the value",
        .results.display(), .path.display()
    )]
    LeadsOut {
        /// The template.
        results: RawText,
        /// Where it leads with the values of a task.
        path: RawText,
    },
    /// Nothing gives input, and standard input is a terminal.
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
    /// A separator that is no separator.
    #[error("{option} '{value}': {reason}")]
    Separator {
        /// `--colsep` or `--delimiter`.
        option: &'static str,
        /// As given.
        value: String,
        /// What is wrong with it.
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
        /// Bytes.
        length: usize,
        /// Bytes.
        limit: usize,
    },
    /// More combinations than can be counted.
    #[error("the input sources together make more than 2^63 combinations")]
    TooMany,
    /// A zero byte, which no command line can carry.
    #[error(
        "task {task}: a value holds a zero byte, which no command line can carry; with '-0' input, do not give '-d'"
    )]
    Nul {
        /// The task it would have been.
        task: u64,
    },
    /// A line of a task file.
    #[error("{name} line {line}: {reason}")]
    TaskLine {
        /// The file.
        name: String,
        /// From 1.
        line: u64,
        /// What is wrong.
        reason: String,
    },
    /// An option value that does not follow its grammar.
    #[error("{option} '{value}': {reason}")]
    Value {
        /// The option, e.g. `--halt`.
        option: &'static str,
        /// As given.
        value: String,
        /// What would be right.
        reason: String,
    },
    /// A joblog that cannot be used.
    #[error("joblog line {line} is not in GNU parallel's format: '{text}'; move the file away to start a new one")]
    Joblog {
        /// From 1.
        line: u64,
        /// The line.
        text: String,
    },
}

impl BatchError {
    /// Nothing can be read after it.
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
