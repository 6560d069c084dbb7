//! Opens channels to all hosts of a run: to some from this machine, to the others along a tree.

use super::hosts::{BranchMember, Note};
use super::split::branches;
use crate::{Options, Via, attend};
use std::io;
use std::sync::Arc;

/// Like [`attend`], for all hosts of a run: along a tree if more than `width` of them are reached by ssh. Only this
/// machine waits for hosts that are switched off. `note` receives a line for the user about hosts that the tree did
/// not reach.
pub fn attend_all(
    hosts: impl IntoIterator<Item = BranchMember>,
    width: usize,
    options: &Options,
    note: impl Fn(String) + Send + Sync + 'static,
) -> io::Result<()> {
    let along =
        |host: &BranchMember| matches!(host.plan.via, Via::Ssh { .. }) && !options.asleep.contains_key(&host.plan.name);
    let (far, mut here): (Vec<BranchMember>, Vec<BranchMember>) = hosts.into_iter().partition(along);
    let lengths: Vec<usize> = branches(far.len(), width).into_iter().map(|branch| branch.len()).collect();
    let mut far = far.into_iter();
    let note: Note = Arc::new(note);
    for length in lengths {
        let branch: Vec<BranchMember> = far.by_ref().take(length).collect();
        match length {
            // A branch of one host needs no leader.
            1 => here.extend(branch),
            _ => super::lead::lead(branch, options.clone(), note.clone())?,
        }
    }
    here.extend(far);
    here.into_iter()
        .try_for_each(|BranchMember { plan, on_event: tell }| attend(plan, options.clone(), move |heard| tell(heard)))
}
