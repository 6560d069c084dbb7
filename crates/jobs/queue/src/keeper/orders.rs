//! Carries out the orders to a running job, from its user and by its limits.

use super::ended;
use crate::far::{Far, Word};
use crate::files::{self, read_json};
use crate::job::{JobEnd, JobSpec, Kill, Share};
use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time between SIGTERM and SIGKILL; LSF's JOB_TERMINATE_INTERVAL is 10 s.
const GRACE: Duration = Duration::from_secs(5);

/// A share that was requested or is held.
pub(super) struct RemoteShare<'a> {
    pub share: &'a Share,
    pub far: Far,
}

/// The receiver of a job's orders: its processes here, or the host to which it was sent.
pub(super) enum Hand<'a> {
    Here,
    Far(&'a Far),
    /// All hosts of a job over several hosts.
    Several(&'a RefCell<Vec<RemoteShare<'a>>>),
}

impl Hand<'_> {
    /// Sends an order to the hosts that have the job; returns false if it runs here.
    fn order(&self, word: Word) -> bool {
        match self {
            Hand::Here => return false,
            Hand::Far(far) => far.order(word),
            Hand::Several(held) => held.borrow().iter().for_each(|held| held.far.order(word.clone())),
        }
        true
    }
}

/// The orders that the keeper has read.
pub(super) struct Orders<'a> {
    hand: Hand<'a>,
    spec: &'a JobSpec,
    dir: &'a Path,
    index: u32,
    limit: Option<Duration>,
    /// The memory limit, bytes.
    memory: Option<u64>,
    begun: Instant,
    /// The last request that was carried out, of each file. A different one is new whatever its time is, because the
    /// clock may have been set back in between.
    seen: [Option<Kill>; 2],
    stopped: bool,
    kill_at: Option<Instant>,
    /// Why the job was ended.
    pub reason: Option<String>,
    /// The exit status for the rank that died, if that is the reason.
    pub died: Option<i32>,
}

/// Returns the files that request the end of an element.
fn kills(index: u32) -> [String; 2] {
    ["kill.json".into(), format!("kill.{index}.json")]
}

impl Orders<'_> {
    /// Makes the orders of an element that starts now.
    pub fn new<'a>(hand: Hand<'a>, dir: &'a Path, index: u32, spec: &'a JobSpec) -> Orders<'a> {
        let here = matches!(hand, Hand::Here);
        Orders {
            hand,
            spec,
            dir,
            index,
            // Another host enforces the limits itself, from the start there on.
            limit: spec.limit_s.filter(|_| here).map(Duration::from_secs),
            memory: spec.memory_bytes.filter(|_| here),
            begun: Instant::now(),
            seen: [None, None],
            stopped: false,
            kill_at: None,
            reason: None,
            died: None,
        }
    }

    /// Returns the orders for the post_exec. Requests until now were for the job and are skipped.
    pub fn after_the_job(mut self) -> Self {
        for (seen, name) in self.seen.iter_mut().zip(kills(self.index)) {
            *seen = read_json(&self.dir.join(name)).map(|(kill, _)| kill);
        }
        self
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Reads the requests and carries them out.
    pub fn carry_out(&mut self) {
        self.stand_still();
        if self.kill_at.is_none() {
            self.heed_limits();
        }
        for (nth, name) in kills(self.index).iter().enumerate() {
            let Some((kill, owner)) = read_json::<Kill>(&self.dir.join(name)) else { continue };
            // The folder is the user's own; only they and root can write here.
            if self.seen[nth].as_ref() == Some(&kill) || (owner != files::uid() && owner != 0) {
                continue;
            }
            self.seen[nth] = Some(kill.clone());
            match (kill.signal, kill.died) {
                (Some(signal), _) => self.signal(signal),
                // A rank that ends because of an earlier end is not the reason.
                (None, Some(_)) if self.reason.is_some() => {}
                (None, Some((why, exit))) => {
                    self.died = Some(exit);
                    self.end(&why, GRACE);
                }
                (None, None) => self.end(&format!("killed by {}", kill.by), GRACE),
            }
        }
        if self.kill_at.is_some_and(|at| Instant::now() >= at) {
            homing_os::process::signal(libc::SIGKILL);
        }
    }

    fn stand_still(&mut self) {
        let user = ["stop.json".to_string(), format!("stop.{}.json", self.index)];
        // The other host suspends its jobs because of its load by itself.
        let load = matches!(self.hand, Hand::Here).then(|| format!("load.{}.json", self.index));
        let stop = user.iter().chain(&load).any(|n| self.dir.join(n).exists()) && self.kill_at.is_none();
        if stop != self.stopped {
            if !self.hand.order(Word::Stop(stop)) {
                homing_os::process::signal(if stop { libc::SIGSTOP } else { libc::SIGCONT });
            }
            self.stopped = stop;
        }
    }

    fn heed_limits(&mut self) {
        if self.limit.is_some_and(|limit| self.elapsed() > limit) {
            self.end("time limit", GRACE);
        }
        // A job over its memory limit takes memory from others, so that it gets no grace period.
        if self.memory.is_some_and(|limit| homing_os::process::resident() > limit) {
            self.end("memory limit", Duration::ZERO);
        }
        // No user could request its end any more.
        if !self.dir.exists() {
            self.end("its folder was removed", GRACE);
        }
        if let Some(why) = self.spec.forsaken(&files::boot_id()) {
            self.end(why, GRACE);
        }
    }

    /// Returns the end that its host reports, with the reason that was given here, if any.
    pub fn ended_by(&mut self, end: JobEnd) -> JobEnd {
        JobEnd { reason: self.reason.take().or(end.reason), ..end }
    }

    /// Returns the end of a job whose channel has ended, if its end was requested.
    pub fn killed(&mut self) -> Option<JobEnd> {
        self.reason.take().map(|reason| JobEnd { exit: 130, reason: Some(reason), ..ended() })
    }

    /// Ends it, for a reason that is not its user's.
    pub fn end_for(&mut self, reason: &str) {
        if self.kill_at.is_none() {
            self.end(reason, GRACE);
        }
    }

    fn end(&mut self, reason: &str, grace: Duration) {
        self.reason.get_or_insert_with(|| reason.to_string());
        if !self.hand.order(Word::End) {
            homing_os::process::signal(libc::SIGTERM);
            // A stopped process does not receive SIGTERM.
            homing_os::process::signal(libc::SIGCONT);
        }
        self.stopped = false;
        // The host gives its processes the same time, and reports their end after that.
        let grace = if matches!(self.hand, Hand::Here) { grace } else { grace * 2 };
        self.kill_at.get_or_insert(Instant::now() + grace);
    }

    fn signal(&self, signal: i32) {
        if !self.hand.order(Word::Signal(signal)) {
            homing_os::process::signal(signal);
        }
    }
}
