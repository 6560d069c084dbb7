//! The files that tasks wrote, before other tasks read them.

use super::*;

/// Returns the fence of the only task that starts now, and its ticket.
fn fence(core: &mut Core) -> (u64, Vec<FileChange>) {
    core.assign(at(S).mono);
    let run = |action: Action| match action {
        Action::Send(_, ToWorker::Run { ticket, fence, .. }) => Some((ticket, fence)),
        _ => None,
    };
    core.take_actions().into_iter().find_map(run).unwrap()
}

#[test]
fn what_a_task_wrote_is_looked_at_by_other_hosts_that_read_it() {
    let mut core = core(policy(), &[("n1", 1), ("n2", 1)]);
    core.offer(offer(1, &["n1"]));
    core.offer(offer(2, &["n2"]));
    assert_eq!(assign(&mut core, 0), [(1, 0, 1), (2, 1, 2)]);
    core.ended(0, AttemptEnd { wrote: vec![change("/d/a", 5)], ..ended(1, Outcome::Exit(0)) }, at(S));
    let reads = |id, holder| Offer { reads: vec!["/d/a".into()], ..offer(id, &[holder]) };
    core.offer(reads(3, "n1"));
    assert_eq!(fence(&mut core).1, [], "its writer knows");
    core.ended(1, ended(2, Outcome::Exit(0)), at(S));
    core.offer(Offer { recent: vec![change("/d/b", 1)], ..reads(4, "n2") });
    let (ticket, told) = fence(&mut core);
    assert_eq!(told, [change("/d/b", 1), change("/d/a", 5)]);
    // A change by a program outside of the run is not waited for again.
    core.late(1, ticket, &change("/d/b", 1), "old", true, at(S));
    let (ticket, told) = fence(&mut core);
    assert_eq!(told, [change("/d/a", 5)]);
    core.late(1, ticket, &change("/d/a", 5), "/d/a is not visible", false, at(S));
    let said = "n2: /d/a is not visible".to_string();
    assert_eq!(verdicts(core.take_actions()), [(4, Outcome::CannotStart(said))]);
}

#[test]
fn a_fence_too_long_for_one_message_goes_ahead_of_its_task() {
    let mut core = core(policy(), &[("n1", 1)]);
    let recent: Vec<FileChange> =
        (0..100_000).map(|n| change(&format!("/d/{}/{n}", "folder/".repeat(30)), n)).collect();
    core.offer(Offer { recent: recent.clone(), ..offer(1, &["n1"]) });
    core.assign(at(S).mono);
    let (mut told, mut last) = (Vec::new(), false);
    for action in core.take_actions() {
        let Action::Send(0, message) = action else { continue };
        homing_launch::wire::encode(&message, &mut Vec::new()).unwrap();
        assert!(!last, "nothing follows the task");
        match message {
            ToWorker::Written { changes } => told.extend(changes),
            ToWorker::Run { fence, .. } => (last, told) = (true, [told, fence].concat()),
            other => panic!("{other:?}"),
        }
    }
    assert!(last && told == recent, "{} of {}", told.len(), recent.len());
}
