//! The loop that keeps the leases of a run or a runner. It looks at the files of others at intervals, and reports each
//! change of the number that may be used.

use super::{LeaseDemand, LeaseFolder, Leases, Outlook, Successor};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Shortest pause between looks: wishes change with each task that ends.
const PAUSE: Duration = Duration::from_millis(150);
/// Interval of looks at the leases of others, if there are others.
const LOOK: Duration = Duration::from_millis(250);
/// The same if there are none.
const ALONE: Duration = Duration::from_secs(1);
/// Shortest interval of reports on the users of the leases.
const TELL: Duration = Duration::from_secs(1);

/// How long a new process waits for the first look; after that it goes on without leases.
pub const SOON: Duration = Duration::from_secs(5);

/// News about a server's leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseEvent {
    /// The number that may be used from now on; `turn` counts the changes.
    MayUse {
        /// The number of this change.
        turn: u64,
        /// Tasks that may be begun in all.
        may_use: u32,
    },
    /// The numbers of all users.
    Outlook(Outlook),
    /// A line for the user, sent once.
    Note(String),
    /// There are no leases, for this reason.
    Without(String),
}

impl LeaseEvent {
    /// Returns the news of a server that has not answered within [`SOON`].
    pub fn silent() -> LeaseEvent {
        LeaseEvent::Without(format!("its volume did not answer within {} s", SOON.as_secs()))
    }
}

/// The sender of wishes has gone.
struct Over;

/// Returns the last wish that comes within `least`, or the first that comes within `most`.
fn next(
    wishes: &Receiver<(u64, LeaseDemand)>,
    least: Duration,
    most: Duration,
) -> Result<Option<(u64, LeaseDemand)>, Over> {
    let (begun, mut last) = (Instant::now(), None);
    loop {
        let until = if last.is_some() { least } else { most };
        match wishes.recv_timeout(until.saturating_sub(begun.elapsed())) {
            Ok(wish) => last = Some(wish),
            Err(RecvTimeoutError::Timeout) => return Ok(last),
            Err(RecvTimeoutError::Disconnected) => return Err(Over),
        }
    }
}

/// Takes and gives back leases according to the wishes, and reports the number that may be used, until no more wishes
/// can come. With each wish comes the turn of the last [`LeaseEvent::MayUse`] that its sender has handled. Leases are
/// given back only after that news was handled, since a task could begin in between. A slow file server blocks this
/// function: it needs a thread of its own.
pub fn keep(place: LeaseFolder, wishes: &Receiver<(u64, LeaseDemand)>, on_event: impl Fn(LeaseEvent) -> bool) {
    keep_in_line(place, None, wishes, on_event);
}

/// Like [`keep`], for a process of a line, which is followed by another one if it is killed.
pub fn keep_in_line(
    place: LeaseFolder,
    successor: Option<&Successor>,
    wishes: &Receiver<(u64, LeaseDemand)>,
    tell: impl Fn(LeaseEvent) -> bool,
) {
    let mut leases = match Leases::open_in_line(place, successor) {
        Ok((leases, told)) => {
            told.into_iter().for_each(|text| _ = tell(LeaseEvent::Note(text)));
            leases
        }
        Err(why) => {
            tell(LeaseEvent::Without(why));
            return;
        }
    };
    let (mut turn, mut seen, mut wish) = (0, 0, LeaseDemand::default());
    let (mut may_use, mut others) = (None, false);
    let mut told: Option<(Instant, Outlook)> = None;
    loop {
        let least = if turn > 0 { PAUSE } else { Duration::ZERO };
        match next(wishes, least, if others { LOOK } else { ALONE }) {
            Ok(Some(last)) => (seen, wish) = last,
            Ok(None) => {}
            Err(Over) => return,
        }
        let outlook = match leases.turn(wish, seen == turn, Instant::now()) {
            Ok(outlook) if outlook.gave_up => {
                let why = "others have had all leases for an hour".to_string();
                tell(LeaseEvent::Without(why));
                return;
            }
            Ok(outlook) => outlook,
            Err(e) => {
                tell(LeaseEvent::Without(format!("its leases can no longer be read: {e}")));
                return;
            }
        };
        others = outlook.others;
        if may_use.replace(outlook.may_use) != Some(outlook.may_use) {
            turn += 1;
            tell(LeaseEvent::MayUse { turn, may_use: outlook.may_use });
        }
        let due = told.as_ref().is_none_or(|(at, last)| at.elapsed() >= TELL && *last != outlook);
        if due {
            told = Some((Instant::now(), outlook.clone()));
            tell(LeaseEvent::Outlook(outlook));
        }
    }
}
