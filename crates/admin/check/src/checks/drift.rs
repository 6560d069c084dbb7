//! Do tasks wait longer for a host's disks than in the days before, with no more to do?
//!
//! A host is compared with itself, as others have other work; and its last day with hours in which its disks did at least
//! as much, as who does more may wait more. What is compared is the waiting for each request, and for each byte: work with
//! larger or smaller requests changes the one or the other, a disk that gets slow both.

use crate::compare::middle;
use crate::{Answers, Check, Code, Finding, Host, Severity};
use std::collections::BTreeSet;

/// Seconds of the time that is compared with what was before.
const DAY_S: f64 = 86_400.0;
/// So many hours of each time are needed: fewer may be of one job.
const HOURS: usize = 6;
/// Hours of so many days are needed to tell what is usual: the work of one may be of another kind.
const DAYS: usize = 3;
/// One hour in so many may be any: the rest of the hours before is what is usual. Copies by night are such hours.
const ONE_IN: usize = 20;
/// So many times what is usual is more than the noise. Where work is another one each day, as `tests.rs` makes it, three
/// well hosts in a thousand are told a day; twice would tell four times as many, and so would hours of a single day before.
/// Where work is the same each day none is, and of disks that are five times as slow four in five are.
const TIMES: f64 = 3.0;
/// Part of the time in which tasks must wait at all for it to matter: below it nobody would be done much sooner.
const NOTICED: f64 = 0.1;
/// Microseconds of an hour.
const HOUR_US: f64 = 3.6e9;

static SLOWER: Code = Code {
    name: "HC-DISK-14",
    severity: Severity::Warning,
    what: "tasks wait longer for a host's disks than in the days before, though these do no more",
    means: "a disk that is about to fail is slow first; what reads from this host waits with it",
    seen: "what `homing hosts --schedule` has the host keep: the time in which tasks waited for I/O, by requests and bytes of its disks",
    mend: "smartctl -x DEVICE, dmesg, a rebuild in /proc/mdstat; where all hosts show it at once, their work is another one",
};

pub(crate) static CHECK: Check = Check {
    key: "drift",
    ask: "command -v homing >/dev/null && homing hosts --hours; true",
    waits: true,
    slow: false,
    root: None,
    codes: &[&SLOWER],
    judge,
};

/// An hour in which disks were what tasks waited for.
struct Hour {
    end_s: f64,
    /// Microseconds in which some task waited.
    waited_us: f64,
    /// What disks did.
    requests: f64,
    bytes: f64,
}

impl Hour {
    fn read(row: &[String]) -> Option<Hour> {
        let numbers: Vec<f64> = row.iter().filter_map(|field| field.parse().ok()).collect();
        let [end_s, waited_us, requests, bytes, received] = numbers[..] else { return None };
        // Who receives more than the disks move may wait for a file server.
        (bytes >= received && requests > 0.0).then_some(Hour { end_s, waited_us, requests, bytes })
    }

    /// The middle of hours, each of its numbers by itself.
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

fn judge(answers: &Answers) -> Vec<Finding> {
    answers.of(CHECK.key).filter_map(|(host, rows)| of_host(host, rows)).collect()
}

fn of_host(host: &Host, rows: &[Vec<String>]) -> Option<Finding> {
    let now_s = host.clock.last()?.shown_s;
    let hours = rows.iter().filter_map(|row| Hour::read(row));
    let (day, before): (Vec<Hour>, Vec<Hour>) = hours.partition(|hour| hour.end_s > now_s - DAY_S);
    let slower = slower(&day, before, now_s)?;
    let ms = |us: f64| format!("{:.2} ms", us / 1000.0);
    let what = format!(
        "tasks wait {} for each request of its disks; with as much to do it was {} at the most in the days before",
        ms(slower.now_us),
        ms(slower.usual_us)
    );
    let seen = format!(
        "the middle of {} hours of the last day; {} of {ONE_IN} of {} hours before",
        day.len(),
        ONE_IN - 1,
        slower.of
    );
    let found = SLOWER.on(host, what, seen);
    Some(found.look("homing hosts -w \"$(uname -n)\" --history 7d; cat /proc/mdstat"))
}

/// Waiting for each request now, what was usual, and in how many hours.
struct Slower {
    now_us: f64,
    usual_us: f64,
    of: usize,
}

/// None where the day is as usual, or too little is known.
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

/// What all hours but one in twenty do not exceed.
fn usual(mut waits: Vec<f64>) -> Option<f64> {
    waits.sort_by(f64::total_cmp);
    let worse = waits.len() / ONE_IN;
    waits.get(waits.len().checked_sub(worse + 1)?).copied().filter(|_| waits.len() >= HOURS)
}

#[cfg(test)]
mod tests;
