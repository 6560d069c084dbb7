//! Those who watch the run are told what its journal does not tell, and may ask for little things. A coordinator that
//! nobody watches looks once a second whether a file is there.

use super::Shell;
use crate::settings::Listener;
use crate::watch::{Asked, SHOWN, Watch};
use homing_model::TaskId;
use std::collections::HashMap;
use std::time::{Duration, Instant, SystemTime};

/// Between two looks. People see no more.
const LOOK: Duration = Duration::from_secs(1);
/// Whoever has not said for so long that he watches has gone.
const GONE: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct Watched {
    looked: Option<Instant>,
    /// What the file's time was, and since when it is: by our clock, as the run's folder may be another machine's.
    said: Option<(SystemTime, Instant)>,
    /// Tickets of tasks whose output is wanted.
    shown: HashMap<TaskId, u64>,
    has_told: bool,
}

impl Watched {
    fn is_watched(&mut self, said: Option<SystemTime>, now: Instant) -> bool {
        match (self.said, said) {
            (_, None) => self.said = None,
            (Some((known, _)), Some(said)) if known == said => {}
            (_, Some(said)) => self.said = Some((said, now)),
        }
        self.said.is_some_and(|(_, since)| now - since < GONE)
    }
}

impl<L: Listener> Shell<'_, L> {
    pub(super) fn tell_watchers(&mut self) {
        let now = Instant::now();
        if self.watched.looked.is_some_and(|looked| now - looked < LOOK) {
            return;
        }
        self.watched.looked = Some(now);
        let watch = Watch::of(self.journal.dir());
        if !self.watched.is_watched(watch.said(), now) {
            self.watched.shown.clear();
            return;
        }
        self.watched.has_told = true;
        for asked in watch.asked() {
            match asked {
                Asked::End(task) => self.core.end_task(task),
                Asked::Show(task) => {
                    self.watched.shown.extend(self.core.show_task(task).map(|ticket| (task, ticket)));
                }
            }
        }
        for (task, ticket) in &self.watched.shown {
            let [out, err] = self.printer.so_far(*ticket, SHOWN);
            // A full disk keeps a run from nothing.
            let _ = watch.show(*task, &[out, err].concat());
        }
        let _ = watch.tell(&self.core.live(homing_clock::wall_ns()));
    }

    /// What was told is gone with the run.
    pub(super) fn leave_watchers(&self) {
        if self.watched.has_told {
            Watch::of(self.journal.dir()).end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_nothing_for_a_while_has_gone() {
        let (mut watched, begun) = (Watched::default(), Instant::now());
        let said = |s| Some(SystemTime::UNIX_EPOCH + Duration::from_secs(s));
        let at = |s| begun + Duration::from_secs(s);
        assert!(!watched.is_watched(None, begun));
        assert!(watched.is_watched(said(900), at(1)) && watched.is_watched(said(900), at(5)));
        assert!(!watched.is_watched(said(900), at(6)));
        // Whose clock runs the other way is there, too.
        assert!(watched.is_watched(said(7), at(7)));
    }
}
