//! Picks words of a task that may name its inputs. This module looks only at text; another part checks in the file
//! system whether a word names a file.

use homing_model::{Command, RawText, Task};
use std::collections::HashSet;

/// Returns every word of the command except the program, every argument, and the path in `key=path`, `--opt=path` and
/// `-Ipath`. Each is returned once, in order. Of a shell command, it returns the words of all its parts. Inputs of
/// `<` count; outputs of `>` and declared outputs do not.
pub fn candidate_words(task: &Task) -> Vec<RawText> {
    let mut found = Candidates { seen: HashSet::new(), words: Vec::new() };
    found.seen.extend(task.outputs.iter().map(|o| o.0.clone()));
    match &task.command {
        Command::Argv(words) => words.iter().skip(1).for_each(|w| found.word(&w.0)),
        Command::Shell(line) => {
            let (words, written) = shell_words(&line.0);
            found.seen.extend(written);
            words.iter().for_each(|w| found.word(w));
        }
    }
    task.args.iter().for_each(|a| found.word(&a.0));
    found.words
}

struct Candidates {
    seen: HashSet<Vec<u8>>,
    words: Vec<RawText>,
}

impl Candidates {
    fn word(&mut self, word: &[u8]) {
        self.add(word);
        if let Some(at) = word.iter().position(|&b| b == b'=') {
            self.add(&word[at + 1..]);
        } else if word.len() > 2 && word[0] == b'-' && word[1].is_ascii_alphabetic() {
            self.add(&word[2..]);
        }
    }

    fn add(&mut self, word: &[u8]) {
        if !matches!(word, b"" | b"-" | b"--") && !word.contains(&0) && self.seen.insert(word.to_vec()) {
            self.words.push(RawText(word.to_vec()));
        }
    }
}

/// The role of the next word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Program,
    Argument,
    Input,
    Output,
    /// The end word of a here-document, or the text of a here-string.
    Text,
}

/// Words that precede a program.
const LEADERS: &[&[u8]] = &[
    b"if", b"then", b"else", b"elif", b"while", b"until", b"do", b"!", b"{", b"time", b"exec", b"command", b"env",
    b"nohup", b"nice",
];

/// Splits roughly as a shell does. Returns the words that may be read, and the words that are written.
fn shell_words(line: &[u8]) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let mut scan = Scan { line, at: 0, next: Next::Program, read: Vec::new(), written: Vec::new() };
    while scan.at < line.len() {
        scan.step();
    }
    (scan.read, scan.written)
}

struct Scan<'a> {
    line: &'a [u8],
    at: usize,
    next: Next,
    read: Vec<Vec<u8>>,
    written: Vec<Vec<u8>>,
}

impl Scan<'_> {
    fn step(&mut self) {
        let rest = &self.line[self.at..];
        match rest[0] {
            b' ' | b'\t' | b'\r' => self.at += 1,
            b'#' => self.at += rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()),
            b'&' if rest.get(1) == Some(&b'>') => self.at += 1,
            b'|' | b'&' | b';' | b'(' | b'`' | b'\n' => self.operator(1, Next::Program),
            // The word after `$(...)` and `<(...)` belongs to the outer command.
            b')' => self.operator(1, Next::Argument),
            b'<' if rest.starts_with(b"<<<") => self.operator(3, Next::Text),
            b'<' if rest.starts_with(b"<<-") => self.operator(3, Next::Text),
            b'<' if rest.starts_with(b"<<") => self.operator(2, Next::Text),
            b'<' | b'>' if rest.get(1) == Some(&b'(') => self.operator(2, Next::Program),
            b'<' if rest.get(1) == Some(&b'&') => self.operator(2, Next::Text),
            b'<' => self.operator(1, Next::Input),
            b'>' if rest.get(1) == Some(&b'&') => self.operator(2, Next::Text),
            b'>' if matches!(rest.get(1), Some(b'>' | b'|')) => self.operator(2, Next::Output),
            b'>' => self.operator(1, Next::Output),
            b'$' if rest.get(1) == Some(&b'(') => self.operator(2, Next::Program),
            _ => {
                let word = self.word();
                self.place(word);
            }
        }
    }

    fn operator(&mut self, length: usize, next: Next) {
        self.at += length;
        self.next = next;
    }

    /// Reads one word without its quotes. Expansions stay as written, and then name no file.
    fn word(&mut self) -> Vec<u8> {
        let mut word = Vec::new();
        let mut quoted = None;
        while let Some(&byte) = self.line.get(self.at) {
            match (quoted, byte) {
                (None, b'\'' | b'"') => quoted = Some(byte),
                (Some(q), b) if q == b => quoted = None,
                (None | Some(b'"'), b'\\') => {
                    let following = self.line.get(self.at + 1).copied();
                    let special = quoted.is_none() || following.is_some_and(|b| b"\"\\$`\n".contains(&b));
                    if special {
                        self.at += 1;
                        word.extend(following.filter(|&b| b != b'\n'));
                    } else {
                        word.push(byte);
                    }
                }
                (None, b) if b" \t\r\n|&;()<>`".contains(&b) => break,
                (None, b'$') if self.line.get(self.at + 1) == Some(&b'(') => break,
                _ => word.push(byte),
            }
            self.at += 1;
        }
        word
    }

    fn place(&mut self, word: Vec<u8>) {
        let descriptor = word.iter().all(u8::is_ascii_digit) && matches!(self.line.get(self.at), Some(b'<' | b'>'));
        match std::mem::replace(&mut self.next, Next::Argument) {
            // `2>log`: the digits belong to the redirection.
            kept if descriptor => self.next = kept,
            Next::Program => {
                let assignment = word
                    .iter()
                    .position(|&b| b == b'=')
                    .is_some_and(|at| at > 0 && word[..at].iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_'));
                if assignment {
                    self.read.push(word);
                    self.next = Next::Program;
                } else if LEADERS.contains(&word.as_slice()) {
                    self.next = Next::Program;
                }
            }
            Next::Argument | Next::Input => self.read.push(word),
            Next::Output => self.written.push(word),
            Next::Text => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: Command, args: &[&str], outputs: &[&str]) -> Vec<String> {
        let args = args.iter().map(|a| RawText::from(*a)).collect();
        let mut task = Task { id: 1, args, ..Task::of(command) };
        task.outputs = outputs.iter().map(|o| RawText::from(*o)).collect();
        candidate_words(&task).iter().map(RawText::display).collect()
    }

    #[test]
    fn words_of_a_shell_command() {
        for (line, words) in [
            ("bwa mem ref.fa reads/1.fq > reads/1.sam", "mem ref.fa reads/1.fq"),
            ("sort <in.txt 2>err >>out", "in.txt"),
            ("cat 'a b' | grep -f \"pat tern\" && tee x", "a b|-f|pat tern|x"),
            ("A=data.txt run", "A=data.txt|data.txt"),
            ("cc -Iinclude --sysroot=/x a.c", "-Iinclude include --sysroot=/x /x a.c"),
            ("(cd d; ls e) # ls f", "d e"),
            ("cat <<EOF", ""),
            ("diff <(sort a) <(sort b)", "a b"),
            ("echo $(cat list) $HOME", "list $HOME"),
            ("wc -l a\\ b &>log", "-l|a b"),
            ("if test -e c; then cat c; fi", "-e c"),
            ("sort f > f", ""),
            ("cmd 2>&1 x", "x"),
        ] {
            let separator = if line.contains('|') || words.contains('|') { '|' } else { ' ' };
            let want: Vec<String> = words.split(separator).filter(|w| !w.is_empty()).map(str::to_owned).collect();
            assert_eq!(of(Command::Shell(line.into()), &[], &[]), want, "{line}");
        }
    }

    #[test]
    fn words_of_argv_and_arguments() {
        let command = Command::Argv(vec!["dd".into(), "if=a b".into(), "of=o".into(), "-".into()]);
        assert_eq!(of(command, &["a b", "c"], &["o"]), ["if=a b", "a b", "of=o", "c"]);
    }
}
