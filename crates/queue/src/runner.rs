//! A user's runner: starts that user's jobs when it is their turn, and goes
//! when nothing is left to do. Killing it harms no job; the next command of
//! its user starts another.

use crate::files::{self, step};
use crate::load::{self, Load};
use crate::lock::Held;
use crate::plan::{self, Block, Config};
use crate::spool::{Job, Spool};
use crate::state::State;
use crate::{QueueError, Style, slots};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A pause between two looks: short after something happened, longer when nothing does.
const QUICK: Duration = Duration::from_millis(10);
const SLOW: Duration = Duration::from_millis(250);
/// A user whose runner does not take its turn for this long is passed over.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs until nothing of this user is left. `config` is asked each round, so
/// that a changed cluster file is noticed; `keeper` are the words that start a keeper.
pub fn run(spool: &Spool, config: &mut dyn FnMut() -> Config, keeper: &[PathBuf]) -> Result<(), QueueError> {
    // A terminal that ends takes its own session with it; this is another.
    let _ = rustix::process::setsid();
    let lock = spool.runner_lock(files::uid());
    loop {
        let Some(held) = Held::try_take(&lock).map_err(QueueError::io("lock", &lock))? else { return Ok(()) };
        serve(spool, config, keeper)?;
        drop(held);
        // A job that came between the last look and the unlocking found a runner, so it is ours.
        let jobs = spool.jobs()?;
        if !has_work(spool, &jobs, &config(), &Load::default()) {
            return Ok(());
        }
    }
}

fn serve(spool: &Spool, config: &mut dyn FnMut() -> Config, keeper: &[PathBuf]) -> Result<(), QueueError> {
    spool.tidy(&spool.jobs()?);
    let mut watch = load::watch();
    let mut turn = Turn::default();
    let mut pause = QUICK;
    loop {
        reap();
        let config = config();
        let load = watch.now().clone();
        let jobs = spool.jobs()?;
        heed_load(&jobs, &config, &load);
        end_hopeless(spool, &jobs)?;
        let started = dispatch(spool, &jobs, &config, &load, keeper, &mut turn)?;
        if !has_work(spool, &jobs, &config, &load) {
            return Ok(());
        }
        pause = if started > 0 { QUICK } else { (pause * 2).min(SLOW) };
        // The end of a job is what usually frees a slot.
        wait_for_child(pause);
    }
}

/// Something of this user runs, or may come to run without anybody's doing.
fn has_work(spool: &Spool, jobs: &[Job], config: &Config, load: &Load) -> bool {
    let views = spool.views(jobs);
    let mine = views.iter().filter(|v| v.uid == files::uid());
    mine.filter(|v| !v.state.is_over()).any(|v| {
        v.state.is_running()
            || !matches!(plan::blocked(config, &views, v, load), Some(Block::Stopped | Block::Never | Block::TooLarge))
    })
}

/// Whose turn it has been, and since when.
#[derive(Default)]
struct Turn {
    of: Option<(u32, u64)>,
    since: Option<Instant>,
    passed_over: BTreeSet<u32>,
}

impl Turn {
    fn note(&mut self, uid: u32, id: u64) {
        if self.of != Some((uid, id)) {
            (self.of, self.since) = (Some((uid, id)), Some(Instant::now()));
        }
        if uid != files::uid() && self.since.is_some_and(|s| s.elapsed() > PATIENCE) {
            self.passed_over.insert(uid);
        }
    }
}

/// Starts all that may start now; returns how many.
fn dispatch(
    spool: &Spool,
    jobs: &[Job],
    config: &Config,
    load: &Load,
    keeper: &[PathBuf],
    turn: &mut Turn,
) -> Result<usize, QueueError> {
    let waits = |j: &&Job| j.uid == files::uid() && j.parts.iter().any(|p| p.state == State::Pend);
    let hosts: BTreeSet<Option<String>> = jobs.iter().filter(waits).map(|j| j.spec.host.clone()).collect();
    let mut started = 0;
    for host in hosts {
        while start_one(spool, &host, config, load, keeper, turn)? {
            started += 1;
        }
    }
    Ok(started)
}

fn start_one(
    spool: &Spool,
    host: &Option<String>,
    config: &Config,
    load: &Load,
    keeper: &[PathBuf],
    turn: &mut Turn,
) -> Result<bool, QueueError> {
    let lock = spool.dir().join("turn.lock");
    let Some(_turn) = Held::try_take(&lock).map_err(QueueError::io("lock", &lock))? else { return Ok(false) };
    // The lock's owner decides on what is true now, not on what was before it waited.
    let jobs = spool.jobs()?;
    let views = spool.views(&jobs);
    let present =
        |uid: u32| uid == files::uid() || (!turn.passed_over.contains(&uid) && Held::is_held(&spool.runner_lock(uid)));
    let Some(next) = plan::next(config, &views, host, &present, load) else { return Ok(false) };
    let name = host.clone().unwrap_or_else(files::host_name);
    let mut free = slots::take_free(spool.dir(), &name, config.slots_of(host))?;
    if (free.len() as u32) < next.slots {
        return Ok(false);
    }
    if next.uid != files::uid() {
        turn.note(next.uid, next.id);
        return Ok(false);
    }
    turn.passed_over.clear();
    free.truncate(next.slots as usize);
    let Some(job) = jobs.iter().find(|j| j.id == next.id) else { return Ok(false) };
    start(job, next.index, &free, keeper)
}

/// Hands the job's lock and its slots to a keeper.
fn start(job: &Job, index: u32, slots: &[Held], keeper: &[PathBuf]) -> Result<bool, QueueError> {
    let path = job.dir.join(format!("lock.{index}"));
    let Some(lock) = Held::try_take(&path).map_err(QueueError::io("lock", &path))? else { return Ok(false) };
    // Killed, or started by an earlier runner, since the spool was read.
    if ["start", "end"].iter().any(|n| job.dir.join(format!("{n}.{index}.json")).exists()) {
        return Ok(true);
    }
    step("dispatching");
    let fds = std::iter::once(&lock).chain(slots).map(|l| l.pass_on().map(|fd| fd.to_string()));
    let fds = fds.collect::<Result<Vec<_>, _>>().map_err(QueueError::io("pass on the lock", &path))?;
    let mut command = Command::new(&keeper[0]);
    command.args(&keeper[1..]).arg(&job.dir).arg(index.to_string()).arg(fds.join(","));
    command.stdin(Stdio::null()).stdout(Stdio::null()).current_dir("/");
    command.spawn().map_err(QueueError::io("start the keeper", &keeper[0]))?;
    step("dispatched");
    Ok(true)
}

/// Stops what runs in a queue whose second threshold is crossed, and lets it go on below the first.
fn heed_load(jobs: &[Job], config: &Config, load: &Load) {
    for job in jobs.iter().filter(|j| j.uid == files::uid() && j.spec.host.is_none()) {
        let Some(queue) = config.queues.get(&job.spec.queue) else { continue };
        for part in job.parts.iter().filter(|p| p.state.is_running()) {
            let path = job.dir.join(format!("load.{}.json", part.index));
            match (part.stopped_by.is_some(), load.above_second(queue)) {
                (false, Some(by)) => {
                    let _ = files::write_json(&path, &crate::job::Stop { by }, 0o644);
                }
                (true, None) if load.above_first(queue).is_none() => {
                    let _ = std::fs::remove_file(&path);
                }
                _ => {}
            }
        }
    }
}

/// `homing sub --after` ends what can never start; LSF leaves it pending.
fn end_hopeless(spool: &Spool, jobs: &[Job]) -> Result<(), QueueError> {
    let mine = |j: &&Job| j.uid == files::uid() && j.spec.style == Style::Homing && j.spec.after.is_some();
    if !jobs.iter().any(|j| mine(&j) && j.parts.iter().any(|p| p.state == State::Pend)) {
        return Ok(());
    }
    let views = spool.views(jobs);
    for view in views.iter().filter(|v| v.state == State::Pend && v.after == crate::depend::Verdict::Never) {
        if let Some(job) = jobs.iter().filter(mine).find(|j| j.id == view.id) {
            let after = job.spec.after.clone().unwrap_or_default();
            spool.end_unstarted(job, view.index, &format!("it waited for {after}, which cannot come true any more"))?;
        }
    }
    Ok(())
}

/// Takes note of keepers that ended.
fn reap() {
    while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
}

/// Sleeps, but not past the end of a keeper.
fn wait_for_child(pause: Duration) {
    let end = Instant::now() + pause;
    while Instant::now() < end {
        if let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {
            return;
        }
        std::thread::sleep(QUICK.min(end.saturating_duration_since(Instant::now())));
    }
}
