//! `--nodes` with `--ppn`: tasks that take slots of several hosts at once.
//!
//! Each task is a job of this machine's queue. The queue takes slots of several hosts without a deadlock, sets up the
//! environment of such a job, and ends all of it. The worker starts `homing sub --attach`, which submits the job and
//! prints its output. When that process ends, the job ends. The alternative was a second owner of slots in
//! `dispatch`. Jobs of the queue and these tasks would then have waited for each other in two places.

use super::args::{Args, On};
use super::granted;
use crate::cluster::Cluster;
use homing_launch::{HostPlan, Via};
use homing_model::{Failure, RawText};
use homing_queue::Engine;

/// Returns this machine as the only host, with as many tasks at once as the hosts of its queue can hold. The other
/// tasks wait here rather than in the queue.
pub fn plan(args: &Args, cluster: &Cluster, by_login: bool) -> Result<Vec<HostPlan>, Failure> {
    if by_login {
        return Err(
            Failure::usage("--ppn needs a queue, which hosts of --sshlogin do not have").hint("--hosts NODESET")
        );
    }
    let given = args.node_set().is_some() || cluster.has_hosts();
    let system = if args.on == On::Auto && given { None } else { granted::chosen(args, given) };
    if let Some(system) = system {
        let nodes = args.batch.nodes.map_or(1, |nodes| nodes.least);
        let hint = format!("homing sub --nodes {nodes} --ppn {} COMMAND", args.ppn.unwrap_or(1));
        return Err(Failure::usage(format!(
            "--ppn: on {}, submit each task over several nodes as its own job",
            system.words().name()
        ))
        .hint(hint));
    }
    let engine = crate::embedded::open()?;
    let slots: Option<u32> = engine.machines()?.iter().map(|m| m.slots).sum();
    let least = args.batch.nodes.map_or(1, |nodes| nodes.least).saturating_mul(args.ppn.unwrap_or(1));
    let at_once = slots.filter(|_| args.jobs.is_none()).map(|slots| (slots / least).max(1));
    Ok(vec![HostPlan { name: super::hostname(), via: Via::Local, slots: at_once }])
}

/// Returns the words that precede the command of each task.
pub fn words(args: &Args) -> Result<Option<Vec<RawText>>, Failure> {
    let (Some(ppn), Some(nodes)) = (args.ppn, args.batch.nodes) else { return Ok(None) };
    let exe = crate::programs::own_path()?;
    let mut all: Vec<RawText> = vec![exe.as_path().into()];
    all.extend(["sub", "--attach", "--engine=local"].map(RawText::from));
    all.extend([format!("--nodes={}-{}", nodes.least, nodes.most), format!("--ppn={ppn}")].map(RawText::from));
    let own = || super::hostname();
    let among = if args.on == On::Local { Some(own()) } else { args.node_set() };
    all.extend(among.map(|hosts| format!("--among={hosts}").into()));
    all.extend(args.net.iter().map(|net| format!("--net={net}").into()));
    all.extend(args.cluster.words().into_iter().map(RawText::from));
    Ok(Some(all))
}

/// Returns the variable of the ssh agent. The job needs it to reach other hosts, and tasks do not get it otherwise.
pub fn agent() -> Option<(RawText, RawText)> {
    std::env::var_os("SSH_AUTH_SOCK").map(|socket| ("SSH_AUTH_SOCK".into(), socket.into()))
}
