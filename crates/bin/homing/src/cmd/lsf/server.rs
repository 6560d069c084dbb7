//! Which host a job goes to when several would do: `-m`, and the hosts of queues.

use super::{Refusal, not_submitted};
use crate::cluster::Cluster;
use homing_lsf::bsub::Request;
use homing_queue::plan::Config;
use homing_queue::{Engine, several};

/// The hosts that `-m` and the queue leave; none when neither says any.
pub fn candidates(request: &Request, engine: &dyn Engine, queue: &str) -> Result<Vec<String>, Refusal> {
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

/// The host that the job must run on; `None` when the engine may choose.
pub fn choose(request: &Request, engine: &dyn Engine, queue: &str) -> Result<Option<String>, Refusal> {
    let candidates = candidates(request, engine, queue)?;
    if candidates.is_empty() {
        return Ok(None);
    }
    let (machines, jobs) = (engine.machines()?, engine.jobs()?);
    Ok(several::least_crowded(&candidates, &machines, &jobs, &homing_queue::host_name()).cloned())
}

/// Whether a queue may send jobs to a host.
pub fn uses(config: &Config, queue: &str, host: &str) -> Result<bool, Refusal> {
    let hosts = Cluster::of_queue()?.hosts_of(config.queues.get(queue))?;
    Ok(hosts.is_empty() || hosts.iter().any(|h| h == host))
}
