//! Reads durations, sizes and numbers of jobs in GNU parallel's syntax.

use crate::error::BatchError;
use std::ops::RangeInclusive;
use std::time::Duration;

/// `--timeout`: a time, or a percentage of the median run time so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timeout {
    /// This long.
    After(Duration),
    /// This many times the median (`200%` is 2).
    OfMedian(f64),
}

impl Timeout {
    /// Reads `10`, `1.5`, `2m`, `1h30m` or `200%`.
    pub fn parse(text: &str) -> Result<Self, BatchError> {
        match text.strip_suffix('%') {
            Some(number) => match number.parse::<f64>() {
                Ok(percent) if percent > 0.0 && percent.is_finite() => Ok(Timeout::OfMedian(percent / 100.0)),
                _ => Err(BatchError::value("--timeout", text, "a percentage must be more than 0, e.g. 200%")),
            },
            None => parse_duration("--timeout", text).map(Timeout::After),
        }
    }

    /// Returns the limit, given the median run time of the tasks that succeeded. `None` while there is no median yet.
    pub fn limit(&self, median: Option<Duration>) -> Option<Duration> {
        match self {
            Timeout::After(limit) => Some(*limit),
            Timeout::OfMedian(factor) => median.map(|m| m.mul_f64(*factor)),
        }
    }
}

/// Reads a duration: seconds, or numbers with `s`, `m`, `h`, `d` after them (`1h30m`, `1.5d`, `1m30`). `option` is
/// for the message.
pub fn parse_duration(option: &'static str, text: &str) -> Result<Duration, BatchError> {
    let bad = || BatchError::value(option, text, "a time is seconds, or like 90s, 2m, 1h30m, 1.5d");
    let mut seconds = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().map_err(|_| bad())?;
        let mut after = rest[end..].chars();
        let unit = match after.next().map(|c| c.to_ascii_lowercase()) {
            None | Some('s') => 1.0,
            Some('m') => 60.0,
            Some('h') => 3600.0,
            Some('d') => 86400.0,
            Some(_) => return Err(bad()),
        };
        seconds += number * unit;
        rest = after.as_str();
    }
    if text.is_empty() { Err(bad()) } else { Duration::try_from_secs_f64(seconds).map_err(|_| bad()) }
}

/// Reads a duration as [`parse_duration`] does, and refuses one out of a range of seconds.
pub fn parse_duration_within(
    option: &'static str,
    text: &str,
    range: RangeInclusive<f64>,
) -> Result<Duration, BatchError> {
    let duration = parse_duration(option, text)?;
    if range.contains(&duration.as_secs_f64()) {
        return Ok(duration);
    }
    let reason = match range.end().is_finite() {
        true => format!("from {} to {} seconds", range.start(), range.end()),
        false if *range.start() >= 1.0 => format!("at least {} s", range.start()),
        false => "a time is more than 0".to_string(),
    };
    Err(BatchError::value(option, text, reason))
}

/// Reads a duration as [`parse_duration_within`] does, in whole seconds. A part of a second counts as one.
pub fn parse_seconds(option: &'static str, text: &str, range: RangeInclusive<u64>) -> Result<u64, BatchError> {
    let end = if *range.end() == u64::MAX { f64::INFINITY } else { *range.end() as f64 };
    parse_duration_within(option, text, *range.start() as f64..=end).map(|time| time.as_secs_f64().ceil() as u64)
}

/// Reads whole minutes: a number without a unit is minutes, others are as [`parse_duration`] reads them. A part of a
/// minute counts as one.
pub fn parse_minutes(option: &'static str, text: &str) -> Result<u32, BatchError> {
    if let Ok(minutes) = text.parse() {
        return Ok(minutes);
    }
    let minutes = parse_duration(option, text)?.as_secs_f64() / 60.0;
    Ok(minutes.ceil() as u32)
}

/// Reads a size in bytes: `K M G T P` are powers of 1024, also as `Ki`, `ki`; `k m g t p` are powers of 1000.
/// `option` is for the message.
pub fn parse_size(option: &'static str, text: &str) -> Result<u64, BatchError> {
    let bytes = scaled(text).filter(|bytes| *bytes < u64::MAX as f64);
    let wrong = || BatchError::value(option, text, "a size is a number of bytes, or like 64M, 2G, 1.5T, 500k");
    bytes.map(|bytes| bytes as u64).ok_or_else(wrong)
}

/// Reads a number with the letters of [`parse_size`].
pub fn scaled(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let mut letters = unit.chars();
    let Some(letter) = letters.next() else { return Some(number) };
    let power = "kmgtp".find(letter.to_ascii_lowercase())? as i32 + 1;
    let binary = match letters.as_str() {
        "" => letter.is_ascii_uppercase(),
        "i" | "I" => true,
        _ => return None,
    };
    Some(number * if binary { 1024f64.powi(power) } else { 1000f64.powi(power) })
}

/// Reads `--jobs`, or another `option`, for a host with this many cores: `8`, `+2`, `-1`, `150%`; `0` is as many as
/// possible, returned as `u32::MAX`. Never returns less than 1.
pub fn jobs(option: &'static str, text: &str, cores: u32) -> Result<u32, BatchError> {
    let bad = || {
        BatchError::value(
            option,
            text,
            "use a number, +N or -N relative to the cores, N% of the cores, or 0 for no limit",
        )
    };
    let whole = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| digits.parse::<u32>().ok()).flatten().ok_or_else(bad)
    };
    let slots = if let Some(more) = text.strip_prefix('+') {
        cores.saturating_add(whole(more)?)
    } else if let Some(less) = text.strip_prefix('-') {
        cores.saturating_sub(whole(less)?)
    } else if let Some(percent) = text.strip_suffix('%') {
        let valid = percent.starts_with(|c: char| c.is_ascii_digit());
        let percent: f64 = percent.parse().ok().filter(|_| valid).ok_or_else(bad)?;
        (f64::from(cores) * percent / 100.0).ceil() as u32
    } else {
        match whole(text)? {
            0 => u32::MAX,
            n => n,
        }
    };
    Ok(slots.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ms) in [
            ("10", 10_000),
            ("1.5", 1_500),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("1d", 86_400_000),
            ("1m30", 90_000),
            ("0.5S", 500),
        ] {
            assert_eq!(parse_duration("--delay", text).unwrap(), Duration::from_millis(ms), "{text}");
        }
        for text in ["", "m", "-1", "1x", "1..2", "ten", "1e3", "1m%"] {
            assert!(parse_duration("--delay", text).is_err(), "{text}");
        }
        let half = Timeout::parse("200%").unwrap();
        assert_eq!(half.limit(Some(Duration::from_secs(3))), Some(Duration::from_secs(6)));
        assert_eq!(half.limit(None), None);
        assert!(Timeout::parse("%").is_err() && Timeout::parse("-5%").is_err());
    }

    #[test]
    fn a_time_has_the_same_words_in_seconds_and_in_minutes() {
        let whole = |text| parse_seconds("-u", text, 1..=3600).map_err(|e| e.to_string());
        assert_eq!((whole("30"), whole("1m"), whole("1h"), whole("1.5")), (Ok(30), Ok(60), Ok(3600), Ok(2)));
        assert_eq!(whole("0").unwrap_err(), "-u '0': from 1 to 3600 seconds");
        assert_eq!(whole("2h").unwrap_err(), "-u '2h': from 1 to 3600 seconds");
        assert!(whole("5x").unwrap_err().contains("like 90s, 2m, 1h30m"));
        assert_eq!(parse_seconds("-u", "0", 1..=u64::MAX).unwrap_err().to_string(), "-u '0': at least 1 s");
        assert_eq!(parse_seconds("-u", "9000d", 0..=u64::MAX).unwrap(), 777_600_000);
        let part = parse_duration_within("-t", "0", f64::MIN_POSITIVE..=f64::INFINITY);
        assert_eq!(part.unwrap_err().to_string(), "-t '0': a time is more than 0");
        let minutes = |text| parse_minutes("--spread", text).ok();
        assert_eq!(
            [minutes("60"), minutes("0"), minutes("90s"), minutes("2h")],
            [Some(60), Some(0), Some(2), Some(120)]
        );
        assert_eq!(minutes("x"), None);
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [
            ("0", 0),
            ("64M", 64 << 20),
            ("2G", 2 << 30),
            ("1k", 1000),
            ("1K", 1024),
            ("1ki", 1024),
            ("1.5m", 1_500_000),
        ] {
            assert_eq!(parse_size("--memfree", text).unwrap(), bytes, "{text}");
        }
        for text in ["", "G", "-1", "1q", "1Mb", "1e9", "9999999P"] {
            assert!(parse_size("--memfree", text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_of_jobs() {
        for (text, slots) in
            [("8", 8), ("+2", 6), ("-1", 3), ("-9", 1), ("200%", 8), ("30%", 2), ("0", u32::MAX), ("0%", 1)]
        {
            assert_eq!(jobs("--jobs", text, 4).unwrap(), slots, "{text}");
        }
        for text in ["", "x", "+", "-", "%", "1.5", "+-1", "nan%", "-5%"] {
            assert!(jobs("--jobs", text, 4).is_err(), "{text}");
        }
    }
}
