//! `bqueues`, `bhosts`, `busers`, `lshosts`.

use super::{Refusal, lsf_refusal, options, print};
use crate::cluster::Cluster;
use homing_lsf::columns::{Columns, Field};
use homing_lsf::grammar::{BHOSTS, BQUEUES, BUSERS, LSHOSTS};
use homing_lsf::options::{Parsed, text};
use homing_lsf::queues;
use homing_lsf::table_fields::{HOST, QUEUE, of_host, of_queue};
use homing_lsf::tables::{self as shown, BatchHost, Queue};
use homing_model::RawText;
use homing_os::names::is_here;
use homing_queue::Engine;
use homing_queue::index::Index;
use homing_queue::plan::Config;
use homing_queue::require::Requirement;

/// Refuses a queue that the configuration does not have.
pub fn check_queues<'a>(config: &Config, mut names: impl Iterator<Item = &'a str>) -> Result<(), Refusal> {
    let odd = names.find(|name| !config.queues.contains_key(*name));
    odd.map_or(Ok(()), |odd| Err(lsf_refusal(format!("{odd}: No such queue"))))
}

/// Lists queues.
pub fn bqueues(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("bqueues", &BQUEUES, words)? else { return Ok(0) };
    let engine = super::engine()?;
    let config = engine.config()?;
    let jobs = engine.jobs()?;
    let asked: Vec<String> = parsed.operands.iter().map(text).collect();
    check_queues(&config, asked.iter().map(String::as_str))?;
    let mut found: Vec<Queue> = config
        .queues
        .keys()
        .filter(|n| asked.is_empty() || asked.contains(n))
        .map(|n| queues::queue(&config, n, &jobs))
        .collect();
    found.sort_by_key(|q| std::cmp::Reverse(q.priority));
    if let Some(text) = chosen(&parsed, "bqueues", &QUEUE, &found, &|field, q| of_queue(field, q))? {
        return print(&text);
    }
    let head = head(&parsed);
    match parsed.has("l") {
        true => print(&found.iter().map(shown::queue_long).collect::<Vec<_>>().join(&shown::rule())),
        false => print(head(&shown::queues(&found, parsed.has("w")))),
    }
}

/// Returns a function that takes the first line off a table, if `-noheader` is given.
fn head(parsed: &Parsed) -> impl Fn(&str) -> &str {
    let without = parsed.has("noheader");
    move |text: &str| if without { text.split_once('\n').map_or("", |(_, rest)| rest) } else { text }
}

/// Returns the columns of `-o`, as lines or with `-json` as a document. `None` without `-o`.
fn chosen<R>(
    parsed: &Parsed,
    command: &str,
    fields: &'static [Field],
    rows: &[R],
    value: &dyn Fn(&str, &R) -> Option<String>,
) -> Result<Option<String>, Refusal> {
    let Some(text) = parsed.text("o") else {
        return match parsed.has("json") {
            true => Err(lsf_refusal(format!("-json needs -o: {command} -o 'all' -json"))),
            false => Ok(None),
        };
    };
    let columns = Columns::parse(&text, fields).map_err(lsf_refusal)?;
    if parsed.has("json") {
        let name = if command == "bhosts" { "HOSTS" } else { "QUEUES" };
        return Ok(Some(document(command, name, rows.iter().map(|row| columns.record(&|field| value(field, row))))));
    }
    let head = if parsed.has("noheader") { String::new() } else { columns.head() };
    Ok(Some(rows.iter().fold(head, |all, row| all + &columns.row(&|field| value(field, row)))))
}

/// Returns the records of `-json`, as LSF's commands print them.
pub fn document(command: &str, name: &str, records: impl Iterator<Item = Vec<(String, String)>>) -> String {
    let record =
        |fields: Vec<(String, String)>| serde_json::Map::from_iter(fields.into_iter().map(|(k, v)| (k, v.into())));
    let records: Vec<_> = records.map(record).collect();
    let all = serde_json::json!({ "COMMAND": command, name: records.len(), "RECORDS": records });
    serde_json::to_string_pretty(&all).unwrap_or_default() + "\n"
}

/// Lists users with their slots.
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
    print(&shown::users(&users.iter().map(|user| queues::user(user, &config, &jobs)).collect::<Vec<_>>()))
}

/// Returns the engine's hosts with their slots: the named ones, or all.
fn hosts(engine: &dyn Engine, asked: &[String]) -> Result<Vec<BatchHost>, Refusal> {
    let machines = engine.machines()?;
    if let Some(odd) = asked.iter().find(|a| !machines.iter().any(|m| m.name == **a)) {
        return Err(lsf_refusal(format!("{odd}: Bad host name, host group name or cluster name")));
    }
    let jobs = engine.jobs()?;
    let own = homing_queue::host_name();
    let chosen = machines.iter().filter(|m| asked.is_empty() || asked.contains(&m.name));
    Ok(chosen.map(|m| queues::host(m, &jobs, &own)).collect())
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
        found.retain(|h| requirement.as_ref().is_none_or(|r| queues::fits(r, h)));
    }
    if let Some(text) = chosen(&parsed, "bhosts", &HOST, &found, &|field, h| of_host(field, h))? {
        return print(&text);
    }
    let head = head(&parsed);
    match parsed.has("l") {
        true => print(&found.iter().map(shown::host_long).collect::<Vec<_>>().join("\n")),
        false => print(head(&shown::hosts(&found, parsed.has("w")))),
    }
}

/// Parses the requirement of `-R`.
pub fn requirement(parsed: &Parsed) -> Result<Option<Requirement>, Refusal> {
    let Some(text) = parsed.text("R") else { return Ok(None) };
    let read =
        Requirement::all(&[text]).map_err(|why| lsf_refusal(format!("Bad resource requirement syntax: {why}")))?;
    known_names(&read)?;
    Ok(Some(read))
}

/// Refuses a part of a requirement that homing does not carry out. Refuses a name that is no load index, no attribute
/// of hosts and no index of the site's own.
pub fn known_names(requirement: &Requirement) -> Result<(), Refusal> {
    if let Some(why) = requirement.inert.first() {
        return Err(lsf_refusal(format!("Bad resource requirement syntax: {why}")));
    }
    let own = Cluster::of_queue()?.indices();
    match requirement.unknown(&|name| own.contains_key(name)) {
        Some(name) => Err(lsf_refusal(format!("Bad resource requirement syntax: {name:?} is not a resource"))),
        None => Ok(()),
    }
}

/// Queries the hosts for their load. A silent host becomes `unavail`, and the reason is printed on standard error.
pub fn add_load(found: &mut [BatchHost]) {
    let names: Vec<String> = found.iter().map(|h| h.name.clone()).collect();
    let mut silent: Vec<(String, String)> = Vec::new();
    for (host, answer) in found.iter_mut().zip(crate::cmd::asked::ask_all(&names)) {
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
        Err(wrong) => eprintln!("{}", wrong),
    }
}

/// Queries an index of the site's own on the hosts that have answered.
fn add_index(found: &mut [BatchHost], name: &str, index: &Index) {
    let up = found.iter().filter(|h| h.status != "unavail").map(|h| h.name.clone());
    let (own, others): (Vec<String>, Vec<String>) = up.partition(|name| is_here(name));
    let mut answers: Vec<(String, Result<f64, String>)> =
        own.into_iter().map(|name| (name, index.read_value())).collect();
    let options = homing_exec::Options { command_timeout: Some(homing_queue::index::LIMIT), ..Default::default() };
    let command = homing_exec::Command::shell(&index.command);
    answers.extend(homing_exec::Remote::new(options).run(&others, &command).map(|result| {
        let value = match result.outcome {
            homing_exec::CommandOutcome::Exited(0) => homing_queue::index::number(&index.command, &result.stdout),
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

/// Returns a part of the requirement that the host can never meet, and the host's actual value. A `host` of `None`
/// means this machine.
pub fn never(requirement: &Requirement, host: Option<&str>) -> Result<Option<(String, String)>, Refusal> {
    // Most requirements have no such part, and a query of a host goes over the network.
    if requirement.never(&|_| Some(0.0)).is_none() {
        return Ok(None);
    }
    let facts = match host.filter(|host| !is_here(host)) {
        None => homing_probe::facts(),
        Some(host) => match crate::cmd::asked::ask_all(&[host.into()]).pop() {
            Some(Ok((facts, _, _))) => facts,
            // A host that is away now may meet the requirement when it is back.
            _ => return Ok(None),
        },
    };
    Ok(queues::never(requirement, &facts))
}

/// Returns the hosts that meet a requirement, with their load: all hosts if none is named.
pub fn loaded(asked: &[String], requirement: Option<&Requirement>) -> Result<Vec<BatchHost>, Refusal> {
    let mut found = hosts(super::engine()?.as_ref(), asked)?;
    add_load(&mut found);
    found.retain(|h| requirement.is_none_or(|r| queues::fits(r, h)));
    Ok(found)
}

/// Lists the attributes of hosts.
pub fn lshosts(words: &[RawText]) -> Result<i32, Refusal> {
    let Some(parsed) = options("lshosts", &LSHOSTS, words)? else { return Ok(0) };
    let asked: Vec<String> = parsed.operands.iter().map(text).collect();
    let found = loaded(&asked, requirement(&parsed)?.as_ref())?;
    print(&shown::lshosts(&found, parsed.has("w")))
}

/// Refuses a host that the engine does not have.
pub fn known(host: &str) -> Result<(), Refusal> {
    let has = super::engine()?.machines()?.iter().any(|m| m.name == host);
    if has { Ok(()) } else { Err(lsf_refusal(format!("{host}: Bad host name, host group name or cluster name"))) }
}
