//! Looks at files with a bound. A mount whose server is gone keeps whoever asks it, for minutes or for good,
//! and no signal ends that: so a thread asks, and is left behind.

use crate::{holding, read};
use homing_os::threads::within;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a look may take where the user did not say (`--fs-timeout`). A busy server answers a `stat` within one
/// second; NFS asks again after 60 s at the earliest.
pub const FS_TIMEOUT: Duration = Duration::from_secs(5);

/// Results that wait for whoever takes them.
const AHEAD: usize = 64;
/// How often it is seen whether a look takes too long.
const TICK: Duration = Duration::from_millis(100);

/// What one look at these files finds, however long it takes while they answer; else what is told of one that does not.
pub fn patiently<R: Send + 'static>(
    paths: Vec<PathBuf>,
    limit: Duration,
    look: impl FnOnce() -> R + Send + 'static,
) -> Result<R, String> {
    let only = Arc::new(Mutex::new(Some((paths, look))));
    let fresh = move || -> Look<(), (), R> {
        let only = only.clone();
        Box::new(move |(), looking| {
            let only = only.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (paths, look) = only.expect("there is one thing to look at");
            looking.begins_at((), paths);
            look()
        })
    };
    let found = Bounded::new(std::iter::once(()), limit, fresh).next().expect("each thing has a result");
    found.map_err(|silent| silence(&silent.path, limit))
}

/// What is told of a path whose file system was silent.
pub fn silence(path: &Path, limit: Duration) -> String {
    let lines = read().unwrap_or_default();
    // By its words alone: to resolve links it would have to be asked.
    let plain = path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
        plain
    });
    let where_ = holding(&lines, &plain).map_or(String::new(), |line| {
        let mount = &line.mount;
        format!(": {}, {} of {}", mount.point.display(), mount.fstype, mount.source.display())
    });
    format!("{} does not answer within {} s{where_}; is its server up?", path.display(), limit.as_secs_f64())
}

/// Which look is under way, for what, and since when.
pub struct Looking<K>(Mutex<State<K>>);

struct Now<K> {
    key: K,
    /// All that is looked at for it, in turn or at once.
    paths: Vec<PathBuf>,
    since: Instant,
}

struct State<K> {
    now: Option<Now<K>>,
    given_up: bool,
    /// There are no more things.
    ended: bool,
}

impl<K> Looking<K> {
    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says what is looked at from now on, for the sake of `key`.
    pub fn begins(&self, key: K, path: &Path) {
        self.begins_at(key, vec![path.into()]);
    }

    /// The same, of several that are looked at in turn or at once.
    fn begins_at(&self, key: K, paths: Vec<PathBuf>) {
        self.state().now = Some(Now { key, paths, since: Instant::now() });
    }

    /// Says what is looked at next, for the same.
    pub fn goes_on(&self, path: &Path) {
        if let Some(now) = &mut self.state().now {
            now.paths.push(path.into());
            now.since = Instant::now();
        }
    }

    /// False when it took so long that nobody waits any more.
    fn ends(&self) -> bool {
        let mut state = self.state();
        state.now = None;
        !state.given_up
    }
}

/// A thing for which a look was in vain.
#[derive(Debug)]
pub struct Silent<K> {
    /// For which.
    pub key: K,
    /// What did not answer.
    pub path: PathBuf,
}

type Things<T> = Arc<Mutex<dyn Iterator<Item = T> + Send>>;
/// Looks at one thing after another.
pub type Look<T, K, R> = Box<dyn FnMut(T, &Looking<K>) -> R + Send>;

/// Results for things, in their order, each look with a bound. Things after one whose file system is silent are
/// looked at by another thread, and a look of its own.
pub struct Bounded<T, K, R> {
    things: Things<T>,
    fresh: Box<dyn Fn() -> Look<T, K, R> + Send>,
    limit: Duration,
    looking: Arc<Looking<K>>,
    results: Receiver<R>,
    /// There is no thread for it: whoever wants a result looks, without a bound.
    here: Option<Look<T, K, R>>,
}

impl<T: 'static, K: Send + 'static, R: Send + 'static> Bounded<T, K, R> {
    /// `fresh` makes a look for a new thread; what it shares with the look of one that was left behind must not
    /// be locked while that looks.
    pub fn new(
        things: impl Iterator<Item = T> + Send + 'static,
        limit: Duration,
        fresh: impl Fn() -> Look<T, K, R> + Send + 'static,
    ) -> Self {
        let things: Things<T> = Arc::new(Mutex::new(things));
        let (looking, results, here) = start(&things, &fresh);
        Bounded { things, fresh: Box::new(fresh), limit, looking, results, here }
    }

    /// The look that is under way, when it takes too long and a path of it is silent: a large folder takes long, too.
    fn overdue(&self) -> Option<Silent<K>> {
        let (paths, asked_since) = match &self.looking.state().now {
            Some(now) if now.since.elapsed() > self.limit => (now.paths.clone(), now.since),
            _ => return None,
        };
        let silent = paths.into_iter().rev().find(|path| !answers(path, self.limit));
        let mut state = self.looking.state();
        let now = state.now.as_mut().filter(|now| now.since == asked_since)?;
        let Some(path) = silent else {
            now.since = Instant::now();
            return None;
        };
        state.given_up = true;
        state.now.take().map(|now| Silent { key: now.key, path })
    }
}

fn answers(path: &Path, limit: Duration) -> bool {
    let path = path.to_path_buf();
    within(limit, move || look_at(&path)).is_some()
}

/// Asks the server itself, whatever it answers.
#[cfg(target_os = "linux")]
fn look_at(path: &Path) {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let _ = statx(CWD, path, AtFlags::STATX_FORCE_SYNC, StatxFlags::BASIC_STATS);
}

/// Only Linux can ask past its caches.
#[cfg(not(target_os = "linux"))]
fn look_at(path: &Path) {
    let _ = path.symlink_metadata();
}

impl<T: 'static, K: Send + 'static, R: Send + 'static> Iterator for Bounded<T, K, R> {
    type Item = Result<R, Silent<K>>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(look) = &mut self.here {
            return next_of(&self.things).map(|thing| Ok(look(thing, &self.looking)));
        }
        loop {
            match self.results.recv_timeout(TICK) {
                Ok(result) => return Some(Ok(result)),
                Err(RecvTimeoutError::Disconnected) => {
                    // Never the end of the things in silence.
                    assert!(self.looking.state().ended, "the thread that looks at files panicked");
                    return None;
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(silent) = self.overdue() {
                        (self.looking, self.results, self.here) = start(&self.things, &self.fresh);
                        return Some(Err(silent));
                    }
                }
            }
        }
    }
}

/// A look in a thread of its own; the last one is a look for whoever wants a result, where no thread can be begun.
type Started<T, K, R> = (Arc<Looking<K>>, Receiver<R>, Option<Look<T, K, R>>);

fn start<T: 'static, K: Send + 'static, R: Send + 'static>(
    things: &Things<T>,
    fresh: &dyn Fn() -> Look<T, K, R>,
) -> Started<T, K, R> {
    let looking = Arc::new(Looking(Mutex::new(State { now: None, given_up: false, ended: false })));
    let (to, results) = sync_channel(AHEAD);
    let (things, look, mine) = (things.clone(), fresh(), looking.clone());
    let begun = homing_os::threads::begin(move || look_on(&things, look, &mine, &to));
    (looking, results, begun.is_err().then(fresh))
}

fn next_of<T>(things: &Things<T>) -> Option<T> {
    things.lock().unwrap_or_else(PoisonError::into_inner).next()
}

fn look_on<T, K, R>(things: &Things<T>, mut look: Look<T, K, R>, looking: &Looking<K>, to: &SyncSender<R>) {
    loop {
        // In a statement of its own, or it would stay locked during the look.
        let thing = next_of(things);
        let Some(thing) = thing else { return looking.state().ended = true };
        let result = look(thing, looking);
        if !looking.ends() || to.send(result).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_look_that_takes_long_where_files_answer_is_waited_for() {
        let look = || -> Look<u32, u32, u32> {
            Box::new(|n, looking| {
                looking.begins(n, Path::new("/"));
                thread::sleep(Duration::from_millis(if n == 2 { 400 } else { 0 }));
                n
            })
        };
        let seen: Vec<_> = Bounded::new(1..=3, Duration::from_millis(50), look).map(Result::unwrap).collect();
        assert_eq!(seen, [1, 2, 3]);
        assert_eq!(within(Duration::from_millis(50), move || thread::sleep(Duration::from_secs(600))), None);
        assert!(silence(Path::new("/"), FS_TIMEOUT).contains("does not answer within 5 s"));
        assert!(silence(Path::new("/tmp/x/../../proc/stat"), FS_TIMEOUT).contains(": /proc, proc"));
    }
}
