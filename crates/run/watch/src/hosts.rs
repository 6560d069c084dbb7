//! Shows hosts in the same state as one row: a screen has fewer lines than a cluster has hosts.

use homing_model::NodeSet;
use homing_report::HostState;
use std::collections::BTreeMap;

/// How much of a host is in use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Idle,
    Partly,
    Fully,
}

fn used(host: &HostState) -> Use {
    match host.running {
        0 => Use::Idle,
        n if n < host.slots as usize => Use::Partly,
        _ => Use::Fully,
    }
}

/// Returns one row for all hosts with the same number of slots, the same degree of use and the same trouble.
pub(crate) fn folded(hosts: &[HostState]) -> Vec<HostState> {
    let mut groups: BTreeMap<_, Vec<&HostState>> = BTreeMap::new();
    for host in hosts {
        let trouble = host.trouble.as_ref().map(|why| why.replace(|c: char| c.is_ascii_digit(), ""));
        groups.entry((trouble, host.slots, used(host))).or_default().push(host);
    }
    groups.into_values().map(|group| together(&group)).collect()
}

/// Joins hosts to one row: adds up counts and rates, and takes the mean of the known shares.
fn together(group: &[&HostState]) -> HostState {
    let known = |of: fn(&HostState) -> Option<f64>| group.iter().filter_map(|host| of(host)).collect::<Vec<f64>>();
    let sum = |of| known(of).into_iter().reduce(|a, b| a + b);
    let mean = |of| sum(of).map(|all| all / known(of).len() as f64);
    HostState {
        name: group.iter().map(|host| host.name.clone()).collect::<NodeSet>().to_string(),
        slots: group.iter().map(|host| host.slots).sum(),
        running: group.iter().map(|host| host.running).sum(),
        done: group.iter().map(|host| host.done).sum(),
        failed: group.iter().map(|host| host.failed).sum(),
        trouble: group.first().and_then(|host| host.trouble.clone()),
        lost: group.iter().any(|host| host.lost),
        cpu: mean(|host| host.cpu),
        memory: mean(|host| host.memory),
        stalled: mean(|host| host.stalled),
        disk: sum(|host| host.disk),
        net: sum(|host| host.net),
        link: mean(|host| host.link),
    }
}
