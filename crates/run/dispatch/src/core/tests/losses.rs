//! Hosts that are lost, leave or come back, and tries that fail.

use super::*;
use homing_launch::MOST_LOSSES;

#[test]
fn tasks_of_a_lost_host_run_on_the_host_of_the_other_copy_and_count_once() {
    let mut core = core(policy(), &[("n1", 1), ("n2", 1), ("n3", 1)]);
    core.offer(offer(1, &["n2", "n3"]));
    let (_, first, ticket) = assign(&mut core, 0)[0];
    assert!(first == 1 || first == 2, "a holder");
    core.host_lost(first, "cut", false, at(S));
    assert!(verdicts(core.take_actions()).is_empty(), "a lost attempt is no outcome");
    let again = assign(&mut core, S);
    assert_eq!((again.len(), again[0].1), (1, 3 - first), "the other holder");
    // A late message of a host that was given up changes nothing.
    assert!(!core.ended(first, ended(ticket, Outcome::Exit(0)), at(2 * S)));
    assert!(core.ended(again[0].1, ended(again[0].2, Outcome::Exit(0)), at(2 * S)));
    assert!(!core.ended(again[0].1, ended(again[0].2, Outcome::Exit(0)), at(2 * S)), "an outcome is told once");
    assert_eq!(verdicts(core.take_actions()), [(1, Outcome::Exit(0))]);
    core.source_ended();
    assert!(core.is_over());
}

#[test]
fn a_task_that_takes_its_hosts_down_is_given_up_before_it_has_taken_all() {
    let hosts: Vec<String> = (1..=5).map(|n| format!("n{n}")).collect();
    let hosts: Vec<(&str, u32)> = hosts.iter().map(|h| (h.as_str(), 1)).collect();
    let mut core = core(policy(), &hosts);
    core.offer(offer(1, &[]));
    for loss in 1..=MOST_LOSSES {
        let (_, host, _) = assign(&mut core, S)[0];
        core.host_lost(host, "down", false, at(S));
        let verdicts = verdicts(core.take_actions());
        assert_eq!(verdicts.len(), usize::from(loss == MOST_LOSSES), "loss {loss}");
    }
    assert!(assign(&mut core, S).is_empty());
}

#[test]
fn a_failed_task_is_tried_again_elsewhere_as_often_as_retries_say() {
    let mut core = core(Policy { tries: Some(2), ..policy() }, &[("n1", 1), ("n2", 1)]);
    core.offer(offer(1, &["n1"]));
    let (_, host, ticket) = assign(&mut core, 0)[0];
    assert_eq!(host, 0);
    core.ended(host, ended(ticket, Outcome::Exit(7)), at(S));
    assert!(verdicts(core.take_actions()).is_empty());
    let (_, host, ticket) = assign(&mut core, S)[0];
    assert_eq!(host, 1, "not where it failed");
    core.ended(host, ended(ticket, Outcome::Exit(7)), at(S));
    assert_eq!(verdicts(core.take_actions()), [(1, Outcome::Exit(7))]);
    assert!(assign(&mut core, S).is_empty());
}

#[test]
fn a_run_whose_hosts_are_all_gone_ends_and_says_so() {
    let mut core = core(policy(), &[("n1", 1)]);
    core.offer(offer(1, &[]));
    core.host_lost(0, "cut", false, at(S));
    assert!(core.is_stranded() && !core.is_over(), "a host that is still asked for may take it up");
    let (exit, ending) = core.finish();
    assert_eq!(exit, 254);
    assert!(matches!(ending, EventKind::RunEnded { counts, .. } if counts["unfinished"] == 1));
}

#[test]
fn a_host_that_drains_ends_what_it_runs_and_gets_nothing_new() {
    let mut core = core(policy(), &[("n1", 1), ("n2", 1)]);
    (1..=3).for_each(|id| core.offer(offer(id, &["n1"])));
    let begun = assign(&mut core, 0);
    let on_n1 = begun.iter().find(|(_, host, _)| *host == 0).expect("its own data").2;
    core.host_draining(0, "drained by its administrator");
    core.host_draining(0, "told once");
    let notes = core.take_actions().iter().filter(|a| matches!(a, Action::HostNote(0, _))).count();
    assert!(notes == 1 && !core.hosts().is_up(0) && !core.is_idle(0));
    core.ended(0, ended(on_n1, Outcome::Exit(0)), at(S));
    assert!(assign(&mut core, S).iter().all(|(_, host, _)| *host == 1) && core.is_idle(0));
    // It may also be lost while it drains: its task runs again.
    let mut core = self::core(policy(), &[("n1", 1), ("n2", 1)]);
    core.offer(offer(1, &["n1"]));
    assign(&mut core, 0);
    core.host_draining(0, "maintenance");
    core.host_lost(0, "power", false, at(S));
    assert_eq!(assign(&mut core, 2 * S).len(), 1, "again, on the other");
}

#[test]
fn a_host_that_comes_back_is_where_its_data_lies() {
    let mut core = core(policy(), &[("n1", 1), ("n2", 1)]);
    core.host_lost(0, "time limit", true, at(0));
    let facts = HostFacts { hostname: "n1".into(), memory_bytes: 8 << 30, ..HostFacts::default() };
    let back = core.host_up("n1", 1, facts);
    core.offer(offer(1, &["n1"]));
    assert_eq!(assign(&mut core, S)[0].1, back);
}

#[test]
fn what_ran_behind_a_lost_leader_runs_again_when_its_lease_is_over() {
    let mut core = core(policy(), &[("n1", 1)]);
    (1..=2).for_each(|id| core.offer(offer(id, &["n1"])));
    let begun = assign(&mut core, 0)[0];
    core.host_replaced(0, "its leader is lost");
    core.host_replaced(0, "told once");
    let facts = HostFacts { hostname: "n1".into(), memory_bytes: 8 << 30, ..HostFacts::default() };
    let back = core.host_up("n1", 2, facts);
    let actions = core.take_actions();
    let records: Vec<&EventKind> =
        actions.iter().filter_map(|a| if let Action::Journal(what) = a { Some(what) } else { None }).collect();
    assert!(
        matches!(records[..], [EventKind::HostLost { .. }, EventKind::HostUp { .. }]),
        "the second is not taken for lost"
    );
    assert!(
        !actions.iter().any(|a| matches!(a, Action::Note(_) | Action::HostNote(..))),
        "who lost the leader tells of it"
    );
    let other = assign(&mut core, S)[0];
    assert!(other.0 != begun.0 && other.1 == back, "a slot is free, and what ran is not run twice at once");
    core.host_lost(0, "its leader is lost", false, at(30 * S));
    let again = assign(&mut core, 30 * S);
    assert_eq!((again.len(), again[0].0, again[0].1), (1, begun.0, back));
    assert!(
        !core
            .take_actions()
            .iter()
            .any(|a| matches!(a, Action::Journal(EventKind::HostLost { .. }) | Action::HostNote(..)))
    );
}

#[test]
fn a_loss_that_may_be_the_tasks_own_fault_counts_as_a_try() {
    for (counts, again) in [(true, 0), (false, 1)] {
        let mut core = core(policy(), &[("n1", 1), ("n2", 1)]);
        core.offer(offer(1, &[]));
        let begun = assign(&mut core, 0);
        core.host_lost(begun[0].1, "Slurm killed job 7: TIMEOUT", counts, at(S));
        assert_eq!(assign(&mut core, S).len(), again);
    }
}

#[test]
fn retries_decide_for_every_kind_of_loss() {
    // Each try fails, whether the task may be to blame or not.
    let attempts = |tries: Option<u32>, counts: bool| {
        let mut core = core(Policy { tries, ..policy() }, &[("n1", 1)]);
        core.offer(offer(1, &[]));
        let mut attempts = 0;
        while let [(_, host, _)] = assign(&mut core, S)[..] {
            attempts += 1;
            core.host_lost(host, "Slurm killed job 7: PREEMPTED", counts, at(S));
            core.host_up("n1", 1, HostFacts::default());
        }
        attempts
    };
    for counts in [true, false] {
        assert_eq!([1, 2, 5].map(|tries| attempts(Some(tries), counts)), [1, 2, 5]);
    }
    assert_eq!((attempts(None, true), attempts(None, false)), (1, MOST_LOSSES));
}
