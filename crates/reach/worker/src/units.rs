//! Leases units of this host's resources for a task, and names them in its environment.

use crate::attempt::{AttemptStop, Handle};
use crate::shared::WorkerState;
use homing_launch::wire::FromWorker;
use homing_lease::{UnitError, UnitLease, UnitVariables, UnitWish, take_units};
use homing_model::Outcome;
use homing_model::resource::shown_amount;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time after which the user learns that a task waits. Tasks of the same run release units within one round trip.
const WAITS_LONG: Duration = Duration::from_secs(2);

/// Waits for the units of a task and takes them. Returns the leases and the variables that name the units, or the end
/// of a task that does not start.
pub(crate) fn take(
    shared: &WorkerState,
    handle: &Handle,
    wishes: &[UnitWish],
) -> Result<(Vec<UnitLease>, UnitVariables), Outcome> {
    let taken = take_units(wishes, |wish, waited| {
        if waited > WAITS_LONG && !shared.told_units.swap(true, Ordering::SeqCst) {
            let (name, amount) = (&wish.name, shown_amount(wish.parts));
            let text = format!("a task waits for {amount} of {name}: other runs, jobs or users have the rest");
            shared.send(FromWorker::Note(text));
        }
        handle.fate() == AttemptStop::Free && !shared.leaving.load(Ordering::SeqCst)
    });
    taken.map_err(|error| match error {
        UnitError::Unwanted => Outcome::Killed,
        UnitError::Unkept(why) => Outcome::CannotStart(why),
    })
}
