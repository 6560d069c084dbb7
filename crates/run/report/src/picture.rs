//! Pictures of a network: a matrix of pairs, and a tree of switches.

use crate::html::{clip, escape};
use std::fmt::Write;

/// The side of a cell, and the space for names, pixels.
const CELL: f64 = 34.0;
const NAMES: f64 = 110.0;

/// Returns a matrix of `rows` to `columns`, both in the order of names. Each cell has its value and the share of the
/// usual value. The share is the colour: red at half of it or less, up to white. Grey means unknown.
pub fn matrix(title: &str, names: &[String], cell: &dyn Fn(usize, usize) -> Option<(f64, f64)>) -> String {
    let mut svg = String::new();
    let place = |at: usize| NAMES + at as f64 * CELL;
    for (at, name) in names.iter().enumerate() {
        let (x, y) = (place(at) + CELL / 2.0, NAMES - 6.0);
        let _ = write!(
            svg,
            r#"<text x="{:.0}" y="{:.0}" text-anchor="end">{n}</text><text transform="translate({x:.0},{y:.0}) rotate(-60)">{n}</text>"#,
            NAMES - 8.0,
            place(at) + CELL * 0.62,
            n = escape(name),
        );
        for (to, other) in names.iter().enumerate() {
            let (fill, text, told) = match cell(at, to) {
                _ if at == to => ("#ffffff".to_string(), String::new(), String::new()),
                None => ("#eeeeee".to_string(), String::new(), "not measured".into()),
                Some((value, share)) => (
                    colour(share),
                    format!("{value:.0}"),
                    format!("{value:.1}, {:.0} % of the usual value", share * 100.0),
                ),
            };
            let _ = write!(
                svg,
                r##"<g><title>{} to {}: {told}</title><rect x="{:.0}" y="{:.0}" width="{CELL}" height="{CELL}" fill="{fill}" stroke="#cccccc"/><text x="{:.0}" y="{:.0}" text-anchor="middle" style="font-size:10px">{text}</text></g>"##,
                escape(name),
                escape(other),
                place(to),
                place(at),
                place(to) + CELL / 2.0,
                place(at) + CELL * 0.62,
            );
        }
    }
    let side = place(names.len()) + 40.0;
    format!(r#"<h2>{}</h2><svg width="{side:.0}" height="{side:.0}" role="img">{svg}</svg>"#, escape(title))
}

/// Returns white for the usual value, red for half of it or less. Brightness falls with it, for paper.
fn colour(share: f64) -> String {
    let lack = ((1.0 - share) * 2.0).clamp(0.0, 1.0);
    let part = |full: f64| (255.0 - lack * (255.0 - full)).round() as u8;
    format!("#{:02x}{:02x}{:02x}", part(204.0), part(51.0), part(51.0))
}

/// A box of a tree, with the boxes below it.
#[derive(Clone, Debug, Default)]
pub struct TreeBox {
    /// The text in the box.
    pub name: String,
    /// The text on the line to the box above.
    pub note: String,
    /// Whether it is drawn in red.
    pub bad: bool,
    /// Whether its line is dashed: assumed, or inferred.
    pub assumed: bool,
    /// The boxes below, from left to right.
    pub below: Vec<TreeBox>,
}

const WIDE: f64 = 96.0;
const HIGH: f64 = 26.0;
const APART: f64 = 14.0;
const LEVEL: f64 = 84.0;

/// Returns a whole SVG file.
pub fn tree(tops: &[TreeBox]) -> String {
    let (mut svg, mut left, mut deep) = (String::new(), APART, 0);
    for top in tops {
        draw(top, 0, &mut left, &mut deep, &mut svg);
    }
    let high = APART * 2.0 + (deep as f64) * LEVEL + HIGH;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{left:.0}\" height=\"{high:.0}\" role=\"img\" \
         font-family=\"sans-serif\" font-size=\"12\">{svg}</svg>\n"
    )
}

/// Draws the boxes below first, then the box over their middle. Returns the middle of the box.
fn draw(node: &TreeBox, depth: usize, left: &mut f64, deep: &mut usize, svg: &mut String) -> f64 {
    *deep = (*deep).max(depth);
    let y = APART + depth as f64 * LEVEL;
    let below: Vec<f64> = node.below.iter().map(|one| draw(one, depth + 1, left, deep, svg)).collect();
    let middle = match (below.first(), below.last()) {
        (Some(first), Some(last)) => (first + last) / 2.0,
        _ => {
            *left += WIDE + APART;
            *left - APART - WIDE / 2.0
        }
    };
    for (x, one) in below.iter().zip(&node.below) {
        let ink = if one.bad { "#cc3333" } else { "#666666" };
        let dashes = if node.assumed { " stroke-dasharray=\"4 3\"" } else { "" };
        let (top, bottom) = (y + HIGH, y + LEVEL);
        let _ = write!(
            svg,
            "<line x1=\"{middle:.0}\" y1=\"{top:.0}\" x2=\"{x:.0}\" y2=\"{bottom:.0}\" stroke=\"{ink}\"{dashes}/>\
             <text x=\"{x:.0}\" y=\"{:.0}\" text-anchor=\"middle\" font-size=\"10\" fill=\"{ink}\">{}</text>",
            bottom - 5.0,
            escape(&one.note)
        );
    }
    let (ink, dashes) =
        (if node.bad { "#cc3333" } else { "#222222" }, if node.assumed { " stroke-dasharray=\"4 3\"" } else { "" });
    let _ = write!(
        svg,
        "<g><title>{n}</title><rect x=\"{:.0}\" y=\"{y:.0}\" width=\"{WIDE}\" height=\"{HIGH}\" rx=\"3\" fill=\"#ffffff\" stroke=\"{ink}\"{dashes}/>\
         <text x=\"{middle:.0}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"{ink}\">{}</text></g>",
        middle - WIDE / 2.0,
        y + HIGH * 0.68,
        escape(&clip(&node.name, 14)),
        n = escape(&node.name),
    );
    middle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_cell_is_red_and_a_name_is_no_markup() {
        let names = ["n1".to_string(), "<b>".to_string()];
        let page = matrix("Mbit/s", &names, &|from, _| (from == 0).then_some((40.0, 0.4)));
        assert!(page.contains("#cc3333") && page.contains("n1 to &lt;b&gt;: 40.0, 40 % of the usual value"), "{page}");
        assert!(page.contains("not measured") && !page.contains("<b>"), "{page}");
        assert_eq!((colour(1.0), colour(1.3), colour(0.5)), ("#ffffff".into(), "#ffffff".into(), "#cc3333".into()));
    }

    #[test]
    fn a_switch_stands_over_the_middle_of_what_it_joins() {
        let host = |name: &str, bad| TreeBox { name: name.into(), note: "p1".into(), bad, ..TreeBox::default() };
        let leaf =
            TreeBox { name: "s<1>".into(), below: vec![host("n1", false), host("n2", true)], ..TreeBox::default() };
        let svg = tree(&[leaf]);
        assert!(svg.contains("x=\"117\"") && svg.contains("s&lt;1&gt;") && svg.contains("#cc3333"), "{svg}");
    }
}
