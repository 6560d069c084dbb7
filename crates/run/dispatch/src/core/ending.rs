//! The end of a run: on its own, by `--halt`, by a signal, for want of hosts.

use super::types::{Stage, end};
use super::{Action, AttemptRecord, Core};
use crate::admission::Io;
use crate::hosts::Hosts;
use homing_batch::{Decision, TaskCounts};
use homing_model::event::EventKind;
use homing_model::resource::too_much;
use homing_model::units::bytes;
use homing_model::{Outcome, Task};
use homing_os::clock::Mono;

/// The status that a shell returns for a program that SIGPIPE ended.
const SIGPIPE_STATUS: i32 = 141;
/// The status of a run for which no host was usable.
const NO_HOSTS: i32 = 254;

/// Returns why no host runs a task. `most` are the most slots of a host.
fn nowhere(task: &Task, most: u32, hosts: &Hosts) -> String {
    let cpus = task.cpus;
    if let Some((name, parts)) = task.resources.iter().find(|(name, parts)| hosts.most_of(name) < *parts) {
        return too_much(name, *parts, hosts.most_of(name));
    }
    if let Some((wanted, most)) = task.memory.zip(hosts.most_memory()).filter(|(wanted, most)| wanted > most) {
        // Rounded, both numbers may be equal.
        let round = bytes(wanted) != bytes(most);
        let [wanted, most] = [wanted, most].map(|n| if round { bytes(n) } else { format!("{n} bytes") });
        return format!(
            "it needs {wanted} ('memory'), but no host of this run has more than {most}; lower 'memory' or add a larger host"
        );
    }
    if cpus > most {
        return format!(
            "it needs {cpus} slots ('cpus'), but no host of this run has more than {most}; -j {cpus} gives each host \
             {cpus}"
        );
    }
    "no host of this run can run it: each lacks its files or resources, or it failed there".into()
}

impl Core {
    pub(super) fn consider_halt(&mut self, outcome: &Outcome) {
        if matches!(outcome, Outcome::Killed | Outcome::NotRun(_)) {
            return;
        }
        match self.halt.ended(outcome, self.ends()) {
            Decision::Go => {}
            Decision::DrainThenStop => self.stage = self.stage.max(Stage::Draining),
            Decision::KillNow => self.kill_all(),
        }
    }

    fn ends(&self) -> TaskCounts {
        TaskCounts { done: self.counts.done, failed: self.counts.failed(), total: self.counts.total }
    }

    pub(super) fn give_up_on_homeless(&mut self) {
        if self.expecting || !self.hosts.any_up() || !self.running.is_empty() || self.volume_access.pending() {
            return;
        }
        for id in self.placer.runnable_nowhere() {
            self.placer.remove(id);
            let Some(waiting) = self.waiting.remove(&id) else { continue };
            let text = nowhere(&waiting.offer.task, self.placer.most_slots(), &self.hosts);
            self.conclude(unstarted(waiting.offer.task, waiting.attempt, Outcome::CannotStart(text)));
        }
    }

    /// Ends a task that no host can start.
    pub fn refuse(&mut self, task: Task, why: String) {
        self.conclude(unstarted(task, 1, Outcome::CannotStart(why)));
    }

    /// Ends the run after a signal. No task starts any more. Running tasks end by themselves, unless the signal
    /// `kills`. `signal` is the number for the exit status.
    pub fn interrupt(&mut self, signal: i32, kills: bool) {
        self.signal.get_or_insert(signal);
        let running = self.running.len();
        if !kills && running > 0 {
            self.stage = self.stage.max(Stage::Draining);
            let text = format!("no new tasks; waiting for {running} still running (Ctrl-C again to kill them)");
            self.actions.push(Action::Note(text));
            return;
        }
        if running > 0 && self.stage < Stage::Killing {
            self.actions.push(Action::Note(format!("no new tasks; ending {running} still running")));
        }
        self.kill_all();
    }

    /// Kills all tasks at once: after SIGTERM from outside, or if the output has no reader.
    pub fn kill_all(&mut self) {
        self.stage = Stage::Killing;
        for (ticket, running) in &mut self.running {
            self.actions.extend(end(running, *ticket, false));
        }
    }

    /// Ends the run because the output has no reader (`| head`).
    pub fn nobody_reads(&mut self) {
        self.unread = true;
        self.kill_all();
    }

    /// Applies limits of time: `--timeout` in per cent of the median.
    pub fn tick(&mut self, now: Mono) {
        if matches!(self.policy.io, Io::Fixed(_)) {
            self.release_idle_kinds(now);
        }
        let Some(share) = self.policy.timeout_of_median else { return };
        if self.walls.len() < 3 {
            return;
        }
        let limit_us = self.walls[self.walls.len() / 2] as f64 * share;
        for (ticket, running) in &mut self.running {
            let elapsed_us = now.us_since(running.started) as f64;
            if elapsed_us > limit_us {
                self.actions.extend(end(running, *ticket, true));
            }
        }
    }

    /// Returns the exit status of the run as GNU parallel defines it, and the last record.
    pub fn finish(&mut self) -> (i32, EventKind) {
        let cut = !self.source_ended || self.broken.is_some();
        let counts = self.counts.at_the_end((self.waiting.len() + self.after.len()) as u64, cut);
        let undone = cut || counts.contains_key("unfinished");
        let exit = match self.broken {
            // The status that a shell returns for a program that a signal ended. It precedes all other reasons for an
            // incomplete run.
            _ if undone && self.signal.is_some() => 128 + self.signal.unwrap_or_default(),
            Some(exit) => exit,
            None if self.unread => SIGPIPE_STATUS,
            None if !self.hosts.any_up() && undone => NO_HOSTS,
            None => self.halt.exit_status(self.ends()),
        };
        (exit, EventKind::RunEnded { exit, counts })
    }
}

/// Returns the last record of a run that never began, because it lacks hosts.
pub(crate) fn without_hosts(ending: EventKind) -> EventKind {
    match ending {
        EventKind::RunEnded { counts, .. } => EventKind::RunEnded { exit: NO_HOSTS, counts },
        other => other,
    }
}

pub(super) fn unstarted(task: Task, attempt: u32, outcome: Outcome) -> AttemptRecord {
    AttemptRecord {
        ticket: 0,
        ran: Some(homing_journal::ran(&task)),
        task,
        attempt,
        host: String::new(),
        outcome,
        start_ns: 0,
        wall_us: 0,
        ended: None,
        stdout_bytes: 0,
        stderr_bytes: 0,
        tail: Vec::new(),
        last: true,
    }
}
