//! Decides whether this host's clock can be trusted before anything is removed by it. The module is pure.

use crate::image::Image;
use crate::order::{TOLERANCE, misdated};
use homing_model::text::shown;
use homing_model::units;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Images are made on a schedule. A gap of more than twice the longest earlier one means that the clock was set, or
/// that the host was off. The next image then shows which.
const LONGER: i32 = 2;

/// The clock of a host, as it was when an order was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostClock {
    /// The host.
    pub host: String,
    /// Its time.
    pub at: Timestamp,
}

/// A date that this host's clock is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Its name for users: `the clock of n1`.
    pub of: String,
    /// The date.
    pub at: Timestamp,
    /// This host's clock at that moment.
    pub here: Timestamp,
    /// Whether the date may be before this host's, as that of a file written some time ago.
    pub may_be_old: bool,
}

impl ClockReading {
    /// Returns the clocks that came with an order, compared at once.
    pub fn of_hosts(clocks: &[HostClock], here: Timestamp) -> Vec<ClockReading> {
        let reading = |clock: &HostClock| {
            let of = format!("the clock of {}", shown(&clock.host));
            ClockReading { of, at: clock.at, here, may_be_old: false }
        };
        clocks.iter().map(reading).collect()
    }

    /// Returns the time that the clock should show now: `begun` and the time `passed` of a clock that nobody sets.
    pub fn since(begun: Timestamp, passed: Duration, now: Timestamp) -> ClockReading {
        let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::ZERO);
        let at = begun.checked_add(passed).unwrap_or(now);
        ClockReading { of: "the start of the copy plus its duration".into(), at, here: now, may_be_old: false }
    }

    fn contradicts(&self) -> Option<String> {
        let by = self.at.duration_since(self.here);
        let wrong = by > TOLERANCE || by < -TOLERANCE && !self.may_be_old;
        let side = if by > SignedDuration::ZERO { "later" } else { "earlier" };
        let why = || format!("{} is {} {side} than this host's clock, {}", self.of, length(by), date(self.here));
        wrong.then(why)
    }
}

/// Returns why this host's clock cannot be trusted; `None`: nothing contradicts it. `images`: in their order.
pub fn of_clock(images: &[Image], now: Timestamp, readings: &[ClockReading]) -> Option<String> {
    let dated: Vec<(&str, Timestamp)> =
        images.iter().filter_map(|image| Some((image.name.as_str(), image.created?))).collect();
    // The last two are compared, because the newest one may have been made under this very clock.
    let newest = dated.iter().rev().take(2).map(|(name, at)| ClockReading {
        of: format!("the date of the image {}", shown(name)),
        at: *at,
        here: now,
        may_be_old: true,
    });
    let contradicts = |reading: ClockReading| reading.contradicts();
    let wrong = misdated(images);
    let sound: Vec<(&str, Timestamp)> = dated.iter().copied().filter(|(name, _)| !wrong.contains(*name)).collect();
    newest.chain(readings.iter().cloned()).find_map(contradicts).or_else(|| gap(&sound, now))
}

/// Reports a gap that is too long for a vault whose images are made on a schedule.
fn gap(dated: &[(&str, Timestamp)], now: Timestamp) -> Option<String> {
    let (last, before) = dated.split_last()?;
    let lengths = dated.windows(2).map(|pair| pair[1].1.duration_since(pair[0].1));
    let lengths: Vec<SignedDuration> = lengths.collect();
    let (newest_gap, earlier) = lengths.split_last()?;
    // With two or three images nothing is removed, and no schedule can be inferred.
    let longest = *earlier.iter().max().filter(|_| earlier.len() >= 2)?;
    let most = TOLERANCE + longest.max(SignedDuration::ZERO).checked_mul(LONGER)?;
    let since = now.duration_since(last.1);
    let usual = || format!("before that, the longest time between two images was {}", length(longest));
    if since > most {
        let name = shown(last.0);
        return Some(format!(
            "by this host's clock, {}, the newest image {name} is {} old; {}",
            date(now),
            length(since),
            usual()
        ));
    }
    let (name, earlier) = (shown(last.0), shown(before.last()?.0));
    let why =
        || format!("the images {earlier} and {name} are {} apart by their dates; {}", length(*newest_gap), usual());
    (*newest_gap > most).then(why)
}

fn length(time: SignedDuration) -> String {
    let days = time.as_hours().unsigned_abs() / 24;
    if days > 1 {
        return units::count(days, "day");
    }
    units::span(u64::try_from(time.unsigned_abs().as_micros()).unwrap_or(u64::MAX))
}

fn date(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(day: &str) -> Timestamp {
        format!("{day}T02:00:00Z").parse().unwrap()
    }

    fn images(days: &[&str]) -> Vec<Image> {
        days.iter().map(|day| Image { name: day.to_string(), created: Some(at(day)), ..Image::default() }).collect()
    }

    fn doubt(days: &[&str], now: &str) -> Option<String> {
        of_clock(&images(days), at(now), &[])
    }

    #[test]
    fn an_image_of_the_future_and_a_jump_of_the_clock_are_seen_and_heal_with_the_next_images() {
        let nights = ["2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"];
        let with = |more: &[&'static str]| [&nights[..], more].concat();
        assert_eq!(doubt(&nights, "2026-03-05"), None);
        // A year ahead, before and after the image was made.
        assert!(doubt(&nights, "2027-03-05").unwrap().contains("longest time"));
        assert!(doubt(&with(&["2027-03-05"]), "2027-03-05").unwrap().contains("apart by their dates"));
        // The clock is right again, and the wrong image has a date in the future. One more image ends the doubt.
        assert!(doubt(&with(&["2027-03-05"]), "2026-03-06").unwrap().contains("later than this host's clock"));
        assert!(doubt(&with(&["2027-03-05", "2026-03-06"]), "2026-03-06").is_some());
        assert_eq!(doubt(&with(&["2027-03-05", "2026-03-06", "2026-03-07"]), "2026-03-07"), None);
        // The image of the wrong clock does not make a second jump normal.
        assert!(doubt(&with(&["2027-03-05", "2026-03-06", "2026-03-07"]), "2027-01-07").is_some());
        // A year behind.
        assert!(doubt(&nights, "2025-03-05").unwrap().contains("later"));
        // The host was off for a month: the second image after it ends the doubt.
        assert!(doubt(&with(&["2026-04-05"]), "2026-04-05").is_some());
        assert_eq!(doubt(&with(&["2026-04-05", "2026-04-06"]), "2026-04-06"), None);
        // Weekly images, and a vault that has just begun.
        assert_eq!(doubt(&["2026-03-01", "2026-03-08", "2026-03-15", "2026-03-22"], "2026-03-29"), None);
        assert_eq!(doubt(&nights[..2], "2026-05-01"), None);
    }

    #[test]
    fn other_clocks_and_files_that_contradict_by_more_than_a_day_are_named() {
        let reading = |at: &str, may_be_old| ClockReading {
            of: "the clock of n1".into(),
            at: format!("{at}T02:00:00Z").parse().unwrap(),
            here: "2026-03-05T02:00:00Z".parse().unwrap(),
            may_be_old,
        };
        let of = |reading| of_clock(&[], at("2026-03-05"), &[reading]);
        assert_eq!(of(reading("2026-03-06", false)), None);
        assert!(of(reading("2026-03-07", false)).unwrap().starts_with("the clock of n1 is "));
        assert!(of(reading("2026-03-03", false)).unwrap().contains("earlier"));
        assert_eq!(of(reading("2020-03-03", true)), None);
    }
}
