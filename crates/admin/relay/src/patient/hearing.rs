//! Tracks the output of hosts: decides which are queried from this machine too, and how long to wait for all. It does
//! no input or output.

use homing_exec::{CommandOutcome, Giver, HostEventKind, HostProgress};
use std::time::{Duration, Instant};

/// Most bytes that are kept of a host; such commands print far less.
const MOST: usize = 4 << 20;

/// Time for leaders to report the first of their hosts. After that, hosts are queried from this machine.
const LEADERS: Duration = Duration::from_secs(60);

/// The part of the deadline for which a leader may report nothing about a host. Then the host is queried from this
/// machine, and has the whole deadline. A leader that does not answer thus costs little more than its deadline.
const QUIET: f64 = 0.25;

/// Leaders report twice a second which hosts are at work; some reports may be late.
const LEAST_QUIET: Duration = Duration::from_millis(1200);

/// The state of a host while it is queried.
#[derive(Default)]
pub struct QueryState {
    /// The side that serves it, once its turn has come.
    giver: Option<Giver>,
    printed: Printed,
    /// How it ended; `None` while homing waits for it, and for a host that homing stopped waiting for.
    pub outcome: Option<CommandOutcome>,
    /// The time of the last sign of life from it, or from its leader.
    shown: Option<Instant>,
    /// Its output for an additional query from this machine.
    besides: Option<Printed>,
}

/// The output of a host by one way, with the time of arrival, in seconds of this machine's clock.
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

impl QueryState {
    /// Returns its output, with the time of arrival, in seconds of this machine's clock.
    pub fn chunks(&self) -> &[(f64, Vec<u8>)] {
        &self.printed.chunks
    }

    /// Whether it has answered this machine, and not its leader.
    pub(super) fn was_served_besides(&self) -> bool {
        self.besides.is_some()
            && self.giver == Some(Giver::Here)
            && matches!(self.outcome, Some(CommandOutcome::Exited(_)))
    }
}

/// The way by which a host is queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueryRoute {
    /// The way that is tried first for all.
    First,
    /// An additional query from this machine.
    Besides,
}

/// The state of all hosts while they are queried.
pub(super) struct Hearing {
    pub states: Vec<QueryState>,
    deadline: Duration,
    /// The hosts that lead others; empty if there is no tree.
    leaders: Vec<usize>,
    begun: Instant,
    /// The time of the last output by the first way.
    moved: Instant,
    /// The end of the wait for hosts whose turn has come.
    due: Instant,
    /// Hosts whose turn has not come.
    waiting: usize,
    open: usize,
}

impl Hearing {
    pub fn new(hosts: usize, leaders: Vec<usize>, deadline: Duration, now: Instant) -> Hearing {
        let heard = (0..hosts).map(|_| QueryState::default()).collect();
        let due = now + deadline;
        Hearing { states: heard, deadline, leaders, begun: now, moved: now, due, waiting: hosts, open: hosts }
    }

    pub fn has_ended(&self) -> bool {
        self.open == 0
    }

    /// Returns how long to wait for hosts.
    pub fn left(&self, now: Instant) -> Duration {
        let along = self.waiting > 0 && !self.leaders.is_empty();
        let last = if along { self.due.max(self.begun + LEADERS) } else { self.due };
        last.saturating_duration_since(now)
    }

    /// Records an event of a host at a time, in seconds of this machine's clock.
    pub fn record_event(
        &mut self,
        way: QueryRoute,
        at: f64,
        HostProgress { host, giver, what }: HostProgress,
        now: Instant,
    ) {
        let of = &mut self.states[host];
        if of.outcome.is_some() {
            return;
        }
        if way == QueryRoute::Besides {
            return self.hear_besides(host, at, what, now);
        }
        if !matches!(what, HostEventKind::Alive) {
            self.moved = now;
        }
        of.shown = Some(now);
        match what {
            // A command that starts again prints everything again.
            HostEventKind::Begun => {
                self.waiting -= usize::from(of.giver.is_none());
                (of.giver, of.printed) = (Some(giver), Printed::default());
                if of.besides.is_none() {
                    self.due = now + self.deadline;
                }
            }
            HostEventKind::Stdout(bytes) => of.printed.add(at, bytes),
            HostEventKind::Stderr(_) | HostEventKind::Alive => {}
            HostEventKind::Done(outcome, _) => {
                self.waiting -= usize::from(of.giver.is_none());
                of.giver = Some(giver);
                self.end(host, outcome);
            }
        }
    }

    fn hear_besides(&mut self, host: usize, at: f64, what: HostEventKind, now: Instant) {
        let of = &mut self.states[host];
        match what {
            HostEventKind::Begun => self.due = now + self.deadline,
            HostEventKind::Stdout(bytes) => of.besides.get_or_insert_default().add(at, bytes),
            HostEventKind::Stderr(_) | HostEventKind::Alive => {}
            // The leader has reached the host.
            HostEventKind::Done(CommandOutcome::Unreachable(_) | CommandOutcome::Lost(_), _)
                if of.printed.bytes > 0 => {}
            HostEventKind::Done(outcome, _) => {
                self.waiting -= usize::from(of.giver.is_none());
                of.giver = Some(Giver::Here);
                of.printed = of.besides.as_mut().map(std::mem::take).unwrap_or_default();
                self.end(host, outcome);
            }
        }
    }

    fn end(&mut self, host: usize, outcome: CommandOutcome) {
        self.states[host].outcome = Some(outcome);
        self.open -= 1;
    }

    /// Returns the hosts to query from this machine now, while the first way continues. There are some only if no
    /// output arrived from any host for a while. A host is among them if its leader has reported nothing about it, or
    /// if it is a silent leader itself. A host that its leader reports as at work is not: a query from here would hang
    /// as well.
    pub fn take_quiet(&mut self, now: Instant) -> Vec<usize> {
        let quiet = self.deadline.mul_f64(QUIET).max(LEAST_QUIET);
        if self.leaders.is_empty() || now.saturating_duration_since(self.moved) < quiet {
            return Vec::new();
        }
        let patience = |host: &usize| match self.states[*host].giver {
            Some(Giver::Here) => None,
            None if !self.leaders.contains(host) => Some(LEADERS),
            _ => Some(quiet),
        };
        let is_due = |host: &usize| {
            let of = &self.states[*host];
            let since = now.saturating_duration_since(of.shown.unwrap_or(self.begun));
            of.outcome.is_none() && of.besides.is_none() && patience(host).is_some_and(|patience| since >= patience)
        };
        let hosts: Vec<usize> = (0..self.states.len()).filter(is_due).collect();
        for host in &hosts {
            self.states[*host].besides = Some(Printed::default());
            self.due = now + self.deadline;
        }
        hosts
    }

    /// Returns the hosts that have answered this machine and not their leader; leaders are left out.
    pub fn served_besides(&self) -> impl Iterator<Item = usize> {
        let leads = |host: &usize| self.leaders.contains(host);
        (0..self.states.len()).filter(move |host| self.states[*host].was_served_besides() && !leads(host))
    }
}
