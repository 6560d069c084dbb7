//! `--net`: the network of the cluster file that MPI libraries are to use inside of a job.

use crate::cluster::Cluster;
use crate::failure::Failure;
use homing_model::RawText;
use homing_queue::{JobSpec, network};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The variables that say so, for the hosts of the job; where those are not known yet, for all hosts with an address in
/// that network.
pub fn variables(name: &str, spec: &JobSpec) -> Result<Vec<(RawText, RawText)>, Failure> {
    let cluster = Cluster::of_queue()?;
    let all = cluster.hosts_with_addresses();
    let of = |host: &str| cluster.addresses_of(host);
    let known: BTreeSet<&String> = all.iter().filter_map(|host| of(host)).flat_map(|nets| nets.keys()).collect();
    if !known.iter().any(|net| *net == name) {
        let known = known.iter().map(|net| net.as_str()).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none".into() } else { known };
        return Err(Failure::usage(format!(
            "--net {name}: no host of the cluster file has an address in it; known: {known}"
        ))
        .hint(format!("[host.NAME] addresses = {{ {name} = \"10.2.0.1\" }}")));
    }
    let on = |host: &str| of(host).and_then(|nets| nets.get(name)).copied();
    let named: Vec<&str> = spec.hosts.iter().map(|share| share.host.as_str()).collect();
    if let Some(host) = named.iter().find(|host| on(host).is_none()) {
        return Err(Failure::usage(format!("--net {name}: {host} has no address in it, and is a host of the job"))
            .hint(format!("[host.{host}] addresses = {{ {name} = \"10.2.0.1\" }}")));
    }
    let hosts = if named.is_empty() { all.iter().map(|host| host.as_str()).collect() } else { named };
    let inside: Vec<IpAddr> = hosts.iter().filter_map(|host| on(host)).collect();
    let Some(subnet) = network::subnet(&inside) else {
        return Err(Failure::usage(format!("--net {name}: its addresses are of IPv4 and IPv6; MPI takes one of them")));
    };
    let others = hosts.iter().filter_map(|host| of(host)).flatten().filter(|(net, _)| *net != name);
    match others.into_iter().find(|(_, address)| network::has(&subnet, **address)) {
        Some((net, address)) => Err(Failure::usage(format!(
            "--net {name}: {subnet} has its addresses, and {address} of {net} too: MPI could not tell them apart"
        ))),
        None => Ok(network::variables(name, &subnet)),
    }
}
