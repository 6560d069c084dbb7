//! The tables below the drawings: hosts, failed tasks, slow tasks, notes.

use super::story::{Attempt, Story};
use super::svg::{clip, escape};
use crate::Tally;
use crate::text::how;
use homing_model::units::{bytes, span};

/// The most rows of a table of tasks.
const ROWS: usize = 200;
/// The bytes from which a text wraps. On a single line it would leave no space for the columns beside it.
const LONG: usize = 48;

pub(crate) fn open(page: &mut String, title: &str, about: &str, columns: &[&str]) {
    open_class(page, "prose", title, about, columns);
}

/// Opens a table of a style class. In a `prose` table the last column wraps and takes the rest of the width.
fn open_class(page: &mut String, class: &str, title: &str, about: &str, columns: &[&str]) {
    page.push_str(&format!("<section><h2>{title}</h2><p class=\"quiet\">{about}</p>\n"));
    page.push_str(&format!("<div class=\"wide\"><table class=\"{class}\"><tr>"));
    columns.iter().for_each(|c| page.push_str(&format!("<th>{c}</th>")));
    page.push_str("</tr>\n");
}

pub(crate) fn row(page: &mut String, cells: &[String]) {
    sorted_row(page, cells.iter().map(|text| (text.as_str(), None)));
}

/// Adds a row. A cell has the number that it is sorted by, if its text does not begin with it.
fn sorted_row<'a>(page: &mut String, cells: impl Iterator<Item = (&'a str, Option<u64>)>) {
    page.push_str("<tr>");
    for (text, by) in cells {
        let by = by.map_or(String::new(), |n| format!(" data-by=\"{n}\""));
        let long = if text.len() > LONG { " class=\"long\"" } else { "" };
        page.push_str(&format!("<td{by}{long}>{}</td>", escape(text)));
    }
    page.push_str("</tr>\n");
}

pub(crate) fn close(page: &mut String) {
    page.push_str("</table></div></section>\n");
}

fn known(n: Option<u64>, print: fn(u64) -> String) -> String {
    n.map_or("unknown".into(), print)
}

/// Draws the table of hosts. Bytes that are mostly those of other programs are left out.
pub(crate) fn hosts(page: &mut String, story: &Story, tally: &Tally) {
    if story.hosts.len() < 2 {
        return;
    }
    let columns = ["Host", "Slots", "Tasks", "Slot time used", "Received", "Sent", "Disk", "Waited for I/O"];
    let (network, disks) = (tally.explains_network(), tally.explains_disks());
    let is_shown = [true, true, true, true, network, network, disks, true];
    let columns: Vec<&str> =
        columns.into_iter().zip(is_shown).filter_map(|(name, shown)| shown.then_some(name)).collect();
    open(page, "Hosts", "Network, disk and pressure by the hosts' own counters", &columns);
    let end_ns = story.start_ns + story.length as i64 * 1000;
    for name in story.hosts.iter().take(500) {
        let Some(h) = tally.hosts.get(*name) else { continue };
        let load = &h.load.total;
        let used = h.used(end_ns).map_or("unknown".into(), |u| format!("{:.0} %", u * 100.0));
        let name = if h.lost { format!("{name} (lost)") } else { name.to_string() };
        let (slots, tasks) = (h.slots.to_string(), h.attempts.to_string());
        let (rx, tx, disk) = (known(load.received, bytes), known(load.sent, bytes), known(load.disk, bytes));
        let cells = [name, slots, tasks, used, rx, tx, disk, known(load.stalled_us, span)];
        let cells = cells.into_iter().zip(is_shown).filter_map(|(cell, shown)| shown.then_some(cell));
        row(page, &cells.collect::<Vec<_>>());
    }
    close(page);
}

/// A column of numbers of attempts: its heading, the number and the function that prints it.
type AttemptColumn = (&'static str, fn(&Attempt) -> Option<u64>, fn(u64) -> String);

const NUMBERS: [AttemptColumn; 7] = [
    ("Wall", |a| Some(a.to - a.from), span),
    ("CPU", |a| a.cpu_us, span),
    ("Peak memory", |a| a.max_rss, bytes),
    ("I/O wait", |a| a.wait_us, span),
    ("Read", |a| a.rchar, bytes),
    ("Local", |a| a.planned.map(|p| p.local), bytes),
    ("Remote", |a| a.planned.map(|p| p.remote), bytes),
];

/// Draws a table of tasks. A number that no task of it has is no column.
fn tasks(page: &mut String, story: &Story, title: &str, about: &str, rows: &[&Attempt]) {
    let numbers: Vec<_> = NUMBERS.iter().filter(|(_, get, _)| rows.iter().any(|a| get(a).is_some())).collect();
    let mut columns = vec!["Task", "Host", "Outcome", "Command"];
    columns.extend(numbers.iter().map(|(name, ..)| *name));
    open_class(page, "tasks", title, about, &columns);
    for a in rows {
        let outcome = a.outcome.map_or("no end recorded".into(), how);
        let outcome = a.error_line.map_or(outcome.clone(), |said| format!("{outcome}: {said}"));
        let mut cells = vec![(a.task.to_string(), None), (story.hosts[a.host].to_string(), None)];
        cells.extend([(clip(&outcome, 240), None), (clip(&a.command, 160), None)]);
        cells.extend(numbers.iter().map(|(_, get, print)| (known(get(a), *print), get(a))));
        sorted_row(page, cells.iter().map(|(text, by)| (text.as_str(), *by)));
    }
    close(page);
}

/// Draws the tasks that failed for good.
pub(crate) fn failed(page: &mut String, story: &Story) {
    let failed: Vec<&Attempt> = story.attempts.iter().filter(|a| a.class() == "bad").collect();
    if failed.is_empty() {
        return;
    }
    let about = match failed.len() {
        n if n > ROWS => format!("The first {ROWS} of {n}"),
        _ => String::new(),
    };
    tasks(page, story, "Failed tasks", &about, &failed[..failed.len().min(ROWS)]);
}

/// Draws the tasks that took longest.
pub(crate) fn slowest(page: &mut String, story: &Story) {
    let mut slow: Vec<&Attempt> = story.attempts.iter().collect();
    slow.sort_by_key(|a| std::cmp::Reverse(a.to - a.from));
    slow.truncate(ROWS);
    if !slow.is_empty() {
        tasks(page, story, "Slowest tasks", "", &slow);
    }
}

/// Draws the notes: lost hosts and other events that a user should know.
pub(crate) fn notes(page: &mut String, story: &Story) {
    if story.notes.is_empty() {
        return;
    }
    open(page, "Notes", "", &["At", "What"]);
    story.notes.iter().take(100).for_each(|(at, text)| row(page, &[span(*at), clip(text, 300)]));
    if story.notes.len() > 100 {
        row(page, &[String::new(), format!("and {} more in the journal", story.notes.len() - 100)]);
    }
    close(page);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_leave_room_for_what_stands_beside_them() {
        let mut page = String::new();
        row(&mut page, &["exit 3".into(), "x".repeat(LONG + 1), "bwa mem s7.fq".into()]);
        assert_eq!(page.matches("<td class=\"long\">x").count(), 1, "{page}");
        assert_eq!(page.matches("<td>").count(), 2, "{page}");
    }
}
