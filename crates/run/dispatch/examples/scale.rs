//! Drives the placer, the gates and the coordinator's state with hosts that are mere numbers, for `bench/scale`. One
//! size gives one line of JSON.
//!
//! `scale plan HOSTS TASKS` plans a batch as `homing plan` does. `scale core HOSTS TASKS` lets the coordinator's core
//! run it, with a sample of a host for every end. There are two levels of switches, and three copies of each file:
//! one on any host, two on another switch. All random numbers are the same each time.

#![allow(missing_docs, reason = "a program")]

use homing_batch::Halt;
use homing_dispatch::{Action, Core, Io, Offer, Policy, Resources};
use homing_journal::Counts;
use homing_launch::wire::{AttemptEnd, ToWorker};
use homing_model::links::{ClusterLinks, Switch};
use homing_model::{Command, Event, HostFacts, HostSample, IoCounters, Outcome, Task, TaskId};
use homing_os::clock::{Moment, Mono};
use homing_place::{HostIx, HostModel, Need, Params, Planned, simulate};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Hosts on one switch, and switches below one above, as in a row of racks.
const PER_LEAF: usize = 40;
const LEAVES_PER_SPINE: usize = 10;
/// 10 Gbit/s a host, 40 Gbit/s above a rack, 100 Gbit/s above a row, bytes per second.
const LINK: u64 = 1_250_000_000;
const ABOVE_LEAF: u64 = 5_000_000_000;
const ABOVE_SPINE: u64 = 12_500_000_000;
const SLOTS: u32 = 2;
const SIZE: u64 = 256 << 20;
/// The tasks that the coordinator holds to choose from, and the messages that it takes at once, as in a run.
const WINDOW: usize = 20_000;
const BATCH: usize = 512;

/// xorshift with a fixed seed, so that each run is the same.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok());
    let (Some(what), Some(hosts), Some(tasks)) = (words.first(), number(1), number(2)) else {
        eprintln!("usage: scale plan|core HOSTS TASKS");
        std::process::exit(2);
    };
    let line = if what == "core" { core(hosts, tasks) } else { plan(hosts, tasks) };
    println!("{line}");
}

fn leaves(hosts: usize) -> usize {
    hosts.div_ceil(PER_LEAF)
}

fn host(ix: HostIx) -> String {
    format!("n{ix}")
}

fn switches(hosts: usize) -> ClusterLinks {
    let leaf = |ix: usize| Switch {
        name: format!("leaf{ix}"),
        hosts: (ix * PER_LEAF..((ix + 1) * PER_LEAF).min(hosts)).map(host).collect(),
        uplink: Some(ABOVE_LEAF),
        above: Some(format!("spine{}", ix / LEAVES_PER_SPINE)),
    };
    let spine = |ix| Switch { name: format!("spine{ix}"), uplink: Some(ABOVE_SPINE), ..Switch::default() };
    let spines = leaves(hosts).div_ceil(LEAVES_PER_SPINE);
    ClusterLinks::new((0..leaves(hosts)).map(leaf).chain((0..spines).map(spine)).collect()).expect("a tree")
}

/// Returns three hosts: any host, and two of the hosts on another switch.
fn copies(dice: &mut Dice, hosts: usize) -> [HostIx; 3] {
    let first = dice.roll(hosts as u64) as usize;
    let other = (first / PER_LEAF + 1 + dice.roll(leaves(hosts) as u64 - 1) as usize) % leaves(hosts) * PER_LEAF;
    let there = PER_LEAF.min(hosts - other) as u64;
    let second = dice.roll(there) as usize;
    let third = (second + 1 + dice.roll(there - 1) as usize) % there as usize;
    [first, other + second, other + third]
}

/// Returns the wall time of a task, microseconds: 5 to 15 s.
fn work_us(task: TaskId) -> u64 {
    5_000_000 + (task * 2_654_435_761) % 10_000_000
}

/// Returns the most memory that this process had, MB.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kb =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse::<u64>().ok());
    kb.unwrap_or(0) / 1000
}

/// Returns the seconds of processor time that this process, which has one thread, has used so far.
fn processor_seconds() -> f64 {
    let told = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    told.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

fn plan(hosts: usize, tasks: usize) -> serde_json::Value {
    let mut dice = Dice(88_172_645_463_325_252);
    let model =
        |ix: usize| HostModel { slots: SLOTS, nic_bytes_per_s: Some(LINK), serving: 0.0, switch: Some(ix / PER_LEAF) };
    let shapes: Vec<HostModel> = (0..hosts).map(model).collect();
    let need = |task: usize| {
        let per_host = copies(&mut dice, hosts).into_iter().map(|host| (host, SIZE)).collect();
        (task as TaskId + 1, Need { total: SIZE, per_host, ..Need::default() })
    };
    let needs: Vec<(TaskId, Need)> = (0..tasks).map(need).collect();
    let params = Params { links: switches(hosts), ..Params::default() };
    let begun = processor_seconds();
    let plan = simulate(params, &shapes, &needs, |task, _| work_us(task));
    let took = processor_seconds() - begun;
    assert_eq!(plan.len(), tasks, "every task is planned");
    let sum = |of: fn(&Planned) -> u64| plan.iter().map(of).sum::<u64>() as f64;
    let end = plan.iter().map(|planned| planned.end_us).max().unwrap_or(0) as f64;
    // The time in which no slot is ever idle.
    let least = sum(|planned| work_us(planned.task)) / (hosts * SLOTS as usize) as f64;
    serde_json::json!({
        "what": "plan", "hosts": hosts, "tasks": tasks, "seconds": took, "us_per_decision": took / tasks as f64 * 1e6,
        "peak_mb": peak_mb(), "local": sum(|p| p.local) / sum(|p| p.local + p.remote), "longer_than_least": end / least,
    })
}

fn policy(links: ClusterLinks) -> Policy {
    Policy {
        tries: None,
        halt: Halt::Never,
        delay_us: 0,
        memfree: 0,
        load: None,
        timeout_ms: None,
        output_limit: None,
        timeout_of_median: None,
        locality: true,
        prefetch: true,
        resources: Resources::default(),
        needs: Vec::new(),
        links,
        io: Io::Auto,
        learnt: HashMap::new(),
        movers: vec![],
        shared: false,
        licensed: Default::default(),
        power: Default::default(),
    }
}

fn offer(id: TaskId, dice: &mut Dice, hosts: usize) -> Offer {
    let command = Command::Shell(format!("gzip -k /data/f{id}").as_str().into());
    let task = Task { id, ..Task::of(command) };
    let per_host = copies(dice, hosts).into_iter().map(|ix| (host(ix), SIZE)).collect();
    Offer {
        task,
        total: SIZE,
        per_host,
        served: vec![],
        own: None,
        volumes: vec![],
        requires: vec![],
        located: true,
        read_before: false,
        guessed: false,
        reads: vec![],
        recent: vec![],
    }
}

/// The hosts. A task ends there when its time is over.
struct World {
    ends: BinaryHeap<Reverse<(u64, u64, HostIx)>>,
    journalled: u64,
}

impl World {
    fn act(&mut self, actions: Vec<Action>, now_us: u64) {
        for action in actions {
            match action {
                Action::Send(host, ToWorker::Run { ticket, task, .. }) => {
                    self.ends.push(Reverse((now_us + work_us(task.id), ticket, host)));
                }
                Action::Journal(what) => {
                    let line = serde_json::to_vec(&Event { at_ns: 0, what }).expect("an event is JSON");
                    self.journalled += line.len() as u64;
                }
                _ => {}
            }
        }
    }
}

fn ended(ticket: u64, wall_us: u64) -> AttemptEnd {
    AttemptEnd {
        ticket,
        outcome: Outcome::Exit(0),
        wall_us,
        io: IoCounters { rchar: Some(SIZE), wchar: Some(0), ..IoCounters::default() },
        io_wait: None,
        stdout: vec![],
        stderr: vec![],
        set_aside: vec![],
        wrote: vec![],
    }
}

fn core(hosts: usize, tasks: usize) -> serde_json::Value {
    let at = |us: u64| Moment { mono: Mono::from_us(us), wall_ns: us as i64 * 1000 };
    let (mut dice, mut world) = (Dice(88_172_645_463_325_252), World { ends: BinaryHeap::new(), journalled: 0 });
    let mut core = Core::new(policy(switches(hosts)), Counts::default());
    let begun = processor_seconds();
    for ix in 0..hosts {
        let facts = HostFacts { hostname: host(ix), nic_bytes_per_s: Some(LINK), ..HostFacts::default() };
        core.host_up(&host(ix), SLOTS, facts);
    }
    world.act(core.take_actions(), 0);
    let (mut offered, mut now_us, mut events) = (0, 0, 0u64);
    let mut fill = |core: &mut Core, offered: &mut usize| {
        while *offered < tasks && core.waiting() < WINDOW {
            *offered += 1;
            core.offer(offer(*offered as TaskId, &mut dice, hosts));
        }
    };
    fill(&mut core, &mut offered);
    core.assign(at(0).mono);
    world.act(core.take_actions(), 0);
    let joined = processor_seconds() - begun;
    let going = processor_seconds();
    while let Some(Reverse((first_us, _, _))) = world.ends.peek() {
        now_us = now_us.max(*first_us);
        let mut batch = Vec::new();
        while batch.len() < BATCH / 2 {
            let Some(Reverse(next)) = world.ends.pop() else { break };
            now_us = now_us.max(next.0);
            batch.push(next);
        }
        for (_, ticket, host) in batch {
            core.ended(host, ended(ticket, 10_000_000), at(now_us));
            core.sample(host, HostSample { at_ns: now_us as i64 * 1000, r1m: Some(2.0), ..HostSample::default() });
            events += 2;
        }
        fill(&mut core, &mut offered);
        core.assign(at(now_us).mono);
        world.act(core.take_actions(), now_us);
    }
    let took = processor_seconds() - going;
    assert_eq!(core.counts().done, tasks as u64, "every task has ended");
    serde_json::json!({
        "what": "core", "hosts": hosts, "tasks": tasks, "joined_seconds": joined, "seconds": took, "events": events,
        "events_per_second": events as f64 / took, "peak_mb": peak_mb(), "journal_mb": world.journalled / 1_000_000,
    })
}
