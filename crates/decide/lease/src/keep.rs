//! The leases of one who goes on for long: looks as often as it pays, and what comes of them.

use super::{Leases, Outlook, Place, Successor, Wish};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// What is wished for changes with each task that ends: looks are no closer than this.
const PAUSE: Duration = Duration::from_millis(150);
/// Between two looks at what others have, where there are some.
const LOOK: Duration = Duration::from_millis(250);
/// The same where there are none.
const ALONE: Duration = Duration::from_secs(1);
/// Who has how many is told to people no more often.
const TELL: Duration = Duration::from_secs(1);

/// How long whoever begins to share waits for the first look; after that it goes on without leases.
pub const SOON: Duration = Duration::from_secs(5);

/// What there is to tell of a server's leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// From now on so many; `turn` counts the changes.
    MayUse {
        /// Of this change.
        turn: u64,
        /// Tasks that may be begun in all.
        may_use: u32,
    },
    /// Who has how many.
    Outlook(Outlook),
    /// Once, for the user.
    Note(String),
    /// There are no leases, and why.
    Without(String),
}

impl News {
    /// A server that has said nothing within [`SOON`].
    pub fn silent() -> News {
        News::Without(format!("its volume did not answer within {} s", SOON.as_secs()))
    }
}

/// Whoever wished has gone.
struct Over;

/// The last wish of those that come within `least`, or the first that comes within `most`.
fn next(wishes: &Receiver<(u64, Wish)>, least: Duration, most: Duration) -> Result<Option<(u64, Wish)>, Over> {
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

/// Takes and gives back leases as it is wished, and tells what may be used, until there are no more wishes or nobody
/// listens. A wish comes with the last turn that its sender knows of. A file server that is slow makes it wait: it wants
/// a thread of its own.
pub fn keep(place: Place, wishes: &Receiver<(u64, Wish)>, tell: impl Fn(News) -> bool) {
    keep_in_line(place, None, wishes, tell);
}

/// The same by one of a line, which is followed by another where it is killed.
pub fn keep_in_line(
    place: Place,
    successor: Option<&Successor>,
    wishes: &Receiver<(u64, Wish)>,
    tell: impl Fn(News) -> bool,
) {
    let mut leases = match Leases::open_in_line(place, successor) {
        Ok((leases, told)) => {
            told.into_iter().for_each(|text| _ = tell(News::Note(text)));
            leases
        }
        Err(why) => {
            tell(News::Without(why));
            return;
        }
    };
    let (mut turn, mut seen, mut wish) = (0, 0, Wish::default());
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
                tell(News::Without(why));
                return;
            }
            Ok(outlook) => outlook,
            Err(e) => {
                tell(News::Without(format!("its leases cannot be seen any more: {e}")));
                return;
            }
        };
        others = outlook.others;
        if may_use.replace(outlook.may_use) != Some(outlook.may_use) {
            turn += 1;
            tell(News::MayUse { turn, may_use: outlook.may_use });
        }
        let due = told.as_ref().is_none_or(|(at, last)| at.elapsed() >= TELL && *last != outlook);
        if due {
            told = Some((Instant::now(), outlook.clone()));
            tell(News::Outlook(outlook));
        }
    }
}
