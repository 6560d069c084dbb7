//! Plans growing, shrinking, copying and healing a volume that is in use.

use super::create::{brick_refusals, join, make_folders, start_daemons};
use super::remove::remove_bricks;
use super::room::{FreeSpace, brick};
use super::xml::Brick;
use super::{GlusterPlanResult, HAS_BRICK, gluster, missing, mount_line, no_volume, speaker_of, volume};
use crate::mount;
use crate::observe::{Observed, StoreContent};
use crate::refuse::{Danger, Refusal, lifted};
use crate::spec::Spec;
use crate::step::{CommandStep, DataMovement, Then, VolumePlan, script};

/// Bricks that exist already are no error: the command may be a repetition.
const ADD_BRICKS: &str = r#"
    v=$1 r=$2; shift 2
    has_brick "$v" "$1" && exit 0
    if [ "$r" -gt 0 ]; then gluster --mode=script volume add-brick "$v" replica "$r" "$@" force
    else gluster --mode=script volume add-brick "$v" "$@" force; fi
"#;
const START_REMOVAL: &str = r#"
    v=$1; shift
    gluster --mode=script volume remove-brick "$v" "$@" status >/dev/null 2>&1 && exit 0
    gluster --mode=script volume remove-brick "$v" "$@" start
"#;
/// With a dead peer the daemons carry out the command and report a failure.
const IN_SPITE: &str = r#"
    deaf=$1; shift
    gluster --mode=script volume "$@" || [ -n "$deaf" ]
"#;
/// The self-heal daemon connects to a brick that was just started only after some seconds, and fails until then.
const HEAL: &str = r#"
    deaf=$1; shift; i=0
    until said=$(gluster --mode=script volume heal "$@" 2>&1); do
    [ -z "$deaf" ] || exit 0
    i=$((i+1)); [ $i -lt 30 ] || { echo "$said" >&2; exit 1; }; sleep 1
    done
"#;
/// Never removes the only copy that is up to date.
const FEWER: &str = r#"
    v=$1 r=$2; shift 2
    pending=$(gluster volume heal "$v" info summary --xml | grep -o '<totalNumberOfEntries>[^<]*' | grep -cv '>0$')
    [ "$pending" = 0 ] || { echo "some copies are out of date; run: homing volume heal $v" >&2; exit 1; }
    gluster --mode=script volume remove-brick "$v" replica "$r" "$@" force
"#;

/// Adds the places of `spec` that have no brick yet. Hosts that are too few for a set of their own share one with the
/// present hosts that have most room.
pub fn add_host(spec: &Spec, seen: &Observed, allowed: &[Danger]) -> GlusterPlanResult {
    let there = volume(spec, seen).ok_or_else(|| no_volume(spec, seen))?;
    let has = |h: &String| there.bricks.iter().any(|b| b.host == *h);
    let mut new: Vec<String> = spec.servers().into_iter().filter(|h| !has(h)).collect();
    let old: Vec<String> = spec.servers().into_iter().filter(|h| has(h)).collect();
    let mut plan = VolumePlan::default();
    if new.is_empty() {
        lifted(mount::refusals(spec, seen), allowed)?;
        mount::mount(&mut plan, spec, seen, |h| mount_line(spec, h));
        if running(spec, seen, "Rebalance") {
            plan.then = Then::Wait(DataMovement::Rebalance);
        }
        return Ok(plan);
    }
    let (mut bricks, mut room, hosts) = (Vec::new(), FreeSpace::of(seen), new.clone());
    while !new.is_empty() {
        let mut set: Vec<String> = new.drain(..new.len().min(there.set_size)).collect();
        while set.len() < there.set_size {
            let all: Vec<String> = old.iter().chain(&hosts).cloned().collect();
            let Some(host) = room.widest(&all, &set) else {
                return Err(vec![Refusal::never(format!("{} hosts are needed for a set of copies", there.set_size))]);
            };
            set.push(host);
        }
        for (i, host) in set.iter().enumerate() {
            let next = brick(spec, there, &bricks, host, i >= there.copies());
            bricks.push(next);
        }
    }
    let mut refusals = missing(spec, seen);
    refusals.extend(brick_refusals(spec, seen, &bricks));
    refusals.extend(mount::refusals(spec, seen));
    lifted(refusals, allowed)?;
    start_daemons(&mut plan, seen, &hosts);
    join(&mut plan, spec, seen, &hosts);
    make_folders(&mut plan, seen, &bricks);
    let (host, _) = speaker_of(spec, seen)?;
    add_bricks(&mut plan, spec, &host, 0, &bricks);
    mount::mount(&mut plan, spec, seen, |h| mount_line(spec, h));
    start_rebalance(&mut plan, spec, &host);
    Ok(plan)
}

fn running(spec: &Spec, seen: &Observed, what: &str) -> bool {
    task(spec, seen, what).flatten().is_some_and(|t| t.status == "in progress")
}

/// Returns the volume's task of this kind, from any daemon that lists tasks; `None` if none does.
fn task<'a>(spec: &'a Spec, seen: &'a Observed, what: &str) -> Option<Option<&'a super::xml::Task>> {
    let views = seen.hosts.values().flatten().filter_map(|f| f.gluster.as_ref());
    let told: Vec<_> = views.filter_map(|c| c.tasks.as_ref()).collect();
    let found = told.iter().flat_map(|tasks| tasks.iter()).find(|t| t.volume == spec.name && t.what == what);
    (!told.is_empty()).then_some(found)
}

fn add_bricks(plan: &mut VolumePlan, spec: &Spec, host: &str, copies: usize, bricks: &[Brick]) {
    let words: Vec<String> = bricks.iter().map(Brick::word).collect();
    let mut args = vec![spec.name.clone(), copies.to_string()];
    args.extend(words.iter().cloned());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let why = format!("add {}", words.join(" "));
    plan.phase("add the bricks", vec![CommandStep::new(host, script(&[HAS_BRICK, ADD_BRICKS].concat(), &args), why)]);
}

fn start_rebalance(plan: &mut VolumePlan, spec: &Spec, host: &str) {
    let stop = script(r#"gluster --mode=script volume rebalance "$1" stop; true"#, &[&spec.name]);
    let step = CommandStep::new(
        host,
        gluster(&["volume", "rebalance", &spec.name, "start"]),
        "move files to bricks with free space",
    );
    plan.phase("rebalance", vec![step.undo(stop)]);
    plan.then = Then::Wait(DataMovement::Rebalance);
}

/// Redistributes files over all bricks.
pub fn rebalance(spec: &Spec, seen: &Observed) -> GlusterPlanResult {
    let there = volume(spec, seen).ok_or_else(|| no_volume(spec, seen))?;
    let mut plan = VolumePlan::default();
    if there.sets().count() < 2 {
        plan.notes.push("all files are in one set of bricks; there is nothing to move".into());
    } else if running(spec, seen, "Rebalance") {
        plan.then = Then::Wait(DataMovement::Rebalance);
    } else {
        start_rebalance(&mut plan, spec, &speaker_of(spec, seen)?.0);
    }
    Ok(plan)
}

/// Moves all files off a host: each of its sets is made anew without it, then emptied into the others. No file has
/// fewer copies meanwhile.
pub fn drain_host(spec: &Spec, seen: &Observed, host: &str, allowed: &[Danger]) -> GlusterPlanResult {
    let there = volume(spec, seen).ok_or_else(|| no_volume(spec, seen))?;
    let sets: Vec<&[Brick]> = there.sets().filter(|set| set.iter().any(|b| b.host == host)).collect();
    let leaving: Vec<Brick> = sets.concat();
    let (speaker, _) = speaker_of(spec, seen)?;
    let mut plan = VolumePlan::default();
    if leaving.is_empty() {
        let mut rest = spec.clone();
        rest.places.retain(|place| place.host != host);
        rest.clients.retain(|client| client != host);
        mount::rewrite(&mut plan, &rest, seen, |client| mount_line(&rest, client));
        return Ok(plan);
    }
    if seen.host(host).is_none() {
        return super::dead::let_go(spec, seen, host, &sets);
    }
    // A second start would add new bricks on the other hosts again.
    let Some(going) = task(spec, seen, "Remove brick") else {
        let why = "all GlusterFS daemons are busy, so homing cannot see whether files are being moved: repeat the command in a moment";
        return Err(vec![Refusal::never(why)]);
    };
    match going.map(|t| t.status.as_str()) {
        Some("in progress") => plan.then = Then::Wait(DataMovement::Drain(leaving.iter().map(Brick::word).collect())),
        Some("completed") => commit(&mut plan, spec, seen, &speaker, &leaving)?,
        _ => leave(&mut plan, spec, seen, host, &sets, allowed)?,
    }
    Ok(plan)
}

fn leave(
    plan: &mut VolumePlan,
    spec: &Spec,
    seen: &Observed,
    host: &str,
    sets: &[&[Brick]],
    allowed: &[Danger],
) -> Result<(), Vec<Refusal>> {
    let there = volume(spec, seen).ok_or_else(|| no_volume(spec, seen))?;
    let mut others: Vec<String> = there.bricks.iter().map(|b| b.host.clone()).filter(|h| h != host).collect();
    others.sort();
    others.dedup();
    let (mut room, mut bricks) = (FreeSpace::of(seen), Vec::new());
    for set in sets {
        let mut hosts: Vec<String> = set.iter().map(|b| b.host.clone()).collect();
        let stays = others.iter().filter(|h| !hosts.contains(h)).count();
        if stays == 0 && there.set_size > 1 {
            return fewer_copies(plan, spec, seen, host, allowed);
        }
        if others.is_empty() {
            return Err(vec![Refusal::never(format!("{host} holds the only copy, and no other host can take it"))]);
        }
        for at in 0..hosts.len() {
            if hosts[at] == host {
                hosts[at] = room.widest(&others, &hosts).unwrap_or_default();
            }
            let next = brick(spec, there, &bricks, &hosts[at], set[at].arbiter);
            bricks.push(next);
        }
    }
    lifted(missing(spec, seen), allowed)?;
    let (speaker, _) = speaker_of(spec, seen)?;
    make_folders(plan, seen, &bricks);
    add_bricks(plan, spec, &speaker, 0, &bricks);
    let words: Vec<String> = sets.concat().iter().map(Brick::word).collect();
    let mut args = vec![spec.name.as_str()];
    args.extend(words.iter().map(String::as_str));
    let stop = r#"v=$1; shift; gluster --mode=script volume remove-brick "$v" "$@" stop; true"#;
    let step = CommandStep::new(&speaker, script(START_REMOVAL, &args), format!("empty {}", words.join(" ")));
    plan.phase("move files away", vec![step.undo(script(stop, &args))]);
    plan.then = Then::Wait(DataMovement::Drain(words.clone()));
    Ok(())
}

/// No host is left to take the copies: only if the user accepts it, and never the last one.
fn fewer_copies(
    plan: &mut VolumePlan,
    spec: &Spec,
    seen: &Observed,
    host: &str,
    allowed: &[Danger],
) -> Result<(), Vec<Refusal>> {
    let there = volume(spec, seen).ok_or_else(|| no_volume(spec, seen))?;
    let left = there.copies().saturating_sub(1);
    let why = format!("no other host can take the copies of {host}: {left} of {} copies would remain", there.copies());
    if left == 0 || there.arbiters > 0 {
        return Err(vec![Refusal::never(why)]);
    }
    lifted(vec![Refusal::danger(Danger::LastCopy, why)], allowed)?;
    let leaving: Vec<Brick> =
        there.sets().filter_map(|set| set.iter().find(|b| b.host == host).or(set.last()).cloned()).collect();
    drop_copies(plan, spec, &speaker_of(spec, seen)?.0, left, &leaving);
    Ok(())
}

fn drop_copies(plan: &mut VolumePlan, spec: &Spec, speaker: &str, left: usize, leaving: &[Brick]) {
    let words: Vec<String> = leaving.iter().map(Brick::word).collect();
    let left = left.to_string();
    let mut args = vec![spec.name.as_str(), &left];
    args.extend(words.iter().map(String::as_str));
    let step = CommandStep::new(
        speaker,
        script(FEWER, &args),
        format!("keep {left} of each file's copies; give up {}", words.join(" ")),
    );
    plan.phase("keep fewer copies", vec![step]);
    remove_bricks(plan, leaving);
    plan.then = Then::Again;
}

fn commit(
    plan: &mut VolumePlan,
    spec: &Spec,
    seen: &Observed,
    speaker: &str,
    leaving: &[Brick],
) -> Result<(), Vec<Refusal>> {
    let left = |b: &&Brick| seen.store(&b.host, &b.path).is_some_and(|s| s.content == StoreContent::Files);
    let left: Vec<String> = leaving.iter().filter(left).map(Brick::word).collect();
    if !left.is_empty() {
        let v = &spec.name;
        return Err(vec![Refusal::never(format!(
            "files are left on {} (do the others have room? see gluster volume remove-brick {v} {} status, \
             /var/log/glusterfs/{v}-rebalance.log); they stay in the volume; homing volume undo {v} ends the move",
            left.join(" "),
            leaving.iter().map(Brick::word).collect::<Vec<_>>().join(" "),
        ))]);
    }
    let mut argv = gluster(&["volume", "remove-brick", &spec.name]);
    argv.extend(leaving.iter().map(Brick::word));
    argv.push("commit".into());
    plan.phase(
        "remove the empty bricks",
        vec![CommandStep::new(speaker, argv, "remove the empty bricks from the volume")],
    );
    remove_bricks(plan, leaving);
    plan.then = Then::Again;
    Ok(())
}

/// Changes the number of copies of the whole volume, one at a time.
pub fn set_copies(spec: &Spec, seen: &Observed, copies: usize, allowed: &[Danger]) -> GlusterPlanResult {
    let there = volume(spec, seen).ok_or_else(|| no_volume(spec, seen))?;
    let mut plan = VolumePlan::default();
    let now = there.copies();
    if now == copies {
        return Ok(plan);
    }
    if copies == 0 {
        return Err(vec![Refusal::never(
            "zero copies would delete every file; homing volume delete removes the volume",
        )]);
    }
    if there.arbiters > 0 {
        return Err(vec![Refusal::never("homing cannot change the number of copies of a volume with an arbiter")]);
    }
    let (speaker, _) = speaker_of(spec, seen)?;
    if copies < now {
        let why = format!("{copies} of {now} copies of every file in {} would remain", spec.mount);
        let mut refusals = vec![Refusal::danger(Danger::LastCopy, why)];
        if there.options.get("features.shard").is_some_and(|v| v == "on") {
            refusals.extend(super::stripe::refusals(spec, seen, copies));
        }
        lifted(refusals, allowed)?;
        let leaving: Vec<Brick> = there.sets().filter_map(|set| set.last().cloned()).collect();
        drop_copies(&mut plan, spec, &speaker, now - 1, &leaving);
        return Ok(plan);
    }
    let (mut room, mut bricks, servers) = (FreeSpace::of(seen), Vec::new(), spec.servers());
    for set in there.sets() {
        let without: Vec<String> = set.iter().map(|b| b.host.clone()).collect();
        let Some(host) = room.widest(&servers, &without) else {
            let why = format!("{copies} copies need {copies} hosts: add one with homing volume add-host {}", spec.name);
            return Err(vec![Refusal::never(why)]);
        };
        let next = brick(spec, there, &bricks, &host, false);
        bricks.push(next);
    }
    lifted(missing(spec, seen), allowed)?;
    make_folders(&mut plan, seen, &bricks);
    add_bricks(&mut plan, spec, &speaker, now + 1, &bricks);
    plan.then = Then::Wait(DataMovement::Heal);
    Ok(plan)
}

/// Brings all copies up to date.
pub fn heal(spec: &Spec, seen: &Observed, full: bool) -> GlusterPlanResult {
    let there = volume(spec, seen).ok_or_else(|| no_volume(spec, seen))?;
    let mut plan = VolumePlan::default();
    if there.copies() < 2 {
        plan.notes.push("one copy needs no healing".into());
        return Ok(plan);
    }
    // A brick that was killed is started again first: files cannot be healed onto a dead brick.
    let (host, _) = speaker_of(spec, seen)?;
    let silent = seen.silent();
    plan.notes
        .extend(silent.iter().map(|(h, why)| format!("{h} does not answer, so its copies are not healed: {why}")));
    let deaf = if silent.is_empty() { "" } else { "yes" };
    let start = script(IN_SPITE, &[deaf, "start", &spec.name, "force"]);
    plan.phase("start bricks that are down", vec![CommandStep::new(&host, start, "start bricks that are down")]);
    let mut words = vec![deaf, spec.name.as_str()];
    words.extend(full.then_some("full"));
    let heal = script(HEAL, &words);
    plan.phase("heal", vec![CommandStep::new(&host, heal, "copy missing changes")]);
    plan.then = Then::Wait(DataMovement::Heal);
    Ok(plan)
}
