//! A user's runner: starts that user's jobs when it is their turn, and ends when nothing is left to do. Killing it
//! harms no job: the end of the next job, or the next command of its user, starts another.

mod dispatch;
mod storage;
mod upkeep;

use crate::bell::{Bell, Rung};
use crate::files::{self, RUNNER_LOCK, step};
use crate::front::Front;
use crate::load::{self, LoadIndices};
use crate::neighbours::{Neighbours, Presence};
use crate::plan::{self, Block, Config, JobView, Leased, Queue, Standing, Usage};
use crate::retry::KeeperRetries;
use crate::state::ElementState;
use crate::turn::UserTurn;
use crate::{JobSpool, QueueError, Storage, slots};
use homing_os::folder::lock::FileLock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The pauses between two looks: short after an event, longer without one.
const QUICK: Duration = Duration::from_millis(10);
const SLOW: Duration = Duration::from_millis(250);
/// The interval at which the number of waiting elements is recorded.
const COUNT: Duration = Duration::from_secs(1);
/// The pause between two checks whether a full disk has room again.
const FULL: Duration = Duration::from_secs(1);

/// Runs until no work of this user is left. `config` is called each round, so that a changed cluster file is noticed.
/// `keeper` are the words that start a keeper, `runner` the program and the word that start a runner.
pub fn run(
    spool: &JobSpool,
    config: &mut dyn FnMut() -> Config,
    keeper: &[PathBuf],
    runner: (&Path, &str),
) -> Result<(), QueueError> {
    files::play("runner");
    close_inherited();
    // When a terminal ends, its session ends with it; the runner makes its own.
    let _ = rustix::process::setsid();
    let mut config = || spool.now(config());
    let own = spool.places.own()?;
    let lock = own.join(RUNNER_LOCK);
    let mut told = false;
    loop {
        let held = FileLock::try_take(&lock).map_err(QueueError::io("lock", &lock))?;
        let Some(held) = held else { return Ok(()) };
        let servers = storage::StorageServers::of_runner(&own, runner);
        match Runner::new(spool, keeper, &own, servers).serve(&held, &mut config) {
            // If the runner ended here, the jobs would wait even with room again, until their user's next command.
            Err(full) if full.is_full() => {
                if !std::mem::replace(&mut told, true) {
                    homing_os::say!("homing: no job starts until there is free space: {full}");
                }
                std::thread::sleep(FULL);
            }
            served => served?,
        }
        drop(held);
        // A job that came between the last look and the release of the lock found a runner, so this one must serve
        // it.
        let (mut front, config) = (Front::default(), config());
        let jobs = front.look(spool, &config, &Rung::default());
        if !has_work(&front.views(spool, &jobs), &front, &config, &LoadIndices::default()) {
            return Ok(());
        }
    }
}

/// Closes the files that the submitter's shell had open. A process that waits for the end of such a pipe would wait
/// as long as there are jobs.
fn close_inherited() {
    // SAFETY: this process has opened nothing yet except its standard streams. The call is not in every C library.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
}

/// Whether any of these, or more of the front, runs or may start without an action of a user.
fn has_work(own: &[JobView], front: &Front, config: &Config, load: &LoadIndices) -> bool {
    let usage = Usage::default();
    if front.has_more() {
        return true;
    }
    own.iter().filter(|v| !v.state.is_over()).any(|v| {
        v.state.is_running()
            || v.asks
            || !matches!(
                plan::blocked(config, &usage, v, load),
                Some(Block::Stopped | Block::Never | Block::TooLarge | Block::NoSlots)
            )
    })
}

/// Waits for ended keepers and their guards. They would stay as zombies, and count among the user's processes.
fn reap() {
    while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
}

struct Runner<'a> {
    spool: &'a JobSpool,
    keeper: &'a [PathBuf],
    bell: Bell,
    /// This user's folder.
    own: PathBuf,
    /// The live keepers.
    keepers: Vec<OwnedFd>,
    turn: UserTurn,
    neighbours: Neighbours,
    servers: storage::StorageServers,
    /// The leases that its jobs may use.
    leases: BTreeMap<Storage, Leased>,
    /// The last standing that was published.
    told: (Vec<Standing>, BTreeMap<String, String>),
    /// The last start on each host, also of ended elements.
    last_us: BTreeMap<Option<String>, u64>,
    /// Starts whose leftovers were looked for.
    buried: BTreeSet<(u64, u32, i64)>,
    failed: KeeperRetries,
    /// When the number of waiting elements was last recorded.
    counted: Instant,
}

impl<'a> Runner<'a> {
    fn new(spool: &'a JobSpool, keeper: &'a [PathBuf], own: &Path, servers: storage::StorageServers) -> Runner<'a> {
        Runner {
            spool,
            keeper,
            bell: Bell::new(own),
            own: own.to_path_buf(),
            keepers: Vec::new(),
            turn: UserTurn::default(),
            neighbours: Neighbours::default(),
            servers,
            leases: BTreeMap::new(),
            told: Default::default(),
            last_us: BTreeMap::new(),
            buried: BTreeSet::new(),
            failed: KeeperRetries::default(),
            counted: Instant::now(),
        }
    }

    /// Starts jobs until there is no more work, or until `held`, the lock in the runner's folder, was removed.
    fn serve(&mut self, held: &FileLock, config: &mut dyn FnMut() -> Config) -> Result<(), QueueError> {
        Presence::own(Vec::new(), BTreeMap::new())
            .publish(&self.own)
            .map_err(QueueError::io("write into", &self.own))?;
        step("present");
        slots::folder(&self.own)?;
        self.spool.tidy()?;
        let mut front = Front::default();
        let mut watch = None;
        let mut pause = QUICK;
        loop {
            // Before the look, so that no later event is missed.
            self.bell.watch(&self.spool.places, &self.spool.places.users());
            let rung = self.bell.rang();
            let config = config();
            let jobs = front.look(self.spool, &config, &rung);
            if self.counted.elapsed() >= COUNT {
                self.counted = Instant::now();
                self.spool.note_waiting(front.waiting());
                if !held.is_at(&self.own.join(RUNNER_LOCK)) {
                    return Err(QueueError::Program(format!("the queue's folder was removed: {}", self.own.display())));
                }
            }
            // A first look takes a while, and most queues have no thresholds.
            let wanted = config.queues.values().any(Queue::asks_load)
                || jobs
                    .iter()
                    .any(|j| !j.spec.require.is_empty() && j.parts.iter().any(|p| p.state == ElementState::Pend));
            let load = match wanted {
                true => {
                    watch = watch.filter(|watch: &load::LoadMonitor| watch.watches(&config.index));
                    watch.get_or_insert_with(|| load::watch(&config.index)).now().clone()
                }
                false => LoadIndices::default(),
            };
            self.kill_descendants(&jobs);
            upkeep::heed_load(&jobs, &config, &load);
            for (host, began) in front.began() {
                let last = self.last_us.entry(host.clone()).or_default();
                *last = (began.as_micros() as u64).max(*last);
            }
            let views = front.views(self.spool, &jobs);
            let ended = self.end_forsaken(&jobs)? + self.end_hopeless(&jobs, &views)?;
            if !has_work(&views, &front, &config, &load) {
                return Ok(());
            }
            let started = self.dispatch(&config, &load, &jobs, views)?;
            pause = if started + ended > 0 { QUICK } else { (pause * 2).min(SLOW) };
            self.wait(if front.has_unread() { Duration::ZERO } else { pause });
        }
    }

    /// Sleeps until the end of the pause, the end of a keeper, which usually frees a slot, or an event of the bell.
    fn wait(&mut self, pause: Duration) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: pause.as_nanos() as i64 };
        let mut fds: Vec<PollFd> = self.keepers.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let bell = self.bell.fd();
        fds.extend(bell.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let _ = poll(&mut fds, Some(&timeout));
        let ended: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        self.keepers.retain(|_| !ended.next().unwrap_or(false));
        reap();
    }
}
