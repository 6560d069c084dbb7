//! The nodes of a batch system for a run: nodes that it requests, or those of the job around it.

use homing_launch::{BatchSeat, HostPlan, Stop, Via};
use homing_model::Failure;
use homing_model::resource::PARTS;
use homing_scheduler::{
    Allocation, BatchNode, BatchSystem, NodeChoice, NodeWishes, Seat, System, WorkerRequest, choose,
};

/// Chooses the nodes of a queue, or of a reservation, that a run requests.
pub fn choice(
    system: System,
    queue: Option<&str>,
    reservation: Option<&str>,
    wish: &NodeWishes,
) -> Result<NodeChoice, Failure> {
    let system = system.words();
    let (name, listing) = (system.name(), system.listing());
    let hint = || format!("{listing} shows whether {name} answers; --on local runs on this machine");
    let mut nodes = system.nodes(queue).map_err(|e| Failure::system(e).hint(hint()))?;
    if nodes.is_empty() {
        let text = match queue {
            None => format!("{name} has no nodes"),
            Some(queue) => format!("{name} has no partition or queue {queue} with nodes"),
        };
        return Err(Failure::usage(text).hint(listing));
    }
    if let Some(name) = reservation {
        let reserved = system.reservation(name).map_err(|e| Failure::usage(e).hint("--reservation NAME"))?;
        nodes.retain(|n| reserved.contains(&n.name));
    }
    add_addresses(&mut nodes, &wish.holders);
    let choice = choose(&nodes, wish);
    if choice.seats.is_empty() {
        return Err(none_fits(system, &nodes, wish));
    }
    for node in nodes.iter().filter(|n| !n.is_usable(wish.in_reservation) && holds(n, wish)) {
        homing_os::say!(
            "homing: {} holds data, and {} reports it {}: {}",
            node.name,
            system.name(),
            node.state,
            because(&node.reason)
        );
    }
    Ok(choice)
}

fn holds(node: &BatchNode, wish: &NodeWishes) -> bool {
    wish.holders.iter().any(|host| node.is_called(host))
}

fn because(reason: &str) -> &str {
    if reason.is_empty() { "its tasks go to other hosts" } else { reason }
}

fn none_fits(system: &dyn BatchSystem, nodes: &[BatchNode], wish: &NodeWishes) -> Failure {
    let states: Vec<String> = nodes.iter().take(8).map(|n| format!("{} {}", n.name, n.state)).collect();
    let text = match nodes.iter().any(|n| n.is_usable(wish.in_reservation)) {
        true => "no node of the queue has room for one task, or none of them is in --hosts".to_string(),
        false => format!("no node of the queue can be used: {}", states.join(", ")),
    };
    Failure::usage(text).hint(format!("{} shows the nodes; --partition NAME names another queue", system.listing()))
}

/// Adds addresses to the aliases of nodes: a file system may know its servers by address only.
fn add_addresses(nodes: &mut [BatchNode], holders: &[String]) {
    if !holders.iter().any(|h| h.parse::<std::net::IpAddr>().is_ok()) {
        return;
    }
    let names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    for (node, addresses) in nodes.iter_mut().zip(homing_os::names::addresses_of(&names)) {
        node.aliases.extend(addresses);
    }
}

/// Plans parts of the job around us: there is nothing to choose, because its nodes are ours already.
pub fn within(
    system: System,
    allocation: &Allocation,
    wish: &NodeWishes,
    request: &WorkerRequest,
) -> Result<Vec<HostPlan>, Failure> {
    let node = |(name, cpus): &(String, u32)| BatchNode {
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
    let nodes: Vec<BatchNode> = allocation.nodes.iter().map(node).collect();
    let all = NodeWishes { nodes: wish.nodes.or(Some(nodes.len())), ..wish.clone() };
    let seats = choose(&nodes, &all).seats;
    if seats.is_empty() {
        let names: Vec<&str> = nodes.iter().map(|n| n.name.as_str()).collect();
        let text = format!(
            "no node of {} job {} has room for one task; it has {}",
            system.words().name(),
            allocation.job,
            names.join(",")
        );
        return Err(Failure::usage(text));
    }
    let request = WorkerRequest { within: Some(allocation.job.clone()), ..request.clone() };
    let plans = seats.into_iter().map(|seat| {
        let here = allocation.here.as_ref() == Some(&seat.node);
        let plan = plan(system, seat, wish, &request);
        // A child of ours is in the same job, and needs no step.
        if here { HostPlan { via: Via::Local, ..plan } } else { plan }
    });
    Ok(plans.collect())
}

/// Plans how a worker reaches a node.
pub fn plan(system: System, seat: Seat, wish: &NodeWishes, request: &WorkerRequest) -> HostPlan {
    let request = WorkerRequest {
        cpus: seat.slots.saturating_mul(wish.cpus_per_task),
        gpus: u32::try_from((u64::from(seat.slots) * wish.gpu_parts).div_ceil(PARTS)).unwrap_or(u32::MAX),
        memory_mb: wish.memory_mb.map(|mb| mb.saturating_mul(u64::from(seat.slots))),
        ..request.clone()
    };
    let via = BatchSeat { system, node: seat.node.clone(), request, round: 0, stop: Stop::default() };
    HostPlan { name: seat.node, via: Via::Batch(Box::new(via)), slots: Some(seat.slots) }
}
