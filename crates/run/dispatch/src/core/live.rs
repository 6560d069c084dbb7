//! The state for watchers of a run, and their requests.

use super::types::end;
use super::{Action, Core, Stage, TaskAttempt};
use crate::admission::StorageIx;
use homing_launch::wire::ToWorker;
use homing_model::live::WaitGroup;
use homing_model::{Live, NodeSet, TaskId};
use homing_place::{Awaited, HostIx};
use std::cmp::Reverse;

impl Core {
    /// Returns why tasks wait, and the bytes that running tasks have moved, at `at_ns` of the wall clock.
    pub fn live(&self, at_ns: i64) -> Live {
        let mut waits = self.waits();
        waits.retain(|waits| waits.tasks > 0);
        waits.sort_by_key(|waits| Reverse(waits.tasks));
        let mut moved: Vec<_> =
            self.running.values().filter_map(|run| Some((run.waiting.offer.task.id, run.moved?))).collect();
        moved.sort_unstable_by_key(|(task, _)| *task);
        Live { at_ns, waits, moved }
    }

    fn waits(&self) -> Vec<WaitGroup> {
        let after = WaitGroup { why: "tasks that must end before them".into(), tasks: self.after.len() as u64 };
        if self.stage > Stage::Going {
            let why = "nothing: the run is being ended".into();
            return vec![after, WaitGroup { why, tasks: self.waiting.len() as u64 }];
        }
        let queued = self.placer.awaited().into_iter();
        let mut all: Vec<WaitGroup> =
            queued.map(|(awaited, tasks)| WaitGroup { why: self.clause(&awaited), tasks: tasks as u64 }).collect();
        let held = self.waiting.len().saturating_sub(self.placer.waiting()) as u64;
        all.push(WaitGroup { why: "connections to hosts that hold their inputs".into(), tasks: held });
        all.push(after);
        all
    }

    fn clause(&self, awaited: &Awaited) -> String {
        let named = |hosts: &[HostIx]| hosts.iter().map(|host| self.hosts.name(*host).to_string()).collect::<NodeSet>();
        match awaited {
            Awaited::Nobody => "a host that can run them: no present host can".into(),
            Awaited::Server(server) => self.storage_clause(StorageIx::Server(*server)),
            Awaited::Slot => "a free slot".into(),
            Awaited::Holders(hosts) => format!("a slot of {}, which holds their inputs", named(hosts)),
            Awaited::Storage(hosts) => match hosts[..] {
                [host] => self.storage_clause(StorageIx::Host(host)),
                _ => format!("the storage of {}, which takes no more tasks now", named(hosts)),
            },
            Awaited::Room => "memory or resources that running tasks hold".into(),
            Awaited::Turn => {
                let full = self.power.full().join(", ");
                let power = (!full.is_empty()).then(|| format!("power: [power] {full} allows no more tasks"));
                power
                    .or_else(|| self.short_of_memory())
                    .or_else(|| self.loaded())
                    .unwrap_or_else(|| "their turn, which comes next".into())
            }
        }
    }

    fn storage_clause(&self, storage: StorageIx) -> String {
        let name = self.storage_name(storage);
        match self.admission.limit(storage) {
            Some(limit) => format!("storage: {name} serves {limit} at once"),
            None => format!("storage: {name} takes no more tasks now"),
        }
    }

    fn under_way(&mut self, task: TaskId) -> Option<(u64, &mut TaskAttempt)> {
        let found = self.running.iter_mut().find(|(_, run)| run.waiting.offer.task.id == task);
        found.map(|(ticket, run)| (*ticket, run))
    }

    /// Ends a running task at the request of a watcher.
    pub fn end_task(&mut self, task: TaskId) {
        let Some((ticket, run)) = self.under_way(task) else { return };
        let action = end(run, ticket, false);
        if let Some(action) = action {
            self.actions.push(Action::Note(format!("task {task} is ended at the request of a watcher")));
            self.actions.push(action);
        }
    }

    /// Has a running task's output sent as it is printed. Returns its ticket.
    pub fn show_task(&mut self, task: TaskId) -> Option<u64> {
        let (ticket, run) = self.under_way(task)?;
        let host = run.host;
        self.actions.push(Action::Send(host, ToWorker::Eager { ticket }));
        Some(ticket)
    }
}
