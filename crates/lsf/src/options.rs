//! Options as LSF's commands read them: one dash before long names (`-cwd`)
//! and before letters alike, letters in a heap (`-aJ name`), values joined
//! (`-n4`) or apart.

use homing_model::RawText;

/// The options of one command, without their dash.
pub struct Grammar {
    /// Options without a value.
    pub flags: &'static [&'static str],
    /// Options with one.
    pub valued: &'static [&'static str],
    /// Options may follow operands.
    pub mixed: bool,
}

/// What was found, in order.
#[derive(Debug, Default, PartialEq)]
pub struct Parsed {
    /// Options, without their dash, and their values.
    pub options: Vec<(&'static str, RawText)>,
    /// All other words.
    pub operands: Vec<RawText>,
}

impl Parsed {
    /// True when the option is there.
    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(n, _)| *n == name)
    }
    /// Its last value.
    pub fn last(&self, name: &str) -> Option<&RawText> {
        self.options.iter().rev().find(|(n, _)| *n == name).map(|(_, v)| v)
    }
    /// Its last value as text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.last(name).map(text)
    }
}

/// Option values that are words, not file names.
pub fn text(raw: &RawText) -> String {
    String::from_utf8_lossy(&raw.0).into_owned()
}

/// Splits words into options and operands.
pub fn parse(grammar: &Grammar, words: &[RawText]) -> Result<Parsed, String> {
    let mut found = Parsed::default();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.0.as_slice() {
            b"--" => {
                found.operands.extend(rest.cloned());
                break;
            }
            [b'-', name @ ..] if !name.is_empty() => option(grammar, name, &mut rest, &mut found)?,
            _ => {
                found.operands.push(word.clone());
                if !grammar.mixed {
                    found.operands.extend(rest.cloned());
                    break;
                }
            }
        }
    }
    Ok(found)
}

fn option<'a>(
    grammar: &Grammar,
    name: &[u8],
    rest: &mut impl Iterator<Item = &'a RawText>,
    found: &mut Parsed,
) -> Result<(), String> {
    let named = |list: &'static [&'static str], name: &[u8]| list.iter().find(|n| n.as_bytes() == name).copied();
    let mut next =
        |option: &str| rest.next().cloned().ok_or_else(|| format!("option requires an argument -- {option}"));
    if let Some(option) = named(grammar.valued, name) {
        found.options.push((option, next(option)?));
        return Ok(());
    }
    if let Some(option) = named(grammar.flags, name) {
        found.options.push((option, RawText::default()));
        return Ok(());
    }
    for (at, letter) in name.iter().enumerate() {
        if let Some(option) = named(grammar.flags, &[*letter]) {
            found.options.push((option, RawText::default()));
        } else if let Some(option) = named(grammar.valued, &[*letter]) {
            let joined = &name[at + 1..];
            let value = if joined.is_empty() { next(option)? } else { RawText(joined.to_vec()) };
            found.options.push((option, value));
            return Ok(());
        } else {
            return Err(format!("illegal option -- {}", String::from_utf8_lossy(name)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAMMAR: Grammar =
        Grammar { flags: &["a", "l", "Is", "noheader"], valued: &["J", "o", "oo", "m", "cwd"], mixed: false };

    fn of(words: &[&str]) -> Result<Parsed, String> {
        parse(&GRAMMAR, &words.iter().map(|w| RawText::from(*w)).collect::<Vec<_>>())
    }

    #[test]
    fn heaps_joined_values_and_long_names() {
        let found = of(&["-aJ", "*x*", "-mh1", "-oo", "f", "-of", "-noheader", "-Is", "cmd", "-l"]).unwrap();
        let options: Vec<_> = found.options.iter().map(|(n, v)| format!("{n}={}", v.display())).collect();
        assert_eq!(options, ["a=", "J=*x*", "m=h1", "oo=f", "o=f", "noheader=", "Is="]);
        assert_eq!(found.operands, [RawText::from("cmd"), "-l".into()]);
        assert_eq!(found.text("m").as_deref(), Some("h1"));
    }

    #[test]
    fn mistakes_are_named_and_two_dashes_end_options() {
        assert_eq!(of(&["-z"]).unwrap_err(), "illegal option -- z");
        assert_eq!(of(&["-a", "-cwd"]).unwrap_err(), "option requires an argument -- cwd");
        assert_eq!(of(&["--", "-a"]).unwrap().operands, [RawText::from("-a")]);
    }
}
