//! The events of a run, arranged for drawing: each attempt with its host, slot, start and end.

use crate::load::step;
use homing_model::event::{EventKind, PlannedBytes};
use homing_model::{Event, HostSample, Outcome, TaskId};
use std::collections::{BTreeMap, HashMap};

/// One attempt at a task. Times are microseconds since the run's start.
#[derive(Default)]
pub(crate) struct Attempt<'a> {
    pub task: TaskId,
    pub attempt: u32,
    pub host: usize,
    pub slot: u32,
    pub from: u64,
    pub to: u64,
    /// `None` while it runs.
    pub outcome: Option<&'a Outcome>,
    pub last: bool,
    pub planned: Option<&'a PlannedBytes>,
    pub command: String,
    pub wait_us: Option<u64>,
    pub rchar: Option<u64>,
    /// Time on processors, microseconds.
    pub cpu_us: Option<u64>,
    /// The most memory at once, bytes.
    pub max_rss: Option<u64>,
    /// The last line of its error output, if it failed.
    pub error_line: Option<&'a str>,
}

impl Attempt<'_> {
    /// Whether more than a tenth of its bytes lie on other hosts.
    pub fn is_remote(&self) -> bool {
        self.planned.is_some_and(|p| p.remote > (p.local + p.remote) / 10)
    }
    /// Returns the style class that sets its colour.
    pub fn class(&self) -> &'static str {
        match self.outcome {
            None | Some(Outcome::Killed) => "open",
            Some(o) if o.is_success() => "ok",
            Some(_) if self.last => "bad",
            Some(_) => "again",
        }
    }
}

/// The growth of amounts between two times, microseconds since the start.
pub(crate) struct Growth {
    pub from: u64,
    pub to: u64,
    pub host: usize,
    pub received: Option<u64>,
    pub disk: Option<u64>,
    pub stalled_us: Option<u64>,
}

/// A run, ready to be drawn.
#[derive(Default)]
pub(crate) struct Story<'a> {
    pub run: &'a str,
    /// The name that the user has given it.
    pub label: Option<&'a str>,
    pub argv: String,
    pub from: String,
    pub start_ns: i64,
    /// Length of the run, microseconds, at least 1.
    pub length: u64,
    /// Host names, by the number of the host.
    pub hosts: Vec<&'a str>,
    /// The slots of each host.
    pub slots: Vec<u32>,
    pub attempts: Vec<Attempt<'a>>,
    pub growth: Vec<Growth>,
    /// The changes of hosts: time, host, whether it is present from then on.
    pub present: Vec<(u64, usize, bool)>,
    pub notes: Vec<(u64, String)>,
    /// The changes of a storage server's limit: time, server, new limit, reason. The server need not be a host of the
    /// run.
    pub limits: Vec<(u64, &'a str, Option<u32>, &'a str)>,
}

impl<'a> Story<'a> {
    /// Makes the story in one pass over the events.
    pub fn of(events: &'a [Event]) -> Story<'a> {
        let mut story = Story { start_ns: events.first().map_or(0, |e| e.at_ns), ..Story::default() };
        story.number_hosts(events);
        let numbers: HashMap<&str, usize> = story.hosts.iter().enumerate().map(|(n, h)| (*h, n)).collect();
        // `number_hosts` numbers the hosts of these events. A lost host may never have been up, and has no number then.
        let number = |host: &str| numbers[host];
        let mut open: HashMap<(TaskId, u32), usize> = HashMap::new();
        let mut last: BTreeMap<usize, &HostSample> = BTreeMap::new();
        for event in events {
            let (before, at) = (story.length, story.since(event.at_ns));
            story.length = story.length.max(at);
            match &event.what {
                EventKind::RunStarted { run, argv, cwd, host, label, .. } => {
                    story.run = run;
                    story.label = label.as_deref();
                    story.argv = crate::command_line(argv);
                    story.from = format!("{}:{}", host, cwd.display());
                }
                EventKind::RunResumed { host, .. } => {
                    last.clear();
                    story.present.extend((0..story.hosts.len()).map(|host| (before, host, false)));
                    story.notes.push((at, format!("resumed on {host}")));
                }
                EventKind::HostUp { host, slots, .. } => {
                    let n = number(host);
                    story.slots[n] = story.slots[n].max(*slots);
                    story.present.push((at, n, true));
                }
                EventKind::Sample { host, sample } => {
                    let host = number(host);
                    if let Some(before) = last.insert(host, sample) {
                        let s = step(before, sample);
                        story.growth.push(Growth {
                            from: at.saturating_sub(s.us),
                            to: at,
                            host,
                            received: s.received,
                            disk: s.disk,
                            stalled_us: s.stalled_us,
                        });
                    }
                }
                EventKind::TaskStarted { task, attempt, host, slot, command, planned, .. } => {
                    let host = number(host);
                    story.slots[host] = story.slots[host].max(*slot);
                    open.insert((*task, *attempt), story.attempts.len());
                    story.attempts.push(Attempt {
                        task: *task,
                        attempt: *attempt,
                        host,
                        slot: *slot,
                        from: at,
                        to: at,
                        last: true,
                        planned: planned.as_ref(),
                        command: command.display(),
                        ..Attempt::default()
                    });
                }
                EventKind::TaskEnded { task, attempt, outcome, start_ns, wall_us, io, io_wait, said, last, .. } => {
                    let Some(index) = open.remove(&(*task, *attempt)) else { continue };
                    let from = story.since(*start_ns);
                    let ended = &mut story.attempts[index];
                    (ended.from, ended.to) = (from, from + wall_us);
                    (ended.outcome, ended.last) = (Some(outcome), *last);
                    ended.wait_us = io_wait.as_ref().map(|w| w.us());
                    ended.rchar = io.rchar;
                    let used = io.user_us + io.sys_us;
                    ended.cpu_us = (used > 0).then_some(used);
                    ended.max_rss = Some(io.max_rss).filter(|n| *n > 0);
                    ended.error_line = said.as_deref();
                }
                EventKind::HostLost { host, reason } => {
                    story.present.extend(numbers.get(host.as_str()).map(|n| (at, *n, false)));
                    story.notes.push((at, format!("{host} lost: {reason}")));
                }
                EventKind::HostUnfit { host, reason } => story.notes.push((at, format!("{host} not used: {reason}"))),
                EventKind::Note { text } => story.notes.push((at, text.clone())),
                EventKind::Limit { storage, limit, why, .. } => {
                    story.limits.push((at, storage, *limit, why));
                }
                EventKind::Leases { .. }
                | EventKind::TaskSkipped { .. }
                | EventKind::TaskAgain { .. }
                | EventKind::RunEnded { .. } => {}
            }
        }
        story.length = story.length.max(1);
        let length = story.length;
        open.into_values().for_each(|index| story.attempts[index].to = length);
        story
    }

    fn since(&self, at_ns: i64) -> u64 {
        (at_ns - self.start_ns).max(0) as u64 / 1000
    }

    fn number_hosts(&mut self, events: &'a [Event]) {
        let names = events.iter().filter_map(|e| match &e.what {
            EventKind::HostUp { host, .. } | EventKind::TaskStarted { host, .. } | EventKind::Sample { host, .. } => {
                Some(host.as_str())
            }
            _ => None,
        });
        self.hosts = names.collect::<std::collections::BTreeSet<_>>().into_iter().collect();
        self.hosts.sort_by_key(|name| natural(name));
        self.slots = vec![0; self.hosts.len()];
    }
}

/// Returns a key that sorts `n2` before `n10`.
fn natural(name: &str) -> (String, u64, String) {
    let digits = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let end = name[digits..].find(|c: char| !c.is_ascii_digit()).map_or(name.len(), |n| digits + n);
    (name[..digits].to_string(), name[digits..end].parse().unwrap_or(0), name[end..].to_string())
}
