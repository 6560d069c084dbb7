//! Decides whether a command needs a shell. A command of plain words needs none and is started directly: no shell can
//! misread it, and a process is saved.

use homing_model::{Command, RawText};

/// Words that only a shell knows, or that do something else there than the program of the same name.
const SHELL_WORDS: &[&str] = &[
    "!",
    ".",
    ":",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "cd",
    "command",
    "compgen",
    "complete",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "do",
    "done",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "fi",
    "for",
    "function",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "in",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "then",
    "time",
    "times",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
    "{",
    "}",
];

/// Whether a shell would read more into `text` than words.
pub(crate) fn has_shell_meaning(text: &[u8]) -> bool {
    text.iter().any(|b| b"|&;<>()$`\\\"'*?[#~=%{}!^\n\r\0".contains(b))
}

/// Functions of the shell with which a command may begin.
#[derive(Clone, Debug)]
pub enum ShellFunctions {
    /// Functions that Bash exported.
    Named(Vec<RawText>),
    /// Unknown ones: Bash reads a file of the user before each command (`BASH_ENV`), and any name may be a function.
    Unknown,
}

impl Default for ShellFunctions {
    fn default() -> Self {
        ShellFunctions::Named(Vec::new())
    }
}

/// Whether a command that starts with `word` must go through the shell.
pub(crate) fn is_shell_word(word: &[u8], functions: &ShellFunctions) -> bool {
    match functions {
        ShellFunctions::Unknown => true,
        ShellFunctions::Named(names) => {
            SHELL_WORDS.iter().any(|w| w.as_bytes() == word) || names.iter().any(|f| f.0 == word)
        }
    }
}

pub(crate) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Whether one space is between each two words, and none around them: words joined again are this text. `None` is a
/// byte that is no blank.
pub(crate) fn has_single_blanks(bytes: impl Iterator<Item = Option<u8>>) -> bool {
    let mut after_blank = true;
    for byte in bytes {
        let blank = byte.is_some_and(is_blank);
        if blank && (after_blank || byte != Some(b' ')) {
            return false;
        }
        after_blank = blank;
    }
    !after_blank
}

/// Converts a command line: to words that are started directly if it has only words, else to a line for the shell.
/// A line with other blanks than single ones stays a line, as displays and the job log show it.
pub fn command_from_line(line: &[u8], functions: &ShellFunctions) -> Command {
    let first = line.split(|&b| is_blank(b)).next().unwrap_or_default();
    let single = has_single_blanks(line.iter().copied().map(Some));
    if !single || has_shell_meaning(line) || is_shell_word(first, functions) {
        return Command::Shell(RawText(line.to_vec()));
    }
    Command::Argv(line.split(|&b| is_blank(b)).map(|w| RawText(w.to_vec())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_go_without_a_shell() {
        let none = ShellFunctions::default();
        for line in ["true", "gzip -9 a/b.txt"] {
            assert!(matches!(command_from_line(line.as_bytes(), &none), Command::Argv(_)), "{line}");
        }
        for line in [
            "",
            "a | b",
            "a > b",
            "echo $x",
            "echo \"a\"",
            "A=1 b",
            "cd /x",
            "exit 3",
            "ls *",
            "ls ~",
            "a\nb",
            "! a",
            "time a",
            "echo {a,b}",
            "a#b",
            "source x",
            "kill %1",
            " ls",
            "ls  -l",
            "ls\t-l",
            "ls ",
        ] {
            assert!(matches!(command_from_line(line.as_bytes(), &none), Command::Shell(_)), "{line}");
        }
        let mine = ShellFunctions::Named(vec!["mine".into()]);
        assert!(matches!(command_from_line(b"mine 1", &mine), Command::Shell(_)));
        assert!(matches!(command_from_line(b"true", &ShellFunctions::Unknown), Command::Shell(_)));
    }
}
