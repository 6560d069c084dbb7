//! Queues and hosts of an engine as LSF's tables show them, and LSF's requirements on them.

use crate::tables::{BatchHost, Queue, UserSlots};
use homing_model::HostFacts;
use homing_queue::all_thresholds;
use homing_queue::control::{ControlOrder, Target};
use homing_queue::plan::Config;
use homing_queue::require::{Requirement, Value};
use homing_queue::{ElementState, Job, JobElement, Machine};

/// Counts the slots of jobs: all, waiting, running, stopped.
pub fn counted<'a>(jobs: impl Iterator<Item = &'a Job>) -> [u32; 4] {
    let mut sums = [0; 4];
    for job in jobs {
        for part in &job.parts {
            let at = match part.state {
                ElementState::Pend | ElementState::Psusp => 1,
                ElementState::Run => 2,
                ElementState::Ususp | ElementState::Ssusp => 3,
                _ => continue,
            };
            sums[0] += job.spec.slots;
            sums[at] += job.spec.slots;
        }
    }
    sums
}

/// Returns a queue of the configuration, with the slots that jobs use of it.
pub fn queue(config: &Config, name: &str, jobs: &[Job]) -> Queue {
    let of = &config.queues[name];
    let window = of.dispatch_window.to_string();
    let settings = [
        ("RES_REQ", &of.res_req),
        ("DISPATCH_WINDOW", &window),
        ("PRE_EXEC", &of.pre_exec),
        ("POST_EXEC", &of.post_exec),
        ("JOB_STARTER", &of.job_starter),
    ];
    let closed = config.control.shut(Target::Submission, name);
    let inactive = config.control.shut(Target::Dispatch, name);
    let comment = |word: &str, order: Option<&ControlOrder>| order.map(|order| format!("{word} {order}"));
    Queue {
        name: name.into(),
        description: of.description.clone(),
        priority: of.priority,
        open: closed.is_none() && !of.closed,
        active: inactive.is_none(),
        in_window: of.dispatch_window.has(config.minute),
        nice: of.nice,
        default: config.default_queue() == name,
        limits: [of.slots, of.per_user, None, of.per_host],
        slots: counted(jobs.iter().filter(|j| j.spec.queue == name)),
        run_limit: of.run_limit,
        cpu_limit: of.cpu_limit,
        memory_limit: of.memory_limit,
        users: of.users.clone(),
        settings: settings
            .map(|(key, value)| (key, value.to_string()))
            .into_iter()
            .filter(|(_, v)| !v.is_empty())
            .collect(),
        hosts: of.hosts.split_whitespace().map(String::from).collect(),
        thresholds: all_thresholds(&of.load),
        comments: [comment("closed", closed), comment("inactivated", inactive)].into_iter().flatten().collect(),
    }
}

/// Returns the slots that a user may have at once, if each open queue has a limit.
fn most_of_a_user(config: &Config) -> Option<u32> {
    let open = config.queues.values().filter(|queue| !queue.closed);
    open.map(|queue| queue.per_user.into_iter().chain(queue.slots).min()).sum()
}

/// Returns a user's slots, and those that the queues allow.
pub fn user(name: &str, config: &Config, jobs: &[Job]) -> UserSlots {
    let own = || jobs.iter().filter(|j| j.spec.user == name);
    let [all, pending, running, _] = counted(own());
    let of = |state: ElementState| {
        own().map(|j| j.spec.slots * j.parts.iter().filter(|p| p.state == state).count() as u32).sum::<u32>()
    };
    let (by_load, by_user) = (of(ElementState::Ssusp), of(ElementState::Ususp));
    UserSlots { name: name.into(), most: most_of_a_user(config), slots: [all, pending, running, by_load, by_user] }
}

/// Returns the part of a requirement that a host can never fulfil, and the resources that the host has.
pub fn never(requirement: &Requirement, facts: &HostFacts) -> Option<(String, String)> {
    let mib = facts.memory_bytes as f64 / f64::from(1 << 20);
    let most = |name: &str| match name {
        "mem" | "maxmem" => Some(mib),
        "ncpus" | "ncores" | "nprocs" | "nthreads" => Some(f64::from(facts.cores)),
        _ => None,
    };
    let what = requirement.never(&most)?;
    Some((what, format!("{mib:.0} MB of memory and {} processors", facts.cores)))
}

/// Returns a host with its slots.
pub fn host(m: &Machine, jobs: &[Job], own: &str) -> BatchHost {
    let of = |state: ElementState| {
        let here = |j: &&Job| j.parts.iter().any(|p| p.state == state);
        let slots = |j: &Job| {
            let of = j.parts.iter().filter(|p| p.state == state);
            let on = |p: &JobElement| p.start.as_ref().map_or(own.to_string(), |s| s.host.clone());
            of.map(|p| j.spec.slots_on(&m.name, &on(p))).sum::<u32>()
        };
        jobs.iter().filter(here).map(slots).sum::<u32>()
    };
    let slots = [of(ElementState::Run), of(ElementState::Ssusp), of(ElementState::Ususp)];
    let full = m.slots.is_some_and(|all| slots.iter().sum::<u32>() >= all);
    let status = if m.closed.is_some() {
        "closed_Adm"
    } else if !m.open && m.slots != Some(0) {
        "unavail"
    } else if full {
        "closed_Full"
    } else {
        "ok"
    };
    let comment = m.closed.as_ref().map(|order| format!("closed {order}"));
    BatchHost { name: m.name.clone(), status: status.into(), comment, max: m.slots, slots, ..BatchHost::default() }
}

/// Whether a host fulfils a requirement.
pub fn fits(requirement: &Requirement, host: &BatchHost) -> bool {
    requirement.lacks(&|name| value(host, name)).is_none()
}

/// Returns the value of an attribute that a requirement may name.
fn value(host: &BatchHost, name: &str) -> Option<Value> {
    Some(match name {
        "type" => Value::Text(host.kind.clone()),
        "hname" => Value::Text(host.name.clone()),
        "status" => Value::Text(if host.status == "closed_Full" { "ok".into() } else { host.status.clone() }),
        "server" => Value::Number(1.0),
        "ncpus" | "nprocs" | "ncores" | "nthreads" => Value::Number(f64::from(host.cpus?)),
        "maxmem" => Value::Number(host.max_mem?),
        "maxswp" => Value::Number(host.max_swp?),
        index => Value::Number(*host.load.get(index)?),
    })
}
