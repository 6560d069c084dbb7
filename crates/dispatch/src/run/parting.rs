//! The end of a run: workers are let go, and their last words heard.

use super::Shell;
use crate::core::Action;
use crate::settings::Listener;
use crate::wires::Arrival;
use homing_launch::Keeper;
use homing_wire::{FromWorker, ToWorker};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const GOODBYE: Duration = Duration::from_secs(5);

impl<L: Listener> Shell<'_, L> {
    /// Takes the last sample; counts the good-byes.
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

    /// Lets the workers go: `Finish`, their last words, then the end of their input.
    pub(super) fn part(&mut self, arrivals: &Receiver<Arrival>) {
        let mut finish = Vec::new();
        homing_wire::encode(&ToWorker::Finish, &mut finish).expect("a message without a list");
        let mut open = self.withdraw();
        for link in &mut self.links {
            if let Some(to) = link.to.as_ref() {
                open += usize::from(link.released || to.send(finish.clone()).is_ok());
            }
        }
        let deadline = Instant::now() + GOODBYE;
        while open > 0 {
            match arrivals.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                // One that a request of ours was granted to in the last moment ends as its input closes.
                Ok(Arrival::Gone { .. } | Arrival::Refused { .. } | Arrival::Up { .. }) => {
                    open = open.saturating_sub(1)
                }
                Ok(Arrival::From { at, messages }) => open = open.saturating_sub(self.last_words(at, messages)),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        for action in self.core.take_actions() {
            if let Action::Journal(what) = action {
                let _ = self.record(what);
            }
        }
        for link in &mut self.links {
            link.to = None;
        }
        let keepers = self.links.iter_mut().filter_map(|link| link.keeper.take());
        let ends: Vec<_> = keepers.filter_map(|keeper| end_apart(keeper, GOODBYE)).collect();
        for end in ends {
            let _ = end.join();
        }
    }
}

/// In a thread of its own where there is one: srun may take seconds to give its job back.
pub(super) fn end_apart(keeper: Keeper, grace: Duration) -> Option<JoinHandle<()>> {
    homing_threads::begin_or_do(move || {
        keeper.end(grace);
    })
}
