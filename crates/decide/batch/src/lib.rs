//! Turns the user's input into tasks: GNU parallel's input language, task files, and option values in GNU parallel's
//! grammar. It converts text to values: it starts no process, and reads only the input sources that the user named,
//! through [`InputOpener`].
//!
//! The path of a batch: `sources` (words, files, standard input) give records, and `template` turns a record into a
//! command. [`Batch`] hands out one task at a time: a million tasks never exist at once.
//!
//! Two differences from GNU parallel are on purpose. A value after `:::` may contain a newline and stays one value. A
//! value of `.` or `..` never leads out of a `--results` tree.
//!
//! It does not: look for the bytes of inputs (`locate`), or start a command (`worker`).

mod absent;
mod amount;
mod blanks;
mod blocks;
mod boundary;
mod compose;
mod edit;
mod error;
mod halt;
mod inputs;
mod joblog;
mod login;
mod options;
mod pack;
mod perl;
mod piped;
mod quote;
mod records;
mod results;
mod shell;
mod shuffle;
mod skip;
mod slot;
mod sources;
mod strings;
mod tasks_file;
mod template;

pub use absent::absent;
pub use amount::{
    Timeout, jobs, parse_duration, parse_duration_within, parse_minutes, parse_seconds, parse_size, scaled,
};
pub use compose::{Batch, Tag, compose, tasks_file};
pub use error::BatchError;
pub use halt::{Decision, Halt, HaltOn, HaltState, Limit, TaskCounts, failed_exit_status};
pub use inputs::{Files, HELD_FILE, InputOpener, InputSource, stdin_again};
pub use joblog::{HEADER as JOBLOG_HEADER, JoblogEntry, JoblogLine, JoblogSeen, read as read_joblog};
pub use login::{Login, logins, logins_of_file};
pub use options::{BlockSize, Blocking, Each, InputOptions, Packing, Trim};
pub use perl::{Evaluated, Expression, Perl};
pub use quote::{command_line, quote};
pub use records::unescaped;
pub use results::{ResultPaths, ResultsOption};
pub use shell::{ShellFunctions, command_from_line};
pub use skip::{Freshness, Stale, freshness};
pub use slot::{SLOT_TOKEN, fill_slot, fill_slot_of};
pub use strings::{Replacements, own_replacements};
pub use tasks_file::offered;
