//! Deletes a volume and all that belongs to it.

use super::create::DETACH_PEERS;
use super::xml::Brick;
use super::{UNIT, gluster, speaker, volume};
use crate::observe::{Observed, StoreContent};
use crate::refuse::{Danger, Refusal, lifted, of_silent};
use crate::spec::Spec;
use crate::step::{CommandStep, MadeBeside, VolumePlan, script};
use homing_model::NodeSet;
use std::collections::BTreeSet;

/// Removes only folders that have `.glusterfs`, the mark of a brick, or are empty.
const REMOVE: &str = r#"
    for b; do
    [ -d "$b" ] || continue
    if [ -d "$b/.glusterfs" ] || [ -z "$(ls -A -- "$b")" ]; then rm -rf --one-file-system -- "$b" || exit
    else echo "$b is not a brick; it stays" >&2; exit 1; fi
    done
"#;

/// Stops and disables the daemon, if it has neither volumes nor peers. A peer that was detached learns of it a moment
/// later.
const STOP_DAEMON: &str = r#"
    empty() { [ -z "$(ls -A /var/lib/glusterd/vols /var/lib/glusterd/peers 2>/dev/null | grep -v '^/\|^$')" ]; }
    i=0; until empty; do i=$((i+1)); [ $i -lt 25 ] || exit 0; sleep 0.2; done
    systemctl disable --now --quiet glusterd
"#;
const REMOVE_EMPTY: &str = r#"
    for d; do rmdir -- "$d" 2>/dev/null; done; true
"#;

/// Unmounts everywhere, stops, deletes, and removes the bricks' folders; then the things that were made beside it.
pub fn delete(spec: &Spec, seen: &Observed, allowed: &[Danger], made: &MadeBeside) -> Result<VolumePlan, Vec<Refusal>> {
    let there = volume(spec, seen);
    let mut bricks = there.map(|v| v.bricks.clone()).unwrap_or_default();
    for (host, store) in seen
        .hosts
        .iter()
        .filter_map(|(h, f)| Some((h, f.as_ref().ok()?)))
        .flat_map(|(h, f)| f.stores.iter().map(move |s| (h, s)))
    {
        let brick = Brick { host: host.clone(), path: store.path.clone(), arbiter: false };
        if store.content != StoreContent::Absent && !bricks.iter().any(|b| b.word() == brick.word()) {
            bricks.push(brick);
        }
    }
    let mut refusals = of_silent(seen, |_| true);
    refusals.extend(with_files(seen, &bricks));
    lifted(refusals, allowed)?;
    let mut plan = crate::mount::unmount_for_good(spec, seen);
    if let (Some(there), Some((host, _))) = (there, speaker(spec, seen)) {
        if there.started {
            let stop = gluster(&["volume", "stop", &spec.name, "force"]);
            plan.phase("stop the volume", vec![CommandStep::new(&host, stop, "stop its daemons")]);
        }
        let delete = gluster(&["volume", "delete", &spec.name]);
        plan.phase("delete the volume", vec![CommandStep::new(&host, delete, "forget its definition")]);
    }
    remove_bricks(&mut plan, &bricks);
    remove_beside(&mut plan, spec, seen, made);
    Ok(plan)
}

/// Takes the hosts out of the pool, stops their daemons and removes empty folders, as far as homing made these. GlusterFS
/// keeps a peer that has a brick of another volume.
fn remove_beside(plan: &mut VolumePlan, spec: &Spec, seen: &Observed, made: &MadeBeside) {
    let answered = |host: &&String| seen.host(host).is_some();
    if let Some((host, _)) = speaker(spec, seen) {
        let peers: Vec<&str> = made.peers.iter().map(String::as_str).filter(|peer| *peer != host).collect();
        let why = format!("take {} out of the pool", peers.join(", "));
        let leave = CommandStep::new(&host, script(DETACH_PEERS, &peers), why);
        plan.phase("leave the pool", (!peers.is_empty()).then_some(leave).into_iter().collect());
    }
    let stop = |host: &String| CommandStep::new(host, script(STOP_DAEMON, &[]), format!("stop {UNIT} if it is unused"));
    plan.phase_each("stop the daemons", made.daemons.iter().filter(answered).map(stop).collect());
    let hosts: BTreeSet<&String> = made.folders.iter().map(|(host, _)| host).filter(answered).collect();
    let remove = |host: &&String| {
        let folders = made.folders_on(host);
        CommandStep::new(host, script(REMOVE_EMPTY, &folders), format!("remove {} if empty", folders.join(" ")))
    };
    plan.phase_each("remove empty folders", hosts.iter().map(remove).collect());
    let stays = |host: &String| seen.runs(host, UNIT) && !made.daemons.contains(host);
    let stays: NodeSet = spec.servers().into_iter().filter(stays).collect();
    if !stays.is_empty() {
        plan.notes.push(format!("{UNIT} goes on on {stays}: homing did not start it for this volume"));
    }
}

/// Removes folders that were bricks.
pub(super) fn remove_bricks(plan: &mut VolumePlan, bricks: &[Brick]) {
    let mut hosts: Vec<&str> = bricks.iter().map(|b| b.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let remove = |host: &&str| {
        let paths: Vec<&str> = bricks.iter().filter(|b| b.host == **host).map(|b| b.path.as_str()).collect();
        CommandStep::new(host, script(REMOVE, &paths), format!("remove {}", paths.join(" ")))
    };
    plan.phase("remove the bricks' folders", hosts.iter().map(remove).collect());
}

fn with_files(seen: &Observed, bricks: &[Brick]) -> Vec<Refusal> {
    let holds = |b: &&Brick| seen.store(&b.host, &b.path).is_some_and(|s| s.content == StoreContent::Files);
    let holding: Vec<String> = bricks.iter().filter(holds).map(Brick::word).collect();
    if holding.is_empty() {
        return Vec::new();
    }
    let why = format!("the files on {} would be deleted", holding.join(" "));
    vec![Refusal::danger(Danger::DeleteFiles, why)]
}
