//! What is heard of hosts, which of them are asked from here besides, and for how long all are waited for. Pure.

use homing_exec::{Event, Giver, Outcome, What};
use std::time::{Duration, Instant};

/// Bytes of a host that are kept; what is asked so prints far less.
const MOST: usize = 4 << 20;

/// For leaders to tell of the first of their hosts. Those that do not are done without: hosts are asked from here.
const LEADERS: Duration = Duration::from_secs(60);

/// Of the deadline, what a leader may tell nothing of a host. The host itself has the whole of it when it is asked from
/// here then, so that one that does not answer costs little more than its deadline.
const QUIET: f64 = 0.25;

/// Leaders tell twice a second who is at work; some of that may be late.
const LEAST_QUIET: Duration = Duration::from_millis(1200);

/// What is known of a host while it is asked.
#[derive(Default)]
pub struct Heard {
    /// Who serves it, once it is its turn.
    giver: Option<Giver>,
    printed: Printed,
    /// How it ended; nothing while it is waited for, and of one that was not waited for any longer.
    pub outcome: Option<Outcome>,
    /// When it, or its leader, last showed that it is there.
    shown: Option<Instant>,
    /// What it has printed when it was asked from here besides.
    besides: Option<Printed>,
}

/// What a host has printed by one way, and when that came, by this machine's clock in seconds.
#[derive(Default)]
struct Printed {
    chunks: Vec<(f64, Vec<u8>)>,
    bytes: usize,
}

impl Printed {
    fn add(&mut self, at: f64, bytes: Vec<u8>) {
        if self.bytes < MOST {
            self.bytes += bytes.len();
            self.chunks.push((at, bytes));
        }
    }
}

impl Heard {
    /// What it has printed, and when that came, by this machine's clock in seconds.
    pub fn chunks(&self) -> &[(f64, Vec<u8>)] {
        &self.printed.chunks
    }

    /// It has an answer from here, and none from its leader.
    pub(super) fn was_served_besides(&self) -> bool {
        self.besides.is_some() && self.giver == Some(Giver::Here) && matches!(self.outcome, Some(Outcome::Exited(_)))
    }
}

/// By which way a host is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The one that all are asked by first.
    First,
    /// From here, besides.
    Besides,
}

/// All hosts, while they are asked.
pub(super) struct Hearing {
    pub heard: Vec<Heard>,
    deadline: Duration,
    /// The hosts that lead others; none where there is no tree.
    leaders: Vec<usize>,
    begun: Instant,
    /// When something was last heard by the first way.
    moved: Instant,
    /// Until then those are waited for whose turn has come.
    due: Instant,
    /// Hosts whose turn has not come.
    waiting: usize,
    open: usize,
}

impl Hearing {
    pub fn new(hosts: usize, leaders: Vec<usize>, deadline: Duration, now: Instant) -> Hearing {
        let heard = (0..hosts).map(|_| Heard::default()).collect();
        let due = now + deadline;
        Hearing { heard, deadline, leaders, begun: now, moved: now, due, waiting: hosts, open: hosts }
    }

    pub fn has_ended(&self) -> bool {
        self.open == 0
    }

    /// For how long hosts are waited for still.
    pub fn left(&self, now: Instant) -> Duration {
        let along = self.waiting > 0 && !self.leaders.is_empty();
        let last = if along { self.due.max(self.begun + LEADERS) } else { self.due };
        last.saturating_duration_since(now)
    }

    /// What came at this time, by this machine's clock in seconds.
    pub fn hear(&mut self, way: Way, at: f64, Event { host, giver, what }: Event, now: Instant) {
        let of = &mut self.heard[host];
        if of.outcome.is_some() {
            return;
        }
        if way == Way::Besides {
            return self.hear_besides(host, at, what, now);
        }
        if !matches!(what, What::Alive) {
            self.moved = now;
        }
        of.shown = Some(now);
        match what {
            // One that is begun once more tells all once more.
            What::Begun => {
                self.waiting -= usize::from(of.giver.is_none());
                (of.giver, of.printed) = (Some(giver), Printed::default());
                if of.besides.is_none() {
                    self.due = now + self.deadline;
                }
            }
            What::Stdout(bytes) => of.printed.add(at, bytes),
            What::Stderr(_) | What::Alive => {}
            What::Done(outcome, _) => {
                self.waiting -= usize::from(of.giver.is_none());
                of.giver = Some(giver);
                self.end(host, outcome);
            }
        }
    }

    fn hear_besides(&mut self, host: usize, at: f64, what: What, now: Instant) {
        let of = &mut self.heard[host];
        match what {
            What::Begun => self.due = now + self.deadline,
            What::Stdout(bytes) => of.besides.get_or_insert_default().add(at, bytes),
            What::Stderr(_) | What::Alive => {}
            // Its leader has reached it.
            What::Done(Outcome::Unreachable(_) | Outcome::Lost(_), _) if of.printed.bytes > 0 => {}
            What::Done(outcome, _) => {
                self.waiting -= usize::from(of.giver.is_none());
                of.giver = Some(Giver::Here);
                of.printed = of.besides.as_mut().map(std::mem::take).unwrap_or_default();
                self.end(host, outcome);
            }
        }
    }

    fn end(&mut self, host: usize, outcome: Outcome) {
        self.heard[host].outcome = Some(outcome);
        self.open -= 1;
    }

    /// Hosts that are asked from here now, while the first way to them is waited for too: nothing comes of any host, and their
    /// leaders, or they as leaders, tell nothing of them. A leader that tells of one that has answered it and hangs since is
    /// believed: from here that one would hang as well.
    pub fn take_quiet(&mut self, now: Instant) -> Vec<usize> {
        let quiet = self.deadline.mul_f64(QUIET).max(LEAST_QUIET);
        if self.leaders.is_empty() || now.saturating_duration_since(self.moved) < quiet {
            return Vec::new();
        }
        let patience = |host: &usize| match self.heard[*host].giver {
            Some(Giver::Here) => None,
            None if !self.leaders.contains(host) => Some(LEADERS),
            _ => Some(quiet),
        };
        let is_due = |host: &usize| {
            let of = &self.heard[*host];
            let since = now.saturating_duration_since(of.shown.unwrap_or(self.begun));
            of.outcome.is_none() && of.besides.is_none() && patience(host).is_some_and(|patience| since >= patience)
        };
        let hosts: Vec<usize> = (0..self.heard.len()).filter(is_due).collect();
        for host in &hosts {
            self.heard[*host].besides = Some(Printed::default());
            self.due = now + self.deadline;
        }
        hosts
    }

    /// Hosts that do not lead, and that have answered from here alone.
    pub fn served_besides(&self) -> impl Iterator<Item = usize> {
        let leads = |host: &usize| self.leaders.contains(host);
        (0..self.heard.len()).filter(move |host| self.heard[*host].was_served_besides() && !leads(host))
    }
}
