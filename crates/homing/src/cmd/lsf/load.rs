//! `bqueues`, `bhosts`, `busers`, `lshosts`.

use super::{Refusal, options, print, said};
use crate::cluster::Cluster;
use homing_lsf::grammar::{BHOSTS, BQUEUES, BUSERS};
use homing_lsf::options::{Parsed, text};
use homing_lsf::require::{Requirement, Value};
use homing_lsf::tables::{self, Host, Queue};
use homing_model::RawText;
use homing_queue::control::{Order, Target};
use homing_queue::index::Index;
use homing_queue::plan::Config;
use homing_queue::{Engine, Job, State};

/// Slots of jobs: all, waiting, running, stopped.
fn counted<'a>(jobs: impl Iterator<Item = &'a Job>) -> [u32; 4] {
    let mut sums = [0; 4];
    for job in jobs {
        for part in &job.parts {
            let at = match part.state {
                State::Pend | State::Psusp => 1,
                State::Run => 2,
                State::Ususp | State::Ssusp => 3,
                _ => continue,
            };
            sums[0] += job.spec.slots;
            sums[at] += job.spec.slots;
        }
    }
    sums
}

/// Lists queues.
pub fn bqueues(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bqueues", &BQUEUES, words)? else { return Ok(0) };
    let engine = super::engine()?;
    let config = engine.config()?;
    let jobs = engine.jobs()?;
    let asked: Vec<String> = parsed.operands.iter().map(text).collect();
    if let Some(odd) = asked.iter().find(|a| !config.queues.contains_key(*a)) {
        return Err(said(format!("{odd}: No such queue")));
    }
    let mut found: Vec<Queue> = config
        .queues
        .keys()
        .filter(|n| asked.is_empty() || asked.contains(n))
        .map(|n| queue(&config, n, &jobs))
        .collect();
    found.sort_by_key(|q| std::cmp::Reverse(q.priority));
    match parsed.has("l") {
        true => print(&found.iter().map(tables::queue_long).collect::<Vec<_>>().join(&format!("{}\n", "-".repeat(78)))),
        false => print(&tables::queues(&found, parsed.has("w"))),
    }
}

fn queue(config: &Config, name: &str, jobs: &[Job]) -> Queue {
    let of = &config.queues[name];
    let threshold = |t: &String| homing_queue::thresholds(t).unwrap_or_default();
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
    let comment = |word: &str, order: Option<&Order>| order.map(|order| format!("{word} {order}"));
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
        thresholds: of.load.iter().map(|(index, t)| (index.clone(), threshold(t))).collect(),
        comments: [comment("closed", closed), comment("inactivated", inactive)].into_iter().flatten().collect(),
    }
}

/// Slots of users.
pub fn busers(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("busers", &BUSERS, words)? else {
        return Ok(0);
    };
    let asked: Vec<String> = parsed.operands.iter().map(text).collect();
    let engine = super::engine()?;
    let (jobs, config) = (engine.jobs()?, engine.config()?);
    let mut users: Vec<String> = match asked.as_slice() {
        [] => vec![super::own_name()],
        [all] if all == "all" => jobs.iter().map(|j| j.spec.user.clone()).collect(),
        named => named.to_vec(),
    };
    users.sort();
    users.dedup();
    let mut out = String::from("USER/GROUP          JL/P    MAX  NJOBS   PEND    RUN  SSUSP  USUSP    RSV \n");
    for user in users {
        let own = || jobs.iter().filter(|j| j.spec.user == user);
        let [all, pend, run, _] = counted(own());
        let of = |state: State| {
            own().map(|j| j.spec.slots * j.parts.iter().filter(|p| p.state == state).count() as u32).sum::<u32>()
        };
        out += &format!(
            "{user:<18} {:>5}{:>7}{all:>7}{pend:>7}{run:>7}{:>7}{:>7}{:>7}\n",
            "-",
            tables::limit(most_of_a_user(&config)),
            of(State::Ssusp),
            of(State::Ususp),
            0
        );
    }
    print(&out)
}

/// Slots that a user may have at once, where each queue that is open says it.
fn most_of_a_user(config: &Config) -> Option<u32> {
    let open = config.queues.values().filter(|queue| !queue.closed);
    open.map(|queue| queue.per_user.into_iter().chain(queue.slots).min()).sum()
}

/// Hosts of the engine with their slots; of those named, if any.
fn hosts(engine: &dyn Engine, asked: &[String]) -> Result<Vec<Host>, Refusal> {
    let machines = engine.machines()?;
    if let Some(odd) = asked.iter().find(|a| !machines.iter().any(|m| m.name == **a)) {
        return Err(said(format!("{odd}: Bad host name, host group name or cluster name")));
    }
    let jobs = engine.jobs()?;
    let own = homing_queue::host_name();
    let chosen = machines.iter().filter(|m| asked.is_empty() || asked.contains(&m.name));
    Ok(chosen
        .map(|m| {
            let of = |state: State| {
                let here = |j: &&Job| j.parts.iter().any(|p| p.state == state);
                let slots = |j: &Job| {
                    let of = j.parts.iter().filter(|p| p.state == state);
                    let on = |p: &homing_queue::Part| p.start.as_ref().map_or(own.clone(), |s| s.host.clone());
                    of.map(|p| j.spec.slots_on(&m.name, &on(p))).sum::<u32>()
                };
                jobs.iter().filter(here).map(slots).sum::<u32>()
            };
            let slots = [of(State::Run), of(State::Ssusp), of(State::Ususp)];
            let full = m.slots.is_some_and(|all| slots.iter().sum::<u32>() >= all);
            let status = if m.closed.is_some() {
                "closed_Adm"
            } else if !m.open && m.slots != Some(0) {
                "unavail"
            } else if full {
                "closed"
            } else {
                "ok"
            };
            let comment = m.closed.as_ref().map(|order| format!("closed {order}"));
            Host { name: m.name.clone(), status: status.into(), comment, max: m.slots, slots, ..Host::default() }
        })
        .collect())
}

/// Lists hosts with their slots.
pub fn bhosts(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bhosts", &BHOSTS, words)? else { return Ok(0) };
    let engine = super::engine()?;
    let asked: Vec<String> = parsed.operands.iter().map(text).collect();
    let mut found = hosts(engine.as_ref(), &asked)?;
    let requirement = requirement(&parsed)?;
    if parsed.has("l") || requirement.is_some() {
        add_load(&mut found);
        found.retain(|h| requirement.as_ref().is_none_or(|r| fits(r, h)));
    }
    match parsed.has("l") {
        true => print(&found.iter().map(tables::host_long).collect::<Vec<_>>().join("\n")),
        false => print(&tables::hosts(&found, parsed.has("w"))),
    }
}

/// The requirement of `-R`.
pub fn requirement(parsed: &Parsed) -> Result<Option<Requirement>, Refusal> {
    let Some(text) = parsed.text("R") else { return Ok(None) };
    let read = Requirement::all(&[text]).map_err(|why| said(format!("Bad resource requirement syntax: {why}")))?;
    known_names(&read)?;
    Ok(Some(read))
}

/// Refuses what names no load index or attribute of hosts, nor an index of the site's own.
pub fn known_names(requirement: &Requirement) -> Result<(), Refusal> {
    let own = Cluster::of_queue()?.indices();
    match requirement.unknown(&|name| own.contains_key(name)) {
        Some(name) => Err(said(format!("Bad resource requirement syntax: {name:?} is no resource"))),
        None => Ok(()),
    }
}

fn fits(requirement: &Requirement, host: &Host) -> bool {
    requirement.lacks(&|name| value(host, name)).is_none()
}

/// What a requirement may ask of a host.
fn value(host: &Host, name: &str) -> Option<Value> {
    Some(match name {
        "type" => Value::Text(host.kind.clone()),
        "hname" => Value::Text(host.name.clone()),
        "status" => Value::Text(if host.status == "closed" { "ok".into() } else { host.status.clone() }),
        "server" => Value::Number(1.0),
        "ncpus" | "nprocs" | "ncores" | "nthreads" => Value::Number(f64::from(host.cpus?)),
        "maxmem" => Value::Number(host.max_mem?),
        "maxswp" => Value::Number(host.max_swp?),
        index => Value::Number(*host.load.get(index)?),
    })
}

/// Asks the hosts; those that do not answer are `unavail`, and on standard error it stands why.
pub fn add_load(found: &mut [Host]) {
    let names: Vec<String> = found.iter().map(|h| h.name.clone()).collect();
    let own = homing_queue::host_name();
    let mut silent: Vec<(String, String)> = Vec::new();
    for (host, answer) in found.iter_mut().zip(crate::cmd::hosts::ask_all(&names, &own)) {
        let (facts, first, last) = match answer {
            Ok(told) => told,
            Err(why) => {
                host.status = "unavail".into();
                silent.push((host.name.clone(), why));
                continue;
            }
        };
        let load = homing_queue::measure(&first, &last, facts.indices);
        host.load = homing_queue::INDICES.iter().filter_map(|i| Some((i.to_string(), load.get(i)?))).collect();
        host.cpus = Some(facts.cores);
        host.max_mem = Some(facts.memory_bytes as f64 / f64::from(1 << 20));
        host.max_swp = load.get("maxswp");
        host.kind = facts.arch.to_uppercase();
    }
    let told = homing_model::alike::folded(silent.iter().map(|(host, why)| (host.as_str(), why.as_str())));
    told.iter().for_each(|line| eprintln!("homing: {line}"));
    match Cluster::of_queue() {
        Ok(cluster) => cluster.indices().iter().for_each(|(name, index)| add_index(found, name, index)),
        Err(failure) => eprintln!("{failure}"),
    }
}

/// Asks the hosts that have answered for an index of the site's own.
fn add_index(found: &mut [Host], name: &str, index: &Index) {
    let up = found.iter().filter(|h| h.status != "unavail").map(|h| h.name.clone());
    let (own, others): (Vec<String>, Vec<String>) = up.partition(|name| *name == homing_queue::host_name());
    let mut answers: Vec<(String, Result<f64, String>)> = own.into_iter().map(|name| (name, index.ask())).collect();
    let options = homing_exec::Options { command_timeout: Some(homing_queue::index::LIMIT), ..Default::default() };
    let command = homing_exec::Command::shell(&index.command);
    answers.extend(homing_exec::Remote::new(options).run(&others, &command).map(|result| {
        let value = match result.outcome {
            homing_exec::Outcome::Exited(0) => homing_queue::index::number(&index.command, &result.stdout),
            other => Err(format!("{:?}: {other}", index.command)),
        };
        (result.host, value)
    }));
    for (answered, value) in answers {
        match (value, found.iter_mut().find(|h| h.name == answered)) {
            (Ok(value), Some(host)) => drop(host.load.insert(name.into(), value)),
            (Err(why), _) => eprintln!("{answered}: index {name} is unknown: {why}"),
            _ => {}
        }
    }
}

/// What a requirement asks for that a host can never have, and what it has instead; `None` is this machine.
pub fn never(requirement: &Requirement, host: Option<&str>) -> Result<Option<(String, String)>, Refusal> {
    // Most requirements ask for nothing of the kind, and a host is asked over the network.
    if requirement.never(&|_| Some(0.0)).is_none() {
        return Ok(None);
    }
    let own = homing_queue::host_name();
    let facts = match host.filter(|host| *host != own) {
        None => homing_probe::facts(),
        Some(host) => match crate::cmd::hosts::ask_all(&[host.into()], &own).pop() {
            Some(Ok((facts, _, _))) => facts,
            // What cannot be asked now may be asked when it comes back.
            _ => return Ok(None),
        },
    };
    let mib = facts.memory_bytes as f64 / f64::from(1 << 20);
    let most = |name: &str| match name {
        "mem" | "maxmem" => Some(mib),
        "ncpus" | "ncores" | "nprocs" | "nthreads" => Some(f64::from(facts.cores)),
        _ => None,
    };
    Ok(requirement.never(&most).map(|what| (what, format!("{mib:.0} MB of memory and {} processors", facts.cores))))
}

/// Hosts with their load, of those named or all, that fulfil a requirement.
pub fn loaded(asked: &[String], requirement: Option<&Requirement>) -> Result<Vec<Host>, Refusal> {
    let mut found = hosts(super::engine()?.as_ref(), asked)?;
    add_load(&mut found);
    found.retain(|h| requirement.is_none_or(|r| fits(r, h)));
    Ok(found)
}

/// Shows what hosts are.
pub fn lshosts(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("lshosts", &BHOSTS, words)? else { return Ok(0) };
    let asked: Vec<String> = parsed.operands.iter().map(text).collect();
    let found = loaded(&asked, requirement(&parsed)?.as_ref())?;
    print(&tables::lshosts(&found, parsed.has("w")))
}

/// Refuses a host that the engine does not have.
pub fn known(host: &str) -> Result<(), Refusal> {
    let has = super::engine()?.machines()?.iter().any(|m| m.name == host);
    if has { Ok(()) } else { Err(said(format!("{host}: Bad host name, host group name or cluster name"))) }
}
