//! Reports a build as the events of a run, for a journal. Time is an argument.

use crate::chains::Chains;
use crate::file_words;
use crate::host::BuildHost;
use crate::running::RecipeAttempt;
use homing_launch::HostLink;
use homing_launch::wire::AttemptEnd;
use homing_model::event::{EventKind, PlannedBytes, parts};
use homing_model::{Event, IoCounters, Outcome, TaskId};
use std::collections::HashMap;

/// A receiver of the events of a build, in order.
pub trait Listener: Send {
    /// Receives the next event. The build waits meanwhile.
    fn event(&mut self, event: Event);
}

/// Discards all events.
impl Listener for () {
    fn event(&mut self, _: Event) {}
}

/// A recipe under its number in the journal.
#[derive(Clone, Copy, Default)]
struct Numbered {
    task: TaskId,
    attempt: u32,
    failed: bool,
}

/// Sends the events of a build to a listener.
pub struct BuildReporter {
    listener: Box<dyn Listener>,
    /// Recipes that may run again, by their connection.
    numbers: HashMap<u64, Numbered>,
    chains: Chains,
    last: TaskId,
}

impl BuildReporter {
    /// Makes a reporter before any event.
    pub fn to(listener: Box<dyn Listener>) -> BuildReporter {
        BuildReporter { listener, numbers: HashMap::new(), chains: Chains::default(), last: 0 }
    }

    /// Returns the task number of a connection's recipe that was given to a host, and may run again.
    pub fn task(&self, id: u64) -> Option<TaskId> {
        self.numbers.get(&id).map(|numbered| numbered.task)
    }

    /// Reports an event that is not about a recipe.
    pub fn report_event(&mut self, at_ns: i64, what: EventKind) {
        self.listener.event(Event { at_ns, what });
    }

    /// Reports that a recipe is given to a host.
    pub fn started(&mut self, at_ns: i64, running: &RecipeAttempt, hosts: &[HostLink<BuildHost>]) {
        let numbered = self.numbers.entry(running.request.id).or_insert_with(|| {
            self.last += 1;
            Numbered { task: self.last, ..Numbered::default() }
        });
        numbered.attempt += 1;
        let Numbered { task, attempt, .. } = *numbered;
        if std::mem::take(&mut numbered.failed) {
            self.report_event(at_ns, EventKind::TaskAgain { task });
        }
        let asked = &running.request;
        let cwd = asked.cwd.to_path();
        let named: Vec<_> = file_words(&asked.text).iter().map(|word| cwd.join(word)).collect();
        let after = self.chains.begin(task, &asked.part, &named, at_ns);
        let started = EventKind::TaskStarted {
            task,
            attempt,
            host: hosts[running.host].name.clone(),
            slot: running.slot as u32 + 1,
            command: running.request.text.as_str().into(),
            planned: planned(running, hosts),
            why: Some(running.choice.why.to_string()),
            after,
        };
        self.report_event(at_ns, started);
    }

    /// Corrects the count of attempts: the recipe has not begun there, and will be given to a host again.
    pub fn has_not_begun(&mut self, running: &RecipeAttempt) {
        if let Some(numbered) = self.numbers.get_mut(&running.request.id) {
            numbered.attempt -= 1;
        }
    }

    /// Reports the end that a worker sent. A failed recipe may still run again, if a fresh look finds a missing file.
    pub fn ended(&mut self, at_ns: i64, running: &RecipeAttempt, host: &str, ended: &AttemptEnd) {
        let used = Used { wall_us: ended.wall_us, io: ended.io.clone(), io_wait: ended.io_wait.clone() };
        self.end(at_ns, running, host, ended.outcome.clone(), used, true);
    }

    /// Reports an end that no worker has sent.
    pub fn gave_up(&mut self, at_ns: i64, running: &RecipeAttempt, host: &str, outcome: Outcome, last: bool) {
        let used = Used { wall_us: running.sent.elapsed().as_micros() as u64, ..Used::default() };
        self.end(at_ns, running, host, outcome, used, last);
    }

    fn end(&mut self, at_ns: i64, running: &RecipeAttempt, host: &str, outcome: Outcome, used: Used, last: bool) {
        let id = running.request.id;
        let Some(numbered) = self.numbers.get_mut(&id) else { return };
        let Numbered { task, attempt, .. } = *numbered;
        let success = outcome.is_success();
        numbered.failed = last && !success;
        self.chains.end(task, at_ns, success);
        if success {
            self.numbers.remove(&id);
        }
        let [stdout_bytes, stderr_bytes] = running.printed;
        let Used { wall_us, io, io_wait } = used;
        let ended = EventKind::TaskEnded {
            task,
            attempt,
            host: host.into(),
            outcome,
            start_ns: at_ns - wall_us as i64 * 1000,
            wall_us,
            io,
            io_wait,
            stdout_bytes,
            stderr_bytes,
            said: (last && !success).then(|| running.failure_message()).flatten(),
            last,
            ran: None,
        };
        self.report_event(at_ns, ended);
    }
}

/// The resources that an attempt used.
#[derive(Default)]
struct Used {
    wall_us: u64,
    io: IoCounters,
    io_wait: Option<homing_model::IoWait>,
}

/// Returns where its inputs are; `None` if that is unknown.
fn planned(running: &RecipeAttempt, hosts: &[HostLink<BuildHost>]) -> Option<PlannedBytes> {
    let (inputs, own) = (&running.request.inputs, &hosts[running.host]);
    if inputs.on.is_empty() {
        return None;
    }
    let local = own.holds(inputs);
    let remote = inputs.bytes.saturating_sub(local);
    let up = hosts.iter().filter(|host| host.slots > 0).count().max(1) as u64;
    let held: u64 = hosts.iter().map(|host| host.holds(inputs)).sum();
    let name = |holder: &String| {
        let of_build = hosts.iter().find(|host| host.is_called(holder));
        of_build.map_or_else(|| holder.clone(), |host| host.name.clone())
    };
    let others = inputs.on.iter().filter(|(holder, bytes)| **bytes > 0 && !own.is_called(holder));
    let others: Vec<(String, u64)> = others.map(|(holder, bytes)| (name(holder), *bytes)).collect();
    let from = if remote == 0 { Vec::new() } else { parts(remote, &others) };
    Some(PlannedBytes { local, remote, remote_if_in_turn: inputs.bytes.saturating_sub(held / up), from })
}

#[cfg(test)]
mod tests;
