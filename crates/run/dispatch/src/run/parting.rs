//! The end of a run: workers are released, and their last messages read.

use super::Shell;
use crate::core::Action;
use crate::settings::Listener;
use crate::transport::Arrival;
use homing_launch::HostEvent;
use homing_launch::wire::{FromWorker, ToWorker};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

const GOODBYE: Duration = Duration::from_secs(5);

impl<L: Listener> Shell<'_, L> {
    /// Takes the last sample of a worker, and returns the number of good-byes.
    fn last_words(&mut self, at: usize, messages: Vec<FromWorker>) -> usize {
        let mut byes = 0;
        for message in messages {
            match (message, self.links[at].ix) {
                (FromWorker::Bye, _) => byes += 1,
                (FromWorker::Sample(sample), Some(ix)) => self.core.sample(ix, sample),
                _ => {}
            }
        }
        byes
    }

    /// Releases the workers: sends `Finish`, reads their last messages, then closes their input. A message that was
    /// not sent before was not journalled either, for example on a full disk. It must not start a task without a
    /// record.
    pub(super) fn part(&mut self, arrivals: &Receiver<Arrival>) {
        let mut open = self.withdraw() + self.links.say_last(&ToWorker::Finish, |link| !link.released);
        let deadline = Instant::now() + GOODBYE;
        while open > 0 {
            match arrivals.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                // A worker that was granted in the last moment ends when its input closes.
                Ok(Arrival::Host(_, HostEvent::Gone { .. } | HostEvent::Refused(_) | HostEvent::Up { .. })) => {
                    open = open.saturating_sub(1)
                }
                Ok(Arrival::Host(at, HostEvent::From(messages))) => {
                    open = open.saturating_sub(self.last_words(at, messages))
                }
                Ok(_) => {}
                Err(_) => break,
            }
        }
        for action in self.core.take_actions() {
            if let Action::Journal(what) = action {
                let _ = self.record(what);
            }
        }
        self.links.end(GOODBYE);
    }
}
