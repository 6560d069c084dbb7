//! Handles hosts that join a build or leave it. The recipes of a lost host run again on others; a recipe that was lost
//! with [`MOST_LOSSES`] hosts fails.

use super::{Core, print_message};
use crate::asked::ToConnection;
use homing_launch::wire::ToWorker;
use homing_launch::{HostNews, MOST_LOSSES, lose};
use homing_model::event::EventKind;
use homing_model::{HostFacts, Outcome, RawText};
use std::time::{Duration, Instant};

impl Core {
    pub(super) fn host(&mut self, at: usize, news: HostNews) {
        let name = self.hosts[at].name.clone();
        match news {
            HostNews::Up(facts) => self.up(at, *facts),
            HostNews::Refused(error) => self.refuse(at, error.to_string()),
            HostNews::From(messages) => messages.into_iter().for_each(|message| self.worker_said(at, message)),
            HostNews::Cut(why) => self.hosts.add_note(at, &format!("{name} gets no new tasks: {why}"), Instant::now()),
            HostNews::Astray(why) => {
                self.leaves(at, &why);
                self.hosts.follow(at, self.hosts[at].plan.clone());
            }
            HostNews::Lost(reason, _) => {
                if self.leaves(at, &reason) {
                    self.hosts.add_note(at, &format!("{name} is lost: {reason}"), Instant::now());
                }
                self.lost(at, &reason);
                self.hosts.come_back(at, Instant::now());
            }
        }
    }

    pub(super) fn look_at_hosts(&mut self) {
        let now = Instant::now();
        self.hosts.look(now).into_iter().for_each(|(at, news)| self.host(at, news));
        self.tell_of_hosts(false);
    }

    /// Reports changes of hosts. Hosts with the same message share one line.
    fn tell_of_hosts(&mut self, ends: bool) {
        let now = Instant::now();
        self.hosts.refusals(now, ends).iter().for_each(|line| print_message(line));
        self.hosts.notes(now, ends).iter().for_each(|line| self.note(line));
    }

    fn up(&mut self, at: usize, facts: HostFacts) {
        let host = &mut self.hosts[at];
        if let (Some(why), Some(ahead), true) = (homing_fence::out_of_step(&facts), facts.ahead, self.near.fenced) {
            self.near.wrote_behind(&self.build.root, ahead);
            let why = format!("host {}: {why}", host.name);
            return self.refuse(at, why);
        }
        let slots = host.plan.slots.unwrap_or_else(|| slots(facts.cores, host.is_here, self.alone)).max(1);
        (host.facts, host.slots, host.used) = (facts, slots, vec![false; slots as usize]);
        let begin = ToWorker::Begin {
            run: "make".into(),
            cwd: "/".into(),
            env: Vec::new(),
            umask: homing_os::process::umask(),
            slots,
            sample_ms: 1000,
            pulse: false,
            eager_output: true,
            nice: 0,
            meter: self.build.meter.clone(),
        };
        let roots = vec![RawText::from(self.build.root.as_path())];
        let watch = ToWorker::Watch { roots };
        [begin, watch].iter().for_each(|message| host.queue_message(message).expect("messages without a list"));
        // The indices are of one moment only, and samples follow.
        let facts = HostFacts { indices: Default::default(), ..host.facts.clone() };
        let host = host.name.clone();
        self.report_event(EventKind::HostUp { host, slots, facts });
    }

    /// Excludes a host: it gets no recipes.
    fn refuse(&mut self, at: usize, why: String) {
        self.report_event(EventKind::HostUnfit { host: self.hosts[at].name.clone(), reason: why.clone() });
        self.hosts.refuse(at, Some(why), Instant::now());
    }

    /// Counts a host as lost from now on. Returns false if it was lost before.
    fn leaves(&mut self, at: usize, why: &str) -> bool {
        let was_there = std::mem::take(&mut self.hosts[at].slots) > 0;
        if was_there {
            self.report_event(EventKind::HostLost { host: self.hosts[at].name.clone(), reason: why.into() });
        }
        was_there
    }

    /// Gives up the recipes of a lost host. Those that are still wanted run elsewhere.
    fn lost(&mut self, at: usize, why: &str) {
        for (_, mut running) in lose(&mut self.running, at) {
            self.vacate(&running);
            running.request.unfit.push(at);
            running.request.losses += 1;
            let last = running.killed || running.request.losses >= MOST_LOSSES;
            self.gave_up(&running, running.lost(why), last);
            if !last || running.killed {
                self.again(running);
            } else {
                let why = format!("lost with {MOST_LOSSES} hosts: {}", running.request.label());
                let _ = running.request.reply.send(ToConnection::Failed(why));
            }
        }
    }

    /// Ends the workers. They end themselves and all that they started when their input ends.
    pub(super) fn part(&mut self) {
        for running in std::mem::take(&mut self.running).into_values() {
            self.gave_up(&running, Outcome::Killed, true);
        }
        self.tell_of_hosts(true);
        self.hosts.end(Duration::from_secs(2));
    }
}

/// Returns the number of simultaneous recipes for its cores. It exceeds the cores, because some recipes wait for
/// headers from the file system. But make and this process need a share of their own host, or all other hosts wait
/// (measured: bench/results/make-speed.md).
fn slots(cores: u32, is_here: bool, alone: bool) -> u32 {
    match (alone, is_here) {
        (true, _) => cores + 1,
        (false, true) => cores,
        (false, false) => cores + 2,
    }
}
