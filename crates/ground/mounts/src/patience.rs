//! Looks at files with a time limit. A mount whose server is gone blocks each process that uses it, for minutes or
//! for ever, and no signal ends that. So a thread does the look, and is abandoned if it hangs.

use crate::{holding, read};
use homing_os::threads::lock;
use homing_os::threads::within;
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Default time limit of a look, which the user sets by `--fs-timeout`. A busy server answers a `stat` within one
/// second; NFS repeats a request after 60 s at the earliest.
pub const FS_TIMEOUT: Duration = Duration::from_secs(5);

/// The most results that are kept before they are taken.
const AHEAD: usize = 64;
/// Interval between two checks for an overdue look.
const TICK: Duration = Duration::from_millis(100);

/// Does one look at these files. It may take any time as long as they answer; otherwise returns an error that names
/// the silent file.
pub fn patiently<R: Send + 'static>(
    paths: Vec<PathBuf>,
    limit: Duration,
    look: impl FnOnce() -> R + Send + 'static,
) -> Result<R, String> {
    let only = Arc::new(Mutex::new(Some((paths, look))));
    let fresh = move || -> LookFunction<(), (), R> {
        let only = only.clone();
        Box::new(move |(), looking| {
            let only = lock(&only).take();
            let (paths, look) = only.expect("there is one thing to look at");
            looking.begins_at((), paths);
            look()
        })
    };
    let found = Bounded::new(std::iter::once(()), limit, fresh).next().expect("each thing has a result");
    found.map_err(|silent| silence(&silent.path, limit))
}

/// Returns the error for a path whose file system does not answer.
pub fn silence(path: &Path, limit: Duration) -> String {
    let lines = read().unwrap_or_default();
    // Lexically: resolving links would need the silent file system.
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

/// The look in progress, with its key, paths and start.
pub struct Looking<K>(Mutex<LookState<K>>);

struct Now<K> {
    key: K,
    /// All paths of this look, read in turn or at once.
    paths: Vec<PathBuf>,
    since: Instant,
}

struct LookState<K> {
    now: Option<Now<K>>,
    given_up: bool,
    /// Whether all things were looked at.
    ended: bool,
}

impl<K> Looking<K> {
    fn state(&self) -> MutexGuard<'_, LookState<K>> {
        lock(&self.0)
    }

    /// Records that a look at `path` for `key` begins.
    pub fn begins(&self, key: K, path: &Path) {
        self.begins_at(key, vec![path.into()]);
    }

    /// As `begins`, for several paths that are read in turn or at once.
    fn begins_at(&self, key: K, paths: Vec<PathBuf>) {
        self.state().now = Some(Now { key, paths, since: Instant::now() });
    }

    /// Records the next path of the same look.
    pub fn goes_on(&self, path: &Path) {
        if let Some(now) = &mut self.state().now {
            now.paths.push(path.into());
            now.since = Instant::now();
        }
    }

    /// Ends the look. Returns false if it took so long that it was given up.
    fn ends(&self) -> bool {
        let mut state = self.state();
        state.now = None;
        !state.given_up
    }
}

/// A thing whose look was given up.
#[derive(Debug)]
pub struct Silent<K> {
    /// Key of the look.
    pub key: K,
    /// The path that did not answer.
    pub path: PathBuf,
}

type Things<T> = Arc<Mutex<dyn Iterator<Item = T> + Send>>;
/// A function that looks at one thing after another.
pub type LookFunction<T, K, R> = Box<dyn FnMut(T, &Looking<K>) -> R + Send>;

/// Iterator over the results for things, in their order, each look with a time limit. If a file system does not
/// answer, another thread with a new look function does the following things.
pub struct Bounded<T, K, R> {
    things: Things<T>,
    fresh: Box<dyn Fn() -> LookFunction<T, K, R> + Send>,
    limit: Duration,
    looking: Arc<Looking<K>>,
    results: Receiver<R>,
    /// The look function if no thread could be started. Then `next` looks itself, without a limit.
    here: Option<LookFunction<T, K, R>>,
}

impl<T: 'static, K: Send + 'static, R: Send + 'static> Bounded<T, K, R> {
    /// Starts the looks. `fresh` makes a look function for a new thread. Data that it shares with an abandoned one
    /// must not be locked during a look.
    pub fn new(
        things: impl Iterator<Item = T> + Send + 'static,
        limit: Duration,
        fresh: impl Fn() -> LookFunction<T, K, R> + Send + 'static,
    ) -> Self {
        let things: Things<T> = Arc::new(Mutex::new(things));
        let (looking, results, here) = start(&things, &fresh);
        Bounded { things, fresh: Box::new(fresh), limit, looking, results, here }
    }

    /// Returns the look in progress if it takes too long and one of its paths does not answer. A large folder alone
    /// also takes long.
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

/// Queries the server itself and ignores the result.
#[cfg(target_os = "linux")]
fn look_at(path: &Path) {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let _ = statx(CWD, path, AtFlags::STATX_FORCE_SYNC, StatxFlags::BASIC_STATS);
}

/// Only Linux can bypass its caches.
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
                    // The end of the results must be the end of the things, not a panic.
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

/// A look in its own thread. The last field is a look function for the caller, if no thread could be started.
type LookThread<T, K, R> = (Arc<Looking<K>>, Receiver<R>, Option<LookFunction<T, K, R>>);

fn start<T: 'static, K: Send + 'static, R: Send + 'static>(
    things: &Things<T>,
    fresh: &dyn Fn() -> LookFunction<T, K, R>,
) -> LookThread<T, K, R> {
    let looking = Arc::new(Looking(Mutex::new(LookState { now: None, given_up: false, ended: false })));
    let (to, results) = sync_channel(AHEAD);
    let (things, look, mine) = (things.clone(), fresh(), looking.clone());
    let begun = homing_os::threads::begin(move || look_on(&things, look, &mine, &to));
    (looking, results, begun.is_err().then(fresh))
}

fn next_of<T>(things: &Things<T>) -> Option<T> {
    lock(things).next()
}

fn look_on<T, K, R>(things: &Things<T>, mut look: LookFunction<T, K, R>, looking: &Looking<K>, to: &SyncSender<R>) {
    loop {
        // A separate statement, because the lock would otherwise be held during the look.
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
        let look = || -> LookFunction<u32, u32, u32> {
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
