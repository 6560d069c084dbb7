//! Times as LSF reads and writes them.

use jiff::tz::TimeZone;

/// Parses `-W [hour:]minute[/host]` into seconds.
pub fn run_limit(text: &str) -> Result<u64, String> {
    let bad = || format!("{text}: Bad RUNLIMIT specification");
    let time = text.split('/').next().unwrap_or_default();
    let (hours, minutes) = time.split_once(':').unwrap_or(("0", time));
    let number = |t: &str| t.trim().parse::<u64>().ok();
    let seconds = || number(hours)?.checked_mul(60)?.checked_add(number(minutes)?)?.checked_mul(60);
    seconds().ok_or_else(bad)
}

fn format(ns: i64, zone: &TimeZone, how: &str) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(ns)).unwrap_or_default();
    time.to_zoned(zone.clone()).strftime(how).to_string()
}

/// Formats `Mar 28 10:55`, for tables.
pub fn short(ns: i64, zone: &TimeZone) -> String {
    format(ns, zone, "%b %e %H:%M")
}

/// Formats `03/28-10:55:01`, for `bjobs -W`.
pub fn dense(ns: i64, zone: &TimeZone) -> String {
    format(ns, zone, "%m/%d-%H:%M:%S")
}

/// Formats `Wed Mar 28 10:55:01`, for the long forms.
pub fn long(ns: i64, zone: &TimeZone) -> String {
    format(ns, zone, "%a %b %e %H:%M:%S")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        assert_eq!(run_limit("90"), Ok(5400));
        assert_eq!(run_limit("01:30"), Ok(5400));
        assert_eq!(run_limit("2:00/rcss1"), Ok(7200));
        for bad in ["", "x", "1:x", "1:", "99999999999999999999", "-5"] {
            assert!(run_limit(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn stamps() {
        let at = 1_332_932_101_000_000_000;
        assert_eq!(short(at, &TimeZone::UTC), "Mar 28 10:55");
        assert_eq!(long(at, &TimeZone::UTC), "Wed Mar 28 10:55:01");
    }
}
