//! One lease of the file server, for as long as a copy reads from it.

use crate::ask::{Answer, Gate};
use homing_folder::lease::{Leases, Place, Wish};
use std::io;
use std::time::{Duration, Instant};

/// Between two looks at what others have.
const LOOK: Duration = Duration::from_millis(500);

/// Takes part until the channel ends. Each change of whether there is a lease is told; where none can be had the
/// copy goes on without one.
pub fn hold(gate: Gate, say: &mut dyn FnMut(Answer) -> io::Result<()>) -> io::Result<()> {
    let Gate { folder, server, limit } = gate;
    let mut leases = match Leases::open(Place { folder, server, limit, unfit: None }) {
        Ok((leases, told)) => {
            told.map_or(Ok(()), |text| say(Answer::Note(text)))?;
            leases
        }
        Err(why) => return without(&why, say),
    };
    let mut has = None;
    loop {
        let wish = Wish { wanted: 1, used: u32::from(has == Some(true)), limit: None };
        let outlook = match leases.turn(wish, true, Instant::now()) {
            Ok(outlook) if outlook.gave_up => return without("others have had all leases for an hour", say),
            Ok(outlook) => outlook,
            Err(e) => return without(&format!("its leases cannot be seen any more: {e}"), say),
        };
        let now = Some(outlook.may_use > 0);
        if has != now {
            has = now;
            say(Answer::Lease(outlook.may_use > 0))?;
        }
        std::thread::sleep(LOOK);
    }
}

fn without(why: &str, say: &mut dyn FnMut(Answer) -> io::Result<()>) -> io::Result<()> {
    say(Answer::Note(format!("the copy is not counted at its file server: {why}")))?;
    say(Answer::Lease(true))
}
