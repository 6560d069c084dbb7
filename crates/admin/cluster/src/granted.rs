//! Slurm's nodes for a run: nodes that it requests, or those of the job around it.

use homing_launch::{HostPlan, SlurmSeat, Stop, Via};
use homing_model::Failure;
use homing_model::resource::PARTS;
use homing_slurm::{Allocation, NodeChoice, NodeWishes, Seat, SlurmNode, WorkerRequest, ask, choose};

/// Chooses the nodes of a partition, or of a reservation, that a run requests.
pub fn choice(partition: Option<String>, reservation: Option<&str>, wish: &NodeWishes) -> Result<NodeChoice, Failure> {
    let mut nodes = ask::nodes(partition.as_deref())
        .map_err(|e| Failure::system(e).hint("sinfo shows whether Slurm answers; --on local runs on this machine"))?;
    if nodes.is_empty() {
        let text = partition.map_or("Slurm has no nodes".into(), |p| format!("Slurm has no partition {p} with nodes"));
        return Err(Failure::usage(text).hint("sinfo lists the partitions"));
    }
    if let Some(name) = reservation {
        let reserved = ask::reservation(name).map_err(|e| Failure::usage(e).hint("scontrol show reservation"))?;
        nodes.retain(|n| reserved.contains(&n.name));
    }
    add_addresses(&mut nodes, &wish.holders);
    let choice = choose(&nodes, wish);
    if choice.seats.is_empty() {
        return Err(none_fits(&nodes, wish));
    }
    for node in nodes.iter().filter(|n| !n.is_usable(wish.in_reservation) && holds(n, wish)) {
        homing_os::say!(
            "homing: {} holds data, and Slurm reports it {}: {}",
            node.name,
            node.state,
            because(&node.reason)
        );
    }
    Ok(choice)
}

fn holds(node: &SlurmNode, wish: &NodeWishes) -> bool {
    wish.holders.iter().any(|host| node.is_called(host))
}

fn because(reason: &str) -> &str {
    if reason.is_empty() { "its tasks go to other hosts" } else { reason }
}

fn none_fits(nodes: &[SlurmNode], wish: &NodeWishes) -> Failure {
    let states: Vec<String> = nodes.iter().take(8).map(|n| format!("{} {}", n.name, n.state)).collect();
    let text = match nodes.iter().any(|n| n.is_usable(wish.in_reservation)) {
        true => "no node of the partition has room for one task, or none of them is in --hosts".to_string(),
        false => format!("no node of the partition can be used: {}", states.join(", ")),
    };
    Failure::usage(text).hint("sinfo -N -l shows the nodes; --partition NAME names another partition")
}

/// Adds addresses to the aliases of nodes: a file system may know its servers by address only.
fn add_addresses(nodes: &mut [SlurmNode], holders: &[String]) {
    if !holders.iter().any(|h| h.parse::<std::net::IpAddr>().is_ok()) {
        return;
    }
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    for (node, addresses) in nodes.iter_mut().zip(homing_os::names::addresses_of(&names)) {
        node.aliases.extend(addresses);
    }
}

/// Plans steps of the job around us: there is nothing to choose, because its nodes are ours already.
pub fn within(allocation: &Allocation, wish: &NodeWishes, request: &WorkerRequest) -> Result<Vec<HostPlan>, Failure> {
    let node = |(name, cpus): &(String, u32)| SlurmNode {
        name: name.clone(),
        aliases: vec![],
        state: "idle".into(),
        idle_cpus: *cpus,
        cpus: *cpus,
        // The job has a limit of its own.
        memory_mb: u64::MAX >> 1,
        // Its workers report those that they see.
        gpus: u32::MAX,
        reason: String::new(),
    };
    let nodes: Vec<SlurmNode> = allocation.nodes.iter().map(node).collect();
    let all = NodeWishes { nodes: wish.nodes.or(Some(nodes.len())), ..wish.clone() };
    let seats = choose(&nodes, &all).seats;
    if seats.is_empty() {
        let names: Vec<&str> = nodes.iter().map(|n| n.name.as_str()).collect();
        let text = format!("no node of Slurm job {} has room for one task; it has {}", allocation.job, names.join(","));
        return Err(Failure::usage(text));
    }
    let request = WorkerRequest { within: Some(allocation.job.clone()), ..request.clone() };
    let plans = seats.into_iter().map(|seat| {
        let here = allocation.here.as_ref() == Some(&seat.node);
        let plan = plan(seat, wish, &request);
        // A child of ours is in the same job, and needs no step.
        if here { HostPlan { via: Via::Local, ..plan } } else { plan }
    });
    Ok(plans.collect())
}

/// Plans how a worker reaches a node.
pub fn plan(seat: Seat, wish: &NodeWishes, request: &WorkerRequest) -> HostPlan {
    let request = WorkerRequest {
        cpus: seat.slots.saturating_mul(wish.cpus_per_task),
        gpus: u32::try_from((u64::from(seat.slots) * wish.gpu_parts).div_ceil(PARTS)).unwrap_or(u32::MAX),
        memory_mb: wish.memory_mb.map(|mb| mb.saturating_mul(u64::from(seat.slots))),
        ..request.clone()
    };
    let via = SlurmSeat { node: seat.node.clone(), request, round: 0, stop: Stop::default() };
    HostPlan { name: seat.node, via: Via::Slurm(Box::new(via)), slots: Some(seat.slots) }
}
