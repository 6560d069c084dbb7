//! Limits of hosts' own storage.

use super::*;

#[test]
fn a_limit_of_storage_holds_and_is_refilled() {
    let mut core = core(io(Io::Fixed(2)), &[("n1", 8)]);
    (1..=5).for_each(|id| core.offer(offer(id, &["n1"])));
    let first = assign(&mut core, 0);
    assert_eq!(first.len(), 2);
    assert!(assign(&mut core, S).is_empty());
    core.ended(0, ended(first[0].2, Outcome::Exit(0)), at(S));
    assert_eq!(assign(&mut core, S).len(), 1);
}

#[test]
fn the_limit_that_storage_begins_with_is_told_when_it_holds_tasks_back() {
    for (io_limit, tasks, told) in
        [(Io::Fixed(2), 2, None), (Io::Fixed(2), 3, Some(2)), (Io::Auto, 2, Some(1)), (Io::Auto, 1, None)]
    {
        let mut core = core(io(io_limit), &[("n1", 8)]);
        (1..=tasks).for_each(|id| core.offer(offer(id, &["n1"])));
        (0..5).for_each(|s| core.assign(at(s * S).mono));
        let limit = |action| match action {
            Action::Journal(EventKind::Limit { limit, why, .. }) => Some((limit, why)),
            _ => None,
        };
        let limits: Vec<_> = core.take_actions().into_iter().filter_map(limit).collect();
        assert_eq!(limits, Vec::from_iter(told.map(|n| (Some(n), String::new()))), "{io_limit:?}, {tasks} tasks");
    }
}

/// Returns the number of starts on n2, which holds nothing, while n1 has one running task and a long queue.
fn stolen(limit: Io) -> usize {
    let mut core = core(io(limit), &[("n1", 1), ("n2", 1)]);
    core.offer(offer(1, &["n1"]));
    let first = assign(&mut core, 0);
    core.ended(0, ended(first[0].2, Outcome::Exit(0)), at(60 * S));
    (2..=50).for_each(|id| core.offer(offer(id, &["n1"])));
    let starts: Vec<_> = (60..70).flat_map(|at| assign(&mut core, at * S)).collect();
    starts.iter().filter(|(_, host, _)| *host == 1).count()
}

#[test]
fn no_steal_lands_on_storage_at_its_limit() {
    assert!(stolen(Io::Off) > 0, "fetching is cheap here: it must happen when nothing forbids it");
    assert_eq!(stolen(Io::Fixed(1)), 0);
}

#[test]
fn what_reads_nothing_does_not_wait_for_storage() {
    let mut core = core(io(Io::Fixed(1)), &[("n1", 8)]);
    core.offer(offer(7, &[]));
    let first = assign(&mut core, 0);
    core.ended(0, ended(first[0].2, Outcome::Exit(0)), at(S));
    core.offer(offer(1, &["n1"]));
    core.offer(Offer { guessed: true, ..offer(2, &["n1"]) });
    (3..=5).for_each(|id| core.offer(offer(id, &[])));
    core.offer(offer(6, &["n1"]));
    let mut begun: Vec<TaskId> = assign(&mut core, 0).iter().map(|s| s.0).collect();
    begun.sort_unstable();
    assert_eq!(begun, [1, 2, 3, 4, 5], "the sixth waits for the first, the others for nobody");
}

#[test]
fn a_limit_makes_nobody_fetch() {
    // Two slots and one reader for each host. An idle slot is no reason to read from another host if the disk serves
    // one reader at a time.
    let mut core = core(io(Io::Fixed(1)), &[("n1", 2), ("n2", 2), ("n3", 2)]);
    let begin = |core: &mut Core, id: TaskId, on: &str, now_us: u64| {
        core.offer(offer(id, &[on]));
        let begun = assign(core, now_us);
        begun
            .iter()
            .for_each(|(_, host, ticket)| assert!(core.ended(*host, ended(*ticket, Outcome::Exit(0)), at(now_us + S))));
    };
    begin(&mut core, 1, "n1", 0);
    begin(&mut core, 2, "n2", S);
    (3..=30).for_each(|id| core.offer(offer(id, &[if id % 2 == 0 { "n1" } else { "n2" }])));
    let mut running: Vec<(HostIx, u64)> = Vec::new();
    for second in 2..12 {
        for (host, ticket) in running.drain(..) {
            core.ended(host, ended(ticket, Outcome::Exit(0)), at(second * S));
        }
        for (task, host, ticket) in assign(&mut core, second * S) {
            assert_eq!(host as u64, task % 2, "task {task}");
            running.push((host, ticket));
        }
        assert_eq!(running.len(), 2);
    }
}

#[test]
fn what_runs_beyond_a_limit_ends_before_others_start() {
    let mut core = core(io(Io::Fixed(4)), &[("n1", 8)]);
    (1..=6).for_each(|id| core.offer(offer(id, &["n1"])));
    let first = assign(&mut core, 0);
    assert_eq!(first.len(), 4);
    core.admission.set(Io::Fixed(2));
    for (nth, begins) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
        core.ended(0, ended(first[nth].2, Outcome::Exit(0)), at(S));
        assert_eq!(assign(&mut core, S).len(), begins);
    }
}

#[test]
fn a_host_that_is_lost_takes_its_load_off_the_storage() {
    let mut core = core(io(Io::Fixed(1)), &[("n1", 1), ("n2", 1)]);
    core.offer(offer(1, &["n2"]));
    core.offer(offer(2, &[]));
    assert_eq!(assign(&mut core, 0).len(), 2);
    core.host_lost(1, "cut", false, at(S));
    core.ended(0, ended(2, Outcome::Exit(0)), at(S));
    core.ended(0, ended(1, Outcome::Exit(0)), at(S));
    assert_eq!(assign(&mut core, S).len(), 1, "what it ran goes on elsewhere");
}
