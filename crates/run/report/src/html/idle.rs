//! Explains idle slots: divides the time of all slots without a task by the state in the journal at that moment.

use super::story::Story;
use super::tables;
use homing_model::units::{percent, span};

/// The causes, in the order in which they are checked.
const CAUSES: [(&str, &str); 4] = [
    ("the host was not available", "it had not answered yet, was lost, or the run was interrupted"),
    ("no task was left to start", "the last task of the run had begun"),
    ("a limit on tasks at once", "the storage that they read had reached its limit"),
    (
        "no task was ready",
        "inputs were still read or located, or tasks waited for memory, --delay or a host; see the notes",
    ),
];

/// Slot time, microseconds.
#[derive(Debug, Default, PartialEq)]
struct IdleTime {
    by_cause: [u64; CAUSES.len()],
    all: u64,
}

/// A change of one host's state at a moment.
#[derive(Clone, Copy)]
enum HostTransition {
    Running(i64),
    Present(bool),
    Limited(bool),
    LastStart,
}

/// Draws the table, unless slots were busy nearly all the time or there were none.
pub(crate) fn draw(page: &mut String, story: &Story) {
    let idle = of(story);
    let sum: u64 = idle.by_cause.iter().sum();
    if sum == 0 || sum < idle.all / 50 {
        return;
    }
    let about = format!("{} of the time of all slots was idle", percent(sum, idle.all));
    tables::open(page, "Idle slots", &about, &["Cause", "Meaning", "Slot time", "Share"]);
    let mut causes: Vec<_> = CAUSES.iter().zip(idle.by_cause).filter(|(_, us)| *us > 0).collect();
    causes.sort_by_key(|(_, us)| std::cmp::Reverse(*us));
    for ((cause, means), us) in causes {
        tables::row(page, &[cause.to_string(), means.to_string(), span(us), percent(us, idle.all)]);
    }
    tables::close(page);
}

fn of(story: &Story) -> IdleTime {
    let last_start = story.attempts.iter().map(|a| a.from).max().unwrap_or(0);
    let mut changes: Vec<Vec<(u64, HostTransition)>> =
        vec![vec![(last_start, HostTransition::LastStart)]; story.hosts.len()];
    for attempt in &story.attempts {
        let of_host = &mut changes[attempt.host];
        of_host.extend([(attempt.from, HostTransition::Running(1)), (attempt.to, HostTransition::Running(-1))]);
    }
    for (at, host, there) in &story.present {
        changes[*host].push((*at, HostTransition::Present(*there)));
    }
    for (at, server, limit, _) in &story.limits {
        // A server that is not a host of the run limits all hosts.
        let is_host = story.hosts.iter().any(|host| host == server);
        for (host, changes) in story.hosts.iter().zip(&mut changes) {
            if !is_host || host == server {
                changes.push((*at, HostTransition::Limited(limit.is_some())));
            }
        }
    }
    let mut idle = IdleTime::default();
    for (changes, slots) in changes.into_iter().zip(&story.slots) {
        add(&mut idle, changes, i64::from(*slots), story.length);
    }
    idle
}

/// Adds the time of one host.
fn add(idle: &mut IdleTime, mut changes: Vec<(u64, HostTransition)>, slots: i64, length: u64) {
    changes.sort_by_key(|(at, _)| *at);
    let (mut running, mut there, mut limited, mut over, mut from) = (0, false, false, false, 0);
    for (at, change) in changes.into_iter().chain([(length, HostTransition::LastStart)]) {
        let at = at.min(length);
        let cause = [!there, over, limited, true].iter().position(|holds| *holds).unwrap_or(0);
        idle.by_cause[cause] += (slots - running).max(0) as u64 * at.saturating_sub(from);
        from = at.max(from);
        match change {
            HostTransition::Running(more) => running += more,
            HostTransition::Present(now) => there = now,
            HostTransition::Limited(now) => limited = now,
            HostTransition::LastStart => over = true,
        }
    }
    idle.all += slots as u64 * length;
}

#[cfg(test)]
mod tests {
    use super::*;
    use HostTransition::{LastStart, Limited, Present, Running};

    #[test]
    fn each_moment_of_a_slot_has_one_cause() {
        let mut idle = IdleTime::default();
        let changes = vec![
            (60, LastStart),
            (10, Present(true)),
            (20, Running(1)),
            (30, Limited(true)),
            (40, Limited(false)),
            (40, Running(1)),
            (60, Running(-1)),
            (90, Running(-1)),
        ];
        add(&mut idle, changes, 2, 100);
        let waits = 2 * 10 + 10;
        assert_eq!(idle, IdleTime { by_cause: [2 * 10, 30 + 2 * 10, 10, waits], all: 200 });
    }

    #[test]
    fn a_host_that_never_came_back_is_the_cause_to_the_end() {
        let mut idle = IdleTime::default();
        add(&mut idle, vec![(0, Present(true)), (0, Running(1)), (50, Running(-1)), (50, Present(false))], 1, 100);
        assert_eq!(idle, IdleTime { by_cause: [50, 0, 0, 0], all: 100 });
    }
}
