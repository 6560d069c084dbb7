//! What a job is told while it runs, by its user and by its limits.

use super::ended;
use crate::far::{Far, Word};
use crate::files::{self, read_json};
use crate::job::{End, JobSpec, Kill, Share};
use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};

/// Between asking a job to end and ending it; LSF's JOB_TERMINATE_INTERVAL is 10 s.
const GRACE: Duration = Duration::from_secs(5);

/// A share that was asked for, or is held.
pub(super) struct Held<'a> {
    pub share: &'a Share,
    pub far: Far,
}

/// Who carries out what a job is told: its processes here, or the host that it was sent to.
pub(super) enum Hand<'a> {
    Here,
    Far(&'a Far),
    /// All hosts of a job over several.
    Several(&'a RefCell<Vec<Held<'a>>>),
}

impl Hand<'_> {
    /// Tells the hosts that it was sent to; false where it runs here.
    fn order(&self, word: Word) -> bool {
        match self {
            Hand::Here => return false,
            Hand::Far(far) => far.order(word),
            Hand::Several(held) => held.borrow().iter().for_each(|held| held.far.order(word.clone())),
        }
        true
    }
}

/// What the keeper was told.
pub(super) struct Orders<'a> {
    hand: Hand<'a>,
    spec: &'a JobSpec,
    dir: &'a Path,
    index: u32,
    limit: Option<Duration>,
    /// Bytes.
    memory: Option<u64>,
    begun: Instant,
    /// The request that was carried out last, of each file. Another one is new whatever time it bears:
    /// the clock may have been set back in between.
    seen: [Option<Kill>; 2],
    stopped: bool,
    kill_at: Option<Instant>,
    /// Why the job was ended.
    pub reason: Option<String>,
    /// The exit status of the rank that died, where that is why.
    pub died: Option<i32>,
}

/// Where the end of an element is asked for.
fn kills(index: u32) -> [String; 2] {
    ["kill.json".into(), format!("kill.{index}.json")]
}

impl Orders<'_> {
    /// For an element that starts now.
    pub fn new<'a>(hand: Hand<'a>, dir: &'a Path, index: u32, spec: &'a JobSpec) -> Orders<'a> {
        let here = matches!(hand, Hand::Here);
        Orders {
            hand,
            spec,
            dir,
            index,
            // A host holds its own jobs to their limits, from the start there on.
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

    /// For what comes after the job: what was asked for until now was asked of the job.
    pub fn after_the_job(mut self) -> Self {
        for (seen, name) in self.seen.iter_mut().zip(kills(self.index)) {
            *seen = read_json(&self.dir.join(name)).map(|(kill, _)| kill);
        }
        self
    }

    /// Since the start.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Looks at what was asked, and does it.
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
                // What ends now because of another end is not the reason.
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
        // A host says itself what it stops because of its load.
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
        // Whoever takes more than was said takes it from others: there is no time to ask.
        if self.memory.is_some_and(|limit| homing_os::process::resident() > limit) {
            self.end("memory limit", Duration::ZERO);
        }
        // Nobody could ask for its end any more.
        if !self.dir.exists() {
            self.end("its folder was removed", GRACE);
        }
        if let Some(why) = self.spec.forsaken(&files::boot_id()) {
            self.end(why, GRACE);
        }
    }

    /// The end that its host tells, for the reason that was given here, if any was.
    pub fn ended_by(&mut self, end: End) -> End {
        End { reason: self.reason.take().or(end.reason), ..end }
    }

    /// The end of what nothing more is heard of, if somebody had asked for that.
    pub fn killed(&mut self) -> Option<End> {
        self.reason.take().map(|reason| End { exit: 130, reason: Some(reason), ..ended() })
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
            // What stands still does not hear.
            homing_os::process::signal(libc::SIGCONT);
        }
        self.stopped = false;
        // The host gives its processes as long, and tells of their end then.
        let grace = if matches!(self.hand, Hand::Here) { grace } else { grace * 2 };
        self.kill_at.get_or_insert(Instant::now() + grace);
    }

    fn signal(&self, signal: i32) {
        if !self.hand.order(Word::Signal(signal)) {
            homing_os::process::signal(signal);
        }
    }
}
