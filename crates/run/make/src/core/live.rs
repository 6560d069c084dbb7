//! The state and the requests of programs that watch the build.

use super::Core;
use crate::BuildSnapshot;
use crate::asked::RecipeRequest;
use crate::running::RecipeAttempt;
use homing_model::event::EventKind;
use homing_model::live::WaitGroup;
use homing_model::{Live, TaskId};
use homing_os::clock::wall_ns;

impl Core {
    /// Returns the state, with the output of these tasks.
    pub(super) fn seen(&self, shown: &[TaskId]) -> BuildSnapshot {
        let end = |task: &TaskId| Some((*task, self.under_way(*task)?.shown().to_vec()));
        let live = Live { at_ns: wall_ns(), waits: self.waits(), moved: Vec::new() };
        BuildSnapshot { live, shown: shown.iter().filter_map(end).collect() }
    }

    /// Returns why recipes wait. If make starts no more recipes at once than there are slots, none wait.
    fn waits(&self) -> Vec<WaitGroup> {
        let comes = |asked: &&RecipeRequest| {
            let mut hosts = self.hosts.iter().enumerate();
            !hosts.any(|(at, host)| host.is_up() && !asked.unfit.contains(&at) && self.sees(host, asked))
        };
        let connecting = self.waiting.iter().filter(comes).count();
        let of = |why: &str, tasks: usize| WaitGroup { why: why.into(), tasks: tasks as u64 };
        let mut waits =
            vec![of("a free slot", self.waiting.len() - connecting), of("connections to hosts", connecting)];
        waits.retain(|waits| waits.tasks > 0);
        waits
    }

    fn under_way(&self, task: TaskId) -> Option<&RecipeAttempt> {
        self.running.values().find(|running| self.reporter.task(running.request.id) == Some(task))
    }

    /// Ends a task if it is running.
    pub(super) fn end_task(&mut self, task: TaskId) {
        let Some(id) = self.under_way(task).map(|running| running.request.id) else { return };
        self.report_event(EventKind::Note { text: format!("task {task} is ended at the request of a watcher") });
        self.kill(id);
    }
}
