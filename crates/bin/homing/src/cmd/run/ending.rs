//! The end of a run: the evidence that it prints, its exit status, and the user's command after it.

use super::listen::Screen;
use super::{again, on_exit};
use crate::cmd::evidence::{read, tell_run};
use crate::progress::{columns_of, has_colors};
use homing_dispatch::DispatchError;
use homing_model::fit::wrapped;
use homing_model::{Failure, document, exit};
use homing_os::folder::NamedFile;
use homing_scheduler::System;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;

/// The file of `--json=FILE`, or standard error for `--json`.
pub(super) enum JsonTarget {
    /// A file, opened before anything runs, and its path.
    File(NamedFile, PathBuf),
    /// Standard error, in place of the lines for people.
    StandardError,
}

/// The things to do when a run has ended.
pub(super) struct RunEnding {
    /// Name of the run.
    pub name: String,
    /// The value of `--name`.
    pub label: Option<String>,
    /// Whether the lines for people are left out.
    pub quiet: bool,
    /// Where the evidence is written as JSON.
    pub json: Option<JsonTarget>,
    /// The note on a batch without any task.
    pub empty: String,
    /// The command of `--on-exit`.
    pub on_exit: Option<OsString>,
    /// Whether all hosts are this machine.
    pub is_here: bool,
    /// Whether there are several hosts.
    pub is_spread: bool,
    /// The batch system that grants hosts.
    pub system: Option<System>,
}

impl RunEnding {
    /// Shows the evidence and runs the command of `--on-exit`. Returns the exit status.
    ///
    /// # Errors
    /// `ended` is one, the evidence cannot be written, or the job log lacks lines.
    pub fn conclude(mut self, ended: Result<i32, Failure>, screen: Screen) -> Result<i32, Failure> {
        let counts = self.on_exit.is_some().then(|| screen.tally.counts().clone());
        let ended = ended.and_then(|status| self.show(screen, status));
        if let (Some(line), Some(counts)) = (&self.on_exit, counts) {
            on_exit::run(line, &self.name, self.label.as_deref(), &counts, &ended);
        }
        ended
    }

    /// Prints the evidence of the run. Returns its status, or an error if the job log lacks lines.
    fn show(&mut self, screen: Screen, status: i32) -> Result<i32, Failure> {
        // A reader that closed the pipe early does not want the evidence.
        if status != exit::UNREAD || self.json.is_some() {
            let is_empty = status == 0 && screen.tally.counts().is_none();
            self.evidence(&screen, is_empty)?;
        }
        match screen.unlogged {
            Some(e) => Err(Failure::system(format!("cannot write the job log: {e}"))
                .hint(format!("free some space, then homing resume {}, which writes the missing lines", self.name))),
            None => Ok(status),
        }
    }

    fn evidence(&mut self, screen: &Screen, is_empty: bool) -> Result<(), Failure> {
        if !self.quiet && !matches!(self.json, Some(JsonTarget::StandardError)) {
            self.print_lines(screen, is_empty);
        }
        let Some(target) = self.json.take() else { return Ok(()) };
        let name = &self.name;
        // The journal is read again only if tasks have failed.
        let failures = match screen.tally.counts().failed() {
            0 => serde_json::Value::Array(Vec::new()),
            _ => again::failures_json(&read(name, false, false)?),
        };
        let json = again::whole_json(&screen.tally, failures);
        match target {
            // Unlike other lines on standard error, a program waits for this one.
            JsonTarget::StandardError => {
                let doing = format!("cannot write the evidence of run {name} to standard error");
                let written = io::stderr().write_all(document::line(json).as_bytes());
                written.map_err(|e| Failure::unwritten(&doing, &e))
            }
            JsonTarget::File(file, path) => {
                let failed =
                    |e| Failure::system(format!("writing the evidence of run {name} to {}: {e}", path.display()));
                file.write(document::text(json).as_bytes()).map_err(failed)
            }
        }
    }

    fn print_lines(&self, screen: &Screen, is_empty: bool) {
        let color = has_colors(io::stderr());
        let brief = self.is_here && !self.is_spread;
        let lines = if brief { screen.tally.brief(color) } else { screen.tally.short(color) };
        eprint!("{}", wrapped(&lines, columns_of(io::stderr())));
        if let Some(elsewhere) = screen.tally.elsewhere().filter(|_| !self.is_spread) {
            eprintln!("homing: {elsewhere}; --on ssh runs commands on these hosts");
        }
        if !brief {
            tell_run(&self.name);
        }
        if is_empty {
            eprintln!("homing: {}", self.empty);
        }
    }

    /// Returns the failure for a run that could not go on, with the next step.
    pub fn failure(&self, error: DispatchError) -> Failure {
        let failure = Failure::system(&error);
        if let (DispatchError::NoHosts(_), Some(system)) = (&error, self.system) {
            return failure.hint(system.words().listing());
        }
        match error {
            DispatchError::NoHosts(_) | DispatchError::NotAllHosts(_) => {
                failure.hint("ssh to one of these hosts by hand, then `homing hosts`")
            }
            DispatchError::Output(e) if e.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error()) => {
                failure.hint(format!("homing resume {}, with standard output open", self.name))
            }
            _ => failure.hint(format!("free some space, then homing resume {}", self.name)),
        }
    }
}
