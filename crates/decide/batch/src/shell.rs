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

/// Whether a command that starts with `word` must go through the shell.
pub(crate) fn is_shell_word(word: &[u8], functions: &[RawText]) -> bool {
    SHELL_WORDS.iter().any(|w| w.as_bytes() == word) || functions.iter().any(|f| f.0 == word)
}

pub(crate) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Converts a command line: to words that are started directly if it has only words, else to a line for the shell.
/// `functions` are names that only the shell knows.
pub fn command_from_line(line: &[u8], functions: &[RawText]) -> Command {
    let mut words = line.split(|&b| is_blank(b)).filter(|w| !w.is_empty()).peekable();
    let first = words.peek().copied().unwrap_or_default();
    if first.is_empty() || has_shell_meaning(line) || is_shell_word(first, functions) {
        return Command::Shell(RawText(line.to_vec()));
    }
    Command::Argv(words.map(|w| RawText(w.to_vec())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_words_go_without_a_shell() {
        for line in ["true", "gzip -9 a/b.txt", " ls \t -l "] {
            assert!(matches!(command_from_line(line.as_bytes(), &[]), Command::Argv(_)), "{line}");
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
        ] {
            assert!(matches!(command_from_line(line.as_bytes(), &[]), Command::Shell(_)), "{line}");
        }
        assert!(matches!(command_from_line(b"mine 1", &["mine".into()]), Command::Shell(_)));
    }
}
