//! From sets to the shortest text that means the same.
//!
//! Names of one shape (the same text around the numbers, the same padding) are
//! folded one dimension after the other, the last first, as long as the rest
//! of the name is equal.

use super::Name;
use std::collections::BTreeMap;

/// The text around the numbers.
type Shape = Vec<String>;
/// One dimension: its folded text.
type Axes = Vec<String>;

pub(super) fn fold<'a>(names: impl Iterator<Item = &'a Name>) -> String {
    let mut shapes: BTreeMap<(Shape, Vec<usize>), Vec<Vec<String>>> = BTreeMap::new();
    for name in names {
        let (texts, numbers) = cut(name.text());
        let widths = numbers.iter().map(|n| if n.len() > 1 && n.starts_with('0') { n.len() } else { 0 }).collect();
        shapes.entry((texts, widths)).or_default().push(numbers);
    }
    let mut parts = Vec::new();
    for ((texts, _), rows) in shapes {
        for axes in fold_axes(rows, texts.len() - 1) {
            parts.push(join(&texts, &axes));
        }
    }
    parts.join(",")
}

/// `r1n02x` becomes (["r", "n", "x"], ["1", "02"]).
fn cut(name: &str) -> (Shape, Vec<String>) {
    let (mut texts, mut numbers) = (vec![String::new()], Vec::<String>::new());
    let mut in_number = false;
    for c in name.chars() {
        match (c.is_ascii_digit(), in_number) {
            (true, false) => numbers.push(c.to_string()),
            (true, true) => numbers.last_mut().expect("a number was begun").push(c),
            (false, true) => texts.push(c.to_string()),
            (false, false) => texts.last_mut().expect("never empty").push(c),
        }
        in_number = c.is_ascii_digit();
    }
    if texts.len() == numbers.len() {
        texts.push(String::new());
    }
    (texts, numbers)
}

fn fold_axes(rows: Vec<Vec<String>>, axes: usize) -> Vec<Axes> {
    let mut rows = rows;
    for axis in (0..axes).rev() {
        let mut groups: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
        for mut row in rows {
            let number = row.remove(axis);
            groups.entry(row).or_default().push(number);
        }
        let unfold = groups.into_iter().map(|(mut rest, numbers)| {
            rest.insert(axis, span(numbers));
            rest
        });
        rows = unfold.collect();
    }
    rows
}

/// `1`, or `[1-3,7]`.
fn span(numbers: Vec<String>) -> String {
    let mut sorted: Vec<(u64, String)> = numbers.into_iter().map(|n| (n.parse().unwrap_or(u64::MAX), n)).collect();
    sorted.sort();
    sorted.dedup();
    if let [(_, only)] = &sorted[..] {
        return only.clone();
    }
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in 0..sorted.len() {
        match runs.last_mut() {
            Some((_, end)) if sorted[*end].0.checked_add(1) == Some(sorted[at].0) => *end = at,
            _ => runs.push((at, at)),
        }
    }
    let text = |(from, to): &(usize, usize)| {
        if from == to { sorted[*from].1.clone() } else { format!("{}-{}", sorted[*from].1, sorted[*to].1) }
    };
    format!("[{}]", runs.iter().map(text).collect::<Vec<_>>().join(","))
}

fn join(texts: &[String], axes: &[String]) -> String {
    let mut out = String::new();
    for (i, text) in texts.iter().enumerate() {
        out.push_str(text);
        out.push_str(axes.get(i).map_or("", String::as_str));
    }
    out
}
