//! Draws the changes over time: tasks completed, bytes moved, pressure.

use super::story::Story;
use super::svg::{self, LEFT, SPAN, clip, escape};
use crate::Tally;
use homing_model::units::bytes;
use std::collections::BTreeMap;

const BINS: usize = 160;
/// The number of attempts below which a rate is not worth a picture.
const FEW: usize = 8;
const TALL: f64 = 110.0;

/// Draws completions and bytes per second. Bytes that are mostly those of other programs are left out.
pub(crate) fn throughput(page: &mut String, story: &Story, tally: &Tally) {
    if story.attempts.is_empty() {
        return;
    }
    // The rate of a few tasks has no meaning, and few tasks in many bins would look like a comb.
    let bins = (story.attempts.len() / 2).clamp(12, BINS);
    let second = story.length as f64 / 1e6 / bins as f64;
    let mut done = vec![0.0; bins];
    for a in story.attempts.iter().filter(|a| a.class() == "ok") {
        done[bin(a.to, story.length, bins)] += 1.0 / second;
    }
    if story.attempts.len() >= FEW {
        curve(page, story, "Tasks completed per second", "", &[("tasks", &done)], |v| {
            if v < 10.0 && v.fract() > 0.0 { format!("{v:.1}") } else { format!("{v:.0}") }
        });
    }
    let moved = |rate: &Vec<f64>| rate.iter().any(|v| *v > 0.0);
    let received = rate(story, |g| g.received).filter(|rate| moved(rate) && tally.explains_network());
    let disk = rate(story, |g| g.disk).filter(|rate| moved(rate) && tally.explains_disks());
    let all = [("disk", "disks, read and written", &disk), ("net", "received from the network", &received)];
    let both: Vec<(&str, &[f64])> = all.iter().filter_map(|(c, _, v)| Some((*c, v.as_deref()?))).collect();
    if !both.is_empty() {
        let keys = all.iter().rev().filter(|(.., v)| v.is_some());
        let keys: Vec<String> = keys.map(|(c, of, _)| format!("<i class=\"key {c}\"></i>{of}")).collect();
        let about = format!("Sum over hosts, from their counters: {}", keys.join(" "));
        curve(page, story, "Bytes per second", &about, &both, |v| bytes(v as u64));
    }
}

fn bin(us: u64, length: u64, bins: usize) -> usize {
    ((us as f64 / length as f64 * bins as f64) as usize).min(bins - 1)
}

/// Returns a rate: the growth between samples, spread evenly over the time between them.
fn rate(story: &Story, of: fn(&super::story::Growth) -> Option<u64>) -> Option<Vec<f64>> {
    let samples = story.growth.len() / story.hosts.len().max(1);
    let bins = samples.clamp(8, BINS);
    let wide = story.length as f64 / bins as f64;
    let mut sums = vec![0.0; bins];
    let mut known = false;
    for g in &story.growth {
        let Some(amount) = of(g) else { continue };
        known = true;
        let (first, last) = (bin(g.from, story.length, bins), bin(g.to, story.length, bins));
        let took = (g.to - g.from).max(1) as f64;
        for (n, sum) in sums.iter_mut().enumerate().take(last + 1).skip(first) {
            let overlap = (g.to as f64).min((n + 1) as f64 * wide) - (g.from as f64).max(n as f64 * wide);
            *sum += amount as f64 * overlap.max(0.0) / took / (wide / 1e6);
        }
    }
    known.then_some(sums)
}

fn curve(
    page: &mut String,
    story: &Story,
    title: &str,
    about: &str,
    lines: &[(&str, &[f64])],
    label: impl Fn(f64) -> String,
) {
    let most = lines.iter().flat_map(|(_, v)| v.iter()).copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let most = if most <= f64::MIN_POSITIVE { 1.0 } else { most * 1.05 };
    svg::open(page, title, about, TALL + 28.0);
    svg::value_axis(page, most, 6.0, TALL, label);
    svg::time_axis(page, story.length, TALL, TALL + 4.0);
    for (class, values) in lines {
        svg::area(page, &format!("area {class}"), values, most, 6.0, TALL);
    }
    svg::close(page);
}

/// Draws bars: the bytes by the layout beside the measured bytes.
pub(crate) fn moved(page: &mut String, tally: &Tally) {
    if tally.placed.0 == 0 {
        return;
    }
    let planned = &tally.planned;
    let in_turn = planned.remote_if_in_turn;
    let all = planned.local + planned.remote;
    let split = |local, remote, of: &str| format!("{} local, {} over the network {of}", bytes(local), bytes(remote));
    let alone = all.saturating_sub(in_turn);
    let mut rows = vec![
        ("Hosts in turn", alone, in_turn, split(alone, in_turn, "(by the layout, without placement)")),
        ("As placed", planned.local, planned.remote, split(planned.local, planned.remote, "(by the layout)")),
    ];
    if let (Some(read), Some(received)) = (tally.rchar, tally.own_received()) {
        // Interfaces may also receive other traffic, so the text gives no split.
        let (read_text, received_text) = (bytes(read), bytes(received));
        let said = format!(
            "{read_text} requested by read calls (pipes included), {received_text} received by the hosts' interfaces, \
             for any purpose"
        );
        rows.push(("Measured", read.saturating_sub(received), received, said));
    }
    let most = rows.iter().map(|r| r.1 + r.2).max().unwrap_or(1).max(1) as f64;
    let about = "<i class=\"key ok\"></i>from the task's own host <i class=\"key far\"></i>over the network";
    svg::open(page, "Bytes read", about, rows.len() as f64 * 44.0);
    for (n, (name, local, remote, about)) in rows.iter().enumerate() {
        let top = n as f64 * 44.0;
        let (a, b) = (*local as f64 / most * SPAN, *remote as f64 / most * SPAN);
        page.push_str(&format!(
            "<text class=\"end name\" x=\"{:.0}\" y=\"{:.0}\">{name}</text>",
            LEFT - 8.0,
            top + 14.0
        ));
        page.push_str(&format!("<rect class=\"ok\" x=\"{LEFT}\" y=\"{top:.0}\" width=\"{a:.1}\" height=\"20\"/>"));
        page.push_str(&format!(
            "<rect class=\"far\" x=\"{:.1}\" y=\"{top:.0}\" width=\"{b:.1}\" height=\"20\"/>",
            LEFT + a
        ));
        page.push_str(&format!("<text x=\"{LEFT}\" y=\"{:.0}\">{about}</text>\n", top + 34.0));
    }
    svg::close(page);
}

/// The number of storage servers whose limit is drawn.
const LIMITED: usize = 6;

/// Draws how many tasks may use each storage server at once.
pub(crate) fn limits(page: &mut String, story: &Story) {
    let all = story.slots.iter().sum();
    let slots_of = |name: &str| story.hosts.iter().position(|host| *host == name).map_or(all, |at| story.slots[at]);
    let measured = story.limits.iter().filter(|(.., why)| !why.is_empty());
    let mut changes: BTreeMap<&str, usize> = BTreeMap::new();
    measured.for_each(|(_, server, ..)| *changes.entry(server).or_default() += 1);
    let mut servers: Vec<(&str, usize)> = changes.into_iter().collect();
    // The chart of a limit that never changed is a flat line. Such limits come last, and the rest is named in one
    // line.
    servers.sort_by_key(|(_, changes)| std::cmp::Reverse(*changes));
    let flat = servers.iter().skip(1).filter(|(_, changes)| *changes == 1).count();
    let drawn = (servers.len() - flat).clamp(1.min(servers.len()), LIMITED);
    let rest: Vec<&str> = servers.iter().skip(drawn).map(|(server, _)| *server).collect();
    for (server, _) in servers.iter().copied().take(drawn) {
        let (mut values, mut last) = (vec![1.0; BINS], (None, ""));
        for (at, _, limit, because) in story.limits.iter().filter(|(_, of, ..)| *of == server) {
            let value = f64::from(limit.unwrap_or(slots_of(server)));
            values[bin(*at, story.length, BINS)..].fill(value);
            last = (*limit, because);
        }
        let title = format!("Tasks at once on the storage of {}", escape(server));
        let end = last.0.map_or("all slots".into(), |n| format!("{n} at once"));
        let about = format!(
            "The largest number of tasks that homing let use it. At the end of the run: {end}, because {}",
            escape(last.1)
        );
        curve(page, story, &title, &about, &[("tasks", &values)], |v| format!("{v:.0}"));
    }
    if !rest.is_empty() {
        let names = escape(&clip(&rest.join(", "), 300));
        page.push_str(&format!(
            "<p class=\"quiet\">Storage without a chart, because its limit hardly changed: {names}.</p>\n"
        ));
    }
}

/// Draws strips: the part of the time in which tasks of a host waited for I/O.
pub(crate) fn pressure(page: &mut String, story: &Story) {
    if !story.growth.iter().any(|g| g.stalled_us.is_some()) {
        return;
    }
    let shown = story.hosts.len().min(200);
    let per_host = story.growth.len() / story.hosts.len().max(1);
    let bins = (10_000 / shown).clamp(40, 240).min(per_host.max(8));
    let row = if shown <= 24 { 18.0 } else { 8.0 };
    let height = row * shown as f64 + 2.0;
    let mut cells = vec![vec![(0.0, 0.0); bins]; story.hosts.len()];
    for g in &story.growth {
        let Some(stalled) = g.stalled_us else { continue };
        for cell in &mut cells[g.host][bin(g.from, story.length, bins)..=bin(g.to, story.length, bins)] {
            *cell = (cell.0 + stalled as f64, cell.1 + (g.to - g.from) as f64);
        }
    }
    let about = "Share of the time in which some task of the host waited for I/O; stronger colour: larger share";
    svg::open(page, "I/O pressure", about, height + 24.0);
    svg::time_axis(page, story.length, 0.0, height);
    for (host, cells) in cells.iter().enumerate().take(shown) {
        let top = 1.0 + row * host as f64;
        let share = |(stalled, time): &(f64, f64)| (*time > 0.0).then(|| stalled / time);
        let values: Vec<Option<f64>> = cells.iter().map(share).collect();
        let (sum, time) = cells.iter().fold((0.0, 0.0), |s, c| (s.0 + c.0, s.1 + c.1));
        let mean = if time > 0.0 { format!("{:.0} % on average", sum / time * 100.0) } else { "unknown".into() };
        page.push_str(&format!("<g><title>{}: {mean}</title>", escape(story.hosts[host])));
        svg::strip(page, "stall", &values, top, row - 2.0);
        page.push_str("</g>");
        if row > 12.0 || host % 4 == 0 {
            let name = escape(&clip(story.hosts[host], 12));
            let y = top + row / 2.0 + 3.0;
            page.push_str(&format!("<text class=\"end name\" x=\"{:.0}\" y=\"{y:.0}\">{name}</text>\n", LEFT - 8.0));
        }
    }
    svg::close(page);
}
