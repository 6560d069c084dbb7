//! The options of `homing exec` beside those that name hosts and connections, read by the table.

use super::table::CLUSH;
use crate::peer::{self, value, values};
use crate::progress::has_colors;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};
use homing_model::Failure;
use std::io::IsTerminal;
use std::path::PathBuf;

/// The condition for colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Never,
    Always,
    Auto,
}

impl When {
    /// Reads a value of `--color`.
    pub fn read(text: &str) -> Result<When, &'static str> {
        match text {
            "never" => Ok(When::Never),
            "always" => Ok(When::Always),
            "auto" | "" => Ok(When::Auto),
            _ => Err("never, always or auto"),
        }
    }

    /// Returns whether `out` gets colours.
    pub fn inks(self, out: impl IsTerminal) -> bool {
        match self {
            When::Never => false,
            When::Always => true,
            When::Auto => has_colors(out),
        }
    }
}

/// The options, each by the row of the table with its name.
#[derive(Default)]
pub struct ClushOptions {
    pub gather: bool,
    pub gather_all: bool,
    pub line_mode: bool,
    pub diff: bool,
    pub no_label: bool,
    pub regroup: bool,
    pub groupbase: bool,
    pub groupsource: Option<String>,
    pub groupsconf: Option<PathBuf>,
    pub pick: Option<String>,
    pub quiet: bool,
    pub verbose: bool,
    pub progress: bool,
    pub color: Option<When>,
    pub maxrc: bool,
    pub nostdin: bool,
    pub outdir: Option<PathBuf>,
    pub errdir: Option<PathBuf>,
    pub worker: Option<String>,
    pub settings: Vec<String>,
    /// Whether headers count hosts: not an option, but a setting.
    pub counts: bool,
    /// The refusal of an option that is not here.
    pub refused: Option<Failure>,
}

impl ClushOptions {
    /// Returns whether output is kept to the end.
    pub fn gathers(&self) -> bool {
        self.gather || self.gather_all || self.diff || self.line_mode
    }
}

impl FromArgMatches for ClushOptions {
    fn from_arg_matches(found: &ArgMatches) -> Result<ClushOptions, Error> {
        let color = value(found, "color").map(|text| When::read(&text).map_err(|possible| (text.clone(), possible)));
        let refused = peer::refuse(found, CLUSH, "clush").err();
        let wrong = |(text, possible)| Failure::usage(format!("--color {text}: possible values: {possible}"));
        let (color, refused) = match color.transpose() {
            Ok(color) => (color, refused),
            Err(why) => (None, refused.or(Some(wrong(why)))),
        };
        Ok(ClushOptions {
            gather: found.get_flag("gather"),
            gather_all: found.get_flag("gather_all"),
            line_mode: found.get_flag("line_mode"),
            diff: found.get_flag("diff"),
            no_label: found.get_flag("no_label"),
            regroup: found.get_flag("regroup"),
            groupbase: found.get_flag("groupbase"),
            groupsource: value(found, "groupsource"),
            groupsconf: value(found, "groupsconf").map(PathBuf::from),
            pick: value(found, "pick"),
            quiet: found.get_flag("quiet"),
            verbose: found.get_flag("verbose"),
            progress: found.get_flag("progress"),
            color,
            maxrc: found.get_flag("maxrc"),
            nostdin: found.get_flag("nostdin"),
            outdir: value(found, "outdir").map(PathBuf::from),
            errdir: value(found, "errdir").map(PathBuf::from),
            worker: value(found, "worker"),
            settings: values(found, "settings"),
            counts: true,
            refused,
        })
    }

    fn update_from_arg_matches(&mut self, found: &ArgMatches) -> Result<(), Error> {
        *self = ClushOptions::from_arg_matches(found)?;
        Ok(())
    }
}

impl Args for ClushOptions {
    fn augment_args(command: Command) -> Command {
        // clush takes the beginning of a long option that no other one has.
        peer::add(command, CLUSH).infer_long_args(true).mut_arg("diff", |arg| arg.conflicts_with("line_mode"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        ClushOptions::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> ClushOptions {
        let command = ClushOptions::augment_args(Command::new("exec").no_binary_name(true));
        ClushOptions::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
    }

    #[test]
    fn options_are_read_as_clush_reads_them() {
        let own = of(&["-qb", "--prog", "--color=always", "-Rexec", "-O", "a=1", "--option=b=2", "--pick", "3"]);
        assert!(own.quiet && own.gather && own.progress && own.refused.is_none());
        assert_eq!(
            (own.color, own.worker.as_deref(), own.pick.as_deref()),
            (Some(When::Always), Some("exec"), Some("3"))
        );
        assert_eq!(own.settings, ["a=1", "b=2"]);
    }

    #[test]
    fn an_option_that_is_not_here_names_the_replacement() {
        for words in
            [&["-m", "sudo"][..], &["--copy"], &["-c"], &["--conf=x"], &["-d"], &["-E", "poll"], &["--topo", "x"]]
        {
            let failure = of(words).refused.expect("refused");
            assert!(
                failure.message.contains("is not supported") && failure.hint.is_some(),
                "{words:?}: {}",
                failure.message
            );
        }
        assert!(of(&["--color", "red"]).refused.unwrap().message.contains("never, always or auto"));
    }

    #[test]
    fn the_manual_has_all_options() {
        let grammar = crate::cmd::exec::Args::augment_args(Command::new("exec"));
        peer::manual_tests::compare("docs/manual/clush.md", "options of clush", &grammar, CLUSH);
    }
}
