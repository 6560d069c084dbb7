//! `--on slurm`: which nodes are asked for, and with what.

use super::args::{Args, On, SlurmArgs};
use super::licenses;
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::nodes::Nodes;
use homing_dispatch::Licensed;
use homing_launch::{HostPlan, SlurmSeat, Stop, Via};
use homing_slurm::{Allocation, Choice, Node, Request, Seat, Wish, ask, choose};

impl SlurmArgs {
    /// Whether the user said anything that only Slurm understands; a number of hosts is none beside `--ppn`.
    fn is_given(&self, ppn: bool) -> bool {
        let words = [&self.partition, &self.account, &self.qos, &self.time, &self.reservation, &self.mem_per_task];
        words.iter().any(|w| w.is_some())
            || self.cpus_per_task > 1
            || (self.nodes.is_some() && !ppn)
            || !self.slurm_arg.is_empty()
    }
}

/// Whether the run goes to Slurm. By itself (`auto`) when an option of Slurm's
/// was given, or when `sinfo` answers and no hosts were given.
pub fn is_chosen(args: &Args, hosts_given: bool) -> bool {
    let answers = || ask::is_configured() && ask::nodes(None).is_ok_and(|nodes| !nodes.is_empty());
    match args.on {
        On::Slurm => true,
        On::Auto => args.slurm.is_given(args.ppn.is_some()) || (!hosts_given && answers()),
        On::Local | On::Ssh => false,
    }
}

/// What a run has of Slurm: its hosts, those that are used when they fail, and servers of which its workers have licences.
pub type Granted = (Vec<HostPlan>, Vec<HostPlan>, Vec<Licensed>);

/// The hosts of the run; `holders` are those that hold its inputs.
pub fn targets(
    args: &Args,
    cluster: &Cluster,
    run: &str,
    tasks: Option<u64>,
    holders: Vec<String>,
) -> Result<Granted, Failure> {
    let mut request = request(args, run)?;
    let wish = wish(args, cluster, tasks, holders)?;
    if let Some(allocation) = Allocation::from_env(|name| std::env::var(name).ok()) {
        return Ok((within(&allocation, &wish, &request)?, Vec::new(), Vec::new()));
    }
    let choice = choice(args, &wish)?;
    let licensed = licenses::of(args, cluster, &wish.holders, &choice.seats)?;
    request.licenses = licenses::word(&licensed);
    let plans = |seats: Vec<Seat>| seats.into_iter().map(|seat| plan(seat, &wish, &request)).collect();
    let servers = licensed.into_iter().map(|(_, server)| server).collect();
    Ok((plans(choice.seats), plans(choice.spares), servers))
}

fn request(args: &Args, run: &str) -> Result<Request, Failure> {
    let given = args.slurm.clone();
    Ok(Request {
        partition: given.partition,
        account: given.account,
        qos: given.qos,
        time: given.time,
        reservation: given.reservation,
        extra: given.slurm_arg,
        run: run.into(),
        ..Request::default()
    })
}

fn wish(args: &Args, cluster: &Cluster, tasks: Option<u64>, holders: Vec<String>) -> Result<Wish, Failure> {
    let memory = args.slurm.mem_per_task.as_deref().map(|t| homing_batch::parse_size("--mem-per-task", t));
    let memory = memory.transpose().map_err(Failure::usage)?;
    let jobs = match args.jobs.as_deref() {
        None | Some("0" | "100%") => None,
        Some(text) => {
            let count = text.parse().ok().filter(|n: &u32| *n > 0);
            Some(count.ok_or_else(|| {
                Failure::usage(format!("-j {text}: on Slurm the cores of a worker follow from its tasks")).hint("-j 8")
            })?)
        }
    };
    let only = args.hosts.as_ref().map(|hosts| cluster.hosts(Some(hosts)));
    Ok(Wish {
        holders,
        only: only.transpose()?,
        nodes: args.slurm.nodes.map(number).transpose()?,
        jobs,
        cpus_per_task: args.slurm.cpus_per_task.max(1),
        memory_mb: memory.map(|bytes| bytes.div_ceil(1 << 20).max(1)),
        tasks,
        in_reservation: args.slurm.reservation.is_some(),
    })
}

/// The workers' nodes: those of a range would have no better reason than their number.
fn number(nodes: Nodes) -> Result<usize, Failure> {
    let Nodes { least, most } = nodes;
    let why = || Failure::usage(format!("--nodes {least}-{most}: the workers of a run have one number of nodes"));
    (least == most)
        .then_some(most as usize)
        .ok_or_else(|| why().hint(format!("--nodes {most}; --ppn for tasks over several hosts")))
}

fn choice(args: &Args, wish: &Wish) -> Result<Choice, Failure> {
    let partition = args.slurm.partition.clone().or_else(|| std::env::var("SLURM_PARTITION").ok());
    let mut nodes =
        ask::nodes(partition.as_deref()).map_err(|e| Failure::system(e).hint("sinfo; or run here with --on local"))?;
    if nodes.is_empty() {
        let text = partition.map_or("Slurm has no nodes".into(), |p| format!("Slurm has no partition {p} with nodes"));
        return Err(Failure::usage(text).hint("sinfo lists the partitions"));
    }
    if let Some(name) = &args.slurm.reservation {
        let reserved = ask::reservation(name).map_err(|e| Failure::usage(e).hint("scontrol show reservation"))?;
        nodes.retain(|n| reserved.contains(&n.name));
    }
    add_addresses(&mut nodes, &wish.holders);
    let choice = choose(&nodes, wish);
    if choice.seats.is_empty() {
        return Err(none_fits(&nodes, wish));
    }
    for node in nodes.iter().filter(|n| !n.is_usable(wish.in_reservation) && holds(n, wish)) {
        eprintln!("homing: {} holds data and is {}: {}", node.name, node.state, because(&node.reason));
    }
    Ok(choice)
}

fn holds(node: &Node, wish: &Wish) -> bool {
    wish.holders.iter().any(|host| node.is_called(host))
}

fn because(reason: &str) -> &str {
    if reason.is_empty() { "its tasks go to other hosts" } else { reason }
}

fn none_fits(nodes: &[Node], wish: &Wish) -> Failure {
    let states: Vec<String> = nodes.iter().take(8).map(|n| format!("{} {}", n.name, n.state)).collect();
    let text = match nodes.iter().any(|n| n.is_usable(wish.in_reservation)) {
        true => "no node of the partition has room for one such task, or none is among --hosts".to_string(),
        false => format!("no node of the partition can be used: {}", states.join(", ")),
    };
    Failure::usage(text).hint("sinfo -N -l; --partition NAME takes another")
}

/// A file system may know its servers by address only.
fn add_addresses(nodes: &mut [Node], holders: &[String]) {
    if !holders.iter().any(|h| h.parse::<std::net::IpAddr>().is_ok()) {
        return;
    }
    for node in nodes {
        node.aliases.extend(homing_names::addresses(&node.name));
    }
}

/// Steps of the job around us: nothing to choose, its nodes are ours already.
fn within(allocation: &Allocation, wish: &Wish, request: &Request) -> Result<Vec<HostPlan>, Failure> {
    let node = |(name, cpus): &(String, u32)| Node {
        name: name.clone(),
        aliases: vec![],
        state: "idle".into(),
        idle_cpus: *cpus,
        cpus: *cpus,
        // Its limit is the job's own.
        memory_mb: u64::MAX >> 1,
        reason: String::new(),
    };
    let nodes: Vec<Node> = allocation.nodes.iter().map(node).collect();
    let all = Wish { nodes: wish.nodes.or(Some(nodes.len())), ..wish.clone() };
    let seats = choose(&nodes, &all).seats;
    if seats.is_empty() {
        let names: Vec<&str> = nodes.iter().map(|n| n.name.as_str()).collect();
        let text = format!("job {} has no node with room for such a task; it has {}", allocation.job, names.join(","));
        return Err(Failure::usage(text));
    }
    let request = Request { within: Some(allocation.job.clone()), ..request.clone() };
    let plans = seats.into_iter().map(|seat| {
        let here = allocation.here.as_ref() == Some(&seat.node);
        let plan = plan(seat, wish, &request);
        // A child of ours stands in the same job, and needs no step.
        if here { HostPlan { via: Via::Local, ..plan } } else { plan }
    });
    Ok(plans.collect())
}

fn plan(seat: Seat, wish: &Wish, request: &Request) -> HostPlan {
    let request = Request {
        cpus: seat.slots.saturating_mul(wish.cpus_per_task),
        memory_mb: wish.memory_mb.map(|mb| mb.saturating_mul(u64::from(seat.slots))),
        ..request.clone()
    };
    let via = SlurmSeat { node: seat.node.clone(), request, round: 0, stop: Stop::default() };
    HostPlan { name: seat.node, via: Via::Slurm(Box::new(via)), slots: Some(seat.slots) }
}
