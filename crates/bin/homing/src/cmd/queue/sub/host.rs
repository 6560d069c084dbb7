//! The host of a job.

use crate::cluster::Cluster;
use homing_launch::refuse_unknown;
use homing_model::Failure;
use homing_queue::plan::Config;

/// Returns the one host of `sub -w`. A job for a host that nobody knows would wait for ever. `slurm`: Slurm itself
/// refuses nodes that it does not have.
pub fn one(text: &str, config: &Config, slurm: bool) -> Result<String, Failure> {
    let set = Cluster::of_queue()?.set(text, None)?;
    let mut hosts = set.iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        let why = format!("homing sub -w takes one host, but {text:?} names {}", set.len());
        return Err(Failure::usage(why).hint("--nodes N: slots on several hosts; --batch --hosts NODESET: many tasks"));
    };
    if host.starts_with('.') || host.contains('/') {
        return Err(Failure::usage(format!("{host:?} cannot be a host name")));
    }
    // A host of the cluster file may get its address later, as a host that is down comes back.
    if !slurm && !config.host_slots.contains_key(host) {
        refuse_unknown(host).map_err(Failure::system)?;
    }
    Ok(host.into())
}
