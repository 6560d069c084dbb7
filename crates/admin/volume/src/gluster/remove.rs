//! Deletes a volume and all that belongs to it.

use super::xml::Brick;
use super::{gluster, speaker, volume};
use crate::observe::{Observed, StoreContent};
use crate::refuse::{Danger, Refusal, lifted, of_silent};
use crate::spec::Spec;
use crate::step::{CommandStep, VolumePlan, script};

/// Removes only folders that have `.glusterfs`, the mark of a brick, or are empty.
const REMOVE: &str = r#"
    for b; do
    [ -d "$b" ] || continue
    if [ -d "$b/.glusterfs" ] || [ -z "$(ls -A -- "$b")" ]; then rm -rf --one-file-system -- "$b" || exit
    else echo "$b is not a brick; it stays" >&2; exit 1; fi
    done
"#;

/// Unmounts everywhere, stops, deletes, and removes the bricks' folders.
pub fn delete(spec: &Spec, seen: &Observed, allowed: &[Danger]) -> Result<VolumePlan, Vec<Refusal>> {
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
    Ok(plan)
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
