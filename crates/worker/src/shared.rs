//! What the reader, the slots and the samplers of a worker share, and the way
//! out for what they say.

use crate::attempt::{Handle, ended};
use crate::environment::Environment;
use crate::recipe::Recipes;
use crate::spawn::{Found, Ground};
use crate::view::View;
use homing_model::{Change, Outcome, RawText, Task};
use homing_wire::FromWorker;
use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// What all tasks of a run share.
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Environment,
    pub(crate) eager: bool,
    pub(crate) host: String,
    pub(crate) found: Found,
    pub(crate) ground: Ground,
}

/// A task for a slot.
pub(crate) struct Order {
    pub(crate) ticket: u64,
    pub(crate) slot: u32,
    pub(crate) task: Task,
    pub(crate) requires: Vec<RawText>,
    pub(crate) weigh: bool,
    /// What must be seen here before a task that is no recipe starts.
    pub(crate) fence: Vec<Change>,
    /// Folders in which a recipe of a build may write; `None` for other tasks.
    pub(crate) recipe: Option<Vec<RawText>>,
}

/// Tasks that wait for a slot, and the slots.
#[derive(Default)]
pub(crate) struct Orders {
    pub(crate) queue: VecDeque<Order>,
    pub(crate) idle: usize,
    pub(crate) threads: usize,
    pub(crate) open: usize,
    pub(crate) closed: bool,
}

/// State that the reader and the slots share.
pub(crate) struct Shared {
    pub(crate) orders: Mutex<Orders>,
    pub(crate) changed: Condvar,
    pub(crate) running: Mutex<HashMap<u64, Arc<Handle>>>,
    out: Mutex<Outbox>,
    held: Condvar,
    pub(crate) recipes: OnceLock<Recipes>,
    /// We are ending, and tasks with us: how they end now says nothing of them.
    pub(crate) leaving: AtomicBool,
    /// What this host has under another name than the others.
    pub(crate) view: Mutex<Arc<View>>,
}

/// Frames on their way out.
struct Outbox {
    to: Box<dyn Write + Send>,
    frames: Vec<u8>,
}

/// The ends of tasks are held this long while more tasks are queued here: one
/// message then carries several, and the coordinator wakes once for them. The
/// coordinator sends twice as much time's worth of tasks ahead, so no slot runs
/// dry. Of the limit's rate 3 ms reached 0.83, 6 ms 0.85, 10 ms and 15 ms 0.88.
const HOLD: Duration = Duration::from_millis(10);

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A slot that panicked has not left a half-written frame: frames are written in one call.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Nothing runs; what is said goes to `output`.
    pub(crate) fn new(output: Box<dyn Write + Send>) -> Shared {
        Shared {
            orders: Mutex::default(),
            changed: Condvar::new(),
            running: Mutex::default(),
            out: Mutex::new(Outbox { to: output, frames: Vec::new() }),
            held: Condvar::new(),
            recipes: OnceLock::new(),
            leaving: AtomicBool::new(false),
            view: Mutex::default(),
        }
    }

    /// Whether a task runs or is queued here.
    pub(crate) fn is_busy(&self) -> bool {
        !lock(&self.running).is_empty()
    }

    /// Leaders and tickets of the tasks.
    pub(crate) fn tasks(&self) -> Vec<(libc::pid_t, u64)> {
        let running = lock(&self.running);
        running.iter().map(|(ticket, h)| (h.pid.load(Ordering::SeqCst), *ticket)).filter(|(pid, _)| *pid > 0).collect()
    }

    pub(crate) fn send(&self, message: FromWorker) {
        let mut out = lock(&self.out);
        add(&mut out.frames, &message);
        self.push(out);
    }

    /// Sends with the next message, or after a moment.
    pub(crate) fn send_soon(&self, message: FromWorker) {
        let mut out = lock(&self.out);
        let first = out.frames.is_empty();
        add(&mut out.frames, &message);
        if out.frames.len() > homing_wire::CHUNK {
            return self.push(out);
        }
        drop(out);
        if first {
            self.held.notify_one();
        }
    }

    /// Sends what `send_soon` held back.
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
            // Nobody listens: the same as the end of our input.
            drop(out);
            crate::end_all();
            std::process::exit(1);
        }
    }
}

/// One frame more. Of a message that is too large the refusal is told in its place: with its lists
/// the end of a task is lost, as others may then not see what it wrote.
fn add(frames: &mut Vec<u8>, message: &FromWorker) {
    let Err(error) = homing_wire::encode(message, frames) else { return };
    let instead = match message {
        FromWorker::Ended(end) => {
            let wall = Duration::from_micros(end.wall_us);
            FromWorker::Ended(ended(end.ticket, Outcome::Lost(error.to_string()), wall))
        }
        _ => FromWorker::Note(error.to_string()),
    };
    homing_wire::encode(&instead, frames).expect("an error is one line");
}
