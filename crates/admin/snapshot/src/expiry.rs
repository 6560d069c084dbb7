//! Decides when an image expires: dirvish's expire rules, and the form of their dates.

use crate::period;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ToSpan};

/// The expiry that the rules give an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// The words of the rule, or of the default: `+15 days`; `None`: never.
    pub words: Option<String>,
    /// The moment; `None`: never.
    pub at: Option<Timestamp>,
    /// The rule that matched.
    pub rule: Option<String>,
}

/// Returns the expiry of an image that is made `now`: of the last rule that matches, else the default, as in dirvish.
///
/// # Errors
/// The chosen words, if they are no date.
pub fn of(rules: &[String], default: &str, now: Timestamp, zone: &TimeZone) -> Result<Expiry, String> {
    let local = zone.to_datetime(now);
    let matched = rules.iter().rev().find_map(|rule| matches(rule, local).map(|words| (rule, words)));
    let (rule, words) = matched.map_or((None, ""), |(rule, words)| (Some(rule.clone()), words));
    let words = if words.is_empty() { default } else { words };
    if words.is_empty() || is_never(words) {
        return Ok(Expiry { words: None, at: None, rule });
    }
    let at = moment(words, now, zone).ok_or_else(|| unclear(words))?;
    Ok(Expiry { words: Some(words.into()), at: Some(at), rule })
}

/// Refuses rules and dates that have no meaning: dirvish would remove such images at once, or never.
///
/// # Errors
/// The rule or date, and the forms that are understood.
pub fn check(rules: &[String], default: &str) -> Result<(), String> {
    let some_day = Date::constant(2026, 1, 1).at(0, 0, 0, 0);
    for rule in rules {
        let (period, words) = parts(rule);
        if period::holds(&period, some_day).is_err() || fields_missing(rule) {
            return Err(format!("{rule:?} is not an expiry rule: MIN HOUR DAY MONTH WEEKDAY +15 days"));
        }
        date_is_clear(words)?;
    }
    date_is_clear(default)
}

fn date_is_clear(words: &str) -> Result<(), String> {
    let clear = words.is_empty() || is_never(words) || moment(words, Timestamp::UNIX_EPOCH, &TimeZone::UTC).is_some();
    if clear { Ok(()) } else { Err(unclear(words)) }
}

fn unclear(words: &str) -> String {
    format!("{words:?} is not a date: use +15 days, +3 months, 2027-01-31 or Never")
}

fn is_never(words: &str) -> bool {
    words.to_ascii_lowercase().contains("never")
}

fn fields_missing(rule: &str) -> bool {
    !rule.contains('{') && rule.split_whitespace().count() < 5
}

/// Returns the date of a rule that matches. A rule without a date means never.
fn matches(rule: &str, at: DateTime) -> Option<&str> {
    let (period, words) = parts(rule);
    match (period.is_empty(), period::holds(&period, at)) {
        (true, _) => Some(words),
        (false, Ok(true)) => Some(if words.is_empty() { "Never" } else { words }),
        _ => None,
    }
}

/// Returns the period of a rule, and its date.
fn parts(rule: &str) -> (String, &str) {
    if let Some(end) = rule.rfind('}').filter(|_| rule.contains('{')) {
        return (rule[..=end].to_string(), rule[end + 1..].trim());
    }
    let mut fields = Vec::new();
    let mut rest = rule.trim();
    while fields.len() < 5 && !rest.is_empty() {
        let (field, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        fields.push(field);
        rest = behind.trim_start();
    }
    (period::of_cron(&fields), rest)
}

/// Parses a date: `+15 days`, `3 months`, `2027-01-31`, `2027-01-31 10:00:00`. Days, weeks, months and years keep the
/// hour over a change of summer time. The 31st becomes the last day of a shorter month.
pub fn moment(words: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let words = words.trim();
    let local = match span(words) {
        Some(Length::Exact(seconds)) => return now.checked_add(seconds.seconds()).ok(),
        Some(Length::Calendar(span)) => zone.to_datetime(now).checked_add(span).ok()?,
        None => parse(words)?,
    };
    zone.to_timestamp(local).ok()
}

/// The form of a summary's dates.
pub const WRITTEN: &str = "%Y-%m-%d %H:%M:%S";

fn parse(words: &str) -> Option<DateTime> {
    DateTime::strptime(WRITTEN, words).ok().or_else(|| Date::strptime("%Y-%m-%d", words).ok().map(|d| d.at(0, 0, 0, 0)))
}

/// Returns a date in that form.
pub fn written(at: Timestamp, zone: &TimeZone) -> String {
    zone.to_datetime(at).strftime(WRITTEN).to_string()
}

enum Length {
    Exact(i64),
    Calendar(Span),
}

fn span(words: &str) -> Option<Length> {
    let (minus, rest) = match words.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, words.strip_prefix('+').unwrap_or(words)),
    };
    let rest = rest.trim_start();
    let digits = rest.find(|c: char| !c.is_ascii_digit())?;
    let count: i64 = rest[..digits].parse().ok().filter(|n: &i64| *n <= 1_000_000)?;
    let count = if minus { -count } else { count };
    let unit = rest[digits..].trim().to_ascii_lowercase();
    let day = |days: i64| Span::new().try_days(days).ok().map(Length::Calendar);
    let month = |months: i64| Span::new().try_months(months).ok().map(Length::Calendar);
    match unit.strip_suffix('s').unwrap_or(&unit) {
        "sec" | "second" => Some(Length::Exact(count)),
        "min" | "minute" => Some(Length::Exact(60 * count)),
        "hour" => Some(Length::Exact(3600 * count)),
        "day" => day(count),
        "week" => day(7 * count),
        "month" => month(count),
        "year" => month(12 * count),
        _ => None,
    }
}
