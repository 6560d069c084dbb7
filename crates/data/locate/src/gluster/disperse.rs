//! Dispersed subvolumes: every brick holds 1/(bricks - redundancy) of a file.
//!
//! A mount does not report which subvolume holds a file (`glusterfs.pathinfo` returns ENOMEM since version 9). Either
//! all subvolumes have the same hosts, or the bricks are queried.

use crate::volfile::{BrickSet, Definition, Sharing};

/// Returns the first subvolume, if all are on the same hosts.
pub(super) fn any(definition: &Definition) -> Option<&BrickSet> {
    let hosts = |group: &BrickSet| {
        let mut hosts: Vec<&str> = group.bricks.iter().map(|b| b.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.into_iter().map(String::from).collect::<Vec<_>>()
    };
    let groups = &definition.groups;
    let first = groups.first().filter(|g| matches!(g.sharing, Sharing::Disperse { .. }))?;
    groups.iter().all(|g| g.sharing == first.sharing && hosts(g) == hosts(first)).then_some(first)
}
