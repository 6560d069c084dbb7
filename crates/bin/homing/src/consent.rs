//! The request for consent before hosts are changed or data is deleted. All commands use this one.
//!
//! `homing power save` requests none: a timer runs it by the rules of the cluster file. Labs need none, because they
//! are made to be thrown away.

use homing_model::Failure;
use homing_model::text::shown_lines;
use std::io::{self, BufRead, IsTerminal, Write};

/// `--yes`. Global, for the commands that have commands below them.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct Consent {
    /// Skip the confirmation; needed where there is no terminal
    #[arg(short = 'y', long, global = true)]
    yes: bool,
    /// Whether the summary needs not be shown: the user has seen it, or wants no words.
    #[arg(skip)]
    is_silent: bool,
}

impl Consent {
    /// The consent of a user who has already agreed in another command.
    pub const GIVEN: Consent = Consent { yes: true, is_silent: true };

    /// Returns whether the user must agree.
    pub fn must_confirm(self) -> bool {
        !self.yes
    }

    /// Returns whether a summary is shown. Only then is it worth making.
    pub fn shows(self) -> bool {
        !self.is_silent
    }

    /// With `--quiet` and `--yes`, no summary is shown. A question needs one.
    pub fn quietly(self, quiet: bool) -> Consent {
        Consent { is_silent: self.is_silent || (quiet && self.yes), ..self }
    }

    /// Refuses a call that can neither go on nor request consent. It comes before the first host is contacted, unless the
    /// answers of hosts are shown also to callers without consent.
    ///
    /// # Errors
    /// There is no terminal and no `--yes`. `what` names the action: `setting up hosts`.
    pub fn possible(self, what: &str) -> Result<(), Failure> {
        if self.yes || (io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Ok(());
        }
        let failure = Failure::usage(format!("{what} needs a confirmation, and standard input is not a terminal"));
        Err(failure.hint("--yes confirms it; nothing was changed"))
    }

    /// Shows a summary, and waits for the user's answer. With `--yes` it only shows the summary: a log of a script has
    /// the plan, too.
    ///
    /// # Errors
    /// As [`Consent::possible`], and if the answer is not yes.
    pub fn confirm(self, what: &str, summary: &str) -> Result<(), Failure> {
        self.possible(what)?;
        if self.shows() {
            eprintln!("{}", shown_lines(summary.trim_end()));
        }
        if self.yes {
            return Ok(());
        }
        eprint!("Continue? [y/N] ");
        let _ = io::stderr().flush();
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        read.map_err(|e| Failure::system(format!("reading the answer: {e}")))?;
        if is_yes(&line) {
            return Ok(());
        }
        if !line.ends_with('\n') {
            eprintln!("");
        }
        Err(Failure::usage(format!("{what} was not confirmed; nothing was changed")))
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_yes() {
        assert!(["y\n", "Yes\n", " YES "].into_iter().all(is_yes));
        assert!(["", "\n", "n\n", "yes please\n", "j\n", "yy\n"].into_iter().all(|answer| !is_yes(answer)));
    }

    #[test]
    fn yes_keeps_the_summary_and_leaves_the_question_out() {
        let yes = Consent { yes: true, ..Consent::default() };
        assert!(yes.shows() && !yes.must_confirm() && yes.confirm("this", "all of it").is_ok());
        assert!(!yes.quietly(true).shows() && yes.quietly(false).shows());
        assert!(Consent::default().quietly(true).shows(), "a question needs its summary");
        assert!(!Consent::GIVEN.shows(), "the user has seen it");
    }

    #[test]
    fn a_given_consent_asks_nobody() {
        assert!(Consent::GIVEN.possible("this").is_ok() && Consent::GIVEN.confirm("this", "all of it").is_ok());
    }
}
