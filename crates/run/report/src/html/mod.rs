//! The page of a run: one self-contained file without outside resources. It is readable in light and dark, and
//! without its few lines of script. All text from outside (commands, names, reasons) passes `svg::escape`.

mod curves;
mod idle;
mod story;
mod svg;
mod tables;
mod timeline;

use crate::Tally;
use crate::path::Path;
use homing_model::Event;
use homing_model::units::{bytes, count, percent, span};
use story::Story;
pub use svg::escape;
pub(crate) use svg::{clip, nice_step};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Returns the page of a run, drawn from its events and their sums.
pub fn html(events: &[Event], tally: &Tally) -> String {
    let story = Story::of(events);
    let mut page = String::with_capacity(256 << 10);
    let title = title(&story);
    page.push_str(&format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>homing {}</title>\n<style>\n{STYLE}</style>\n<main>\n",
        escape(&title)
    ));
    head(&mut page, &story, tally);
    cards(&mut page, tally);
    tables::failed(&mut page, &story);
    for full in tally.full() {
        page.push_str(&format!("<p>Full: {}.</p>\n", escape(&full.to_string())));
    }
    let path = tally.path.iter().flat_map(Path::lines).collect::<Vec<_>>().join(". ");
    if !path.is_empty() {
        page.push_str(&format!("<p>Path: {}.</p>\n", escape(&path)));
    }
    timeline::draw(&mut page, &story);
    idle::draw(&mut page, &story);
    curves::throughput(&mut page, &story, tally);
    curves::moved(&mut page, tally);
    curves::limits(&mut page, &story);
    curves::pressure(&mut page, &story);
    tables::slowest(&mut page, &story);
    tables::hosts(&mut page, &story, tally);
    tables::notes(&mut page, &story);
    page.push_str(&format!("</main>\n<script>\n{SCRIPT}</script>\n</html>\n"));
    page
}

/// Returns the title of a run: the name that its user gave it, else its command, without the program.
fn title(story: &Story) -> String {
    let command = story.argv.strip_prefix("homing ").unwrap_or(&story.argv);
    match (story.label, command) {
        (Some(label), _) => label.into(),
        (None, "") if story.run.is_empty() => "run".into(),
        (None, "") => story.run.into(),
        (None, command) => svg::clip(command, 60),
    }
}

fn head(page: &mut String, story: &Story, tally: &Tally) {
    let began = jiff::Timestamp::from_nanosecond(i128::from(story.start_ns)).unwrap_or_default();
    let ended = match tally.exit {
        Some(0) => "<span class=\"tag good\">finished</span>".to_string(),
        Some(exit) => format!("<span class=\"tag warn\">exit {exit}</span>"),
        None if tally.is_interrupted() => "<span class=\"tag warn\">interrupted</span>".to_string(),
        None => "<span class=\"tag\">running</span>".to_string(),
    };
    page.push_str(&format!(
        "<header><h1>{} {ended}</h1>\n<p class=\"command\"><code>{}</code></p>\n<p class=\"quiet\">{}, {} UTC, from {}</p></header>\n",
        escape(&title(story)),
        escape(&svg::clip(&story.argv, 400)),
        escape(story.run),
        began.strftime("%Y-%m-%d %H:%M:%S"),
        escape(&story.from),
    ));
}

fn card(page: &mut String, class: &str, label: &str, value: &str, below: &str) {
    page.push_str(&format!(
        "<div class=\"card {class}\"><span>{label}</span><b>{}</b><small>{}</small></div>\n",
        escape(value),
        escape(below)
    ));
}

fn cards(page: &mut String, tally: &Tally) {
    page.push_str("<section class=\"cards\">\n");
    let rest = [
        (tally.counts.not_run(), "not run"),
        (tally.retried, "retried"),
        (tally.counts.skipped, "skipped"),
        (tally.counts.unfinished().unwrap_or(0), "unfinished"),
    ];
    let rest: Vec<String> = rest.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    let below = match rest.is_empty() {
        false => rest.join(", "),
        true if tally.counts.failed() > 0 => String::new(),
        true => "none failed".to_string(),
    };
    if tally.counts.failed() > 0 {
        let of = format!("of {}", count(tally.counts.done + tally.counts.failed(), "task"));
        card(page, "failing", "Tasks failed", &tally.counts.failed().to_string(), &of);
    }
    card(page, "", "Tasks done", &tally.counts.done.to_string(), &below);
    let slots: u64 = tally.hosts.values().map(|h| u64::from(h.slots)).sum();
    let on = format!("{}, {}", count(tally.hosts.len() as u64, "host"), count(slots, "slot"));
    card(page, "", "Wall time", &span(tally.wall_us()), &on);
    if tally.placed.0 > 0 {
        let all = tally.planned.local + tally.planned.remote;
        let below = format!("{} of {} by layout", bytes(tally.planned.local), bytes(all));
        card(page, "", "Read on own host", &percent(tally.planned.local, all), &below);
    }
    // One host has no network between its tasks and their bytes.
    if tally.placed.0 > 0 && tally.hosts.len() > 1 {
        let kept = tally.planned.remote_if_in_turn.saturating_sub(tally.planned.remote);
        let below = format!("{} with hosts in turn", bytes(tally.planned.remote_if_in_turn));
        card(page, "", "Kept off the network", &bytes(kept), &below);
    }
    if let Some(median) = tally.waits.median_us() {
        let below = format!("a task; {} in all", span(tally.waits.sum_us));
        card(page, "", "Median I/O wait", &span(median), &below);
    }
    page.push_str("</section>\n");
}

#[cfg(test)]
mod tests {
    use super::STYLE;

    /// A style sheet writes a character with one backslash. With two, the reader would see the number.
    #[test]
    fn no_escape_of_the_style_sheet_is_escaped_again() {
        assert!(!STYLE.contains(r"\\"), "{STYLE}");
    }
}
