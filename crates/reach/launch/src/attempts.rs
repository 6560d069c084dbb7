//! The attempts under way, by ticket, the number by which their worker knows them. An attempt is lost with its host.
//! Until its host counts as lost, the attempt may run, and no other host tries the task.

use crate::wire::ToWorker;
use homing_model::Outcome;
use std::collections::HashMap;
use std::ops::{Deref, DerefMut};

/// Losses of its host after which a task is given up, unless the user set the number of tries. A command that takes
/// its machine down must not take all of them down.
pub const MOST_LOSSES: u32 = 3;

/// An attempt under way, with the owner's own state of it.
pub struct Attempt<A> {
    /// The number of its host.
    pub host: usize,
    /// Whether it is being ended.
    pub killed: bool,
    /// The owner's own state.
    pub of: A,
}

impl<A> Attempt<A> {
    /// Returns an attempt that was handed to `host`.
    pub fn on(host: usize, of: A) -> Attempt<A> {
        Attempt { host, killed: false, of }
    }

    /// Returns the message that ends it, unless it is being ended already. `grace_ms` lies between SIGTERM and
    /// SIGKILL.
    pub fn kill(&mut self, ticket: u64, grace_ms: u32, timed_out: bool) -> Option<ToWorker> {
        let kill = ToWorker::Kill { ticket, grace_ms, timed_out };
        (!std::mem::replace(&mut self.killed, true)).then_some(kill)
    }

    /// Returns the outcome of a lost attempt. One that was being ended counts as killed: its user wants no other
    /// attempt.
    pub fn lost(&self, reason: &str) -> Outcome {
        if self.killed { Outcome::Killed } else { Outcome::Lost(reason.into()) }
    }
}

impl<A> Deref for Attempt<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.of
    }
}

impl<A> DerefMut for Attempt<A> {
    fn deref_mut(&mut self) -> &mut A {
        &mut self.of
    }
}

/// All attempts under way, by ticket.
pub type Attempts<A> = HashMap<u64, Attempt<A>>;

/// Removes and returns the attempts of a host on which no task runs any more, in the order of their tickets.
pub fn lose<A>(attempts: &mut Attempts<A>, host: usize) -> Vec<(u64, Attempt<A>)> {
    let mut lost: Vec<_> = attempts.extract_if(|_, attempt| attempt.host == host).collect();
    lost.sort_unstable_by_key(|(ticket, _)| *ticket);
    lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_lost_with_their_host_in_their_order_and_whoever_was_ended_is_not_wanted() {
        let given = [(0, "a"), (1, "b"), (0, "c")].map(|(host, of)| Attempt::on(host, of));
        let mut attempts: Attempts<&str> = (1..).zip(given).collect();
        let kill = |attempt: &mut Attempt<&str>| attempt.kill(3, 500, false);
        let third = attempts.get_mut(&3).unwrap();
        assert_eq!(kill(third), Some(ToWorker::Kill { ticket: 3, grace_ms: 500, timed_out: false }));
        assert_eq!(kill(third), None, "once");
        let lost: Vec<_> =
            lose(&mut attempts, 0).into_iter().map(|(t, attempt)| (t, attempt.lost("cut"), attempt.of)).collect();
        assert_eq!(lost, [(1, Outcome::Lost("cut".into()), "a"), (3, Outcome::Killed, "c")]);
        assert!(lose(&mut attempts, 0).is_empty() && attempts.len() == 1);
    }
}
