//! Decides whether it is this user's turn, and starts the elements that may start.

use super::Runner;
use crate::files::{self, read_json, step, write_json_soon};
use crate::job::{Kill, Stop};
use crate::load::LoadIndices;
use crate::neighbours::Presence;
use crate::plan::{self, Config, JobView, Queue, Standing, Usage, Want};
use crate::state::ElementState;
use crate::{Job, QueueError, Storage, seats, slots};
use homing_lease::LeaseDemand;
use homing_os::folder::lock::FileLock;
use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, Stdio};

impl Runner<'_> {
    /// Starts all elements that may start now; returns their number.
    pub(super) fn dispatch(
        &mut self,
        config: &Config,
        load: &LoadIndices,
        jobs: &[Job],
        mut views: Vec<JobView>,
    ) -> Result<usize, QueueError> {
        self.failed.forget_started(&views);
        views.retain(|v| !(v.state == ElementState::Pend && self.failed.must_wait(v.id, v.index)));
        let unended = views.iter().filter(|v| !v.state.is_over());
        let hosts: BTreeSet<Option<String>> = unended.map(|v| v.host.clone()).collect();
        for view in &views {
            let last = self.last_us.entry(view.host.clone()).or_default();
            *last = (view.began.as_micros() as u64).max(*last);
        }
        let wishes = self.wishes(config, &views, load);
        self.leases = self.servers.turn(wishes);
        let mut decision = Decision { config, load, jobs, views, last_us: self.last_us.clone() };
        self.publish_standing(&hosts, &decision)?;
        let mut started = 0;
        for host in hosts {
            while match &host {
                None => self.start_next(&mut decision)?,
                Some(name) => self.ask_next(name, &mut decision)?,
            } {
                started += 1;
            }
        }
        Ok(started)
    }

    /// Publishes this user's standing on these hosts to the other runners, if it has changed.
    fn publish_standing(&mut self, hosts: &BTreeSet<Option<String>>, decision: &Decision) -> Result<(), QueueError> {
        let (usage, _) = self.around(&decision.views, &None);
        let stands = hosts.iter().map(|host| decision.standing(&usage, host)).collect();
        let told = (stands, plan::full_servers(decision.config, &usage, &decision.views));
        if self.told != told {
            let presence = Presence::own(told.0, told.1);
            presence.publish(&self.own).map_err(QueueError::io("write into", &self.own))?;
            self.told = (presence.hosts, presence.full);
        }
        Ok(())
    }

    /// Returns the wishes of this user's jobs for leases of storage servers and queues.
    fn wishes(
        &mut self,
        config: &Config,
        views: &[JobView],
        load: &LoadIndices,
    ) -> BTreeMap<Storage, (LeaseDemand, u32)> {
        if views.iter().all(|v| plan::leased_by(config, v).is_empty()) {
            return BTreeMap::new();
        }
        let (usage, _) = self.around(views, &None);
        let places = &self.spool.places;
        let free = slots::free(places, &places.users(), &files::host_name(), config.slots);
        plan::wishes(config, &usage, views, load, free)
    }

    /// Returns the slots in use: of this user's elements, and as the other runners report theirs. Also returns the
    /// others' standings on a host: those of users, and on this host those of runs.
    fn around(&mut self, own: &[JobView], host: &Option<String>) -> (Usage, Vec<(u32, Standing)>) {
        let mut usage = Usage::of(own).with(self.leases.clone());
        let places = &self.spool.places;
        let mut others = if host.is_none() { seats::waiting_runs(places, &places.users()) } else { Vec::new() };
        others.retain(|(uid, _)| !self.turn.passed_over.contains(uid));
        for (uid, presence) in self.neighbours.look(&self.spool.places, &self.spool.places.users()) {
            for stands in &presence.hosts {
                stands.used.iter().for_each(|(queue, slots)| usage.add(uid, queue, &stands.host, *slots));
                if stands.host == *host && !self.turn.passed_over.contains(&uid) {
                    others.push((uid, stands.clone()));
                }
            }
        }
        (usage, others)
    }

    /// Returns the element that starts now on this machine, if it is this user's turn and enough slots are free.
    fn own_turn(&mut self, decision: &Decision) -> Option<Want> {
        let (usage, others) = self.around(&decision.views, &None);
        let own = decision.standing(&usage, &None);
        let want = own.wants.clone()?;
        let count = decision.config.slots;
        let free = slots::free(&self.spool.places, &self.spool.places.users(), &files::host_name(), count);
        if free < want.slots {
            return None;
        }
        let all = others.iter().map(|(uid, stands)| (*uid, stands)).chain([(files::uid(), &own)]);
        match plan::whose_turn(all)? {
            (uid, _) if uid == files::uid() => Some(want),
            // A user who waits for more slots than are free does not miss a turn.
            (uid, theirs) if free >= theirs.slots => {
                self.turn.note(uid, theirs.id);
                None
            }
            _ => None,
        }
    }

    /// Requests the start of the next element on another host, which itself knows its turns and free slots.
    fn ask_next(&mut self, host: &str, decision: &mut Decision) -> Result<bool, QueueError> {
        let (usage, _) = self.around(&decision.views, &None);
        let next = plan::next_to_ask(decision.config, &usage, &decision.views, host);
        let Some((id, index)) = next.map(|v| (v.id, v.index)) else { return Ok(false) };
        let Some(view) = decision.views.iter_mut().find(|v| (v.id, v.index) == (id, index)) else { return Ok(false) };
        // Whether the start succeeds or not, the next round reads its result.
        view.asks = true;
        let Some(job) = decision.jobs.iter().find(|j| j.id == id) else { return Ok(true) };
        self.start(job, index, None)?;
        Ok(true)
    }

    /// Starts the next element of this user on this machine, if there is one and it is this user's turn.
    fn start_next(&mut self, decision: &mut Decision) -> Result<bool, QueueError> {
        if self.own_turn(decision).is_none() {
            return Ok(false);
        }
        let Ok(_turn) = self.turn.take(&self.spool.places)? else { return Ok(false) };
        // Decided again with the lock held, because the state may have changed before that.
        let Some(want) = self.own_turn(decision) else { return Ok(false) };
        let name = files::host_name();
        let users = self.spool.places.users();
        let count = decision.config.slots;
        let Some(held) = slots::take(&self.spool.places, &users, &name, count, want.slots)? else { return Ok(false) };
        let job = decision.jobs.iter().find(|j| j.id == want.id);
        let queue = job.and_then(|job| decision.config.queues.get(&job.spec.queue));
        if !job.map_or(Ok(false), |job| self.start(job, want.index, Some((&held, queue))))? {
            return Ok(false);
        }
        self.turn.passed_over.clear();
        decision.started(&want);
        let hosts = self.told.0.iter().map(|s| s.host.clone()).chain([None]).collect();
        self.publish_standing(&hosts, decision)?;
        slots::announce_turn_end(&self.own, &name);
        Ok(true)
    }

    /// Passes the job's lock and its slots to a keeper. Without slots the job is for another host.
    fn start(&mut self, job: &Job, index: u32, slots: Option<(&FileLock, Option<&Queue>)>) -> Result<bool, QueueError> {
        let path = job.dir.join(format!("lock.{index}"));
        let held = FileLock::try_take(&path).map_err(QueueError::io("lock", &path))?;
        let Some(lock) = held else { return Ok(false) };
        // Since the spool was read, it may have been killed, held back, or started by an earlier runner.
        let names = ["start", "end", "stop"].map(|name| format!("{name}.{index}.json"));
        if names.iter().map(String::as_str).chain(["stop.json"]).any(|name| job.dir.join(name).exists()) {
            return Ok(false);
        }
        // Its end was requested while a keeper tried in vain to start it.
        let asked = ["kill.json".to_string(), format!("kill.{index}.json")];
        let asked = asked.iter().find_map(|name| read_json::<Kill>(&job.dir.join(name)));
        if let Some((kill, _)) = asked.filter(|(kill, _)| kill.signal.is_none()) {
            drop(lock);
            self.spool.end_unstarted(job, index, &format!("killed by {} before it started", kill.by))?;
            return Ok(false);
        }
        // Only on this machine: another host that is down will be up again.
        if slots.is_some() && self.failed.is_hopeless(job.id, index) {
            drop(lock);
            self.spool.end_unstarted(job, index, "homing could not start it; see runner.log in the queue's folder")?;
            return Ok(true);
        }
        self.failed.note(job.id, index);
        if slots.is_none() {
            let path = job.dir.join(format!("ask.{index}.json"));
            let asked = read_json::<Stop>(&path).map_or("the request was sent to it".into(), |(ask, _)| ask.by);
            write_json_soon(&path, &Stop { by: asked }, 0o644).map_err(QueueError::io("write", &path))?;
        }
        step("dispatching");
        let (slots, queue) = slots.unzip();
        let fds = [&lock].into_iter().chain(slots).map(|l| l.pass_on().map(|fd| fd.to_string()));
        let fds = fds.collect::<Result<Vec<_>, _>>().map_err(QueueError::io("pass on the lock", &path))?;
        let mut command = Command::new(&self.keeper[0]);
        command.args(&self.keeper[1..]).arg(&job.dir).arg(index.to_string());
        // The time of the decision: keepers that start together may record it in any order.
        command.arg(homing_os::clock::system_ns().to_string()).arg(fds.join(","));
        command.arg(serde_json::to_string(&queue.flatten().cloned().unwrap_or_default()).unwrap_or_default());
        command.stdin(Stdio::null()).stdout(Stdio::null()).current_dir("/");
        super::reap();
        let child = command.spawn().map_err(QueueError::io("start the keeper", &self.keeper[0]))?;
        let pid = rustix::process::Pid::from_child(&child);
        self.keepers.extend(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()));
        step("dispatched");
        Ok(true)
    }
}

/// The basis of a runner's decisions: this user's elements, as they were read, and the starts since then.
struct Decision<'a> {
    config: &'a Config,
    load: &'a LoadIndices,
    jobs: &'a [Job],
    views: Vec<JobView>,
    last_us: BTreeMap<Option<String>, u64>,
}

impl Decision<'_> {
    fn standing(&self, usage: &Usage, host: &Option<String>) -> Standing {
        let mut stands = plan::standing(self.config, usage, &self.views, host, self.load);
        stands.last_us = stands.last_us.max(self.last_us.get(host).copied().unwrap_or(0));
        stands
    }
    fn started(&mut self, want: &Want) {
        let view = self.views.iter_mut().find(|v| (v.id, v.index) == (want.id, want.index));
        if let Some(view) = view {
            (view.state, view.began) = (ElementState::Run, homing_os::clock::since_boot());
        }
    }
}
