//! Sends the watchers of a run the state that is not in its journal, and carries out their requests.

use super::Shell;
use crate::settings::Listener;
use crate::watch::WatcherRequest;
use homing_model::live::SHOWN_BYTES;
use std::time::Instant;

impl<L: Listener> Shell<'_, L> {
    pub(super) fn tell_watchers(&mut self) {
        match self.watched.look(Instant::now()) {
            None => return,
            Some(false) => return self.shown.clear(),
            Some(true) => {}
        }
        for asked in self.watched.take_requests() {
            match asked {
                WatcherRequest::End(task) => self.core.end_task(task),
                WatcherRequest::Show(task) => self.shown.extend(self.core.show_task(task).map(|ticket| (task, ticket))),
            }
        }
        for (task, ticket) in &self.shown {
            let [out, err] = self.printer.so_far(*ticket, SHOWN_BYTES);
            self.watched.show(*task, &[out, err].concat());
        }
        self.watched.write_state(&self.core.live(homing_os::clock::wall_ns()));
    }
}
