//! The LSF front end. `homing lsf install DIR` puts links named bsub, bjobs and so on there. Under those names the
//! program takes LSF's options and prints LSF's output, with any engine that keeps the jobs.
//!
//! Messages that programs parse are LSF's own. A message for which LSF has no wording is homing's.

mod absent;
mod act;
mod attach;
mod bacct;
mod badmin;
mod bgadd;
mod blaunch;
mod bmgroup;
mod bsub;
mod bugroup;
mod bwait;
mod change;
mod config;
mod install;
mod iobsub;
mod joined;
mod listing;
mod load;
mod lsload;
mod lsrun;
mod peek;
mod server;

use homing_lsf::options::{Grammar, Parsed, parse};
use homing_model::{Failure, RawText};
use homing_queue::Engine;
use std::ffi::OsStr;
use std::path::Path;

pub use attach::{AttachArgs, attach};
pub use blaunch::{HOST as RANK, host as rank};
pub use install::{Args, run};

/// A function that executes an LSF command with its words; it returns the exit status.
type Verb = fn(&[RawText]) -> Result<i32, Refusal>;

/// The LSF commands that the program executes.
const VERBS: [(&str, Verb); 33] = [
    ("bsub", bsub::run),
    ("iobsub", iobsub::run),
    ("bjobs", listing::bjobs),
    ("bhist", listing::bhist),
    ("bkill", act::bkill),
    ("bstop", act::bstop),
    ("bresume", act::bresume),
    ("bpeek", peek::run),
    ("bacct", bacct::bacct),
    ("bgadd", bgadd::run),
    ("bmgroup", bmgroup::bmgroup),
    ("brequeue", act::brequeue),
    ("bwait", bwait::bwait),
    ("blaunch", blaunch::blaunch),
    ("bmod", change::bmod),
    ("bswitch", change::bswitch),
    ("btop", change::btop),
    ("bbot", change::bbot),
    ("bqueues", load::bqueues),
    ("bhosts", load::bhosts),
    ("lsload", lsload::lsload),
    ("lshosts", load::lshosts),
    ("lsrun", lsrun::run),
    ("lsid", config::lsid),
    ("lsclusters", config::lsclusters),
    ("badmin", badmin::badmin),
    ("lsadmin", badmin::lsadmin),
    ("bparams", config::bparams),
    ("busers", load::busers),
    ("bugroup", bugroup::bugroup),
    ("lsinfo", config::lsinfo),
    ("lsplace", lsload::lsplace),
    ("lsmon", lsload::lsmon),
];

/// Returns all names by which the program can be called.
pub fn names() -> impl Iterator<Item = &'static str> {
    VERBS.iter().map(|(name, _)| *name).chain(absent::ABSENT.iter().map(|(name, _)| *name))
}

/// The name of the cluster, which LSF's commands print.
const CLUSTER: &str = "homing";

/// The reason why a command did not do its work.
enum Refusal {
    /// A message in LSF's words, printed as it is, and the exit status.
    Said(String, i32),
    /// A failure in homing's words.
    Failed(Failure),
}

impl Refusal {
    /// Adds the sentence with which LSF ends the message on a request: `Job not submitted.`
    fn closing(self, sentence: &str) -> Refusal {
        match self {
            Refusal::Said(text, status) => Refusal::Said(format!("{text}. {sentence}"), status),
            failed => failed,
        }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal::Failed(failure)
    }
}

impl From<homing_queue::QueueError> for Refusal {
    fn from(error: homing_queue::QueueError) -> Self {
        match error {
            homing_queue::QueueError::NotFound(id) => lsf_refusal(format!("Job <{id}> is not found")),
            error => Refusal::Failed(error.into()),
        }
    }
}

/// Refuses with LSF's exit status for that, -1.
fn lsf_refusal(text: impl Into<String>) -> Refusal {
    Refusal::Said(text.into(), 255)
}

/// LSF's last sentence on a request of bsub that is refused.
const NOT_SUBMITTED: &str = "Job not submitted.";
/// The same of bmod.
const NOT_MODIFIED: &str = "Job not modified.";

/// Refuses a request in LSF's words.
fn not_submitted(why: impl std::fmt::Display) -> Refusal {
    lsf_refusal(why.to_string()).closing(NOT_SUBMITTED)
}

/// Runs the LSF command by whose name the program was called; `None` if the name is no such command.
pub fn by_name(words: &[std::ffi::OsString]) -> Option<i32> {
    let name = Path::new(words.first()?).file_name()?;
    let name = names().find(|known| OsStr::new(known) == name)?;
    let words: Vec<RawText> = words[1..].iter().map(|w| RawText::from(w.as_os_str())).collect();
    let done = match VERBS.iter().find(|(verb, _)| *verb == name) {
        Some((_, verb)) => verb(&words),
        None => Err(absent::refusal(name)),
    };
    Some(match done {
        Ok(status) => status,
        Err(Refusal::Said(text, status)) => {
            eprintln!("{text}");
            status
        }
        Err(Refusal::Failed(failure)) => {
            eprintln!("{name}: {}", failure.to_string().trim_start_matches("homing: "));
            failure.status
        }
    })
}

/// Parses the options of a command. `-h` and `-V` are answered here.
fn options(name: &str, grammar: &Grammar, words: &[RawText]) -> Result<Option<Parsed>, Refusal> {
    let parsed =
        parse(grammar, words).map_err(|why| lsf_refusal(format!("{name}: {why}\n{}", usage(name, grammar))))?;
    if parsed.has("h") {
        eprintln!("{}", usage(name, grammar));
        return Ok(None);
    }
    if parsed.has("V") {
        eprintln!("{}", version());
        return Ok(None);
    }
    parsed.notes.iter().for_each(|note| eprintln!("{name}: {note}"));
    Ok(Some(parsed))
}

fn usage(name: &str, grammar: &Grammar) -> String {
    let flags: Vec<String> = grammar.flags.iter().map(|f| format!("[-{f}]")).collect();
    let valued: Vec<String> = grammar.valued.iter().map(|f| format!("[-{f} value]")).collect();
    format!("Usage: {name} {} {}", flags.join(" "), valued.join(" "))
}

fn version() -> String {
    format!("homing {}, answering as LSF", crate::programs::version())
}

fn engine() -> Result<Box<dyn Engine>, Refusal> {
    let named = std::env::var("HOMING_ENGINE").ok().map(|name| {
        use clap::ValueEnum;
        let bad = |_| Failure::usage(format!("HOMING_ENGINE={name}: no such queue engine")).hint("local or slurm");
        crate::cmd::queue::EngineName::from_str(&name, true).map_err(bad)
    });
    Ok(crate::cmd::queue::EngineArgs { engine: named.transpose()? }.open()?)
}

/// Prints a text. A reader that is gone (`| head`) is no error of homing.
fn print(text: &str) -> Result<i32, Refusal> {
    Ok(crate::cmd::runs::to_stdout(text)?)
}

fn own_name() -> String {
    homing_queue::user_name(homing_queue::uid())
}
