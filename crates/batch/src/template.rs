//! The command template: replacement strings found once, filled per task.

use crate::error::BatchError;
use crate::options::InputOptions;
use crate::quote::{Dialect, quote_for};
use crate::shell::{has_shell_meaning, is_blank, is_shell_word};
use homing_model::{Command, RawText};

/// Stands in a command for `{%}`, the slot number, which is known only when
/// the task is sent. [`fill_slot`] replaces it.
pub const SLOT_TOKEN: &str = "\u{1}homing:slot\u{1}";

/// Puts the slot number wherever the command says `{%}`. Call it just before
/// the task is sent; a command without `{%}` is left as it is.
pub fn fill_slot(command: &mut Command, slot: u32) {
    let digits = slot.to_string();
    match command {
        Command::Shell(line) => fill_text(line, &digits),
        Command::Argv(words) => words.iter_mut().for_each(|w| fill_text(w, &digits)),
    }
}

fn fill_text(text: &mut RawText, digits: &str) {
    let token = SLOT_TOKEN.as_bytes();
    let mut from = 0;
    // The common command has no such byte at all.
    while let Some(at) = text.0[from..].iter().position(|&b| b == token[0]).map(|i| i + from) {
        if text.0[at..].starts_with(token) {
            text.0.splice(at..at + token.len(), digits.bytes());
            from = at + digits.len();
        } else {
            from = at + 1;
        }
    }
}

/// What is taken of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Whole,
    NoExtension,
    Base,
    Directory,
    BaseNoExtension,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(Vec<u8>),
    /// All values, each as a word of its own.
    All(Op),
    /// One value; negative counts from the last.
    One(i64, Op),
    Seq,
    Slot,
}

fn base(value: &[u8]) -> &[u8] {
    value.rsplit(|&b| b == b'/').next().unwrap_or_default()
}

/// Without the last extension: the last dot of the file name and what follows.
fn no_extension(value: &[u8]) -> &[u8] {
    let start = value.len() - base(value).len();
    match value[start..].iter().rposition(|&b| b == b'.') {
        Some(dot) => &value[..start + dot],
        None => value,
    }
}

/// As `dirname`: no trailing slashes, `.` for a bare name, `/` for the root.
fn directory(value: &[u8]) -> &[u8] {
    let strip = |v: &[u8]| v.len() - v.iter().rev().take_while(|&&b| b == b'/').count();
    let body = &value[..strip(value)];
    if body.is_empty() {
        return if value.is_empty() { b"." } else { b"/" };
    }
    let Some(slash) = body.iter().rposition(|&b| b == b'/') else { return b"." };
    match strip(&body[..slash]) {
        0 => b"/",
        end => &body[..end],
    }
}

impl Op {
    fn parse(text: &[u8]) -> Option<Op> {
        Some(match text {
            b"" => Op::Whole,
            b"." => Op::NoExtension,
            b"/" => Op::Base,
            b"//" => Op::Directory,
            b"/." => Op::BaseNoExtension,
            _ => return None,
        })
    }
    fn apply(self, value: &[u8]) -> &[u8] {
        match self {
            Op::Whole => value,
            Op::NoExtension => no_extension(value),
            Op::Base => base(value),
            Op::Directory => directory(value),
            Op::BaseNoExtension => no_extension(base(value)),
        }
    }
}

/// The replacement string between two braces, `None` if it is none.
fn replacement(inner: &[u8]) -> Option<Part> {
    match inner {
        b"#" => return Some(Part::Seq),
        b"%" => return Some(Part::Slot),
        _ => {}
    }
    let sign = usize::from(inner.first() == Some(&b'-'));
    let digits = inner[sign..].iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 {
        return if sign == 0 { Op::parse(inner).map(Part::All) } else { None };
    }
    let (number, rest) = inner.split_at(sign + digits);
    let position: i64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    let op = Op::parse(rest)?;
    (position != 0).then_some(Part::One(position, op))
}

fn parse_parts(text: &[u8]) -> Result<Vec<Part>, BatchError> {
    let mut parts = Vec::new();
    let mut literal = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(b"{=")
            && let Some(end) = rest.windows(2).position(|w| w == b"=}")
        {
            return Err(BatchError::Perl(String::from_utf8_lossy(&rest[..end + 2]).into_owned()));
        }
        let close = if rest[0] == b'{' { rest.iter().position(|&b| b == b'}') } else { None };
        if let Some((part, close)) = close.and_then(|c| replacement(&rest[1..c]).map(|p| (p, c))) {
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(part);
            at += close + 1;
        } else {
            literal.push(rest[0]);
            at += 1;
        }
    }
    if !literal.is_empty() {
        parts.push(Part::Literal(literal));
    }
    Ok(parts)
}

/// What a template is filled with.
#[derive(Clone, Copy)]
pub(crate) struct Filling<'a> {
    pub(crate) args: &'a [RawText],
    pub(crate) seq: u64,
}

impl Filling<'_> {
    fn one(&self, position: i64) -> Option<&[u8]> {
        let index = if position > 0 { position - 1 } else { self.args.len() as i64 + position };
        self.args.get(usize::try_from(index).ok()?).map(|a| a.0.as_slice())
    }
}

/// A piece of text with replacement strings that no shell will see.
#[derive(Clone, Debug)]
pub(crate) struct TextTemplate(Vec<Part>);

impl TextTemplate {
    pub(crate) fn parse(text: &RawText) -> Result<Self, BatchError> {
        Ok(TextTemplate(parse_parts(&text.0)?))
    }
    pub(crate) fn has_replacement(&self) -> bool {
        self.0.iter().any(|p| !matches!(p, Part::Literal(_)))
    }
    pub(crate) fn fill(&self, with: Filling) -> RawText {
        RawText(render(&self.0, with, |value, out| out.extend_from_slice(value)))
    }
}

fn render(parts: &[Part], with: Filling, put: impl Fn(&[u8], &mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            Part::Literal(bytes) => out.extend_from_slice(bytes),
            Part::Seq => out.extend_from_slice(with.seq.to_string().as_bytes()),
            Part::Slot => out.extend_from_slice(SLOT_TOKEN.as_bytes()),
            Part::One(position, op) => {
                if let Some(value) = with.one(*position) {
                    put(op.apply(value), &mut out);
                }
            }
            Part::All(op) => {
                for (i, value) in with.args.iter().enumerate() {
                    if i > 0 {
                        out.push(b' ');
                    }
                    put(op.apply(&value.0), &mut out);
                }
            }
        }
    }
    out
}

/// How the template becomes a command.
#[derive(Clone, Debug)]
enum Form {
    /// One line for a shell.
    Line(Vec<Part>),
    /// Words that are started directly.
    Words(Vec<Vec<Part>>),
}

/// A command template, ready to be filled.
#[derive(Clone, Debug)]
pub(crate) struct CommandTemplate {
    form: Form,
    dialect: Dialect,
    functions: Vec<RawText>,
}

impl CommandTemplate {
    /// `words` as the user's shell handed them over; at least one.
    pub(crate) fn parse(words: &[RawText], options: &InputOptions) -> Result<Self, BatchError> {
        let mut words: Vec<Vec<Part>> = words.iter().map(|w| parse_parts(&w.0)).collect::<Result<_, _>>()?;
        if words.iter().flatten().all(|p| matches!(p, Part::Literal(_))) {
            words.push(vec![Part::All(Op::Whole)]);
        }
        let form = if options.quote { Form::Words(words) } else { line_or_words(words, options) };
        Ok(CommandTemplate { form, dialect: Dialect::of(&options.shell), functions: options.functions.clone() })
    }

    pub(crate) fn fill(&self, with: Filling) -> Command {
        let quoted = |value: &[u8]| quote_for(self.dialect, value);
        match &self.form {
            Form::Line(parts) => {
                Command::Shell(RawText(render(parts, with, |value, out| out.extend_from_slice(&quoted(value)))))
            }
            Form::Words(words) => {
                let mut argv = Vec::with_capacity(words.len());
                words.iter().for_each(|w| fill_word(w, with, &mut argv));
                // A program that came as a value may be one that only the shell knows.
                if argv.first().is_none_or(|first| first.0.is_empty() || is_shell_word(&first.0, &self.functions)) {
                    let line = argv.iter().map(|w| quoted(&w.0)).collect::<Vec<_>>().join(&b' ');
                    return Command::Shell(RawText(line));
                }
                Command::Argv(argv)
            }
        }
    }
}

/// Joins the words with blanks, as the shell would see them, and cuts them
/// again if nothing in them is for a shell.
fn line_or_words(words: Vec<Vec<Part>>, options: &InputOptions) -> Form {
    let mut line: Vec<Part> = Vec::new();
    for (i, word) in words.into_iter().enumerate() {
        if i > 0 {
            line.push(Part::Literal(b" ".to_vec()));
        }
        line.extend(word);
    }
    let literal = |p: &Part| matches!(p, Part::Literal(text) if has_shell_meaning(text));
    if line.iter().any(literal) {
        return Form::Line(line);
    }
    let words = split_words(&line);
    match words.first().map(Vec::as_slice) {
        None => Form::Line(line),
        Some([Part::Literal(first)]) if is_shell_word(first, &options.functions) => Form::Line(line),
        Some(_) => Form::Words(words),
    }
}

fn split_words(line: &[Part]) -> Vec<Vec<Part>> {
    let mut words = vec![Vec::new()];
    for part in line {
        let Part::Literal(text) = part else {
            words.last_mut().expect("never empty").push(part.clone());
            continue;
        };
        for (i, piece) in text.split(|&b| is_blank(b)).enumerate() {
            if i > 0 {
                words.push(Vec::new());
            }
            if !piece.is_empty() {
                words.last_mut().expect("never empty").push(Part::Literal(piece.to_vec()));
            }
        }
    }
    words.retain(|w| !w.is_empty());
    words
}

/// One template word as words of the command: several when `{}` stands for
/// several values, none when it stands for nothing, as a shell would see it.
fn fill_word(word: &[Part], with: Filling, argv: &mut Vec<RawText>) {
    let mut current: Option<Vec<u8>> = if word.is_empty() { Some(Vec::new()) } else { None };
    for part in word {
        match part {
            Part::All(op) => {
                for (i, value) in with.args.iter().enumerate() {
                    if i > 0 {
                        argv.extend(current.take().map(RawText));
                    }
                    current.get_or_insert_default().extend_from_slice(op.apply(&value.0));
                }
            }
            Part::One(position, op) => {
                if let Some(value) = with.one(*position) {
                    current.get_or_insert_default().extend_from_slice(op.apply(value));
                }
            }
            Part::Literal(text) => current.get_or_insert_default().extend_from_slice(text),
            Part::Seq => current.get_or_insert_default().extend_from_slice(with.seq.to_string().as_bytes()),
            Part::Slot => current.get_or_insert_default().extend_from_slice(SLOT_TOKEN.as_bytes()),
        }
    }
    argv.extend(current.map(RawText));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_paths() {
        for (value, dot, base, dir, base_dot) in [
            ("a/b.c/d.tar.gz", "a/b.c/d.tar", "d.tar.gz", "a/b.c", "d.tar"),
            ("x", "x", "x", ".", "x"),
            ("/y", "/y", "y", "/", "y"),
            (".bashrc", "", ".bashrc", ".", ""),
            ("a/.b", "a/", ".b", "a", ""),
            ("a.", "a", "a.", ".", "a"),
            ("a/b/", "a/b/", "", "a", ""),
        ] {
            for (op, want) in
                [(Op::NoExtension, dot), (Op::Base, base), (Op::Directory, dir), (Op::BaseNoExtension, base_dot)]
            {
                assert_eq!(op.apply(value.as_bytes()), want.as_bytes(), "{op:?} of {value}");
            }
        }
    }

    #[test]
    fn the_slot_is_filled_late() {
        let template = CommandTemplate::parse(&["run".into(), "--gpu={%}".into()], &InputOptions::default()).unwrap();
        let mut command = template.fill(Filling { args: &["a".into()], seq: 1 });
        fill_slot(&mut command, 12);
        assert_eq!(command, Command::Shell("run --gpu=12".into()));
        let template = CommandTemplate::parse(&["run {%} {#}".into()], &InputOptions::default()).unwrap();
        let mut command = template.fill(Filling { args: &["a".into()], seq: 7 });
        fill_slot(&mut command, 3);
        assert_eq!(command, Command::Argv(vec!["run".into(), "3".into(), "7".into()]));
    }

    #[test]
    fn perl_is_refused_by_name() {
        assert!(matches!(parse_parts(b"echo {= $_++ =}"), Err(BatchError::Perl(p)) if p == "{= $_++ =}"));
    }
}
