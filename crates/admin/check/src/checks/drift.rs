//! Do tasks wait longer for a host's disks than in the days before, though they do no more?
//!
//! A host is compared with itself, because other hosts have other work. Its last day is compared with hours in which
//! its disks did at least as much, because more work may cause more waiting. The waiting for each request and for
//! each byte is compared. Work with larger or smaller requests changes only one of them, a disk that becomes slow
//! changes both.

use crate::compare::middle;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use std::collections::BTreeSet;

/// Seconds of the period that is compared with the time before.
const DAY_S: f64 = 86_400.0;
/// The least hours of each period: fewer may come from one job.
const HOURS: usize = 6;
/// The least days with such hours that show the usual waiting: the work of a single day may be of another kind.
const DAYS: usize = 3;
/// One hour in this many is ignored, such as that of a nightly copy: the other hours before define the usual waiting.
const ONE_IN: usize = 20;
/// A wait of this many times the usual is more than noise. With different work each day, as `tests.rs` makes it,
/// three healthy hosts in a thousand are reported a day. A factor of two would report four times as many, and so
/// would the hours of a single day before. With the same work each day no healthy host is reported. Four in five
/// disks that are five times as slow are.
const TIMES: f64 = 3.0;
/// The part of the time in which tasks must wait for it to matter: with less, no task would end much sooner.
const NOTICED: f64 = 0.1;
/// Microseconds of an hour.
const HOUR_US: f64 = 3.6e9;

static SLOWER: Code = Code {
    name: "HC-DISK-14",
    severity: Severity::Warning,
    what: "tasks wait longer for a host's disks than in the days before, although the disks do no more work",
    means: "a disk often becomes slow before it fails; each task that reads from this host waits for it",
    seen: "the history that `homing hosts --schedule` keeps: time for which tasks waited for I/O, by requests and bytes of the disks",
    mend: "smartctl -x DEVICE, dmesg, a rebuild in /proc/mdstat; if all hosts show it at once, their work has changed",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "drift",
    script: "command -v homing >/dev/null && homing hosts --hours; true",
    waits: true,
    slow: false,
    root: None,
    codes: &[&SLOWER],
    judge,
};

/// An hour in which tasks waited for disks, not for the network.
struct Hour {
    end_s: f64,
    /// Microseconds in which at least one task waited.
    waited_us: f64,
    /// Requests and bytes of the disks.
    requests: f64,
    bytes: f64,
}

impl Hour {
    fn read(row: &[String]) -> Option<Hour> {
        let numbers: Vec<f64> = row.iter().filter_map(|field| field.parse().ok()).collect();
        let [end_s, waited_us, requests, bytes, received] = numbers[..] else { return None };
        // A host that receives more than its disks move may wait for a file server.
        (bytes >= received && requests > 0.0).then_some(Hour { end_s, waited_us, requests, bytes })
    }

    /// Returns the middle of hours, for each number separately.
    fn middle(hours: &[Hour]) -> Option<Hour> {
        let of = |number: fn(&Hour) -> f64| middle(hours.iter().map(number), HOURS);
        Some(Hour {
            end_s: 0.0,
            waited_us: of(|h| h.waited_us)?,
            requests: of(|h| h.requests)?,
            bytes: of(|h| h.bytes)?,
        })
    }

    fn does_as_much(&self, other: &Hour) -> bool {
        self.requests >= other.requests && self.bytes >= other.bytes
    }

    fn by_request(&self) -> f64 {
        self.waited_us / self.requests
    }

    fn by_byte(&self) -> f64 {
        self.waited_us / self.bytes
    }
}

fn judge(answers: &Answers) -> Vec<HostFinding> {
    answers.of(CHECK.key).filter_map(|(host, rows)| of_host(host, rows)).collect()
}

fn of_host(host: &HostAnswers, rows: &[Vec<String>]) -> Option<HostFinding> {
    let now_s = host.clock.last()?.shown_s;
    let hours = rows.iter().filter_map(|row| Hour::read(row));
    let (day, before): (Vec<Hour>, Vec<Hour>) = hours.partition(|hour| hour.end_s > now_s - DAY_S);
    let slower = slower(&day, before, now_s)?;
    let ms = |us: f64| format!("{:.2} ms", us / 1000.0);
    let what = format!(
        "tasks wait {} for each request of its disks; under the same load it was at most {} in the days before",
        ms(slower.now_us),
        ms(slower.usual_us)
    );
    let seen = format!(
        "the median of {} hours of the last day; {} of {ONE_IN} of {} hours before",
        day.len(),
        ONE_IN - 1,
        slower.of
    );
    let found = SLOWER.on(host, what, seen);
    Some(found.look("homing hosts -w \"$(uname -n)\" --history 7d; cat /proc/mdstat"))
}

/// The waiting for each request now, the usual one, and the number of hours for that.
struct Slower {
    now_us: f64,
    usual_us: f64,
    of: usize,
}

/// Compares a day with the hours before; `None`: the day is as usual, or too little is known.
fn slower(day: &[Hour], mut before: Vec<Hour>, now_s: f64) -> Option<Slower> {
    let now = Hour::middle(day)?;
    before.retain(|hour| hour.does_as_much(&now));
    let days: BTreeSet<i64> = before.iter().map(|hour| ((now_s - hour.end_s) / DAY_S) as i64).collect();
    if days.len() < DAYS {
        return None;
    }
    let by_request = usual(before.iter().map(Hour::by_request).collect())?;
    let by_byte = usual(before.iter().map(Hour::by_byte).collect())?;
    let ill =
        now.by_request() > TIMES * by_request && now.by_byte() > TIMES * by_byte && now.waited_us >= NOTICED * HOUR_US;
    ill.then(|| Slower { now_us: now.by_request(), usual_us: by_request, of: before.len() })
}

/// Returns the value that all hours but one in twenty do not exceed.
fn usual(mut waits: Vec<f64>) -> Option<f64> {
    waits.sort_by(f64::total_cmp);
    let worse = waits.len() / ONE_IN;
    waits.get(waits.len().checked_sub(worse + 1)?).copied().filter(|_| waits.len() >= HOURS)
}

#[cfg(test)]
mod tests;
