//! Times of the week in which a queue starts jobs, as LSF writes them. Pure.

use serde::{Deserialize, Serialize};

const DAY: u32 = 24 * 60;
const WEEK: u32 = 7 * DAY;

/// Windows such as `19:00-7:00`, or with days from Sunday = 0, `5:19:00-1:8:30`; several have blanks between them.
/// Without any the queue always starts jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Windows {
    text: String,
    all: Vec<Window>,
}

/// From a minute to a minute, of each day or of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    from: u32,
    to: u32,
    period: u32,
}

impl Windows {
    /// Whether a minute of the week is in one of them; the first minute of Sunday is 0.
    pub fn has(&self, minute: u32) -> bool {
        let within = |w: &Window| {
            let at = minute % w.period;
            if w.from <= w.to { (w.from..w.to).contains(&at) } else { at >= w.from || at < w.to }
        };
        self.all.is_empty() || self.all.iter().any(within)
    }
}

impl std::fmt::Display for Windows {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Windows> for String {
    fn from(windows: Windows) -> String {
        windows.text
    }
}

impl TryFrom<String> for Windows {
    type Error = String;

    fn try_from(text: String) -> Result<Windows, String> {
        let read = text.split_whitespace().map(window).collect::<Option<Vec<Window>>>();
        let bad = || format!("{text:?} is not a time window: \"19:00-7:00\", or with days \"5:19:00-1:8:30\"");
        Ok(Windows { all: read.ok_or_else(bad)?, text })
    }
}

fn window(text: &str) -> Option<Window> {
    let (from, to) = text.split_once('-')?;
    let ((from, weekly), (to, also)) = (moment(from)?, moment(to)?);
    (weekly == also && from != to).then_some(Window { from, to, period: if weekly { WEEK } else { DAY } })
}

/// Parses LSF's `[[day:]hour:]minute`: an hour alone, hour and minute, or the day before both. Returns the minute,
/// and whether it is of the week.
fn moment(text: &str) -> Option<(u32, bool)> {
    let numbers: Vec<u32> = text.split(':').map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let of_day = |hour: u32, minute: u32| (hour < 24 && minute < 60).then_some(hour * 60 + minute);
    match numbers[..] {
        [hour] => Some((of_day(hour, 0)?, false)),
        [hour, minute] => Some((of_day(hour, minute)?, false)),
        [day, hour, minute] if day < 8 => Some((day % 7 * DAY + of_day(hour, minute)?, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_of_days_and_of_the_week() {
        let has = |text: &str, day: u32, hour: u32, minute: u32| {
            Windows::try_from(text.to_string()).unwrap().has(day * DAY + hour * 60 + minute)
        };
        assert!(has("", 3, 12, 0));
        for (hour, minute, open) in [(19, 0, true), (23, 59, true), (6, 59, true), (7, 0, false), (18, 59, false)] {
            assert_eq!(has("19:00-7:00", 3, hour, minute), open, "{hour}:{minute}");
        }
        // From Friday evening to Monday morning; 7 is Sunday too.
        for (day, hour, open) in
            [(5, 18, false), (5, 19, true), (6, 12, true), (0, 0, true), (1, 8, true), (1, 9, false)]
        {
            assert_eq!(has("5:19:00-1:8:30", day, hour, 0), open, "{day} {hour}");
        }
        assert!(has("7:0:00-1:0:00", 0, 3, 0));
        assert!(has("12-13 20:30-21", 2, 20, 45) && !has("12-13 20:30-21", 2, 20, 15));
    }

    #[test]
    fn what_is_no_window_is_refused() {
        for bad in ["x", "7", "25-3", "7:60-8", "7-7", "1:7:00-8:00", "8:1:00-1:2:00", "-"] {
            assert!(Windows::try_from(bad.to_string()).unwrap_err().contains("not a time window"), "{bad}");
        }
    }
}
