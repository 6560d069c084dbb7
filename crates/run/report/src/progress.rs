//! The line of progress of a run, or of a request to many hosts, cut to the terminal.

use homing_model::live::RunProgress;
use homing_model::units::{bytes, count, short_span};
use std::time::Duration;

/// The shortest useful bar and the longest, in columns.
const BAR: std::ops::RangeInclusive<usize> = 5..=24;
/// The rank below which parts give way to the shortest bar.
const MORE_THAN_A_BAR: u8 = 5;

/// A terminal on which a line can be drawn again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressTerminal {
    /// The characters that fit. The last column stays free, because many terminals begin a new line after it.
    pub columns: usize,
    /// Whether it can show more than ASCII.
    pub utf8: bool,
}

/// A part of the line. If the parts do not fit, the one with the lowest rank is left out first.
struct ProgressPart {
    rank: u8,
    text: String,
}

/// Returns the line, cut to the terminal. `read_per_s` is the rate of bytes that tasks read, where it is known.
pub fn line(p: &RunProgress, read_per_s: Option<u64>, place: ProgressTerminal) -> String {
    let text = fitted(parts(p, read_per_s), place);
    let Some(share) = share(p) else { return text };
    let room = place.columns.saturating_sub(text.len() + 1).min(*BAR.end());
    if BAR.contains(&room) { format!("{} {text}", bar(share, room, place.utf8)) } else { text }
}

/// The state of a request to hosts.
pub struct RequestProgress<'a> {
    /// The number of hosts that have answered.
    pub answered: usize,
    /// The number of all hosts.
    pub hosts: usize,
    /// The questions that some host has not answered yet.
    pub open: &'a [&'a str],
    /// The longest time that it can still take, if that is long.
    pub left: Option<Duration>,
}

/// Returns the line of a request, cut to the terminal.
pub fn request_line(request: &RequestProgress, place: ProgressTerminal) -> String {
    let part = |rank, text| ProgressPart { rank, text };
    let mut parts =
        vec![part(9, format!("{} of {} have answered", request.answered, count(request.hosts as u64, "host")))];
    parts.extend(request.left.map(|left| part(8, format!("{} left at most", short_span(left)))));
    parts.extend((!request.open.is_empty()).then(|| part(6, format!("open: {}", request.open.join(" ")))));
    fitted(parts, place)
}

/// Returns as many parts as fit. If it leaves out a part of low rank, it keeps space for the shortest bar.
fn fitted(mut parts: Vec<ProgressPart>, place: ProgressTerminal) -> String {
    while let Some(least) = (1..parts.len()).min_by_key(|at| parts[*at].rank) {
        let bar = if parts[least].rank < MORE_THAN_A_BAR { BAR.start() + 1 } else { 0 };
        if joined(&parts).len() + bar <= place.columns {
            break;
        }
        parts.remove(least);
    }
    joined(&parts).chars().take(place.columns).collect()
}

/// Returns all parts as words, for a log.
pub(crate) fn words(p: &RunProgress, read_per_s: Option<u64>) -> String {
    joined(&parts(p, read_per_s)).trim_start().into()
}

fn joined(parts: &[ProgressPart]) -> String {
    parts.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(", ")
}

fn share(p: &RunProgress) -> Option<f64> {
    p.total.filter(|total| *total > 0).map(|total| (p.over as f64 / total as f64).min(1.0))
}

fn bar(share: f64, columns: usize, utf8: bool) -> String {
    let (full, empty) = if utf8 { ("━", "─") } else { ("#", "-") };
    let filled = (share * columns as f64) as usize;
    format!("{}{}", full.repeat(filled), empty.repeat(columns - filled))
}

fn parts(p: &RunProgress, read_per_s: Option<u64>) -> Vec<ProgressPart> {
    let part = |rank, text| ProgressPart { rank, text };
    let done = match share(p) {
        Some(share) => format!("{:3.0} % {}/{}", share * 100.0, p.over, p.total.unwrap_or(0)),
        None => format!("{} done", p.over),
    };
    let mut parts = vec![part(9, done)];
    if p.failed > 0 {
        parts.push(part(8, format!("{} failed", p.failed)));
    }
    let (slots, hosts) = (count(u64::from(p.slots), "slot"), count(p.hosts as u64, "host"));
    parts.push(part(3, format!("{} of {slots}, {hosts}", p.running)));
    parts.extend(read_per_s.filter(|n| *n > 0).map(|n| part(4, format!("{}/s", bytes(n)))));
    parts.push(part(1, short_span(p.elapsed)));
    parts.extend(left(p).map(|left| part(6, format!("{} left", short_span(left)))));
    parts
}

/// Returns the time of the remaining tasks at the rate so far. It is unknown before each slot has ended a task, and
/// without a slot.
fn left(p: &RunProgress) -> Option<Duration> {
    let share = share(p).filter(|share| p.slots > 0 && p.over >= u64::from(p.slots) && *share > 0.0 && *share < 1.0)?;
    Duration::try_from_secs_f64(p.elapsed.as_secs_f64() * (1.0 - share) / share).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> RunProgress {
        let elapsed = Duration::from_secs(12);
        RunProgress { over: 40, failed: 1, running: 8, total: Some(100), slots: 8, hosts: 4, elapsed }
    }

    fn at(columns: usize) -> ProgressTerminal {
        ProgressTerminal { columns, utf8: true }
    }

    #[test]
    fn a_wide_terminal_gets_all_of_it() {
        let wide = line(&facts(), Some(120_000_000), at(199));
        let bar = "━━━━━━━━━───────────────";
        let words = " 40 % 40/100, 1 failed, 8 of 8 slots, 4 hosts, 120 MB/s, 12 s, 18 s left";
        assert_eq!(wide, format!("{bar} {words}"));
        let unknown = RunProgress { total: None, failed: 0, ..facts() };
        assert_eq!(line(&unknown, None, at(199)), "40 done, 8 of 8 slots, 4 hosts, 12 s");
    }

    #[test]
    fn a_narrow_one_gets_what_matters_most_and_never_more_than_fits() {
        assert_eq!(line(&facts(), Some(120_000_000), at(38)), " 40 % 40/100, 1 failed, 18 s left");
        assert_eq!(line(&facts(), None, at(43)), "━━━────── ".to_string() + " 40 % 40/100, 1 failed, 18 s left");
        for columns in 0..200 {
            assert!(line(&facts(), Some(1), at(columns)).chars().count() <= columns, "{columns}");
        }
    }

    #[test]
    fn a_question_to_many_tells_what_is_open_as_far_as_there_is_room() {
        let open = ["names", "mounts"];
        let left = Some(Duration::from_secs(4));
        let told = |columns| request_line(&RequestProgress { answered: 3, hosts: 16, open: &open, left }, at(columns));
        assert_eq!(told(99), "3 of 16 hosts have answered, 4 s left at most, open: names mounts");
        assert_eq!(told(50), "3 of 16 hosts have answered, 4 s left at most");
        assert_eq!(told(30), "3 of 16 hosts have answered");
    }

    #[test]
    fn ascii_is_ascii() {
        let plain = ProgressTerminal { columns: 199, utf8: false };
        assert!(line(&facts(), None, plain).starts_with("#########---------------  40 %"));
    }

    #[test]
    fn no_time_is_told_before_each_slot_has_ended_a_task() {
        let early = RunProgress { over: 7, ..facts() };
        assert!(!line(&early, None, at(199)).contains("left"));
        let ended = RunProgress { running: 0, slots: 0, hosts: 0, ..facts() };
        assert!(!line(&ended, None, at(199)).contains("left"));
        let long = RunProgress { over: 10, elapsed: Duration::from_secs(870), ..facts() };
        assert!(line(&long, None, at(199)).ends_with("14:30 min, 2:10 h left"), "{}", line(&long, None, at(199)));
    }
}
