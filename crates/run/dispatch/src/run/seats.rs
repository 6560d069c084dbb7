//! The slots of this machine that jobs of its queue also use.

use super::{Shell, TICK};
use crate::settings::{Listener, Seats};
use homing_launch::Via;
use std::time::Instant;

/// The coordinator's side of these slots.
pub(super) struct Seated {
    seats: Box<dyn Seats>,
    /// The last number of wanted slots, and when it was sent.
    told: Option<(u32, Instant)>,
}

impl Seated {
    pub fn new(seats: Box<dyn Seats>) -> Seated {
        Seated { seats, told: None }
    }
}

impl<L: Listener> Shell<'_, L> {
    /// Takes slots for tasks that could start here, or returns unused ones. Renews the request at intervals, because
    /// others may want slots.
    pub(super) fn settle_seats(&mut self) {
        let Some(seated) = &mut self.seated else { return };
        let here = self.links.iter().filter(|link| link.plan.via == Via::Local);
        let Some(ix) = here.filter_map(|link| link.ix).next() else { return };
        let (used, wanted) = self.core.wants(ix);
        if seated.told.is_none_or(|(before, at)| before != wanted || at.elapsed() >= TICK) {
            self.core.granted(ix, seated.seats.settle(used, wanted));
            seated.told = Some((wanted, Instant::now()));
        }
    }
}
