//! Checks a plan against its inputs: a plan is a value that can be wrong, and errors are better found before it runs.

use crate::{HostIx, HostModel, Need, Planned};
use homing_model::TaskId;
use std::collections::HashMap;
use std::fmt;

/// Something that is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Complaint {
    /// It is in the batch, not in the plan: it can run nowhere.
    Missing(TaskId),
    /// It is in the plan, not in the batch.
    Unknown(TaskId),
    /// It is in the plan more than once.
    Twice(TaskId),
    /// It is on a host that does not exist.
    NoSuchHost(TaskId, HostIx),
    /// Its bytes do not match its needs.
    WrongBytes(TaskId),
    /// More slots are in use than the host has, from this start on.
    Overcommitted(TaskId, HostIx),
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Complaint::Missing(task) => write!(f, "no host can run task {task}"),
            Complaint::Unknown(task) => write!(f, "task {task} is planned but was not requested"),
            Complaint::Twice(task) => write!(f, "task {task} is planned more than once"),
            Complaint::NoSuchHost(task, host) => {
                write!(f, "task {task} is planned on host {host}, which does not exist")
            }
            Complaint::WrongBytes(task) => write!(f, "the bytes of task {task} do not add up"),
            Complaint::Overcommitted(task, host) => write!(f, "host {host} has no slot left when task {task} starts"),
        }
    }
}

/// Returns all faults of `plan`; empty if it is sound.
pub fn lint(plan: &[Planned], hosts: &[HostModel], needs: &[(TaskId, Need)]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut open: HashMap<TaskId, (&Need, u32)> = needs.iter().map(|(task, need)| (*task, (need, 0))).collect();
    let mut changes: Vec<Vec<(u64, i64, TaskId)>> = vec![Vec::new(); hosts.len()];
    for step in plan {
        let Some((need, seen)) = open.get_mut(&step.task) else {
            complaints.push(Complaint::Unknown(step.task));
            continue;
        };
        *seen += 1;
        if *seen == 2 {
            complaints.push(Complaint::Twice(step.task));
        }
        if step.local.checked_add(step.remote) != Some(need.total) || step.local != need.local(step.host) {
            complaints.push(Complaint::WrongBytes(step.task));
        }
        let Some(changes) = changes.get_mut(step.host) else {
            complaints.push(Complaint::NoSuchHost(step.task, step.host));
            continue;
        };
        let cpus = i64::from(need.cpus.max(1));
        changes.push((step.start_us, cpus, step.task));
        changes.push((step.end_us, -cpus, step.task));
    }
    for (host, mut changes) in changes.into_iter().enumerate() {
        // At one moment, ends come before starts: they sort as negative.
        changes.sort_unstable();
        let mut busy = 0;
        for (_, change, task) in changes {
            busy += change;
            if change > 0 && busy > i64::from(hosts[host].slots.max(1)) {
                complaints.push(Complaint::Overcommitted(task, host));
            }
        }
    }
    complaints.extend(needs.iter().filter(|(task, _)| open[task].1 == 0).map(|(task, _)| Complaint::Missing(*task)));
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reason;

    #[test]
    fn finds_what_is_wrong() {
        let hosts = [HostModel { slots: 1, nic_bytes_per_s: None, serving: 0.0, switch: None }];
        let needs: Vec<(TaskId, Need)> = (1..=3).map(|task| (task, Need::default())).collect();
        let step = |task, host, start_us| Planned {
            task,
            host,
            why: Reason::NoInput,
            local: 0,
            remote: 0,
            start_us,
            end_us: start_us + 10,
        };
        let sound = [step(1, 0, 0), step(2, 0, 10), step(3, 0, 20)];
        assert_eq!(lint(&sound, &hosts, &needs), []);
        let wrong = [step(1, 0, 0), step(1, 0, 20), step(2, 0, 5), step(9, 0, 40)];
        let expected =
            [Complaint::Twice(1), Complaint::Unknown(9), Complaint::Overcommitted(2, 0), Complaint::Missing(3)];
        assert_eq!(lint(&wrong, &hosts, &needs), expected);
    }
}
