//! The command template: replacement strings are found once, and filled for each task.

use crate::error::BatchError;
use crate::options::InputOptions;
use crate::perl::Expression;
use crate::quote::{Dialect, quote_for};
use crate::shell::{ShellFunctions, command_from_line, has_shell_meaning, has_single_blanks, is_blank, is_shell_word};
use crate::slot::SLOT_TOKEN;
use crate::strings::{ReplacementPart, Strings, ValueOperation};
use homing_model::{Command, RawText};

/// The values that fill a template.
#[derive(Clone, Copy)]
pub(crate) struct Filling<'a> {
    pub(crate) args: &'a [RawText],
    pub(crate) seq: u64,
    /// Number of tasks, if it is known.
    pub(crate) total: Option<u64>,
}

impl Filling<'_> {
    fn one(&self, position: i64) -> Option<&[u8]> {
        let index = if position > 0 { position - 1 } else { self.args.len() as i64 + position };
        self.args.get(usize::try_from(index).ok()?).map(|a| a.0.as_slice())
    }

    fn expression<'v>(&'v self, value: &'v [u8]) -> Expression<'v> {
        Expression { value, args: self.args, seq: self.seq, total: self.total }
    }

    /// Appends the result of an operation on a value.
    fn put(&self, op: &ValueOperation, value: &[u8], put: Put, out: &mut Vec<u8>) {
        let made = op.apply(self.expression(value));
        if made.unquoted { out.extend_from_slice(&made.text) } else { put(&made.text, out) }
    }

    fn padded(&self) -> String {
        let digits = self.total.unwrap_or(1).to_string().len();
        format!("{:0digits$}", self.seq)
    }
}

/// A text with replacement strings that no shell reads.
#[derive(Clone, Debug)]
pub(crate) struct TextTemplate(Vec<ReplacementPart>);

impl TextTemplate {
    pub(crate) fn parse(text: &RawText, strings: &Strings) -> Result<Self, BatchError> {
        Ok(TextTemplate(strings.parts(&text.0)?))
    }
    pub(crate) fn arguments() -> Self {
        TextTemplate(vec![ReplacementPart::All(ValueOperation::Whole)])
    }
    pub(crate) fn has_replacement(&self) -> bool {
        self.0.iter().any(|p| !matches!(p, ReplacementPart::Literal(_)))
    }
    pub(crate) fn fill(&self, with: Filling) -> RawText {
        RawText(render(&self.0, with, &|value, out| out.extend_from_slice(value)))
    }
}

/// Writes a value as text.
type Put<'p> = &'p dyn Fn(&[u8], &mut Vec<u8>);

/// Renders a group for value number `at`.
fn around(parts: &[ReplacementPart], at: usize, with: Filling, put: Put) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            ReplacementPart::All(op) => {
                if let Some(value) = with.args.get(at) {
                    with.put(op, &value.0, put, &mut out);
                }
            }
            other => out.extend(render(std::slice::from_ref(other), with, put)),
        }
    }
    out
}

fn render(parts: &[ReplacementPart], with: Filling, put: Put) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            ReplacementPart::Literal(bytes) => out.extend_from_slice(bytes),
            ReplacementPart::Seq => out.extend_from_slice(with.seq.to_string().as_bytes()),
            ReplacementPart::PaddedSeq => out.extend_from_slice(with.padded().as_bytes()),
            ReplacementPart::Total => out.extend_from_slice(with.total.unwrap_or(0).to_string().as_bytes()),
            ReplacementPart::Slot => out.extend_from_slice(SLOT_TOKEN.as_bytes()),
            ReplacementPart::One(position, op) => {
                if let Some(value) = with.one(*position) {
                    with.put(op, value, put, &mut out);
                }
            }
            ReplacementPart::All(op) => {
                for (i, value) in with.args.iter().enumerate() {
                    if i > 0 {
                        out.push(b' ');
                    }
                    with.put(op, &value.0, put, &mut out);
                }
            }
            ReplacementPart::Group(parts) => {
                for i in 0..with.args.len().max(1) {
                    if i > 0 {
                        out.push(b' ');
                    }
                    out.extend(around(parts, i, with, put));
                }
            }
        }
    }
    out
}

/// The form of a command template.
#[derive(Clone, Debug)]
enum Form {
    /// One line for a shell.
    Line(Vec<ReplacementPart>),
    /// Words that are started directly.
    Words(Vec<Vec<ReplacementPart>>),
    /// A line whose values are not quoted, because the name of its command contains a value, which is a command of the user.
    Unquoted(Vec<ReplacementPart>),
}

impl Form {
    /// Repeats each text between blanks that contains `{}` for each value.
    fn grouped(self) -> Form {
        match self {
            Form::Line(line) => Form::Line(group(line, is_blank)),
            Form::Unquoted(line) => Form::Unquoted(group(line, is_blank)),
            Form::Words(words) => Form::Words(words.into_iter().map(|word| group(word, |_| false)).collect()),
        }
    }

    /// Whether a part is `wanted`, inside a group or outside.
    fn any(&self, wanted: &dyn Fn(&ReplacementPart) -> bool) -> bool {
        match self {
            Form::Line(parts) | Form::Unquoted(parts) => any_part(parts, wanted),
            Form::Words(words) => words.iter().any(|word| any_part(word, wanted)),
        }
    }
}

fn any_part(parts: &[ReplacementPart], wanted: &dyn Fn(&ReplacementPart) -> bool) -> bool {
    parts.iter().any(|part| match part {
        ReplacementPart::Group(parts) => any_part(parts, wanted),
        part => wanted(part),
    })
}

fn group(parts: Vec<ReplacementPart>, ends: impl Fn(u8) -> bool) -> Vec<ReplacementPart> {
    let (mut out, mut open) = (Vec::new(), Vec::new());
    let close = |open: &mut Vec<ReplacementPart>, out: &mut Vec<ReplacementPart>| {
        let parts = std::mem::take(open);
        match parts.iter().any(|part| matches!(part, ReplacementPart::All(_))) {
            true => out.push(ReplacementPart::Group(parts)),
            false => out.extend(parts),
        }
    };
    for part in parts {
        let ReplacementPart::Literal(text) = part else {
            open.push(part);
            continue;
        };
        for piece in text.chunk_by(|a, b| ends(*a) == ends(*b)) {
            if ends(piece[0]) {
                close(&mut open, &mut out);
                out.push(ReplacementPart::Literal(piece.to_vec()));
            } else {
                open.push(ReplacementPart::Literal(piece.to_vec()));
            }
        }
    }
    close(&mut open, &mut out);
    out
}

/// A command template, ready to be filled.
#[derive(Clone, Debug)]
pub(crate) struct CommandTemplate {
    form: Form,
    dialect: Dialect,
    functions: ShellFunctions,
}

impl CommandTemplate {
    /// Reads `words` from the user's shell; at least one.
    pub(crate) fn parse(words: &[RawText], options: &InputOptions, strings: &Strings) -> Result<Self, BatchError> {
        let words = if options.quote { words.to_vec() } else { with_whole_expressions(words) };
        let mut words: Vec<Vec<ReplacementPart>> =
            words.iter().map(|w| strings.parts(&w.0)).collect::<Result<_, _>>()?;
        if options.blocks.is_none() && words.iter().flatten().all(|p| matches!(p, ReplacementPart::Literal(_))) {
            words.push(vec![ReplacementPart::All(ValueOperation::Whole)]);
        }
        let mut form = if options.quote { Form::Words(words) } else { line_or_words(words, options) };
        if options.packing.context {
            form = form.grouped();
        }
        Ok(CommandTemplate { form, dialect: Dialect::of(&options.shell), functions: options.functions.clone() })
    }

    /// Whether it contains the number of tasks.
    pub(crate) fn needs_total(&self) -> bool {
        self.form.any(&|part| matches!(part, ReplacementPart::Total | ReplacementPart::PaddedSeq))
    }

    /// Whether one of its replacement strings skips a task with these values.
    pub(crate) fn passes_over(&self, args: &[RawText]) -> bool {
        self.form
            .any(&|part| matches!(part, ReplacementPart::All(op) | ReplacementPart::One(_, op) if op.passes_over(args)))
    }

    pub(crate) fn fill(&self, with: Filling) -> Command {
        let quoted = |value: &[u8]| quote_for(self.dialect, value);
        match &self.form {
            Form::Line(parts) => {
                Command::Shell(RawText(render(parts, with, &|value, out| out.extend_from_slice(&quoted(value)))))
            }
            Form::Unquoted(parts) => {
                let line = render(parts, with, &|value, out| out.extend_from_slice(value));
                command_from_line(&line, &self.functions)
            }
            Form::Words(words) => {
                let mut argv = Vec::with_capacity(words.len());
                words.iter().for_each(|w| fill_word(w, with, &mut argv));
                // A value as the program may name a command that only the shell knows.
                if argv.first().is_none_or(|first| first.0.is_empty() || is_shell_word(&first.0, &self.functions)) {
                    let line = argv.iter().map(|w| quoted(&w.0)).collect::<Vec<_>>().join(&b' ');
                    return Command::Shell(RawText(line));
                }
                Command::Argv(argv)
            }
        }
    }
}

/// Joins words between `{=` and `=}`, which the shell has split.
fn with_whole_expressions(words: &[RawText]) -> Vec<RawText> {
    let is_open = |word: &RawText| {
        let at = |mark: &[u8]| word.0.windows(2).rposition(|two| two == mark);
        at(b"{=").is_some_and(|open| at(b"=}").is_none_or(|close| close < open))
    };
    let mut whole: Vec<RawText> = Vec::new();
    for word in words {
        match whole.last_mut().filter(|last| is_open(last)) {
            Some(last) => {
                last.0.push(b' ');
                last.0.extend_from_slice(&word.0);
            }
            None => whole.push(word.clone()),
        }
    }
    whole
}

/// Joins the words with blanks, as the shell would see them, and splits them again if nothing in them needs a shell.
fn line_or_words(words: Vec<Vec<ReplacementPart>>, options: &InputOptions) -> Form {
    let mut line: Vec<ReplacementPart> = Vec::new();
    for (i, word) in words.into_iter().enumerate() {
        if i > 0 {
            line.push(ReplacementPart::Literal(b" ".to_vec()));
        }
        line.extend(word);
    }
    if begins_with_a_value(&line) {
        return Form::Unquoted(line);
    }
    let literal = |p: &ReplacementPart| matches!(p, ReplacementPart::Literal(text) if has_shell_meaning(text));
    // The result of a Perl expression may be several words.
    let made_by_perl = |p: &ReplacementPart| {
        matches!(p, ReplacementPart::All(ValueOperation::Perl(_)) | ReplacementPart::One(_, ValueOperation::Perl(_)))
    };
    let bytes = line.iter().flat_map(|part| match part {
        ReplacementPart::Literal(text) => text.iter().copied().map(Some).collect(),
        _ => vec![None],
    });
    if !has_single_blanks(bytes) || line.iter().any(|part| literal(part) || made_by_perl(part)) {
        return Form::Line(line);
    }
    let words = split_words(&line);
    match words.first().map(Vec::as_slice) {
        None => Form::Line(line),
        Some([ReplacementPart::Literal(first)]) if is_shell_word(first, &options.functions) => Form::Line(line),
        Some(_) => Form::Words(words),
    }
}

/// Whether a value is in the name of the command, where GNU parallel quotes none. The value of a variable, `V={}`, is
/// quoted.
fn begins_with_a_value(line: &[ReplacementPart]) -> bool {
    let ends_the_name = |part: &&ReplacementPart| matches!(part, ReplacementPart::Literal(text) if text.iter().any(|byte| b" \t\n=".contains(byte)));
    let mut name = line.iter().take_while(|part| !ends_the_name(part));
    name.any(|part| matches!(part, ReplacementPart::All(_) | ReplacementPart::One(..)))
}

fn split_words(line: &[ReplacementPart]) -> Vec<Vec<ReplacementPart>> {
    let mut words = vec![Vec::new()];
    for part in line {
        let ReplacementPart::Literal(text) = part else {
            words.last_mut().expect("never empty").push(part.clone());
            continue;
        };
        for (i, piece) in text.split(|&b| is_blank(b)).enumerate() {
            if i > 0 {
                words.push(Vec::new());
            }
            if !piece.is_empty() {
                words.last_mut().expect("never empty").push(ReplacementPart::Literal(piece.to_vec()));
            }
        }
    }
    words.retain(|w| !w.is_empty());
    words
}

/// Converts one template word to words of the command: several if `{}` has several values, none if it has none, as a
/// shell would.
fn fill_word(word: &[ReplacementPart], with: Filling, argv: &mut Vec<RawText>) {
    let mut current: Option<Vec<u8>> = if word.is_empty() { Some(Vec::new()) } else { None };
    let as_it_is: Put = &|value, out| out.extend_from_slice(value);
    for part in word {
        match part {
            ReplacementPart::All(op) => {
                for (i, value) in with.args.iter().enumerate() {
                    if i > 0 {
                        argv.extend(current.take().map(RawText));
                    }
                    with.put(op, &value.0, as_it_is, current.get_or_insert_default());
                }
            }
            ReplacementPart::Group(parts) => {
                for i in 0..with.args.len() {
                    if i > 0 {
                        argv.extend(current.take().map(RawText));
                    }
                    current.get_or_insert_default().extend(around(parts, i, with, as_it_is));
                }
            }
            ReplacementPart::One(position, op) => {
                if let Some(value) = with.one(*position) {
                    with.put(op, value, as_it_is, current.get_or_insert_default());
                }
            }
            other => current.get_or_insert_default().extend(render(std::slice::from_ref(other), with, as_it_is)),
        }
    }
    argv.extend(current.map(RawText));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::fill_slot;

    fn filled(words: &[&str], seq: u64, slot: u32) -> Command {
        let words: Vec<RawText> = words.iter().map(|w| RawText::from(*w)).collect();
        let template = CommandTemplate::parse(&words, &InputOptions::default(), &Strings::default()).unwrap();
        let mut command = template.fill(Filling { args: &["a".into()], seq, total: None });
        fill_slot(&mut command, slot);
        command
    }

    #[test]
    fn the_slot_is_filled_late() {
        assert_eq!(filled(&["run", "--gpu={%}"], 1, 12), Command::Shell("run --gpu=12".into()));
        assert_eq!(filled(&["run {%} {#}"], 7, 3), Command::Argv(vec!["run".into(), "3".into(), "7".into()]));
    }
}
