//! Self-contained pages: bars of one result or of two side by side, and the curve of a sweep.

use crate::html::{escape, nice_step};
use std::fmt::Write;

/// The dark colour. Both colours also differ in brightness, for paper and for readers who distinguish few colours.
pub const DARK: &str = "#4477aa";
/// The light colour.
pub const LIGHT: &str = "#ddaa33";
const LIMIT: &str = "#dddddd";

/// The left end of bars, and the width of the widest, pixels.
const LEFT: f64 = 260.0;
const WIDE: f64 = 380.0;
/// The most lines of a value axis.
const TICKS: f64 = 5.0;

/// Returns a page with a title and lines about the measurement.
pub fn page(title: &str, about: &[String], body: &str) -> String {
    let about: String = about.iter().map(|line| format!("<p>{}</p>", escape(line))).collect();
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>{t}</title><style>\
         body{{font:14px sans-serif;margin:2em;color:#222}}text{{font:12px sans-serif;fill:#222;paint-order:stroke;stroke:#fff;stroke-width:3px}}\
         h2{{font-size:16px;margin:1.5em 0 .5em}}p,li{{margin:.3em 0;max-width:62em}}\
         table{{border-collapse:collapse}}td,th{{padding:.2em .8em;text-align:right;white-space:nowrap;border-bottom:1px solid #ddd}}\
         td:first-child,th:first-child{{text-align:left;padding-left:0}}</style><h1>{t}</h1>{about}{body}</html>\n",
        t = escape(title)
    )
}

/// One bar. Bars of one group are together under one name.
pub struct Bar {
    /// The name of the group, printed at its first bar.
    pub name: String,
    /// The length of the bar, in the unit of its title.
    pub value: f64,
    /// The text behind the bar.
    pub text: String,
    /// The highest possible value, drawn in grey behind the bar.
    pub limit: Option<f64>,
    /// [`DARK`] or [`LIGHT`].
    pub colour: &'static str,
    /// Whether space precedes the bar, because another operation begins.
    pub apart: bool,
}

/// Returns bars from zero, all on one scale.
pub fn bars(title: &str, all: &[Bar]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let most = all.iter().map(|b| b.limit.unwrap_or(0.0).max(b.value)).fold(1e-9, f64::max);
    let wide = |v: f64| WIDE * v / most;
    let (mut svg, mut y, mut before) = (String::new(), 4, "");
    for bar in all {
        let first = bar.name != before;
        before = &bar.name;
        y += if bar.apart { 12 } else { 0 } + if first { 4 } else { 0 };
        if first {
            let _ = write!(
                svg,
                r#"<text x="{}" y="{}" text-anchor="end">{}</text>"#,
                LEFT - 10.0,
                y + 12,
                escape(&bar.name)
            );
        }
        if let Some(limit) = bar.limit {
            let _ = write!(svg, r#"<rect x="{LEFT}" y="{y}" width="{:.1}" height="16" fill="{LIMIT}"/>"#, wide(limit));
        }
        let end = wide(bar.value).max(bar.limit.map_or(0.0, wide));
        let _ = write!(
            svg,
            r#"<rect x="{LEFT}" y="{y}" width="{:.1}" height="16" fill="{}"/><text x="{:.0}" y="{}">{}</text>"#,
            wide(bar.value),
            bar.colour,
            LEFT + end + 8.0,
            y + 12,
            escape(&bar.text),
        );
        y += 18;
    }
    format!(r#"<h2>{}</h2><svg width="880" height="{}" role="img">{svg}</svg>"#, escape(title), y + 4)
}

/// Returns lines under a title.
pub fn list(title: &str, lines: &[String]) -> String {
    let each = lines.iter().map(|line| format!("<li>{}</li>", escape(line)));
    format!("<h2>{}</h2><ul>{}</ul>", escape(title), each.collect::<String>())
}

/// Returns a table. The first column holds words, the others numbers.
pub fn table(title: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |tag: &str, cells: &mut dyn Iterator<Item = &str>| {
        format!("<tr>{}</tr>", cells.map(|c| format!("<{tag}>{}</{tag}>", escape(c))).collect::<String>())
    };
    let body: String = rows.iter().map(|row| cells("td", &mut row.iter().map(String::as_str))).collect();
    format!("<h2>{}</h2><table>{}{body}</table>", escape(title), cells("th", &mut head.iter().copied()))
}

/// Returns coloured squares with their meanings.
pub fn legend(what: &[(&str, &str)]) -> String {
    let each = what.iter().map(|(colour, text)| {
        format!(
            r#"<span style="display:inline-block;width:12px;height:12px;background:{colour};margin:0 6px -1px 0"></span>{}&emsp;"#,
            escape(text)
        )
    });
    format!("<p>{}</p>", each.collect::<String>())
}

/// A line: one value for each place.
pub struct Series {
    /// The name in the legend.
    pub name: &'static str,
    /// [`DARK`] or [`LIGHT`].
    pub colour: &'static str,
    /// One value for each place.
    pub values: Vec<f64>,
}

/// Returns a chart of lines over named places, from zero, in `unit`.
pub fn lines(title: &str, below: &str, places: &[String], all: &[Series], unit: &str) -> String {
    const TALL: f64 = 220.0;
    let most = all.iter().flat_map(|s| &s.values).fold(1e-9_f64, |a, b| a.max(*b));
    let step = nice_step(most, TICKS);
    let top = (most / step).ceil() * step;
    let x = |i: usize| 130.0 + 115.0 * i as f64;
    let y = |v: f64| 20.0 + TALL * (1.0 - v / top);
    let right = x(places.len().max(1) - 1) + 50.0;
    let mut svg = String::new();
    for i in 0..=(top / step).round() as usize {
        let v = step * i as f64;
        let _ = write!(
            svg,
            r##"<line x1="80" x2="{right}" y1="{0:.1}" y2="{0:.1}" stroke="#ccc"/><text x="72" y="{1:.1}" text-anchor="end">{v}</text>"##,
            y(v),
            y(v) + 4.0
        );
    }
    let _ = write!(
        svg,
        r#"<text x="18" y="{0}" transform="rotate(-90 18 {0})" text-anchor="middle">{unit}</text>"#,
        20.0 + TALL / 2.0
    );
    for (i, place) in places.iter().enumerate() {
        let _ = write!(svg, r#"<text x="{}" y="{}" text-anchor="middle">{}</text>"#, x(i), TALL + 40.0, escape(place));
    }
    let _ = write!(
        svg,
        r#"<text x="{}" y="{}" text-anchor="middle">{}</text>"#,
        (80.0 + right) / 2.0,
        TALL + 62.0,
        escape(below)
    );
    for series in all {
        let points: Vec<String> =
            series.values.iter().enumerate().map(|(i, v)| format!("{:.1},{:.1}", x(i), y(*v))).collect();
        let _ = write!(
            svg,
            r#"<polyline points="{}" fill="none" stroke="{}" stroke-width="2"/>"#,
            points.join(" "),
            series.colour
        );
        for (i, v) in series.values.iter().enumerate() {
            // The value is on the side of its dot that is away from the other line.
            let above = all.iter().all(|o| o.values.get(i).is_none_or(|w| w <= v));
            let _ = write!(
                svg,
                r#"<circle cx="{0:.1}" cy="{1:.1}" r="3.5" fill="{2}"/><text x="{0:.1}" y="{3:.1}" text-anchor="middle">{v:.1}</text>"#,
                x(i),
                y(*v),
                series.colour,
                y(*v) + if above { -8.0 } else { 18.0 },
            );
        }
    }
    let names: Vec<(&str, &str)> = all.iter().map(|s| (s.colour, s.name)).collect();
    format!(
        r#"<h2>{}</h2>{}<svg width="{:.0}" height="{:.0}" role="img">{svg}</svg>"#,
        escape(title),
        legend(&names),
        right + 20.0,
        TALL + 72.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_has_a_point_for_each_value() {
        let series = |name, values| Series { name, colour: DARK, values };
        let places = ["4 KiB".to_string(), "<16>".into()];
        let page = lines(
            "sizes",
            "rsize",
            &places,
            &[series("write", vec![1.0, 2.0]), series("read", vec![3.0, 4.0])],
            "MB/s",
        );
        assert_eq!(page.matches("<circle").count(), 4);
        assert!(page.contains("&lt;16&gt;") && page.contains(">4.0<") && page.contains(">MB/s<"), "{page}");
    }
}
