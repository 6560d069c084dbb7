//! The child process behind a channel: its last words and its end.

use homing_os::threads::lock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};
use std::collections::VecDeque;
use std::io::Read;
use std::process::{Child, ChildStderr, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Bytes of error output that are kept for messages.
const TAIL: usize = 4 << 10;
/// Time for srun to give its job back, which slurmctld may be slow to accept; also for a guard to end its worker.
const FAREWELL: Duration = Duration::from_secs(8);

/// The child process behind a channel. Dropping it kills the child at once.
pub(crate) struct Carrier {
    child: Child,
    tail: Arc<Tail>,
    reaped: bool,
    polite: bool,
}

impl Carrier {
    /// Drains the child's error output from now on. The thread is not joined: a connection-sharing ssh master
    /// inherits the pipe and may hold it for hours.
    pub fn new(mut child: Child) -> Carrier {
        let tail = Arc::new(Tail::default());
        let drained = child.stderr.take().is_some_and(|stderr| {
            let tail = tail.clone();
            homing_os::threads::begin(move || tail.drain(stderr)).is_ok()
        });
        tail.lock().ended |= !drained;
        Carrier { child, tail, reaped: false, polite: false }
    }

    /// Like [`Carrier::new`], for a child that gets SIGTERM and time before it is killed: it has something to clean
    /// up.
    pub fn polite(child: Child) -> Carrier {
        let mut carrier = Carrier::new(child);
        carrier.polite = true;
        carrier
    }

    /// Returns a handle of the end of the child's error output; the handle may outlive the child.
    pub fn tail(&self) -> Arc<Tail> {
        self.tail.clone()
    }

    /// Returns the end of the child's error output, at most 4 KiB.
    pub fn stderr_tail(&self) -> String {
        self.tail.text()
    }

    /// Ends the child, then gives its last words a moment to arrive.
    pub fn last_words(mut self, grace: Duration) -> (Option<ExitStatus>, String) {
        let status = self.reap(grace);
        self.tail.wait_for_end(Duration::from_millis(300));
        (status, self.tail.text())
    }

    /// Waits for the child, for at most `grace`; then kills it. `None` if its status is unknown.
    pub fn reap(&mut self, grace: Duration) -> Option<ExitStatus> {
        if self.reaped {
            return None;
        }
        let ended = self.ends_within(grace) || (self.polite && self.ends_when_told());
        if !ended {
            if let Some(pid) = self.group() {
                let _ = kill_process_group(pid, Signal::KILL);
            }
            let _ = self.child.kill();
        }
        self.reaped = true;
        self.child.wait().ok()
    }

    /// Sends SIGTERM and gives the child time to act on it.
    fn ends_when_told(&mut self) -> bool {
        let told = self.group().is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok());
        told && self.ends_within(FAREWELL)
    }

    fn ends_within(&mut self, grace: Duration) -> bool {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return true;
        }
        let Some(Ok(pidfd)) = self.group().map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return false };
        let timeout = Timespec::try_from(grace).ok();
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        // An interrupted wait only shortens the grace.
        matches!(poll(&mut fds, timeout.as_ref()), Ok(n) if n > 0)
    }

    /// Returns the process group of the child, which leads one of its own.
    pub fn group(&self) -> Option<Pid> {
        Pid::from_raw(self.child.id() as i32)
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.reap(Duration::ZERO);
    }
}

#[derive(Default)]
pub(crate) struct Tail {
    state: Mutex<TailState>,
    changed: Condvar,
}

#[derive(Default)]
struct TailState {
    bytes: VecDeque<u8>,
    ended: bool,
}

impl Tail {
    fn lock(&self) -> MutexGuard<'_, TailState> {
        lock(&self.state)
    }

    fn drain(&self, mut stderr: ChildStderr) {
        let mut chunk = [0; 1024];
        while let Ok(n @ 1..) = stderr.read(&mut chunk) {
            let mut state = self.lock();
            state.bytes.extend(&chunk[..n]);
            let surplus = state.bytes.len().saturating_sub(TAIL);
            state.bytes.drain(..surplus);
        }
        self.lock().ended = true;
        self.changed.notify_all();
    }

    pub fn wait_for_end(&self, at_most: Duration) {
        let state = self.lock();
        let _ = self.changed.wait_timeout_while(state, at_most, |state| !state.ended);
    }

    pub fn text(&self) -> String {
        let bytes: Vec<u8> = self.lock().bytes.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim().to_string()
    }
}
