//! Ends tasks that print more than they may. If the disk is nearly full, ends the task that has printed most.

use super::types::{TaskAttempt, end};
use super::{Action, Core};
use homing_launch::wire::{AttemptEnd, OutputStream};
use homing_model::Outcome;
use homing_model::text::keep_tail;
use homing_model::units::bytes;

/// The bytes of a running task's error output that are kept: a last line of [`homing_model::event::SAID_BYTES`], and
/// blank lines after it.
const TAIL: usize = 1024;

impl Core {
    /// Counts the output of a running attempt.
    pub fn printed(&mut self, ticket: u64, stream: OutputStream, bytes: &[u8]) {
        let Some(running) = self.running.get_mut(&ticket) else { return };
        running.printed[usize::from(stream == OutputStream::Err)] += bytes.len() as u64;
        if stream == OutputStream::Err {
            keep_tail(&mut running.tail, bytes, TAIL);
        }
        if self.policy.output_limit.is_some_and(|limit| running.printed.iter().sum::<u64>() > limit) {
            running.excessive = true;
            self.actions.extend(end(running, ticket, false));
        }
    }

    /// Ends the task that has printed most, because the disk is nearly full. Returns its ticket.
    pub fn end_largest_output(&mut self) -> Option<u64> {
        let running = self.running.iter_mut().filter(|(_, running)| !running.killed);
        let (ticket, running) =
            running.max_by_key(|(ticket, running)| (running.printed.iter().sum::<u64>(), **ticket))?;
        running.excessive = true;
        let (task, printed) = (running.waiting.offer.task.id, bytes(running.printed.iter().sum()));
        let text = format!(
            "the disk for the output of tasks is nearly full: ending task {task}, which has printed most, {printed}"
        );
        self.actions.push(Action::Note(text));
        self.actions.extend(end(running, *ticket, false));
        Some(*ticket)
    }

    /// Returns the outcome of an attempt that may have printed too much, even if it ended before it could be killed.
    pub(super) fn limited(&self, running: &TaskAttempt, ended: &AttemptEnd) -> Outcome {
        let rest = (ended.stdout.len() + ended.stderr.len()) as u64;
        let printed = running.printed.iter().sum::<u64>() + rest;
        match running.excessive || self.policy.output_limit.is_some_and(|limit| printed > limit) {
            true => Outcome::OutputLimit,
            false => ended.outcome.clone(),
        }
    }
}
