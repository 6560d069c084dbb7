//! The conversation with the coordinator, and the slots.

use crate::attempt::{self, Fate, Handle, Job};
use crate::environment::{Environment, TaskEnvironment};
use crate::recipe::Recipes;
use crate::spawn::{Found, Ground};
use crate::view::{Question, View, stand};
use homing_model::{Outcome, RawText, Task};
use homing_wire::{Ended, FromWorker, HEARTBEAT_S, ToWorker, WORKER_LEASE_S};
use std::collections::{HashMap, VecDeque};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Variables of the worker's own login that tasks keep: another host's would be wrong here.
const HOST_BOUND: [&str; 4] = ["HOSTNAME", "XDG_RUNTIME_DIR", "TMPDIR", "SSH_AUTH_SOCK"];

/// What all tasks of a run share.
struct Run {
    name: String,
    cwd: PathBuf,
    env: Environment,
    eager: bool,
    host: String,
    found: Found,
    ground: Ground,
}

struct Order {
    ticket: u64,
    slot: u32,
    task: Task,
    requires: Vec<RawText>,
    weigh: bool,
    /// Folders in which a recipe of a build may write; `None` for other tasks.
    recipe: Option<Vec<RawText>>,
}

#[derive(Default)]
struct Orders {
    queue: VecDeque<Order>,
    idle: usize,
    threads: usize,
    open: usize,
    closed: bool,
}

/// State that the reader and the slots share.
pub(crate) struct Shared {
    orders: Mutex<Orders>,
    changed: Condvar,
    running: Mutex<HashMap<u64, Arc<Handle>>>,
    out: Mutex<Outbox>,
    held: Condvar,
    recipes: OnceLock<Recipes>,
    /// We are ending, and tasks with us: how they end now says nothing of them.
    leaving: AtomicBool,
    /// What this host has under another name than the others.
    view: Mutex<Arc<View>>,
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

/// Longest time between the first and the last process of a job that is signalled.
const SIGNALS_SPREAD: Duration = Duration::from_secs(1);

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // A slot that panicked has not left a half-written frame: frames are written in one call.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Whether a task runs or is queued here.
    pub(crate) fn is_busy(&self) -> bool {
        !lock(&self.running).is_empty()
    }

    /// Leaders of the tasks that run and do not stand still by order.
    pub(crate) fn leaders(&self) -> Vec<libc::pid_t> {
        let running = lock(&self.running);
        running.values().filter(|h| !h.is_held()).map(|h| h.pid.load(Ordering::SeqCst)).filter(|p| *p > 0).collect()
    }

    pub(crate) fn send(&self, message: FromWorker) {
        let mut out = lock(&self.out);
        homing_wire::encode(&message, &mut out.frames);
        self.push(out);
    }

    /// Sends with the next message, or after a moment.
    fn send_soon(&self, message: FromWorker) {
        let mut out = lock(&self.out);
        let first = out.frames.is_empty();
        homing_wire::encode(&message, &mut out.frames);
        if out.frames.len() > homing_wire::CHUNK {
            return self.push(out);
        }
        drop(out);
        if first {
            self.held.notify_one();
        }
    }

    /// Sends what `send_soon` held back.
    fn release_held(&self) {
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
            crate::sweep::sweep();
            std::process::exit(1);
        }
    }
}

/// SIGINT from the terminal is the coordinator's to answer; a broken pipe is
/// an error of `write`; SIGTERM and SIGHUP end everything that we started.
pub(crate) fn ignore_terminal_signals() {
    extern "C" fn leave(_: libc::c_int) {
        // Closing our input ends the session in the ordinary way.
        // SAFETY: close is async-signal-safe; the reader then sees an error.
        unsafe {
            let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
            libc::dup2(null, 0);
        }
        LEAVE.store(true, Ordering::SeqCst);
    }
    let leave = leave as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: handlers are set before any thread exists.
    unsafe {
        libc::signal(libc::SIGINT, libc::SIG_IGN);
        libc::signal(libc::SIGQUIT, libc::SIG_IGN);
        libc::signal(libc::SIGPIPE, libc::SIG_IGN);
        libc::signal(libc::SIGTERM, leave);
        libc::signal(libc::SIGHUP, leave);
    }
}

static LEAVE: AtomicBool = AtomicBool::new(false);

enum Heard {
    Messages(Vec<ToWorker>),
    End,
}

/// Speaks the protocol until the input ends; returns the exit status. What
/// still runs then is the caller's to end (`main_stdio` sweeps).
pub fn serve(input: impl Read + Send + 'static, output: impl Write + Send + 'static) -> i32 {
    let facts = homing_probe::facts();
    let host = facts.hostname.clone();
    let mut output: Box<dyn Write + Send> = Box::new(output);
    if homing_wire::send_hello(&mut output, &facts).is_err() {
        return 1;
    }
    let shared = Arc::new(Shared {
        orders: Mutex::default(),
        changed: Condvar::new(),
        running: Mutex::default(),
        out: Mutex::new(Outbox { to: output, frames: Vec::new() }),
        held: Condvar::new(),
        recipes: OnceLock::new(),
        leaving: AtomicBool::new(false),
        view: Mutex::default(),
    });
    let holder = shared.clone();
    thread::spawn(move || holder.release_held());
    let (heard, inbox) = channel();
    thread::spawn(move || read(input, &heard));
    let status = converse(&inbox, &shared, host);
    shared.leaving.store(true, Ordering::SeqCst);
    for handle in lock(&shared.running).values() {
        handle.end(Fate::Killed, libc::SIGTERM);
    }
    linger(&shared);
    status
}

fn read(input: impl Read, heard: &Sender<Heard>) {
    let mut input = BufReader::new(input);
    loop {
        let message = match homing_wire::receive_some(&mut input) {
            Ok(messages) if !messages.is_empty() => Heard::Messages(messages),
            Ok(_) | Err(_) => Heard::End,
        };
        let last = matches!(message, Heard::End);
        if heard.send(message).is_err() || last {
            return;
        }
    }
}

fn converse(inbox: &Receiver<Heard>, shared: &Arc<Shared>, host: String) -> i32 {
    let mut session = Session { shared: shared.clone(), host, run: None, slots: 1, pulse: false, finishing: false };
    let mut last_heard = Instant::now();
    loop {
        match inbox.recv_timeout(Duration::from_millis(200)) {
            Ok(Heard::Messages(messages)) => {
                last_heard = Instant::now();
                for message in messages {
                    if session.obey(message).is_err() {
                        return 1;
                    }
                }
            }
            Ok(Heard::End) | Err(RecvTimeoutError::Disconnected) => return i32::from(!session.finishing),
            Err(RecvTimeoutError::Timeout) => {
                let silent = last_heard.elapsed() > Duration::from_secs(WORKER_LEASE_S);
                if silent || LEAVE.load(Ordering::SeqCst) {
                    return 1;
                }
            }
        }
    }
}

/// What the coordinator has said so far.
struct Session {
    shared: Arc<Shared>,
    host: String,
    run: Option<Arc<Run>>,
    slots: usize,
    /// Pulses are wanted and not yet sent.
    pulse: bool,
    finishing: bool,
}

impl Session {
    /// An error ends the worker.
    fn obey(&mut self, message: ToWorker) -> std::io::Result<()> {
        match message {
            ToWorker::Begin { run: name, cwd, env, slots, sample_ms, pulse, eager_output } => {
                self.slots = slots.max(1) as usize;
                self.run = Some(Arc::new(Run {
                    name,
                    cwd: cwd.to_path(),
                    env: Environment::new(&environment(env)),
                    eager: eager_output,
                    host: self.host.clone(),
                    found: Found::default(),
                    ground: Ground::new()?,
                }));
                self.pulse = pulse;
                sample(sample_ms, self.shared.clone());
            }
            ToWorker::Run { ticket, slot, task, requires, weigh } => {
                if std::mem::take(&mut self.pulse) {
                    crate::pulse::send_from_now(self.shared.clone());
                }
                if let Some(run) = &self.run {
                    take(&self.shared, run, self.slots, Order { ticket, slot, task, requires, weigh, recipe: None });
                }
            }
            ToWorker::Watch { roots, umask } => {
                rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
                drop(self.shared.recipes.set(Recipes::new(&roots)?));
            }
            ToWorker::Recipe { ticket, task, fence, folders } => {
                if let Some(run) = &self.run {
                    if let Some(recipes) = self.shared.recipes.get() {
                        recipes.expect(fence);
                    }
                    let order = Order { ticket, slot: 1, task, requires: vec![], weigh: false, recipe: Some(folders) };
                    take(&self.shared, run, self.slots, order);
                }
            }
            ToWorker::Kill { ticket, grace_ms, timed_out } => kill(&self.shared, ticket, grace_ms, timed_out),
            ToWorker::Hold { ticket, still } => {
                if let Some(handle) = lock(&self.shared.running).get(&ticket) {
                    handle.hold(still);
                }
            }
            ToWorker::Stand { ask, point, path, nonce, secret } => {
                let shared = self.shared.clone();
                // In a thread of its own: looking may wait for automount.
                thread::spawn(move || answer(&shared, ask, &Question { point, path, nonce, secret }));
            }
            ToWorker::Ping => self.shared.send(FromWorker::Pong),
            ToWorker::Finish => self.finish(),
        }
        Ok(())
    }

    /// Says good-bye when the last task has ended.
    fn finish(&mut self) {
        self.finishing = true;
        lock(&self.shared.orders).closed = true;
        self.shared.changed.notify_all();
        let shared = self.shared.clone();
        thread::spawn(move || {
            let mut orders = lock(&shared.orders);
            while orders.open > 0 {
                orders = shared.changed.wait(orders).unwrap_or_else(PoisonError::into_inner);
            }
            drop(orders);
            shared.send(FromWorker::Sample(homing_probe::sample()));
            shared.send(FromWorker::Bye);
        });
    }
}

/// The run's environment, with what belongs to this host and not to the coordinator's.
fn environment(mut env: Vec<(RawText, RawText)>) -> Vec<(RawText, RawText)> {
    for name in HOST_BOUND {
        env.retain(|(n, _)| n.0 != name.as_bytes());
        if let Some(value) = std::env::var_os(name) {
            env.push((name.into(), value.into()));
        }
    }
    env
}

fn take(shared: &Arc<Shared>, run: &Arc<Run>, slots: usize, order: Order) {
    lock(&shared.running).insert(order.ticket, Arc::new(Handle::default()));
    let mut orders = lock(&shared.orders);
    orders.open += 1;
    orders.queue.push_back(order);
    if orders.idle < orders.queue.len() && orders.threads < slots {
        orders.threads += 1;
        let (shared, run) = (shared.clone(), run.clone());
        thread::spawn(move || slot(&shared, &run));
    } else {
        shared.changed.notify_one();
    }
}

fn slot(shared: &Shared, run: &Run) {
    let mut buffer = vec![0; homing_wire::CHUNK];
    loop {
        let mut orders = lock(&shared.orders);
        let order = loop {
            if let Some(order) = orders.queue.pop_front() {
                break order;
            }
            if orders.closed {
                return;
            }
            orders.idle += 1;
            orders = shared.changed.wait(orders).unwrap_or_else(PoisonError::into_inner);
            orders.idle -= 1;
        };
        drop(orders);
        let ticket = order.ticket;
        let answer = match (&order.recipe, shared.recipes.get()) {
            (Some(_), Some(recipes)) => recipe(shared, run, recipes, order, &mut buffer),
            _ => perform(shared, run, order, &mut buffer),
        };
        lock(&shared.running).remove(&ticket);
        let more = !lock(&shared.orders).queue.is_empty();
        match answer {
            // The coordinator runs it again where it can, as after any loss.
            answer if is_our_end(shared, &answer) => {}
            answer if more => shared.send_soon(answer),
            answer => shared.send(answer),
        }
        let mut orders = lock(&shared.orders);
        orders.open -= 1;
        if orders.closed && orders.open == 0 {
            shared.changed.notify_all();
        }
    }
}

/// A task between two fences.
fn recipe(shared: &Shared, run: &Run, recipes: &Recipes, order: Order, buffer: &mut [u8]) -> FromWorker {
    let ticket = order.ticket;
    let folders = order.recipe.clone().unwrap_or_default();
    let cwd = order.task.cwd.as_ref().map(RawText::to_path);
    let fence_us = match recipes.before(ticket, cwd.as_deref(), &folders) {
        Ok(us) => us,
        Err(late) => return *late,
    };
    let answer = perform(shared, run, order, buffer);
    recipes.after(ticket, fence_us, &folders, |message| shared.send(message));
    answer
}

/// A batch system that ends a job signals its processes one after another: a
/// task may be gone a moment before the worker. A failure is held back until
/// it is clear that it is the task's own.
fn is_our_end(shared: &Shared, answer: &FromWorker) -> bool {
    let FromWorker::Ended(Ended { outcome, .. }) = answer else { return false };
    let leaving = || shared.leaving.load(Ordering::SeqCst) || LEAVE.load(Ordering::SeqCst);
    let patience = match outcome {
        Outcome::Exit(0) => return false,
        Outcome::Signal(_) if in_a_job() => SIGNALS_SPREAD,
        Outcome::Exit(_) if in_a_job() => SIGNALS_SPREAD / 5,
        _ => Duration::ZERO,
    };
    let until = Instant::now() + patience;
    while !leaving() && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    leaving()
}

fn in_a_job() -> bool {
    std::env::var_os("SLURM_JOB_ID").is_some()
}

fn perform(shared: &Shared, run: &Run, order: Order, buffer: &mut [u8]) -> FromWorker {
    let Order { ticket, slot, task, requires, weigh, recipe } = order;
    let is_recipe = recipe.is_some();
    let handle = lock(&shared.running).get(&ticket).cloned().unwrap_or_default();
    let cwd = task.cwd.as_ref().map_or_else(|| run.cwd.clone(), |c| run.cwd.join(c.as_path()));
    let view = lock(&shared.view).clone();
    let missing = requires.into_iter().find(|p| !view.real(&cwd.join(p.as_path())).exists());
    let missing = missing.or_else(|| (!view.real(&cwd).is_dir()).then(|| RawText::from(cwd.as_path())));
    if let Some(missing) = missing {
        return FromWorker::Unfit { ticket, missing };
    }
    if handle.fate() != Fate::Free {
        return FromWorker::Ended(attempt::ended(ticket, Outcome::Killed, Duration::ZERO));
    }
    let env = match task_environment(run, &task, slot, &view.shown(&cwd), is_recipe) {
        Ok(env) => env,
        Err(e) => {
            return FromWorker::Ended(attempt::ended(ticket, Outcome::CannotStart(e.to_string()), Duration::ZERO));
        }
    };
    let send = |message| shared.send(message);
    let own_path = task.cwd.is_some() || task.env.iter().any(|(name, _)| name.0 == b"PATH");
    let found = (!own_path).then_some(&run.found);
    let ground = &run.ground;
    let job = Job {
        ticket,
        task: &task,
        env,
        ground,
        weigh,
        patient: is_recipe,
        found,
        cwd: &cwd,
        view: &view,
        eager: run.eager,
        handle: &handle,
        send: &send,
    };
    FromWorker::Ended(attempt::run(&job, buffer))
}

/// Answers whether this host has the files of a volume.
fn answer(shared: &Shared, ask: u64, question: &Question) {
    // Held while it is found out: a second answer builds on the first.
    let mut view = lock(&shared.view);
    let (accepted, text) = match stand(question, &view) {
        Ok((with, how)) => {
            *view = Arc::new(with);
            (true, how)
        }
        Err(why) => (false, why),
    };
    drop(view);
    shared.send(FromWorker::Stands { ask, accepted, text });
}

fn task_environment<'a>(
    run: &'a Run,
    task: &Task,
    slot: u32,
    cwd: &Path,
    is_recipe: bool,
) -> std::io::Result<TaskEnvironment<'a>> {
    if is_recipe {
        // What it prints of its environment has to be what it would print at home.
        return run.env.with(&task.env);
    }
    let own = [
        ("PWD", RawText::from(cwd)),
        ("PARALLEL_SEQ", task.id.to_string().into()),
        ("PARALLEL_JOBSLOT", slot.to_string().into()),
        ("HOMING_RUN", run.name.as_str().into()),
        ("HOMING_TASK", task.id.to_string().into()),
        ("HOMING_HOST", run.host.as_str().into()),
    ];
    let mut own: Vec<(RawText, RawText)> = own.into_iter().map(|(n, v)| (RawText::from(n), v)).collect();
    own.extend(task.env.iter().cloned());
    run.env.with(&own)
}

fn kill(shared: &Arc<Shared>, ticket: u64, grace_ms: u32, timed_out: bool) {
    let Some(handle) = lock(&shared.running).get(&ticket).cloned() else { return };
    let fate = if timed_out { Fate::TimedOut } else { Fate::Killed };
    handle.end(fate, libc::SIGTERM);
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(grace_ms.into()));
        handle.end(fate, libc::SIGKILL);
    });
}

/// Samples every `sample_ms`, and a word at least every heartbeat.
fn sample(sample_ms: u32, shared: Arc<Shared>) {
    thread::spawn(move || {
        let pause = match sample_ms {
            0 => Duration::from_secs(HEARTBEAT_S),
            ms => Duration::from_millis(ms.into()),
        };
        let mut seen = None;
        loop {
            let message = if sample_ms > 0 { FromWorker::Sample(homing_probe::sample()) } else { FromWorker::Pong };
            shared.send(message);
            let is_task = |pid| lock(&shared.running).values().any(|h| h.pid.load(Ordering::SeqCst) == pid);
            crate::sweep::bury(is_task, &mut seen);
            thread::sleep(pause);
        }
    });
}

/// The input ended: gives tasks that were asked to end the time to put their outputs aside.
fn linger(shared: &Shared) {
    let started = Instant::now();
    lock(&shared.orders).queue.clear();
    while started.elapsed() < Duration::from_secs(2) {
        let left: Vec<Arc<Handle>> = lock(&shared.running).values().cloned().collect();
        let alive = left.iter().filter(|h| h.pid.load(Ordering::SeqCst) > 0);
        if alive.count() == 0 {
            return;
        }
        if started.elapsed() > Duration::from_millis(500) {
            left.iter().for_each(|handle| handle.end(Fate::Killed, libc::SIGKILL));
        }
        thread::sleep(Duration::from_millis(5));
    }
}
