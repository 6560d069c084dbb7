//! Groups equal outputs under one header, as `clush -b` prints them, and shows differences.

use crate::CommandOutcome;
use crate::capture::{Capture, OutputKey};
use homing_model::NodeSet;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;

/// Largest output, bytes, that is compared line by line.
const MOST_DIFF: u64 = 32 << 20;
const RULE: &str = "---------------";

/// Outputs of finished hosts.
#[derive(Default)]
pub struct OutputGroups {
    /// By rank (the exit status; other outcomes come last), then by output.
    groups: BTreeMap<(i64, OutputKey), OutputGroup>,
}

struct OutputGroup {
    hosts: Vec<usize>,
    output: Rc<Capture>,
}

/// Which labels precede outputs.
#[derive(Clone, Copy)]
pub struct Style {
    /// Whether headers and prefixes are printed.
    pub labels: bool,
    /// The colour of headers and prefixes.
    pub color: Option<LabelColor>,
}

/// A colour of labels. The colours are clush's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelColor {
    /// Standard output.
    Blue,
    /// Standard error.
    Red,
}

impl Style {
    /// Returns the sequences before and after a label.
    fn ink(self) -> (&'static str, &'static str) {
        match self.color {
            None => ("", ""),
            Some(LabelColor::Blue) => (BLUE, OFF),
            Some(LabelColor::Red) => (RED, OFF),
        }
    }
}

const BLUE: &str = "\x1b[94m";
const RED: &str = "\x1b[91m";
const GREEN: &str = "\x1b[92m";
const CYAN: &str = "\x1b[96m";
const BOLD: &str = "\x1b[1m";
const OFF: &str = "\x1b[0m";

/// How gathered outputs are labelled.
#[derive(Clone, Copy)]
pub struct Layout<'a> {
    /// The names of the hosts, by index.
    pub names: &'a [String],
    /// The labels before outputs.
    pub style: Style,
    /// Whether the number of hosts is behind a set of several: `n[1-3] (3)`.
    pub counts: bool,
    /// Returns a set as groups where they fit, if groups are wanted.
    pub groups: Option<&'a dyn Fn(&NodeSet) -> String>,
}

impl Layout<'_> {
    fn set(&self, hosts: &[usize]) -> NodeSet {
        hosts.iter().map(|host| self.names[*host].clone()).collect()
    }

    fn name(&self, set: &NodeSet) -> String {
        self.groups.map_or_else(|| set.to_string(), |groups| groups(set))
    }

    /// Returns the title of a group of hosts.
    fn title(&self, hosts: &[usize]) -> String {
        let set = self.set(hosts);
        let count = if self.counts && set.len() > 1 { format!(" ({})", set.len()) } else { String::new() };
        self.name(&set) + &count
    }
}

impl OutputGroups {
    /// Adds the output of a host that has finished.
    pub fn add(&mut self, host: usize, outcome: &CommandOutcome, output: Capture) {
        let rank = match outcome {
            CommandOutcome::Exited(status) => i64::from(*status),
            _ => i64::MAX,
        };
        let key = (rank, output.key());
        let group =
            self.groups.entry(key).or_insert_with(|| OutputGroup { hosts: Vec::new(), output: Rc::new(output) });
        group.hosts.push(host);
    }

    /// Returns the groups in clush's order: by status, those without output last, then by size, large ones first, then
    /// by the first host's name.
    fn ordered(&mut self, names: &[String]) -> Vec<(i64, &OutputGroup)> {
        self.groups.values_mut().for_each(|g| g.hosts.sort_unstable());
        let mut all: Vec<_> = self.groups.iter().map(|((rank, _), group)| (*rank, group)).collect();
        all.sort_by_cached_key(|(rank, group)| {
            let silent = group.output.len() == 0;
            (*rank, silent, std::cmp::Reverse(group.hosts.len()), names[group.hosts[0]].clone())
        });
        all
    }

    /// Prints headers and outputs; hosts without output are not named.
    pub fn print(&mut self, layout: Layout, to: &mut dyn Write) -> io::Result<()> {
        for (_, group) in self.ordered(layout.names) {
            if group.output.len() == 0 {
                continue;
            }
            if layout.style.labels {
                let (on, off) = layout.style.ink();
                writeln!(to, "{on}{RULE}\n{}\n{RULE}{off}", layout.title(&group.hosts))?;
            }
            copy(&group.output, to)?;
        }
        Ok(())
    }

    /// Prints each line with its host in front, host after host.
    pub fn print_sorted(&mut self, layout: Layout, to: &mut dyn Write) -> io::Result<()> {
        let mut rows: Vec<(i64, usize, Rc<Capture>)> = Vec::new();
        for (rank, group) in self.ordered(layout.names) {
            rows.extend(group.hosts.iter().map(|h| (rank, *h, group.output.clone())));
        }
        rows.sort_by_key(|(rank, host, _)| (*rank, *host));
        for (_, host, output) in rows {
            let name = layout.name(&layout.set(&[host]));
            for line in output.lines() {
                print_line(&name, &line, layout.style, to)?;
            }
        }
        Ok(())
    }

    /// Prints the first line of all hosts, then the second: equal lines once, with their folded hosts.
    pub fn print_by_line(&mut self, layout: Layout, to: &mut dyn Write) -> io::Result<()> {
        let names = layout.names;
        let groups: Vec<&OutputGroup> = self.ordered(names).into_iter().map(|(_, group)| group).collect();
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
                print_line(&layout.name(&layout.set(&hosts)), &line, layout.style, to)?;
            }
        }
    }

    /// Prints how each group differs from the largest group of the lowest status.
    pub fn print_diff(&mut self, layout: Layout, to: &mut dyn Write) -> io::Result<()> {
        let groups: Vec<&OutputGroup> = self.ordered(layout.names).into_iter().map(|(_, group)| group).collect();
        let Some((reference, others)) = groups.split_first() else { return Ok(()) };
        let title = |group: &OutputGroup| layout.title(&group.hosts);
        for other in others {
            if reference.output.len().max(other.output.len()) > MOST_DIFF {
                writeln!(to, "{} and {} differ; too large to compare line by line", title(reference), title(other))?;
                continue;
            }
            let (a, b) = (text(&reference.output)?, text(&other.output)?);
            let diff = similar::TextDiff::from_lines(a.as_str(), b.as_str());
            let (from, into) = (title(reference), title(other));
            let shown = diff.unified_diff().missing_newline_hint(false).header(&from, &into).to_string();
            match layout.style.color {
                None => to.write_all(shown.as_bytes())?,
                Some(_) => shown.lines().try_for_each(|line| writeln!(to, "{}", inked(line)))?,
            }
        }
        Ok(())
    }
}

/// Returns a line of a difference in its colour.
fn inked(line: &str) -> String {
    let on = match line.as_bytes() {
        [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => BOLD,
        [b'@', b'@', ..] => CYAN,
        [b'+', ..] => GREEN,
        [b'-', ..] => RED,
        _ => return line.into(),
    };
    format!("{on}{line}{OFF}")
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
        let (on, off) = style.ink();
        write!(to, "{on}{label}: {off}")?;
    }
    to.write_all(line)?;
    to.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(outputs: &[(i32, &str)]) -> (Vec<String>, OutputGroups) {
        let mut all = OutputGroups::default();
        for (host, (status, text)) in outputs.iter().enumerate() {
            let mut capture = Capture::default();
            capture.push(text.as_bytes()).unwrap();
            all.add(host, &CommandOutcome::Exited(*status), capture);
        }
        ((1..=outputs.len()).map(|n| format!("n{n}")).collect(), all)
    }

    fn plain(names: &[String]) -> Layout<'_> {
        Layout { names, style: Style { labels: true, color: None }, counts: true, groups: None }
    }

    #[test]
    fn larger_groups_come_first_and_statuses_apart() {
        let (names, mut all) = gathered(&[(0, "b\n"), (0, "a\n"), (0, "a"), (1, "a\n"), (0, "a\n"), (0, "")]);
        let mut out = Vec::new();
        all.print(plain(&names), &mut out).unwrap();
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
        all.print_by_line(plain(&names), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "n[1-3]: a\nn[1,3]: x\nn2: y\nn2: z\n");
        let mut out = Vec::new();
        all.print_sorted(plain(&names), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "n1: a\nn1: x\nn2: a\nn2: y\nn2: z\nn3: a\nn3: x\n");
    }

    #[test]
    fn a_diff_names_hosts_on_both_sides() {
        let (names, mut all) = gathered(&[(0, "a\nb\n"), (0, "a\nc\n"), (0, "a\nb\n")]);
        let mut out = Vec::new();
        all.print_diff(plain(&names), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "--- n[1,3] (2)\n+++ n2\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
        // An output is compared with none, and never the other way round.
        let (names, mut all) = gathered(&[(0, ""), (0, ""), (0, "a\n")]);
        let mut out = Vec::new();
        all.print_diff(plain(&names), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "--- n3\n+++ n[1-2] (2)\n@@ -1 +0,0 @@\n-a\n");
    }

    #[test]
    fn groups_counts_and_colours_of_titles() {
        let (names, mut all) = gathered(&[(0, "a\n"), (0, "b\n"), (0, "a\n")]);
        let groups = |set: &NodeSet| if set.len() == 2 { "@odd".to_string() } else { set.to_string() };
        let style = Style { labels: true, color: Some(LabelColor::Blue) };
        let layout = Layout { names: &names, style, counts: false, groups: Some(&groups) };
        let mut out = Vec::new();
        all.print(layout, &mut out).unwrap();
        let shown = String::from_utf8(out).unwrap();
        assert!(shown.starts_with(&format!("\x1b[94m{RULE}\n@odd\n{RULE}\x1b[0m\na\n")), "{shown:?}");
        let mut out = Vec::new();
        all.print_diff(layout, &mut out).unwrap();
        let shown = String::from_utf8(out).unwrap();
        assert!(shown.starts_with("\x1b[1m--- @odd\x1b[0m\n\x1b[1m+++ n2\x1b[0m\n"), "{shown:?}");
        assert!(shown.ends_with("\x1b[91m-a\x1b[0m\n\x1b[92m+b\x1b[0m\n"), "{shown:?}");
    }
}
