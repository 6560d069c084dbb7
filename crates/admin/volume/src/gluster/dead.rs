//! Removes a host that is gone for good: its bricks are made anew on others, from the remaining copies.

use super::create::make_folders;
use super::room::{FreeSpace, brick};
use super::xml::Brick;
use super::{HAS_BRICK, speaker_of, volume};
use crate::observe::{Observed, StrayPool};
use crate::refuse::Refusal;
use crate::spec::Spec;
use crate::step::{CommandStep, DataMovement, Then, VolumePlan, script};

const REPLACE: &str = r#"
    has_brick "$1" "$3" && exit 0
    gluster --mode=script volume replace-brick "$1" "$2" "$3" commit force
"#;
/// The host stays a peer as long as another volume has a brick there.
const FORGET: &str = r#"
    gluster --mode=script peer detach "$1" force >/dev/null 2>&1; true
"#;

/// Replaces the bricks of a host that does not answer, and waits until they are full.
pub(super) fn let_go(spec: &Spec, seen: &Observed, host: &str, sets: &[&[Brick]]) -> Result<VolumePlan, Vec<Refusal>> {
    let never = |why: String| vec![Refusal::never(why)];
    let there = volume(spec, seen).ok_or_else(|| never(format!("no host that answers has a volume {}", spec.name)))?;
    let (speaker, _) = speaker_of(spec, seen)?;
    let awake: Vec<String> = spec.servers().into_iter().filter(|h| seen.host(h).is_some()).collect();
    let (mut room, mut pairs): (_, Vec<(Brick, Brick)>) = (FreeSpace::of(seen), Vec::new());
    for set in sets {
        if set.len() == 1 {
            return Err(never(format!("{} holds the only copy of its files: bring {host} back", set[0].word())));
        }
        let mut hosts: Vec<String> = set.iter().map(|b| b.host.clone()).collect();
        for old in set.iter().filter(|b| b.host == host) {
            let taken: Vec<Brick> = pairs.iter().map(|(_, new)| new.clone()).collect();
            let Some(at) = room.widest(&awake, &hosts) else {
                return Err(never(format!(
                    "no other host can take the copies of {}: first run homing volume add-host {} HOST:/PATH",
                    old.word(),
                    spec.name
                )));
            };
            pairs.push((old.clone(), brick(spec, there, &taken, &at, old.arbiter)));
            hosts.push(at);
        }
    }
    let mut plan = VolumePlan::default();
    let new: Vec<Brick> = pairs.iter().map(|(_, new)| new.clone()).collect();
    make_folders(&mut plan, seen, &new);
    for (old, new) in &pairs {
        let argv = script(&[HAS_BRICK, REPLACE].concat(), &[&spec.name, &old.word(), &new.word()]);
        let step = CommandStep::new(&speaker, argv, format!("replace {} with {}", old.word(), new.word()));
        plan.phase("replace the lost bricks", vec![step]);
    }
    plan.phase("forget the host", vec![CommandStep::new(&speaker, script(FORGET, &[host]), format!("forget {host}"))]);
    plan.notes.push(format!(
        "{host} does not answer: its folders and the records of its glusterd stay there. When it is on again: {}",
        StrayPool::remedy(host)
    ));
    plan.then = Then::Wait(DataMovement::Heal);
    Ok(plan)
}
