//! Plans draining, copying and healing a MooseFS volume that is in use.

use super::chunks::{self, Chunks};
use super::goals::{self, Goals};
use super::{CHUNKSERVER, MASTER, UNMAKE_STORE, marked};
use crate::observe::{HostFacts, Observed};
use crate::refuse::{Danger, Refusal, lifted};
use crate::spec::Spec;
use crate::step::{CommandStep, DataMovement, Then, VolumePlan, script, words};

const MARK: &str = r#"
    sed -i 's|^/|*/|' /etc/mfs/mfshdd.cfg && systemctl reload moosefs-chunkserver
"#;
const UNMARK: &str = r#"
    sed -i 's|^\*/|/|' /etc/mfs/mfshdd.cfg && systemctl reload moosefs-chunkserver
"#;
/// The master forgets a chunkserver only after it is gone; a remaining entry does no harm.
const FORGET: &str = r#"
    ip=$(getent ahostsv4 "$2" | awk 'NR==1 {print $1}'); sleep 1
    mfscli -H "$1" -CRC/"$ip"/9422 >/dev/null 2>&1; true
"#;

/// Marks a host's disk, waits until every chunk has its copies elsewhere, then stops its chunkserver.
pub fn drain_host(spec: &Spec, seen: &Observed, host: &str) -> Result<VolumePlan, Vec<Refusal>> {
    let mut plan = VolumePlan::default();
    let Some(place) = spec.places.iter().find(|p| p.host == host) else { return Ok(plan) };
    let chunks = chunks_of(spec, seen)?;
    let Some(facts) = seen.host(host) else {
        return dead_host(plan, spec, seen, &chunks, host);
    };
    if !marked(facts, "mfschunkserver.cfg", &spec.name) {
        return Ok(plan);
    }
    let (left, goal) = (spec.servers().len() as u64 - 1, chunks.largest_goal());
    if left == 0 {
        return Err(vec![Refusal::never(format!("{host} is the only host: no other host can take its files"))]);
    }
    if left < goal {
        let why = format!(
            "without {host}, {left} hosts are left, but some files have a goal of {goal}: \
             first run homing volume set-copies {} {} {left} {}",
            spec.name,
            spec.mount,
            Danger::LastCopy.flag()
        );
        return Err(vec![Refusal::never(why)]);
    }
    let store = spec.store(place);
    let ips = addresses(facts, host == spec.master());
    let going = facts.texts.get("mfshdd.cfg").is_some_and(|t| t.lines().any(|l| l.starts_with('*')));
    if !going {
        let step = CommandStep::new(host, script(MARK, &[]), format!("mark {store} for removal"));
        plan.phase("mark it for removal", vec![step.undo(script(UNMARK, &[]))]);
    }
    if !going || !chunks.can_go(&ips) {
        plan.then = Then::Wait(DataMovement::Drain(ips));
        return Ok(plan);
    }
    let stop = script(UNMAKE_STORE, &[&spec.name, &store]);
    plan.phase(
        "stop its chunkserver",
        vec![CommandStep::new(host, stop, format!("stop the chunkserver and remove {store}"))],
    );
    forget(&mut plan, spec, host);
    Ok(plan)
}

/// Lets a lost host go once the others have made its copies anew.
fn dead_host(
    mut plan: VolumePlan,
    spec: &Spec,
    seen: &Observed,
    chunks: &Chunks,
    host: &str,
) -> Result<VolumePlan, Vec<Refusal>> {
    let known: Vec<String> = seen
        .hosts
        .iter()
        .filter_map(|(h, f)| Some(addresses(f.as_ref().ok()?, h == spec.master())))
        .flatten()
        .collect();
    if let Some(disk) = chunks.disks.iter().find(|d| !known.contains(&d.ip)) {
        let why = format!("{host} does not answer this machine, but {} is still connected to the master", disk.ip);
        return Err(vec![Refusal::never(why)]);
    }
    if chunks.missing > 0 {
        let n = chunks.missing;
        return Err(vec![Refusal::never(format!("{n} chunks have copies on {host} only: bring it back"))]);
    }
    match chunks.behind() {
        0 => forget(&mut plan, spec, host),
        _ => plan.then = Then::Wait(DataMovement::Heal),
    }
    plan.notes
        .push(format!("{host} does not answer: its folder stays there, and its chunkserver starts at its next boot"));
    Ok(plan)
}

fn forget(plan: &mut VolumePlan, spec: &Spec, host: &str) {
    let step = CommandStep::new(spec.master(), script(FORGET, &[spec.master(), host]), format!("forget {host}"));
    plan.phase("forget it", vec![step]);
}

fn chunks_of(spec: &Spec, seen: &Observed) -> Result<Chunks, Vec<Refusal>> {
    let text = seen.host(spec.master()).and_then(|f| f.texts.get("chunks"));
    text.and_then(|t| chunks::read(t)).ok_or_else(|| {
        let why =
            format!("the master on {} does not report its chunks: homing volume heal {}", spec.master(), spec.name);
        vec![Refusal::never(why)]
    })
}

/// Returns the addresses under which the master may know the host.
fn addresses(facts: &HostFacts, is_master: bool) -> Vec<String> {
    let mut ips: Vec<String> =
        facts.texts.get("addresses").map_or(Vec::new(), |t| t.split_whitespace().map(String::from).collect());
    // Debian maps a host's own name to 127.0.1.1.
    ips.extend(["127.0.0.1", "127.0.1.1"].iter().filter(|_| is_master).map(|ip| ip.to_string()));
    ips
}

/// Sets the goal of all files below a path, which have `goals` now, and waits for the copies.
pub fn set_copies(
    spec: &Spec,
    seen: &Observed,
    (path, copies): (&str, u32),
    goals: &Goals,
    allowed: &[Danger],
) -> Result<VolumePlan, Vec<Refusal>> {
    let mut plan = VolumePlan::default();
    let mut refusals = Vec::new();
    if copies == 0 || copies > 9 {
        refusals.push(Refusal::never("MooseFS accepts goals from 1 to 9"));
    }
    if copies as usize > spec.servers().len() {
        let why = format!("a goal of {copies} needs {copies} hosts; the volume has {}", spec.servers().len());
        refusals.push(Refusal::danger(Danger::LastCopy, why));
    }
    if let Some(more) = goals.given_up(copies) {
        let kept = if copies == 1 { "1 copy".into() } else { format!("{copies} copies") };
        let why = format!("{kept} of each file below {path} would remain; now there are {more}");
        refusals.push(Refusal::danger(Danger::LastCopy, why));
    }
    lifted(refusals, allowed)?;
    let Some(client) = goals::client(spec, seen) else { return Err(nowhere_mounted()) };
    let argv = words(&["mfssetgoal", "-r", &copies.to_string(), path]);
    plan.phase("set the goal", vec![CommandStep::new(&client, argv, format!("set the goal of {path} to {copies}"))]);
    plan.then = Then::Wait(DataMovement::Heal);
    Ok(plan)
}

/// Explains why the goals of files cannot be queried.
pub fn nowhere_mounted() -> Vec<Refusal> {
    vec![Refusal::never("no host that answers has the volume mounted")]
}

/// Reports how even the disks are: MooseFS moves chunks by itself, and nothing else can be done.
pub fn rebalance(spec: &Spec, seen: &Observed) -> Result<VolumePlan, Vec<Refusal>> {
    let mut plan = VolumePlan::default();
    let (least, most, above) = chunks_of(spec, seen)?.spread().unwrap_or_default();
    plan.notes.push(format!(
        "MooseFS itself moves chunks until its disks are equally full: now they are {least:.0} % \
         to {most:.0} % full, {} MB above the mean",
        above / 1_000_000
    ));
    Ok(plan)
}

/// Starts units that are down, and watches: MooseFS heals by itself.
pub fn heal(spec: &Spec, seen: &Observed) -> Result<VolumePlan, Vec<Refusal>> {
    let mut plan = VolumePlan::default();
    let start = |host: &str, unit: &str| {
        (!seen.runs(host, unit))
            .then(|| CommandStep::new(host, words(&["systemctl", "start", unit]), format!("start {unit}")))
    };
    plan.phase("start the master", start(spec.master(), MASTER).into_iter().collect());
    let awake = spec.servers().into_iter().filter(|h| seen.host(h).is_some());
    let down = awake.filter_map(|h| start(&h, CHUNKSERVER));
    plan.phase_each("start the chunkservers", down.collect());
    plan.notes.push("MooseFS itself makes the copies; homing watches it".into());
    plan.notes.extend(seen.silent().iter().map(|(h, why)| format!("{h} does not answer: {why}")));
    plan.then = Then::Wait(DataMovement::Heal);
    Ok(plan)
}
