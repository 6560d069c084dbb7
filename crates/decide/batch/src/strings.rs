//! Replacement strings: their names, and the part of a value that each inserts into a command.

use crate::blanks::trimmed_start;
use crate::edit::Edit;
use crate::error::BatchError;
use crate::perl::{Compiled, Evaluated, Expression, Perl};
use homing_model::RawText;
use std::borrow::Cow;
use std::sync::Arc;

/// The replacement strings that a user adds to GNU parallel's own, or removes from them.
#[derive(Clone, Debug, Default)]
pub struct Replacements {
    /// `--plus`: whether those of file names and of Bash are known too.
    pub plus: bool,
    /// Another name for one of GNU parallel's own: `-I` for `{}`, `--er` for `{.}`, ...
    pub renamed: Vec<(RawText, &'static str)>,
    /// `--rpl`: a name, a blank, and its substitutions.
    pub defined: Vec<RawText>,
}

/// The operation on a value.
#[derive(Clone, Debug)]
pub(crate) enum ValueOperation {
    Whole,
    NoExtension,
    Base,
    Directory,
    BaseNoExtension,
    Edit(Arc<Edit>),
    /// `{uniq}`: the value; a task with two equal values is skipped.
    Unique,
    /// `{choose_k}`: the value; a task whose values do not rise is skipped.
    Rising,
    Perl(Compiled),
}

/// The result of an [`ValueOperation`] for a value.
pub(crate) struct OperationResult<'v> {
    pub(crate) text: Cow<'v, [u8]>,
    /// Whether it is not quoted for the shell.
    pub(crate) unquoted: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum ReplacementPart {
    Literal(Vec<u8>),
    /// All values, each as a word of its own.
    All(ValueOperation),
    /// One value; negative counts from the last.
    One(i64, ValueOperation),
    /// Repeated for each value, with the text around it: `a{}b` as `a1b a2b`.
    Group(Vec<ReplacementPart>),
    Seq,
    /// The number with as many leading zeros as the number of tasks needs.
    PaddedSeq,
    /// The number of tasks.
    Total,
    Slot,
}

/// GNU parallel's own definitions of `--plus`, between the braces.
const PLUS: &[(&str, &str)] = &[
    ("+/", "s:/[^/]*$:: || s:.*$::"),
    ("+.", "s:.*\\.:: || s:.*$::"),
    ("+..", "s:.*\\.([^/.]*\\.[^/.]*)$:$1: || s:.*$::"),
    ("+...", "s:.*\\.([^/.]*\\.[^/.]*\\.[^/.]*)$:$1: || s:.*$::"),
    ("..", "s:\\.[^/.]*\\.[^/.]*$::"),
    ("...", "s:\\.[^/.]*\\.[^/.]*\\.[^/.]*$::"),
    ("/..", "s:.*/::; s:\\.[^/.]*\\.[^/.]*$::"),
    ("/...", "s:.*/::; s:\\.[^/.]*\\.[^/.]*\\.[^/.]*$::"),
];

/// Strings of `--plus` that homing does not have, with a replacement for each.
const NOT_PLUS: &[(&str, &str)] = &[
    ("{host}", "not supported; $HOMING_HOST in the command is the host that runs it"),
    ("{sshlogin}", "not supported; $HOMING_HOST in the command is the host that runs it"),
    ("{hgrp}", "not supported; use --hosts @group"),
    ("{agrp}", "not supported; use --hosts @group"),
    ("{0%}", "not supported; {%} has no leading zeros, printf %03d adds them"),
];

/// GNU parallel's definitions of its own strings that are no substitutions.
const OWN: &[(&str, &[u8])] =
    &[("", b"{}"), ("$_=$job->seq()", b"{#}"), ("$_=$job->slot()", b"{%}"), ("$_=dirname($_)", b"{//}")];

/// GNU parallel's own operations on a value, between the braces. A position or the name of a column may precede them.
const OPERATIONS: [(&str, ValueOperation); 5] = [
    ("", ValueOperation::Whole),
    (".", ValueOperation::NoExtension),
    ("/", ValueOperation::Base),
    ("//", ValueOperation::Directory),
    ("/.", ValueOperation::BaseNoExtension),
];

/// GNU parallel's own strings that are no operations on a value, between the braces.
const NUMBERS: [(&str, ReplacementPart); 2] = [("#", ReplacementPart::Seq), ("%", ReplacementPart::Slot)];

/// Returns GNU parallel's own replacement strings, in braces.
pub fn own_replacements() -> Vec<String> {
    let operations = OPERATIONS.iter().map(|(name, _)| *name);
    operations.chain(NUMBERS.iter().map(|(name, _)| *name)).map(|name| format!("{{{name}}}")).collect()
}

fn base(value: &[u8]) -> &[u8] {
    value.rsplit(|&b| b == b'/').next().unwrap_or_default()
}

/// Removes the last extension: the last dot of the file name and the text after it.
fn no_extension(value: &[u8]) -> &[u8] {
    let start = value.len() - base(value).len();
    match value[start..].iter().rposition(|&b| b == b'.') {
        Some(dot) => &value[..start + dot],
        None => value,
    }
}

/// Returns the directory as `dirname` does: no trailing slashes, `.` for a bare name, `/` for the root.
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

impl ValueOperation {
    fn own(text: &[u8]) -> Option<ValueOperation> {
        OPERATIONS.into_iter().find(|(name, _)| name.as_bytes() == text).map(|(_, operation)| operation)
    }

    fn plus(text: &[u8]) -> Option<ValueOperation> {
        let text = std::str::from_utf8(text).ok()?;
        match text {
            "uniq" => return Some(ValueOperation::Unique),
            "choose_k" => return Some(ValueOperation::Rising),
            _ => {}
        }
        let known = PLUS.iter().find(|(name, _)| *name == text);
        let edit = known.map_or_else(|| Edit::bash(text), |(_, perl)| Edit::perl(perl).ok())?;
        Some(ValueOperation::Edit(Arc::new(edit)))
    }

    /// Reads Perl, or the substitutions that need none.
    fn of_perl(code: &str, perl: Option<&Arc<dyn Perl>>) -> Result<ValueOperation, BatchError> {
        match (Edit::perl(code), perl) {
            (Ok(edit), _) => Ok(ValueOperation::Edit(Arc::new(edit))),
            (Err(refused), None) => Err(refused),
            (Err(_), Some(perl)) => {
                let bad = |why: String| BatchError::value("{= =}", code, &why);
                Ok(ValueOperation::Perl(Compiled::new(perl, code).map_err(bad)?))
            }
        }
    }

    pub(crate) fn apply<'v>(&self, with: Expression<'v>) -> OperationResult<'v> {
        match self {
            ValueOperation::Perl(compiled) => {
                let Evaluated { text, unquoted } = compiled.evaluate(with);
                OperationResult { text: text.into(), unquoted }
            }
            _ => OperationResult { text: self.taken(with.value), unquoted: false },
        }
    }

    /// Whether a task with these values is skipped.
    pub(crate) fn passes_over(&self, args: &[RawText]) -> bool {
        match self {
            ValueOperation::Unique => args.iter().enumerate().any(|(at, arg)| args[..at].contains(arg)),
            ValueOperation::Rising => args.windows(2).any(|pair| pair[0] >= pair[1]),
            _ => false,
        }
    }

    fn taken<'v>(&self, value: &'v [u8]) -> Cow<'v, [u8]> {
        Cow::Borrowed(match self {
            ValueOperation::Whole | ValueOperation::Unique | ValueOperation::Rising | ValueOperation::Perl(_) => value,
            ValueOperation::NoExtension => no_extension(value),
            ValueOperation::Base => base(value),
            ValueOperation::Directory => directory(value),
            ValueOperation::BaseNoExtension => no_extension(base(value)),
            ValueOperation::Edit(edit) => return edit.apply(value),
        })
    }
}

/// Reads the position before an operation, `2` or `-1`, and returns it with its length in bytes.
fn position(text: &[u8]) -> Option<(i64, usize)> {
    let sign = usize::from(text.starts_with(b"-"));
    let length = sign + text[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some((std::str::from_utf8(&text[..length]).ok()?.parse().ok()?, length))
}

/// The replacement strings of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strings {
    plus: bool,
    /// Strings by their whole name, the longest first.
    named: Vec<(Vec<u8>, ReplacementPart)>,
    /// Strings of GNU parallel that have another name now.
    gone: Vec<&'static [u8]>,
    /// `--header`: `{name}` is the column of that name.
    columns: Vec<Vec<u8>>,
    perl: Option<Arc<dyn Perl>>,
}

impl Strings {
    pub(crate) fn new(
        given: &Replacements,
        columns: Vec<Vec<u8>>,
        perl: Option<Arc<dyn Perl>>,
    ) -> Result<Strings, BatchError> {
        let mut strings = Strings { plus: given.plus, columns, perl, ..Strings::default() };
        for (name, own) in &given.renamed {
            let part = strings.braced(own.as_bytes());
            strings.named.extend(part.map(|part| (name.0.clone(), part)));
            strings.gone.push(own.as_bytes());
        }
        strings.gone.retain(|own| strings.named.iter().all(|(name, _)| name != own));
        for text in &given.defined {
            let defined = defined(text, strings.perl.as_ref())?;
            strings.named.retain(|(name, _)| *name != defined.0);
            strings.named.push(defined);
        }
        strings.named.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Ok(strings)
    }

    fn braced(&self, name: &[u8]) -> Option<ReplacementPart> {
        self.replacement(name.strip_prefix(b"{")?.strip_suffix(b"}")?)
    }

    /// Returns the operation of a name, with or without a position before it.
    fn op(&self, text: &[u8]) -> Option<ValueOperation> {
        let whole = [b"{", text, b"}"].concat();
        match self.named.iter().find(|(name, _)| *name == whole) {
            Some((_, ReplacementPart::All(op))) => return Some(op.clone()),
            Some(_) => return None,
            None if self.gone.contains(&whole.as_slice()) => return None,
            None => {}
        }
        ValueOperation::own(text).or_else(|| self.plus.then(|| ValueOperation::plus(text)).flatten())
    }

    fn column(&self, inner: &[u8]) -> Option<ReplacementPart> {
        let (at, rest) = self.columns.iter().enumerate().find_map(|(at, name)| {
            let rest = inner.strip_prefix(name.as_slice()).filter(|_| !name.is_empty())?;
            OPERATIONS.iter().any(|(name, _)| name.as_bytes() == rest).then_some((at, rest))
        })?;
        self.op(rest).map(|op| ReplacementPart::One(at as i64 + 1, op))
    }

    /// Returns the replacement string between two braces, `None` if it is none.
    fn replacement(&self, inner: &[u8]) -> Option<ReplacementPart> {
        if let Some(part) = self.column(inner) {
            return Some(part);
        }
        if let Some((_, part)) = NUMBERS.into_iter().find(|(name, _)| name.as_bytes() == inner) {
            let is_gone = self.gone.iter().any(|own| &own[1..own.len() - 1] == inner);
            return (!is_gone).then_some(part);
        }
        match inner {
            b"##" if self.plus => return Some(ReplacementPart::Total),
            b"0#" if self.plus => return Some(ReplacementPart::PaddedSeq),
            b"slot" if self.plus => return Some(ReplacementPart::Slot),
            _ => {}
        }
        let Some((number, length)) = position(inner) else { return self.op(inner).map(ReplacementPart::All) };
        let op = self.op(trimmed_start(&inner[length..]))?;
        (number != 0).then_some(ReplacementPart::One(number, op))
    }

    /// Returns the replacement string at the beginning of `rest`, and its length.
    fn at(&self, rest: &[u8]) -> Option<(ReplacementPart, usize)> {
        if let Some((name, part)) = self.named.iter().find(|(name, _)| rest.starts_with(name)) {
            return Some((part.clone(), name.len()));
        }
        let close = rest.iter().position(|&b| b == b'}').filter(|_| rest[0] == b'{')?;
        self.replacement(&rest[1..close]).map(|part| (part, close + 1))
    }

    /// Reads `{= perl =}`, or `{=2 perl =}` of one value.
    fn expression(&self, text: &[u8]) -> Result<ReplacementPart, BatchError> {
        let whole = || BatchError::Perl(String::from_utf8_lossy(text).into_owned());
        let code = std::str::from_utf8(&text[2..text.len() - 2]).map_err(|_| whole())?;
        let op = |code: &str| match ValueOperation::of_perl(code.trim(), self.perl.as_ref()) {
            Err(BatchError::Perl(_)) => Err(whole()),
            op => op,
        };
        if let Some((number, rest)) = self.named_column(code) {
            return Ok(ReplacementPart::One(number, op(rest)?));
        }
        Ok(match position(code.as_bytes()) {
            Some((number, length)) => ReplacementPart::One(number, op(&code[length..])?),
            None => ReplacementPart::All(op(code)?),
        })
    }

    /// Reads the name of a column before an expression: returns its position and the expression.
    fn named_column<'c>(&self, code: &'c str) -> Option<(i64, &'c str)> {
        let first = code.split(char::is_whitespace).next().filter(|first| !first.is_empty())?;
        let at = self.columns.iter().position(|name| name == first.as_bytes())?;
        Some((at as i64 + 1, &code[first.len()..]))
    }

    /// Splits a text into replacement strings and literal text.
    pub(crate) fn parts(&self, text: &[u8]) -> Result<Vec<ReplacementPart>, BatchError> {
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            if rest.starts_with(b"{=")
                && let Some(end) = rest[2..].windows(2).position(|w| w == b"=}").map(|at| at + 2)
            {
                if !literal.is_empty() {
                    parts.push(ReplacementPart::Literal(std::mem::take(&mut literal)));
                }
                parts.push(self.expression(&rest[..end + 2])?);
                at += end + 2;
                continue;
            }
            if let Some((name, instead)) =
                NOT_PLUS.iter().find(|(name, _)| self.plus && rest.starts_with(name.as_bytes()))
            {
                return Err(BatchError::value("--plus", name, *instead));
            }
            if let Some((part, length)) = self.at(rest) {
                if !literal.is_empty() {
                    parts.push(ReplacementPart::Literal(std::mem::take(&mut literal)));
                }
                parts.push(part);
                at += length;
            } else {
                literal.push(rest[0]);
                at += 1;
            }
        }
        if !literal.is_empty() {
            parts.push(ReplacementPart::Literal(literal));
        }
        Ok(parts)
    }
}

/// Reads `--rpl 'NAME SUBSTITUTIONS'`.
fn defined(text: &RawText, engine: Option<&Arc<dyn Perl>>) -> Result<(Vec<u8>, ReplacementPart), BatchError> {
    let bad = |reason: &str| BatchError::value("--rpl", &text.display(), reason);
    let (name, perl) = text.0.split_at(text.0.iter().position(u8::is_ascii_whitespace).unwrap_or(text.0.len()));
    let perl = std::str::from_utf8(perl).map_err(|_| bad("it is not UTF-8"))?.trim();
    if name.is_empty() {
        return Err(bad("it begins with the name of the replacement string"));
    }
    if name.contains(&b'(') {
        return Err(bad("a name with a pattern is not supported; --plus has Bash's patterns"));
    }
    // GNU parallel marks with `1` an expression that is the same for all values.
    let once = perl.strip_prefix("1 ");
    let code = once.unwrap_or(perl).trim_end_matches(';');
    let own = OWN.iter().find(|(known, _)| *known == code).and_then(|(_, own)| Strings::default().braced(own));
    let part = match own {
        Some(part) => part,
        None if once.is_some() => ReplacementPart::One(1, ValueOperation::of_perl(code, engine)?),
        None => ReplacementPart::All(ValueOperation::of_perl(perl, engine)?),
    };
    Ok((name.to_vec(), part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_paths() {
        let taken = |op: &ValueOperation, value: &str| op.taken(value.as_bytes()).into_owned();
        for (value, dot, base, dir, base_dot) in [
            ("a/b.c/d.tar.gz", "a/b.c/d.tar", "d.tar.gz", "a/b.c", "d.tar"),
            ("x", "x", "x", ".", "x"),
            ("/y", "/y", "y", "/", "y"),
            (".bashrc", "", ".bashrc", ".", ""),
            ("a/.b", "a/", ".b", "a", ""),
            ("a.", "a", "a.", ".", "a"),
            ("a/b/", "a/b/", "", "a", ""),
        ] {
            for (op, want) in [
                (ValueOperation::NoExtension, dot),
                (ValueOperation::Base, base),
                (ValueOperation::Directory, dir),
                (ValueOperation::BaseNoExtension, base_dot),
            ] {
                assert_eq!(taken(&op, value), want.as_bytes(), "{op:?} of {value}");
            }
        }
    }

    #[test]
    fn each_own_operation_has_a_position_and_a_column() {
        let strings = Strings::new(&Replacements::default(), vec![b"name".to_vec()], None).unwrap();
        for (operation, _) in OPERATIONS {
            for text in [format!("{{{operation}}}"), format!("{{2{operation}}}"), format!("{{name{operation}}}")] {
                let parts = strings.parts(text.as_bytes()).unwrap();
                let is_one = matches!(&parts[..], [ReplacementPart::All(_) | ReplacementPart::One(..)]);
                assert!(is_one, "{text}: {parts:?}");
            }
        }
        assert!(own_replacements().iter().all(|own| strings.braced(own.as_bytes()).is_some()));
    }

    #[test]
    fn perl_is_refused_by_name() {
        let found = Strings::default().parts(b"echo {= $_++ =}");
        assert!(matches!(found, Err(BatchError::Perl(p)) if p == "{= $_++ =}"));
        assert!(
            matches!(&Strings::default().parts(b"{=}").unwrap()[..], [ReplacementPart::Literal(text)] if text == b"{=}")
        );
        let patterns = Replacements { defined: vec!["{:(\\d+)} s/$$1//".into()], ..Default::default() };
        assert!(Strings::new(&patterns, Vec::new(), None).is_err());
    }
}
