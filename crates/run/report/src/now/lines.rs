//! Formats the state of a run as the lines of a screen.

use super::{HostState, Now};
use homing_model::fit::clipped;
use homing_model::text::shown;
use homing_model::units::{count, short_span};

/// Hosts get at most this fraction of the lines. Servers and failures each get at most the fraction below it. Tasks
/// get the remaining lines.
const HOSTS_SHARE: usize = 3;
const OTHERS_SHARE: usize = 4;
/// The most columns of the first line. The command of a run may name thousands of files.
const TITLE: usize = 120;

impl Now {
    /// Returns at most `rows` lines, each of at most `columns` characters. They show the command, the progress
    /// `line`, hosts, storage servers, the last failures and tasks. A run that is over has its sums in place of the
    /// progress. Tasks that run longest come first. Rows that do not fit are counted.
    pub fn lines(&self, line: &str, rows: usize, columns: usize, now_ns: i64) -> Vec<String> {
        let line = if self.is_over() { self.sums(now_ns) } else { line.to_string() };
        let mut lines = vec![clipped(&shown(&self.title()), columns.min(TITLE)), line];
        section(&mut lines, self.host_rows(now_ns), rows / HOSTS_SHARE, "host");
        section(&mut lines, self.server_rows(), rows / OTHERS_SHARE, "server");
        section(&mut lines, self.failure_rows(), rows / OTHERS_SHARE, "failure");
        let room = rows.saturating_sub(lines.len() + 1);
        section(&mut lines, self.task_rows(now_ns), room, "task");
        // Any user may have written the journal, so its text is made safe.
        let fitted = lines.iter().map(|line| clipped(&shown(line), columns));
        fitted.map(|line| line.trim_end().to_string()).take(rows).collect()
    }

    fn host_rows(&self, now_ns: i64) -> Vec<Vec<String>> {
        let head = ["HOST", "SLOTS", "DONE", "FAILED", "CPU", "DISK", "NET", ""].map(String::from).to_vec();
        let mut hosts = self.host_states(now_ns);
        // Hosts in trouble first, then the busiest.
        hosts.sort_by_key(HostState::rank);
        let rate = |value: Option<f64>, unit: &str| value.map_or("-".into(), |n| format!("{n:.0} {unit}"));
        let row = |host: HostState| {
            let slots = format!("{}/{}", host.running, host.slots);
            let rates = [rate(host.cpu, "%"), rate(host.disk, "MB/s"), rate(host.net, "MB/s")];
            let counts = [host.name, slots, host.done.to_string(), host.failed.to_string()];
            counts.into_iter().chain(rates).chain([host.trouble.unwrap_or_default()]).collect()
        };
        std::iter::once(head).chain(hosts.into_iter().map(row)).collect()
    }

    fn server_rows(&self) -> Vec<Vec<String>> {
        let head = ["SERVER", "LIMIT", "HELD BY", "WHY"].map(String::from).to_vec();
        let rows = self.server_states().into_iter().map(|server| {
            let limit = server.limit.map_or("none".into(), |n| n.to_string());
            vec![server.name.clone(), limit, server.held_by(), server.why]
        });
        std::iter::once(head).chain(rows).collect()
    }

    fn failure_rows(&self) -> Vec<Vec<String>> {
        let head = ["FAILED", "HOST", "HOW", "AFTER", "COMMAND, AND ITS LAST WORDS"].map(String::from).to_vec();
        let rows = self.failure_states().into_iter();
        let rows =
            rows.map(|failed| vec![failed.task.to_string(), failed.host, failed.how, failed.took, failed.command]);
        std::iter::once(head).chain(rows).collect()
    }

    fn task_rows(&self, now_ns: i64) -> Vec<Vec<String>> {
        let head = ["TASK", "HOST", "SLOT", "FOR", "COMMAND"].map(String::from).to_vec();
        let rows = self.task_states(now_ns).into_iter();
        let rows =
            rows.map(|task| vec![task.name, task.host, task.slot.to_string(), short_span(task.age), task.command]);
        std::iter::once(head).chain(rows).collect()
    }
}

/// Adds a blank line, a head and as many aligned rows as fit in `room`. Adds nothing without rows.
fn section(lines: &mut Vec<String>, rows: Vec<Vec<String>>, room: usize, noun: &str) {
    let all = rows.len() - 1;
    if all == 0 || room < 3 {
        return;
    }
    let fits = if all > room - 2 { room - 3 } else { all };
    let shown = &rows[..=fits];
    let columns = rows[0].len();
    let width = |c: usize| shown.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns - 1).map(width).collect();
    lines.push(String::new());
    for row in shown {
        let padded = row.iter().zip(widths.iter().chain([&0])).map(|(cell, width)| format!("{cell:width$}"));
        lines.push(padded.collect::<Vec<_>>().join("  "));
    }
    if fits < all {
        lines.push(format!("and {} more", count((all - fits) as u64, noun)));
    }
}
