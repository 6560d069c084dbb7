//! Which host a job goes to when several would do: `-m`, and the hosts of queues.

use super::{Refusal, said};
use crate::cluster::Cluster;
use homing_lsf::bsub::Request;
use homing_queue::plan::{Config, Queue};
use homing_queue::{Engine, Machine};

/// The host that the job must run on; `None` when the engine may choose.
pub fn choose(request: &Request, engine: &dyn Engine, config: &Config, queue: &str) -> Result<Option<String>, Refusal> {
    let cluster = Cluster::of_queue()?;
    let of_queue = config.queues.get(queue).map(|q| hosts_of(q, &cluster)).transpose()?.unwrap_or_default();
    if request.hosts.is_empty() && of_queue.is_empty() {
        return Ok(None);
    }
    let machines = engine.machines()?;
    let asked = asked(request, &machines, &cluster)?;
    let may = |name: &str| of_queue.is_empty() || of_queue.iter().any(|h| h == name);
    let candidates: Vec<&String> =
        if asked.is_empty() { of_queue.iter().collect() } else { asked.iter().filter(|h| may(h)).collect() };
    if candidates.is_empty() {
        return Err(said(format!("{}: Host or host group is not used by the queue. Job not submitted.", asked[0])));
    }
    let jobs = engine.jobs()?;
    let own = homing_queue::host_name();
    // Slots that are spoken for, per slot of the host, in percent: the queue behind a host counts too.
    let crowded = |name: &str| {
        let here = jobs.iter().filter(|j| j.spec.host.as_deref().unwrap_or(&own) == name);
        let used: u32 = here.map(|j| j.spec.slots * j.parts.iter().filter(|p| !p.state.is_over()).count() as u32).sum();
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
