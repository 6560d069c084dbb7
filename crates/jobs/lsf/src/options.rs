//! Parses options as LSF's commands do. One dash comes before long names (`-cwd`) and before letters alike. Several
//! letters may come together (`-aJ name`). Values are joined (`-n4`) or apart.

use homing_model::RawText;
use homing_model::text::by_name;

/// The options of one command, without their dash.
pub struct Grammar {
    /// Options without a value.
    pub flags: &'static [&'static str],
    /// Options with one.
    pub valued: &'static [&'static str],
    /// Options among them that do less than LSF's: names with blanks between them, and the note.
    pub noted: &'static [(&'static str, &'static str)],
    /// Options that LSF has and homing lacks, in the same form: the message names the replacement.
    pub refused: &'static [(&'static str, &'static str)],
    /// Whether options may follow operands.
    pub mixed: bool,
}

impl Grammar {
    fn knows(&self, name: &[u8]) -> bool {
        option_message(self.refused, name).is_some() || named(self.flags, name).or(named(self.valued, name)).is_some()
    }
}

/// Returns the note or message on an option.
fn option_message(of: &[(&str, &str)], name: &[u8]) -> Option<String> {
    by_name(of).find(|(known, _)| known.as_bytes() == name).map(|(name, what)| format!("-{name}: {what}"))
}

/// The parsed words, in order.
#[derive(Debug, Default, PartialEq)]
pub struct Parsed {
    /// Options, without their dash, and their values.
    pub options: Vec<(&'static str, RawText)>,
    /// All other words.
    pub operands: Vec<RawText>,
    /// Notes to the user about options that do less than LSF's, a line each.
    pub notes: Vec<String>,
}

impl Parsed {
    fn take(&mut self, grammar: &Grammar, option: &'static str, value: RawText) {
        self.notes.extend(option_message(grammar.noted, option.as_bytes()));
        self.options.push((option, value));
    }
    /// Whether the option is given.
    pub fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(n, _)| *n == name)
    }
    /// Returns its last value.
    pub fn last(&self, name: &str) -> Option<&RawText> {
        self.options.iter().rev().find(|(n, _)| *n == name).map(|(_, v)| v)
    }
    /// Returns its last value as text.
    pub fn text(&self, name: &str) -> Option<String> {
        self.last(name).map(text)
    }
}

/// Returns the text of an option value that is a word, not a file name.
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

/// Parses one word that begins with a dash, as LSF does. It may be a whole name. It may be several letters, of which
/// the last may take a value. Or it is a letter with its value joined.
fn option<'a>(
    grammar: &Grammar,
    name: &[u8],
    rest: &mut impl Iterator<Item = &'a RawText>,
    found: &mut Parsed,
) -> Result<(), String> {
    if let Some((option, value)) = joined(grammar, name) {
        found.take(grammar, option, value);
        return Ok(());
    }
    let letters: Vec<&[u8]> = if grammar.knows(name) { vec![name] } else { name.chunks(1).collect() };
    let illegal = || format!("illegal option -- {}", String::from_utf8_lossy(name));
    for (at, letter) in letters.iter().enumerate() {
        let last = at + 1 == letters.len();
        if let Some(flag) = named(grammar.flags, letter) {
            found.take(grammar, flag, RawText::default());
        } else if let Some(valued) = named(grammar.valued, letter).filter(|_| last) {
            let value = rest.next().cloned().ok_or_else(|| format!("option requires an argument -- {valued}"))?;
            found.take(grammar, valued, value);
        } else if let Some(refused) = option_message(grammar.refused, letter) {
            return Err(refused);
        } else {
            return Err(illegal());
        }
    }
    Ok(())
}

fn named(list: &'static [&'static str], name: &[u8]) -> Option<&'static str> {
    list.iter().find(|n| n.as_bytes() == name).copied()
}

/// Parses `-n4`, `-W01:30`, `-uall`, `-mhost`, `-R'select[mem>1]'`, `-oFILE`: a value joined to its letter. One of
/// LSF's longer names is never taken for a letter and its value. A letter whose values are numbers or paths takes no
/// other text.
fn joined(grammar: &Grammar, name: &[u8]) -> Option<(&'static str, RawText)> {
    let (letter, value) = name.split_at_checked(1)?;
    let known = match letter {
        b"m" | b"q" | b"u" | b"R" | b"o" | b"e" | b"i" | b"J" | b"P" | b"E" => !value.is_empty(),
        b"g" => value.starts_with(b"/"),
        b"w" => value.contains(&b'('),
        _ => value.first().is_some_and(u8::is_ascii_digit),
    };
    let option = named(grammar.valued, letter).filter(|_| known && !grammar.knows(name))?;
    Some((option, RawText(value.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::grammar::{BJOBS, BKILL, BSUB};

    fn of(grammar: &Grammar, words: &[&str]) -> Result<Parsed, String> {
        parse(grammar, &words.iter().map(|w| RawText::from(*w)).collect::<Vec<_>>())
    }

    fn shown(found: &Parsed) -> Vec<String> {
        found.options.iter().map(|(n, v)| format!("{n}={}", v.display())).collect()
    }

    #[test]
    fn whole_names_heaps_and_joined_numbers() {
        let found = of(&BJOBS, &["-aJ", "*x*", "-mh1", "-noheader", "-uall", "-wl", "7"]).unwrap();
        assert_eq!(shown(&found), ["a=", "J=*x*", "m=h1", "noheader=", "u=all", "w=", "l="]);
        assert_eq!(found.operands, [RawText::from("7")]);
        let found = of(&BSUB, &["-n4", "-W01:30", "-oo", "f", "-Is", "cmd", "-l"]).unwrap();
        assert_eq!(shown(&found), ["n=4", "W=01:30", "oo=f", "Is="]);
        assert_eq!(found.operands, [RawText::from("cmd"), "-l".into()]);
        assert_eq!(found.text("oo").as_deref(), Some("f"));
    }

    #[test]
    fn values_are_joined_to_letters() {
        for (grammar, word, option) in [
            (&BSUB, "-Rselect[mem>35] rusage[mem=35]", "R=select[mem>35] rusage[mem=35]"),
            (&BSUB, "-onight", "o=night"),
            (&BSUB, "-J name", "J= name"),
            (&BSUB, "-wdone(1)", "w=done(1)"),
            (&BSUB, "-g/group", "g=/group"),
            (&BJOBS, "-o exit_code", "o= exit_code"),
            (&BSUB, "-oo", "oo="),
        ] {
            let found = of(grammar, &[word, "x"]).unwrap();
            let first = &shown(&found)[0];
            assert_eq!(first.strip_suffix('x').unwrap_or(first), option.strip_suffix('x').unwrap_or(option), "{word}");
        }
    }

    #[test]
    fn no_option_is_taken_for_another_one() {
        for (grammar, words, says) in [
            (&BJOBS, &["-gpu"][..], "-gpu: GPUs of jobs are not shown"),
            (&BSUB, &["-alloc_flags", "x", "cmd"], "-alloc_flags: "),
            (&BSUB, &["-nosuch", "cmd"], "illegal option -- nosuch"),
            (&BSUB, &["-sp", "5", "cmd"], "-q"),
            (&BSUB, &["-ti", "cmd"], "-ti: "),
            (&BJOBS, &["-sum"], "bqueues"),
            (&BJOBS, &["-pi"], "use -p"),
            (&BKILL, &["-stat", "run"], "bjobs"),
            (&BKILL, &["-grp", "0"], "illegal option -- grp"),
            (&BKILL, &["-z"], "illegal option -- z"),
            (&BKILL, &["-J"], "option requires an argument -- J"),
        ] {
            let said = of(grammar, words).unwrap_err();
            assert!(said.contains(says), "{words:?}: {said}");
        }
        assert_eq!(of(&BKILL, &["--", "-a"]).unwrap().operands, [RawText::from("-a")]);
    }

    #[test]
    fn what_does_less_than_lsfs_is_said() {
        assert!(of(&BSUB, &["-Zs", "./script"]).unwrap().notes[0].contains("read when the job starts"));
        let found = of(&BSUB, &["-r", "-N", "true"]).unwrap();
        assert!(
            found.notes[0].starts_with("-r: a job that is interrupted") && found.notes[1].starts_with("-N: no mail")
        );
        for grammar in [&BSUB, &BJOBS, &BKILL] {
            let names = |of: &'static [(&str, &str)]| by_name(of).map(|(name, _)| name);
            assert!(names(grammar.noted).all(|name| grammar.knows(name.as_bytes())));
            assert!(names(grammar.refused).all(|name| {
                named(grammar.flags, name.as_bytes()).or(named(grammar.valued, name.as_bytes())).is_none()
            }));
        }
    }
}
