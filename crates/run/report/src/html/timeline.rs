//! Hosts and tasks over time: single attempts while they can be distinguished, otherwise the load of each host.

use super::story::{Attempt, Story};
use super::svg::{self, LEFT, SPAN, clip, escape, x};
use crate::text::how;
use homing_model::units::{bytes, span};

/// The number of attempts beyond which single ones are neither visible nor worth their bytes.
const SINGLE: usize = 2500;
/// The number of rows of slots that are drawn one by one.
const ROWS: u32 = 96;
/// The number of hosts that get a strip of their own.
const STRIPS: usize = 300;

/// Draws the section.
pub(crate) fn draw(page: &mut String, story: &Story) {
    if story.attempts.is_empty() {
        return;
    }
    let rows: u32 = story.slots.iter().sum();
    if story.attempts.len() <= SINGLE && rows <= ROWS { single(page, story, rows) } else { dense(page, story) }
}

fn single(page: &mut String, story: &Story, rows: u32) {
    let row = if rows <= 24 { 16.0 } else { 8.0 };
    let gap = 8.0;
    let height = f64::from(rows) * row + gap * story.hosts.len() as f64;
    let remote = story.attempts.iter().any(Attempt::is_remote);
    svg::open(page, "Hosts and tasks", &legend(story, remote), height + 24.0);
    page.push_str(
        "<defs><pattern id=\"hatch\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><path class=\"hatch\" d=\"M0 0V5\"/></pattern></defs>\n",
    );
    svg::time_axis(page, story.length, 0.0, height);
    let mut tops = Vec::new();
    let mut top = gap / 2.0;
    for (host, slots) in story.hosts.iter().zip(&story.slots) {
        let tall = f64::from(*slots) * row;
        let (y, name) = (top + tall / 2.0 + 4.0, escape(&clip(host, 12)));
        page.push_str(&format!(
            "<rect class=\"lane\" x=\"{LEFT}\" y=\"{top:.0}\" width=\"{SPAN}\" height=\"{tall:.0}\"/>"
        ));
        page.push_str(&format!("<text class=\"end name\" x=\"{:.0}\" y=\"{y:.0}\">{name}</text>\n", LEFT - 8.0));
        tops.push(top);
        top += tall + gap;
    }
    for a in &story.attempts {
        let y = tops[a.host] + f64::from(a.slot.max(1) - 1) * row + 1.0;
        bar(page, story, a, y, row - 2.0);
    }
    svg::close(page);
}

fn bar(page: &mut String, story: &Story, a: &Attempt, y: f64, tall: f64) {
    let from = x(a.from, story.length);
    // A bar has a visible width even if its attempt was short. A small gap separates neighbours.
    let wide = (x(a.to, story.length) - from - 0.8).max(0.7);
    let shape = format!("x=\"{from:.1}\" y=\"{y:.0}\" width=\"{wide:.1}\" height=\"{tall:.0}\"");
    page.push_str(&format!("<g><rect class=\"{}\" {shape} rx=\"1.5\"/>", a.class()));
    if a.is_remote() {
        page.push_str(&format!("<rect fill=\"url(#hatch)\" {shape}/>"));
    }
    page.push_str(&format!("<title>{}</title></g>\n", escape(&about(story, a))));
}

fn about(story: &Story, a: &Attempt) -> String {
    let mut text = format!("task {} on {}, {}", a.task, story.hosts[a.host], span(a.to - a.from));
    if a.attempt > 1 {
        text.push_str(&format!(", attempt {}", a.attempt));
    }
    text.push_str(&a.outcome.map_or(", no end recorded".into(), |o| format!(", {}", how(o))));
    if let Some(p) = a.planned {
        text.push_str(&format!(", {} local, {} remote", bytes(p.local), bytes(p.remote)));
    }
    format!("{text}: {}", clip(&a.command, 100))
}

fn legend(story: &Story, remote: bool) -> String {
    let has = |class: &str| story.attempts.iter().any(|a| a.class() == class);
    let kinds = [("ok", "done"), ("bad", "failed"), ("again", "failed, tried again"), ("open", "not finished")];
    let mut text = String::new();
    for (class, label) in kinds.into_iter().filter(|(class, _)| has(class)) {
        text.push_str(&format!("<i class=\"key {class}\"></i>{label} "));
    }
    if remote {
        text.push_str("<i class=\"key remote\"></i>hatched: more than a tenth of its bytes on other hosts");
    }
    text
}

/// Draws one strip for each host: the part of its slots in use, and marks where tasks failed.
fn dense(page: &mut String, story: &Story) {
    let shown = story.hosts.len().min(STRIPS);
    let bins = (14_000 / shown).clamp(60, 300);
    let row = if shown <= 24 { 20.0 } else { 9.0 };
    let height = row * shown as f64 + 4.0;
    let rest = story.hosts.len() - shown;
    let mut about =
        "Stronger colour: more of the host's slots in use; <i class=\"key bad\"></i>tasks failed".to_string();
    if rest > 0 {
        about.push_str(&format!("; {rest} more hosts are not drawn"));
    }
    svg::open(page, "Hosts over time", &about, height + 24.0);
    svg::time_axis(page, story.length, 0.0, height);
    let (busy, failed) = fill(story, bins);
    for host in 0..shown {
        let (top, slots) = (2.0 + row * host as f64, f64::from(story.slots[host].max(1)));
        let used: Vec<Option<f64>> = busy[host].iter().map(|b| Some(b / slots)).collect();
        page.push_str(&format!("<g><title>{}</title>", escape(story.hosts[host])));
        svg::strip(page, "busy", &used, top, row - 2.0);
        let marks: Vec<Option<f64>> = failed[host].iter().map(|f| f.then_some(1.0)).collect();
        svg::strip(page, "fails", &marks, top + row - 4.0, 2.0);
        page.push_str("</g>");
        let labelled = row > 12.0 || host % 4 == 0;
        if labelled {
            let (px, y) = (LEFT - 8.0, top + row / 2.0 + 3.0);
            let name = escape(&clip(story.hosts[host], 12));
            page.push_str(&format!("<text class=\"end name\" x=\"{px:.0}\" y=\"{y:.0}\">{name}</text>\n"));
        }
    }
    svg::close(page);
}

/// Returns the mean number of slots in use, and whether a task failed, for each host and bin.
fn fill(story: &Story, bins: usize) -> (Vec<Vec<f64>>, Vec<Vec<bool>>) {
    let mut busy = vec![vec![0.0; bins]; story.hosts.len()];
    let mut failed = vec![vec![false; bins]; story.hosts.len()];
    let scale = bins as f64 / story.length as f64;
    for a in &story.attempts {
        let (from, to) = (a.from as f64 * scale, (a.to as f64 * scale).min(bins as f64));
        let mut at = from;
        while at < to {
            let next = (at.floor() + 1.0).min(to);
            busy[a.host][at as usize] += next - at;
            at = next;
        }
        if a.class() == "bad" {
            failed[a.host][(to as usize).min(bins - 1)] = true;
        }
    }
    (busy, failed)
}
