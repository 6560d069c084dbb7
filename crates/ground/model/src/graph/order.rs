//! Puts tasks that run after others into an order in which they can run.

use crate::Task;
use crate::graph::{TaskReadiness, TaskWaits};
use std::collections::HashMap;

/// Passes each task to `each` as soon as all tasks that it runs after were passed, otherwise in their order.
pub fn in_order<E>(
    tasks: impl Iterator<Item = Result<Task, E>>,
    mut each: impl FnMut(&Task) -> Result<(), E>,
) -> Result<(), E> {
    let (mut waits, mut waiting) = (TaskWaits::default(), HashMap::new());
    for task in tasks {
        let task = task?;
        if waits.add(task.id, &task.after) != TaskReadiness::Ready {
            waiting.insert(task.id, task);
            continue;
        }
        let mut turn = vec![task];
        while let Some(task) = turn.pop() {
            each(&task)?;
            let ready = waits.ended(task.id, true).ready;
            turn.extend(ready.iter().rev().filter_map(|id| waiting.remove(id)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Command;

    #[test]
    fn a_task_follows_what_it_runs_after() {
        let task = |(id, after): (u64, &[u64])| -> Result<Task, ()> {
            Ok(Task { id, after: after.to_vec(), ..Task::of(Command::Argv(vec![])) })
        };
        let mut order = Vec::new();
        let tasks: [(u64, &[u64]); 5] = [(1, &[3]), (2, &[]), (3, &[2]), (4, &[1, 2]), (5, &[])];
        let said = in_order(tasks.into_iter().map(task), |task| {
            order.push(task.id);
            Ok(())
        });
        assert_eq!((said, order), (Ok(()), vec![2, 3, 1, 4, 5]));
    }
}
