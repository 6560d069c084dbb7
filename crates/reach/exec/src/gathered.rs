//! Groups equal outputs under one header, as `clush -b` prints them, and shows differences.

use crate::Outcome;
use crate::capture::{Capture, Key};
use crate::verdict::label;
use homing_model::NodeSet;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;

/// Largest output, bytes, that is compared line by line.
const MOST_DIFF: u64 = 32 << 20;
const RULE: &str = "---------------";

/// Outputs of finished hosts.
#[derive(Default)]
pub struct Gathered {
    /// By rank (the exit status; other outcomes come last), then by output.
    groups: BTreeMap<(i64, Key), Group>,
}

struct Group {
    hosts: Vec<usize>,
    output: Rc<Capture>,
}

/// Which labels precede outputs.
#[derive(Clone, Copy)]
pub struct Style {
    /// Whether headers and prefixes are printed.
    pub labels: bool,
    /// Whether headers are blue.
    pub color: bool,
}

impl Gathered {
    /// Adds the output of a host that has finished.
    pub fn add(&mut self, host: usize, outcome: &Outcome, output: Capture) {
        let rank = match outcome {
            Outcome::Exited(status) => i64::from(*status),
            _ => i64::MAX,
        };
        let key = (rank, output.key());
        let group = self.groups.entry(key).or_insert_with(|| Group { hosts: Vec::new(), output: Rc::new(output) });
        group.hosts.push(host);
    }

    /// Returns the groups in clush's order: by status, then by size, large ones first, then by the first host's name.
    fn ordered(&mut self, names: &[String]) -> Vec<(i64, &Group)> {
        self.groups.values_mut().for_each(|g| g.hosts.sort_unstable());
        let mut all: Vec<_> = self.groups.iter().map(|((rank, _), group)| (*rank, group)).collect();
        all.sort_by_cached_key(|(rank, group)| {
            (*rank, std::cmp::Reverse(group.hosts.len()), names[group.hosts[0]].clone())
        });
        all
    }

    /// Prints headers and outputs; hosts without output are not named.
    pub fn print(&mut self, names: &[String], style: Style, to: &mut dyn Write) -> io::Result<()> {
        for (_, group) in self.ordered(names) {
            if group.output.len() == 0 {
                continue;
            }
            if style.labels {
                let (on, off) = if style.color { ("\x1b[94m", "\x1b[0m") } else { ("", "") };
                writeln!(to, "{on}{RULE}\n{}\n{RULE}{off}", label(pick(names, &group.hosts)))?;
            }
            copy(&group.output, to)?;
        }
        Ok(())
    }

    /// Prints each line with its host in front, host after host.
    pub fn print_sorted(&mut self, names: &[String], style: Style, to: &mut dyn Write) -> io::Result<()> {
        let mut rows: Vec<(i64, usize, Rc<Capture>)> = Vec::new();
        for (rank, group) in self.ordered(names) {
            rows.extend(group.hosts.iter().map(|h| (rank, *h, group.output.clone())));
        }
        rows.sort_by_key(|(rank, host, _)| (*rank, *host));
        for (_, host, output) in rows {
            for line in output.lines() {
                print_line(&names[host], &line, style, to)?;
            }
        }
        Ok(())
    }

    /// Prints the first line of all hosts, then the second: equal lines once, with their folded hosts.
    pub fn print_by_line(&mut self, names: &[String], style: Style, to: &mut dyn Write) -> io::Result<()> {
        let groups: Vec<&Group> = self.ordered(names).into_iter().map(|(_, group)| group).collect();
        let mut readers: Vec<_> = groups.iter().map(|g| g.output.lines()).collect();
        loop {
            let mut same: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
            for (group, reader) in groups.iter().zip(&mut readers) {
                if let Some(line) = reader.next() {
                    same.entry(line).or_default().extend(&group.hosts);
                }
            }
            if same.is_empty() {
                return Ok(());
            }
            let mut rows: Vec<_> = same.into_iter().collect();
            rows.iter_mut().for_each(|(_, hosts)| hosts.sort_unstable());
            rows.sort_by_cached_key(|(_, hosts)| (std::cmp::Reverse(hosts.len()), names[hosts[0]].clone()));
            for (line, hosts) in rows {
                let set: NodeSet = pick(names, &hosts).into_iter().collect();
                print_line(&set.to_string(), &line, style, to)?;
            }
        }
    }

    /// Prints how each group differs from the largest group of the lowest status.
    pub fn print_diff(&mut self, names: &[String], to: &mut dyn Write) -> io::Result<()> {
        let groups: Vec<&Group> = self.ordered(names).into_iter().map(|(_, group)| group).collect();
        let Some((reference, others)) = groups.split_first() else { return Ok(()) };
        let title = |group: &Group| label(pick(names, &group.hosts));
        for other in others {
            if reference.output.len().max(other.output.len()) > MOST_DIFF {
                writeln!(to, "{} and {} differ; too large to compare line by line", title(reference), title(other))?;
                continue;
            }
            let (a, b) = (text(&reference.output)?, text(&other.output)?);
            let diff = similar::TextDiff::from_lines(a.as_str(), b.as_str());
            let (from, into) = (title(reference), title(other));
            write!(to, "{}", diff.unified_diff().missing_newline_hint(false).header(&from, &into))?;
        }
        Ok(())
    }
}

/// Returns an output with a line end at its end: like clush, as lines.
fn text(output: &Capture) -> io::Result<String> {
    let mut bytes = Vec::new();
    output.reader().read_to_end(&mut bytes)?;
    if bytes.last().is_some_and(|b| *b != b'\n') {
        bytes.push(b'\n');
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn pick(names: &[String], hosts: &[usize]) -> Vec<String> {
    hosts.iter().map(|h| names[*h].clone()).collect()
}

fn copy(output: &Capture, to: &mut dyn Write) -> io::Result<()> {
    let mut reader = output.reader();
    let mut last = b'\n';
    loop {
        let bytes = reader.fill_buf()?;
        let Some(end) = bytes.last() else { break };
        last = *end;
        to.write_all(bytes)?;
        let n = bytes.len();
        reader.consume(n);
    }
    if last == b'\n' { Ok(()) } else { to.write_all(b"\n") }
}

/// Prints `n1: line`.
pub fn print_line(label: &str, line: &[u8], style: Style, to: &mut dyn Write) -> io::Result<()> {
    if style.labels {
        let (on, off) = if style.color { ("\x1b[94m", "\x1b[0m") } else { ("", "") };
        write!(to, "{on}{label}: {off}")?;
    }
    to.write_all(line)?;
    to.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(outputs: &[(i32, &str)]) -> (Vec<String>, Gathered) {
        let mut all = Gathered::default();
        for (host, (status, text)) in outputs.iter().enumerate() {
            let mut capture = Capture::default();
            capture.push(text.as_bytes()).unwrap();
            all.add(host, &Outcome::Exited(*status), capture);
        }
        ((1..=outputs.len()).map(|n| format!("n{n}")).collect(), all)
    }

    const PLAIN: Style = Style { labels: true, color: false };

    #[test]
    fn larger_groups_come_first_and_statuses_apart() {
        let (names, mut all) = gathered(&[(0, "b\n"), (0, "a\n"), (0, "a"), (1, "a\n"), (0, "a\n"), (0, "")]);
        let mut out = Vec::new();
        all.print(&names, PLAIN, &mut out).unwrap();
        let rule = RULE;
        let expected = [
            format!("{rule}\nn[2,5] (2)\n{rule}\na\n"),
            format!("{rule}\nn1\n{rule}\nb\n"),
            format!("{rule}\nn3\n{rule}\na\n"),
            format!("{rule}\nn4\n{rule}\na\n"),
        ];
        assert_eq!(String::from_utf8(out).unwrap(), expected.concat());
    }

    #[test]
    fn lines_in_step_and_in_turn() {
        let (names, mut all) = gathered(&[(0, "a\nx\n"), (0, "a\ny\nz\n"), (0, "a\nx\n")]);
        let mut out = Vec::new();
        all.print_by_line(&names, PLAIN, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "n[1-3]: a\nn[1,3]: x\nn2: y\nn2: z\n");
        let mut out = Vec::new();
        all.print_sorted(&names, PLAIN, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "n1: a\nn1: x\nn2: a\nn2: y\nn2: z\nn3: a\nn3: x\n");
    }

    #[test]
    fn a_diff_names_hosts_on_both_sides() {
        let (names, mut all) = gathered(&[(0, "a\nb\n"), (0, "a\nc\n"), (0, "a\nb\n")]);
        let mut out = Vec::new();
        all.print_diff(&names, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "--- n[1,3] (2)\n+++ n2\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    }
}
