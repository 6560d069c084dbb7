//! Formats numbers for people, the same way everywhere. Bytes are decimal, as disks and links are sold.

use std::time::Duration;

/// Formats bytes: `1.9 GB`, `640 B`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if n < 1000 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1000.0;
    let mut unit = 0;
    // 999.5 would be printed as 1000.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if value < 99.95 { format!("{value:.1} {}", UNITS[unit]) } else { format!("{value:.0} {}", UNITS[unit]) }
}

/// Parses a link's rate as on the label of a network card, in bits per second: `10G`, `200mbit`, `2.5gbps`. Units are
/// powers of 1000. Returns `None` if it is no rate.
pub fn bit_rate(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let number: f64 = text[..unit_at].parse().ok()?;
    let factor = match text[unit_at..].trim_start() {
        "bit" => 1.0,
        "k" | "kbit" | "kbps" => 1e3,
        "m" | "mbit" | "mbps" => 1e6,
        "g" | "gbit" | "gbps" => 1e9,
        "t" | "tbit" | "tbps" => 1e12,
        _ => return None,
    };
    let rate = number * factor;
    (1.0..1e18).contains(&rate).then_some(rate as u64)
}

/// Formats a time: `850 µs`, `12 ms`, `3.4 s`, `5 min 12 s`, `2 h 05 min`.
pub fn span(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..999_500 => format!("{} ms", (us + 500) / 1_000),
        999_500..59_950_000 => format!("{:.1} s", us as f64 / 1e6),
        59_950_000..3_599_500_000 => {
            let s = (us + 500_000) / 1_000_000;
            format!("{} min {:02} s", s / 60, s % 60)
        }
        _ => {
            let min = (us + 30_000_000) / 60_000_000;
            format!("{} h {:02} min", min / 60, min % 60)
        }
    }
}

/// As [`span`], for whole seconds.
pub fn seconds(seconds: u64) -> String {
    if seconds < 60 { format!("{seconds} s") } else { span(seconds.saturating_mul(1_000_000)) }
}

/// Formats a time for a line with little room: `45 s`, `12:05 min`, `2:10 h`.
pub fn short_span(time: Duration) -> String {
    let s = time.as_secs_f64().round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{}:{:02} min", s / 60, s % 60),
        _ => format!("{}:{:02} h", s / 3600, s % 3600 / 60),
    }
}

/// Formats a percentage, `95 %`. Only an exact value is shown as 0 % or 100 %.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "0 %".into();
    }
    let exact = part as f64 * 100.0 / whole as f64;
    match exact.round() as u64 {
        0 if part > 0 => "<1 %".into(),
        100 if part < whole => ">99 %".into(),
        rounded => format!("{rounded} %"),
    }
}

/// Formats a number of things: `1 task`, `2 tasks`.
pub fn count(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bits() {
        assert_eq!(
            ["10G", "200mbit", "2.5 gbps"].map(bit_rate),
            [10_000_000_000, 200_000_000, 2_500_000_000].map(Some)
        );
        assert_eq!(["", "G", "10", "10GB", "-1G", "0G", "1e9G", "..G", "fast"].map(bit_rate), [None; 9]);
    }

    #[test]
    fn numbers_read_well_at_their_edges() {
        let sizes = [0, 999, 1_000, 999_400, 999_960, 2_000_000_000, u64::MAX].map(bytes);
        assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "999 kB", "1.0 MB", "2.0 GB", "18.4 EB"]);
        assert_eq!(
            [5, 12_400, 3_449_000, 59_960_000, 7_500_000_000].map(span),
            ["5 µs", "12 ms", "3.4 s", "1 min 00 s", "2 h 05 min"]
        );
        let short = [0, 59, 60, 725, 3599, 7_799, 180_000].map(|s| short_span(Duration::from_secs(s)));
        assert_eq!(short, ["0 s", "59 s", "1:00 min", "12:05 min", "59:59 min", "2:09 h", "50:00 h"]);
        assert_eq!(
            [percent(1, 1000), percent(999, 1000), percent(1, 2), percent(0, 0)],
            ["<1 %", ">99 %", "50 %", "0 %"]
        );
    }
}
