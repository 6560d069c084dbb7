//! Tasks that run after others.

use super::*;

/// Has the inputs of the tasks located whose turn has come. Returns these tasks.
fn come_back(core: &mut Core) -> Vec<TaskId> {
    let turns = core.take_actions().into_iter().filter_map(|action| match action {
        Action::Locate(task) => Some(*task),
        _ => None,
    });
    let turns: Vec<Task> = turns.collect();
    turns.iter().for_each(|task| assert!(task.after.is_empty(), "it waits for nothing more"));
    turns.iter().for_each(|t| core.offer(Offer { task: t.clone(), ..offer(t.id, &[]) }));
    turns.iter().map(|task| task.id).collect()
}

fn after(id: TaskId, others: &[TaskId]) -> Task {
    Task { after: others.to_vec(), ..task(id) }
}

#[test]
fn a_task_is_looked_at_when_those_before_it_have_ended_and_the_run_is_not_over_before() {
    let mut core = core(policy(), &[("n1", 2)]);
    core.offer(offer(1, &[]));
    core.wait_for(after(2, &[1]));
    core.source_ended();
    let begun = assign(&mut core, 0);
    assert_eq!(begun.len(), 1);
    core.ended(0, ended(begun[0].2, Outcome::Exit(0)), at(S));
    assert!(!core.is_over(), "one is on its way to be looked at");
    assert_eq!(come_back(&mut core), [2]);
    let begun = assign(&mut core, S);
    core.ended(0, ended(begun[0].2, Outcome::Exit(0)), at(2 * S));
    assert!(core.is_over());
    assert_eq!(core.finish().0, 0);
}

#[test]
fn what_was_written_is_read_where_it_was_written() {
    let mut core = core(policy(), &[("n1", 1), ("n2", 1), ("n3", 1)]);
    for writer in [0, 1, 2] {
        let id = 1 + 2 * writer as TaskId;
        let name = ["n1", "n2", "n3"][writer];
        core.offer(Offer { task: task(id), ..offer(id, &[name]) });
        let begun = assign(&mut core, 0);
        assert_eq!(begun.iter().map(|(_, host, _)| *host).collect::<Vec<_>>(), [writer]);
        let now = Some(homing_model::FileStamp { size: 9, ino: 1, mtime_ns: 1, dir: false });
        let wrote = vec![homing_model::FileChange { path: "/data/made".into(), now, fresh: false, was: None }];
        core.ended(writer, AttemptEnd { wrote, ..ended(begun[0].2, Outcome::Exit(0)) }, at(0));
        core.offer(Offer { reads: vec!["/data/made".into()], ..offer(id + 1, &["n1", "n2", "n3"]) });
        let begun = assign(&mut core, 0);
        assert_eq!(begun.iter().map(|(_, host, _)| *host).collect::<Vec<_>>(), [writer], "all hold a copy");
        core.ended(writer, ended(begun[0].2, Outcome::Exit(0)), at(0));
    }
}

#[test]
fn what_needs_a_failure_has_its_last_word_and_counts_apart() {
    let halts = Policy { halt: "soon,fail=2".parse().unwrap(), tries: Some(2), ..policy() };
    let mut core = core(halts, &[("n1", 1)]);
    core.offer(Offer { task: Task { name: Some("align".into()), ..task(1) }, ..offer(1, &[]) });
    core.wait_for(after(2, &[1]));
    core.wait_for(after(3, &[2]));
    for at_us in [0, S] {
        let begun = assign(&mut core, at_us);
        core.ended(0, ended(begun[0].2, Outcome::Exit(1)), at(at_us));
        assert!(!core.is_over(), "it may be tried again, and more tasks may come");
    }
    let not_run = || Outcome::NotRun("needs align, which failed".into());
    let said = verdicts(core.take_actions());
    assert_eq!(said, [(1, Outcome::Exit(1)), (2, not_run()), (3, not_run())]);
    core.wait_for(after(4, &[3]));
    assert_eq!(verdicts(core.take_actions()), [(4, not_run())], "however late it comes");
    core.offer(offer(5, &[]));
    assert_eq!(assign(&mut core, 2 * S).len(), 1, "it is no second failure that would halt the run");
    assert_eq!((core.counts().failed(), core.counts().not_run()), (1, 3));
}

#[test]
fn what_an_earlier_part_of_the_run_has_done_is_not_waited_for() {
    let mut core = core(policy(), &[("n1", 1)]);
    let skipped = |task, failed| Skipped { task, label: format!("task {task}"), reason: None, failed };
    core.wait_for(after(3, &[1]));
    core.skipped(skipped(1, false));
    core.skipped(skipped(2, true));
    assert_eq!(come_back(&mut core), [3]);
    core.wait_for(after(4, &[2]));
    assert_eq!(verdicts(core.take_actions()), [(4, Outcome::NotRun("needs task 2, which failed".into()))]);
}
