//! Plays a batch through the placer without running it: `homing plan` shows the outcome, and the tests measure it.

use crate::flow::{Flows, Sharing, TaskFlow};
use crate::plan::{HostModel, Planned};
use crate::{HostIx, Need, Params, Placed, Placer, Reason};
use homing_model::TaskId;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Idle hosts that request tasks at one moment, besides those where a task ended; the others have their turn later.
const ASKING: usize = 64;

/// Places all `needs` in the given order, as the dispatcher would: the emptiest host is served first. `work_us` is
/// the time of a task on a host without its fetching. Links are shared equally by the tasks that use them. Tasks that
/// can run nowhere are missing from the answer.
pub fn simulate(
    params: Params,
    hosts: &[HostModel],
    needs: &[(TaskId, Need)],
    work_us: impl FnMut(TaskId, HostIx) -> u64,
) -> Vec<Planned> {
    play(params, hosts, needs, work_us, Sharing::Equal)
}

/// Simulates as [`simulate`] does, but earlier fetches take of a link the rate that they can use. This is nearer to
/// the real time of a run with full links, and costs more with many fetches.
///
/// Eight hosts with 144 jobs, which read 5 MiB each from one link of 100 Mbit/s and worked 2.4 s, took 60 s
/// (`bench/sources/004-full-link`). This function gives 56 s, equal shares 86 s.
pub fn replay(
    params: Params,
    hosts: &[HostModel],
    needs: &[(TaskId, Need)],
    work_us: impl FnMut(TaskId, HostIx) -> u64,
) -> Vec<Planned> {
    play(params, hosts, needs, work_us, Sharing::InOrder)
}

fn play(
    params: Params,
    hosts: &[HostModel],
    needs: &[(TaskId, Need)],
    mut work_us: impl FnMut(TaskId, HostIx) -> u64,
    sharing: Sharing,
) -> Vec<Planned> {
    let mut flows = Flows::new(hosts, &params, sharing);
    let mut placer = Placer::new(params);
    for host in hosts {
        let ix = placer.host_up(host.slots, host.nic_bytes_per_s);
        placer.host_on(ix, host.switch);
    }
    for (task, need) in needs {
        placer.add(*task, need.clone());
    }
    let mut idle = FreeSlots::new(hosts);
    let (mut done, mut now) = (Vec::with_capacity(needs.len()), 0.0f64);
    let mut freed: Vec<HostIx> = (0..hosts.len()).collect();
    loop {
        let asking = idle.asking(&freed);
        hand_out(&mut placer, &mut idle, asking, &mut flows, now, &mut work_us);
        if flows.is_empty() {
            // Hosts that have not had their turn.
            let asking = idle.all();
            hand_out(&mut placer, &mut idle, asking, &mut flows, now, &mut work_us);
        }
        let Some(next) = flows.next_us() else { break };
        let wake = if idle.is_empty() { None } else { placer.ask_again_us() };
        now = wake.map(|at| at as f64).filter(|&at| at > now).map_or(next, |at| at.min(next));
        let ended = flows.advance(now);
        freed = ended.iter().map(|flow| flow.planned.host).collect();
        for TaskFlow { mut planned, cpus, .. } in ended {
            planned.end_us = now as u64;
            idle.give(planned.host, cpus);
            placer.finished(planned.host, planned.task, planned.end_us - planned.start_us);
            done.push(planned);
        }
    }
    done.sort_by_key(|planned| (planned.start_us, planned.task));
    done
}

/// Hosts by their free slots, those with most first.
type Asking = BTreeSet<(Reverse<u32>, HostIx)>;

/// The free slots.
struct FreeSlots {
    free: Vec<u32>,
    hosts: BTreeSet<HostIx>,
    /// The host where the next turn begins, if not all idle hosts request tasks.
    next: HostIx,
}

impl FreeSlots {
    fn new(hosts: &[HostModel]) -> FreeSlots {
        FreeSlots { free: hosts.iter().map(|h| h.slots.max(1)).collect(), hosts: (0..hosts.len()).collect(), next: 0 }
    }

    fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    fn take(&mut self, host: HostIx, cpus: u32) {
        self.free[host] -= cpus;
        if self.free[host] == 0 {
            self.hosts.remove(&host);
        }
    }

    fn give(&mut self, host: HostIx, cpus: u32) {
        self.free[host] += cpus;
        self.hosts.insert(host);
    }

    fn all(&self) -> Asking {
        self.hosts.iter().map(|host| (Reverse(self.free[*host]), *host)).collect()
    }

    /// Returns the hosts where something changed, and some of the others in turn.
    fn asking(&mut self, freed: &[HostIx]) -> Asking {
        if self.hosts.len() <= ASKING {
            return self.all();
        }
        let turn = self.hosts.range(self.next..).chain(self.hosts.range(..self.next)).take(ASKING);
        let turn: Vec<HostIx> = turn.copied().collect();
        self.next = turn.last().map_or(0, |last| last + 1);
        let freed = freed.iter().copied().filter(|host| self.free[*host] > 0);
        turn.into_iter().chain(freed).map(|host| (Reverse(self.free[host]), host)).collect()
    }
}

fn hand_out(
    placer: &mut Placer,
    idle: &mut FreeSlots,
    mut asking: Asking,
    flows: &mut Flows,
    now: f64,
    work_us: &mut impl FnMut(TaskId, HostIx) -> u64,
) {
    while let Some((Reverse(free), host)) = asking.pop_first() {
        let Some(placed) = placer.pick(host, free, now as u64) else { continue };
        idle.take(host, placed.need.cpus);
        if idle.free[host] > 0 {
            asking.insert((Reverse(idle.free[host]), host));
        }
        let work_us = (work_us(placed.task, host) as f64).max(1.0);
        flows.begin(begun(placed, host, now as u64), work_us, now);
    }
}

/// Returns the started task and the host that it reads from: the assigned one, else the one with most of its bytes.
fn begun(placed: Placed, host: HostIx, start_us: u64) -> (Planned, Option<HostIx>, u32) {
    let Placed { task, need, local, remote, why } = placed;
    let most = need.per_host.iter().filter(|(at, _)| *at != host).max_by_key(|(_, bytes)| *bytes);
    let source = match why {
        Reason::Fetches { from, .. } => Some(from),
        _ => most.map(|(at, _)| *at),
    };
    (Planned { task, host, why, local, remote, start_us, end_us: 0 }, source, need.cpus)
}
