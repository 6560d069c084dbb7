//! Dispersed subvolumes: every brick holds 1/(bricks - redundancy) of a file.
//!
//! GlusterFS does not tell which subvolume holds it (`glusterfs.pathinfo`
//! answers ENOMEM since version 9), so it must follow from the definition.

use super::once_each;
use crate::volfile::{Definition, Group, Sharing};
use homing_model::{Extent, Replica};

/// The place of a file when all subvolumes lie on the same hosts.
pub(super) fn place(definition: &Definition, length: u64) -> Result<Extent, String> {
    let hosts = |group: &Group| {
        let mut hosts: Vec<&str> = group.bricks.iter().map(|b| b.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.into_iter().map(String::from).collect::<Vec<_>>()
    };
    let groups = &definition.groups;
    let first = groups.first().filter(|g| matches!(g.sharing, Sharing::Disperse { .. }));
    let first = first.ok_or("GlusterFS did not tell its place: out of memory")?;
    if groups.iter().any(|g| g.sharing != first.sharing || hosts(g) != hosts(first)) {
        return Err("GlusterFS does not tell which of its dispersed subvolumes holds a file".into());
    }
    Ok(extent(first, length))
}

pub(super) fn extent(group: &Group, length: u64) -> Extent {
    let redundancy = if let Sharing::Disperse { redundancy } = group.sharing { redundancy } else { 0 };
    let share = 1.0 / group.bricks.len().saturating_sub(redundancy).max(1) as f64;
    let replicas = group.bricks.iter().map(|b| Replica { host: b.host.clone(), share }).collect();
    Extent { offset: 0, length, replicas: once_each(replicas) }
}
