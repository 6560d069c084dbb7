//! Sharding: cuts files into pieces that lie on several sets of bricks.

use super::{GlusterPlanResult, gluster, no_volume, speaker_of, volume};
use crate::observe::Observed;
use crate::refuse::{Danger, Refusal, lifted};
use crate::spec::Spec;
use crate::step::{CommandStep, VolumePlan};

/// Warns of writes that may never end: without copies, a client before GlusterFS 11 can look forever for a piece that
/// is just being made. See gluster/glusterfs issues 3688 and 3803; with 10.3 it was seen in one of five writes of 128
/// MB. With copies, the replication layer answers in its place.
pub(super) fn refusals(spec: &Spec, seen: &Observed, copies: usize) -> Vec<Refusal> {
    let before_11 = |version: &str| version.split('.').next().and_then(|n| n.parse().ok()).is_some_and(|n: u32| n < 11);
    let clients = spec.clients.iter().filter_map(|h| Some((h, seen.host(h)?.gluster_version.as_deref()?)));
    let old: Vec<String> = clients.filter(|(_, v)| before_11(v)).map(|(h, v)| format!("{h} ({v})")).collect();
    if copies > 1 || old.is_empty() {
        return Vec::new();
    }
    let why = format!(
        "the volume has one copy: GlusterFS before 11, as on {}, can hang for ever when it writes files in pieces \
         (its issue 3688); --copies 2 avoids it",
        old.join(", ")
    );
    vec![Refusal::danger(Danger::HangingWrites, why)]
}

/// Cuts new files into pieces of `size` bytes; files that exist stay whole.
pub fn set_stripe(spec: &Spec, seen: &Observed, size: u64, allowed: &[Danger]) -> GlusterPlanResult {
    let there = volume(spec, seen).ok_or_else(|| no_volume(spec, seen))?;
    lifted(refusals(spec, seen, there.copies()), allowed)?;
    let size = size.to_string();
    let argv = gluster(&["volume", "set", &spec.name, "features.shard", "on", "features.shard-block-size", &size]);
    let mut plan = VolumePlan::default();
    let step = CommandStep::new(&speaker_of(spec, seen)?.0, argv, format!("cut new files into pieces of {size} bytes"));
    plan.phase("set the size of pieces", vec![step]);
    plan.notes.push(
        "existing files stay whole; sharding stays on for ever, because turning it off would truncate sharded files"
            .into(),
    );
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostFacts;
    use crate::spec::tests::spec;

    #[test]
    fn pieces_in_one_copy_are_refused_where_writes_hang() {
        let s = spec(&["n1", "n2"], 1);
        let seen = |versions: [&str; 2]| {
            let facts = |v: &str| Ok(HostFacts { gluster_version: Some(v.into()), ..HostFacts::default() });
            Observed { hosts: [("n1".into(), facts(versions[0])), ("n2".into(), facts(versions[1]))].into() }
        };
        let refused = refusals(&s, &seen(["11.1", "10.3"]), 1);
        assert_eq!((refused.len(), refused[0].danger), (1, Some(Danger::HangingWrites)));
        assert!(refused[0].why.contains("n2 (10.3)") && !refused[0].why.contains("n1 ("), "{refused:?}");
        assert!(refusals(&s, &seen(["10.3", "10.3"]), 2).is_empty());
        assert!(refusals(&s, &seen(["11.1", "12.0"]), 1).is_empty());
        // 3.13 is older than 11, and an unknown version is no reason.
        assert_eq!(refusals(&s, &seen(["3.13.2", ""]), 1).len(), 1);
    }
}
