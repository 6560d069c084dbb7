//! The slots: threads that take orders, run them and report their ends.

use crate::attempt::{self, AttemptPlan, AttemptStop, Handle};
use crate::environment::TaskEnvironment;
use crate::input::GrowingFile;
use crate::recipe::Recipes;
use crate::shared::{LEAVE, Orders, SlotOrder, TaskSettings, WorkerState};
use crate::spawn::scarce;
use crate::units;
use crate::view::MountView;
use homing_fence::Late;
use homing_launch::wire::{AttemptEnd, FromWorker};
use homing_model::{FileChange, Outcome, RawText, Task};
use homing_os::threads::lock;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time between the signals to the first and the last process of a job.
const SIGNALS_SPREAD: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// A success waits for at most one part in this many of the task's own time, so that no batch becomes slower by more.
const SUCCESS_SHARE: u32 = 50;

/// Queues an order. Starts one more slot if all are busy and there are fewer than `slots`.
pub(crate) fn take(shared: &Arc<WorkerState>, run: &Arc<TaskSettings>, slots: usize, order: SlotOrder) {
    lock(&shared.running).insert(order.ticket, Arc::new(Handle::default()));
    let mut orders = lock(&shared.orders);
    orders.open += 1;
    orders.queue.push_back(order);
    if orders.idle >= orders.queue.len() || orders.threads >= slots {
        return shared.changed.notify_one();
    }
    let (in_slot, its_run) = (shared.clone(), run.clone());
    match thread::Builder::new().spawn(move || slot(&in_slot, &its_run)) {
        Ok(_) => orders.threads += 1,
        Err(error) => no_slot(shared, orders, &error),
    }
}

/// Handles a slot that could not be started: the order waits for the existing slots, or fails if there are none.
fn no_slot(shared: &WorkerState, mut orders: MutexGuard<Orders>, error: &io::Error) {
    let what = scarce(error).unwrap_or("threads");
    if orders.threads > 0 {
        drop(orders);
        shared.changed.notify_one();
        return shared.lacks(what);
    }
    let Some(order) = orders.queue.pop_back() else { return };
    orders.open -= 1;
    drop(orders);
    lock(&shared.running).remove(&order.ticket);
    let why = format!("cannot start a thread for it: {error}: too few {what}");
    shared.send(FromWorker::Ended(attempt::ended(order.ticket, Outcome::CannotStart(why), Duration::ZERO)));
}

fn slot(shared: &WorkerState, run: &TaskSettings) {
    let mut buffer = vec![0; homing_launch::wire::CHUNK];
    loop {
        let mut orders = lock(&shared.orders);
        let order = loop {
            if let Some(order) = orders.queue.pop_front() {
                break order;
            }
            if orders.closed || shared.leaving.load(Ordering::SeqCst) {
                orders.threads -= 1;
                shared.freed.notify_all();
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
            // Not reported: the coordinator runs it again where it can, as after any loss.
            answer if is_our_end(shared, &answer) => {}
            answer if more => shared.send_soon(answer),
            answer => shared.send(answer),
        }
        let mut orders = lock(&shared.orders);
        orders.open -= 1;
        orders.ended += 1;
        if orders.held > 0 {
            shared.freed.notify_all();
        }
        if orders.closed && orders.open == 0 {
            shared.changed.notify_all();
        }
    }
}

/// Runs a task between two fences.
fn recipe(
    shared: &WorkerState,
    run: &TaskSettings,
    recipes: &Recipes,
    order: SlotOrder,
    buffer: &mut [u8],
) -> FromWorker {
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

/// Whether the task ended because this worker is being ended. A batch system that ends a job signals its processes
/// one after another: a task may be gone a moment before the worker.
///
/// A failure is held back until it is clear that it is the task's own. So is a success, for a share of the task's own
/// time. A shell whose command was signalled continues with the next one, and may end with status 0.
fn is_our_end(shared: &WorkerState, answer: &FromWorker) -> bool {
    let FromWorker::Ended(AttemptEnd { outcome, wall_us, .. }) = answer else { return false };
    let success = outcome.is_success();
    let leaving = || LEAVE.load(Ordering::SeqCst) || (shared.leaving.load(Ordering::SeqCst) && !success);
    let patience = match outcome {
        Outcome::Exit(0) if in_a_job() => (Duration::from_micros(*wall_us) / SUCCESS_SHARE).min(SIGNALS_SPREAD / 5),
        Outcome::Exit(0) => return false,
        Outcome::Signal(_) if in_a_job() => SIGNALS_SPREAD,
        Outcome::Exit(_) if in_a_job() => SIGNALS_SPREAD / 5,
        _ => Duration::ZERO,
    };
    if success && patience < LOOK_AGAIN {
        return false;
    }
    let until = Instant::now() + patience;
    while !leaving() && Instant::now() < until {
        thread::sleep(LOOK_AGAIN);
    }
    leaving()
}

fn in_a_job() -> bool {
    std::env::var_os("SLURM_JOB_ID").is_some()
}

fn perform(shared: &WorkerState, run: &TaskSettings, order: SlotOrder, buffer: &mut [u8]) -> FromWorker {
    let SlotOrder { ticket, slot, mut task, requires, weigh, fence, recipe, stdin, units } = order;
    let is_recipe = recipe.is_some();
    let handle = lock(&shared.running).get(&ticket).cloned().unwrap_or_default();
    let cwd = task.cwd.as_ref().map_or_else(|| run.cwd.clone(), |c| run.cwd.join(c.as_path()));
    let view = lock(&shared.view).clone();
    if let Err(late) = see(fence, &view) {
        return FromWorker::Late { ticket, why: late.to_string(), change: late.change };
    }
    let missing = requires.into_iter().find(|p| !view.real(&cwd.join(p.as_path())).exists());
    let missing = missing.or_else(|| (!view.real(&cwd).is_dir()).then(|| RawText::from(cwd.as_path())));
    if let Some(missing) = missing {
        return FromWorker::Unfit { ticket, missing };
    }
    if handle.fate() != AttemptStop::Free {
        return FromWorker::Ended(attempt::ended(ticket, Outcome::Killed, Duration::ZERO));
    }
    // Held until the task has ended.
    let _leases = match units::take(shared, &handle, &units) {
        Ok((leases, variables)) => {
            task.env.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
            leases
        }
        Err(outcome) => return FromWorker::Ended(attempt::ended(ticket, outcome, Duration::ZERO)),
    };
    let env = task_environment(run, &task, slot, &view.shown(&cwd), is_recipe).map_err(|e| e.to_string());
    let stdin = stdin.as_ref().map(GrowingFile::file).transpose();
    let (env, stdin) = match env.and_then(|env| Ok((env, stdin?))) {
        Ok(both) => both,
        Err(why) => return FromWorker::Ended(attempt::ended(ticket, Outcome::CannotStart(why), Duration::ZERO)),
    };
    let send = |message| shared.send(message);
    let room = |what, attempted| {
        shared.lacks(what);
        shared.room(|| handle.fate() != AttemptStop::Free || shared.leaving.load(Ordering::SeqCst), attempted)
    };
    let own_path = task.cwd.is_some() || task.env.iter().any(|(name, _)| name.0 == b"PATH");
    let found = (!own_path).then_some(&run.found);
    let ground = &run.ground;
    let job = AttemptPlan {
        ticket,
        task: &task,
        env,
        stdin,
        ground,
        weigh,
        patient: is_recipe,
        found,
        cwd: &cwd,
        view: &view,
        eager: run.eager,
        handle: &handle,
        room: &room,
        send: &send,
    };
    FromWorker::Ended(attempt::run(&job, buffer))
}

/// Looks again at the files that other hosts wrote, under their names on this host.
fn see(mut fence: Vec<FileChange>, view: &MountView) -> Result<(), Box<Late>> {
    if fence.is_empty() {
        return Ok(());
    }
    fence.iter_mut().for_each(|change| change.path = view.real(change.path.as_path()).as_path().into());
    homing_fence::settle(&fence).map(drop)
}

fn task_environment<'a>(
    run: &'a TaskSettings,
    task: &Task,
    slot: u32,
    cwd: &Path,
    is_recipe: bool,
) -> std::io::Result<TaskEnvironment<'a>> {
    if is_recipe {
        // A recipe that prints its environment must print the same as on the coordinator's host.
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

/// Sends a task's output as it comes from now on.
pub(crate) fn be_eager(shared: &WorkerState, ticket: u64) {
    if let Some(handle) = lock(&shared.running).get(&ticket) {
        handle.eager.store(true, Ordering::Relaxed);
    }
}

/// Sends SIGTERM to a task, and SIGKILL after the grace.
pub(crate) fn kill(shared: &Arc<WorkerState>, ticket: u64, grace_ms: u32, timed_out: bool) {
    let Some(handle) = lock(&shared.running).get(&ticket).cloned() else { return };
    let fate = if timed_out { AttemptStop::TimedOut } else { AttemptStop::Killed };
    handle.end(fate, libc::SIGTERM);
    let later = handle.clone();
    let kill = move || {
        thread::sleep(Duration::from_millis(grace_ms.into()));
        later.end(fate, libc::SIGKILL);
    };
    if thread::Builder::new().spawn(kill).is_err() {
        handle.end(fate, libc::SIGKILL);
    }
}

/// Gives tasks that were signalled at the end of the input time to move their outputs aside.
pub(crate) fn linger(shared: &WorkerState) {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(2) {
        let left: Vec<Arc<Handle>> = lock(&shared.running).values().cloned().collect();
        let alive = left.iter().filter(|h| h.pid.load(Ordering::SeqCst) > 0);
        if alive.count() == 0 {
            return;
        }
        if started.elapsed() > Duration::from_millis(500) {
            left.iter().for_each(|handle| handle.end(AttemptStop::Killed, libc::SIGKILL));
        }
        thread::sleep(Duration::from_millis(5));
    }
}
