//! Chooses the host of a job from `-m` and from the hosts of its queue.

use super::{Refusal, not_submitted};
use crate::cluster::Cluster;
use homing_lsf::bsub::BsubRequest;
use homing_queue::plan::Config;
use homing_queue::{Engine, several};

/// Returns the hosts that both `-m` and the queue allow; empty if neither names hosts.
pub fn candidates(request: &BsubRequest, engine: &dyn Engine, queue: &str) -> Result<Vec<String>, Refusal> {
    let cluster = Cluster::of_queue()?;
    let config = engine.config()?;
    let of_queue = cluster.hosts_of(config.queues.get(queue))?;
    if request.hosts.is_empty() {
        return Ok(of_queue);
    }
    let asked = cluster.hosts_meant(&request.hosts, &engine.machines()?).map_err(not_submitted)?;
    let left: Vec<String> =
        asked.iter().filter(|host| of_queue.is_empty() || of_queue.contains(host)).cloned().collect();
    match left.is_empty() {
        true => Err(not_submitted(format!("{}: Host or host group is not used by the queue", asked[0]))),
        false => Ok(left),
    }
}

/// Returns the host on which the job must run; `None` if the engine may choose.
pub fn choose(request: &BsubRequest, engine: &dyn Engine, queue: &str) -> Result<Option<String>, Refusal> {
    let candidates = candidates(request, engine, queue)?;
    if candidates.is_empty() {
        return Ok(None);
    }
    let (machines, jobs) = (engine.machines()?, engine.jobs()?);
    Ok(several::least_crowded(&candidates, &machines, &jobs, &homing_queue::host_name()).cloned())
}

/// Returns whether a queue may send jobs to a host.
pub fn uses(config: &Config, queue: &str, host: &str) -> Result<bool, Refusal> {
    let hosts = Cluster::of_queue()?.hosts_of(config.queues.get(queue))?;
    Ok(hosts.is_empty() || hosts.iter().any(|h| h == host))
}
