//! Running tasks in the simulator: each task fetches, then works. With equal sharing, all fetches over a link get the
//! same rate. A fetch that begins or ends then changes only the rates of fetches that share a link with it. In order,
//! the first fetch takes the whole rate it can use, and later ones the rest.
//!
//! With equal sharing, tasks that begin together fetch and work in step, and the link idles while they work. Real
//! tasks never stay in step.

use crate::plan::{HostModel, Planned};
use crate::{HostIx, Params};
use homing_model::ClusterLinks;
use homing_model::links::SwitchIx;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// Tasks that end within this time, microseconds, end together: rounding must not separate tasks that began together.
const AT_ONCE_US: f64 = 1e-3;

type FlowIx = usize;

/// One running task.
pub struct TaskFlow {
    pub planned: Planned,
    pub cpus: u32,
    /// The host that it fetches from: the one with most of its bytes.
    source: Option<HostIx>,
    /// The switches whose uplinks are on the way.
    crosses: Vec<SwitchIx>,
    fetches: bool,
    /// The rest at `at_us`: bytes to fetch, then microseconds of work.
    left: f64,
    work_us: f64,
    at_us: f64,
    /// Progress of `left` per microsecond.
    pace: f64,
    /// Its position in the order of starts.
    number: u64,
    /// The number of the last change of its pace: entries of `ends` with an older number are void.
    change: u64,
}

impl TaskFlow {
    fn end_us(&self) -> f64 {
        self.at_us + self.left / self.pace
    }
}

/// The way in which fetches share links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All fetches get the same rate.
    Equal,
    /// Earlier fetches take the rate that they can use.
    InOrder,
}

/// The rates of links that fetches leave free if links are shared in order, bytes per second.
#[derive(Debug, Default)]
struct Spare {
    incoming: Vec<f64>,
    outgoing: Vec<f64>,
    crossing: Vec<f64>,
}

/// All running tasks.
pub struct Flows {
    sharing: Sharing,
    links: ClusterLinks,
    hosts: Vec<HostModel>,
    /// Rates of hosts' links, bytes per second.
    rates: Vec<f64>,
    all: Vec<Option<TaskFlow>>,
    vacant: Vec<FlowIx>,
    running: usize,
    begun: u64,
    changes: u64,
    /// Tasks that fetch, by their host, by the host that they read from, and by the uplink that they cross.
    arriving: Vec<BTreeSet<FlowIx>>,
    leaving: Vec<BTreeSet<FlowIx>>,
    crossing: Vec<BTreeSet<FlowIx>>,
    /// Tasks that fetch, by number, if links are shared in order.
    queue: BTreeMap<u64, FlowIx>,
    spare: Spare,
    /// Tasks that work, on hosts that serving slows down.
    working: Vec<BTreeSet<FlowIx>>,
    /// The end of each task's present phase, as the bits of a non-negative number, which sort in the same order.
    ends: BinaryHeap<Reverse<(u64, FlowIx, u64)>>,
}

impl Flows {
    pub fn new(hosts: &[HostModel], params: &Params, sharing: Sharing) -> Flows {
        let rate = |h: &HostModel| h.nic_bytes_per_s.map_or(params.default_bytes_per_s, |rate| rate as f64).max(1.0);
        let none = |n| vec![BTreeSet::new(); n];
        let mut flows = Flows {
            sharing,
            queue: BTreeMap::new(),
            spare: Spare::default(),
            rates: hosts.iter().map(rate).collect(),
            all: Vec::new(),
            vacant: Vec::new(),
            running: 0,
            begun: 0,
            changes: 0,
            arriving: none(hosts.len()),
            leaving: none(hosts.len()),
            crossing: none(params.links.len()),
            working: none(hosts.len()),
            ends: BinaryHeap::new(),
            links: params.links.clone(),
            hosts: hosts.to_vec(),
        };
        flows.spare = flows.whole();
        flows
    }

    /// Returns the rates of unused links.
    fn whole(&self) -> Spare {
        let uplink = |at| self.links.uplink(at).map_or(f64::INFINITY, |rate| rate as f64);
        let crossing = (0..self.crossing.len()).map(uplink).collect();
        Spare { incoming: self.rates.clone(), outgoing: self.rates.clone(), crossing }
    }

    pub fn is_empty(&self) -> bool {
        self.running == 0
    }

    /// Starts a task, which works for `work_us` after it has fetched.
    pub fn begin(&mut self, (planned, source, cpus): (Planned, Option<HostIx>, u32), work_us: f64, now: f64) {
        let fetches = planned.remote > 0;
        let source = source.filter(|_| fetches);
        let switch = |host: HostIx| self.hosts[host].switch;
        let ends = source.and_then(switch).zip(switch(planned.host));
        let crosses = ends.map_or_else(Vec::new, |(from, to)| self.links.crossed(from, to).collect());
        let left = if fetches { planned.remote as f64 } else { work_us };
        self.begun += 1;
        let flow = TaskFlow {
            planned,
            cpus,
            source,
            crosses,
            fetches,
            left,
            work_us,
            at_us: now,
            pace: 1.0,
            number: self.begun,
            change: 0,
        };
        let ix = self.vacant.pop().unwrap_or(self.all.len());
        if ix == self.all.len() {
            self.all.push(None);
        }
        self.all[ix] = Some(flow);
        self.running += 1;
        self.meets(ix, true, now);
    }

    /// Returns the next end of a phase, microseconds.
    pub fn next_us(&mut self) -> Option<f64> {
        while let Some(Reverse((at, ix, change))) = self.ends.peek().copied() {
            if self.is_current(ix, change) {
                return Some(f64::from_bits(at));
            }
            self.ends.pop();
        }
        None
    }

    fn is_current(&self, ix: FlowIx, change: u64) -> bool {
        self.all[ix].as_ref().is_some_and(|flow| flow.change == change)
    }

    /// Advances the time, and returns the tasks that have ended, in the order of their starts.
    pub fn advance(&mut self, now: f64) -> Vec<TaskFlow> {
        let mut ended = Vec::new();
        while self.next_us().is_some_and(|at| at <= now + AT_ONCE_US) {
            let Some(Reverse((_, ix, _))) = self.ends.pop() else { break };
            self.meets(ix, false, now);
            let flow = self.all[ix].as_mut().expect("its end is current");
            if flow.fetches {
                (flow.fetches, flow.left, flow.at_us) = (false, flow.work_us, now);
                self.meets(ix, true, now);
            } else {
                ended.extend(self.all[ix].take());
                self.vacant.push(ix);
                self.running -= 1;
            }
        }
        ended.sort_by_key(|flow| flow.number);
        ended
    }

    fn flow(&self, ix: FlowIx) -> &TaskFlow {
        self.all[ix].as_ref().expect("it runs")
    }

    /// Lets a task join (`true`) or leave the sets of tasks that share links or a host with it, and updates their
    /// pace.
    fn meets(&mut self, ix: FlowIx, joins: bool, now: f64) {
        let TaskFlow { planned, source, fetches, crosses, .. } = self.flow(ix);
        let (host, source, fetches, crosses) = (planned.host, *source, *fetches, crosses.clone());
        let equal = self.sharing == Sharing::Equal;
        let mut others = BTreeSet::new();
        let mut at = |set: &mut BTreeSet<FlowIx>| {
            _ = if joins { set.insert(ix) } else { set.remove(&ix) };
            if equal {
                others.extend(set.iter().copied());
            }
        };
        if fetches {
            at(&mut self.arriving[host]);
            source.into_iter().for_each(|source| at(&mut self.leaving[source]));
            crosses.into_iter().for_each(|switch| at(&mut self.crossing[switch]));
            let served = source.filter(|source| self.hosts[*source].serving > 0.0);
            served.into_iter().for_each(|source| others.extend(self.working[source].iter().copied()));
        } else if self.hosts[host].serving > 0.0 {
            _ = if joins { self.working[host].insert(ix) } else { self.working[host].remove(&ix) };
        }
        if joins {
            others.insert(ix);
        }
        match self.sharing {
            Sharing::Equal => others.into_iter().for_each(|other| self.repace(other, self.pace(self.flow(other)), now)),
            Sharing::InOrder => self.queues(ix, fetches, joins, now),
        }
    }

    /// Lets a task join or leave the queue, in which all later tasks may get another pace.
    fn queues(&mut self, ix: FlowIx, fetches: bool, joins: bool, now: f64) {
        let number = self.flow(ix).number;
        match (fetches, joins) {
            // No task is behind it: tasks fetch before they work.
            (true, true) => {
                self.queue.insert(number, ix);
                self.serve(ix, now);
            }
            (true, false) => {
                self.queue.remove(&number);
                self.spare = self.whole();
                let queue = std::mem::take(&mut self.queue);
                queue.values().for_each(|other| self.serve(*other, now));
                self.queue = queue;
            }
            (false, true) => self.repace(ix, self.pace(self.flow(ix)), now),
            (false, false) => {}
        }
    }

    /// Gives a task the rate that earlier ones leave. In a long queue most tasks keep their rate, and their ends stay
    /// valid.
    fn serve(&mut self, ix: FlowIx, now: f64) {
        let flow = self.all[ix].as_ref().expect("it runs");
        let (host, source) = (flow.planned.host, flow.source);
        let Spare { incoming, outgoing, crossing } = &mut self.spare;
        let least = source.map_or(f64::INFINITY, |source| outgoing[source]).min(incoming[host]);
        let takes = flow.crosses.iter().fold(least, |least, at| least.min(crossing[*at]));
        incoming[host] -= takes;
        source.into_iter().for_each(|source| outgoing[source] -= takes);
        flow.crosses.iter().for_each(|at| crossing[*at] -= takes);
        let pace = takes.max(1.0) / 1e6;
        if flow.change == 0 || flow.pace != pace {
            self.repace(ix, pace, now);
        }
    }

    fn repace(&mut self, ix: FlowIx, pace: f64, now: f64) {
        let flow = self.all[ix].as_mut().expect("it runs");
        flow.left = (flow.left - flow.pace * (now - flow.at_us)).max(0.0);
        self.changes += 1;
        (flow.at_us, flow.pace, flow.change) = (now, pace, self.changes);
        self.ends.push(Reverse((flow.end_us().to_bits(), ix, flow.change)));
    }

    /// Returns the bytes, or the microseconds of work, per microsecond.
    fn pace(&self, flow: &TaskFlow) -> f64 {
        let host = flow.planned.host;
        let share = |rate: f64, among: &BTreeSet<FlowIx>| rate / among.len().max(1) as f64;
        if !flow.fetches {
            return 1.0 / (1.0 + self.hosts[host].serving * self.leaving[host].len() as f64);
        }
        let incoming = share(self.rates[host], &self.arriving[host]);
        let outgoing = flow.source.map(|source| share(self.rates[source], &self.leaving[source]));
        let uplinks =
            flow.crosses.iter().filter_map(|at| Some(share(self.links.uplink(*at)? as f64, &self.crossing[*at])));
        uplinks.chain(outgoing).fold(incoming, f64::min).max(1.0) / 1e6
    }
}
