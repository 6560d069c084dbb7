//! Edits values by substitutions in Perl's syntax, `s/a/b/g; s:c:: || s:d:e:`, which most of GNU parallel's
//! replacement strings are. It knows no other Perl.

use crate::error::BatchError;
use regex::bytes::Regex;
use std::borrow::Cow;

/// A sequence of edits.
#[derive(Clone, Debug)]
pub(crate) struct Edit(Vec<EditStep>);

#[derive(Clone, Debug)]
enum EditStep {
    /// Replaces by the first of these that matches.
    Substitute(Vec<Substitution>),
    /// Replaces an empty value, or `0`.
    Default(Vec<u8>),
    /// Takes this many bytes (second) after this many (first).
    Slice(usize, usize),
    /// Changes the matched text to capitals, or to small letters.
    Case { found: Regex, all: bool, upper: bool },
}

#[derive(Clone, Debug)]
struct Substitution {
    found: Regex,
    with: Vec<u8>,
    all: bool,
}

/// Compiles a pattern over bytes; a pattern with characters beyond ASCII is over UTF-8.
pub(crate) fn regex(pattern: &str) -> Result<Regex, String> {
    let bytes = Regex::new(&format!("(?-u:{pattern})")).or_else(|_| Regex::new(pattern));
    bytes.map_err(|e| format!("not a regular expression: {e}"))
}

impl Edit {
    /// Reads substitutions in Perl's syntax.
    pub(crate) fn perl(text: &str) -> Result<Edit, BatchError> {
        let refused = || BatchError::Perl(text.to_owned());
        let mut rest = text.trim_start();
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let mut choices = Vec::new();
            loop {
                let (one, after) = substitution(rest).ok_or_else(refused)?;
                choices.push(one);
                rest = after.trim_start();
                match rest.strip_prefix("||") {
                    Some(after) => rest = after.trim_start(),
                    None => break,
                }
            }
            steps.push(EditStep::Substitute(choices));
            if !rest.is_empty() {
                rest = rest.strip_prefix(';').ok_or_else(refused)?.trim_start();
            }
        }
        if steps.is_empty() { Err(refused()) } else { Ok(Edit(steps)) }
    }

    /// Reads the text between the braces of `--plus` strings from Bash: `:-text`, `:2:3`, `#a`, `%a`, `/a/b`, `^a`,
    /// `,A`.
    pub(crate) fn bash(inner: &str) -> Option<Edit> {
        let case = |pattern: &str, all, upper| Some(EditStep::Case { found: regex(pattern).ok()?, all, upper });
        let step = if let Some(text) = inner.strip_prefix(":-").filter(|t| !t.is_empty()) {
            EditStep::Default(text.as_bytes().to_vec())
        } else if let Some(numbers) = inner.strip_prefix(':') {
            let (from, length) = numbers.split_once(':').unwrap_or((numbers, ""));
            EditStep::Slice(from.parse().ok()?, if length.is_empty() { usize::MAX } else { length.parse().ok()? })
        } else if let Some(pattern) = inner.strip_prefix("^^").filter(|p| !p.is_empty()) {
            case(pattern, true, true)?
        } else if let Some(pattern) = inner.strip_prefix('^').filter(|p| !p.is_empty()) {
            case(&format!("^(?:{pattern})"), false, true)?
        } else if let Some(pattern) = inner.strip_prefix(",,").filter(|p| !p.is_empty()) {
            case(pattern, true, false)?
        } else if let Some(pattern) = inner.strip_prefix(',').filter(|p| !p.is_empty()) {
            case(&format!("^(?:{pattern})"), false, false)?
        } else {
            EditStep::Substitute(vec![removal(inner).or_else(|| replacement(inner))?])
        };
        Some(Edit(vec![step]))
    }

    pub(crate) fn apply<'v>(&self, value: &'v [u8]) -> Cow<'v, [u8]> {
        let mut value = Cow::Borrowed(value);
        for step in &self.0 {
            if let Some(changed) = step.apply(&value) {
                value = Cow::Owned(changed);
            }
        }
        value
    }
}

/// Reads `#a`, `##a`, `%a`, `%%a`: the shortest or the longest beginning or end is removed.
fn removal(inner: &str) -> Option<Substitution> {
    let given = |text: &'_ str| !text.is_empty();
    let (pattern, with) = if let Some(text) = inner.strip_prefix("##").filter(|t| given(t)) {
        (format!("^(?:{text})"), "")
    } else if let Some(text) = inner.strip_prefix('#').filter(|t| given(t)) {
        (format!("^(?U:{text})"), "")
    } else if let Some(text) = inner.strip_prefix("%%").filter(|t| given(t)) {
        (format!("(?:{text})$"), "")
    } else {
        let text = inner.strip_prefix('%').filter(|t| given(t))?;
        (format!("(.*)(?U:{text})$"), "${1}")
    };
    Some(Substitution { found: regex(&pattern).ok()?, with: with.into(), all: false })
}

/// Reads `/a/b`, `//a/b`, `/#a/b`, `/%a/b`.
fn replacement(inner: &str) -> Option<Substitution> {
    let inner = inner.strip_prefix('/')?;
    let (kind, rest) = match inner.as_bytes().first()? {
        b'/' | b'#' | b'%' => inner.split_at(1),
        _ => ("", inner),
    };
    let (pattern, with) = rest.split_once('/').filter(|(pattern, _)| !pattern.is_empty())?;
    let pattern = match kind {
        "#" => format!("^(?:{pattern})"),
        "%" => format!("(?:{pattern})$"),
        _ => pattern.to_owned(),
    };
    Some(Substitution { found: regex(&pattern).ok()?, with: template_of(with), all: !kind.is_empty() })
}

impl EditStep {
    /// Returns `None` if the value stays as it is.
    fn apply(&self, value: &[u8]) -> Option<Vec<u8>> {
        match self {
            EditStep::Substitute(choices) => {
                let one = choices.iter().find(|one| one.found.is_match(value))?;
                let most = if one.all { 0 } else { 1 };
                Some(one.found.replacen(value, most, one.with.as_slice()).into_owned())
            }
            EditStep::Default(text) => (value.is_empty() || value == b"0").then(|| text.clone()),
            EditStep::Slice(from, length) => Some(value.iter().skip(*from).take(*length).copied().collect()),
            EditStep::Case { found, all, upper } => {
                let change = |captures: &regex::bytes::Captures| match upper {
                    true => captures[0].to_ascii_uppercase(),
                    false => captures[0].to_ascii_lowercase(),
                };
                Some(found.replacen(value, if *all { 0 } else { 1 }, change).into_owned())
            }
        }
    }
}

/// Reads `s/pattern/text/flags` at the beginning. Returns it, and the rest of the text.
fn substitution(text: &str) -> Option<(Substitution, &str)> {
    let mut chars = text.strip_prefix('s')?.chars();
    let mark = chars.next().filter(|c| c.is_ascii_punctuation() && !"_{}()<>[]".contains(*c))?;
    let (pattern, rest) = until(chars.as_str(), mark)?;
    let (with, rest) = until(rest, mark)?;
    let flags = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).len();
    let (flags, rest) = rest.split_at(flags);
    if !flags.chars().all(|flag| "gi".contains(flag)) {
        return None;
    }
    let pattern = if flags.contains('i') { format!("(?i:{pattern})") } else { pattern };
    Some((Substitution { found: regex(&pattern).ok()?, with: template_of(&with), all: flags.contains('g') }, rest))
}

/// Returns the text up to the mark, and the rest; a backslash escapes the mark.
fn until(text: &str, mark: char) -> Option<(String, &str)> {
    let (mut out, mut escaped) = (String::new(), false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => {
                if c != mark {
                    out.push('\\');
                }
                out.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            _ if c == mark => return Some((out, &text[at + c.len_utf8()..])),
            _ => out.push(c),
        }
    }
    None
}

/// Converts Perl's `$1` and `\1` to `${1}`; another `$` becomes literal.
fn template_of(text: &str) -> Vec<u8> {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek().copied()) {
            ('$' | '\\', Some(digit)) if digit.is_ascii_digit() => {
                out.push_str(&format!("${{{digit}}}"));
                chars.next();
            }
            ('\\', Some(next)) => {
                out.push_str(match next {
                    't' => "\t",
                    'n' => "\n",
                    '$' => "$$",
                    _ => "",
                });
                if !"tn$".contains(next) {
                    out.push(next);
                }
                chars.next();
            }
            ('$', _) => out.push_str("$$"),
            _ => out.push(c),
        }
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn substitutions_of_perl() {
        for (perl, value, want) in [
            ("s/a/b/", "aa", "ba"),
            ("s/a/b/g", "aa", "bb"),
            ("s:/[^/]*$:: || s:.*$::", "x/y", "x"),
            ("s:/[^/]*$:: || s:.*$::", "y", ""),
            ("s:.*/::; s:\\.[^/.]*$::;", "a/b.c", "b"),
            ("s/(.)(.)/$2\\1/", "ab", "ba"),
            ("s/A/$/i", "a", "$"),
            ("s/\\//-/g", "a/b/c", "a-b-c"),
        ] {
            assert_eq!(Edit::perl(perl).unwrap().apply(value.as_bytes()), want.as_bytes(), "{perl} of {value}");
        }
    }

    #[test]
    fn other_perl_is_refused() {
        for perl in ["", "$_++", "s/a/b/e", "s/a/b", "tr/a/b/", "s/(?<=a)b//", "s/a/b/; system(1)"] {
            assert!(matches!(Edit::perl(perl), Err(BatchError::Perl(_))), "{perl}");
        }
    }
}
