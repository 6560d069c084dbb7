//! A run by its journal, and its form as evidence.

use crate::advise::{FinishedRun, FinishedTask, Worker};
use homing_locate::candidate_words;
use homing_model::event::{EventKind, PlannedBytes};
use homing_model::{Command, Outcome, RawText, Task, TaskId};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// A run by its journal.
#[derive(Default)]
pub struct Recorded {
    cwd: PathBuf,
    hosts: Vec<(Worker, Vec<String>)>,
    started: HashMap<TaskId, (usize, PlannedBytes, RawText)>,
    ended: Vec<(usize, PlannedBytes, u64, Vec<PathBuf>)>,
    /// Its duration, microseconds.
    pub us: u64,
}

impl Recorded {
    /// Takes in an event.
    pub fn add(&mut self, what: EventKind) {
        match what {
            EventKind::RunStarted { cwd, .. } => self.cwd = cwd.to_path(),
            EventKind::HostUp { host, slots, facts } => {
                let known = facts.aliases.into_iter().chain([facts.hostname, host.clone()]).collect();
                let worker = Worker { name: host, slots, link: facts.nic_bytes_per_s };
                match self.hosts.iter_mut().find(|(one, _)| one.name == worker.name) {
                    Some(again) => *again = (worker, known),
                    None => self.hosts.push((worker, known)),
                }
            }
            EventKind::TaskStarted { task, host, command, planned: Some(planned), .. } => {
                let at = self.hosts.iter().position(|(worker, _)| worker.name == host);
                if let Some(at) = at {
                    self.started.insert(task, (at, planned, command));
                }
            }
            EventKind::TaskEnded { task, outcome: Outcome::Exit(0), wall_us, .. } => {
                let Some((host, planned, command)) = self.started.remove(&task) else { return };
                let paths = words(command).map(|word| self.cwd.join(word.to_path())).collect();
                self.ended.push((host, planned, wall_us, paths));
            }
            _ => {}
        }
    }

    /// Returns the paths that its tasks may have read.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.ended.iter().flat_map(|(.., paths)| paths)
    }

    /// Returns the run, with hosts by their names as storage hosts, and tasks with the files that still exist.
    pub fn placed(self, at: &HashMap<PathBuf, usize>, holders: &HashSet<&str>) -> FinishedRun {
        let hosts = self.hosts.into_iter().map(|(worker, known)| {
            let name = known.into_iter().find(|name| holders.contains(name.as_str())).unwrap_or(worker.name);
            Worker { name, ..worker }
        });
        let tasks = self.ended.into_iter().filter_map(|(host, planned, wall_us, paths)| {
            let files: Vec<usize> = paths.iter().filter_map(|path| at.get(path).copied()).collect();
            let done = FinishedTask { host, wall_us, local: planned.local, remote: planned.remote, files };
            (!done.files.is_empty()).then_some(done)
        });
        FinishedRun { tasks: tasks.collect(), hosts: hosts.collect(), us: self.us }
    }
}

/// Returns the words of a recorded command that may name its inputs.
fn words(command: RawText) -> impl Iterator<Item = RawText> {
    candidate_words(&Task::of(Command::Shell(command))).into_iter()
}

#[cfg(test)]
#[path = "../../../../../tests/ended.rs"]
mod ended;

#[cfg(test)]
mod tests {
    use super::*;
    use ended::End;

    #[test]
    fn a_task_that_ended_well_is_told_with_the_paths_of_its_words() {
        let planned = PlannedBytes { local: 1, remote: 2, ..PlannedBytes::default() };
        let started = |task, planned: Option<PlannedBytes>| EventKind::TaskStarted {
            task,
            attempt: 1,
            host: "n1".into(),
            slot: 1,
            command: "wc -l /data/a 'b c' >out".into(),
            planned,
            why: None,
            after: None,
        };
        let ended =
            |task, status| EventKind::from(End { task, outcome: Outcome::Exit(status), wall_us: 7, ..End::default() });
        let up = EventKind::HostUp { host: "n1".into(), slots: 2, facts: Default::default() };
        let mut run = Recorded { cwd: "/work".into(), ..Recorded::default() };
        let events = [up, started(1, Some(planned.clone())), started(2, None), started(3, Some(planned.clone()))];
        events.into_iter().chain([ended(1, 0), ended(2, 0), ended(3, 1)]).for_each(|what| run.add(what));
        let [(0, told, 7, paths)] = &run.ended[..] else { panic!("{}", run.ended.len()) };
        assert_eq!(told, &planned);
        let paths: Vec<&str> = paths.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!(paths, ["/work/-l", "/data/a", "/work/b c"]);
    }
}
