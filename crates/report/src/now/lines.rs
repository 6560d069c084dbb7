//! The state of a run as the lines of a screen.

use super::{Now, OnHost, Underway};
use crate::text::how;
use crate::words::command_line;
use homing_model::TaskId;
use homing_model::text::shown;
use homing_model::units::{count, short_span, span};
use std::time::Duration;

/// Hosts get one part in so many of the lines, servers and failures one each in
/// so many; what is left is for tasks.
const HOSTS_SHARE: usize = 3;
const OTHERS_SHARE: usize = 4;

impl Now {
    /// At most so many lines, none longer than `columns`: the command, `line`
    /// (that of the progress), hosts, storage servers, the last failures, and
    /// tasks, those that run longest first. What does not fit is counted.
    pub fn lines(&self, line: &str, rows: usize, columns: usize, now_ns: i64) -> Vec<String> {
        let name = self.tally.run.clone().unwrap_or_default();
        let state = self.tally.exit().map_or("running".into(), |exit| format!("ended, exit {exit}"));
        let mut lines = vec![format!("{name}  {state}  {}", command_line(&self.argv)), line.to_string()];
        section(&mut lines, self.host_rows(), rows / HOSTS_SHARE, "host");
        section(&mut lines, self.server_rows(), rows / OTHERS_SHARE, "server");
        section(&mut lines, self.failure_rows(), rows / OTHERS_SHARE, "failure");
        let room = rows.saturating_sub(lines.len() + 1);
        section(&mut lines, self.task_rows(now_ns), room, "task");
        // What a journal says anybody may have written.
        let fitted = lines.iter().map(|line| shown(line).chars().take(columns).collect::<String>());
        fitted.map(|line| line.trim_end().to_string()).take(rows).collect()
    }

    fn host_rows(&self) -> Vec<Vec<String>> {
        let head = ["HOST", "SLOTS", "DONE", "FAILED", "CPU", "DISK", "NET", ""].map(String::from).to_vec();
        let running = self.running();
        let running = |name: &String| running.get(name.as_str()).copied().unwrap_or(0);
        let mut hosts: Vec<(&String, &OnHost)> = self.hosts.iter().collect();
        // What is lost first, then the busiest.
        hosts.sort_by_key(|(name, host)| (host.lost.is_none(), std::cmp::Reverse(running(name))));
        let rate = |value: Option<f64>, unit: &str| value.map_or("-".into(), |n| format!("{n:.0} {unit}"));
        let row = |(name, host): (&String, &OnHost)| {
            let slots = format!("{}/{}", running(name), host.slots);
            let rates = &host.rates;
            let disk = rates.io.map(|kb| kb / 1000.0);
            let lost = host.lost.as_ref().map_or(String::new(), |why| format!("lost: {why}"));
            let rates = [rate(rates.ut, "%"), rate(disk, "MB/s"), rate(rates.net, "MB/s")];
            let counts = [name.clone(), slots, host.done.to_string(), host.failed.to_string()];
            counts.into_iter().chain(rates).chain([lost]).collect()
        };
        std::iter::once(head).chain(hosts.into_iter().map(row)).collect()
    }

    fn server_rows(&self) -> Vec<Vec<String>> {
        let head = ["SERVER", "LIMIT", "HELD BY", "WHY"].map(String::from).to_vec();
        let rows = self.servers.iter().map(|(name, server)| {
            let held: Vec<String> = server.users.iter().map(|(user, n)| format!("{user} {n}")).collect();
            let held = if held.is_empty() { "-".into() } else { held.join(", ") };
            vec![name.clone(), server.limit.map_or("none".into(), |n| n.to_string()), held, server.why.clone()]
        });
        std::iter::once(head).chain(rows).collect()
    }

    fn failure_rows(&self) -> Vec<Vec<String>> {
        let head = ["FAILED", "HOST", "HOW", "AFTER", "COMMAND, AND ITS LAST WORDS"].map(String::from).to_vec();
        let rows = self.failures.iter().map(|failed| {
            let said = failed.said.as_ref().map_or(String::new(), |said| format!("  {said}"));
            let (task, took) = (failed.task.to_string(), span(failed.wall_us));
            vec![task, failed.host.clone(), how(&failed.outcome), took, format!("{}{said}", failed.command)]
        });
        std::iter::once(head).chain(rows).collect()
    }

    fn task_rows(&self, now_ns: i64) -> Vec<Vec<String>> {
        let head = ["TASK", "HOST", "SLOT", "FOR", "COMMAND"].map(String::from).to_vec();
        let mut tasks: Vec<(&TaskId, &Underway)> = self.tasks.iter().collect();
        tasks.sort_by_key(|(_, task)| task.began_ns);
        let rows = tasks.into_iter().map(|(id, task)| {
            let age = Duration::from_nanos((now_ns - task.began_ns).max(0) as u64);
            let again = if task.attempt > 1 { format!(" (try {})", task.attempt) } else { String::new() };
            let id = format!("{id}{again}");
            vec![id, task.host.clone(), task.slot.to_string(), short_span(age), task.command.clone()]
        });
        std::iter::once(head).chain(rows).collect()
    }
}

/// A blank line, a head and aligned rows, as many as fit in `room`; nothing where there are no rows.
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
