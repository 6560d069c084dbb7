//! The coordinator of a build: one loop that owns the state of hosts, waiting recipes and running recipes. Threads
//! bring it messages and carry its answers.

mod hosts;
mod live;
#[cfg(test)]
mod tests;

use crate::asked::{BuildEvent, RecipeRequest, ToConnection};
use crate::host::BuildHost;
use crate::near::Near;
use crate::reporter::BuildReporter;
use crate::running::{RecipeAttempt, RecipeDetails};
use crate::{Build, Candidate, Evidence, HostChoice, Ran, choose, order, room};
use homing_launch::wire::{AttemptEnd, FromWorker, OutputStream, ToWorker};
use homing_launch::{Attempt, Attempts, HostLink, HostLinks};
use homing_model::event::EventKind;
use homing_model::{Command, FileChange, Outcome, RawText, Task};
use homing_os::clock::wall_ns;
use homing_os::threads::lock;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL for an interrupted recipe.
const GRACE_MS: u32 = 2000;
/// The assumed duration of a recipe before any has ended, microseconds.
const FIRST_GUESS_US: f64 = 500_000.0;
/// Number of ended recipes from which on the typical duration is known. Among fewer, the short ones prevail.
const KNOWN_FROM: usize = 8;

/// The state of the loop.
pub struct Core {
    build: Build,
    /// Whether there is only one host.
    alone: bool,
    near: Arc<Near>,
    hosts: HostLinks<BuildHost>,
    waiting: VecDeque<RecipeRequest>,
    running: Attempts<RecipeDetails>,
    ticket: u64,
    last_of: HashMap<RawText, usize>,
    typical_us: f64,
    began: Instant,
    evidence: Evidence,
    reported_unshared: bool,
    tickets: HashMap<u64, usize>,
    reporter: BuildReporter,
}

impl Core {
    /// Makes the coordinator while hosts are still being connected to.
    pub fn new(build: Build, hosts: HostLinks<BuildHost>, near: Arc<Near>, reporter: BuildReporter) -> Core {
        Core {
            build,
            alone: hosts.len() == 1,
            near,
            hosts,
            waiting: VecDeque::new(),
            running: Attempts::new(),
            ticket: 0,
            last_of: HashMap::new(),
            typical_us: FIRST_GUESS_US,
            began: Instant::now(),
            evidence: Evidence::default(),
            reported_unshared: false,
            tickets: HashMap::new(),
            reporter,
        }
    }

    /// Runs until make is over. Returns the evidence of the build.
    pub fn serve(mut self, news: &Receiver<BuildEvent>) -> Evidence {
        loop {
            match news.recv_timeout(Duration::from_secs(1)) {
                Ok(BuildEvent::Over) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(first) => self.take(first),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.look_at_hosts();
            self.dispatch();
            self.hosts.flush();
        }
        self.part();
        self.evidence
    }

    fn take(&mut self, news: BuildEvent) {
        match news {
            BuildEvent::Host(at, heard) => {
                if let Some(news) = self.hosts.handle_event(at, heard, Instant::now()) {
                    self.host(at, news);
                }
            }
            BuildEvent::Note(text) => self.note(&text),
            BuildEvent::Asked(asked) => self.waiting.push_back(*asked),
            BuildEvent::Stop { id } => self.stop(id),
            BuildEvent::Seen { ticket, took } => {
                if let Some(ran) = self.tickets.remove(&ticket).and_then(|at| self.evidence.ran.get_mut(at)) {
                    ran.fence_us += took.as_micros() as u64;
                    ran.ended_us = self.began.elapsed().as_micros() as u64;
                }
            }
            BuildEvent::Watched { shown, reply } => {
                let _ = reply.send(self.seen(&shown));
            }
            BuildEvent::End { task } => self.end_task(task),
            BuildEvent::Over => {}
        }
    }

    /// Shows a message to the user, and records it.
    fn note(&mut self, text: &str) {
        print_message(text);
        self.report_event(EventKind::Note { text: text.into() });
    }

    fn report_event(&mut self, what: EventKind) {
        self.reporter.report_event(wall_ns(), what);
    }

    /// Records the end of a recipe that no worker has reported.
    fn gave_up(&mut self, running: &RecipeAttempt, outcome: Outcome, last: bool) {
        self.reporter.gave_up(wall_ns(), running, &self.hosts[running.host].name, outcome, last);
    }

    fn worker_said(&mut self, at: usize, message: FromWorker) {
        match message {
            FromWorker::Output { ticket, stream, bytes } => {
                if let Some(running) = self.running.get_mut(&ticket) {
                    running.prints(stream, &bytes);
                    let _ = running.request.reply.send(ToConnection::Output(stream, bytes));
                }
            }
            FromWorker::Changed { ticket, changes, fence_us } => {
                self.evidence.changes += changes.len() as u64;
                let observer = self.hosts[at].observer(at);
                lock(&self.near.log).add(observer, changes);
                if let Some(running) = self.running.get_mut(&ticket) {
                    running.fence_us += fence_us;
                }
            }
            FromWorker::Ended(ended) => self.ended(ended),
            FromWorker::Late { ticket, change, why } => self.late(ticket, &change, why),
            FromWorker::Unfit { ticket, missing } => {
                if let Some(mut running) = self.give_back(ticket) {
                    let (host, missing) = (self.hosts[at].name.clone(), missing.display());
                    print_message(&format!("{host} has no {missing}"));
                    self.report_event(EventKind::HostUnfit { host, reason: format!("{missing} is missing") });
                    self.reporter.has_not_begun(&running);
                    running.request.unfit.push(at);
                    self.again(running);
                }
            }
            FromWorker::Sample(sample) => {
                self.report_event(EventKind::Sample { host: self.hosts[at].name.clone(), sample: sample.clone() });
                self.hosts[at].take_sample(sample);
            }
            FromWorker::Note(text) => self.note(&format!("{}: {text}", self.hosts[at].name)),
            FromWorker::HasVolume { .. }
            | FromWorker::Pulse(_)
            | FromWorker::Served { .. }
            | FromWorker::Pong
            | FromWorker::Bye => {}
        }
    }

    fn give_back(&mut self, ticket: u64) -> Option<RecipeAttempt> {
        let running = self.running.remove(&ticket)?;
        self.vacate(&running);
        Some(running)
    }

    fn vacate(&mut self, running: &RecipeAttempt) {
        if let Some(used) = self.hosts[running.host].used.get_mut(running.slot) {
            *used = false;
        }
    }

    /// Puts the recipe back into the queue, unless it was stopped.
    fn again(&mut self, running: RecipeAttempt) {
        match running.killed {
            true => running.request.was_killed(),
            false => self.waiting.push_front(running.of.request),
        }
    }

    fn ended(&mut self, ended: AttemptEnd) {
        let Some(mut running) = self.give_back(ended.ticket) else { return };
        for (stream, bytes) in [(OutputStream::Out, &ended.stdout), (OutputStream::Err, &ended.stderr)] {
            running.prints(stream, bytes);
        }
        self.reporter.ended(wall_ns(), &running, &self.hosts[running.host].name, &ended);
        let us = |at: Instant| at.duration_since(self.began).as_micros() as u64;
        let weight = (1.0 / (self.evidence.ran.len() + 1) as f64).max(0.1);
        self.typical_us += weight * (ended.wall_us as f64 - self.typical_us);
        self.tickets.insert(ended.ticket, self.evidence.ran.len());
        self.evidence.ran.push(Ran {
            label: running.request.label(),
            host: self.hosts[running.host].name.clone(),
            slot: running.slot as u32 + 1,
            why: running.choice.why,
            asked_us: us(running.request.at),
            sent_us: us(running.sent),
            ended_us: us(Instant::now()),
            wall_us: ended.wall_us,
            cpu_us: ended.io.user_us + ended.io.sys_us,
            fence_us: running.fence_us,
            failed: !ended.outcome.is_success(),
            again: running.request.again,
        });
        let reply = &running.request.reply;
        for (stream, bytes) in [(OutputStream::Out, ended.stdout), (OutputStream::Err, ended.stderr)] {
            if !bytes.is_empty() {
                let _ = reply.send(ToConnection::Output(stream, bytes));
            }
        }
        let _ = reply.send(ToConnection::Ended { ticket: ended.ticket, outcome: ended.outcome });
    }

    /// Handles a host that does not see a file as another one wrote it. If that file has changed since, the host
    /// waited for an outdated state.
    fn late(&mut self, ticket: u64, change: &FileChange, why: String) {
        let Some(running) = self.give_back(ticket) else { return };
        if self.near.is_outdated(change) {
            // It has not begun, and the host is not at fault.
            self.reporter.has_not_begun(&running);
            return self.again(running);
        }
        let why = format!("{}: {why}", self.hosts[running.host].name);
        self.gave_up(&running, Outcome::CannotStart(why.clone()), true);
        let _ = running.request.reply.send(ToConnection::Failed(why));
    }

    fn stop(&mut self, id: u64) {
        if let Some(at) = self.waiting.iter().position(|a| a.id == id)
            && let Some(asked) = self.waiting.remove(at)
        {
            asked.was_killed();
        }
        self.kill(id);
    }

    /// Ends the running recipe of this connection.
    fn kill(&mut self, id: u64) {
        for (ticket, running) in self.running.iter_mut().filter(|(_, r)| r.request.id == id) {
            if let Some(kill) = running.kill(*ticket, GRACE_MS, false) {
                let _ = self.hosts[running.host].queue_message(&kill);
            }
        }
    }

    fn dispatch(&mut self) {
        // This is also called after each piece of output.
        if self.waiting.is_empty() {
            return;
        }
        let mut left = VecDeque::new();
        let rooms = self.rooms();
        self.largest_first();
        while let Some(asked) = self.waiting.pop_front() {
            let fits = |at: &usize| self.sees(&self.hosts[*at], &asked);
            let open = |at: &usize| self.hosts[*at].is_open() && !asked.unfit.contains(at);
            let could: Vec<usize> = (0..self.hosts.len()).filter(open).collect();
            if !could.iter().any(fits) {
                self.here(asked);
                continue;
            }
            let ready = could.into_iter().filter(|at| self.hosts[*at].is_up()).filter(fits);
            let free: Vec<usize> = ready.filter(|at| self.hosts[*at].running() < rooms[*at]).collect();
            let candidates: Vec<Candidate> = free.iter().map(|at| self.candidate(*at, &asked)).collect();
            match choose(asked.step, self.typical_us, &candidates) {
                Some(choice) => {
                    self.tell_unshared(&asked);
                    self.send(asked, choice);
                }
                None => left.push_back(asked),
            }
        }
        self.waiting = left;
    }

    fn sees(&self, host: &BuildHost, asked: &RecipeRequest) -> bool {
        host.sees(asked, self.build.assume_shared)
    }

    /// Returns how many recipes each host takes at once now.
    fn rooms(&self) -> Vec<u32> {
        let mut ran_us = vec![Vec::new(); self.hosts.len()];
        if self.evidence.ran.len() >= KNOWN_FROM {
            self.running.values().for_each(|r| ran_us[r.host].push(r.sent.elapsed().as_micros() as u64));
        }
        let of = |(host, ran_us): (&HostLink<BuildHost>, &Vec<u64>)| match host.plan.slots {
            Some(_) => host.slots,
            None => room(host.slots, host.facts.cores, ran_us, self.typical_us),
        };
        self.hosts.iter().zip(&ran_us).map(of).collect()
    }

    fn largest_first(&mut self) {
        let waited = |asked: &RecipeRequest| asked.at.elapsed().as_micros() as u64;
        let facts: Vec<(u64, u64)> = self.waiting.iter().map(|asked| (asked.inputs.bytes, waited(asked))).collect();
        let mut waiting: Vec<Option<RecipeRequest>> = self.waiting.drain(..).map(Some).collect();
        self.waiting = order(&facts, self.typical_us).into_iter().filter_map(|at| waiting[at].take()).collect();
    }

    fn here(&mut self, asked: RecipeRequest) {
        let reason = match &asked.mount {
            None if !self.build.assume_shared => unshared_text(&asked),
            Some(mount) if self.hosts.iter().any(HostLink::is_open) => {
                format!("no other host has {}", mount.display())
            }
            _ => "none of the hosts can be used".to_string(),
        };
        let times = self.evidence.here.entry(reason.clone()).or_default();
        *times += 1;
        if *times == 1 {
            tell_stays(&asked, &reason);
            self.report_event(EventKind::Note { text: stays(&reason) });
        }
        let _ = asked.reply.send(ToConnection::Here);
    }

    /// Reports that only the host where make runs has the folder. It reports that once per build; otherwise the other
    /// hosts would be idle without explanation.
    fn tell_unshared(&mut self, asked: &RecipeRequest) {
        let unshared = !self.alone && asked.mount.is_none() && !self.build.assume_shared;
        if unshared && !std::mem::replace(&mut self.reported_unshared, true) {
            tell_stays(asked, &unshared_text(asked));
            self.report_event(EventKind::Note { text: stays(&unshared_text(asked)) });
        }
    }

    fn candidate(&self, at: usize, asked: &RecipeRequest) -> Candidate {
        let host = &self.hosts[at];
        let fences = lock(&self.near.log).untold(host.observer(at), &asked.cwd);
        host.candidate(at, asked, fences, self.last_of.get(&asked.cwd) == Some(&at))
    }

    fn send(&mut self, asked: RecipeRequest, choice: HostChoice) {
        self.ticket += 1;
        let ticket = self.ticket;
        let at = choice.host;
        self.last_of.insert(asked.cwd.clone(), at);
        let host = &mut self.hosts[at];
        let slot = host.used.iter().position(|used| !used).unwrap_or(0);
        host.used[slot] = true;
        let mut fence = self.near.fence_of(host.observer(at));
        fence.extend(asked.extra.iter().cloned());
        let task = Task {
            id: ticket,
            cwd: Some(asked.cwd.clone()),
            env: asked.env.clone(),
            ..Task::of(Command::Argv(asked.words.clone()))
        };
        let recipe = ToWorker::Recipe { ticket, task, folders: asked.folders.clone() };
        let reply = asked.reply.clone();
        self.running.insert(ticket, Attempt::on(at, RecipeDetails::new(asked, choice, slot)));
        self.reporter.started(wall_ns(), &self.running[&ticket], &self.hosts);
        let ahead = homing_launch::wire::portions(fence).into_iter().filter(|changes| !changes.is_empty());
        let mut messages = ahead.map(|changes| ToWorker::Written { changes }).chain([recipe]);
        if let Err(error) = messages.try_for_each(|message| self.hosts[at].queue_message(&message)) {
            if let Some(running) = self.give_back(ticket) {
                self.gave_up(&running, Outcome::CannotStart(error.to_string()), true);
            }
            let _ = reply.send(ToConnection::Failed(error.to_string()));
        }
    }
}

fn unshared_text(asked: &RecipeRequest) -> String {
    format!("{} is not on a shared file system", asked.cwd.display())
}

fn stays(reason: &str) -> String {
    format!("not sent to another host: {reason}")
}

/// Prints to the recipe's own standard error, because below `homing on` no other output reaches the user.
fn tell_stays(asked: &RecipeRequest, reason: &str) {
    let text = format!("homing: {}\n", stays(reason));
    let _ = asked.reply.send(ToConnection::Output(OutputStream::Err, text.into_bytes()));
}

fn print_message(text: &str) {
    homing_os::say!("homing make: {text}");
}
