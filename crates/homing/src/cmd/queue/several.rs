//! The hosts of a job whose slots may lie on several.

use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::nodes::Nodes;
use homing_queue::plan::{Config, Piece, Room, by_parts, by_rank};
use homing_queue::{Engine, Job, JobSpec, Machine};
use homing_slurm::Node;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How many slots, and how they may lie.
pub struct Wanted {
    /// So many at least.
    pub least: u32,
    /// As many as there are, up to so many.
    pub most: u32,
    /// On one host at most; 0: all on one.
    pub per_host: Option<u32>,
    /// Each host has so many of them, or none.
    pub whole: bool,
    /// Where its inputs lie does not matter to Slurm.
    pub anywhere: bool,
}

impl Wanted {
    /// So many hosts with as many slots on each.
    pub fn of(nodes: Nodes, per_host: u32, anywhere: bool) -> Wanted {
        let slots = |hosts: u32| hosts.saturating_mul(per_host);
        Wanted { least: slots(nodes.least), most: slots(nodes.most), per_host: Some(per_host), whole: true, anywhere }
    }
}

/// Hosts of a queue; none where it names none.
pub fn of_queue(queue: &str, config: &Config) -> Result<Vec<String>, Failure> {
    let hosts = config.queues.get(queue).map_or("", |q| q.hosts.as_str());
    if hosts.trim().is_empty() { Ok(Vec::new()) } else { Cluster::of_queue()?.hosts(Some(hosts)) }
}

/// Chooses among `hosts`, all where there are none, and writes it into the job; the error tells what would fit.
pub fn lay(
    spec: &mut JobSpec,
    wanted: &Wanted,
    hosts: Vec<String>,
    engine: &dyn Engine,
    inputs: &[PathBuf],
) -> Result<(), String> {
    if engine.name() == "slurm" {
        in_slurms_words(spec, wanted)?;
        return by_parts_of_slurm(spec, wanted, inputs);
    }
    let own = homing_queue::host_name();
    let at_home = spec.host.clone().unwrap_or_else(|| own.clone());
    let one_does = !wanted.whole && wanted.per_host.is_none_or(|n| n == 0 || n >= wanted.most);
    let machines = engine.machines().map_err(|e| e.to_string())?;
    let known = machines.iter().find(|m| m.name == at_home).and_then(|m| m.slots);
    if one_does && known.map_or_else(|| processors(&at_home), Ok)? >= wanted.most {
        spec.slots = wanted.most;
        return Ok(());
    }
    let unsaid = hosts.iter().filter(|host| machines.iter().all(|m| m.name != **host));
    let unsaid: Vec<Machine> = unsaid.map(|host| named_alone(host)).collect();
    let fits = |m: &&Machine| m.open && (hosts.is_empty() || hosts.contains(&m.name));
    let open: Vec<&Machine> = machines.iter().chain(&unsaid).filter(fits).collect();
    let (mut rooms, pieces) = rooms(spec, &open, engine, inputs)?;
    if wanted.per_host == Some(0) {
        return on_one(spec, wanted, &rooms, &own);
    }
    let all = rooms.clone();
    rooms.retain(|room| !wanted.whole || wanted.per_host.is_none_or(|slots| room.slots >= slots));
    let shares = by_parts(&rooms, &pieces, wanted.least, wanted.most, wanted.per_host)
        .map_err(|fits| too_many(wanted, &all, fits))?;
    spec.slots = shares.iter().map(|share| share.slots).sum();
    // The first starts the command: it is what the job waits for, and what it is shown to run on.
    spec.host = shares.first().map(|share| share.host.clone());
    if shares.len() > 1 {
        spec.ranks = by_rank(&shares, &pieces);
        spec.hosts = shares;
    } else {
        spec.host = spec.host.take().filter(|host| *host != own);
    }
    Ok(())
}

/// A host of which no cluster file says anything.
fn named_alone(host: &str) -> Machine {
    Machine { name: host.into(), slots: None, open: true, state: "ok".into(), closed: None }
}

/// On the host with most room of those that have enough.
fn on_one(spec: &mut JobSpec, wanted: &Wanted, rooms: &[Room], own: &str) -> Result<(), String> {
    let best = rooms.iter().max_by_key(|room| (room.slots.min(wanted.most), room.bytes));
    let largest = best.map_or(0, |room| room.slots);
    let Some(room) = best.filter(|room| room.slots >= wanted.least) else {
        return Err(too_many(wanted, rooms, largest));
    };
    spec.slots = room.slots.min(wanted.most);
    spec.host = Some(room.host.clone()).filter(|host| host != own);
    Ok(())
}

fn too_many(wanted: &Wanted, rooms: &[Room], fits: u32) -> String {
    let how = match wanted.per_host {
        Some(0) => " on one host".to_string(),
        Some(n) => format!(", {n} on each host,"),
        None => String::new(),
    };
    let rooms: Vec<String> = rooms.iter().map(|room| format!("{} has {}", room.host, room.slots)).collect();
    format!("{} slots{how} never fit: {}; the largest number that would is {fits}", wanted.least, rooms.join(", "))
}

fn in_slurms_words(spec: &mut JobSpec, wanted: &Wanted) -> Result<(), String> {
    match wanted.per_host {
        None => {}
        Some(n) if wanted.whole => {
            (spec.spread, spec.slots) = (true, wanted.least);
            spec.extra.splice(0..0, [format!("--nodes={}", wanted.least / n), format!("--ntasks-per-node={n}")]);
        }
        Some(0) => spec.extra.insert(0, "--nodes=1".into()),
        Some(n) => {
            spec.spread = true;
            spec.extra.insert(0, format!("--ntasks-per-node={n}"));
        }
    }
    if wanted.most > wanted.least {
        eprintln!("homing: Slurm takes one number of tasks: {} are asked for", wanted.least);
    }
    Ok(())
}

/// On the nodes that hold the parts of its inputs, in their order; where nothing is known of those, Slurm chooses.
fn by_parts_of_slurm(spec: &mut JobSpec, wanted: &Wanted, inputs: &[PathBuf]) -> Result<(), String> {
    if !spec.spread || wanted.anywhere {
        return Ok(());
    }
    let (bytes, pieces) = match super::near::found(spec, inputs) {
        Ok(found) => found,
        Err(why) => {
            eprintln!("{why}; Slurm chooses its nodes");
            return Ok(());
        }
    };
    let nodes = homing_slurm::ask::nodes(Some(&spec.queue)).map_err(|e| e.to_string())?;
    let of = |node: &Node| bytes.iter().filter(|(host, _)| node.is_called(host)).map(|(_, bytes)| bytes).sum();
    let room = |node: &Node| Room {
        host: node.name.clone(),
        slots: node.cpus,
        asked: node.cpus.saturating_sub(node.idle_cpus),
        bytes: of(node),
    };
    let mut rooms: Vec<Room> = nodes.iter().filter(|node| node.is_usable(false)).map(room).collect();
    rooms.retain(|room| !wanted.whole || wanted.per_host.is_none_or(|slots| room.slots >= slots));
    if rooms.iter().all(|room| room.bytes == 0) {
        return Ok(());
    }
    let named = |host: &String| nodes.iter().find(|n| n.is_called(host)).map_or(host.clone(), |n| n.name.clone());
    let piece = |p: Piece| Piece { hosts: p.hosts.iter().map(named).collect(), ..p };
    let pieces: Vec<Piece> = pieces.into_iter().map(piece).collect();
    // What Slurm has no room for now, it may have later.
    let Ok(shares) = by_parts(&rooms, &pieces, spec.slots, spec.slots, wanted.per_host) else { return Ok(()) };
    let list: Vec<&str> = shares.iter().map(|share| share.host.as_str()).collect();
    spec.extra.splice(0..0, [format!("--nodes={}", list.len()), format!("--nodelist={}", list.join(","))]);
    spec.near.clear();
    spec.ranks = by_rank(&shares, &pieces);
    spec.hosts = shares;
    Ok(())
}

/// What each host has for the job, and how the parts of its inputs lie.
fn rooms(
    spec: &JobSpec,
    open: &[&Machine],
    engine: &dyn Engine,
    inputs: &[PathBuf],
) -> Result<(Vec<Room>, Vec<Piece>), String> {
    let jobs = engine.jobs().map_err(|e| e.to_string())?;
    let own = homing_queue::host_name();
    let (bytes, pieces) = super::near::found(spec, inputs).unwrap_or_else(|why| {
        eprintln!("{why}; its hosts are chosen by their slots");
        (BTreeMap::new(), Vec::new())
    });
    let mut rooms = Vec::new();
    for machine in open {
        let slots = match machine.slots {
            Some(slots) => slots,
            None => processors(&machine.name).unwrap_or_else(|why| {
                eprintln!("homing: {why}; the job does not use it");
                0
            }),
        };
        let (host, bytes) = (machine.name.clone(), bytes.get(&machine.name).copied().unwrap_or(0));
        rooms.push(Room { asked: asked(&jobs, &host, &own), host, slots, bytes });
    }
    Ok((rooms, pieces))
}

/// Slots of a host that jobs have or wait for.
pub fn asked(jobs: &[Job], host: &str, own: &str) -> u32 {
    let of = |job: &Job| {
        let elements = job.parts.iter().filter(|p| !p.state.is_over()).count() as u32;
        job.spec.slots_on(host, job.spec.host.as_deref().unwrap_or(own)) * elements
    };
    jobs.iter().map(of).sum()
}

/// Processors of a host whose slots nobody has said: it has as many.
pub fn processors(host: &str) -> Result<u32, String> {
    let asked = crate::cmd::hosts::ask_all(&[host.into()], &homing_queue::host_name()).pop();
    match asked.unwrap_or_else(|| Err("no answer".into())) {
        Ok((facts, _, _)) => Ok(facts.cores),
        Err(why) => Err(format!("{host} cannot be asked for its processors: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_is_told_in_its_own_words() {
        let words = |least, most, per_host| {
            let text = r#"{"v":1,"user":"u","submit_ns":0,"from":"h","cwd":"/w","command":{"shell":"true"},"name":"",
                           "queue":"q","slots":32,"extra":["--ntasks-per-node=1"]}"#;
            let mut spec: JobSpec = serde_json::from_str(text).unwrap();
            in_slurms_words(&mut spec, &Wanted { least, most, per_host, whole: false, anywhere: true }).unwrap();
            (spec.spread, spec.extra.join(" "))
        };
        // The user's own words come last, so that they win.
        assert_eq!(words(32, 32, Some(8)), (true, "--ntasks-per-node=8 --ntasks-per-node=1".into()));
        assert_eq!(words(32, 32, Some(0)), (false, "--nodes=1 --ntasks-per-node=1".into()));
        assert_eq!(words(2, 32, None), (false, "--ntasks-per-node=1".into()));
    }
}
