//! Orders the undo of a set-up with volumes on it.

use homing_steps::{ChangeStep, HostChange, Undone};
use std::collections::BTreeMap;

const FSTAB: &str = "/etc/fstab";

/// Returns the number of steps up to the last that removes a mount, or its line. Those of disks come later: volumes
/// lie on them.
pub fn mounts_end(steps: &[ChangeStep]) -> usize {
    let is_mount = |step: &ChangeStep| match &step.change {
        HostChange::Mount { disk, .. } => !disk,
        HostChange::File { path, block, .. } => path == FSTAB && block.as_deref() != Some("disks"),
        _ => false,
    };
    steps.iter().rposition(is_mount).map_or(0, |last| last + 1)
}

/// Returns a part of each host's steps, for hosts where it is not empty.
pub fn parts(
    undone: &BTreeMap<String, Undone>,
    part: impl Fn(&[ChangeStep]) -> &[ChangeStep],
) -> BTreeMap<String, Vec<ChangeStep>> {
    let all = undone.iter().map(|(host, undone)| (host.clone(), part(&undone.steps).to_vec()));
    all.filter(|(_, steps)| !steps.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_go_ahead_of_volumes_and_disks_behind_them() {
        let step = |change| ChangeStep { change, undoes: None };
        let fstab = |block: Option<&str>| {
            let block = block.map(String::from);
            step(HostChange::File { path: FSTAB.into(), from: None, to: None, block })
        };
        let group = || step(HostChange::Group { name: "g".into(), from: None, to: None });
        assert_eq!(mounts_end(&[group(), fstab(None), group(), fstab(Some("disks"))]), 2);
        assert_eq!(mounts_end(&[group(), fstab(Some("disks"))]), 0);
        let undone = |steps| Undone { steps, ..Undone::default() };
        let all = [("a".to_string(), undone(vec![fstab(None), group()])), ("b".into(), undone(vec![group()]))].into();
        let ahead = parts(&all, |steps| &steps[..mounts_end(steps)]);
        assert_eq!(ahead.into_keys().collect::<Vec<_>>(), ["a"]);
    }
}
