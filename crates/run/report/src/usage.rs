//! The resources that a run used, by host and command. Such sums can be added up over many runs.

use crate::energy::{Holding, HostUsage, Taken};
use crate::load::add_known;
use homing_model::event::{EventKind, PlannedBytes};
use homing_model::{Event, IoCounters, IoWait, TaskId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::iter::Sum;

/// The attributes by which attempts are added up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UsageKey {
    /// The run.
    pub run: String,
    /// The host on which they ran.
    pub host: String,
    /// The program that their commands name first, without its folder.
    pub command: String,
    /// The project that a job was submitted for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub project: String,
}

/// The usage of attempts that ran and have ended. A value is unknown only if it is unknown for each attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// The number of attempts.
    pub attempts: u64,
    /// The number of attempts that did not end with status 0.
    pub failed: u64,
    /// The time for which they held their slots, microseconds.
    pub slot_us: u64,
    /// The same as a part of their hosts: each attempt's time divided by the number of the host's slots,
    /// microseconds.
    pub host_us: u64,
    /// Processor time, microseconds.
    pub cpu_us: u64,
    /// The largest resident set of each attempt times its duration, bytes x seconds. This is an upper bound of its
    /// use.
    pub memory_byte_s: u64,
    /// Bytes of inputs on the host that ran the attempt, by their layout.
    pub local_bytes: u64,
    /// Bytes of inputs on other hosts, by their layout.
    pub remote_bytes: u64,
    /// Attempts with no known layout.
    pub unplaced: u64,
    /// Bytes of read calls.
    pub read_bytes: Option<u64>,
    /// Bytes that their hosts fetched from disks.
    pub disk_bytes: u64,
    /// Time waited for I/O, microseconds.
    pub wait_us: Option<u64>,
    /// Time from submission to start, of jobs, microseconds.
    #[serde(default)]
    pub queued_us: Option<u64>,
    /// Time from submission to end, of jobs, microseconds.
    #[serde(default)]
    pub turnaround_us: Option<u64>,
    /// The requested memory times the duration, over the attempts that requested some, bytes x seconds.
    #[serde(default)]
    pub asked_byte_s: Option<u64>,
    /// The largest resident set of these attempts times their duration, bytes x seconds, as in `memory_byte_s`.
    #[serde(default)]
    pub asked_held_byte_s: Option<u64>,
    /// The end of the last attempt, ns since 1970.
    pub last_ns: i64,
    /// Their part of the hosts while the runs had them.
    #[serde(default)]
    pub held: HostUsage,
}

impl Used {
    /// Adds the usage of others.
    pub fn add(&mut self, other: &Used) {
        let (a, b) = (self, other);
        for (sum, part) in [
            (&mut a.attempts, b.attempts),
            (&mut a.failed, b.failed),
            (&mut a.slot_us, b.slot_us),
            (&mut a.host_us, b.host_us),
            (&mut a.cpu_us, b.cpu_us),
            (&mut a.memory_byte_s, b.memory_byte_s),
            (&mut a.local_bytes, b.local_bytes),
            (&mut a.remote_bytes, b.remote_bytes),
            (&mut a.unplaced, b.unplaced),
            (&mut a.disk_bytes, b.disk_bytes),
        ] {
            *sum = sum.saturating_add(part);
        }
        for (sum, part) in [
            (&mut a.read_bytes, b.read_bytes),
            (&mut a.wait_us, b.wait_us),
            (&mut a.queued_us, b.queued_us),
            (&mut a.turnaround_us, b.turnaround_us),
            (&mut a.asked_byte_s, b.asked_byte_s),
            (&mut a.asked_held_byte_s, b.asked_held_byte_s),
        ] {
            add_known(sum, part);
        }
        a.last_ns = a.last_ns.max(b.last_ns);
        a.held.add(&b.held);
    }

    /// Returns the processor time as a part of the time that slots were held, as `seff` prints it. `None` without
    /// such time.
    pub fn cpu_use(&self) -> Option<f64> {
        (self.slot_us > 0).then(|| self.cpu_us as f64 / self.slot_us as f64)
    }

    /// Returns the used part of the requested memory, or `None` if none was requested.
    pub fn memory_use(&self) -> Option<f64> {
        let asked = self.asked_byte_s.filter(|asked| *asked > 0)?;
        Some(self.asked_held_byte_s.unwrap_or(0) as f64 / asked as f64)
    }

    /// Returns the energy that the host took for this usage. `watts` are its idle and full power, if they are
    /// configured.
    pub fn taken(&self, host: &str, watts: Option<[f64; 2]>) -> Taken {
        Taken::of(host, &self.held, [self.cpu_us, self.host_us], watts)
    }

    /// Returns the cost at a price for an hour of a whole host.
    pub fn cost(&self, host_hour: f64) -> f64 {
        self.host_us as f64 / HOUR_US * host_hour
    }
}

impl<'a> Sum<&'a Used> for Used {
    fn sum<I: Iterator<Item = &'a Used>>(all: I) -> Used {
        all.fold(Used::default(), |mut sum, used| {
            sum.add(used);
            sum
        })
    }
}

/// The microseconds of an hour.
const HOUR_US: f64 = 3.6e9;

/// The usage of one run. The caller passes every event, in order.
#[derive(Debug, Default)]
pub struct RunUsage {
    run: String,
    since_ns: i64,
    slots: HashMap<String, u32>,
    running: HashMap<TaskId, (String, Option<PlannedBytes>)>,
    used: BTreeMap<(String, String), Used>,
    holdings: BTreeMap<String, Holding>,
    /// The time of the last event.
    at_ns: i64,
}

impl RunUsage {
    /// Makes the usage of the run `run`: attempts that ended at `since_ns`, ns since 1970, or later.
    pub fn new(run: &str, since_ns: i64) -> RunUsage {
        RunUsage { run: run.into(), since_ns, ..RunUsage::default() }
    }

    /// Takes the next event.
    pub fn add(&mut self, event: &Event) {
        match &event.what {
            EventKind::HostUp { host, slots, .. } => {
                self.slots.insert(host.clone(), *slots);
                self.holdings.entry(host.clone()).or_default().begin(event.at_ns.max(self.since_ns));
            }
            EventKind::HostLost { host, .. } => self.holdings.entry(host.clone()).or_default().end(event.at_ns),
            // The last event is the latest sign of the earlier coordinator.
            EventKind::RunResumed { .. } => self.holdings.values_mut().for_each(|holding| holding.end(self.at_ns)),
            EventKind::Sample { host, sample } => {
                let counts = event.at_ns >= self.since_ns;
                self.holdings.entry(host.clone()).or_default().add(sample, counts);
            }
            EventKind::TaskStarted { task, command, planned, .. } => {
                self.running.insert(*task, (program(&String::from_utf8_lossy(&command.0)), planned.clone()));
            }
            // A task that no host could run has used nothing.
            EventKind::TaskEnded { task, host, outcome, wall_us, io, io_wait, .. }
                if !host.is_empty() && event.at_ns >= self.since_ns =>
            {
                let (command, planned) = self.running.remove(task).unwrap_or_default();
                let slots = self.slots.get(host).copied().unwrap_or(1).max(1);
                let mut used = attempt(*wall_us, slots, io, io_wait.as_ref(), planned);
                (used.failed, used.last_ns) = (u64::from(!outcome.is_success()), event.at_ns);
                self.used.entry((host.clone(), command)).or_default().add(&used);
            }
            _ => {}
        }
        self.at_ns = event.at_ns;
    }

    /// Returns the sums, by host and command.
    pub fn rows(mut self) -> impl Iterator<Item = (UsageKey, Used)> {
        self.share_hosts();
        let run = self.run;
        self.used.into_iter().map(move |((host, command), used)| {
            (UsageKey { run: run.clone(), host, command, project: String::new() }, used)
        })
    }

    /// Divides the time of each host among its commands by their time in slots. A host without tasks is added to the
    /// command that took most of the run.
    fn share_hosts(&mut self) {
        let longest = self.used.iter().max_by_key(|(_, used)| used.slot_us);
        let Some((main, last_ns)) = longest.map(|((_, command), used)| (command.clone(), used.last_ns)) else { return };
        for (host, holding) in std::mem::take(&mut self.holdings) {
            let held = holding.whole(self.at_ns);
            if held == HostUsage::default() {
                continue;
            }
            if !self.used.keys().any(|(of, _)| *of == host) {
                self.used.insert((host.clone(), main.clone()), Used { last_ns, ..Used::default() });
            }
            let rows = || self.used.iter().filter(|((of, _), _)| *of == host);
            let (all, n) = (rows().map(|(_, used)| used.slot_us).sum::<u64>(), rows().count());
            for (_, used) in self.used.iter_mut().filter(|((of, _), _)| *of == host) {
                let part = if all > 0 { used.slot_us as f64 / all as f64 } else { 1.0 / n as f64 };
                used.held = held.part(part);
            }
        }
    }
}

fn attempt(wall_us: u64, slots: u32, io: &IoCounters, wait: Option<&IoWait>, planned: Option<PlannedBytes>) -> Used {
    let unplaced = u64::from(planned.is_none());
    let planned = planned.unwrap_or_default();
    Used {
        attempts: 1,
        slot_us: wall_us,
        host_us: wall_us / u64::from(slots),
        cpu_us: io.user_us + io.sys_us,
        memory_byte_s: (u128::from(io.max_rss) * u128::from(wall_us) / 1_000_000) as u64,
        local_bytes: planned.local,
        remote_bytes: planned.remote,
        unplaced,
        read_bytes: io.rchar,
        disk_bytes: io.read_bytes,
        wait_us: wait.map(IoWait::us),
        ..Used::default()
    }
}

/// A job that has ended, with its time in slots and its memory. Times are in microseconds, memory in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobUse {
    /// Whether it did not end with status 0.
    pub failed: bool,
    /// The duration.
    pub wall_us: u64,
    /// The number of slots that it held.
    pub slots: u32,
    /// The number of slots of its host. If 0, it is unknown, and the job counts as the whole host.
    pub of_slots: u32,
    /// Processor time.
    pub cpu_us: u64,
    /// Its largest resident set.
    pub memory: Option<u64>,
    /// The requested memory.
    pub memory_asked: Option<u64>,
    /// The time from submission to start.
    pub queued_us: Option<u64>,
    /// The time from submission to end.
    pub turnaround_us: Option<u64>,
    /// The end, ns since 1970.
    pub end_ns: i64,
}

impl From<JobUse> for Used {
    fn from(job: JobUse) -> Used {
        let for_as_long = |bytes: u64| (u128::from(bytes) * u128::from(job.wall_us) / 1_000_000) as u64;
        let of_slots = if job.of_slots > 0 { job.of_slots } else { job.slots };
        let slot_us = job.wall_us.saturating_mul(u64::from(job.slots));
        Used {
            attempts: 1,
            failed: u64::from(job.failed),
            slot_us,
            host_us: slot_us / u64::from(of_slots.max(1)),
            cpu_us: job.cpu_us,
            memory_byte_s: for_as_long(job.memory.unwrap_or(0)),
            unplaced: 1,
            queued_us: job.queued_us,
            turnaround_us: job.turnaround_us,
            asked_byte_s: job.memory_asked.map(for_as_long),
            asked_held_byte_s: job.memory_asked.and(job.memory).map(for_as_long),
            last_ns: job.end_ns,
            ..Used::default()
        }
    }
}

/// Returns the program of a command line: its first word that sets no variable, without its folder. A shell's own
/// words count as programs. If a shell could not parse the line, words end at blanks.
pub fn program(command: &str) -> String {
    let words = shlex::split(command).unwrap_or_else(|| command.split_whitespace().map(String::from).collect());
    let is_set = |word: &String| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        })
    };
    let first = words.into_iter().find(|word| !is_set(word)).unwrap_or_default();
    let first = first.trim_end_matches(';');
    first.rsplit_once('/').map_or(first, |(_, name)| name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;
    use homing_model::{HostFacts, Outcome};

    fn up(host: &str, slots: u32) -> EventKind {
        EventKind::HostUp { host: host.into(), slots, facts: HostFacts::default() }
    }

    fn ran(task: TaskId, host: &str, command: &str, outcome: Outcome, wall_us: u64) -> [EventKind; 2] {
        let planned = Some(PlannedBytes { local: 10, remote: 3, remote_if_in_turn: 7, from: vec![] });
        let io = IoCounters { user_us: 5, sys_us: 1, max_rss: 1_000_000, rchar: Some(4), ..IoCounters::default() };
        [made::started(task, host, 1, command, planned), made::ended(task, host, outcome, wall_us, io)]
    }

    #[test]
    fn attempts_are_added_up_by_host_and_program() {
        let mut usage = RunUsage::new("r", 0);
        let events = [up("n1", 4), up("n2", 1)]
            .into_iter()
            .chain(ran(1, "n1", "LANG=C /usr/bin/bwa mem a", Outcome::Exit(0), 8_000_000))
            .chain(ran(2, "n1", "bwa mem b", Outcome::Exit(3), 4_000_000))
            .chain(ran(3, "n2", "sort c", Outcome::Exit(0), 1_000_000));
        events.enumerate().for_each(|(at, what)| usage.add(&Event { at_ns: at as i64, what }));
        let rows: Vec<(UsageKey, Used)> = usage.rows().collect();
        let [(key, bwa), (_, sort)] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!(
            *key,
            UsageKey { run: "r".into(), host: "n1".into(), command: "bwa".into(), project: String::new() }
        );
        let expected = Used {
            attempts: 2,
            failed: 1,
            slot_us: 12_000_000,
            host_us: 3_000_000,
            cpu_us: 12,
            memory_byte_s: 12_000_000,
            local_bytes: 20,
            remote_bytes: 6,
            read_bytes: Some(8),
            last_ns: 5,
            ..Used::default()
        };
        assert_eq!(*bwa, expected);
        assert_eq!((sort.attempts, sort.host_us, sort.wait_us), (1, 1_000_000, None));
        // A host of four slots, one of them for twelve seconds: three seconds of the host, at 36 an hour.
        assert!((bwa.cost(36.0) - 0.03).abs() < 1e-9);
    }

    #[test]
    fn a_job_has_its_part_of_its_host_and_of_what_it_asked_for() {
        let second = 1_000_000;
        let job = JobUse { wall_us: 10 * second, slots: 2, of_slots: 8, cpu_us: 5 * second, ..JobUse::default() };
        let mut all = Used::from(JobUse { memory: Some(100), memory_asked: Some(400), ..job });
        assert_eq!((all.slot_us, all.host_us, all.memory_use()), (20 * second, 2_500_000, Some(0.25)));
        assert_eq!(all.cpu_use(), Some(0.25));
        // A job without a memory request does not change the part of the requested memory.
        all.add(&Used::from(JobUse { memory: Some(9000), queued_us: Some(7), ..job }));
        assert_eq!((all.attempts, all.memory_use(), all.queued_us), (2, Some(0.25), Some(7)));
        assert_eq!(all.turnaround_us, None, "unknown of each");
        assert_eq!((Used::default().cpu_use(), Used::default().memory_use()), (None, None));
    }

    #[test]
    fn hosts_are_their_commands_by_time_in_slots_and_idle_ones_those_of_the_longest() {
        let mut usage = RunUsage::new("r", 0);
        let events = [up("n1", 2), up("n2", 2)]
            .into_iter()
            .chain(ran(1, "n1", "bwa a", Outcome::Exit(0), 3_000_000))
            .chain(ran(2, "n1", "sort b", Outcome::Exit(0), 1_000_000));
        events.for_each(|what| usage.add(&Event { at_ns: 0, what }));
        usage.add(&Event { at_ns: 4_000_000_000, what: EventKind::Note { text: "the end".into() } });
        let rows: Vec<_> =
            usage.rows().map(|(key, used)| (key.host, key.command, used.attempts, used.held.us)).collect();
        let row = |host: &str, command: &str, attempts, us| (host.to_string(), command.to_string(), attempts, us);
        assert_eq!(
            rows,
            [row("n1", "bwa", 1, 3_000_000), row("n1", "sort", 1, 1_000_000), row("n2", "bwa", 0, 4_000_000)]
        );
    }

    #[test]
    fn no_host_is_held_while_no_coordinator_is_at_work_nor_before_the_time_that_counts() {
        let held = |since_s: i64| {
            let mut usage = RunUsage::new("r", since_s * 1_000_000_000);
            let [started, ended] = ran(1, "n1", "bwa a", Outcome::Exit(0), 1);
            let note = EventKind::Note { text: "the last word of the first".into() };
            let resumed = EventKind::RunResumed { host: "h".into(), pid: 1 };
            let events =
                [(0, up("n1", 2)), (2, note), (100, resumed), (100, up("n1", 2)), (100, started), (103, ended)];
            events.into_iter().for_each(|(s, what)| usage.add(&Event { at_ns: s * 1_000_000_000, what }));
            usage.rows().map(|(_, used)| used.held.us / 1_000_000).sum::<u64>()
        };
        assert_eq!([0, 1, 50, 101].map(held), [5, 4, 3, 2]);
    }

    #[test]
    fn what_ended_before_is_not_counted() {
        let of = |since_ns| {
            let mut usage = RunUsage::new("r", since_ns);
            let events =
                ran(1, "n1", "a", Outcome::Exit(0), 1).into_iter().chain(ran(2, "n1", "a", Outcome::Exit(0), 1));
            events.enumerate().for_each(|(at, what)| usage.add(&Event { at_ns: at as i64, what }));
            usage.rows().map(|(_, used)| used.attempts).sum::<u64>()
        };
        assert_eq!((of(1), of(2), of(3), of(4)), (2, 1, 1, 0));
    }

    #[test]
    fn what_did_not_come_to_run_has_used_nothing() {
        let mut usage = RunUsage::new("r", 0);
        let [_, ended] = ran(1, "", "", Outcome::NotRun("n1 is down".into()), 0);
        usage.add(&Event { at_ns: 0, what: ended });
        assert_eq!(usage.rows().count(), 0);
    }

    #[test]
    fn programs_are_named_without_folders_and_variables() {
        for (line, name) in [
            ("gzip -k a", "gzip"),
            ("A=1 B='x y' /opt/x/bwa mem", "bwa"),
            ("'my prog' a", "my prog"),
            ("true; false", "true"),
            ("echo 'unclosed", "echo"),
            ("", ""),
            ("./run.sh a=b", "run.sh"),
        ] {
            assert_eq!(program(line), name, "{line}");
        }
    }
}
