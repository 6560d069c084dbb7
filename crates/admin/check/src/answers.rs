//! Parses the answers of hosts, line by line. No host is trusted: the size of its output is bounded, and its control
//! characters are escaped here. A part whose last line did not arrive is unknown as a whole.

use homing_model::text::shown;
use std::collections::BTreeMap;

/// The most characters of a field.
const LONGEST: usize = 300;
/// The most lines of a part; the script itself prints no more.
const MOST_LINES: usize = 2000;
/// The most lines that are no answer of the script, such as the output of a start-up file.
const MOST_STRAY: usize = 5;

/// Bytes from a host, and this machine's clock when they arrived, in seconds.
pub type OutputChunk = (f64, Vec<u8>);

/// A host's clock beside this machine's, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClockSample {
    /// The host's clock.
    pub(crate) shown_s: f64,
    /// This machine's clock before the script was sent, where it is known.
    pub(crate) sent_s: Option<f64>,
    /// This machine's clock when the answer arrived.
    pub(crate) received_s: f64,
}

/// The answers of a host.
#[derive(Clone, Debug, Default)]
pub struct HostAnswers {
    /// The name under which it was reached.
    pub name: String,
    /// Lines before or among the output of the script.
    pub stray: Vec<String>,
    pub(crate) clock: Vec<ClockSample>,
    parts: BTreeMap<String, AnswerPart>,
}

#[derive(Clone, Debug, Default)]
struct AnswerPart {
    rows: Vec<Vec<String>>,
    /// Its exit status, or `cut` if its output was too long.
    end: Option<String>,
}

/// The answers of all hosts.
#[derive(Clone, Debug, Default)]
pub struct Answers {
    /// Hosts that answered, in the order of the command line.
    pub hosts: Vec<HostAnswers>,
}

impl Answers {
    /// Returns the rows of a part, for each host that completed it.
    pub(crate) fn of<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (&'a HostAnswers, &'a [Vec<String>])> {
        self.hosts.iter().filter_map(move |host| Some((host, host.rows(key)?)))
    }

    /// Returns each row of a part, for each host that completed it. A row has at least one field.
    pub(crate) fn each<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (&'a HostAnswers, &'a [String])> {
        self.of(key).flat_map(|(host, rows)| rows.iter().map(move |row| (host, row.as_slice())))
    }

    /// Returns the value of a row `NAME<TAB>VALUE`, for each host that has one.
    pub(crate) fn value<'a>(&'a self, key: &'a str, name: &'a str) -> impl Iterator<Item = (&'a HostAnswers, &'a str)> {
        self.of(key).filter_map(move |(host, rows)| {
            let row = rows.iter().find(|row| row.first().is_some_and(|first| first == name))?;
            row.get(1).map(|value| (host, value.as_str())).filter(|(_, value)| !value.is_empty())
        })
    }
}

impl HostAnswers {
    /// Returns a host without answers.
    pub fn named(name: &str) -> HostAnswers {
        HostAnswers { name: name.into(), ..HostAnswers::default() }
    }

    /// Parses the output of a host.
    pub fn read(name: &str, chunks: &[OutputChunk]) -> HostAnswers {
        let mut host = HostAnswers::named(name);
        let mut begun: Vec<u8> = Vec::new();
        for (at, bytes) in chunks {
            let mut lines = bytes.split(|b| *b == b'\n');
            begun.extend(lines.next().unwrap_or_default());
            for next in lines {
                host.line(&std::mem::replace(&mut begun, next.into()), *at);
            }
        }
        if !begun.is_empty() {
            host.line(&begun, f64::NAN);
        }
        host
    }

    /// Adds the time when the script was sent, by this machine's clock in seconds.
    pub fn asked_at(mut self, sent_s: f64) -> HostAnswers {
        self.clock.iter_mut().for_each(|sample| sample.sent_s = Some(sent_s));
        self
    }

    fn line(&mut self, line: &[u8], at: f64) {
        let text = String::from_utf8_lossy(line);
        let mut fields = text.split('\t').map(|field| shown(field).chars().take(LONGEST).collect::<String>());
        let first = fields.next().unwrap_or_default();
        match first.strip_prefix("=") {
            Some("now") => {
                let shown = fields.next().and_then(|f| f.parse().ok()).filter(|f: &f64| f.is_finite());
                let sample = |shown_s| ClockSample { shown_s, sent_s: None, received_s: at };
                self.clock.extend(shown.filter(|_| at.is_finite()).map(sample));
            }
            Some("end") => {
                if let (Some(key), Some(how)) = (fields.next(), fields.next()) {
                    self.parts.entry(key).or_default().end = Some(how);
                }
            }
            Some(key) => {
                let (part, row) = (self.parts.entry(key.into()).or_default(), fields.collect::<Vec<_>>());
                // A row has at least one field: a line without a tab is none.
                if part.rows.len() < MOST_LINES && !row.is_empty() {
                    part.rows.push(row);
                }
            }
            None if !text.trim().is_empty() && self.stray.len() < MOST_STRAY => {
                self.stray.push(shown(&text).chars().take(LONGEST).collect());
            }
            None => {}
        }
    }

    /// Sets the rows of a part that did not come from the host.
    pub(crate) fn set_rows(&mut self, key: &str, rows: Vec<Vec<String>>) {
        self.parts.insert(key.into(), AnswerPart { rows, end: Some("0".into()) });
    }

    /// Adds a row to a part that did not come from the host.
    pub(crate) fn add_row(&mut self, key: &str, row: &[&str]) {
        self.parts.entry(key.into()).or_default().rows.push(row.iter().map(|field| field.to_string()).collect());
    }

    /// Returns the rows of a part that the host completed.
    pub(crate) fn rows(&self, key: &str) -> Option<&[Vec<String>]> {
        let part = self.parts.get(key)?;
        ended(part.end.as_deref()).then_some(&part.rows[..])
    }

    /// Returns the rows of a part, complete or not.
    pub(crate) fn begun(&self, key: &str) -> &[Vec<String>] {
        self.parts.get(key).map_or(&[], |part| &part.rows)
    }

    /// Returns why a part is unknown; `None`: it is known.
    pub fn unknown(&self, key: &str) -> Option<String> {
        match self.parts.get(key).and_then(|part| part.end.as_deref()) {
            end if ended(end) => None,
            Some("137") => Some("no answer in time".into()),
            Some("cut") => Some("its output is too long".into()),
            _ => Some("it ended early".into()),
        }
    }

    /// Returns the user number of homing's login on the host.
    pub fn uid(&self) -> Option<u32> {
        self.rows("who")?.first()?.first()?.parse().ok()
    }

    /// Returns the kind of the host: hosts with the same processor and product name are twins.
    pub(crate) fn kind(&self) -> String {
        let of = |name: &str| {
            let row = self.rows("processors")?.iter().find(|row| row[0] == name)?;
            row.get(1).cloned()
        };
        format!("{} {}", of("model").unwrap_or_default(), of("product").unwrap_or_default())
    }
}

/// Whether a part ended by itself: the status of a signal is 128 or more.
fn ended(status: Option<&str>) -> bool {
    status.and_then(|s| s.parse::<u8>().ok()).is_some_and(|s| s < 128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_sends_is_bounded_and_harmless() {
        let long = "x".repeat(9000);
        let text = format!("welcome\n=a\tone\t\x1b[2Jtwo\n=a\t{long}\n=end\ta\t0\n=b\tcut of");
        let host = HostAnswers::read("n1", &[(1.0, text.into_bytes())]);
        assert_eq!(host.stray, ["welcome"]);
        let rows = host.rows("a").unwrap();
        assert_eq!(rows[0], ["one", "\\u{1b}[2Jtwo"]);
        assert_eq!(rows[1][0].len(), LONGEST);
        assert_eq!((host.rows("b"), host.unknown("b").unwrap().as_str()), (None, "it ended early"));
        let flood: Vec<OutputChunk> = (0..5000).map(|_| (0.0, b"=a\tx\nnoise\n".to_vec())).collect();
        let host = HostAnswers::read("n1", &flood);
        assert!(host.begun("a").len() == MOST_LINES && host.stray.len() == MOST_STRAY);
    }

    #[test]
    fn a_line_in_two_pieces_is_heard_when_it_is_whole() {
        let host =
            HostAnswers::read("n1", &[(1.0, b"=now\t10".to_vec()), (2.0, b"1.5\n=now\t1e999\n=now\tx\n".to_vec())]);
        assert_eq!(host.clock, [ClockSample { shown_s: 101.5, sent_s: None, received_s: 2.0 }]);
    }
}
