//! The shapes of the page, as text: axes, bars, areas, cells. Every drawing is `WIDTH` units wide and scales with the
//! page.

use homing_model::units::span;

/// The width of a drawing, in its own units.
pub(crate) const WIDTH: f64 = 1000.0;
/// The space for names at the left.
pub(crate) const LEFT: f64 = 88.0;
/// The width of the drawn time.
pub(crate) const SPAN: f64 = WIDTH - LEFT - 4.0;

/// Makes text safe inside elements and quoted attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Returns at most `width` characters.
pub(crate) fn clip(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}

/// Opens a section with a drawing of this height.
pub(crate) fn open(page: &mut String, title: &str, about: &str, height: f64) {
    page.push_str(&format!("<section><h2>{title}</h2><p class=\"quiet\">{about}</p>\n"));
    page.push_str(&format!(
        "<div class=\"wide\"><svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"{title}\">\n"
    ));
}

/// Closes the section that `open` opened.
pub(crate) fn close(page: &mut String) {
    page.push_str("</svg></div></section>\n");
}

/// Returns the position of a time, in units.
pub(crate) fn x(us: u64, length: u64) -> f64 {
    LEFT + us.min(length) as f64 / length as f64 * SPAN
}

/// Returns the first of 1, 2, 5 times a power of ten that cuts `most` into at most `parts`.
pub(crate) fn nice_step(most: f64, parts: f64) -> f64 {
    let rough = (most / parts).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= rough * 0.999).unwrap_or(10.0);
    factor * power
}

/// Returns a step of the time axis: a step of a clock from half a second on, and a decimal one below.
fn time_step(length: u64) -> u64 {
    const SECONDS: [u64; 16] = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 28_800];
    let rough = length / 8;
    if rough < 500_000 {
        return (nice_step(length as f64, 8.0) as u64).max(1);
    }
    SECONDS.into_iter().map(|s| s * 1_000_000).find(|s| *s >= rough).unwrap_or(length.div_ceil(8))
}

/// Draws lines and labels of time, from `top` to `bottom`, the labels below.
pub(crate) fn time_axis(page: &mut String, length: u64, top: f64, bottom: f64) {
    let step = time_step(length);
    let mut at = 0;
    while at <= length {
        let (px, label) = (x(at, length), if at == 0 { "0".to_string() } else { tick(at) });
        page.push_str(&format!("<path class=\"grid\" d=\"M{px:.1} {top:.0}V{bottom:.0}\"/>"));
        if px < WIDTH - 24.0 {
            page.push_str(&format!("<text class=\"mid\" x=\"{px:.1}\" y=\"{:.0}\">{label}</text>\n", bottom + 16.0));
        }
        at += step;
    }
}

/// Formats a time of the axis, without the zeros that `span` keeps for alignment.
fn tick(us: u64) -> String {
    span(us).replace(".0 s", " s").replace(" min 00 s", " min").replace(" h 00 min", " h")
}

/// Draws a value axis: lines and labels at round values up to `most`.
pub(crate) fn value_axis(page: &mut String, most: f64, top: f64, bottom: f64, label: impl Fn(f64) -> String) {
    let step = nice_step(most, 3.0);
    let mut at = 0.0;
    while at <= most * 1.001 {
        let y = bottom - at / most * (bottom - top);
        page.push_str(&format!("<path class=\"grid\" d=\"M{LEFT} {y:.1}H{:.0}\"/>", LEFT + SPAN));
        page.push_str(&format!(
            "<text class=\"end\" x=\"{:.0}\" y=\"{:.1}\">{}</text>\n",
            LEFT - 8.0,
            y + 4.0,
            label(at)
        ));
        at += step;
    }
}

/// Draws a stepped area of equal bins from the axis at `bottom` upwards.
pub(crate) fn area(page: &mut String, class: &str, values: &[f64], most: f64, top: f64, bottom: f64) {
    let wide = SPAN / values.len().max(1) as f64;
    let mut path = format!("M{LEFT} {bottom:.0}");
    for (n, value) in values.iter().enumerate() {
        let y = bottom - (value / most).clamp(0.0, 1.0) * (bottom - top);
        path.push_str(&format!("V{y:.1}H{:.1}", LEFT + wide * (n + 1) as f64));
    }
    page.push_str(&format!("<path class=\"{class}\" d=\"{path}V{bottom:.0}Z\"/>\n"));
}

/// Draws a strip of equal cells. Values from 0 to 1 become one of eight shades. Equal neighbours become one shape, so
/// a long strip stays small.
pub(crate) fn strip(page: &mut String, class: &str, values: &[Option<f64>], top: f64, height: f64) {
    let wide = SPAN / values.len().max(1) as f64;
    let shade = |v: &Option<f64>| v.map(|v| if v <= 0.0 { 0 } else { (v * 8.0).ceil().clamp(1.0, 8.0) as usize });
    let mut paths: [String; 9] = Default::default();
    let mut from = 0;
    while from < values.len() {
        let this = shade(&values[from]);
        let to = (from..values.len()).find(|n| shade(&values[*n]) != this).unwrap_or(values.len());
        if let Some(level) = this {
            let (a, b) = (LEFT + wide * from as f64, wide * (to - from) as f64);
            paths[level].push_str(&format!("M{a:.1} {top:.1}h{b:.1}v{height:.1}h-{b:.1}z"));
        }
        from = to;
    }
    for (level, path) in paths.iter().enumerate().filter(|(_, p)| !p.is_empty()) {
        page.push_str(&format!("<path class=\"{class} l{level}\" d=\"{path}\"/>"));
    }
    page.push('\n');
}
