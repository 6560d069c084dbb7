//! Decides which of the hosts that are off a batch needs.

/// Returns how many of these hosts, from the first on, `tasks` tasks need besides the slots of hosts that are on.
/// `off` has their slots, where those are known. A batch of unknown length needs all.
pub fn needed(tasks: Option<u64>, on: u64, off: &[Option<u32>]) -> usize {
    let Some(tasks) = tasks else { return off.len() };
    let mut without = tasks.saturating_sub(on);
    // A host with unknown slots has at least one.
    let slots = off.iter().map(|slots| u64::from(slots.unwrap_or(1).max(1)));
    slots
        .take_while(|slots| {
            let needed = without > 0;
            without = without.saturating_sub(*slots);
            needed
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::needed;

    #[test]
    fn no_more_hosts_are_needed_than_tasks_wait_for() {
        let off = [Some(4), None, Some(8)];
        let of = |tasks| needed(Some(tasks), 4, &off);
        assert_eq!([0, 4, 5, 8, 9, 10, 17, 1000].map(of), [0, 0, 1, 1, 2, 3, 3, 3]);
        assert_eq!((needed(None, 4, &off), needed(Some(9), 4, &[])), (3, 0));
    }
}
