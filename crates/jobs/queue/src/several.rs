//! Chooses the hosts of a job whose slots may lie on several hosts.

use crate::plan::{HostRoom, Piece, by_parts, by_rank};
use crate::{Engine, Job, JobSpec, Machine};
use homing_model::Failure;
use homing_os::say;
use homing_scheduler::BatchNode;
use std::collections::BTreeMap;

/// The number of slots, and how they may be spread.
pub struct SlotRequest {
    /// The fewest slots.
    pub least: u32,
    /// The most slots, if so many are available.
    pub most: u32,
    /// The most slots on one host; 0: all on one.
    pub per_host: Option<u32>,
    /// Whether each host has exactly `per_host` of them, or none.
    pub whole: bool,
    /// Whether Slurm ignores the location of its inputs.
    pub anywhere: bool,
}

impl SlotRequest {
    /// Makes the request for a number of hosts with equally many slots on each.
    pub fn of((least, most): (u32, u32), per_host: u32, anywhere: bool) -> SlotRequest {
        let slots = |hosts: u32| hosts.saturating_mul(per_host);
        SlotRequest { least: slots(least), most: slots(most), per_host: Some(per_host), whole: true, anywhere }
    }
}

/// Bytes of the job's inputs by the host that holds them, and the pieces of its files in the order in which it names
/// them.
pub type InputLocations = (BTreeMap<String, u64>, Vec<Piece>);

/// Why the slots of a job were not laid on hosts.
#[derive(Debug)]
pub enum LayError {
    /// The hosts never have so many.
    TooMany(String),
    /// Another reason.
    Other(String),
}

impl std::fmt::Display for LayError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (LayError::TooMany(why) | LayError::Other(why)) = self;
        f.write_str(why)
    }
}

impl From<String> for LayError {
    fn from(why: String) -> Self {
        LayError::Other(why)
    }
}

/// Facts about hosts, and about the location of files.
pub struct Around<'a> {
    /// This machine.
    pub own: String,
    /// Finds the inputs of a job.
    pub found: &'a dyn Fn(&JobSpec) -> Result<InputLocations, Failure>,
    /// Returns the processors of a host without a number of slots; it has as many slots.
    pub processors: &'a dyn Fn(&str) -> Result<u32, String>,
}

/// Chooses among `hosts`, all if empty, and writes the choice into the job. The error names the number of slots that
/// would fit.
pub fn lay(
    spec: &mut JobSpec,
    wanted: &SlotRequest,
    hosts: Vec<String>,
    engine: &dyn Engine,
    around: &Around,
) -> Result<(), LayError> {
    if engine.name() == "slurm" {
        in_slurms_words(spec, wanted)?;
        return Ok(by_parts_of_slurm(spec, wanted, around)?);
    }
    let own = around.own.clone();
    let at_home = spec.host.clone().unwrap_or_else(|| own.clone());
    let one_does = !wanted.whole && wanted.per_host.is_none_or(|n| n == 0 || n >= wanted.most);
    let machines = engine.machines().map_err(|e| e.to_string())?;
    let known = machines.iter().find(|m| m.name == at_home).and_then(|m| m.slots);
    if one_does && known.map_or_else(|| (around.processors)(&at_home), Ok)? >= wanted.most {
        spec.slots = wanted.most;
        return Ok(());
    }
    let unsaid = hosts.iter().filter(|host| machines.iter().all(|m| m.name != **host));
    let unsaid: Vec<Machine> = unsaid.map(|host| named_alone(host)).collect();
    let fits = |m: &&Machine| m.open && (hosts.is_empty() || hosts.contains(&m.name));
    let open: Vec<&Machine> = machines.iter().chain(&unsaid).filter(fits).collect();
    let (mut rooms, pieces) = rooms(spec, &open, engine, around)?;
    if wanted.per_host == Some(0) {
        return on_one(spec, wanted, &rooms, &own);
    }
    let all = rooms.clone();
    rooms.retain(|room| !wanted.whole || wanted.per_host.is_none_or(|slots| room.slots >= slots));
    let shares = by_parts(&rooms, &pieces, wanted.least, wanted.most, wanted.per_host)
        .map_err(|fits| too_many(wanted, &all, fits))?;
    spec.slots = shares.iter().map(|share| share.slots).sum();
    // The first host starts the command: the job waits for it, and is shown to run on it.
    spec.host = shares.first().map(|share| share.host.clone());
    if shares.len() > 1 {
        spec.ranks = by_rank(&shares, &pieces);
        spec.hosts = shares;
    } else {
        spec.host = spec.host.take().filter(|host| *host != own);
    }
    Ok(())
}

/// Makes a host that no cluster file mentions.
fn named_alone(host: &str) -> Machine {
    Machine { name: host.into(), slots: None, open: true, state: "ok".into(), closed: None }
}

/// Puts the job on the host with most room of those that have enough.
fn on_one(spec: &mut JobSpec, wanted: &SlotRequest, rooms: &[HostRoom], own: &str) -> Result<(), LayError> {
    let best = rooms.iter().max_by_key(|room| (room.slots.min(wanted.most), room.bytes));
    let largest = best.map_or(0, |room| room.slots);
    let Some(room) = best.filter(|room| room.slots >= wanted.least) else {
        return Err(too_many(wanted, rooms, largest));
    };
    spec.slots = room.slots.min(wanted.most);
    spec.host = Some(room.host.clone()).filter(|host| host != own);
    Ok(())
}

fn too_many(wanted: &SlotRequest, rooms: &[HostRoom], fits: u32) -> LayError {
    let how = match wanted.per_host {
        Some(0) => " on one host".to_string(),
        Some(n) => format!(", {n} on each host,"),
        None => String::new(),
    };
    let rooms: Vec<String> = rooms.iter().map(|room| format!("{} has {}", room.host, room.slots)).collect();
    let (least, rooms) = (wanted.least, rooms.join(", "));
    LayError::TooMany(format!("{least} slots{how} never fit: {rooms}; the largest number that would is {fits}"))
}

fn in_slurms_words(spec: &mut JobSpec, wanted: &SlotRequest) -> Result<(), String> {
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
        say!("homing: Slurm takes one number of tasks; requesting {}", wanted.least);
    }
    Ok(())
}

/// Chooses the nodes that hold the parts of its inputs, in their order. If no location is known, Slurm chooses.
fn by_parts_of_slurm(spec: &mut JobSpec, wanted: &SlotRequest, around: &Around) -> Result<(), String> {
    if !spec.spread || wanted.anywhere {
        return Ok(());
    }
    let (bytes, pieces) = match (around.found)(spec) {
        Ok(found) => found,
        Err(why) => {
            say!("{why}; Slurm chooses its nodes");
            return Ok(());
        }
    };
    let nodes = homing_scheduler::slurm::ask::nodes(Some(&spec.queue)).map_err(|e| e.to_string())?;
    let of = |node: &BatchNode| bytes.iter().filter(|(host, _)| node.is_called(host)).map(|(_, bytes)| bytes).sum();
    let room = |node: &BatchNode| HostRoom {
        host: node.name.clone(),
        slots: node.cpus,
        requested: node.cpus.saturating_sub(node.idle_cpus),
        bytes: of(node),
    };
    let mut rooms: Vec<HostRoom> = nodes.iter().filter(|node| node.is_usable(false)).map(room).collect();
    rooms.retain(|room| !wanted.whole || wanted.per_host.is_none_or(|slots| room.slots >= slots));
    if rooms.iter().all(|room| room.bytes == 0) {
        return Ok(());
    }
    let named = |host: &String| nodes.iter().find(|n| n.is_called(host)).map_or(host.clone(), |n| n.name.clone());
    let piece = |p: Piece| Piece { hosts: p.hosts.iter().map(named).collect(), ..p };
    let pieces: Vec<Piece> = pieces.into_iter().map(piece).collect();
    // Slurm may later have room that it does not have now.
    let Ok(shares) = by_parts(&rooms, &pieces, spec.slots, spec.slots, wanted.per_host) else { return Ok(()) };
    let list: Vec<&str> = shares.iter().map(|share| share.host.as_str()).collect();
    spec.extra.splice(0..0, [format!("--nodes={}", list.len()), format!("--nodelist={}", list.join(","))]);
    spec.near.clear();
    spec.ranks = by_rank(&shares, &pieces);
    spec.hosts = shares;
    Ok(())
}

/// Returns the resources of each host for the job, and the pieces of its inputs.
fn rooms(
    spec: &JobSpec,
    open: &[&Machine],
    engine: &dyn Engine,
    around: &Around,
) -> Result<(Vec<HostRoom>, Vec<Piece>), String> {
    let jobs = engine.jobs().map_err(|e| e.to_string())?;
    let (bytes, pieces) = (around.found)(spec).unwrap_or_else(|why| {
        say!("{why}; homing chooses its hosts by their slots");
        (BTreeMap::new(), Vec::new())
    });
    let mut rooms = Vec::new();
    for machine in open {
        let slots = match machine.slots {
            Some(slots) => slots,
            None => (around.processors)(&machine.name).unwrap_or_else(|why| {
                say!("homing: {why}; the job does not use it");
                0
            }),
        };
        let (host, bytes) = (machine.name.clone(), bytes.get(&machine.name).copied().unwrap_or(0));
        rooms.push(HostRoom { requested: requested_slots(&jobs, &host, &around.own), host, slots, bytes });
    }
    Ok((rooms, pieces))
}

/// Returns the first listed host with room, of hosts that would all do; without one the least crowded.
pub fn least_crowded<'a>(hosts: &'a [String], machines: &[Machine], jobs: &[Job], own: &str) -> Option<&'a String> {
    let machine = |name: &str| machines.iter().find(|m| m.name == name);
    // Slots that jobs have or wait for, per slot of the host, in percent: the queue of a host counts too.
    let crowded =
        |name: &str| requested_slots(jobs, name, own) * 100 / machine(name).and_then(|m| m.slots).unwrap_or(1).max(1);
    let closed = |name: &str| machine(name).is_some_and(|m| !m.open);
    let best = hosts.iter().enumerate().min_by_key(|(at, name)| (closed(name), crowded(name).max(99), *at));
    best.map(|(_, name)| name)
}

/// Returns the slots of a host that jobs have or wait for.
pub fn requested_slots(jobs: &[Job], host: &str, own: &str) -> u32 {
    let of = |job: &Job| {
        let elements = job.parts.iter().filter(|p| !p.state.is_over()).count() as u32;
        job.spec.slots_on(host, job.spec.host.as_deref().unwrap_or(own)) * elements
    };
    jobs.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JobElement;

    #[test]
    fn the_first_host_with_room_is_taken_and_where_none_has_the_least_crowded() {
        let machine = |name: &str, slots, open| {
            let (name, state, closed) = (name.into(), String::new(), None);
            Machine { name, slots: Some(slots), open, state, closed }
        };
        let machines = [machine("a", 2, true), machine("b", 4, true), machine("c", 9, false)];
        let job = |host: &str| {
            let spec = JobSpec { host: Some(host.into()), slots: 2, ..JobSpec::default() };
            Job { id: 1, uid: 1, spec: spec.into(), parts: vec![JobElement::new(0)], dir: Default::default() }
        };
        let hosts = ["c", "a", "b"].map(String::from);
        let best = |jobs: &[Job]| least_crowded(&hosts, &machines, jobs, "own").unwrap().clone();
        assert_eq!(best(&[]), "a");
        assert_eq!(best(&[job("a")]), "b");
        assert_eq!(best(&[job("a"), job("b"), job("b")]), "a", "both are full alike, and a was named before");
        assert_eq!(best(&[job("a"), job("a"), job("b"), job("b"), job("b")]), "b");
    }

    #[test]
    fn slurm_is_told_in_its_own_words() {
        let words = |least, most, per_host| {
            let text = r#"{"v":1,"user":"u","submit_ns":0,"from":"h","cwd":"/w","command":{"shell":"true"},"name":"",
                           "queue":"q","slots":32,"extra":["--ntasks-per-node=1"]}"#;
            let mut spec: JobSpec = serde_json::from_str(text).unwrap();
            in_slurms_words(&mut spec, &SlotRequest { least, most, per_host, whole: false, anywhere: true }).unwrap();
            (spec.spread, spec.extra.join(" "))
        };
        // The user's own words come last, so that they win.
        assert_eq!(words(32, 32, Some(8)), (true, "--ntasks-per-node=8 --ntasks-per-node=1".into()));
        assert_eq!(words(32, 32, Some(0)), (false, "--nodes=1 --ntasks-per-node=1".into()));
        assert_eq!(words(2, 32, None), (false, "--ntasks-per-node=1".into()));
    }
}
