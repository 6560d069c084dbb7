//! Parses values of `nodeset`'s options: `--autostep` and `--output-format`.

use std::str::FromStr;

/// The value of `--autostep`: the number of nodes from which on `a-b/step` is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Autostep {
    /// At least this many.
    Nodes(u64),
    /// At least this share of all nodes, in percent.
    Percent(f64),
    /// All nodes, and at least 3.
    Auto,
}

impl Autostep {
    /// Returns the number of nodes from which on a step is written, in a set of `count`.
    pub fn least(&self, count: usize) -> u64 {
        match self {
            Autostep::Nodes(nodes) => *nodes,
            Autostep::Percent(percent) => (count as f64 * percent / 100.0).ceil() as u64,
            Autostep::Auto => 3.max(count as u64),
        }
    }
}

impl FromStr for Autostep {
    type Err = String;

    fn from_str(text: &str) -> Result<Autostep, String> {
        let wrong = || format!("{text:?} is not a number of nodes, a percentage of nodes, or auto");
        if text == "auto" {
            return Ok(Autostep::Auto);
        }
        match text.strip_suffix('%') {
            Some(percent) => percent.parse().ok().filter(|p: &f64| *p >= 0.0).map(Autostep::Percent).ok_or_else(wrong),
            None => text.parse().map(Autostep::Nodes).map_err(|_| wrong()),
        }
    }
}

/// A format like that of printf(3), with one `%s` or `%d`, which may have a width.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputFormat {
    before: String,
    after: String,
    left: bool,
    zeros: bool,
    width: usize,
}

impl OutputFormat {
    /// Parses a format; `%%` is a percent sign.
    pub fn read(text: &str) -> Result<OutputFormat, String> {
        let wrong =
            |why: &str| format!("the output format {text:?} {why}; %s is replaced by the node, %% by a percent sign");
        let mut found: Option<OutputFormat> = None;
        let (mut literal, mut rest) = (String::new(), text);
        while let Some(at) = rest.find('%') {
            literal.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix('%') {
                literal.push('%');
                rest = behind;
                continue;
            }
            let flags = rest.find(|c: char| c != '-' && c != '0').unwrap_or(rest.len());
            let digits = rest[flags..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |end| flags + end);
            let width = rest[flags..digits].parse().ok().filter(|width| *width <= 1000);
            if !rest[digits..].starts_with(['s', 'd']) || (width.is_none() && flags < digits) {
                return Err(wrong("has a % that is not %s"));
            }
            if found.is_some() {
                return Err(wrong("has more than one %s"));
            }
            let before = std::mem::take(&mut literal);
            let (left, zeros) =
                (rest[..flags].contains('-'), rest[..flags].contains('0') && rest[digits..].starts_with('d'));
            found = Some(OutputFormat { before, after: String::new(), left, zeros, width: width.unwrap_or(0) });
            rest = &rest[digits + 1..];
        }
        literal.push_str(rest);
        let found = found.ok_or_else(|| wrong("has no %s"))?;
        Ok(OutputFormat { after: literal, ..found })
    }

    /// Returns `text` in this format.
    pub fn of(&self, text: &str) -> String {
        let OutputFormat { before, after, left, zeros, width } = self;
        match (left, zeros) {
            (true, _) => format!("{before}{text:<width$}{after}"),
            (false, true) => format!("{before}{text:0>width$}{after}"),
            (false, false) => format!("{before}{text:>width$}{after}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_printfs() {
        let of = |format: &str| OutputFormat::read(format).map(|format| format.of("n1"));
        assert_eq!(of("%s"), Ok("n1".into()));
        assert_eq!(of("<%s>%%"), Ok("<n1>%".into()));
        assert_eq!(of("%5s|"), Ok("   n1|".into()));
        assert_eq!(of("%-5s|"), Ok("n1   |".into()));
        assert_eq!(OutputFormat::read("%03d").unwrap().of("7"), "007");
        for wrong in ["", "x", "%s%s", "%q", "%", "%99999s"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_step_is_for_a_number_or_a_share_of_the_nodes() {
        let least = |text: &str, count| Autostep::from_str(text).unwrap().least(count);
        assert_eq!([least("4", 9), least("50%", 9), least("auto", 2), least("auto", 9)], [4, 5, 3, 9]);
        assert!(Autostep::from_str("many").is_err() && Autostep::from_str("-5%").is_err());
    }
}
