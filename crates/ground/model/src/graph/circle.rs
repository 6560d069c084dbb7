//! Finds tasks that wait for each other in a circle, and would wait for ever.

use crate::TaskId;
use std::collections::HashMap;

/// Returns one circle among tasks, if there is one: each task of it waits for the next, the last for the first.
pub fn circle(needs: &HashMap<TaskId, Vec<TaskId>>) -> Option<Vec<TaskId>> {
    let mut open: HashMap<TaskId, usize> = needs.iter().map(|(task, others)| (*task, others.len())).collect();
    let mut waiters: HashMap<TaskId, Vec<TaskId>> = HashMap::new();
    for (task, others) in needs {
        others.iter().for_each(|other| waiters.entry(*other).or_default().push(*task));
    }
    let mut free: Vec<TaskId> = waiters.keys().filter(|task| !open.contains_key(task)).copied().collect();
    while let Some(task) = free.pop() {
        for waiter in waiters.remove(&task).unwrap_or_default() {
            if let Some(left) = open.get_mut(&waiter) {
                *left -= 1;
                if *left == 0 {
                    open.remove(&waiter);
                    free.push(waiter);
                }
            }
        }
    }
    let first = *open.keys().min()?;
    // Each task that is left waits for another that is left, so a walk along them reaches some task twice.
    let next = |task: TaskId| needs[&task].iter().copied().find(|other| open.contains_key(other)).unwrap_or(task);
    let (mut way, mut task) = (Vec::new(), first);
    loop {
        if let Some(at) = way.iter().position(|seen| *seen == task) {
            return Some(way.split_off(at));
        }
        way.push(task);
        task = next(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(needs: &[(TaskId, &[TaskId])]) -> Option<Vec<TaskId>> {
        circle(&needs.iter().map(|(task, others)| (*task, others.to_vec())).collect())
    }

    #[test]
    fn a_circle_is_found_and_nothing_else_is() {
        assert_eq!(of(&[(2, &[1]), (3, &[1, 2]), (4, &[3, 2])]), None);
        assert_eq!(of(&[(1, &[1])]), Some(vec![1]));
        assert_eq!(of(&[(1, &[2]), (2, &[3]), (3, &[4, 2]), (4, &[9])]), Some(vec![2, 3]));
    }
}
