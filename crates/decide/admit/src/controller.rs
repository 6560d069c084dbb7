//! Derives the limit of a storage server from samples of it: a slow start, then a search. The code calls a sample with
//! the run's load at that moment a look.

mod search;
mod slow_start;

use crate::span::{AdmissionSample, TaskLoad};
use crate::tuning::Tuning;
use homing_model::StorageSample;

/// The settings of a storage server that do not change during a run.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionSettings {
    /// Slots of the run: a limit above this one has no effect.
    pub most: u32,
    /// Slots of the host itself: a slow start ends there.
    pub open_at: u32,
    /// The limit with which earlier runs of the same command on the same storage ended.
    pub learnt: Option<u32>,
}

/// A new limit.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitChange {
    /// Tasks at once; `None` if storage does not limit.
    pub limit: Option<u32>,
    /// One clause for people.
    pub why: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Direction {
    Up,
    Down,
}

/// The rate that a number of tasks at once was served, bytes per second.
#[derive(Clone, Copy, Debug)]
struct ServedRate {
    tasks: u32,
    rate: f64,
}

#[derive(Debug)]
enum SearchPhase {
    /// The number doubles as long as no task waits for storage, or storage serves more. `before`: the rate of half as
    /// many tasks.
    SlowStart { before: Option<ServedRate> },
    /// The best known number is in force.
    Settled { best: Option<ServedRate> },
    /// Another number is tried; `top` is the highest rate in this trial.
    Trial { best: ServedRate, top: ServedRate },
}

/// Finds the limit of one storage server.
#[derive(Debug)]
pub struct Controller {
    settings: AdmissionSettings,
    tuning: Tuning,
    phase: SearchPhase,
    /// The current number of tasks at once.
    n: u32,
    /// The look at which the current measurement began; `None` until exactly `n` tasks run.
    from: Option<AdmissionSample>,
    changed_us: u64,
    /// Number of looks since then.
    looks: u64,
    /// The time in which the first task began to read, microseconds.
    starts_us: u64,
    began_us: Option<u64>,
    direction: Direction,
    /// A failed trial, until the tasks that began with it have ended: its start, and the share of throughput that it
    /// lost.
    failing: Option<(u64, f64)>,
    /// The cost of all failed trials, and of the last one, microseconds.
    spent_us: f64,
    last_cost_us: f64,
}

impl Controller {
    /// Begins with one task, or with the learnt limit.
    pub fn new(settings: AdmissionSettings) -> Controller {
        Controller::tuned(settings, Tuning::default())
    }

    /// Like `new`, with other constants: the test bed shows the effect of each.
    pub fn tuned(settings: AdmissionSettings, tuning: Tuning) -> Controller {
        let phase = match settings.learnt {
            Some(_) => SearchPhase::Settled { best: None },
            None => SearchPhase::SlowStart { before: None },
        };
        Controller {
            settings,
            tuning,
            phase,
            n: settings.learnt.unwrap_or(1).clamp(1, settings.most.max(1)),
            from: None,
            changed_us: 0,
            looks: 0,
            starts_us: 0,
            began_us: None,
            direction: Direction::Up,
            failing: None,
            spent_us: 0.0,
            last_cost_us: 0.0,
        }
    }

    /// Returns the limit in force; `None` if storage does not limit.
    pub fn limit(&self) -> Option<u32> {
        (self.n < self.settings.most).then_some(self.n)
    }

    /// Returns the limit to remember for the next run: the one that was found under pressure.
    pub fn lesson(&self) -> Option<u32> {
        match self.phase {
            SearchPhase::Settled { best: Some(best) } | SearchPhase::Trial { best, .. } => {
                (best.tasks < self.settings.most).then_some(best.tasks)
            }
            _ => None,
        }
    }

    /// Sets the number of slots of the run, after hosts came or went.
    pub fn set_most(&mut self, most: u32) {
        self.settings.most = most.max(1);
        self.n = self.n.min(self.settings.most);
    }

    /// Takes a look; returns the limit if it changes.
    pub fn observe(&mut self, pulse: &StorageSample, load: &TaskLoad) -> Option<LimitChange> {
        let before = self.limit();
        let why = self.step(&AdmissionSample { pulse: *pulse, load: *load });
        let limit = self.limit();
        (limit != before).then(|| LimitChange { limit, why: why.unwrap_or_default() })
    }

    fn step(&mut self, look: &AdmissionSample) -> Option<String> {
        self.began_us.get_or_insert(look.pulse.at_us);
        // A measurement counts only while exactly the limit runs. Tasks above it began under another limit. With
        // fewer tasks there is nothing to learn, unless no more wait.
        if look.load.in_flight > self.n && matches!(self.phase, SearchPhase::SlowStart { .. }) {
            // These tasks began before it was known that they would use the storage.
            self.phase = SearchPhase::Settled { best: None };
            self.go(look.load.in_flight, look);
        }
        let few = look.load.in_flight < self.n && look.load.waiting > 0 && self.from.is_none();
        if look.load.in_flight == 0 || look.load.in_flight > self.n || few {
            self.from = None;
            return None;
        }
        self.charge(look);
        let from = *self.from.get_or_insert_with(|| {
            self.looks = 0;
            *look
        });
        self.looks += 1;
        let span = look.since(&from);
        match self.phase {
            SearchPhase::SlowStart { before } => self.slow_start(look, &span, before),
            SearchPhase::Settled { best } => self.settled(look, &span, best),
            SearchPhase::Trial { best, top } => self.trial(look, &span, best, top),
        }
    }

    /// Returns the greatest number that may follow. A task that reads its data more than once needs it in the page
    /// cache. That shows only when the cache is full and its content useless. Therefore no more tasks run than fit,
    /// until it is known that data is read once.
    fn cap(&self, look: &AdmissionSample) -> u32 {
        let Some(fit) = look.fit(self.tuning.filled).filter(|_| look.load.again != Some(false)) else {
            return u32::MAX;
        };
        fit.max(self.n)
    }

    /// Begins the measurement anew.
    fn restart(&mut self, look: &AdmissionSample) {
        (self.from, self.looks) = (Some(*look), 0);
    }

    fn go(&mut self, n: u32, look: &AdmissionSample) {
        if n != self.n {
            (self.changed_us, self.from) = (look.pulse.at_us, None);
        }
        self.n = n.clamp(1, self.settings.most);
    }
}

fn rate_comparison(now: ServedRate, best: ServedRate) -> String {
    format!("{} at once were served {}, {} {}", now.tasks, mb(now.rate), best.tasks, mb(best.rate))
}

/// Formats a rate for people.
fn mb(rate: f64) -> String {
    if rate < 1e6 { format!("{:.0} kB/s", rate / 1e3) } else { format!("{:.0} MB/s", rate / 1e6) }
}
