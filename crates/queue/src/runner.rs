//! A user's runner: starts that user's jobs when it is their turn, and goes
//! when nothing is left to do. Killing it harms no job; the end of the next
//! job, or the next command of its user, starts another.

use crate::bell::Bell;
use crate::files::{self, step, write_json};
use crate::job::Kill;
use crate::load::{self, Load};
use crate::lock::Held;
use crate::neighbours::{Neighbours, Presence};
use crate::plan::{self, Block, Config, Standing, Usage, View, Want};
use crate::retry::Failed;
use crate::state::State;
use crate::turn::Turn;
use crate::{Job, QueueError, Spool, Style, slots};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A pause between two looks: short after something happened, longer when nothing does.
const QUICK: Duration = Duration::from_millis(10);
const SLOW: Duration = Duration::from_millis(250);

/// Runs until nothing of this user is left. `config` is asked each round, so
/// that a changed cluster file is noticed; `keeper` are the words that start a keeper.
pub fn run(spool: &Spool, config: &mut dyn FnMut() -> Config, keeper: &[PathBuf]) -> Result<(), QueueError> {
    files::play("runner");
    close_inherited();
    // A terminal that ends takes its own session with it; this is another.
    let _ = rustix::process::setsid();
    let own = spool.places.own()?;
    let lock = own.join("runner.lock");
    loop {
        let held = Held::try_take(&lock).map_err(QueueError::io("lock", &lock))?;
        if held.is_none() {
            return Ok(());
        }
        Presence::own(Vec::new()).publish(&own).map_err(QueueError::io("write into", &own))?;
        step("present");
        slots::folder(&own)?;
        let mut runner = Runner {
            spool,
            keeper,
            bell: Bell::new(&own),
            own: own.clone(),
            keepers: Vec::new(),
            turn: Turn::default(),
            neighbours: Neighbours::default(),
            told: Vec::new(),
            buried: BTreeSet::new(),
            failed: Failed::default(),
        };
        runner.serve(config)?;
        drop(held);
        // A job that came between the last look and the unlocking found a runner, so it is ours.
        if !has_work(&spool.views(&spool.own_jobs()?), &config(), &Load::default()) {
            return Ok(());
        }
    }
}

/// Closes what the submitter's shell had open: whoever waits for the end of
/// one of its pipes would wait as long as there are jobs.
fn close_inherited() {
    // SAFETY: nothing of this process is open yet but its standard streams. The call is not in every C library.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
}

/// Something of these runs, or may come to run without anybody's doing.
fn has_work(own: &[View], config: &Config, load: &Load) -> bool {
    let usage = Usage::default();
    own.iter().filter(|v| !v.state.is_over()).any(|v| {
        v.state.is_running()
            || !matches!(plan::blocked(config, &usage, v, load), Some(Block::Stopped | Block::Never | Block::TooLarge))
    })
}

struct Runner<'a> {
    spool: &'a Spool,
    keeper: &'a [PathBuf],
    bell: Bell,
    /// This user's folder.
    own: PathBuf,
    /// Of the keepers that live.
    keepers: Vec<OwnedFd>,
    turn: Turn,
    neighbours: Neighbours,
    /// What the others were told last.
    told: Vec<Standing>,
    /// Starts whose leftovers were looked for.
    buried: BTreeSet<(u64, u32, i64)>,
    failed: Failed,
}

impl Runner<'_> {
    fn serve(&mut self, config: &mut dyn FnMut() -> Config) -> Result<(), QueueError> {
        self.spool.tidy(&self.spool.own_jobs()?)?;
        let mut watch = None;
        let mut pause = QUICK;
        loop {
            // Before the look: what happens after it is not missed.
            self.bell.watch(&self.spool.places, &self.spool.places.users());
            self.bell.rang();
            let config = config();
            let jobs = self.spool.own_jobs()?;
            // A first look takes a while, and most queues have no thresholds.
            let wanted = config.queues.values().any(|q| !q.load.is_empty())
                || jobs.iter().any(|j| !j.spec.require.is_empty() && j.parts.iter().any(|p| p.state == State::Pend));
            let load = match wanted {
                true => watch.get_or_insert_with(load::watch).now().clone(),
                false => Load::default(),
            };
            self.bury(&jobs);
            heed_load(&jobs, &config, &load);
            self.end_hopeless(&jobs)?;
            let views = self.spool.views(&jobs);
            if !has_work(&views, &config, &load) {
                return Ok(());
            }
            let started = self.dispatch(&config, &load, &jobs, views)?;
            pause = if started > 0 { QUICK } else { (pause * 2).min(SLOW) };
            self.wait(pause);
        }
    }

    /// Starts all that may start now; returns how many.
    fn dispatch(
        &mut self,
        config: &Config,
        load: &Load,
        jobs: &[Job],
        mut views: Vec<View>,
    ) -> Result<usize, QueueError> {
        self.failed.forget_all_but(views.iter().filter(|v| v.state == State::Pend));
        views.retain(|v| !(v.state == State::Pend && self.failed.must_wait(v.id, v.index)));
        let unended = views.iter().filter(|v| !v.state.is_over());
        let hosts: BTreeSet<Option<String>> = unended.map(|v| v.host.clone()).collect();
        let mut decision = Decision { config, load, jobs, views };
        self.tell(&hosts, &decision)?;
        let mut started = 0;
        for host in hosts {
            while self.start_next(&host, &mut decision)? {
                started += 1;
            }
        }
        Ok(started)
    }

    /// Tells the others how this user stands on these hosts, where that has changed.
    fn tell(&mut self, hosts: &BTreeSet<Option<String>>, decision: &Decision) -> Result<(), QueueError> {
        let (usage, _) = self.around(&decision.views, &None);
        let stands = hosts.iter().map(|host| decision.standing(&usage, host)).collect();
        if self.told != stands {
            let presence = Presence::own(stands);
            presence.publish(&self.own).map_err(QueueError::io("write into", &self.own))?;
            self.told = presence.hosts;
        }
        Ok(())
    }

    /// Slots in use, of this user's elements and as the others tell, and how the others stand on a host.
    fn around(&mut self, own: &[View], host: &Option<String>) -> (Usage, Vec<(u32, Standing)>) {
        let mut usage = Usage::of(own);
        let mut others = Vec::new();
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

    /// The element that starts now on this host, if it is this user's turn and its slots are free.
    fn own_turn(&mut self, host: &Option<String>, decision: &Decision) -> Option<Want> {
        let (usage, others) = self.around(&decision.views, host);
        let own = decision.standing(&usage, host);
        let want = own.wants.clone()?;
        let name = host.clone().unwrap_or_else(files::host_name);
        let count = decision.config.slots_of(host);
        let free = slots::free(&self.spool.places, &self.spool.places.users(), &name, count);
        if free < want.slots {
            return None;
        }
        let all = others.iter().map(|(uid, stands)| (*uid, stands)).chain([(files::uid(), &own)]);
        match plan::whose_turn(all)? {
            (uid, _) if uid == files::uid() => Some(want),
            // Whoever waits for more slots than are free does not let a turn pass.
            (uid, theirs) if free >= theirs.slots => {
                self.turn.note(uid, theirs.id);
                None
            }
            _ => None,
        }
    }

    /// Starts the next element of this user on a host, if there is one and it is this user's turn.
    fn start_next(&mut self, host: &Option<String>, decision: &mut Decision) -> Result<bool, QueueError> {
        if self.own_turn(host, decision).is_none() {
            return Ok(false);
        }
        let Ok(_turn) = self.turn.take(&self.spool.places)? else { return Ok(false) };
        // The lock's owner decides on what is true now, not on what was before it had the lock.
        let Some(want) = self.own_turn(host, decision) else { return Ok(false) };
        let name = host.clone().unwrap_or_else(files::host_name);
        let users = self.spool.places.users();
        let count = decision.config.slots_of(host);
        let Some(held) = slots::take(&self.spool.places, &users, &name, count, want.slots)? else { return Ok(false) };
        let job = decision.jobs.iter().find(|j| j.id == want.id);
        if !job.map_or(Ok(false), |job| self.start(job, want.index, &held))? {
            return Ok(false);
        }
        self.turn.passed_over.clear();
        decision.started(&want);
        let hosts = self.told.iter().map(|s| s.host.clone()).chain([host.clone()]).collect();
        self.tell(&hosts, decision)?;
        slots::poke(&self.own, &name);
        Ok(true)
    }

    /// Hands the job's lock and its slots to a keeper.
    fn start(&mut self, job: &Job, index: u32, slots: &Held) -> Result<bool, QueueError> {
        let path = job.dir.join(format!("lock.{index}"));
        let held = Held::try_take(&path).map_err(QueueError::io("lock", &path))?;
        let Some(lock) = held else { return Ok(false) };
        // Killed, held back, or started by an earlier runner, since the spool was read.
        let names = ["start", "end", "stop"].map(|name| format!("{name}.{index}.json"));
        if names.iter().map(String::as_str).chain(["stop.json"]).any(|name| job.dir.join(name).exists()) {
            return Ok(false);
        }
        // Its end was asked for while a keeper tried in vain to start it.
        let asked = ["kill.json".to_string(), format!("kill.{index}.json")];
        let asked = asked.iter().find_map(|name| files::read_json::<Kill>(&job.dir.join(name)));
        if let Some((kill, _)) = asked.filter(|(kill, _)| kill.signal.is_none()) {
            drop(lock);
            self.spool.end_unstarted(job, index, &format!("killed by {} before it started", kill.by))?;
            return Ok(false);
        }
        if self.failed.is_hopeless(job.id, index) {
            drop(lock);
            self.spool.end_unstarted(job, index, "it could not be started; see runner.log in the queue's folder")?;
            return Ok(true);
        }
        self.failed.note(job.id, index);
        step("dispatching");
        let fds = [&lock, slots].into_iter().map(|l| l.pass_on().map(|fd| fd.to_string()));
        let fds = fds.collect::<Result<Vec<_>, _>>().map_err(QueueError::io("pass on the lock", &path))?;
        let mut command = Command::new(&self.keeper[0]);
        command.args(&self.keeper[1..]).arg(&job.dir).arg(index.to_string());
        // The moment of the decision: keepers of one moment may come to write it down in any order.
        command.arg(homing_clock::system_ns().to_string()).arg(fds.join(","));
        command.stdin(Stdio::null()).stdout(Stdio::null()).current_dir("/");
        let child = command.spawn().map_err(QueueError::io("start the keeper", &self.keeper[0]))?;
        let pid = rustix::process::Pid::from_child(&child);
        self.keepers.extend(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()));
        step("dispatched");
        Ok(true)
    }

    /// Before slots are given away: the processes of jobs whose keepers were killed.
    fn bury(&mut self, jobs: &[Job]) {
        let boot = files::boot_id();
        for job in jobs.iter().filter(|j| j.uid == files::uid()) {
            for part in job.parts.iter().filter(|p| p.state == State::Lost) {
                let Some(start) = part.start.as_ref().filter(|s| s.process.boot_id == boot) else { continue };
                if self.buried.insert((job.id, part.index, start.at_ns)) {
                    crate::tree::bury(&job.dir, part.index);
                }
            }
        }
    }

    /// `homing sub --after` ends what can never start; LSF leaves it pending.
    fn end_hopeless(&self, jobs: &[Job]) -> Result<(), QueueError> {
        let mine = |j: &&Job| j.uid == files::uid() && j.spec.style == Style::Homing && j.spec.after.is_some();
        if !jobs.iter().any(|j| mine(&j) && j.parts.iter().any(|p| p.state == State::Pend)) {
            return Ok(());
        }
        let views = self.spool.views(jobs);
        for view in views.iter().filter(|v| v.state == State::Pend && v.after == crate::depend::Verdict::Never) {
            if let Some(job) = jobs.iter().filter(mine).find(|j| j.id == view.id) {
                let after = job.spec.after.clone().unwrap_or_default();
                let reason = format!("it waited for {after}, which cannot come true any more");
                self.spool.end_unstarted(job, view.index, &reason)?;
            }
        }
        Ok(())
    }

    /// Sleeps, but not past the end of a keeper, which is what usually frees a slot, nor past the bell.
    fn wait(&mut self, pause: Duration) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: pause.as_nanos() as i64 };
        let mut fds: Vec<PollFd> = self.keepers.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let bell = self.bell.fd();
        fds.extend(bell.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let _ = poll(&mut fds, Some(&timeout));
        let ended: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        self.keepers.retain(|_| !ended.next().unwrap_or(false));
        while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
    }
}

/// What a runner decides upon: this user's elements, as they were read, and what it has started since.
struct Decision<'a> {
    config: &'a Config,
    load: &'a Load,
    jobs: &'a [Job],
    views: Vec<View>,
}

impl Decision<'_> {
    fn standing(&self, usage: &Usage, host: &Option<String>) -> Standing {
        plan::standing(self.config, usage, &self.views, host, self.load)
    }
    fn started(&mut self, want: &Want) {
        let view = self.views.iter_mut().find(|v| (v.id, v.index) == (want.id, want.index));
        if let Some(view) = view {
            (view.state, view.start_ns) = (State::Run, homing_clock::system_ns());
        }
    }
}

/// Stops what runs in a queue whose second threshold is crossed, and lets it go on below the first.
fn heed_load(jobs: &[Job], config: &Config, load: &Load) {
    for job in jobs.iter().filter(|j| j.uid == files::uid() && j.spec.host.is_none()) {
        let Some(queue) = config.queues.get(&job.spec.queue) else { continue };
        for part in job.parts.iter().filter(|p| p.state.is_running()) {
            let path = job.dir.join(format!("load.{}.json", part.index));
            match (part.stopped_by.is_some(), load.above_second(queue)) {
                (false, Some(by)) => {
                    let _ = write_json(&path, &crate::job::Stop { by }, 0o644);
                }
                (true, None) if load.above_first(queue).is_none() => {
                    let _ = std::fs::remove_file(&path);
                }
                _ => {}
            }
        }
    }
}
