//! The slots of this machine that its queue's jobs use too.

use super::{Shell, TICK};
use crate::settings::{Listener, Seats};
use homing_launch::Via;
use std::time::Instant;

/// The coordinator's end of it.
pub(super) struct Seated {
    seats: Box<dyn Seats>,
    /// What was wanted last, and when that was said.
    told: Option<(u32, Instant)>,
}

impl Seated {
    pub fn new(seats: Box<dyn Seats>) -> Seated {
        Seated { seats, told: None }
    }
}

impl<L: Listener> Shell<'_, L> {
    /// Takes slots for what could start here, or gives back what is not used; looks now and then who else wants some.
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
