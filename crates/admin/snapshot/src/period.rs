//! Periods of time as dirvish's rules have them: the language of Perl's `Time::Period` 1.25, and cron's five fields.

use jiff::civil::DateTime;

/// A rule without a meaning, which dirvish ignores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["su", "mo", "tu", "we", "th", "fr", "sa"];
/// A scale's code and its long name.
const SCALES: [(&str, &str); 9] = [
    ("yr", "year"),
    ("mo", "month"),
    ("wk", "week"),
    ("yd", "yday"),
    ("md", "mday"),
    ("wd", "wday"),
    ("hr", "hour"),
    ("min", "minute"),
    ("sec", "second"),
];

/// Returns whether a local time is in a period such as `wd {1 3} hr {9-17}, md {1}`.
pub fn holds(period: &str, at: DateTime) -> Result<bool, Malformed> {
    let period = period.trim().to_ascii_lowercase();
    match period.as_str() {
        "" => return Ok(true),
        "none" => return Ok(false),
        _ => {}
    }
    for part in period.trim_end_matches(',').split(',') {
        if all_scales(part.trim(), at)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the five fields of a rule in cron's form as a period; empty if all are `*`.
pub fn of_cron(fields: &[&str]) -> String {
    let scales = ["min", "hr", "md", "mo", "wd"];
    let told = scales.iter().zip(fields).filter(|(_, field)| **field != "*");
    told.map(|(scale, field)| format!("{scale} {{ {} }} ", field.replace(',', " "))).collect()
}

/// Whether all scales of one part hold. Of several entries with the same scale one is enough.
fn all_scales(part: &str, at: DateTime) -> Result<bool, Malformed> {
    let mut found: Vec<(&str, bool)> = Vec::new();
    let mut rest = part;
    while !rest.is_empty() {
        let (scale, ranges) = rest.split_once('{').ok_or(Malformed)?;
        let (ranges, behind) = ranges.split_once('}').ok_or(Malformed)?;
        let scale = code(scale.trim_end())?;
        let held = any_range(scale, ranges, at)?;
        match found.iter_mut().find(|(known, _)| *known == scale) {
            Some((_, holds)) => *holds |= held,
            None => found.push((scale, held)),
        }
        rest = behind.trim_start();
    }
    if found.is_empty() { Err(Malformed) } else { Ok(found.iter().all(|(_, holds)| *holds)) }
}

fn code(scale: &str) -> Result<&'static str, Malformed> {
    let known = SCALES.iter().find(|(short, long)| scale == *short || scale == *long);
    known.map(|(short, _)| *short).ok_or(Malformed)
}

fn any_range(scale: &str, ranges: &str, at: DateTime) -> Result<bool, Malformed> {
    let mut holds = false;
    for range in closed_up(ranges).split_whitespace() {
        holds |= in_range(scale, range, at)?;
    }
    Ok(holds)
}

/// Returns `1 - 5` as `1-5`.
fn closed_up(ranges: &str) -> String {
    let mut text = String::new();
    for word in ranges.replace('-', " - ").split_whitespace() {
        let joined = word == "-" || text.ends_with('-');
        if !joined && !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

fn in_range(scale: &str, range: &str, at: DateTime) -> Result<bool, Malformed> {
    let now = now_on(scale, at);
    let (from, to) = match range.split_once('-') {
        Some((from, to)) => (value(scale, from, at)?, value(scale, to, at)?),
        None => (value(scale, range, at)?, value(scale, range, at)?),
    };
    Ok(match (from <= to, scale) {
        (true, _) => (from..=to).contains(&now),
        // Years do not wrap around.
        (false, "yr") => (to..=from).contains(&now),
        (false, _) => now >= from || now <= to,
    })
}

fn now_on(scale: &str, at: DateTime) -> i32 {
    match scale {
        "yr" => at.year().into(),
        "mo" => at.month().into(),
        "wk" => week(at),
        "yd" => at.day_of_year().into(),
        "md" => at.day().into(),
        "wd" => i32::from(at.weekday().to_sunday_zero_offset()) + 1,
        "hr" => at.hour().into(),
        "min" => at.minute().into(),
        _ => at.second().into(),
    }
}

/// Returns the week of the month. Weeks begin on Sunday; the first one on the month's first day.
fn week(at: DateTime) -> i32 {
    let sunday = i32::from(at.day()) - i32::from(at.weekday().to_sunday_zero_offset());
    // Sundays from the second day of the month up to this one.
    let sundays = (0..6).map(|weeks| sunday - 7 * weeks).filter(|day| *day >= 2).count();
    sundays as i32 + 1
}

fn value(scale: &str, text: &str, at: DateTime) -> Result<i32, Malformed> {
    let named = |names: &[&str], letters: usize| {
        let start: String = text.chars().take(letters).collect();
        names.iter().position(|name| *name == start).map(|at| at as i32 + 1).ok_or(Malformed)
    };
    let letters = text.bytes().any(|b| b.is_ascii_alphabetic());
    let (value, least, most) = match scale {
        "mo" if letters => (named(&MONTHS, 3)?, 1, 12),
        "wd" if letters => (named(&DAYS, 2)?, 1, 7),
        "yr" => return year(number(text)?, at),
        "hr" => (hour(text)?, 0, 23),
        "mo" => (number(text)?, 1, 12),
        "wk" => (number(text)?, 1, 6),
        "yd" => (number(text)?, 1, 366),
        "md" => (number(text)?, 1, 31),
        "wd" => (number(text)?, 1, 7),
        _ => (number(text)?, 0, 59),
    };
    if (least..=most).contains(&value) { Ok(value) } else { Err(Malformed) }
}

fn number(text: &str) -> Result<i32, Malformed> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().map_err(|_| Malformed) } else { Err(Malformed) }
}

/// Years of two digits are in the present century.
fn year(year: i32, at: DateTime) -> Result<i32, Malformed> {
    match year {
        0..=99 => Ok(i32::from(at.year()) / 100 * 100 + year),
        1970.. => Ok(year),
        _ => Err(Malformed),
    }
}

fn hour(text: &str) -> Result<i32, Malformed> {
    if let Some(noon) = text.strip_suffix("noon") {
        return number(noon).and_then(|hour| if hour == 12 { Ok(12) } else { Err(Malformed) });
    }
    match (text.strip_suffix("am"), text.strip_suffix("pm")) {
        (Some(hour), _) => number(hour).map(|hour| if hour == 12 { 0 } else { hour }),
        (_, Some(hour)) => number(hour).map(|hour| if hour == 12 { 12 } else { hour + 12 }),
        _ => number(text),
    }
}
