//! The journal of a build, the same as that of `homing run`. It begins with the first recipe that a host gets.
//!
//! A thread of its own writes the journal, so that no recipe waits for a home on a slow file server. The thread also
//! serves users who watch the build.

use crate::cmd::opening::opening;
use homing_dispatch::watch::{Watched, WatcherRequest};
use homing_journal::{Counts, FOLLOWED_EVERY, Journal, JournalError};
use homing_make::{Asker, Listener};
use homing_model::event::EventKind;
use homing_model::{Event, TaskId};
use homing_mounts::FS_TIMEOUT;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

/// A build that is being recorded.
pub struct BuildRecorder {
    words: Sender<Word>,
    writer: Option<JoinHandle<Closed>>,
}

/// The result of a record.
#[derive(Default)]
pub struct Closed {
    /// The name of the run; none if no recipe ran or the journal could not be written.
    pub run: Option<String>,
    /// Lines on the critical path.
    pub path: Vec<String>,
}

/// A message to the writer.
enum Word {
    /// The coordinator is at work.
    Begun(Asker),
    /// The build is over, with this status.
    Ended(i32),
}

/// Passes on the events of the build.
struct Ear(Sender<Event>);

impl Listener for Ear {
    fn event(&mut self, event: Event) {
        let _ = self.0.send(event);
    }
}

impl BuildRecorder {
    /// Opens the record of the build that begins now in `cwd`, and returns the listener that feeds it. A failure to
    /// write is reported and does not stop the build.
    pub fn open(cwd: &Path) -> (BuildRecorder, Box<dyn Listener>) {
        let ((words, said), (ear, events)) = (channel(), channel());
        let page = Page::new(cwd);
        let writer = homing_os::threads::begin(move || write(page, &events, &said));
        let writer = writer.map_err(|e| unrecorded(&e)).ok();
        (BuildRecorder { words, writer }, Box::new(Ear(ear)))
    }

    /// Gives the writer the interface to the coordinator, which answers the requests of users who watch.
    pub fn begun(&self, asker: Asker) {
        let _ = self.words.send(Word::Begun(asker));
    }

    /// Ends the record with the exit status of the build. A silent file server delays this for a limited time only.
    pub fn close(self, exit: i32) -> Closed {
        let _ = self.words.send(Word::Ended(exit));
        let Some(writer) = self.writer else { return Closed::default() };
        let Some(closed) = homing_os::threads::within(FS_TIMEOUT, move || writer.join()) else {
            unrecorded(&format!("the folder of runs did not answer within {} s", FS_TIMEOUT.as_secs()));
            return Closed::default();
        };
        closed.unwrap_or_default()
    }
}

/// Writes until the build is over. Events wait in their channel meanwhile and wake no thread.
fn write(mut page: Page, events: &Receiver<Event>, said: &Receiver<Word>) -> Closed {
    loop {
        let word = said.recv_timeout(FOLLOWED_EVERY);
        for event in events.try_iter() {
            page.take(event);
        }
        match word {
            Ok(Word::Begun(asker)) => page.asker = Some(asker),
            Ok(Word::Ended(exit)) => return page.end(exit),
            Err(RecvTimeoutError::Timeout) => page.flush(),
            Err(RecvTimeoutError::Disconnected) => return Closed::default(),
        }
    }
}

/// The state of the writer: written and pending events.
struct Page {
    cwd: PathBuf,
    began_ns: i64,
    /// Events from before the first recipe was given to a host.
    before: Vec<Event>,
    journal: Option<Journal>,
    counts: Counts,
    /// Whether the journal could not be made.
    without: bool,
    /// Whether a failure to write was reported: only the first one is.
    told: bool,
    path: homing_report::Path,
    asker: Option<Asker>,
    watched: Option<Watched>,
    /// Tasks whose output a user watches.
    shown: BTreeSet<TaskId>,
}

impl Page {
    fn new(cwd: &Path) -> Page {
        let (before, counts, shown) = Default::default();
        let (cwd, began_ns) = (cwd.to_path_buf(), homing_os::clock::wall_ns());
        let (journal, path, asker, watched) = Default::default();
        Page { cwd, began_ns, before, journal, counts, without: false, told: false, path, asker, watched, shown }
    }

    fn take(&mut self, event: Event) {
        self.path.add(&event);
        match (&self.journal, &event.what) {
            _ if self.without => return,
            (Some(_), _) => {}
            (None, EventKind::TaskStarted { .. }) => self.begin(),
            // The load of a host before the first recipe is of no use.
            (None, EventKind::Sample { .. }) => return,
            (None, _) => return self.before.push(event),
        }
        self.append(event);
    }

    /// Makes the journal, and appends the earlier events.
    fn begin(&mut self) {
        let journal = match Journal::create_anew(&homing_journal::root(), self.began_ns, std::process::id()) {
            Ok(journal) => journal,
            Err(e) => {
                self.without = true;
                return unrecorded(&e);
            }
        };
        let name = journal.run();
        self.watched = Some(Watched::new(journal.dir()));
        self.journal = Some(journal);
        let words = std::env::args_os().collect();
        self.append(Event { at_ns: self.began_ns, what: opening(&name, words, &self.cwd, None, None) });
        for event in std::mem::take(&mut self.before) {
            self.append(event);
        }
    }

    fn append(&mut self, event: Event) {
        self.counts.add(&event.what);
        let done = self.journal.as_mut().map(|journal| journal.append(&event));
        self.report_failure(done);
    }

    fn flush(&mut self) {
        let done = self.journal.as_mut().map(Journal::flush);
        self.report_failure(done);
        self.serve_watchers();
    }

    fn serve_watchers(&mut self) {
        let (Some(watched), Some(asker)) = (&mut self.watched, &self.asker) else { return };
        match watched.look(Instant::now()) {
            None => return,
            Some(false) => return self.shown.clear(),
            Some(true) => {}
        }
        for asked in watched.take_requests() {
            match asked {
                WatcherRequest::End(task) => asker.end(task),
                WatcherRequest::Show(task) => drop(self.shown.insert(task)),
            }
        }
        let wanted: Vec<TaskId> = self.shown.iter().copied().collect();
        let Some(seen) = asker.look(&wanted) else { return };
        seen.shown.iter().for_each(|(task, text)| watched.show(*task, text));
        watched.write_state(&seen.live);
    }

    /// Reports the first failure to write. Unwritten events stay in memory, and a later attempt may write them.
    fn report_failure(&mut self, done: Option<Result<(), JournalError>>) {
        if let Some(Err(e)) = done
            && !std::mem::replace(&mut self.told, true)
        {
            unrecorded(&e);
        }
    }

    /// Ends the journal without a sync to the disk: no build is resumed from its journal.
    fn end(mut self, exit: i32) -> Closed {
        let counts = self.counts.at_the_end(0, false);
        self.append(Event { at_ns: homing_os::clock::wall_ns(), what: EventKind::RunEnded { exit, counts } });
        self.flush();
        self.watched.iter().for_each(Watched::leave);
        Closed { run: self.journal.as_ref().map(Journal::run), path: self.path.lines() }
    }
}

fn unrecorded(why: &dyn std::fmt::Display) {
    eprintln!("homing make: this build is not recorded: {why}");
}
