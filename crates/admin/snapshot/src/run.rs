//! Runs rsync as a child: with low priority, able to be paused, and ended with its parent.

use crate::ask::Control;
use homing_os::folder::lock::FileLock;
use homing_os::threads::lock;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// `IOPRIO_CLASS_IDLE` of linux/ioprio.h, shifted to the bits in which `ioprio_set` expects a class.
const IDLE: libc::c_long = 3 << 13;
/// `IOPRIO_WHO_PROCESS` of linux/ioprio.h.
const THIS: libc::c_long = 1;

/// The most time that the end of the channel waits for folders to be removed.
const CLEANUP: Duration = Duration::from_secs(60);

/// The children of this process that can be paused by controls from the channel.
#[derive(Clone, Debug, Default)]
pub struct Reins(Arc<Mutex<ReinsState>>);

#[derive(Debug, Default)]
struct ReinsState {
    groups: Vec<u32>,
    paused: bool,
    /// The number of leases that are wanted, if more than one.
    wanted: u32,
    /// The begin of the present pause.
    since: Option<Instant>,
    stood: Duration,
    /// [`Reins::end`] was called.
    ended: bool,
    /// Folders that are removed before this process ends.
    cleanups: u32,
}

impl Reins {
    /// Pauses or continues all children, also those that are started later.
    pub fn heed(&self, control: &Control) {
        let mut state = self.state();
        match control {
            Control::Pause => state.paused = true,
            Control::Resume => state.paused = false,
            Control::Wanted(leases) => state.wanted = *leases,
            _ => {}
        }
        state.count();
        state.signal(if state.paused { libc::SIGSTOP } else { libc::SIGCONT });
    }

    /// Kills all children, also later ones, and waits until folders of [`Reins::cleanup`] are removed.
    pub fn end(&self) {
        {
            let mut state = self.state();
            state.ended = true;
            state.signal(libc::SIGKILL);
        }
        let begun = Instant::now();
        while self.state().cleanups > 0 && begun.elapsed() < CLEANUP {
            std::thread::sleep(CLEANUP / 6000);
        }
    }

    /// Whether [`Reins::end`] was called.
    pub fn has_ended(&self) -> bool {
        self.state().ended
    }

    /// Makes [`Reins::end`] wait until the returned value is dropped.
    pub fn cleanup(&self) -> Cleanup {
        self.state().cleanups += 1;
        Cleanup(self.clone())
    }

    /// Whether all children are paused.
    pub fn are_held(&self) -> bool {
        self.state().paused
    }

    /// Returns how many leases of the file server are wanted: one for each host that reads.
    pub fn wanted(&self) -> u32 {
        self.state().wanted.max(1)
    }

    fn state(&self) -> MutexGuard<'_, ReinsState> {
        lock(&self.0)
    }

    /// Returns how long the children were paused for others.
    pub fn paused(&self) -> Duration {
        let state = self.state();
        state.stood + state.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn hold(&self, group: u32) {
        let mut state = self.state();
        state.groups.push(group);
        state.count();
        if state.ended {
            state.signal(libc::SIGKILL);
        } else if state.paused {
            state.signal(libc::SIGSTOP);
        }
    }

    fn let_go(&self, group: u32) {
        let mut state = self.state();
        state.groups.retain(|one| *one != group);
        state.count();
    }
}

/// A folder that is removed before this process ends.
#[derive(Debug)]
pub struct Cleanup(Reins);

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.0.state().cleanups -= 1;
    }
}

impl ReinsState {
    fn count(&mut self) {
        self.stood += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        self.since = (self.paused && !self.groups.is_empty()).then(Instant::now);
    }

    fn signal(&self, signal: libc::c_int) {
        self.groups.iter().for_each(|group| signal_group(*group, signal));
    }
}

/// Sends a signal to a group. `group`: that of a child of this process, which has not been waited for.
fn signal_group(group: u32, signal: libc::c_int) {
    if let Ok(group) = i32::try_from(group) {
        // SAFETY: no other group can have its number.
        unsafe { libc::killpg(group, signal) };
    }
}

/// Returns a command of rsync with these arguments.
pub fn rsync(words: Vec<OsString>) -> Command {
    let mut command = Command::new("rsync");
    command.args(words).env("LC_ALL", "C").env_remove("RSYNC_RSH").stdin(Stdio::null());
    polite(&mut command);
    command
}

/// Gives the child the lowest priority for processor and disk and a group of its own, and ends it with this thread.
pub fn polite(command: &mut Command) {
    // SAFETY: only system calls are made between fork and exec.
    unsafe {
        command.process_group(0).pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            lowest();
            Ok(())
        });
    }
}

/// Takes the lowest priority for processor and disk, as far as the kernel permits.
pub fn lowest() {
    // SAFETY: both calls change only the priorities of this process.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 19);
        libc::syscall(libc::SYS_ioprio_set, THIS, 0 as libc::c_long, IDLE);
    }
}

/// Starts the command. `held`: the lock that the child keeps for as long as any of its processes lives.
pub fn start(command: &mut Command, held: Option<&FileLock>, reins: &Reins) -> io::Result<ChildGuard> {
    let kept = held.map(FileLock::pass_on).transpose()?;
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.spawn();
    if let Some(fd) = kept {
        // SAFETY: the lock is open; children that are started later do not inherit it.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    let child = child.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => io::Error::new(e.kind(), format!("{program} is not installed on this host")),
        _ => e,
    })?;
    reins.hold(child.id());
    Ok(ChildGuard { child, reins: reins.clone() })
}

/// A child that runs; killed when dropped.
#[derive(Debug)]
pub struct ChildGuard {
    /// The child, for its pipes.
    pub child: Child,
    reins: Reins,
}

impl ChildGuard {
    /// Waits for its end; returns its status, or `None` after a signal.
    pub fn wait(mut self) -> io::Result<Option<i32>> {
        // The child stays a zombie until its group is released: no other group can get its number.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the structure outlives the call, and the child is this program's own.
        while unsafe { libc::waitid(libc::P_PID, self.child.id(), &mut info, libc::WEXITED | libc::WNOWAIT) } != 0 {
            let e = io::Error::last_os_error();
            if e.kind() != io::ErrorKind::Interrupted {
                return Err(e);
            }
        }
        self.reins.let_go(self.child.id());
        self.child.wait().map(|status| status.code())
    }
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            signal_group(self.child.id(), libc::SIGKILL);
            let _ = self.child.wait();
        }
        self.reins.let_go(self.child.id());
    }
}
