//! The shell around the core: one loop that owns the state, fed by threads that only read and write. Each event is
//! journalled before any action on it.

mod arrivals;
mod leases;
mod parting;
mod seats;
mod watched;

use crate::admission::Io;
use crate::around::{Around, around};
use crate::core::{Action, Core, Patience, without_hosts};
use crate::output::Printer;
use crate::room::ArgumentRoom;
use crate::settings::{DispatchError, Listener, ResultFiles, RunProgress, RunSettings};
use crate::signals::{Interrupts, stdout_is_unread};
use crate::terminal::{OutputTerminal, Terminal};
use crate::transport::{Arrival, Credits, feed, watch_nodes};
use crate::watch::Watched;
use homing_journal::Journal;
use homing_launch::wire::ToWorker;
use homing_launch::{HostLinks, HostPlan, Via};
use homing_model::event::{EventKind, UNNEEDED};
use homing_model::{Event, NodeSet, Outcome, Task, TaskId};
use homing_os::clock::Moment;
use homing_place::HostIx;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

/// The number of tasks in memory to choose from. The rest stays compact in the source.
const WINDOW: usize = 20_000;
/// The free places in the window that are returned to the source at once. Thus the source works in bursts, and does
/// not wake the coordinator for each task.
const REFILL: usize = 1024;
/// Messages taken before the journal is written and frames are sent.
const BATCH: usize = 512;
const QUEUE: usize = 4096;
const TICK: Duration = Duration::from_millis(100);
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// The longest wait for hosts before tasks start on hosts without their inputs. Until then, tasks of a host that is
/// only a second late go to no other host. Bounded, so that a dead host does not delay the rest until its connection
/// fails. A later host still joins.
const ASSEMBLE: Duration = Duration::from_secs(3);
/// The wait for a host that holds inputs is longer if fetching all of them would take longer. At most as long as ssh
/// tries to connect to a dead host.
const HOMES: Patience = Patience { least_us: ASSEMBLE.as_micros() as u64, most_us: 10_000_000 };
/// The number of interrupts within a run that end this process at once, without clean-up.
const IMPATIENT: u32 = 3;
/// Two interrupts, or one signal that does not wait for tasks to end, kill the running tasks.
const KILLS: u32 = 2;

/// The state of a link in a run.
#[derive(Default)]
pub(crate) struct Use {
    /// The index of its host, once it was up.
    pub(crate) ix: Option<HostIx>,
    /// Whether it was sent `Finish` before the end of the run.
    pub(crate) released: bool,
    /// Whether its administrator wants it empty.
    pub(crate) drained: bool,
}

pub(crate) struct Shell<'a, L: Listener> {
    pub(crate) core: Core,
    journal: Journal,
    printer: Printer<io::BufWriter<OutputTerminal>, OutputTerminal>,
    terminal: Rc<Terminal>,
    around: Option<Around>,
    pub(crate) links: HostLinks<Use>,
    /// The link of each host that was up.
    link_of: Vec<usize>,
    need_all: bool,
    assembled: bool,
    in_step: bool,
    window: Sender<usize>,
    /// Channel to the thread that locates tasks again which run after others.
    again: Sender<Task>,
    owed: usize,
    room: ArgumentRoom,
    begin: ToWorker,
    queue: SyncSender<Arrival>,
    pub(crate) spares: VecDeque<HostPlan>,
    pub(crate) patience_told: bool,
    /// The time of the last request for a host, or of the last loss.
    pub(crate) last_request: Instant,
    slots: Box<dyn Fn(u32) -> u32>,
    results: Option<ResultFiles>,
    user_name: fn(u32) -> String,
    lessees: Vec<leases::Lessee>,
    watched: Watched,
    /// Tickets of tasks whose output watchers want to see.
    shown: HashMap<TaskId, u64>,
    seated: Option<seats::Seated>,
    pub(crate) listener: &'a mut L,
}

/// Carries out the whole run. Returns the exit status.
pub fn run<L: Listener>(settings: RunSettings, listener: &mut L) -> Result<i32, DispatchError> {
    let (queue, arrivals) = sync_channel(QUEUE);
    let (window, more) = channel();
    let stop = Arc::new(AtomicBool::new(false));
    let all = settings.hosts.iter().chain(&settings.spares);
    let granted: Vec<&HostPlan> = all.filter(|host| host.system().is_some()).collect();
    let system = granted.first().and_then(|host| host.system());
    let nodes: Vec<String> = granted.iter().map(|host| host.name.clone()).collect();
    let (hosts, notes) = (queue.clone(), queue.clone());
    let tell = move |at, heard| hosts.send(Arrival::Host(at, heard)).is_ok();
    let note = move |text| drop(notes.send(Arrival::Note(text)));
    let links = HostLinks::open(|_| Use::default(), settings.hosts, settings.tree, settings.launch, tell, note)
        .map_err(DispatchError::Thread)?;
    let credits = Arc::new(Credits::new(WINDOW, more));
    let source = settings.source;
    feed(source, queue.clone(), credits.clone(), stop.clone(), true).map_err(DispatchError::Thread)?;
    let (again, turns) = channel();
    if let Some(later) = settings.later {
        feed(later(turns), queue.clone(), credits, stop.clone(), false).map_err(DispatchError::Thread)?;
    }
    if let Some(system) = system {
        watch_nodes(system, nodes, queue.clone()).map_err(DispatchError::Thread)?;
    }
    let stdout = OutputTerminal::new(rustix::stdio::stdout(), &settings.terminal);
    let stdout = io::BufWriter::with_capacity(64 << 10, stdout);
    let stderr = OutputTerminal::new(rustix::stdio::stderr(), &settings.terminal);
    let pulse = settings.policy.io != Io::Off;
    let watched = Watched::new(settings.journal.dir());
    let mut shell = Shell {
        core: Core::new(settings.policy, settings.counts),
        journal: settings.journal,
        printer: Printer::new(settings.output.clone(), stdout, stderr).map_err(DispatchError::Output)?,
        terminal: settings.terminal,
        around: settings.around,
        links,
        link_of: Vec::new(),
        need_all: settings.need_all,
        assembled: false,
        in_step: settings.in_step,
        window,
        again,
        owed: 0,
        room: ArgumentRoom::beside(&settings.env),
        begin: ToWorker::Begin {
            run: settings.name,
            cwd: settings.cwd,
            env: settings.env,
            umask: settings.umask,
            slots: 1,
            sample_ms: 1000,
            pulse,
            eager_output: settings.output.line_buffer,
            nice: settings.nice,
            meter: settings.meter,
        },
        queue,
        spares: settings.spares.into(),
        patience_told: false,
        last_request: Instant::now(),
        slots: settings.slots,
        results: settings.results,
        user_name: settings.user_name,
        lessees: Vec::new(),
        watched,
        shown: HashMap::new(),
        seated: settings.seats.map(seats::Seated::new),
        listener,
    };
    shell.core.opens(&settings.opening);
    shell.record(settings.opening)?;
    shell.journal.sync()?;
    let result = shell.serve(&arrivals, &settings.interrupts);
    // If this cannot be journalled, the last record cannot be either.
    let _ = shell.tell_of_hosts(true);
    stop.store(true, Ordering::Relaxed);
    shell.give_leases_back();
    shell.watched.leave();
    shell.part(&arrivals);
    let (lessons, movers) = (shell.core.lessons(), shell.core.movers());
    shell.listener.learnt(&lessons, &movers);
    let (exit, ending) = shell.core.finish();
    let ending = match result {
        Ok(()) => ending,
        Err(DispatchError::NoHosts(_) | DispatchError::NotAllHosts(_)) => without_hosts(ending),
        // Without a last record the run counts as interrupted, and can be resumed.
        Err(e) => return Err(e),
    };
    shell.record(ending)?;
    shell.journal.sync()?;
    result.map(|()| exit)
}

impl<L: Listener> Shell<'_, L> {
    fn serve(&mut self, arrivals: &Receiver<Arrival>, interrupts: &Interrupts) -> Result<(), DispatchError> {
        let started = Instant::now();
        let (mut seen, mut synced, mut ticked) = (0, Instant::now(), Instant::now());
        self.name_the_connecting(Duration::ZERO);
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
            let now = Moment::now();
            if ticked.elapsed() >= TICK {
                self.core.tick(now.mono);
                for (at, news) in self.links.look(Instant::now()) {
                    self.news(at, news)?;
                }
                self.core.expect_hosts(self.still_connecting());
                self.name_the_connecting(started.elapsed());
                self.tell_of_hosts(false)?;
                self.tend_grants(started.elapsed());
                // A write would fail too, but with output grouped by task there may be no write for hours.
                if self.printer.waits() && stdout_is_unread() {
                    self.core.nobody_reads();
                }
                self.tell_watchers();
                self.listener.progress(&self.progress(started.elapsed()));
                ticked = Instant::now();
            }
            if self.need_all && !self.assembled && self.links.refused().next().is_some() {
                return Err(DispatchError::NotAllHosts(self.links.refused().collect()));
            }
            self.settle_seats();
            // Only once: a host that is connected again delays no task.
            self.assembled = self.assembled || self.are_assembled(started.elapsed());
            if self.assembled {
                self.core.assign(now.mono);
            } else if !self.need_all {
                self.core.assign_at_home(now.mono);
            }
            self.act()?;
            self.tell_lessees();
            if synced.elapsed() > SYNC_EVERY {
                self.journal.sync_aside()?;
                synced = Instant::now();
            }
            if self.links.iter().all(|link| link.is_refused()) {
                return Err(DispatchError::NoHosts(self.links.refused().collect()));
            }
            let stranded = self.core.is_stranded() && !self.still_connecting() && !self.revive();
            if self.core.is_over() || stranded {
                let closed = self.printer.close();
                self.printed(closed)?;
                if self.core.wanted_hosts() {
                    self.name_the_silent(started.elapsed())?;
                }
                return Ok(());
            }
        }
    }

    fn are_assembled(&self, elapsed: Duration) -> bool {
        let waited = elapsed > ASSEMBLE && !self.need_all;
        !self.link_of.is_empty() && (!self.still_connecting() || waited)
    }

    fn name_the_connecting(&mut self, elapsed: Duration) {
        // Requests that a batch system queues may be granted only after an hour.
        let hosts = self.links.pending().filter(|plan| matches!(plan.via, Via::Ssh { .. }));
        self.core.connecting(hosts.map(|plan| plan.name.as_str()), elapsed.as_micros() as u64, HOMES);
    }

    /// Reports the hosts that never answered. The user would not learn of them otherwise.
    fn name_the_silent(&mut self, elapsed: Duration) -> Result<(), DispatchError> {
        let hosts: Vec<String> = self.links.pending().map(|plan| plan.name.clone()).collect();
        if hosts.is_empty() {
            return Ok(());
        }
        let reason = format!("had not answered when the run ended after {:.1} s: {UNNEEDED}", elapsed.as_secs_f64());
        let names: NodeSet = hosts.iter().cloned().collect();
        self.listener.note(&format!("{names} {reason}"));
        hosts.into_iter().try_for_each(|host| self.record(EventKind::HostUnfit { host, reason: reason.clone() }))
    }

    /// Whether one of the hosts may still answer.
    fn still_connecting(&self) -> bool {
        self.links.pending().next().is_some()
    }

    /// Reports the changes of hosts, equal ones in one line.
    fn tell_of_hosts(&mut self, ends: bool) -> Result<(), DispatchError> {
        let now = Instant::now();
        self.links.refusals(now, ends).iter().for_each(|line| self.listener.note(line));
        self.links.notes(now, ends).into_iter().try_for_each(|text| self.note(text))
    }

    fn signals(&mut self, interrupts: &Interrupts, seen: u32) -> u32 {
        let (count, signal) = interrupts.so_far();
        if count > seen && count >= IMPATIENT {
            self.terminal.clear();
            // Workers end themselves and their tasks when their input ends.
            std::process::exit(128 + signal);
        }
        if count > seen {
            self.core.interrupt(signal, count >= KILLS);
        }
        count
    }

    fn progress(&self, elapsed: Duration) -> RunProgress {
        let counts = self.core.counts();
        RunProgress {
            over: counts.over(),
            failed: counts.failed(),
            running: self.core.running(),
            total: counts.total,
            slots: self.core.hosts().slots(),
            hosts: self.core.hosts().up_count(),
            elapsed,
        }
    }

    /// Handles the result of a print. If the reader of standard output is gone (`| head`), the run ends.
    fn printed(&mut self, result: io::Result<()>) -> Result<(), DispatchError> {
        match result {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.core.nobody_reads();
                Ok(())
            }
            other => other.map_err(DispatchError::Output),
        }
    }

    /// Shows a note to the user, and journals it for later readers of the run.
    fn note(&mut self, text: String) -> Result<(), DispatchError> {
        self.listener.note(&text);
        self.record(EventKind::Note { text })
    }

    fn record(&mut self, what: EventKind) -> Result<(), DispatchError> {
        let event = Event { at_ns: homing_os::clock::wall_ns(), what };
        self.journal.append(&event)?;
        self.listener.event(&event);
        Ok(())
    }

    /// Carries out the core's actions: journals first, then sends to workers, then prints.
    fn act(&mut self) -> Result<(), DispatchError> {
        let mut ended = Vec::new();
        let actions = self.core.take_actions();
        let ends = actions.iter().filter_map(|action| match action {
            Action::Ended { record } => Some(&**record),
            _ => None,
        });
        let kept = self.printer.keep(ends);
        self.printed(kept)?;
        for action in actions {
            match action {
                Action::Journal(what) => self.record(what)?,
                Action::Note(text) => self.note(text)?,
                Action::HostNote(host, text) => self.links.add_note(self.link_of[host], &text, Instant::now()),
                Action::Send(host, message) => self.post(host, &message)?,
                Action::Ended { record } => ended.push(record),
                Action::Share(server, place) => self.share(server, place),
                Action::Locate(task) => drop(self.again.send(*task)),
            }
        }
        self.journal.flush()?;
        self.links.flush();
        for record in ended {
            // A task that was given up while it waited for others was never in the window.
            self.owed += usize::from(record.last && !matches!(record.outcome, Outcome::NotRun(_)));
            let printed = self.printer.ended(&record);
            self.printed(printed)?;
            self.listener.record(&record);
        }
        if self.owed >= REFILL {
            let _ = self.window.send(std::mem::take(&mut self.owed));
        }
        let flushed = self.printer.flush();
        self.printed(flushed)
    }

    fn post(&mut self, host: HostIx, message: &ToWorker) -> Result<(), DispatchError> {
        if let ToWorker::Run { ticket, slot, task, .. } = message {
            let begun = self.printer.begins(*ticket, task, *slot);
            self.printed(begun)?;
            if let Some(make) = &self.results {
                match make(task) {
                    Ok((out, err)) => self.printer.results(*ticket, out, err),
                    Err(e) => {
                        self.core.unsaved(*ticket, &format!("cannot write its results: {e}"), Moment::now());
                        return Ok(());
                    }
                }
            }
        }
        let out = &mut self.links[self.link_of[host]].out;
        if let ToWorker::Run { ticket, task, .. } = message
            && let Err(e) = crate::stdin::feed(*ticket, &task.stdin, out)
        {
            self.core.unsaved(*ticket, &format!("cannot read its input in the run's folder: {e}"), Moment::now());
            return Ok(());
        }
        let around = self.around.as_ref().map(|program| around(program, message));
        let sent = homing_launch::wire::encode(around.as_ref().unwrap_or(message), out);
        if let (Err(error), ToWorker::Run { ticket, .. }) = (sent, message) {
            self.core.unsaved(*ticket, &error.to_string(), Moment::now());
        }
        Ok(())
    }
}
