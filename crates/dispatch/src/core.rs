//! The coordinator's state: what waits, what runs where, what ends the run.
//! Events go in, actions come out; no socket, no clock, no file.

use crate::admission::{Admission, Io, storage_of};
use crate::hosts::{Hosts, VolumeIx};
use crate::stands::{Answer, Served, Stands};
use crate::written::Written;
use homing_batch::{Decision, Halt, HaltState};
use homing_model::event::{PlannedBytes, What};
use homing_model::{Change, HostFacts, IoCounters, Outcome, RawText, Task, TaskId};
use homing_place::{HostIx, Params, Placed, Placer};
use homing_wire::{Ended, Stream, ToWorker};
use std::collections::{BTreeMap, HashMap};

/// Where the user did not say how often to try, a task that keeps losing its
/// host is given up after so many losses: a command that takes its machine down
/// must not take all of them down.
const MAX_LOSSES: u32 = 3;

/// Work handed out in advance, per slot: enough to bridge one round trip,
/// measured in time so that long tasks are never bound early.
const PREFETCH_US: f64 = 20_000.0;
const PREFETCH_MOST: f64 = 48.0;

/// What a shell says of a program that SIGPIPE ended.
const SIGPIPE_STATUS: i32 = 141;

/// What the user decided about this run.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Attempts at a task, however they ended, at least 1. When the user did not
    /// say: one at a failing task, three at one that lost its host.
    pub tries: Option<u32>,
    /// When failures end the run.
    pub halt: Halt,
    /// Least time between two starts, microseconds.
    pub delay_us: u64,
    /// Memory that must be available on a host before a start, bytes.
    pub memfree: u64,
    /// Wall-clock limit of tasks that bring none of their own, milliseconds.
    pub timeout_ms: Option<u64>,
    /// Kill tasks that run longer than this share of the median, e.g. 2.0.
    pub timeout_of_median: Option<f64>,
    /// False sends tasks to hosts in turn.
    pub locality: bool,
    /// False when commands use their slot number, which is known only when a slot is free.
    pub prefetch: bool,
    /// How many tasks may use one storage host at once.
    pub io: Io,
    /// Limits with which earlier runs of this command ended, by host name.
    pub learnt: HashMap<String, u32>,
}

/// A task with what its inputs say about places.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The task.
    pub task: Task,
    /// Bytes of its inputs.
    pub total: u64,
    /// Bytes by storage host name.
    pub per_host: Vec<(String, u64)>,
    /// Network volumes that its host must have mounted.
    pub volumes: Vec<VolumeIx>,
    /// Local files that must exist on its host.
    pub requires: Vec<RawText>,
    /// False when nothing is known of its inputs.
    pub located: bool,
    /// Nothing named a file: what lies in the working directory stands for its inputs.
    pub guessed: bool,
    /// Names on shared file systems that it may read, absolute; not all need exist.
    pub reads: Vec<RawText>,
    /// Of these, what changed so shortly before that hosts may remember an older state.
    pub recent: Vec<Change>,
}

/// What the shell around the core has to do, in order.
#[derive(Debug)]
pub enum Action {
    /// Append to the journal, before anything that follows.
    Journal(What),
    /// Send to a worker.
    Send(HostIx, ToWorker),
    /// An attempt ended; `last` says whether its output is the task's.
    Ended {
        /// What is known.
        record: Box<Record>,
    },
    /// For the user.
    Note(String),
}

/// The end of an attempt, for printers and job logs.
#[derive(Debug)]
pub struct Record {
    /// The attempt's ticket on its channel.
    pub ticket: u64,
    /// The task.
    pub task: Task,
    /// Counted from 1.
    pub attempt: u32,
    /// Host name as the user knows it.
    pub host: String,
    /// How.
    pub outcome: Outcome,
    /// On the coordinator's clock, ns.
    pub start_ns: i64,
    /// Wall time.
    pub wall_us: u64,
    /// What the worker told.
    pub ended: Option<Ended>,
    /// Bytes of standard output.
    pub stdout_bytes: u64,
    /// No further attempt follows.
    pub last: bool,
}

struct Waiting {
    offer: Offer,
    attempt: u32,
    losses: u32,
}

struct Running {
    waiting: Waiting,
    host: HostIx,
    placed: Placed,
    start_ns: i64,
    killed: bool,
    /// Bytes that it printed so far, on each stream.
    printed: [u64; 2],
    stillness: Stillness,
}

/// A task whose storage serves too many at once stands still for a while.
#[derive(Clone, Copy, Debug, Default)]
struct Stillness {
    since_ns: Option<i64>,
    sum_ns: i64,
}

/// How far the run is allowed to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Going,
    Draining,
    Killing,
}

/// The state.
pub struct Core {
    policy: Policy,
    halt: HaltState,
    placer: Placer,
    hosts: Hosts,
    stands: Stands,
    admission: Admission,
    written: Written,
    waiting: HashMap<TaskId, Waiting>,
    running: HashMap<u64, Running>,
    next_ticket: u64,
    source_ended: bool,
    broken: bool,
    unread: bool,
    signal: Option<i32>,
    total: Option<u64>,
    stage: Stage,
    next_start_us: u64,
    expecting: bool,
    walls: Vec<u64>,
    counts: BTreeMap<String, u64>,
    actions: Vec<Action>,
}

impl Core {
    /// A run with no hosts yet.
    pub fn new(policy: Policy, total: Option<u64>) -> Core {
        Core {
            halt: HaltState::new(policy.halt),
            placer: Placer::new(Params { locality: policy.locality, ..Params::default() }),
            admission: Admission::new(policy.io),
            policy,
            hosts: Hosts::default(),
            stands: Stands::default(),
            written: Written::default(),
            waiting: HashMap::new(),
            running: HashMap::new(),
            next_ticket: 1,
            source_ended: false,
            broken: false,
            unread: false,
            signal: None,
            total,
            stage: Stage::Going,
            next_start_us: 0,
            expecting: false,
            walls: Vec::new(),
            counts: BTreeMap::new(),
            actions: Vec::new(),
        }
    }

    /// The hosts, for names and volumes.
    pub fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    /// Makes a network volume known; hosts are checked against it.
    pub fn volume(&mut self, mount: homing_model::Mount) -> VolumeIx {
        self.hosts.volume(mount)
    }

    /// A worker answered.
    pub fn host_up(&mut self, name: &str, slots: u32, facts: HostFacts) -> HostIx {
        let ix = self.placer.host_up(slots, facts.nic_bytes_per_s);
        self.actions.push(Action::Journal(What::HostUp { host: name.into(), slots, facts: facts.clone() }));
        let cores = facts.cores;
        self.hosts.up(ix, name, slots, facts);
        let learnt = self.policy.learnt.get(name).copied();
        self.admission.host_up(slots, cores, self.hosts.slots(), learnt);
        if self.policy.io == Io::Auto && learnt.is_some() {
            let why = "an earlier run of this command ended with it".to_string();
            let limit = self.admission.limit(ix);
            self.actions.push(Action::Journal(What::Limit { storage: name.into(), limit, why, held: 0 }));
        }
        self.tell_placer(ix);
        for volume in self.stands.volumes() {
            self.ask_blind(volume);
        }
        // What waits may lie on this host.
        let mut known: Vec<TaskId> = self.waiting.keys().copied().collect();
        known.sort_unstable();
        for id in known {
            self.placer.remove(id);
            self.place_again(id);
        }
        ix
    }

    /// A volume whose files hosts may have without its mount; told before the tasks that use it.
    pub fn served(&mut self, served: Served) {
        let volume = self.hosts.volume(served.mount.clone());
        self.stands.add(volume, served);
        self.ask_blind(volume);
    }

    fn ask_blind(&mut self, volume: VolumeIx) {
        let up = self.hosts.all_up();
        for (host, _) in self.hosts.blind(&[volume]).into_iter().filter(|(host, _)| up.contains(host)) {
            if let Some(question) = self.stands.ask(host, volume) {
                self.actions.push(Action::Send(host, question));
            }
        }
    }

    /// A host answered whether it has a volume's files.
    pub fn stands(&mut self, host: HostIx, volume: VolumeIx, accepted: bool, text: String) {
        let answer = if accepted { Answer::Yes } else { Answer::No(text.clone()) };
        if !self.stands.answered(host, volume, answer) {
            return;
        }
        if accepted {
            self.actions.push(Action::Note(format!("{}: {text}", self.hosts.name(host))));
        }
        let uses = |w: &Waiting| w.offer.volumes.contains(&volume);
        let mut users: Vec<TaskId> = self.waiting.iter().filter(|(_, w)| uses(w)).map(|(id, _)| *id).collect();
        users.sort_unstable();
        for id in users {
            // It was excluded for nothing else: no task of this volume can have failed there.
            self.placer.remove(id);
            self.placer.allow(id, host);
            self.place_again(id);
        }
    }

    /// A task is ready to be placed.
    pub fn offer(&mut self, offer: Offer) {
        self.enqueue(Waiting { offer, attempt: 1, losses: 0 });
    }

    /// A task that need not run.
    pub fn skipped(&mut self, task: TaskId, reason: String) {
        *self.counts.entry("skipped".into()).or_default() += 1;
        self.actions.push(Action::Journal(What::TaskSkipped { task, reason }));
    }

    /// No more tasks will be offered.
    pub fn source_ended(&mut self) {
        self.source_ended = true;
    }

    /// The source failed: what it gave still runs, and the run does not count as whole.
    pub fn source_broken(&mut self) {
        self.broken = true;
    }

    /// Tasks that wait in memory.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Attempts under way.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Tasks by what became of them.
    pub fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    /// Nothing runs and nothing more will.
    pub fn is_over(&self) -> bool {
        self.running.is_empty() && self.nothing_to_start()
    }

    /// Nothing runs since no host is left to run it.
    pub fn is_stranded(&self) -> bool {
        self.running.is_empty() && !self.hosts.any_up()
    }

    /// Nobody will be sent a task that is known now: all are handed out, or the run is being ended.
    pub fn nothing_to_start(&self) -> bool {
        self.stage > Stage::Going || (self.source_ended && self.waiting.is_empty())
    }

    /// What to do since the last call.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    fn enqueue(&mut self, waiting: Waiting) {
        let id = waiting.offer.task.id;
        self.waiting.insert(id, waiting);
        self.place_again(id);
    }

    fn place_again(&mut self, id: TaskId) {
        let need = self.hosts.need(&self.waiting[&id].offer);
        self.exclude_blind_hosts(id);
        self.placer.add(id, need);
    }

    /// Memory that a waiting task declared, bytes.
    fn memory_of(&self, id: TaskId) -> u64 {
        self.waiting.get(&id).and_then(|w| w.offer.task.memory).unwrap_or(0)
    }

    fn exclude_blind_hosts(&mut self, id: TaskId) {
        for host in self.hosts.too_small(self.memory_of(id)) {
            self.placer.exclude(id, host);
        }
        let volumes = self.waiting[&id].offer.volumes.clone();
        for (host, volume) in self.hosts.blind(&volumes) {
            let answer = self.stands.of(host, volume).cloned();
            if answer == Some(Answer::Yes) {
                continue;
            }
            self.placer.exclude(id, host);
            if answer == Some(Answer::Awaited) {
                continue;
            }
            if let Some(unfit) = self.hosts.unfit_once(host, volume) {
                let reason = if let Some(Answer::No(why)) = answer { why } else { unfit };
                let name = self.hosts.name(host).to_string();
                self.actions.push(Action::Note(format!("{name} is not used for tasks on that volume: {reason}")));
                self.actions.push(Action::Journal(What::HostUnfit { host: name, reason }));
            }
        }
    }

    /// Hands out work to free slots.
    pub fn assign(&mut self, now_ns: i64) {
        let now_us = (now_ns / 1000) as u64;
        if self.stage > Stage::Going {
            return;
        }
        for host in self.hosts.by_free_share() {
            while now_us >= self.next_start_us && self.hosts.may_start(host, self.policy.memfree) {
                let free = self.hosts.credit(host, self.policy.prefetch);
                let Some(placed) = (free > 0).then(|| self.placer.pick(host, free, now_us)).flatten() else { break };
                if !self.hosts.fits(host, self.memory_of(placed.task)) {
                    // The next sample, or the end of a task there, may make room.
                    self.place_again(placed.task);
                    break;
                }
                self.start(host, placed, now_ns);
                self.next_start_us = now_us + self.policy.delay_us;
                if self.policy.delay_us > 0 {
                    return;
                }
            }
        }
        self.give_up_on_homeless();
    }

    fn start(&mut self, host: HostIx, placed: Placed, now_ns: i64) {
        let Some(waiting) = self.waiting.remove(&placed.task) else { return };
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        let slot = self.hosts.take_slot(host, ticket, placed.need.cpus);
        self.hosts.claim(host, waiting.offer.task.memory.unwrap_or(0), true);
        let mut task = waiting.offer.task.clone();
        homing_batch::fill_slot(&mut task.command, slot);
        task.timeout_ms = task.timeout_ms.or(self.policy.timeout_ms);
        self.actions.push(Action::Journal(What::TaskStarted {
            task: task.id,
            attempt: waiting.attempt,
            host: self.hosts.name(host).into(),
            slot,
            command: task.command.display(),
            planned: waiting.offer.located.then(|| self.planned(&placed)),
            why: (placed.need.total > 0).then(|| placed.why.text(|host| self.hosts.name(host))),
        }));
        let requires = waiting.offer.requires.clone();
        let weigh = placed.need.total > 0;
        let fence = self.written.fence(host, &waiting.offer.reads, &waiting.offer.recent);
        self.actions.push(Action::Send(host, ToWorker::Run { ticket, slot, task, requires, weigh, fence }));
        let storage = storage_of(host, &placed);
        if placed.need.reads() {
            self.admission.started(storage);
            self.tell_placer(storage);
        }
        let stillness = Stillness::default();
        let running = Running { waiting, host, placed, start_ns: now_ns, killed: false, printed: [0; 2], stillness };
        self.running.insert(ticket, running);
    }

    fn planned(&self, placed: &Placed) -> PlannedBytes {
        let hosts = self.hosts.up_count().max(1) as u64;
        let held: u64 = placed.need.per_host.iter().map(|(_, bytes)| bytes).sum();
        PlannedBytes {
            local: placed.local,
            remote: placed.remote,
            remote_if_in_turn: placed.need.total.saturating_sub(held / hosts),
        }
    }

    /// A worker says that an attempt ended. Returns false for a ticket that is
    /// not known: a message after its host was given up, which changes nothing.
    pub fn ended(&mut self, host: HostIx, mut ended: Ended, now_ns: i64) -> bool {
        if self.running.get(&ended.ticket).is_none_or(|r| r.host != host) {
            return false;
        }
        let running = self.running.remove(&ended.ticket).expect("looked up above");
        self.release(host, ended.ticket, &running);
        self.written.add(host, std::mem::take(&mut ended.wrote), now_ns);
        self.hosts.learn(host, ended.wall_us);
        self.leave_storage(&running, ended.wall_us, now_ns);
        let placed = &running.placed;
        // A failed attempt is no measure of how long its kind takes.
        let lesson_us = if ended.outcome.is_success() { running.moved_us(ended.wall_us, now_ns) } else { 0 };
        self.placer.finished(host, placed.local, placed.remote, lesson_us, (now_ns / 1000) as u64);
        if ended.outcome.is_success() && self.policy.timeout_of_median.is_some() {
            let at = self.walls.partition_point(|w| *w < ended.wall_us);
            self.walls.insert(at, ended.wall_us);
        }
        for (from, to) in &ended.set_aside {
            let text = format!("{} is unfinished and is now {}", from.display(), to.display());
            self.actions.push(Action::Note(text));
        }
        let outcome = ended.outcome.clone();
        let again = match &outcome {
            Outcome::Exit(0) | Outcome::Killed => false,
            _ => running.waiting.attempt < self.policy.tries.unwrap_or(1) && self.stage == Stage::Going,
        };
        self.close(ended.ticket, running, outcome, Some(ended), again, now_ns);
        true
    }

    /// A running attempt printed something.
    pub fn printed(&mut self, ticket: u64, stream: Stream, bytes: u64) {
        if let Some(running) = self.running.get_mut(&ticket) {
            running.printed[usize::from(stream == Stream::Err)] += bytes;
        }
    }

    fn release(&mut self, host: HostIx, ticket: u64, running: &Running) {
        self.hosts.release(host, ticket, running.placed.need.cpus);
        self.hosts.claim(host, running.waiting.offer.task.memory.unwrap_or(0), false);
    }

    fn close(&mut self, ticket: u64, run: Running, outcome: Outcome, ended: Option<Ended>, again: bool, now_ns: i64) {
        let wall_us = ended.as_ref().map_or(((now_ns - run.start_ns) / 1000) as u64, |e| e.wall_us);
        let start_ns = now_ns - wall_us as i64 * 1000;
        let host = self.hosts.name(run.host).to_string();
        let rest = ended.as_ref().map_or([0; 2], |e| [e.stdout.len() as u64, e.stderr.len() as u64]);
        let [stdout_bytes, stderr_bytes] = [run.printed[0] + rest[0], run.printed[1] + rest[1]];
        self.actions.push(Action::Journal(What::TaskEnded {
            task: run.waiting.offer.task.id,
            attempt: run.waiting.attempt,
            host: host.clone(),
            outcome: outcome.clone(),
            start_ns,
            wall_us,
            io: ended.as_ref().map_or_else(IoCounters::default, |e| e.io.clone()),
            io_wait: ended.as_ref().and_then(|e| e.io_wait.clone()),
            stdout_bytes,
            stderr_bytes,
            last: !again,
        }));
        self.actions.push(Action::Ended {
            record: Box::new(Record {
                ticket,
                task: run.waiting.offer.task.clone(),
                attempt: run.waiting.attempt,
                host,
                outcome: outcome.clone(),
                start_ns,
                wall_us,
                ended,
                stdout_bytes,
                last: !again,
            }),
        });
        if again {
            let id = run.waiting.offer.task.id;
            let mut waiting = run.waiting;
            waiting.attempt += 1;
            if self.hosts.up_count() > 1 && !matches!(outcome, Outcome::Lost(_)) {
                self.placer.exclude(id, run.host);
            }
            self.enqueue(waiting);
        } else {
            self.count(&outcome);
        }
    }

    fn count(&mut self, outcome: &Outcome) {
        let key = match outcome {
            Outcome::Exit(0) => "done",
            Outcome::Killed => "unfinished",
            _ => "failed",
        };
        *self.counts.entry(key.into()).or_default() += 1;
        if key == "unfinished" {
            return;
        }
        match self.halt.ended_as(outcome, self.total) {
            Decision::Go => {}
            Decision::DrainThenStop => self.stage = self.stage.max(Stage::Draining),
            Decision::KillNow => self.kill_all(),
        }
    }

    /// The attempt did not start: its host does not see `missing`.
    pub fn unfit(&mut self, host: HostIx, ticket: u64, missing: &RawText, now_ns: i64) {
        let Some(running) = self.running.remove(&ticket) else { return };
        self.release(host, ticket, &running);
        self.leave_storage(&running, 0, now_ns);
        self.placer.exclude(running.waiting.offer.task.id, host);
        let reason = format!("{} is not there", missing.display());
        if self.hosts.up_count() == 1 {
            self.close(ticket, running, Outcome::CannotStart(reason), None, false, now_ns);
            return;
        }
        let name = self.hosts.name(host).to_string();
        self.actions.push(Action::Journal(What::HostUnfit { host: name, reason }));
        self.enqueue(running.waiting);
    }

    fn give_up_on_homeless(&mut self) {
        if self.expecting || !self.hosts.any_up() || !self.running.is_empty() || self.stands.pending() {
            return;
        }
        for id in self.placer.runnable_nowhere() {
            self.placer.remove(id);
            let Some(waiting) = self.waiting.remove(&id) else { continue };
            let text = "no host of this run can run it: none sees its files and has its memory, or it failed on each"
                .to_string();
            let record = Record {
                ticket: 0,
                task: waiting.offer.task,
                attempt: waiting.attempt,
                host: String::new(),
                outcome: Outcome::CannotStart(text),
                start_ns: 0,
                wall_us: 0,
                ended: None,
                stdout_bytes: 0,
                last: true,
            };
            self.count(&record.outcome.clone());
            self.actions.push(Action::Ended { record: Box::new(record) });
        }
    }

    /// Ctrl-C: the first drains, the second kills. `signal` is the number that the exit status tells.
    pub fn interrupt(&mut self, signal: i32) {
        self.signal.get_or_insert(signal);
        if self.stage == Stage::Going && !self.running.is_empty() {
            self.stage = Stage::Draining;
            let text = format!("no new tasks; waiting for {} that run (Ctrl-C again to kill them)", self.running.len());
            self.actions.push(Action::Note(text));
        } else {
            self.kill_all();
        }
    }

    /// Ends everything at once: SIGTERM from outside, or output that nobody reads.
    pub fn kill_all(&mut self) {
        self.stage = Stage::Killing;
        for (ticket, running) in &mut self.running {
            if !std::mem::replace(&mut running.killed, true) {
                let kill = ToWorker::Kill { ticket: *ticket, grace_ms: 500, timed_out: false };
                self.actions.push(Action::Send(running.host, kill));
            }
        }
    }

    /// What tasks print goes nowhere (`| head`): nobody wants the rest.
    pub fn nobody_reads(&mut self) {
        self.unread = true;
        self.kill_all();
    }

    /// Time passes: `--timeout` in per cent of the median.
    pub fn tick(&mut self, now_ns: i64) {
        self.end_stillness(now_ns);
        let Some(share) = self.policy.timeout_of_median else { return };
        if self.walls.len() < 3 {
            return;
        }
        let limit_us = self.walls[self.walls.len() / 2] as f64 * share;
        for (ticket, running) in &mut self.running {
            let elapsed_us = ((now_ns - running.start_ns) / 1000) as f64;
            if elapsed_us > limit_us && !std::mem::replace(&mut running.killed, true) {
                let kill = ToWorker::Kill { ticket: *ticket, grace_ms: 500, timed_out: true };
                self.actions.push(Action::Send(running.host, kill));
            }
        }
    }

    /// A load sample arrived.
    pub fn sample(&mut self, host: HostIx, sample: homing_model::HostSample) {
        self.hosts.sampled(host, &sample);
        let host = self.hosts.name(host).into();
        self.actions.push(Action::Journal(What::Sample { host, sample }));
    }

    /// Limits that were found under pressure, by host name: for the next run.
    pub fn lessons(&self) -> Vec<(String, u32)> {
        let all =
            (0..self.hosts.len()).filter_map(|h| Some((self.hosts.name(h).to_string(), self.admission.lesson(h)?)));
        all.collect()
    }

    /// Exit status of the run as GNU parallel gives it, and the last record.
    pub fn finish(&mut self) -> (i32, What) {
        let left = self.waiting.len() as u64 + u64::from(!self.source_ended);
        if left > 0 {
            *self.counts.entry("unfinished".into()).or_default() += self.waiting.len() as u64;
        }
        let exit = match () {
            () if self.broken => 255,
            () if self.unread => SIGPIPE_STATUS,
            () if !self.hosts.any_up() && left > 0 => 254,
            () => self.cut_short().unwrap_or(self.halt.exit_status()),
        };
        (exit, What::RunEnded { exit, counts: self.counts.clone() })
    }

    /// What a shell says of a program that a signal ended, when tasks were left undone because of one.
    fn cut_short(&self) -> Option<i32> {
        let undone = !self.source_ended || self.counts.get("unfinished").is_some_and(|n| *n > 0);
        self.signal.filter(|_| undone).map(|signal| 128 + signal)
    }
}

mod late;
mod leaving;
mod storage;
#[cfg(test)]
mod tests;

/// How many tasks may be sent ahead to a host with `slots` slots whose tasks take `mean_us`.
pub(crate) fn prefetch(slots: u32, mean_us: f64) -> u32 {
    if mean_us <= 0.0 || mean_us > PREFETCH_US {
        return 0;
    }
    (f64::from(slots) * (PREFETCH_US / mean_us).min(PREFETCH_MOST)) as u32
}
