//! A user's runner: starts that user's jobs when it is their turn, and goes
//! when nothing is left to do. Killing it harms no job; the end of the next
//! job, or the next command of its user, starts another.

use crate::files::{self, step, write_json};
use crate::load::{self, Load};
use crate::lock::{For, Held};
use crate::plan::{self, Block, Config, View};
use crate::process::Process;
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
        let held = Held::try_take(&lock, For::Owner).map_err(QueueError::io("lock", &lock))?;
        if held.is_none() {
            return Ok(());
        }
        let record = own.join("runner.json");
        write_json(&record, &Process::own(), 0o644).map_err(QueueError::io("write", &record))?;
        step("present");
        let mut runner = Runner {
            spool,
            keeper,
            keepers: Vec::new(),
            turn: Turn::default(),
            buried: BTreeSet::new(),
            failed: Failed::default(),
        };
        runner.serve(config)?;
        drop(held);
        // A job that came between the last look and the unlocking found a runner, so it is ours.
        let jobs = spool.jobs()?;
        if !has_work(&spool.views(&jobs), &config(), &Load::default()) {
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

/// Something of this user runs, or may come to run without anybody's doing.
fn has_work(views: &[View], config: &Config, load: &Load) -> bool {
    let mine = views.iter().filter(|v| v.uid == files::uid());
    mine.filter(|v| !v.state.is_over()).any(|v| {
        v.state.is_running()
            || !matches!(plan::blocked(config, views, v, load), Some(Block::Stopped | Block::Never | Block::TooLarge))
    })
}

struct Runner<'a> {
    spool: &'a Spool,
    keeper: &'a [PathBuf],
    /// Of the keepers that live.
    keepers: Vec<OwnedFd>,
    turn: Turn,
    /// Starts whose leftovers were looked for.
    buried: BTreeSet<(u64, u32, i64)>,
    failed: Failed,
}

impl Runner<'_> {
    fn serve(&mut self, config: &mut dyn FnMut() -> Config) -> Result<(), QueueError> {
        self.spool.tidy(&self.spool.jobs()?)?;
        let mut watch = None;
        let mut pause = QUICK;
        loop {
            let config = config();
            let jobs = self.spool.jobs()?;
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
            let waits = views.iter().any(|v| v.uid == files::uid() && v.state == State::Pend);
            let started = if waits { self.dispatch(&config, &load)? } else { 0 };
            pause = if started > 0 { QUICK } else { (pause * 2).min(SLOW) };
            self.wait(pause);
        }
    }

    /// Starts all that may start now; returns how many.
    fn dispatch(&mut self, config: &Config, load: &Load) -> Result<usize, QueueError> {
        let Ok(_turn) = self.turn.take(self.spool)? else { return Ok(0) };
        // The lock's owner decides on what is true now, not on what was before it had the lock.
        let jobs = self.spool.jobs()?;
        let mut views = self.spool.views(&jobs);
        let mine = |v: &View| v.uid == files::uid();
        self.failed.forget_all_but(views.iter().filter(|v| mine(v) && v.state == State::Pend));
        views.retain(|v| !(mine(v) && v.state == State::Pend && self.failed.must_wait(v.id, v.index)));
        let waits = |v: &&View| v.uid == files::uid() && v.state == State::Pend;
        let hosts: BTreeSet<Option<String>> = views.iter().filter(waits).map(|v| v.host.clone()).collect();
        let mut started = 0;
        for host in hosts {
            let name = host.clone().unwrap_or_else(files::host_name);
            let mut free = slots::take_free(&self.spool.places.shared(), &name, config.slots_of(&host))?;
            while let Some(at) = self.next(config, &views, &host, load, free.len() as u32) {
                let slots = free.split_off(free.len() - views[at].slots as usize);
                let view = &mut views[at];
                let job = jobs.iter().find(|j| j.id == view.id && j.uid == view.uid);
                if !job.map_or(Ok(false), |job| self.start(job, view.index, &slots))? {
                    break;
                }
                (view.state, view.start_ns) = (State::Run, homing_clock::system_ns());
                started += 1;
            }
        }
        Ok(started)
    }

    /// The element of this user that starts now, if it is this user's turn.
    fn next(
        &mut self,
        config: &Config,
        views: &[View],
        host: &Option<String>,
        load: &Load,
        free: u32,
    ) -> Option<usize> {
        let (spool, turn) = (self.spool, &mut self.turn);
        let present = |uid: u32| uid == files::uid() || (!turn.passed_over.contains(&uid) && spool.has_runner(uid));
        let next = plan::next(config, views, host, &present, load)?;
        if free < next.slots {
            return None;
        }
        if next.uid != files::uid() {
            turn.note(next.uid, next.id);
            return None;
        }
        turn.passed_over.clear();
        views.iter().position(|v| std::ptr::eq(v, next))
    }

    /// Hands the job's lock and its slots to a keeper.
    fn start(&mut self, job: &Job, index: u32, slots: &[Held]) -> Result<bool, QueueError> {
        let path = job.dir.join(format!("lock.{index}"));
        let held = Held::try_take(&path, For::Owner).map_err(QueueError::io("lock", &path))?;
        let Some(lock) = held else { return Ok(false) };
        // Killed, or started by an earlier runner, since the spool was read.
        if ["start", "end"].iter().any(|n| job.dir.join(format!("{n}.{index}.json")).exists()) {
            return Ok(true);
        }
        if self.failed.is_hopeless(job.id, index) {
            drop(lock);
            self.spool.end_unstarted(job, index, "it could not be started; see runner.log in the queue's folder")?;
            return Ok(true);
        }
        self.failed.note(job.id, index);
        step("dispatching");
        let fds = std::iter::once(&lock).chain(slots).map(|l| l.pass_on().map(|fd| fd.to_string()));
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

    /// Sleeps, but not past the end of a keeper, which is what usually frees a slot.
    fn wait(&mut self, pause: Duration) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: pause.as_nanos() as i64 };
        let mut fds: Vec<PollFd> = self.keepers.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let _ = poll(&mut fds, Some(&timeout));
        let ended: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        self.keepers.retain(|_| !ended.next().unwrap_or(false));
        while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
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
