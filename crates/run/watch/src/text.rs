//! Writes a scene as text for a file or a program, with all rows.

use crate::rows::{self, Rows};
use crate::scene::plain;
use crate::{Scene, WatchView};
use homing_model::fit::clipped;

/// Returns the text, in lines of at most `columns` characters.
pub fn text(scene: &Scene, columns: usize) -> String {
    let view = WatchView { fold: Some(false), ..WatchView::default() };
    let mut lines = vec![plain(&scene.title), plain(&scene.progress), plain(&scene.sums)];
    lines.retain(|line| !line.is_empty());
    let small = [rows::servers(scene), rows::waits(scene), rows::fetches(scene), rows::failures(scene)];
    let all = [rows::hosts(&view, scene)].into_iter().chain(small).chain([rows::tasks(&view, scene)]);
    all.filter(|rows| !rows.rows.is_empty()).for_each(|rows| add(&mut lines, &rows));
    lines.iter().map(|line| clipped(line.trim_end(), columns) + "\n").collect()
}

fn add(lines: &mut Vec<String>, rows: &Rows) {
    let head: Vec<String> = rows.head.iter().map(|cell| cell.trim_end_matches('*').to_string()).collect();
    let all = || std::iter::once(&head).chain(&rows.rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    lines.push(String::new());
    for row in all() {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        lines.push(cells.join("  "));
    }
}
