//! `--on slurm`, `--on lsf`: chooses the nodes of a run, and the options of the request for them.

use super::args::{Args, BatchArgs, On};
use super::licenses;
use crate::cluster::Cluster;
use crate::cluster::granted::{choice, plan, within};
use crate::nodes::Nodes;
use homing_dispatch::Licensed;
use homing_launch::HostPlan;
use homing_model::Failure;
use homing_scheduler::{BatchSystem, NodeWishes, Seat, System, WorkerRequest};

impl BatchArgs {
    /// Returns whether an option was given that only batch systems understand. Beside `--ppn`, `--nodes` is no such option.
    pub fn is_given(&self, ppn: bool) -> bool {
        let words = [&self.partition, &self.account, &self.qos, &self.time, &self.reservation, &self.mem_per_task];
        words.iter().any(|w| w.is_some())
            || self.cpus_per_task > 1
            || (self.nodes.is_some() && !ppn)
            || !self.batch_arg.is_empty()
    }
}

/// Returns the batch system of the run, if it goes to one. With `--on auto` it does if an option of batch systems was
/// given, or if one answers and no hosts were given.
pub fn chosen(args: &Args, hosts_given: bool) -> Option<System> {
    let first = |is_fit: fn(&dyn BatchSystem) -> bool| System::ALL.into_iter().find(|system| is_fit(system.words()));
    match args.on {
        On::Slurm => Some(System::Slurm),
        On::Lsf => Some(System::Lsf),
        On::Auto if args.batch.is_given(args.ppn.is_some()) => {
            Some(first(|system| system.is_configured()).unwrap_or(System::Slurm))
        }
        On::Auto if !hosts_given => first(|system| system.answers()),
        On::Auto | On::Local | On::Ssh => None,
    }
}

/// The hosts of a run on a batch system, the spare hosts that replace failed ones, and the file servers for which its
/// workers hold licences.
pub type GrantedHosts = (Vec<HostPlan>, Vec<HostPlan>, Vec<Licensed>);

/// Returns the hosts of the run. `holders` are the hosts that hold its inputs.
pub fn targets(
    system: System,
    args: &Args,
    cluster: &Cluster,
    run: &str,
    tasks: Option<u64>,
    holders: Vec<String>,
) -> Result<GrantedHosts, Failure> {
    let mut request = request(args, run)?;
    if let Some(why) = system.words().refuses(&request) {
        return Err(Failure::usage(why));
    }
    let wish = wish(args, cluster, tasks, holders)?;
    if let Some(allocation) = system.words().allocation(&|name| std::env::var(name).ok()) {
        return Ok((within(system, &allocation, &wish, &request)?, Vec::new(), Vec::new()));
    }
    let queue = args.batch.partition.clone().or_else(|| system.words().usual_queue());
    let choice = choice(system, queue.as_deref(), args.batch.reservation.as_deref(), &wish)?;
    let licensed = licenses::of(system, args, cluster, &wish.holders, &choice.seats)?;
    request.licenses = crate::cluster::licenses::of_run(&licensed);
    let plans = |seats: Vec<Seat>| seats.into_iter().map(|seat| plan(system, seat, &wish, &request)).collect();
    let servers = licensed.into_iter().map(|(_, server)| server).collect();
    Ok((plans(choice.seats), plans(choice.spares), servers))
}

fn request(args: &Args, run: &str) -> Result<WorkerRequest, Failure> {
    let given = args.batch.clone();
    Ok(WorkerRequest {
        partition: given.partition,
        account: given.account,
        qos: given.qos,
        time: given.time,
        reservation: given.reservation,
        extra: given.batch_arg,
        run: run.into(),
        ..WorkerRequest::default()
    })
}

fn wish(args: &Args, cluster: &Cluster, tasks: Option<u64>, holders: Vec<String>) -> Result<NodeWishes, Failure> {
    let memory = args.batch.mem_per_task.as_deref().map(|t| homing_batch::parse_size("--mem-per-task", t));
    let memory = memory.transpose().map_err(Failure::usage)?;
    let jobs = match args.jobs.as_deref() {
        None | Some("0" | "100%") => None,
        Some(text) => {
            let count = text.parse().ok().filter(|n: &u32| *n > 0);
            Some(count.ok_or_else(|| {
                Failure::usage(format!("-j {text}: on a batch system, only a number of tasks is possible")).hint("-j 8")
            })?)
        }
    };
    let only = args.node_set().map(|hosts| cluster.hosts(Some(&hosts)));
    Ok(NodeWishes {
        holders,
        only: only.transpose()?,
        nodes: args.batch.nodes.map(number).transpose()?,
        jobs,
        cpus_per_task: args.batch.cpus_per_task.max(1),
        memory_mb: memory.map(|bytes| bytes.div_ceil(1 << 20).max(1)),
        gpu_parts: args.gpus_per_task.unwrap_or(0),
        tasks,
        in_reservation: args.batch.reservation.is_some(),
    })
}

/// Returns the number of the workers' nodes. A range is refused: nothing would decide between its numbers.
fn number(nodes: Nodes) -> Result<usize, Failure> {
    let Nodes { least, most } = nodes;
    let why = || Failure::usage(format!("--nodes {least}-{most}: a range of nodes works only with --ppn"));
    (least == most)
        .then_some(most as usize)
        .ok_or_else(|| why().hint(format!("--nodes {most}; or --ppn for tasks over several hosts")))
}
