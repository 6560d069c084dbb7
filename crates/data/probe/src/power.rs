//! Energy from occasional readings of a power meter: parses the readings, and sums them over time.

use homing_model::{Energy, MeteredBy};
use serde_json::Value;
use std::fs::{read_dir, read_to_string};
use std::path::Path;
use std::time::Duration;

/// The time for which a reading is valid.
const FRESH: Duration = Duration::from_secs(300);
/// The largest plausible reading, watts.
const MOST: f64 = 1e6;

/// The energy of a host since a moment.
#[derive(Clone, Debug)]
pub struct HostEnergy {
    by: MeteredBy,
    at: Duration,
    /// The last reading, watts, and its time.
    last: Option<(f64, Duration)>,
    uj: f64,
    over: Duration,
}

impl HostEnergy {
    /// Begins at `now`, a time on a clock that does not go back.
    pub fn begin(by: MeteredBy, now: Duration) -> HostEnergy {
        HostEnergy { by, at: now, last: None, uj: 0.0, over: Duration::ZERO }
    }

    /// Adds a reading, watts. The first reading also counts for the time before it, because a meter takes time to
    /// answer.
    pub fn add_reading(&mut self, watts: f64, now: Duration) {
        if self.last.is_none() {
            self.last = Some((watts, now));
        }
        self.look(now);
        self.at = now;
        self.last = Some((watts, now));
    }

    /// Returns the energy used since the beginning; `None` before the first reading.
    pub fn look(&mut self, now: Duration) -> Option<Energy> {
        let (watts, told) = self.last?;
        let past = now.min(told + FRESH).saturating_sub(self.at);
        self.uj += watts * past.as_secs_f64() * 1e6;
        self.over += past;
        self.at += past;
        Some(Energy { uj: self.uj as u64, us: self.over.as_micros() as u64, by: self.by })
    }
}

/// Parses the output of a meter's command, watts. It is a number, the output of `ipmitool dcmi power reading` or
/// FreeIPMI's `ipmi-dcmi`, or the JSON of a Redfish `HostEnergy` resource.
pub fn watts(text: &str) -> Option<f64> {
    let said = |line: &str| {
        let (what, value) = line.split_once(':')?;
        ["Instantaneous power reading", "Current Power"].contains(&what.trim()).then(|| number(value))?
    };
    let watts = match text.trim_start().starts_with('{') {
        true => redfish(&serde_json::from_str(text).ok()?),
        false => number(text).or_else(|| text.lines().find_map(said)),
    };
    // A meter that is switched off reports 0.
    watts.filter(|watts| *watts > 0.0 && *watts < MOST)
}

/// Parses a number, with or without its unit.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let bare = ["Watts", "watts", "W"].iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(text);
    bare.trim_end().parse().ok()
}

/// Reads the first control, which is the whole chassis.
fn redfish(power: &Value) -> Option<f64> {
    let control = power.get("PowerControl").and_then(|all| all.get(0)).unwrap_or(power);
    control.get("PowerConsumedWatts")?.as_f64()
}

/// Reads the firmware's own meter below `/sys/class/hwmon`, watts. Other devices that have `power1_average` there
/// measure a part of the host: a graphics card, a socket.
pub fn firmware_watts(hwmon: &Path) -> Option<f64> {
    let entries = read_dir(hwmon).ok()?.flatten().map(|entry| entry.path());
    let told = entries.flat_map(|path| [path.join("device"), path]).filter_map(|path| {
        let is_meter = read_to_string(path.join("name")).is_ok_and(|name| name.trim() == "power_meter");
        let read = || read_to_string(path.join("power1_average")).ok()?.trim().parse::<f64>().ok();
        is_meter.then(read)?.map(|microwatts| microwatts / 1e6)
    });
    // If there are two meters, one may be a part of the other.
    told.filter(|watts| *watts > 0.0 && *watts < MOST).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const DCMI: &str = "\n    Instantaneous power reading:                   214 Watts\n    \
        Minimum during sampling period:                 14 Watts\n    \
        Maximum during sampling period:                484 Watts\n    \
        Average power reading over sample period:      207 Watts\n    \
        IPMI timestamp:                           Wed Mar 27 12:21:32 2019\n    \
        Sampling period:                          00000001 Seconds.\n    \
        Power reading state is:                   activated\n\n\n";
    const FREEIPMI: &str = "Current Power                        : 164 Watts\n\
        Minimum Power over sampling duration : 4 watts\n\
        Power Measurement                    : Active\n";

    #[test]
    fn meters_tell_watts_in_many_ways() {
        let redfish = "{\"@odata.type\": \"#Power.v1_5_0.Power\", \"PowerControl\": [{\"MemberId\": \"0\", \
                       \"PowerConsumedWatts\": 8.5e1}, {\"PowerConsumedWatts\": 20}]}";
        for (text, told) in [
            (DCMI, Some(214.0)),
            (FREEIPMI, Some(164.0)),
            (redfish, Some(85.0)),
            ("{\"PowerConsumedWatts\": 90}", Some(90.0)),
            (" 214.5\n", Some(214.5)),
            ("90 W\n", Some(90.0)),
            ("88 Watts", Some(88.0)),
            (&DCMI.replace("214", "0"), None),
            ("", None),
            ("No data available\n", None),
            ("-5", None),
            ("nan", None),
            ("inf", None),
            ("1e9", None),
            ("1 2", None),
            ("{\"PowerControl\": []}", None),
            ("{", None),
        ] {
            assert_eq!(watts(text), told, "{text}");
        }
    }

    #[test]
    fn watts_count_until_the_next_and_no_longer_than_they_are_fresh() {
        let second = Duration::from_secs;
        let mut power = HostEnergy::begin(MeteredBy::Meter, second(0));
        assert_eq!(power.look(second(1)), None);
        power.add_reading(100.0, second(2));
        let taken = |power: &mut HostEnergy, at| power.look(second(at)).map(|e| (e.uj / 1_000_000, e.us / 1_000_000));
        assert_eq!(taken(&mut power, 2), Some((200, 2)), "from the beginning on");
        assert_eq!(taken(&mut power, 4), Some((400, 4)));
        power.add_reading(50.0, second(5));
        assert_eq!(taken(&mut power, 7), Some((600, 7)));
        assert_eq!(taken(&mut power, 1000), Some((500 + 50 * 300, 305)), "a meter that fell silent");
        power.add_reading(10.0, second(2000));
        assert_eq!(taken(&mut power, 2001), Some((500 + 50 * 300 + 10, 306)));
    }

    #[test]
    fn of_all_who_tell_an_average_power_only_the_firmwares_meter_counts() {
        let made = tempfile::tempdir().unwrap();
        let add = |at: &str, name: &str, microwatts: &str| {
            let folder = made.path().join(at);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("name"), name).unwrap();
            fs::write(folder.join("power1_average"), microwatts).unwrap();
        };
        add("hwmon0", "amdgpu\n", "300000000\n");
        add("hwmon1", "fam15h_power\n", "50000000\n");
        assert_eq!(firmware_watts(made.path()), None);
        add("hwmon2/device", "power_meter\n", "213500000\n");
        assert_eq!(firmware_watts(made.path()), Some(213.5));
        add("hwmon2/device", "power_meter\n", "\n");
        assert_eq!(firmware_watts(made.path()), None);
    }
}
