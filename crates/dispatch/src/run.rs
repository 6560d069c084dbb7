//! The shell around the core: one loop that owns the state, fed by threads
//! that only read and write. What happened is journalled, then acted on.

use crate::admission::Io;
use crate::core::{Action, Core, Offer, Policy, Record};
use crate::edges::{Interrupts, Stdout};
use crate::output::{OutputOptions, Printer};
use crate::stands::Served;
use crate::wires::{Arrival, connect, feed, watch_nodes};
use homing_journal::{Journal, JournalError};
use homing_launch::{Fate, Keeper, LaunchError, Via};
use homing_model::event::What;
use homing_model::{Event, Mount, RawText, Task, TaskId};
use homing_place::HostIx;
use homing_wire::{FromWorker, HOST_LOST_S, ToWorker};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant, SystemTime};

/// Tasks held in memory to choose from; the rest stays compact in the source.
const WINDOW: usize = 20_000;
/// Room in the window that is given back to the source at once: it then
/// works in spurts, and does not wake the coordinator for each single task.
const REFILL: usize = 1024;
/// Messages taken before the journal is written and frames are sent.
const BATCH: usize = 512;
const QUEUE: usize = 4096;
const TICK: Duration = Duration::from_millis(100);
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// A host that has not answered by then joins later. Until then nobody is sent
/// the tasks of a host that is only a second behind; bounded, so that a dead
/// host does not hold the rest for the time of its connection.
const ASSEMBLE: Duration = Duration::from_secs(3);
const GOODBYE: Duration = Duration::from_secs(5);
/// Three interrupts within a run mean: now, whatever is left behind.
const IMPATIENT: u32 = 3;

/// A host to use.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// As the user names it.
    pub name: String,
    /// How to reach it.
    pub via: Via,
    /// Slots, when they do not follow from its cores.
    pub slots: Option<u32>,
}

/// What the source of tasks yields.
pub enum Incoming {
    /// A task and what is known of its inputs; volumes as mounted on the coordinator.
    Task {
        /// All but the volumes.
        offer: Box<Offer>,
        /// Network volumes that it uses.
        mounts: Vec<Mount>,
    },
    /// A volume that hosts may have under another name; comes before its tasks.
    Served(Box<Served>),
    /// Need not run.
    Skip {
        /// The task.
        task: TaskId,
        /// Why; `None` when an earlier part of the run already said so.
        reason: Option<String>,
    },
    /// The source is broken; what was read before is still run.
    Broken(String),
    /// Something to tell once.
    Note(String),
}

/// For screens.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Tasks whose last word is known.
    pub over: u64,
    /// Of these, failed.
    pub failed: u64,
    /// Attempts under way.
    pub running: usize,
    /// All tasks, when known.
    pub total: Option<u64>,
    /// Slots of the hosts that are up.
    pub slots: u32,
    /// Since the run started.
    pub elapsed: Duration,
}

/// Readers of a run: screen, job log, evidence.
pub trait Listener {
    /// Each journal record, after it was appended.
    fn event(&mut self, event: &Event);
    /// Each end of an attempt.
    fn record(&mut self, record: &Record);
    /// About ten times a second.
    fn progress(&mut self, progress: &Progress);
    /// For people, at once.
    fn note(&mut self, text: &str);
    /// At the end: the limits that were found for storage hosts, by name.
    fn learnt(&mut self, _limits: &[(String, u32)]) {}
}

/// Everything that a run needs.
pub struct Settings {
    /// Name of the run.
    pub name: String,
    /// Where it is recorded.
    pub journal: Journal,
    /// The first record.
    pub opening: What,
    /// The user's decisions.
    pub policy: Policy,
    /// Hosts; the run starts with the first that answers.
    pub hosts: Vec<HostPlan>,
    /// Hosts to use when none of those is granted for long, or none is left.
    pub spares: Vec<HostPlan>,
    /// Slots from cores, where the plan does not say.
    pub slots: Box<dyn Fn(u32) -> u32>,
    /// How to launch workers.
    pub launch: homing_launch::Options,
    /// Working directory of tasks.
    pub cwd: RawText,
    /// Environment of tasks.
    pub env: Vec<(RawText, RawText)>,
    /// The tasks.
    pub source: Box<dyn Iterator<Item = Incoming> + Send>,
    /// Their number, when known.
    pub total: Option<u64>,
    /// What to do with what they print.
    pub output: OutputOptions,
    /// Files for a task's output (`--results`).
    pub results: Option<ResultFiles>,
    /// SIGINT, SIGTERM and SIGHUP.
    pub interrupts: Arc<Interrupts>,
}

/// Makes the files for one task's standard output and error output.
pub type ResultFiles = Box<dyn Fn(&Task) -> io::Result<(std::fs::File, std::fs::File)>>;

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError {
    /// The record of the run cannot be written: going on would lose what happened.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No worker answered; why was told as it happened.
    #[error("no host is left to run on: {0} cannot be used")]
    NoHosts(String),
    /// The user's output or a results file cannot be written.
    #[error("cannot write the output of tasks: {0}")]
    Output(io::Error),
}

pub(crate) struct Link {
    pub(crate) ix: Option<HostIx>,
    pub(crate) to: Option<Sender<Vec<u8>>>,
    keeper: Option<Keeper>,
    heard: Instant,
    pub(crate) out: Vec<u8>,
    refused: bool,
    /// It was told to finish before the run's end.
    pub(crate) released: bool,
    /// Its administrator wants it empty.
    pub(crate) drained: bool,
    /// Another was asked for in its place.
    pub(crate) replaced: bool,
}

impl Link {
    pub(crate) fn new() -> Link {
        Link {
            ix: None,
            to: None,
            keeper: None,
            heard: Instant::now(),
            out: Vec::new(),
            refused: false,
            released: false,
            drained: false,
            replaced: false,
        }
    }

    /// It may still come up.
    pub(crate) fn is_pending(&self) -> bool {
        self.ix.is_none() && !self.refused
    }
}

pub(crate) struct Shell<'a, L: Listener> {
    pub(crate) core: Core,
    journal: Journal,
    printer: Printer<io::BufWriter<Stdout>, io::Stderr>,
    pub(crate) links: Vec<Link>,
    plan_of: Vec<usize>,
    args: HashMap<u64, Vec<RawText>>,
    refused: Vec<String>,
    window: Sender<()>,
    owed: usize,
    begin: ToWorker,
    pub(crate) settings_hosts: Vec<HostPlan>,
    pub(crate) queue: SyncSender<Arrival>,
    pub(crate) launch: homing_launch::Options,
    pub(crate) spares: VecDeque<HostPlan>,
    pub(crate) patience_told: bool,
    /// When a host was last asked for or lost.
    pub(crate) asked: Instant,
    slots: Box<dyn Fn(u32) -> u32>,
    results: Option<ResultFiles>,
    total: Option<u64>,
    pub(crate) listener: &'a mut L,
}

fn now_ns() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64)
}

/// Runs it all; returns the exit status.
pub fn run<L: Listener>(settings: Settings, listener: &mut L) -> Result<i32, DispatchError> {
    let (queue, arrivals) = sync_channel(QUEUE);
    let (window, tickets) = channel();
    for _ in 0..WINDOW {
        let _ = window.send(());
    }
    let stop = Arc::new(AtomicBool::new(false));
    for (at, plan) in settings.hosts.iter().enumerate() {
        connect(at, plan.clone(), settings.launch.clone(), queue.clone());
    }
    feed(settings.source, queue.clone(), tickets, stop.clone());
    let all = settings.hosts.iter().chain(&settings.spares);
    let nodes: Vec<String> = all.filter(|h| matches!(h.via, Via::Slurm(_))).map(|h| h.name.clone()).collect();
    if !nodes.is_empty() {
        watch_nodes(nodes, queue.clone());
    }
    let stdout = io::BufWriter::with_capacity(64 << 10, Stdout);
    let pulse = settings.policy.io == Io::Auto;
    let mut shell = Shell {
        core: Core::new(settings.policy, settings.total),
        journal: settings.journal,
        printer: Printer::new(settings.output.clone(), stdout, io::stderr()),
        links: settings.hosts.iter().map(|_| Link::new()).collect(),
        plan_of: Vec::new(),
        args: HashMap::new(),
        refused: Vec::new(),
        window,
        owed: 0,
        begin: ToWorker::Begin {
            run: settings.name,
            cwd: settings.cwd,
            env: settings.env,
            slots: 1,
            sample_ms: 1000,
            pulse,
            eager_output: settings.output.line_buffer,
        },
        settings_hosts: settings.hosts,
        queue,
        launch: settings.launch,
        spares: settings.spares.into(),
        patience_told: false,
        asked: Instant::now(),
        slots: settings.slots,
        results: settings.results,
        total: settings.total,
        listener,
    };
    shell.record(settings.opening)?;
    shell.journal.sync()?;
    let result = shell.serve(&arrivals, &settings.interrupts);
    stop.store(true, Ordering::Relaxed);
    shell.part(&arrivals);
    let lessons = shell.core.lessons();
    shell.listener.learnt(&lessons);
    // Without a last record the run counts as interrupted, and can be resumed.
    result?;
    let (exit, ending) = shell.core.finish();
    shell.record(ending)?;
    shell.journal.sync()?;
    Ok(exit)
}

impl<L: Listener> Shell<'_, L> {
    fn serve(&mut self, arrivals: &Receiver<Arrival>, interrupts: &Interrupts) -> Result<(), DispatchError> {
        let started = Instant::now();
        let (mut seen, mut synced, mut ticked) = (0, Instant::now(), Instant::now());
        loop {
            match arrivals.recv_timeout(TICK) {
                Ok(first) => self.take(first)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("the shell's threads outlive no run"),
            }
            for arrival in arrivals.try_iter().take(BATCH) {
                self.take(arrival)?;
            }
            seen = self.signals(interrupts, seen);
            let now = now_ns();
            if ticked.elapsed() >= TICK {
                self.core.tick(now);
                self.silent_hosts(now, ticked.elapsed());
                self.core.expect_hosts(self.still_connecting());
                self.tend_slurm(started.elapsed());
                self.listener.progress(&self.progress(started.elapsed()));
                ticked = Instant::now();
            }
            if self.assembled(started.elapsed()) {
                self.core.assign(now);
            }
            self.act()?;
            if synced.elapsed() > SYNC_EVERY {
                self.journal.sync()?;
                synced = Instant::now();
            }
            let nobody = self.links.iter().all(|l| l.to.is_none()) && self.refused.len() == self.links.len();
            if nobody && self.plan_of.is_empty() {
                return Err(DispatchError::NoHosts(self.refused.join(", ")));
            }
            let stranded = self.core.is_stranded() && !self.still_connecting() && !self.revive();
            if self.core.is_over() || stranded {
                let closed = self.printer.close();
                self.printed(closed)?;
                self.name_the_silent(started.elapsed());
                return Ok(());
            }
        }
    }

    fn assembled(&self, elapsed: Duration) -> bool {
        let answered = self.plan_of.len() + self.refused.len();
        !self.plan_of.is_empty() && (answered == self.links.len() || elapsed > ASSEMBLE)
    }

    /// Hosts of which the user would otherwise hear nothing.
    fn name_the_silent(&mut self, elapsed: Duration) {
        let names = self.links.iter().zip(&self.settings_hosts).filter(|(link, _)| link.is_pending());
        let names: Vec<&str> = names.map(|(_, plan)| plan.name.as_str()).collect();
        if !names.is_empty() {
            let text =
                format!("{} had not answered after {:.1} s and did nothing", names.join(", "), elapsed.as_secs_f64());
            self.listener.note(&text);
        }
    }

    /// True while no host is up yet but one may still answer.
    fn still_connecting(&self) -> bool {
        self.links.iter().any(Link::is_pending)
    }

    fn signals(&mut self, interrupts: &Interrupts, seen: u32) -> u32 {
        let (count, signal) = interrupts.so_far();
        for nth in seen..count {
            if nth + 1 >= IMPATIENT {
                // Workers end themselves and their tasks when their input ends.
                std::process::exit(128 + signal);
            }
            self.core.interrupt(signal);
        }
        count
    }

    fn progress(&self, elapsed: Duration) -> Progress {
        let count = |key: &str| self.core.counts().get(key).copied().unwrap_or(0);
        Progress {
            over: count("done") + count("failed") + count("skipped") + count("unfinished"),
            failed: count("failed"),
            running: self.core.running(),
            total: self.total,
            slots: self.core.hosts().slots(),
            elapsed,
        }
    }

    fn take(&mut self, arrival: Arrival) -> Result<(), DispatchError> {
        match arrival {
            Arrival::Up { at, facts, to, keeper } => {
                let plan = &self.settings_hosts[at];
                let slots = plan.slots.unwrap_or_else(|| (self.slots)(facts.cores)).max(1);
                let ToWorker::Begin { slots: begin_slots, .. } = &mut self.begin else { unreachable!("made so") };
                *begin_slots = slots;
                let ix = self.core.host_up(&plan.name, slots, *facts);
                self.plan_of.push(at);
                let link = &mut self.links[at];
                (link.ix, link.to, link.keeper, link.heard) = (Some(ix), Some(to), Some(keeper), Instant::now());
                homing_wire::encode(&self.begin, &mut link.out);
            }
            Arrival::Refused { at, error } => {
                self.links[at].refused = true;
                if !matches!(error, LaunchError::NotNeeded { .. }) {
                    self.listener.note(&format!("{}: {error}", self.settings_hosts[at].name));
                }
                self.refused.push(self.settings_hosts[at].name.clone());
            }
            Arrival::Gone { at, reason, fate } => self.gone(at, &reason, fate),
            Arrival::From { at, messages } => {
                for message in messages {
                    self.worker_said(at, message)?;
                }
            }
            Arrival::Task(incoming) => self.incoming(*incoming)?,
            Arrival::SourceEnded => self.core.source_ended(),
            Arrival::WantedEmpty(nodes) => self.leave_alone(&nodes),
        }
        Ok(())
    }

    fn gone(&mut self, at: usize, reason: &str, fate: Option<Fate>) {
        let link = &mut self.links[at];
        link.to = None;
        let Some(ix) = link.ix else { return };
        self.asked = Instant::now();
        let tail = link.keeper.take().map(|keeper| {
            let tail = keeper.stderr_tail();
            end_apart(keeper, Duration::from_secs(1));
            tail
        });
        let said = tail.as_deref().and_then(|t| t.trim().lines().last()).unwrap_or("");
        let reason = if said.is_empty() { reason.to_string() } else { format!("{reason} ({said})") };
        match fate {
            Some(fate) => {
                self.core.host_ended(ix, &fate.text, fate.counts, now_ns());
                if fate.ask_again {
                    self.ask_again(at);
                }
            }
            None => self.core.host_lost(ix, &reason, now_ns()),
        }
    }

    fn silent_hosts(&mut self, now: i64, gap: Duration) {
        // After a pause of our own, silence proves nothing about the others.
        let paused = gap > Duration::from_secs(5);
        for at in 0..self.links.len() {
            let link = &mut self.links[at];
            if paused {
                link.heard = Instant::now();
            }
            if link.to.is_some() && link.heard.elapsed() > Duration::from_secs(HOST_LOST_S) {
                link.to = None;
                if let Some(keeper) = link.keeper.take() {
                    end_apart(keeper, Duration::ZERO);
                }
                if let Some(ix) = link.ix {
                    self.core.host_lost(ix, &format!("nothing heard from it for {HOST_LOST_S} s"), now);
                }
            }
        }
    }

    fn incoming(&mut self, incoming: Incoming) -> Result<(), DispatchError> {
        match incoming {
            Incoming::Task { mut offer, mounts } => {
                offer.volumes.extend(mounts.into_iter().map(|m| self.core.volume(m)));
                self.core.offer(*offer);
            }
            Incoming::Served(served) => self.core.served(*served),
            Incoming::Skip { task, reason } => {
                if let Some(reason) = reason {
                    self.core.skipped(task, reason);
                }
                self.printer.skipped(task).map_err(DispatchError::Output)?;
            }
            Incoming::Broken(text) => {
                self.listener.note(&text);
                self.core.source_broken();
            }
            Incoming::Note(text) => self.listener.note(&text),
        }
        Ok(())
    }

    fn worker_said(&mut self, at: usize, message: FromWorker) -> Result<(), DispatchError> {
        let link = &mut self.links[at];
        link.heard = Instant::now();
        // A host that was given up may still talk; its tasks already run elsewhere.
        let Some(ix) = link.ix.filter(|_| link.to.is_some()) else { return Ok(()) };
        match message {
            FromWorker::Output { ticket, stream, bytes } => {
                let args = self.args.get(&ticket).map(Vec::as_slice).unwrap_or_default();
                self.core.printed(ticket, stream, bytes.len() as u64);
                let printed = self.printer.chunk(ticket, args, stream, &bytes);
                self.printed(printed)?;
            }
            FromWorker::Ended(ended) => {
                self.core.ended(ix, ended, now_ns());
            }
            FromWorker::Stands { ask, accepted, text } => self.core.stands(ix, ask as usize, accepted, text),
            FromWorker::Unfit { ticket, missing } => self.core.unfit(ix, ticket, &missing, now_ns()),
            FromWorker::Late { ticket, change, why } => {
                // Its bound is past, and with it whatever this host had in its own caches.
                let since = homing_fence::stamp(change.path.as_path()) != change.now;
                self.core.late(ix, ticket, &change, &why, since, now_ns());
            }
            FromWorker::Sample(sample) => self.core.sample(ix, sample),
            FromWorker::Pulse(pulse) => self.core.pulse(ix, &pulse, now_ns()),
            FromWorker::Note(text) => self.listener.note(&format!("{}: {text}", self.settings_hosts[at].name)),
            FromWorker::Bye if link.released => link.to = None,
            FromWorker::Pong | FromWorker::Bye | FromWorker::Changed { .. } => {}
        }
        Ok(())
    }

    /// Nobody reads our output any more (`| head`): then nobody wants the rest.
    fn printed(&mut self, result: io::Result<()>) -> Result<(), DispatchError> {
        match result {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.core.nobody_reads();
                Ok(())
            }
            other => other.map_err(DispatchError::Output),
        }
    }

    fn record(&mut self, what: What) -> Result<(), DispatchError> {
        let event = Event { at_ns: now_ns(), what };
        self.journal.append(&event)?;
        self.listener.event(&event);
        Ok(())
    }

    /// Journal first, then tell workers, then print.
    fn act(&mut self) -> Result<(), DispatchError> {
        let mut ended = Vec::new();
        for action in self.core.take_actions() {
            match action {
                Action::Journal(what) => self.record(what)?,
                Action::Note(text) => {
                    self.listener.note(&text);
                    self.record(What::Note { text })?;
                }
                Action::Send(host, message) => self.post(host, &message),
                Action::Ended { record } => ended.push(record),
            }
        }
        self.journal.flush()?;
        for link in &mut self.links {
            if let Some(to) = link.to.as_ref().filter(|_| !link.out.is_empty()) {
                let _ = to.send(std::mem::take(&mut link.out));
            }
        }
        for record in ended {
            self.args.remove(&record.ticket);
            self.owed += usize::from(record.last);
            let printed = self.printer.ended(&record);
            self.printed(printed)?;
            self.listener.record(&record);
        }
        if self.owed >= REFILL {
            for _ in 0..std::mem::take(&mut self.owed) {
                let _ = self.window.send(());
            }
        }
        let flushed = self.printer.flush();
        self.printed(flushed)
    }

    fn post(&mut self, host: HostIx, message: &ToWorker) {
        if let ToWorker::Run { ticket, task, .. } = message {
            if !task.args.is_empty() {
                self.args.insert(*ticket, task.args.clone());
            }
            if let Some(make) = &self.results {
                match make(task) {
                    Ok((out, err)) => self.printer.results(*ticket, out, err),
                    Err(e) => self.listener.note(&format!("cannot write the results of task {}: {e}", task.id)),
                }
            }
        }
        homing_wire::encode(message, &mut self.links[self.plan_of[host]].out);
    }

    /// Takes the last sample; counts the good-byes.
    fn last_words(&mut self, at: usize, messages: Vec<FromWorker>) -> usize {
        let mut byes = 0;
        for message in messages {
            match (message, self.links[at].ix) {
                (FromWorker::Bye, _) => byes += 1,
                (FromWorker::Sample(sample), Some(ix)) => self.core.sample(ix, sample),
                _ => {}
            }
        }
        byes
    }

    /// Lets the workers go: `Finish`, their last words, then the end of their input.
    fn part(&mut self, arrivals: &Receiver<Arrival>) {
        let mut finish = Vec::new();
        homing_wire::encode(&ToWorker::Finish, &mut finish);
        let mut open = self.withdraw();
        for link in &mut self.links {
            if let Some(to) = link.to.as_ref() {
                open += usize::from(link.released || to.send(finish.clone()).is_ok());
            }
        }
        let deadline = Instant::now() + GOODBYE;
        while open > 0 {
            match arrivals.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                // One that a request of ours was granted to in the last moment ends as its input closes.
                Ok(Arrival::Gone { .. } | Arrival::Refused { .. } | Arrival::Up { .. }) => {
                    open = open.saturating_sub(1)
                }
                Ok(Arrival::From { at, messages }) => open = open.saturating_sub(self.last_words(at, messages)),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        for action in self.core.take_actions() {
            if let Action::Journal(what) = action {
                let _ = self.record(what);
            }
        }
        for link in &mut self.links {
            link.to = None;
        }
        let keepers = self.links.iter_mut().filter_map(|link| link.keeper.take());
        let ends: Vec<_> = keepers.map(|keeper| end_apart(keeper, GOODBYE)).collect();
        for end in ends {
            let _ = end.join();
        }
    }
}

/// In a thread of its own: srun may take seconds to give its job back.
fn end_apart(keeper: Keeper, grace: Duration) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        keeper.end(grace);
    })
}
