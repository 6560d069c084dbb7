//! State that the reader, the slots and the samplers of a worker share, and the outbox for their messages.

use crate::attempt::{Attempted, Handle, ended};
use crate::energy::EnergyMeter;
use crate::environment::Environment;
use crate::input::GrowingFile;
use crate::recipe::Recipes;
use crate::spawn::{Ground, PathCache};
use crate::view::MountView;
use homing_launch::wire::FromWorker;
use homing_lease::UnitWish;
use homing_model::{FileChange, HostSample, Outcome, RawText, Task};
use homing_os::threads::lock;
use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// Whether a signal has ended this worker.
pub(crate) static LEAVE: AtomicBool = AtomicBool::new(false);

/// Settings that all tasks of a run share.
pub(crate) struct TaskSettings {
    pub(crate) name: String,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Environment,
    pub(crate) eager: bool,
    pub(crate) host: String,
    pub(crate) found: PathCache,
    pub(crate) ground: Ground,
}

/// A task for a slot.
pub(crate) struct SlotOrder {
    pub(crate) ticket: u64,
    pub(crate) slot: u32,
    pub(crate) task: Task,
    pub(crate) requires: Vec<RawText>,
    pub(crate) weigh: bool,
    /// Changes that this host must see before a task other than a recipe starts.
    pub(crate) fence: Vec<FileChange>,
    /// Folders in which a recipe of a build may write; `None` for other tasks.
    pub(crate) recipe: Option<Vec<RawText>>,
    /// The standard input of the task; `None` for /dev/null.
    pub(crate) stdin: Option<GrowingFile>,
    /// The units of resources that it takes.
    pub(crate) units: Vec<UnitWish>,
}

/// Tasks that wait for a slot, and the slots.
#[derive(Default)]
pub(crate) struct Orders {
    pub(crate) queue: VecDeque<SlotOrder>,
    pub(crate) idle: usize,
    pub(crate) threads: usize,
    pub(crate) open: usize,
    /// Number of tasks that have ended so far, and of slots that wait for the next end.
    pub(crate) ended: u64,
    pub(crate) held: usize,
    pub(crate) closed: bool,
}

/// State that the reader and the slots share.
pub(crate) struct WorkerState {
    pub(crate) orders: Mutex<Orders>,
    pub(crate) changed: Condvar,
    /// Notified when a task has ended and left room.
    pub(crate) freed: Condvar,
    /// Whether the user was warned that a resource is short.
    told: AtomicBool,
    /// Whether the user was warned that tasks wait for units of others.
    pub(crate) told_units: AtomicBool,
    pub(crate) running: Mutex<HashMap<u64, Arc<Handle>>>,
    out: Mutex<Outbox>,
    held: Condvar,
    pub(crate) recipes: OnceLock<Recipes>,
    /// Whether this worker is ending, and tasks with it: their outcomes are no longer their own.
    pub(crate) leaving: AtomicBool,
    /// The files that have another name here than on the other hosts.
    pub(crate) view: Mutex<Arc<MountView>>,
    /// The energy of this host.
    pub(crate) energy: Arc<EnergyMeter>,
}

/// Frames on their way out.
struct Outbox {
    to: Box<dyn Write + Send>,
    frames: Vec<u8>,
}

/// Time for which the ends of tasks are held while more tasks are queued here. One message then carries several, and
/// the coordinator wakes once for them. The coordinator sends tasks for twice that time ahead, so that no slot runs
/// dry. Of the limit's rate 3 ms reached 0.83, 6 ms 0.85, 10 ms and 15 ms 0.88.
const HOLD: Duration = Duration::from_millis(10);

/// Interval at which a held task checks whether it is still wanted.
const HELD_LOOK: Duration = Duration::from_millis(100);

impl WorkerState {
    /// Makes the state of an idle worker that sends to `output`.
    pub(crate) fn new(output: Box<dyn Write + Send>) -> WorkerState {
        WorkerState {
            orders: Mutex::default(),
            changed: Condvar::new(),
            freed: Condvar::new(),
            told: AtomicBool::new(false),
            told_units: AtomicBool::new(false),
            running: Mutex::default(),
            out: Mutex::new(Outbox { to: output, frames: Vec::new() }),
            held: Condvar::new(),
            recipes: OnceLock::new(),
            leaving: AtomicBool::new(false),
            view: Mutex::default(),
            energy: Arc::new(EnergyMeter::new()),
        }
    }

    /// Returns the load of this host now, with the energy that it has used.
    pub(crate) fn sample(&self) -> HostSample {
        HostSample { energy: self.energy.look(), ..homing_probe::sample() }
    }

    /// Warns the user, once, that a resource is too short to start another program.
    pub(crate) fn lacks(&self, what: &str) {
        if !self.told.swap(true, Ordering::SeqCst) {
            self.send(FromWorker::Note(format!("too few {what} for all tasks at once: some wait until others end")));
        }
    }

    /// Waits until another try to start a program makes sense: a task has ended, or no other task runs that could
    /// end. `None` if the program was alone before, or if its task is no longer wanted.
    pub(crate) fn room(&self, unwanted: impl Fn() -> bool, attempted: Attempted) -> Option<Attempted> {
        let mut orders = lock(&self.orders);
        let ended = orders.ended;
        orders.held += 1;
        let next = loop {
            if unwanted() {
                break None;
            }
            if orders.ended != ended {
                break Some(Attempted::Among);
            }
            if orders.held == orders.threads - orders.idle {
                break (attempted == Attempted::Among).then_some(Attempted::Alone);
            }
            let waited = self.freed.wait_timeout(orders, HELD_LOOK);
            orders = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        orders.held -= 1;
        next
    }

    /// Whether a task runs or is queued here.
    pub(crate) fn is_busy(&self) -> bool {
        !lock(&self.running).is_empty()
    }

    /// Returns leaders and tickets of the tasks.
    pub(crate) fn tasks(&self) -> Vec<(libc::pid_t, u64)> {
        let running = lock(&self.running);
        running.iter().map(|(ticket, h)| (h.pid.load(Ordering::SeqCst), *ticket)).filter(|(pid, _)| *pid > 0).collect()
    }

    pub(crate) fn send(&self, message: FromWorker) {
        let mut out = lock(&self.out);
        add(&mut out.frames, &message);
        self.push(out);
    }

    /// Sends with the next message, or after at most `HOLD`.
    pub(crate) fn send_soon(&self, message: FromWorker) {
        let mut out = lock(&self.out);
        let first = out.frames.is_empty();
        add(&mut out.frames, &message);
        if out.frames.len() > homing_launch::wire::CHUNK {
            return self.push(out);
        }
        drop(out);
        if first {
            self.held.notify_one();
        }
    }

    /// Sends the messages that `send_soon` held back.
    pub(crate) fn release_held(&self) {
        loop {
            let mut out = lock(&self.out);
            while out.frames.is_empty() {
                out = self.held.wait(out).unwrap_or_else(PoisonError::into_inner);
            }
            drop(out);
            thread::sleep(HOLD);
            self.push(lock(&self.out));
        }
    }

    fn push(&self, mut out: std::sync::MutexGuard<'_, Outbox>) {
        let frames = std::mem::take(&mut out.frames);
        if out.to.write_all(&frames).and_then(|()| out.to.flush()).is_err() {
            // The coordinator is gone: the same as the end of our input.
            drop(out);
            crate::end_all();
            std::process::exit(1);
        }
    }
}

/// Appends a frame. A message that is too large is replaced by its error. The end of a task then counts as lost,
/// since other hosts may not see the files in its lists.
fn add(frames: &mut Vec<u8>, message: &FromWorker) {
    let Err(error) = homing_launch::wire::encode(message, frames) else { return };
    let instead = match message {
        FromWorker::Ended(end) => {
            let wall = Duration::from_micros(end.wall_us);
            FromWorker::Ended(ended(end.ticket, Outcome::Lost(error.to_string()), wall))
        }
        _ => FromWorker::Note(error.to_string()),
    };
    homing_launch::wire::encode(&instead, frames).expect("an error is one line");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_without_room_waits_for_another_to_end_and_gives_up_when_it_was_alone() {
        let shared = WorkerState::new(Box::new(std::io::sink()));
        lock(&shared.orders).threads = 2;
        thread::scope(|scope| {
            let waits = scope.spawn(|| shared.room(|| false, Attempted::Among));
            while lock(&shared.orders).held == 0 {
                thread::yield_now();
            }
            lock(&shared.orders).ended += 1;
            shared.freed.notify_all();
            assert_eq!(waits.join().unwrap(), Some(Attempted::Among));
        });
        assert_eq!(shared.room(|| true, Attempted::Among), None, "the request was cancelled");
        lock(&shared.orders).idle = 1;
        assert_eq!(shared.room(|| false, Attempted::Among), Some(Attempted::Alone));
        assert_eq!(shared.room(|| false, Attempted::Alone), None);
        assert_eq!(lock(&shared.orders).held, 0);
    }
}
