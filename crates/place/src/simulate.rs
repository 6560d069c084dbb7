//! Plays a batch through the placer without running it: `homing plan` shows
//! the outcome, and the tests measure it.

use crate::{HostIx, Need, Params, Placer, Reason};
use homing_model::TaskId;
use homing_model::links::{Links, SwitchIx};

/// A host as the simulation sees it.
#[derive(Clone, Debug)]
pub struct HostModel {
    /// Tasks at once.
    pub slots: u32,
    /// Rate of its link, bytes per second; the default of the parameters when unknown.
    pub nic_bytes_per_s: Option<u64>,
    /// How much longer its own tasks take for each that fetches from it, as a share; 0 when unknown.
    pub serving: f64,
    /// The switch that it is on, of the links of the parameters.
    pub switch: Option<SwitchIx>,
}

/// One task of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The task.
    pub task: TaskId,
    /// Where it would run.
    pub host: HostIx,
    /// Why there.
    pub why: Reason,
    /// Bytes of its inputs there.
    pub local: u64,
    /// Bytes that it would fetch.
    pub remote: u64,
    /// Simulated start, microseconds from the start of the batch.
    pub start_us: u64,
    /// Simulated end.
    pub end_us: u64,
}

/// A running task: it fetches, then works.
struct Job {
    planned: Planned,
    /// Where it fetches from: the host with most of its bytes.
    source: Option<HostIx>,
    /// The switches whose uplinks are on the way.
    crosses: Vec<SwitchIx>,
    cpus: u32,
    fetch_bytes: f64,
    work_us: f64,
}

/// Places all `needs` in the order given, as the dispatcher would: the
/// emptiest host asks first. `work_us` is the time of a task on a host without
/// its fetching. Links are shared equally by those that use them. Tasks that
/// can run nowhere are missing from the answer.
pub fn simulate(
    params: Params,
    hosts: &[HostModel],
    needs: &[(TaskId, Need)],
    mut work_us: impl FnMut(TaskId, HostIx) -> u64,
) -> Vec<Planned> {
    let links: Vec<f64> = hosts
        .iter()
        .map(|h| h.nic_bytes_per_s.map_or(params.default_bytes_per_s, |rate| rate as f64).max(1.0))
        .collect();
    let mut placer = Placer::new(params.clone());
    for host in hosts {
        let ix = placer.host_up(host.slots, host.nic_bytes_per_s);
        placer.host_on(ix, host.switch);
    }
    for (task, need) in needs {
        placer.add(*task, need.clone());
    }
    let mut free: Vec<u32> = hosts.iter().map(|h| h.slots.max(1)).collect();
    let (mut jobs, mut done, mut now) = (Vec::<Job>::new(), Vec::new(), 0.0f64);
    loop {
        let begun = jobs.len();
        fill(&mut placer, &mut free, &mut jobs, now, &mut work_us);
        jobs[begun..].iter_mut().for_each(|job| job.crosses = crossed(&params.links, hosts, job));
        if jobs.is_empty() {
            break;
        }
        let wake = if free.iter().any(|&slots| slots > 0) { placer.ask_again_us() } else { None };
        let at_most = wake.map(|at| at as f64 - now).filter(|&us| us > 0.0).unwrap_or(f64::INFINITY);
        now += advance(&mut jobs, &links, (hosts, &params.links), at_most);
        let (ended, rest) = jobs.into_iter().partition(|job| job.fetch_bytes <= 0.0 && job.work_us <= 0.0);
        jobs = rest;
        let ended: Vec<Job> = ended;
        for mut job in ended {
            job.planned.end_us = now as u64;
            let Planned { task, host, start_us, end_us, .. } = job.planned;
            free[host] += job.cpus;
            placer.finished(host, task, end_us - start_us);
            done.push(job.planned);
        }
    }
    done.sort_by_key(|planned| (planned.start_us, planned.task));
    done
}

fn fill(
    placer: &mut Placer,
    free: &mut [u32],
    jobs: &mut Vec<Job>,
    now: f64,
    work_us: &mut impl FnMut(TaskId, HostIx) -> u64,
) {
    let mut idle: Vec<HostIx> = (0..free.len()).filter(|&host| free[host] > 0).collect();
    while !idle.is_empty() {
        idle.sort_by_key(|&host| std::cmp::Reverse(free[host]));
        let host = idle[0];
        let Some(placed) = placer.pick(host, free[host], now as u64) else {
            idle.remove(0);
            continue;
        };
        free[host] -= placed.need.cpus;
        if free[host] == 0 {
            idle.remove(0);
        }
        let most = placed.need.per_host.iter().filter(|(at, _)| *at != host).max_by_key(|(_, bytes)| *bytes);
        jobs.push(Job {
            source: match placed.why {
                Reason::Fetches { from, .. } => Some(from),
                _ => most.map(|(at, _)| *at),
            },
            crosses: Vec::new(),
            cpus: placed.need.cpus,
            fetch_bytes: placed.remote as f64,
            work_us: (work_us(placed.task, host) as f64).max(1.0),
            planned: Planned {
                task: placed.task,
                host,
                why: placed.why,
                local: placed.local,
                remote: placed.remote,
                start_us: now as u64,
                end_us: 0,
            },
        });
    }
}

fn crossed(links: &Links, hosts: &[HostModel], job: &Job) -> Vec<SwitchIx> {
    let from = job.source.filter(|_| job.fetch_bytes > 0.0).and_then(|source| hosts[source].switch);
    let ends = from.zip(hosts[job.planned.host].switch);
    ends.map_or_else(Vec::new, |(from, to)| links.crossed(from, to).collect())
}

/// Moves time to the next change, or to the next question; how far, in microseconds.
fn advance(jobs: &mut [Job], links: &[f64], (hosts, between): (&[HostModel], &Links), at_most_us: f64) -> f64 {
    let (mut arriving, mut leaving) = (vec![0u32; links.len()], vec![0u32; links.len()]);
    let mut crossing = vec![0u32; between.len()];
    for job in jobs.iter().filter(|job| job.fetch_bytes > 0.0) {
        arriving[job.planned.host] += 1;
        if let Some(source) = job.source {
            leaving[source] += 1;
        }
        job.crosses.iter().for_each(|&at| crossing[at] += 1);
    }
    // Bytes per microsecond.
    let rate = |job: &Job| {
        let host = job.planned.host;
        let incoming = links[host] / f64::from(arriving[host]);
        let outgoing = job.source.map_or(f64::INFINITY, |source| links[source] / f64::from(leaving[source]));
        let uplink =
            |&at: &SwitchIx| between.uplink(at).map_or(f64::INFINITY, |all| all as f64 / f64::from(crossing[at]));
        job.crosses.iter().map(uplink).fold(incoming.min(outgoing), f64::min) / 1e6
    };
    let slowed = |job: &Job| 1.0 + hosts[job.planned.host].serving * f64::from(leaving[job.planned.host]);
    let until = |job: &Job| if job.fetch_bytes > 0.0 { job.fetch_bytes / rate(job) } else { job.work_us * slowed(job) };
    let step = jobs.iter().map(until).fold(at_most_us, f64::min);
    for job in jobs {
        // What ends within this step ends exactly: rounding must not leave crumbs.
        let ends = until(job) <= step * (1.0 + 1e-9);
        if job.fetch_bytes > 0.0 {
            job.fetch_bytes = if ends { 0.0 } else { job.fetch_bytes - rate(job) * step };
        } else {
            job.work_us = if ends { 0.0 } else { job.work_us - step / slowed(job) };
        }
    }
    step
}
