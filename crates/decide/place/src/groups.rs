//! All groups of waiting tasks, and for each host the groups that it may take from without comparing costs. A
//! decision looks there and does not walk all groups. With a million files in three copies each, nearly every file is
//! a group of its own.

use crate::HostIx;
use crate::class::{Class, GroupKey};
use hashbrown::HashMap;
use homing_model::TaskId;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The index of a group, valid as long as the group has tasks.
pub type GroupIx = u32;

/// The oldest task of a group, and the group.
pub type Oldest = (TaskId, GroupIx);

/// The entry of a group on a shelf: its oldest task, the group, and whether its tasks need only a free slot.
pub type ShelfEntry = (TaskId, GroupIx, bool);

/// One group.
#[derive(Debug)]
pub struct TaskGroup {
    pub key: Arc<GroupKey>,
    pub class: Class,
}

/// Holders of a group that fit into its brief; if there are more, all are only in its key.
const FEW: usize = 4;

/// The facts of a group that every decision reads, in one place. With a million groups none is in a cache of the
/// processor, and each further place costs a wait. It is half of a cache line, and begins at a half.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct Brief {
    holders: [u32; FEW],
    /// Number of picks of the hosts that may take from it, when it last had its turn.
    since: u64,
    /// Number of times that it was passed over for other reasons.
    passed: u32,
    /// Number of its holders; one more than `holders` has places if not all fit.
    count: u8,
    has_writer: bool,
    /// See [`GroupKey::is_wide`].
    is_wide: bool,
}

impl Brief {
    fn of(key: &GroupKey) -> Brief {
        let number = |n: usize| u32::try_from(n).expect("fewer than 2^32 hosts");
        let count = key.holders.len().min(FEW + 1) as u8;
        let mut brief = Brief { count, has_writer: key.writer.is_some(), is_wide: key.is_wide(), ..Brief::default() };
        brief.holders.iter_mut().zip(&key.holders).for_each(|(place, host)| *place = number(*host));
        brief
    }
}

/// The groups of one place, ordered by their oldest task.
#[derive(Debug, Default)]
pub struct Shelf {
    /// Groups that burden the storage that they read.
    pub reading: BTreeSet<ShelfEntry>,
    pub others: BTreeSet<ShelfEntry>,
    /// Groups of both sets that may not fit where a slot is free.
    pub wide: BTreeSet<GroupIx>,
    /// Groups with a writer that has the first claim.
    pub claimed: BTreeSet<GroupIx>,
}

impl Shelf {
    pub fn is_empty(&self) -> bool {
        self.reading.is_empty() && self.others.is_empty()
    }

    /// Returns all of them.
    pub fn groups(&self) -> impl Iterator<Item = GroupIx> + '_ {
        self.reading.iter().chain(&self.others).map(|(_, group, _)| *group)
    }

    fn by_age(&mut self, reads: bool) -> &mut BTreeSet<ShelfEntry> {
        if reads { &mut self.reading } else { &mut self.others }
    }
}

/// All groups.
#[derive(Debug, Default)]
pub struct TaskGroups {
    by_key: HashMap<Arc<GroupKey>, GroupIx>,
    all: Vec<Option<TaskGroup>>,
    /// The briefs of all groups.
    briefs: Vec<Brief>,
    vacant: Vec<GroupIx>,
    /// The shelf of each host, with the groups of which it holds most.
    at: Vec<Shelf>,
    anywhere: Shelf,
    /// Number of tasks that each host took.
    picks: Vec<u64>,
    all_picks: u64,
}

impl TaskGroups {
    /// Adds a host.
    pub fn host_up(&mut self) {
        self.at.push(Shelf::default());
        self.picks.push(0);
    }

    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    pub fn get(&self, group: GroupIx) -> &TaskGroup {
        self.all[group as usize].as_ref().expect("a group that is listed has tasks")
    }

    pub fn get_mut(&mut self, group: GroupIx) -> &mut TaskGroup {
        self.all[group as usize].as_mut().expect("a group that is listed has tasks")
    }

    /// Returns the groups that some hosts hold, sorted by their number of holders.
    pub fn with_least_choice_first(&self) -> Vec<GroupIx> {
        let holders = |ix: &GroupIx| self.holders(*ix).count();
        let mut known: Vec<GroupIx> = (0..self.briefs.len() as GroupIx).filter(|ix| holders(ix) > 0).collect();
        known.sort_by_key(holders);
        known
    }

    /// Returns the slots that its tasks take together.
    pub fn slots(&self, ix: GroupIx) -> u64 {
        let tasks = self.get(ix).class.len() as u64;
        if self.briefs[ix as usize].is_wide { tasks * u64::from(self.get(ix).key.cpus) } else { tasks }
    }

    /// Returns the groups in an arbitrary but fixed order.
    pub fn iter(&self) -> impl Iterator<Item = &TaskGroup> {
        self.all.iter().flatten()
    }

    /// Returns the groups of which `host` holds most.
    pub fn at(&self, host: HostIx) -> &Shelf {
        &self.at[host]
    }

    /// Returns the groups that no host holds.
    pub fn anywhere(&self) -> &Shelf {
        &self.anywhere
    }

    /// Adds a waiting task to the group of this key.
    pub fn insert(&mut self, key: GroupKey, task: TaskId) -> GroupIx {
        let known = self.by_key.get(&key).copied();
        let group = known.unwrap_or_else(|| self.begin(Arc::new(key)));
        let before = self.get(group).class.front();
        self.get_mut(group).class.insert(task);
        self.aged(group, before);
        group
    }

    /// Removes a task that waits no longer; returns `false` if it did not wait.
    pub fn remove(&mut self, key: &GroupKey, task: TaskId) -> bool {
        self.by_key.get(key).copied().is_some_and(|group| self.remove_from(group, task))
    }

    /// Removes a task from a group, as [`TaskGroups::remove`] does.
    pub fn remove_from(&mut self, group: GroupIx, task: TaskId) -> bool {
        let before = self.get(group).class.front();
        if !self.get_mut(group).class.remove(task) {
            return false;
        }
        self.aged(group, before);
        if self.get(group).class.len() == 0 {
            self.end(group);
        }
        true
    }

    fn begin(&mut self, key: Arc<GroupKey>) -> GroupIx {
        let ix = self.vacant.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.briefs.push(Brief::default());
            GroupIx::try_from(self.all.len() - 1).expect("fewer than 2^32 groups")
        });
        self.briefs[ix as usize] = Brief::of(&key);
        self.all[ix as usize] = Some(TaskGroup { class: Class::default(), key: key.clone() });
        self.turn(ix);
        self.by_key.insert(key.clone(), ix);
        self.each_shelf(&key, |shelf| {
            key.is_wide().then(|| shelf.wide.insert(ix));
            key.writer.is_some().then(|| shelf.claimed.insert(ix));
        });
        ix
    }

    fn end(&mut self, ix: GroupIx) {
        let Some(group) = self.all[ix as usize].take() else { return };
        self.by_key.remove(&group.key);
        self.briefs[ix as usize] = Brief::default();
        self.vacant.push(ix);
        self.each_shelf(&group.key, |shelf| {
            shelf.wide.remove(&ix);
            shelf.claimed.remove(&ix);
        });
    }

    /// Updates the shelves after a change of its oldest task.
    fn aged(&mut self, ix: GroupIx, before: Option<TaskId>) {
        let TaskGroup { key, class, .. } = self.get(ix);
        let (key, now) = (key.clone(), class.front());
        if before == now {
            return;
        }
        let plain = key.is_plain();
        self.each_shelf(&key, |shelf| {
            let by_age = shelf.by_age(key.reads);
            before.map(|task| by_age.remove(&(task, ix, plain)));
            now.map(|task| by_age.insert((task, ix, plain)));
        });
    }

    fn each_shelf(&mut self, key: &GroupKey, mut change: impl FnMut(&mut Shelf)) {
        if key.holders.is_empty() {
            change(&mut self.anywhere);
        }
        key.holders.iter().for_each(|host| change(&mut self.at[*host]));
    }

    /// Records that `host` took a task: the other groups that it might have taken from were passed over.
    pub fn picked(&mut self, host: HostIx) {
        self.picks[host] += 1;
        self.all_picks += 1;
    }

    /// Records that the group had its turn.
    pub fn turn(&mut self, group: GroupIx) {
        self.follows(group, 0, None);
    }

    /// Records that it was passed over for another reason than a pick.
    pub fn pass(&mut self, group: GroupIx) {
        let passed = &mut self.briefs[group as usize].passed;
        *passed = passed.saturating_add(1);
    }

    /// Returns how often a host took another task although it might have taken from this group.
    pub fn passed(&self, group: GroupIx) -> u64 {
        let Brief { since, passed, .. } = self.briefs[group as usize];
        self.sum(group) - since + u64::from(passed)
    }

    /// Transfers the count of another group to this one, and the host that keeps slots for it.
    pub fn follows(&mut self, group: GroupIx, passed: u64, reserved: Option<HostIx>) {
        let since = self.sum(group);
        let brief = &mut self.briefs[group as usize];
        (brief.since, brief.passed) = (since, u32::try_from(passed).unwrap_or(u32::MAX));
        self.get_mut(group).class.reserved = reserved;
    }

    /// Returns the hosts that hold most of its tasks' inputs.
    pub fn holders(&self, group: GroupIx) -> impl Iterator<Item = HostIx> + '_ {
        let brief = &self.briefs[group as usize];
        let (few, all) = match brief.holders.get(..brief.count as usize) {
            Some(few) => (few, &[][..]),
            None => (&[][..], &self.get(group).key.holders[..]),
        };
        few.iter().map(|host| *host as HostIx).chain(all.iter().copied())
    }

    /// Whether the host that wrote its tasks' inputs has the first claim.
    pub fn has_writer(&self, group: GroupIx) -> bool {
        self.briefs[group as usize].has_writer
    }

    /// Returns the picks of all hosts that may take from a group without comparing costs.
    fn sum(&self, group: GroupIx) -> u64 {
        let picks = |host: HostIx| self.picks.get(host).copied().unwrap_or(0);
        if self.briefs[group as usize].count > 0 {
            return self.holders(group).map(picks).sum();
        }
        self.all_picks - self.get(group).key.excluded.iter().copied().map(picks).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(holders: &[HostIx], excluded: &[HostIx]) -> GroupKey {
        let (holders, excluded) = (holders.to_vec(), excluded.to_vec());
        GroupKey { holders, writer: None, excluded, cpus: 1, server: None, reads: true, kind: 0, takes: Vec::new() }
    }

    #[test]
    fn a_group_is_found_at_each_of_its_hosts_by_its_oldest_task() {
        let mut groups = TaskGroups::default();
        (0..3).for_each(|_| groups.host_up());
        let both = groups.insert(key(&[0, 2], &[]), 7);
        groups.insert(key(&[0, 2], &[]), 5);
        let free = groups.insert(key(&[], &[1]), 6);
        let at = |groups: &TaskGroups, host| groups.at(host).reading.iter().copied().collect::<Vec<_>>();
        assert_eq!(
            (at(&groups, 0), at(&groups, 1), at(&groups, 2)),
            (vec![(5, both, true)], vec![], vec![(5, both, true)])
        );
        assert_eq!(groups.anywhere().reading.first(), Some(&(6, free, false)));
        assert!(groups.remove(&key(&[0, 2], &[]), 5) && !groups.remove(&key(&[0, 2], &[]), 5));
        assert_eq!(at(&groups, 2), [(7, both, true)]);
        assert!(groups.remove_from(both, 7));
        assert!(groups.at(0).is_empty() && groups.len() == 1);
    }

    #[test]
    fn a_group_is_passed_over_by_who_may_take_from_it() {
        let mut groups = TaskGroups::default();
        (0..3).for_each(|_| groups.host_up());
        groups.picked(0);
        let (both, free) = (groups.insert(key(&[0, 2], &[]), 1), groups.insert(key(&[], &[1]), 2));
        [0, 0, 1, 2].into_iter().for_each(|host| groups.picked(host));
        groups.pass(both);
        assert_eq!((groups.passed(both), groups.passed(free)), (4, 3));
        groups.turn(both);
        assert_eq!((groups.passed(both), groups.passed(free)), (0, 3));
    }
}
