//! Hosts of a run that are switched off: homing switches on those that the tasks need, and leaves the others alone.

use super::args::Args;
use crate::switched;
use homing_launch::{Asleep, HostPlan, Via};
use homing_model::units::count;
use homing_model::{Failure, NodeSet};
use homing_power::{PowerFacts, needed};
use std::collections::HashMap;
use std::sync::Arc;

/// Removes the hosts that are off and not needed from `hosts`. Returns how each needed host is switched on, one after
/// another. The run begins with the hosts that are on.
pub fn rouse(
    args: &Args,
    hosts: &mut Vec<HostPlan>,
    tasks: Option<u64>,
) -> Result<Arc<HashMap<String, Asleep>>, Failure> {
    let known = switched::all();
    let is_off = |host: &HostPlan| matches!(host.via, Via::Ssh { .. }) && known.off_s(&host.name).is_some();
    if !hosts.iter().any(is_off) {
        return Ok(Arc::default());
    }
    let slots = super::options::slots(args)?;
    let (off, on): (Vec<HostPlan>, Vec<HostPlan>) = hosts.drain(..).partition(is_off);
    let slots_of = |host: &HostPlan| host.slots.or_else(|| Some(slots(cores(&known, &host.name)?)));
    // A host of unknown size has at least one slot.
    let awake = on.iter().map(|host| u64::from(slots_of(host).unwrap_or(1).max(1))).sum();
    // A run without tasks needs a host, too.
    let tasks = tasks.filter(|_| !args.need_all_hosts).map(|tasks| tasks.max(u64::from(on.is_empty())));
    let needed = needed(tasks, awake, &off.iter().map(slots_of).collect::<Vec<_>>());
    let (wanted, left) = off.split_at(needed);
    if !args.quiet {
        print_power_state(
            wanted,
            "switched off, and is being switched on for this run",
            "switched off, and are being switched on for this run",
        );
        let tasks = count(tasks.unwrap_or_default(), "task");
        let of = |is: &str| format!("switched off, and {is} not needed for {tasks}");
        print_power_state(left, &of("is"), &of("are"));
    }
    let asleep = switched::asleep(wanted.iter().map(|host| host.name.as_str()), &args.cluster.load()?.switching()?);
    let without = wanted.iter().filter(|host| !asleep.contains_key(&host.name));
    without.for_each(|host| eprintln!("homing: [power] on of the cluster file is missing: {} stays off", host.name));
    *hosts = on.into_iter().chain(wanted.iter().cloned()).collect();
    Ok(asleep)
}

/// Returns the processors that the host had when it was last seen.
fn cores(known: &PowerFacts, host: &str) -> Option<u32> {
    known.hosts.get(host).map(|since| since.cores).filter(|cores| *cores > 0)
}

fn print_power_state(hosts: &[HostPlan], one: &str, several: &str) {
    let names: NodeSet = hosts.iter().map(|host| host.name.clone()).collect();
    match hosts.len() {
        0 => {}
        1 => eprintln!("homing: {names} is {one}"),
        _ => eprintln!("homing: {names} are {several}"),
    }
}
