//! The exchange of messages with the coordinator.

use crate::attempt::AttemptStop;
use crate::environment::Environment;
use crate::input::GrowingFile;
use crate::recipe::Recipes;
use crate::shared::{LEAVE, SlotOrder, TaskSettings, WorkerState};
use crate::slots::{be_eager, kill, linger, take};
use crate::spawn::{Ground, PathCache};
use crate::view::{VolumeQuestion, stand};
use homing_launch::wire::{FromWorker, HEARTBEAT_S, ToWorker, WORKER_LEASE_S};
use homing_model::{FileChange, RawText};
use homing_os::names::VariableOrigin;
use homing_os::threads::{begin, lock};
use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{BufReader, Read, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Sets the signal handlers. The coordinator answers SIGINT from the terminal; a broken pipe is an error of `write`;
/// SIGTERM and SIGHUP end all that this worker started.
pub(crate) fn ignore_terminal_signals() {
    extern "C" fn leave(_: libc::c_int) {
        // The end of the input ends the session in the ordinary way.
        // SAFETY: open and dup2 are async-signal-safe; the next read finds the end of the input.
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

/// Descriptors of a task while it runs: two pipes with both their ends, its pidfd, its byte counters, and its
/// standard input. The units of resources take one more each, and few tasks have any.
const FILES_OF_A_TASK: u64 = 7;
/// Other descriptors that the worker has or opens for a moment.
const FILES_BESIDES: u64 = 64;

/// Returns how many tasks at once a hard limit on descriptors allows, at least one.
fn most_tasks(limit: u64) -> u32 {
    u32::try_from(limit.saturating_sub(FILES_BESIDES) / FILES_OF_A_TASK).unwrap_or(u32::MAX).max(1)
}

enum CoordinatorInput {
    Messages(Vec<ToWorker>),
    End,
}

/// Serves the protocol until the input ends or, if `leased`, until no message came for the time of the lease. Returns
/// the exit status. Calls `heard` as long as the worker may continue. The caller ends the processes that are left
/// (`main_stdio` sweeps).
pub fn serve(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
    leased: bool,
    heard: impl Fn(),
) -> i32 {
    let mut facts = homing_probe::facts();
    facts.most_tasks = Some(most_tasks(homing_os::process::users_files().rlim_max));
    let host = facts.hostname.clone();
    let mut output: Box<dyn Write + Send> = Box::new(output);
    if homing_launch::wire::send_hello(&mut output, &facts).is_err() {
        return 1;
    }
    let shared = Arc::new(WorkerState::new(output));
    let holder = shared.clone();
    let (news, inbox) = channel();
    if let Err(error) = begin(move || holder.release_held()).and_then(|_| begin(move || read(input, &news))) {
        homing_os::say!("homing: the worker cannot start: {error}");
        return 1;
    }
    let status = converse(&inbox, &shared, host, leased, heard);
    shared.leaving.store(true, Ordering::SeqCst);
    // Before the running tasks end: their slots would otherwise start the queued ones.
    lock(&shared.orders).queue.clear();
    for handle in lock(&shared.running).values() {
        handle.end(AttemptStop::Killed, libc::SIGTERM);
    }
    linger(&shared);
    status
}

fn read(input: impl Read, news: &Sender<CoordinatorInput>) {
    let mut input = BufReader::new(input);
    loop {
        let message = match homing_launch::wire::receive_some(&mut input) {
            Ok(messages) if !messages.is_empty() => CoordinatorInput::Messages(messages),
            Ok(_) | Err(_) => CoordinatorInput::End,
        };
        let last = matches!(message, CoordinatorInput::End);
        if news.send(message).is_err() || last {
            return;
        }
    }
}

fn converse(
    inbox: &Receiver<CoordinatorInput>,
    shared: &Arc<WorkerState>,
    host: String,
    leased: bool,
    heard: impl Fn(),
) -> i32 {
    let mut session = WorkerSession::new(shared.clone(), host);
    let mut last_heard = Instant::now();
    loop {
        match inbox.recv_timeout(Duration::from_millis(200)) {
            Ok(CoordinatorInput::Messages(messages)) => {
                last_heard = Instant::now();
                heard();
                for message in messages {
                    if let Err(error) = session.obey(message) {
                        homing_os::say!("homing: the worker failed: {error}");
                        return 1;
                    }
                }
            }
            Ok(CoordinatorInput::End) | Err(RecvTimeoutError::Disconnected) => return i32::from(!session.finishing),
            Err(RecvTimeoutError::Timeout) => {
                if !leased {
                    heard();
                }
                let silent = leased && last_heard.elapsed() > Duration::from_secs(WORKER_LEASE_S);
                if silent || LEAVE.load(Ordering::SeqCst) {
                    return 1;
                }
            }
        }
    }
}

/// The state that the coordinator's messages have set up.
struct WorkerSession {
    shared: Arc<WorkerState>,
    host: String,
    run: Option<Arc<TaskSettings>>,
    slots: usize,
    finishing: bool,
    /// The first parts of the next task's fence.
    ahead: Vec<FileChange>,
    /// The standard inputs of tasks that are still to come, by ticket.
    inputs: HashMap<u64, GrowingFile>,
}

impl WorkerSession {
    fn new(shared: Arc<WorkerState>, host: String) -> WorkerSession {
        WorkerSession { shared, host, run: None, slots: 1, finishing: false, ahead: Vec::new(), inputs: HashMap::new() }
    }

    /// Carries out a message. An error ends the worker.
    fn obey(&mut self, message: ToWorker) -> std::io::Result<()> {
        match message {
            ToWorker::Begin { run: name, cwd, env, umask, slots, sample_ms, pulse, eager_output, nice, meter } => {
                self.lower_priority(nice);
                rustix::process::umask(rustix::fs::Mode::from_raw_mode(umask));
                self.slots = slots.max(1) as usize;
                self.run = Some(Arc::new(TaskSettings {
                    name,
                    cwd: cwd.to_path(),
                    env: Environment::new(&with_login(env, std::env::vars_os())),
                    eager: eager_output,
                    host: self.host.clone(),
                    found: PathCache::default(),
                    ground: Ground::new()?,
                }));
                if pulse {
                    crate::pulse::send(self.shared.clone())?;
                }
                if sample_ms > 0 {
                    let shared = self.shared.clone();
                    crate::energy::measure(shared.energy.clone(), meter, move |why| {
                        shared.send(FromWorker::Note(why))
                    })?;
                }
                sample(sample_ms, self.shared.clone())?;
            }
            ToWorker::Run { ticket, slot, task, requires, weigh, fence, units } => {
                let fence = self.with_what_came_ahead(fence);
                if let Some(run) = &self.run {
                    let stdin = self.inputs.remove(&ticket);
                    let order = SlotOrder { ticket, slot, task, requires, weigh, fence, recipe: None, stdin, units };
                    take(&self.shared, run, self.slots, order);
                }
            }
            ToWorker::Watch { roots } => {
                drop(self.shared.recipes.set(Recipes::new(&roots)?));
            }
            ToWorker::Recipe { ticket, task, folders } => {
                if let Some(run) = &self.run {
                    let (requires, weigh, slot, recipe) = (vec![], false, 1, Some(folders));
                    let (fence, units, stdin) = (vec![], vec![], None);
                    let order = SlotOrder { ticket, slot, task, requires, weigh, fence, recipe, stdin, units };
                    take(&self.shared, run, self.slots, order);
                }
            }
            ToWorker::Written { changes } => match self.shared.recipes.get() {
                Some(recipes) => recipes.expect(changes),
                None => self.ahead.extend(changes),
            },
            ToWorker::Input { ticket, bytes } => self.inputs.entry(ticket).or_insert_with(GrowingFile::new).add(&bytes),
            ToWorker::Kill { ticket, grace_ms, timed_out } => kill(&self.shared, ticket, grace_ms, timed_out),
            ToWorker::Eager { ticket } => be_eager(&self.shared, ticket),
            ToWorker::HasVolume { ask, point, path, nonce, secret } => {
                let shared = self.shared.clone();
                // In a separate thread: looking may wait for automount.
                let looked = begin(move || answer(&shared, ask, &VolumeQuestion { point, path, nonce, secret }));
                if let Err(error) = looked {
                    self.shared.send(FromWorker::HasVolume { ask, accepted: false, text: error.to_string() });
                }
            }
            ToWorker::Ping => self.shared.send(FromWorker::Pong),
            ToWorker::Finish => self.finish()?,
        }
        Ok(())
    }

    /// Lowers the priority of tasks. On Linux each thread has its own, which its new threads and processes inherit:
    /// the slots, and through them the tasks.
    fn lower_priority(&self, by: i32) {
        if by != 0
            && let Err(error) = rustix::process::nice(by)
        {
            self.shared.send(FromWorker::Note(format!("tasks run without --nice {by}: {error}")));
        }
    }

    /// Returns the whole fence of the next task; `last` is its last part.
    fn with_what_came_ahead(&mut self, last: Vec<FileChange>) -> Vec<FileChange> {
        self.ahead.drain(..).chain(last).collect()
    }

    /// Sends `Bye` when the last task has ended.
    fn finish(&mut self) -> std::io::Result<()> {
        self.finishing = true;
        lock(&self.shared.orders).closed = true;
        self.shared.changed.notify_all();
        let shared = self.shared.clone();
        begin(move || {
            let mut orders = lock(&shared.orders);
            while orders.open > 0 {
                orders = shared.changed.wait(orders).unwrap_or_else(PoisonError::into_inner);
            }
            drop(orders);
            shared.send(FromWorker::Sample(shared.sample()));
            shared.send(FromWorker::Bye);
        })
        .map(drop)
    }
}

/// Adds the login variables of this worker's environment to that of the run, unless the run sets them.
fn with_login(
    mut env: Vec<(RawText, RawText)>,
    own: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(RawText, RawText)> {
    let of_login = own.filter(|(name, _)| homing_os::names::origin(name) == VariableOrigin::Login);
    for (name, value) in of_login.map(|(name, value)| (RawText::from(name), value.into())) {
        if !env.iter().any(|(known, _)| *known == name) {
            env.push((name, value));
        }
    }
    env
}

/// Checks whether this host has the files of a volume, and sends the answer.
fn answer(shared: &WorkerState, ask: u64, question: &VolumeQuestion) {
    // Locked during the check: a second check builds on the result of the first.
    let mut view = lock(&shared.view);
    let (accepted, text) = match stand(question, &view) {
        Ok((with, how)) => {
            *view = Arc::new(with);
            (true, how)
        }
        Err(why) => (false, why),
    };
    drop(view);
    shared.send(FromWorker::HasVolume { ask, accepted, text });
}

/// Sends a sample every `sample_ms`, or heartbeats if that is 0. Reaps orphans that have ended.
fn sample(sample_ms: u32, shared: Arc<WorkerState>) -> std::io::Result<()> {
    begin(move || {
        let pause = match sample_ms {
            0 => Duration::from_secs(HEARTBEAT_S),
            ms => Duration::from_millis(ms.into()),
        };
        let mut seen = None;
        loop {
            let message = if sample_ms > 0 { FromWorker::Sample(shared.sample()) } else { FromWorker::Pong };
            shared.send(message);
            let is_task = |pid| lock(&shared.running).values().any(|h| h.pid.load(Ordering::SeqCst) == pid);
            homing_os::process::reap_orphans(is_task, &mut seen);
            thread::sleep(pause);
        }
    })
    .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_the_login_are_those_here_unless_they_were_named_for_the_tasks() {
        let pair = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
        let of = |sent: &[(&str, &str)], own: &[(&str, &str)]| {
            let sent = sent.iter().map(|(name, value)| (RawText::from(*name), RawText::from(*value))).collect();
            let own = own.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
            let all = with_login(sent, own.collect::<Vec<_>>().into_iter());
            all.into_iter().map(|(name, value)| (name.display(), value.display())).collect::<Vec<_>>()
        };
        let here = [("HOME", "/home/ann"), ("PATH", "/bin"), ("XDG_RUNTIME_DIR", "/run/1"), ("SHLVL", "1"), ("A", "x")];
        let all = [("PATH", "/venv/bin"), ("A", "y"), ("HOME", "/home/ann"), ("XDG_RUNTIME_DIR", "/run/1")];
        assert_eq!(of(&[("PATH", "/venv/bin"), ("A", "y")], &here), all.map(pair));
        assert_eq!(of(&[], &here[3..]), [], "what is of one shell, or the submitter's, is not taken from here");
    }

    #[test]
    fn parts_of_a_fence_that_came_ahead_are_the_next_tasks() {
        let shared = Arc::new(WorkerState::new(Box::new(std::io::sink())));
        let mut session = WorkerSession::new(shared, "h".into());
        let change = |path: &str| FileChange { path: path.into(), now: None, fresh: false, was: None };
        for path in ["/a", "/b"] {
            session.obey(ToWorker::Written { changes: vec![change(path)] }).unwrap();
        }
        let whole = session.with_what_came_ahead(vec![change("/c")]);
        assert_eq!(whole, ["/a", "/b", "/c"].map(change));
        assert_eq!(session.with_what_came_ahead(vec![change("/d")]), [change("/d")], "and of no other");
    }
}
