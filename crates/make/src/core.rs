//! The coordinator of a build: one loop that knows the hosts, the recipes
//! that wait and those that run. Threads bring it news and carry its answers.

mod hosts;
mod live;

use crate::asked::{Asked, News, ToConnection};
use crate::host::Host;
use crate::near::{Near, lock};
use crate::running::Running;
use crate::told::Told;
use crate::{Candidate, Choice, Evidence, Ran, choose, order, room};
use homing_clock::wall_ns;
use homing_launch::HostPlan;
use homing_model::{Change, Command, Outcome, RawText, Task};
use homing_wire::{Ended, FromWorker, Stream, ToWorker};
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time between SIGTERM and SIGKILL for an interrupted recipe.
const GRACE_MS: u32 = 2000;
/// What a recipe is thought to take before any has ended, microseconds.
const FIRST_GUESS_US: f64 = 500_000.0;
/// From so many on that have ended it is known; of a few, the short ones have.
const KNOWN_FROM: usize = 8;

/// How a build is run.
pub struct Settings {
    /// Top folder, watched on all hosts.
    pub root: PathBuf,
    /// The hosts.
    pub plans: Vec<HostPlan>,
    /// The folders are the same everywhere, although the mount tables do not say so.
    pub assume_shared: bool,
    /// File mode creation mask.
    pub umask: u32,
    /// Recipes at once on a host for its cores; is it the one where make runs?
    pub slots: fn(u32, bool) -> u32,
}

/// The state of the loop.
pub struct Core {
    settings: Settings,
    near: Arc<Near>,
    hosts: Vec<Host>,
    waiting: VecDeque<Asked>,
    running: HashMap<u64, Running>,
    next: u64,
    last_of: HashMap<RawText, usize>,
    typical_us: f64,
    began: Instant,
    evidence: Evidence,
    told_unshared: bool,
    tickets: HashMap<u64, usize>,
    told: Told,
}

impl Core {
    /// Hosts are not connected yet.
    pub fn new(settings: Settings, near: Arc<Near>, told: Told) -> Core {
        Core {
            hosts: settings.plans.iter().map(Host::new).collect(),
            settings,
            near,
            waiting: VecDeque::new(),
            running: HashMap::new(),
            next: 1,
            last_of: HashMap::new(),
            typical_us: FIRST_GUESS_US,
            began: Instant::now(),
            evidence: Evidence::default(),
            told_unshared: false,
            tickets: HashMap::new(),
            told,
        }
    }

    /// Runs until make is over; the evidence of the build.
    pub fn serve(mut self, news: &Receiver<News>) -> Evidence {
        loop {
            match news.recv_timeout(Duration::from_secs(1)) {
                Ok(News::Over) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(first) => self.take(first),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.silent_hosts();
            self.dispatch();
        }
        self.part();
        self.evidence
    }

    fn take(&mut self, news: News) {
        match news {
            News::Up { at, facts, to, keeper } => self.up(at, *facts, to, keeper),
            News::Refused { at, why } => self.refuse(at, &why),
            News::Cut { at, why } => self.cut(at, &why),
            News::Gone { at, why } => self.lost(at, &why),
            News::From { at, messages } => {
                self.hosts[at].heard = Instant::now();
                messages.into_iter().for_each(|message| self.worker_said(at, message));
            }
            News::Asked(asked) => self.waiting.push_back(*asked),
            News::Stop { id } => self.stop(id),
            News::Seen { ticket, took } => {
                if let Some(ran) = self.tickets.remove(&ticket).and_then(|at| self.evidence.ran.get_mut(at)) {
                    ran.fence_us += took.as_micros() as u64;
                    ran.ended_us = self.began.elapsed().as_micros() as u64;
                }
            }
            News::Watched { shown, reply } => {
                let _ = reply.send(self.seen(&shown));
            }
            News::End { task } => self.end_task(task),
            News::Over => {}
        }
    }

    /// For the user, and for who looks at the build later.
    fn note(&mut self, text: &str) {
        say(text);
        self.told.note(wall_ns(), text);
    }

    /// No worker says how it ended.
    fn gave_up(&mut self, running: &Running, outcome: Outcome, last: bool) {
        self.told.gave_up(wall_ns(), running, &self.hosts[running.host].plan.name, outcome, last);
    }

    fn worker_said(&mut self, at: usize, message: FromWorker) {
        match message {
            FromWorker::Output { ticket, stream, bytes } => {
                if let Some(running) = self.running.get_mut(&ticket) {
                    running.prints(stream, &bytes);
                    let _ = running.asked.reply.send(ToConnection::Output(stream, bytes));
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
                    let (host, missing) = (&self.hosts[at].plan.name, missing.display());
                    say(&format!("{host} has no {missing}"));
                    self.told.unfit(wall_ns(), host, format!("{missing} is not there"));
                    self.told.has_not_begun(&running);
                    running.asked.unfit.push(at);
                    self.waiting.push_front(running.asked);
                }
            }
            FromWorker::Sample(sample) => {
                self.told.sample(wall_ns(), &self.hosts[at].plan.name, sample.clone());
                self.hosts[at].take_sample(sample);
            }
            FromWorker::Note(text) => self.note(&format!("{}: {text}", self.hosts[at].plan.name)),
            FromWorker::Stands { .. }
            | FromWorker::Pulse(_)
            | FromWorker::Served { .. }
            | FromWorker::Pong
            | FromWorker::Bye => {}
        }
    }

    fn give_back(&mut self, ticket: u64) -> Option<Running> {
        let running = self.running.remove(&ticket)?;
        if let Some(used) = self.hosts[running.host].used.get_mut(running.slot) {
            *used = false;
        }
        Some(running)
    }

    fn ended(&mut self, ended: Ended) {
        let Some(mut running) = self.give_back(ended.ticket) else { return };
        for (stream, bytes) in [(Stream::Out, &ended.stdout), (Stream::Err, &ended.stderr)] {
            running.prints(stream, bytes);
        }
        self.told.ended(wall_ns(), &running, &self.hosts[running.host].plan.name, &ended);
        let us = |at: Instant| at.duration_since(self.began).as_micros() as u64;
        let weight = (1.0 / (self.evidence.ran.len() + 1) as f64).max(0.1);
        self.typical_us += weight * (ended.wall_us as f64 - self.typical_us);
        self.tickets.insert(ended.ticket, self.evidence.ran.len());
        self.evidence.ran.push(Ran {
            label: running.asked.label(),
            host: self.hosts[running.host].plan.name.clone(),
            slot: running.slot as u32 + 1,
            why: running.choice.why,
            asked_us: us(running.asked.at),
            sent_us: us(running.sent),
            ended_us: us(Instant::now()),
            wall_us: ended.wall_us,
            cpu_us: ended.io.user_us + ended.io.sys_us,
            fence_us: running.fence_us,
            failed: !ended.outcome.is_success(),
            again: running.asked.again,
        });
        let reply = &running.asked.reply;
        for (stream, bytes) in [(Stream::Out, ended.stdout), (Stream::Err, ended.stderr)] {
            if !bytes.is_empty() {
                let _ = reply.send(ToConnection::Output(stream, bytes));
            }
        }
        let _ = reply.send(ToConnection::Ended { ticket: ended.ticket, outcome: ended.outcome });
    }

    /// A host does not see a file as another one wrote it. When that file has
    /// changed since, the host was told of a state that is no more.
    fn late(&mut self, ticket: u64, change: &Change, why: String) {
        let Some(mut running) = self.give_back(ticket) else { return };
        if self.near.is_outdated(change) {
            // It has not begun: no host is to blame.
            running.asked.attempts -= 1;
            self.told.has_not_begun(&running);
            return self.waiting.push_front(running.asked);
        }
        let why = format!("{}: {why}", self.hosts[running.host].plan.name);
        self.gave_up(&running, Outcome::CannotStart(why.clone()), true);
        let _ = running.asked.reply.send(ToConnection::Failed(why));
    }

    fn stop(&mut self, id: u64) {
        if let Some(at) = self.waiting.iter().position(|a| a.id == id)
            && let Some(asked) = self.waiting.remove(at)
        {
            let _ = asked.reply.send(ToConnection::Ended { ticket: 0, outcome: Outcome::Killed });
        }
        self.kill(id);
    }

    /// Ends what runs for this connection.
    fn kill(&self, id: u64) {
        for (ticket, running) in self.running.iter().filter(|(_, r)| r.asked.id == id) {
            let kill = ToWorker::Kill { ticket: *ticket, grace_ms: GRACE_MS, timed_out: false };
            let _ = self.hosts[running.host].send(&kill);
        }
    }

    fn dispatch(&mut self) {
        // After each piece of output, too.
        if self.waiting.is_empty() {
            return;
        }
        let mut left = VecDeque::new();
        let rooms = self.rooms();
        self.largest_first();
        while let Some(asked) = self.waiting.pop_front() {
            let fits = |at: &usize| self.sees(&self.hosts[*at], &asked);
            let open = |at: &usize| !self.hosts[*at].refused && !asked.unfit.contains(at);
            let could: Vec<usize> = (0..self.hosts.len()).filter(open).collect();
            if !could.iter().any(fits) {
                self.here(asked);
                continue;
            }
            let ready = could.into_iter().filter(|at| self.hosts[*at].to.is_some()).filter(fits);
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

    fn sees(&self, host: &Host, asked: &Asked) -> bool {
        host.sees(asked, self.settings.assume_shared)
    }

    /// How many recipes each host takes at once now.
    fn rooms(&self) -> Vec<u32> {
        let mut ran_us = vec![Vec::new(); self.hosts.len()];
        if self.evidence.ran.len() >= KNOWN_FROM {
            self.running.values().for_each(|r| ran_us[r.host].push(r.sent.elapsed().as_micros() as u64));
        }
        let of = |(host, ran_us): (&Host, &Vec<u64>)| match host.plan.slots {
            Some(_) => host.slots,
            None => room(host.slots, host.facts.cores, ran_us, self.typical_us),
        };
        self.hosts.iter().zip(&ran_us).map(of).collect()
    }

    fn largest_first(&mut self) {
        let waited = |asked: &Asked| asked.at.elapsed().as_micros() as u64;
        let facts: Vec<(u64, u64)> = self.waiting.iter().map(|asked| (asked.inputs.bytes, waited(asked))).collect();
        let mut waiting: Vec<Option<Asked>> = self.waiting.drain(..).map(Some).collect();
        self.waiting = order(&facts, self.typical_us).into_iter().filter_map(|at| waiting[at].take()).collect();
    }

    fn here(&mut self, asked: Asked) {
        let reason = match &asked.mount {
            None if !self.settings.assume_shared => unshared_text(&asked),
            Some(mount) if self.hosts.iter().any(|host| !host.refused) => {
                format!("no other host has {}", mount.display())
            }
            _ => "none of the hosts can be used".to_string(),
        };
        let times = self.evidence.here.entry(reason.clone()).or_default();
        *times += 1;
        if *times == 1 {
            tell_stays(&asked, &reason);
            self.told.note(wall_ns(), &stays(&reason));
        }
        let _ = asked.reply.send(ToConnection::Here);
    }

    /// The host where make runs has it, as the only one: said once a build, whose hosts would else stand idle unexplained.
    fn tell_unshared(&mut self, asked: &Asked) {
        let unshared = self.hosts.len() > 1 && asked.mount.is_none() && !self.settings.assume_shared;
        if unshared && !std::mem::replace(&mut self.told_unshared, true) {
            tell_stays(asked, &unshared_text(asked));
            self.told.note(wall_ns(), &stays(&unshared_text(asked)));
        }
    }

    fn candidate(&self, at: usize, asked: &Asked) -> Candidate {
        let host = &self.hosts[at];
        let fences = lock(&self.near.log).untold(host.observer(at), &asked.cwd);
        host.candidate(at, asked, fences, self.last_of.get(&asked.cwd) == Some(&at))
    }

    fn send(&mut self, mut asked: Asked, choice: Choice) {
        asked.attempts += 1;
        let ticket = self.next;
        self.next += 1;
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
        let running = Running::new(asked, choice, slot);
        self.told.started(wall_ns(), &running, &self.hosts);
        self.running.insert(ticket, running);
        let ahead = homing_wire::portions(fence).into_iter().filter(|changes| !changes.is_empty());
        let mut messages = ahead.map(|changes| ToWorker::Written { changes }).chain([recipe]);
        if let Err(error) = messages.try_for_each(|message| self.hosts[at].send(&message)) {
            if let Some(running) = self.give_back(ticket) {
                self.gave_up(&running, Outcome::CannotStart(error.to_string()), true);
            }
            let _ = reply.send(ToConnection::Failed(error.to_string()));
        }
    }
}

fn unshared_text(asked: &Asked) -> String {
    format!("{} is on no shared file system", asked.cwd.display())
}

fn stays(reason: &str) -> String {
    format!("not sent to another host: {reason}")
}

/// On the recipe's own standard error: below `homing on` nobody else would hear of it.
fn tell_stays(asked: &Asked, reason: &str) {
    let text = format!("homing: {}\n", stays(reason));
    let _ = asked.reply.send(ToConnection::Output(Stream::Err, text.into_bytes()));
}

fn say(text: &str) {
    homing_process::say!("homing make: {text}");
}
