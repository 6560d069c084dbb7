//! Tasks that print more than they may, or than there is room for.

use super::terms::{Running, end};
use super::{Action, Core};
use homing_launch::wire::{Ended, Stream};
use homing_model::Outcome;
use homing_model::text::keep_tail;
use homing_model::units::bytes;

/// Kept of the error output of a running task, bytes: a last line of [`homing_model::event::SAID_BYTES`] and blank
/// lines behind it.
const TAIL: usize = 1024;

impl Core {
    /// A running attempt printed something.
    pub fn printed(&mut self, ticket: u64, stream: Stream, bytes: &[u8]) {
        let Some(running) = self.running.get_mut(&ticket) else { return };
        running.printed[usize::from(stream == Stream::Err)] += bytes.len() as u64;
        if stream == Stream::Err {
            keep_tail(&mut running.tail, bytes, TAIL);
        }
        if self.policy.output_limit.is_some_and(|limit| running.printed.iter().sum::<u64>() > limit) {
            running.excessive = true;
            self.actions.extend(end(running, ticket, false));
        }
    }

    /// There is no room for more output: ends the task that has printed most. Returns its ticket.
    pub fn end_largest_output(&mut self) -> Option<u64> {
        let running = self.running.iter_mut().filter(|(_, running)| !running.killed);
        let (ticket, running) =
            running.max_by_key(|(ticket, running)| (running.printed.iter().sum::<u64>(), **ticket))?;
        running.excessive = true;
        let (task, printed) = (running.waiting.offer.task.id, bytes(running.printed.iter().sum()));
        let text = format!(
            "the disk that keeps the output of tasks is nearly full, and task {task} has printed {printed}, the most of \
             all that run: it is ended"
        );
        self.actions.push(Action::Note(text));
        self.actions.extend(end(running, *ticket, false));
        Some(*ticket)
    }

    /// How an attempt ended that may have printed too much, even if it was through before it could be ended.
    pub(super) fn limited(&self, running: &Running, ended: &Ended) -> Outcome {
        let rest = (ended.stdout.len() + ended.stderr.len()) as u64;
        let printed = running.printed.iter().sum::<u64>() + rest;
        match running.excessive || self.policy.output_limit.is_some_and(|limit| printed > limit) {
            true => Outcome::OutputLimit,
            false => ended.outcome.clone(),
        }
    }
}
