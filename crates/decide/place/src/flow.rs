//! Running tasks as the simulator has them: each fetches, then works. Links are shared equally by those that fetch over
//! them, so that one that begins or ends changes the pace of those it meets, and of no others. Or in order: who came first
//! takes what it can, and those behind it what is left. Tasks that begin together fetch and work in step where they share
//! equally, and the link idles while they work; real ones never stay in step.

use crate::plan::{HostModel, Planned};
use crate::{HostIx, Params};
use homing_model::Links;
use homing_model::links::SwitchIx;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// What ends within so many microseconds ends at once: rounding must not tell apart what began together.
const AT_ONCE_US: f64 = 1e-3;

type FlowIx = usize;

/// One running task.
pub struct Flow {
    pub planned: Planned,
    pub cpus: u32,
    /// Where it fetches from: the host with most of its bytes.
    source: Option<HostIx>,
    /// The switches whose uplinks are on the way.
    crosses: Vec<SwitchIx>,
    fetches: bool,
    /// Bytes to fetch, then microseconds to work, as of `at_us`.
    left: f64,
    work_us: f64,
    at_us: f64,
    /// Of what is left, per microsecond.
    pace: f64,
    /// In the order of their starts.
    number: u64,
    /// The last change of its pace: what was said of its end before that holds no more.
    change: u64,
}

impl Flow {
    fn end_us(&self) -> f64 {
        self.at_us + self.left / self.pace
    }
}

/// How links are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// All that fetch get the same.
    Equal,
    /// Who came first takes what it can.
    InOrder,
}

/// What those that fetch leave of links that are shared in order, bytes per second.
#[derive(Debug, Default)]
struct Spare {
    incoming: Vec<f64>,
    outgoing: Vec<f64>,
    crossing: Vec<f64>,
}

/// All of them.
pub struct Flows {
    sharing: Sharing,
    links: Links,
    hosts: Vec<HostModel>,
    /// Rates of hosts' links, bytes per second.
    rates: Vec<f64>,
    all: Vec<Option<Flow>>,
    vacant: Vec<FlowIx>,
    running: usize,
    begun: u64,
    changes: u64,
    /// Those that fetch, by the host that they run on, the host that they read from and the uplink that they cross.
    arriving: Vec<BTreeSet<FlowIx>>,
    leaving: Vec<BTreeSet<FlowIx>>,
    crossing: Vec<BTreeSet<FlowIx>>,
    /// Those that fetch, by number, where links are shared in order.
    queue: BTreeMap<u64, FlowIx>,
    spare: Spare,
    /// Those that work on hosts that serving slows down.
    working: Vec<BTreeSet<FlowIx>>,
    /// When each ends what it does, as bits of a number that is not negative, which sort as it does.
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

    /// Links that nobody uses.
    fn whole(&self) -> Spare {
        let uplink = |at| self.links.uplink(at).map_or(f64::INFINITY, |rate| rate as f64);
        let crossing = (0..self.crossing.len()).map(uplink).collect();
        Spare { incoming: self.rates.clone(), outgoing: self.rates.clone(), crossing }
    }

    pub fn is_empty(&self) -> bool {
        self.running == 0
    }

    /// A task begins that works for so long when it has fetched.
    pub fn begin(&mut self, (planned, source, cpus): (Planned, Option<HostIx>, u32), work_us: f64, now: f64) {
        let fetches = planned.remote > 0;
        let source = source.filter(|_| fetches);
        let switch = |host: HostIx| self.hosts[host].switch;
        let ends = source.and_then(switch).zip(switch(planned.host));
        let crosses = ends.map_or_else(Vec::new, |(from, to)| self.links.crossed(from, to).collect());
        let left = if fetches { planned.remote as f64 } else { work_us };
        self.begun += 1;
        let flow = Flow {
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

    /// When the next of them ends what it does, microseconds.
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

    /// Moves time on; those that have ended, in the order of their starts.
    pub fn advance(&mut self, now: f64) -> Vec<Flow> {
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

    fn flow(&self, ix: FlowIx) -> &Flow {
        self.all[ix].as_ref().expect("it runs")
    }

    /// It joins (`true`) or leaves those that it shares links or a host with, whose pace changes by it.
    fn meets(&mut self, ix: FlowIx, joins: bool, now: f64) {
        let Flow { planned, source, fetches, crosses, .. } = self.flow(ix);
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

    /// It joins or leaves the queue, in which all behind it may get another pace.
    fn queues(&mut self, ix: FlowIx, fetches: bool, joins: bool, now: f64) {
        let number = self.flow(ix).number;
        match (fetches, joins) {
            // Nobody is behind it: tasks fetch first of all.
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

    /// It takes what those before it leave. Most of a long queue get what they had, and their ends hold.
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

    /// Bytes, or microseconds of work, per microsecond.
    fn pace(&self, flow: &Flow) -> f64 {
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
