//! Random graphs without circles, whose tasks end in any order.

use homing_model::TaskId;
use homing_model::graph::{TaskReadiness, TaskWaits, circle};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

/// Returns tasks as their number in the run, the tasks that they wait for, and whether they fail. They are generated
/// in an order in which no task waits for a later one.
fn graph() -> impl Strategy<Value = Vec<(TaskId, Vec<TaskId>, bool)>> {
    let tasks = vec((vec(any::<prop::sample::Index>(), 0..4), prop::bool::weighted(0.1)), 1..40);
    tasks.prop_flat_map(|tasks| {
        let numbers: Vec<TaskId> = (1..=tasks.len() as TaskId).collect();
        (Just(tasks), Just(numbers).prop_shuffle()).prop_map(|(tasks, number)| {
            let needs = |at: usize, picks: &[prop::sample::Index]| match at {
                0 => vec![],
                _ => picks.iter().map(|pick| number[pick.index(at)]).collect(),
            };
            let one = |(at, (picks, fails)): (usize, &(Vec<_>, bool))| (number[at], needs(at, picks), *fails);
            let mut graph: Vec<_> = tasks.iter().enumerate().map(one).collect();
            graph.sort();
            graph
        })
    })
}

/// Runs the graph; `order` picks the next task to end. Returns the tasks that succeeded, failed and were given up, in
/// order.
fn run(graph: &[(TaskId, Vec<TaskId>, bool)], order: &[usize]) -> (Vec<TaskId>, Vec<TaskId>, Vec<TaskId>) {
    let fails: HashMap<TaskId, bool> = graph.iter().map(|(task, _, fails)| (*task, *fails)).collect();
    let (mut waits, mut ready) = (TaskWaits::default(), Vec::new());
    let (mut well, mut bad, mut never) = (vec![], vec![], vec![]);
    let mut order = order.iter().cycle();
    let mut coming = graph.iter();
    loop {
        // Some tasks are added before the first runs, some while others end.
        let next = if order.next().unwrap().is_multiple_of(3) || ready.is_empty() { coming.next() } else { None };
        match next.map(|(task, after, _)| (*task, waits.add(*task, after))) {
            Some((task, TaskReadiness::Ready)) => ready.push(task),
            Some((task, TaskReadiness::Never(_))) => {
                never.push(task);
                never.extend(waits.ended(task, false).never);
            }
            Some((_, TaskReadiness::Waits)) => {}
            None if ready.is_empty() => break,
            None => {
                let task = ready.swap_remove(order.next().unwrap() % ready.len());
                let ended = waits.ended(task, !fails[&task]);
                if fails[&task] { &mut bad } else { &mut well }.push(task);
                ready.extend(ended.ready);
                never.extend(ended.never);
            }
        }
    }
    assert_eq!(waits.waiting(), 0, "somebody waits for ever");
    (well, bad, never)
}

proptest! {
    #[test]
    fn no_task_starts_before_what_it_needs_and_each_has_its_word(graph in graph(), order in vec(any::<usize>(), 8..60)) {
        let (well, bad, never) = run(&graph, &order);
        let mut all: Vec<TaskId> = [&well[..], &bad, &never].concat();
        all.sort_unstable();
        prop_assert_eq!(all, graph.iter().map(|(task, ..)| *task).collect::<Vec<_>>(), "each exactly once");
        let done: BTreeSet<TaskId> = well.iter().copied().collect();
        for (task, after, fails) in &graph {
            let ran = done.contains(task) || bad.contains(task);
            prop_assert_eq!(ran, after.iter().all(|other| done.contains(other)), "task {}", task);
            prop_assert!(!ran || *fails == bad.contains(task));
        }
        let place = |task: &TaskId| well.iter().position(|other| other == task).unwrap();
        for (task, after, _) in graph.iter().filter(|(task, ..)| done.contains(task)) {
            prop_assert!(after.iter().all(|other| place(other) < place(task)));
        }
    }

    #[test]
    fn without_failures_all_run(graph in graph(), order in vec(any::<usize>(), 8..60)) {
        let graph: Vec<_> = graph.into_iter().map(|(task, after, _)| (task, after, false)).collect();
        prop_assert_eq!(run(&graph, &order).0.len(), graph.len());
    }

    #[test]
    fn a_circle_is_found_exactly_where_one_is(edges in vec((1..12u64, 1..12u64), 0..25)) {
        let mut needs: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
        edges.iter().for_each(|(task, other)| needs.entry(*task).or_default().push(*other));
        let reaches = |from: TaskId| {
            let (mut seen, mut todo) = (BTreeSet::new(), needs.get(&from).cloned().unwrap_or_default());
            while let Some(task) = todo.pop() {
                if seen.insert(task) {
                    todo.extend(needs.get(&task).into_iter().flatten());
                }
            }
            seen.contains(&from)
        };
        let found = circle(&needs);
        prop_assert_eq!(found.is_some(), needs.keys().any(|task| reaches(*task)));
        for (at, task) in found.iter().flatten().enumerate() {
            let next = found.as_ref().map(|way| way[(at + 1) % way.len()]).unwrap();
            prop_assert!(needs[task].contains(&next));
        }
    }
}
