//! Which host a job goes to when several would do: `-m`, and the hosts of queues.

use super::{Refusal, said};
use crate::cluster::Cluster;
use homing_lsf::bsub::Request;
use homing_queue::plan::{Config, Queue};
use homing_queue::{Engine, Machine};

/// The hosts that `-m` and the queue leave; none when neither says any.
pub fn candidates(request: &Request, engine: &dyn Engine, queue: &str) -> Result<Vec<String>, Refusal> {
    let cluster = Cluster::of_queue()?;
    let config = engine.config()?;
    let of_queue = config.queues.get(queue).map(|q| hosts_of(q, &cluster)).transpose()?.unwrap_or_default();
    if request.hosts.is_empty() {
        return Ok(of_queue);
    }
    let asked = asked(request, &engine.machines()?, &cluster)?;
    let left: Vec<String> =
        asked.iter().filter(|host| of_queue.is_empty() || of_queue.contains(host)).cloned().collect();
    match left.is_empty() {
        true => Err(said(format!("{}: Host or host group is not used by the queue. Job not submitted.", asked[0]))),
        false => Ok(left),
    }
}

/// The host that the job must run on; `None` when the engine may choose.
pub fn choose(request: &Request, engine: &dyn Engine, queue: &str) -> Result<Option<String>, Refusal> {
    let candidates = candidates(request, engine, queue)?;
    if candidates.is_empty() {
        return Ok(None);
    }
    let machines = engine.machines()?;
    let jobs = engine.jobs()?;
    let own = homing_queue::host_name();
    // Slots that are spoken for, per slot of the host, in percent: the queue behind a host counts too.
    let crowded = |name: &str| {
        let used = crate::cmd::queue::several::asked(&jobs, name, &own);
        let slots = machines.iter().find(|m| m.name == name).map_or(1, |m| m.slots.unwrap_or(1).max(1));
        used * 100 / slots
    };
    let open = |name: &str| machines.iter().find(|m| m.name == name).is_none_or(|m| m.open);
    // The first of those with room, as they were listed; else the least crowded.
    let best = candidates.iter().enumerate().min_by_key(|(at, name)| (!open(name), crowded(name).max(99), *at));
    Ok(best.map(|(_, name)| name.to_string()))
}

/// Whether a queue may send jobs to a host.
pub fn uses(config: &Config, queue: &str, host: &str) -> Result<bool, Refusal> {
    let hosts = config.queues.get(queue).map(|q| hosts_of(q, &Cluster::of_queue()?)).transpose()?.unwrap_or_default();
    Ok(hosts.is_empty() || hosts.iter().any(|h| h == host))
}

fn hosts_of(queue: &Queue, cluster: &Cluster) -> Result<Vec<String>, Refusal> {
    if queue.hosts.trim().is_empty() { Ok(Vec::new()) } else { Ok(cluster.hosts(Some(&queue.hosts))?) }
}

/// The hosts of `-m`: names, groups, node sets.
fn asked(request: &Request, machines: &[Machine], cluster: &Cluster) -> Result<Vec<String>, Refusal> {
    let mut found: Vec<String> = Vec::new();
    for word in &request.hosts {
        let known = |name: &str| machines.iter().any(|m| m.name == name);
        if word == "all" || word == "others" {
            found.extend(machines.iter().map(|m| m.name.clone()));
        } else if known(word) {
            found.push(word.clone());
        } else {
            // A group of the cluster file, with or without its sign.
            let group = format!("@{}", word.trim_start_matches('@'));
            let set = cluster.hosts(Some(word)).ok().filter(|s| s.iter().all(|h| known(h)));
            let set = set.or_else(|| cluster.hosts(Some(&group)).ok()).filter(|s| !s.is_empty());
            let set = set.filter(|s| s.iter().all(|h| known(h)));
            found.extend(set.ok_or_else(|| {
                said(format!("{word}: Bad host name, host group name or cluster name. Job not submitted."))
            })?);
        }
    }
    found.dedup();
    Ok(found)
}
