//! Completes the last word of a command line. Pure: names that change from day to day come from a function.

use clap::{Arg, Command};

/// Kinds of names that are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    Runs,
    Jobs,
    Volumes,
    Hosts,
    Labs,
}

/// Returns the candidates for the last word, each of which begins with it. None: the word is a file, or unknown.
pub fn candidates(grammar: &Command, words: &[String], known: &dyn Fn(NameKind) -> Vec<String>) -> Vec<String> {
    let Some((last, before)) = words.split_last() else { return Vec::new() };
    // Bash splits --hosts=n1 at the `=`, which becomes a word.
    let last = if last == "=" { "" } else { last };
    let mut place = WordContext { command: grammar, path: String::new(), positional: 0, option: None, free: false };
    before.iter().for_each(|word| place.pass(word));
    let (done, all) = place.all(last, known);
    let begun = &last[done..];
    let fit = all.into_iter().filter(|c| c.starts_with(begun));
    fit.map(|c| format!("{}{c}", &last[..done])).collect()
}

/// Describes a candidate for the last word. For a command or an option it is the first sentence of the help.
pub fn description(grammar: &Command, words: &[String], candidate: &str) -> Option<String> {
    let (_, before) = words.split_last()?;
    let mut place = WordContext { command: grammar, path: String::new(), positional: 0, option: None, free: false };
    before.iter().for_each(|word| place.pass(word));
    let named = |arg: &&Arg| {
        let longs = arg.get_long_and_visible_aliases().unwrap_or_default();
        candidate.strip_prefix("--").is_some_and(|name| longs.contains(&name))
    };
    let of_value = || {
        let values = place.option.or_else(|| place.here())?.get_possible_values();
        values.iter().find(|value| value.get_name() == candidate)?.get_help().map(ToString::to_string)
    };
    let of_option = || place.command.get_arguments().find(named)?.get_help().map(ToString::to_string);
    let of_command = || place.command.find_subcommand(candidate)?.get_about().map(ToString::to_string);
    let text = match place.option {
        Some(_) => of_value(),
        None if candidate.starts_with('-') => of_option(),
        None => of_command().or_else(of_value),
    }?;
    text.lines().next().map(String::from)
}

/// The place of the next word.
struct WordContext<'g> {
    command: &'g Command,
    /// The command's names, below homing.
    path: String,
    /// Positional arguments that have passed.
    positional: usize,
    /// An option that still waits for its value.
    option: Option<&'g Arg>,
    /// Whether the words are those of a command to run, or its inputs.
    free: bool,
}

impl<'g> WordContext<'g> {
    fn pass(&mut self, word: &str) {
        if self.free || word == "=" {
            return;
        }
        if self.option.take().is_some() {
            return;
        }
        match word {
            "--" => self.free = true,
            _ if word.starts_with(":::") => self.free = true,
            _ if word.starts_with("--") => self.option = self.long(&word[2..]),
            _ if word.starts_with('-') && word.len() > 1 => self.option = self.shorts(&word[1..]),
            _ => self.operand(word),
        }
    }

    fn operand(&mut self, word: &str) {
        if let Some(below) = self.command.find_subcommand(word) {
            self.path = format!("{} {}", self.path, below.get_name()).trim().to_string();
            (self.command, self.positional) = (below, 0);
            return;
        }
        let Some(arg) = self.here() else { return };
        self.free = arg.is_trailing_var_arg_set();
        self.positional += usize::from(!many(arg));
    }

    fn here(&self) -> Option<&'g Arg> {
        self.command.get_positionals().nth(self.positional)
    }

    /// Returns the option of this name, if its value is the next word.
    fn long(&self, name: &str) -> Option<&'g Arg> {
        let named = |a: &&Arg| a.get_long_and_visible_aliases().is_some_and(|all| all.contains(&name));
        self.command.get_arguments().find(named).filter(|a| takes_value(a))
    }

    /// Returns the first option among letters like `-kj` that takes a value, if that is the next word.
    fn shorts(&self, letters: &str) -> Option<&'g Arg> {
        let of = |letter| self.command.get_arguments().find(|a| a.get_short() == Some(letter));
        let (at, arg) = letters.char_indices().find_map(|(at, letter)| {
            let arg = of(letter).filter(|a| takes_value(a))?;
            Some((at + letter.len_utf8(), arg))
        })?;
        (at == letters.len()).then_some(arg)
    }

    /// Returns the number of bytes of the word that stay as they are, and all candidates for the rest.
    fn all(&self, last: &str, known: &dyn Fn(NameKind) -> Vec<String>) -> (usize, Vec<String>) {
        if self.free {
            return (0, Vec::new());
        }
        if let Some(option) = self.option {
            return self.values(option, last, known);
        }
        if let Some((name, value)) = last.split_once('=').filter(|_| last.starts_with("--")) {
            let Some(option) = self.long(&name[2..]) else { return (0, Vec::new()) };
            let (done, all) = self.values(option, value, known);
            return (name.len() + 1 + done, all);
        }
        if last.starts_with('-') {
            return (0, self.options());
        }
        let below = self.command.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name().to_string());
        let below: Vec<String> = below.collect();
        match self.here() {
            Some(arg) if below.is_empty() => self.values(arg, last, known),
            _ => (0, below),
        }
    }

    fn options(&self) -> Vec<String> {
        let shown = self.command.get_arguments().filter(|a| !a.is_hide_set());
        let longs = shown.filter_map(Arg::get_long_and_visible_aliases).flatten();
        longs.map(|name| format!("--{name}")).collect()
    }

    fn values(&self, arg: &Arg, last: &str, known: &dyn Fn(NameKind) -> Vec<String>) -> (usize, Vec<String>) {
        let possible = arg.get_possible_values();
        if !possible.is_empty() {
            return (0, possible.iter().filter(|v| !v.is_hide_set()).map(|v| v.get_name().to_string()).collect());
        }
        let Some(names) = self.names(arg) else { return (0, Vec::new()) };
        // Only the last part of a node set is completed.
        let done = if names == NameKind::Hosts { last.rfind([',', '!', '&']).map_or(0, |at| at + 1) } else { 0 };
        (done, known(names))
    }

    /// Returns the kind of a value, by its name in the help.
    fn names(&self, arg: &Arg) -> Option<NameKind> {
        let named = arg.get_value_names().and_then(<[_]>::first).map(|name| name.as_str());
        match named.unwrap_or(arg.get_id().as_str()) {
            "RUN" | "run" => Some(NameKind::Runs),
            "ID" | "ID|NAME" | "id" | "ids" => Some(NameKind::Jobs),
            "NODESET" | "NODESETS" | "HOST" => Some(NameKind::Hosts),
            "VOLUME" => Some(NameKind::Volumes),
            "LAB" => Some(NameKind::Labs),
            "NAME" if self.path.starts_with("volume") && self.path != "volume create" => Some(NameKind::Volumes),
            "NAME" if self.path.starts_with("lab") && self.path != "lab up" => Some(NameKind::Labs),
            _ => None,
        }
    }
}

fn takes_value(arg: &Arg) -> bool {
    !arg.is_positional() && arg.get_num_args().is_some_and(|n| n.min_values() > 0)
}

fn many(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|n| n.max_values() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn completions(line: &str) -> Vec<String> {
        let mut grammar = crate::grammar::Cli::command();
        grammar.build();
        let words: Vec<String> = line.split(' ').map(String::from).collect();
        let known = |names| match names {
            NameKind::Runs => vec!["last".into(), "20261122-101010-abc".into()],
            NameKind::Jobs => vec!["12".into(), "13".into()],
            NameKind::Volumes => vec!["data".into(), "home".into()],
            NameKind::Hosts => vec!["n1".into(), "n2".into(), "m1".into()],
            NameKind::Labs => vec!["lab".into()],
        };
        candidates(&grammar, &words, &known)
    }

    #[test]
    fn names_are_completed_by_what_stands_there() {
        for (line, expected) in [
            ("rep", &["report"][..]),
            ("report l", &["last"]),
            ("resume 2026", &["20261122-101010-abc"]),
            ("peek 1", &["12", "13"]),
            ("kill 12 1", &["12", "13"]),
            ("volume status d", &["data"]),
            ("volume drain-host data n", &["n1", "n2"]),
            ("volume create d", &[]),
            ("run --hosts n", &["n1", "n2"]),
            ("run -w m", &["m1"]),
            ("run --hosts = n", &["n1", "n2"]),
            ("run --hosts=n", &["--hosts=n1", "--hosts=n2"]),
            ("exec -w n1,m", &["n1,m1"]),
            ("run --on s", &["ssh", "slurm"]),
            ("completions b", &["bash"]),
            ("check --explain HC-CLOCK-01", &["HC-CLOCK-01"]),
            ("check --only cl", &["clocks"]),
            ("check --volume d", &["data"]),
            ("lab exec --name l", &["lab"]),
            ("run --lab l", &["lab"]),
        ] {
            assert_eq!(completions(line), expected, "{line}");
        }
    }

    #[test]
    fn commands_options_and_values_have_descriptions() {
        let mut grammar = crate::grammar::Cli::command();
        grammar.build();
        let about = |line: &str, candidate: &str| {
            let words: Vec<String> = line.split(' ').map(String::from).collect();
            description(&grammar, &words, candidate)
        };
        assert_eq!(about("rep", "report").unwrap(), "Show the evidence of a run");
        assert!(about("report --f", "--failed").unwrap().starts_with("List all failed tasks"));
        assert_eq!(about("run --on s", "slurm").unwrap(), "Slurm");
        assert_eq!(about("volume status d", "data"), None);
    }

    #[test]
    fn commands_and_their_inputs_are_left_to_the_shell() {
        for line in
            ["run --hosts n1 gzip ::: ", "run ::: -", "run gzip -", "exec -w n1 ls -", "run --results d", "where /d"]
        {
            assert_eq!(completions(line), [""; 0], "{line}");
        }
    }

    #[test]
    fn options_that_are_hidden_stay_hidden() {
        assert_eq!(completions("run --will"), [""; 0]);
        assert_eq!(completions("run --no-d"), ["--no-detect"]);
        assert_eq!(completions("queue-"), [""; 0]);
        assert!(completions("").iter().all(|name| name != "worker"));
    }
}
