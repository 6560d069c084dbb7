//! One attempt at a task, from its start to its measured usage.

use crate::environment::TaskEnvironment;
use crate::gauge::Gauge;
use crate::outputs::Outputs;
use crate::spawn::{self, Ground, PathCache, TaskProcess};
use crate::view::MountView;
use homing_launch::wire::{AttemptEnd, CHUNK, FromWorker, OutputStream};
use homing_model::{IoCounters, Outcome, RawText, Task};
use homing_os::process::ProcessStat;
use homing_os::process::{is_shell_script, refusal};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Longest wait for processes of a recipe that outlive its leader; then they are ended.
const ORPHANS_PATIENCE: Duration = Duration::from_secs(10);
/// Interval at which a task's unsent output is checked: the coordinator may request it.
const KEPT_LOOK: Duration = Duration::from_secs(1);
/// Time between SIGTERM and SIGKILL at a time limit.
const TERM_GRACE: Duration = Duration::from_millis(1000);

/// Whether and why an attempt is being ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum AttemptStop {
    Free = 0,
    Killed = 1,
    TimedOut = 2,
}

/// The controls of a running attempt, for other threads.
#[derive(Debug, Default)]
pub(crate) struct Handle {
    pub pid: std::sync::atomic::AtomicI32,
    fate: AtomicU8,
    /// Whether its output is to be sent as it comes.
    pub eager: AtomicBool,
}

impl Handle {
    /// Signals the attempt's processes; the caller kills them later.
    pub fn end(&self, fate: AttemptStop, signal: libc::c_int) {
        let _ = self.fate.compare_exchange(0, fate as u8, Ordering::SeqCst, Ordering::SeqCst);
        let pid = self.pid.load(Ordering::SeqCst);
        if pid > 0 {
            // SAFETY: a negative number means the process group, which the task leads.
            unsafe { libc::kill(-pid, signal) };
        }
    }

    pub fn fate(&self) -> AttemptStop {
        match self.fate.load(Ordering::SeqCst) {
            1 => AttemptStop::Killed,
            2 => AttemptStop::TimedOut,
            _ => AttemptStop::Free,
        }
    }
}

/// Whether other tasks ran when a start failed for lack of a resource, such as processes or open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempted {
    /// Other tasks ran, or were about to.
    Among,
    /// No other task: the resource will not become free later.
    Alone,
}

/// A task with all that its attempt needs.
pub(crate) struct AttemptPlan<'a> {
    pub ticket: u64,
    pub task: &'a Task,
    pub env: TaskEnvironment<'a>,
    /// Its standard input; /dev/null when `None`.
    pub stdin: Option<&'a File>,
    pub ground: &'a Ground,
    /// Count its bytes even if it is short.
    pub weigh: bool,
    /// Wait for processes that outlive the leader: they may still write.
    pub patient: bool,
    /// `None` if the task has its own PATH or directory.
    pub found: Option<&'a PathCache>,
    pub cwd: &'a Path,
    /// The places of files that other hosts know by another name.
    pub view: &'a MountView,
    pub eager: bool,
    pub handle: &'a Handle,
    /// Waits for room to start a program that could not be started.
    pub room: &'a dyn Fn(&'static str, Attempted) -> Option<Attempted>,
    pub send: &'a dyn Fn(FromWorker),
}

/// Runs it to its end. `buffer` is for reading; it belongs to the slot, which makes it once.
pub(crate) fn run(job: &AttemptPlan, buffer: &mut [u8]) -> AttemptEnd {
    let mut began = Instant::now();
    let outputs = Outputs::begin(&job.task.outputs, job.cwd, job.view);
    let words = spawn::words(&job.task.command, &job.env);
    let started = match words.first() {
        None => Err("the command is empty".to_string()),
        Some(word) => program(job, word).and_then(|program| start(job, &program, &words, &mut began)),
    };
    let started = match started {
        Ok(started) => started,
        Err(why) => {
            outputs.set_aside();
            let outcome =
                if job.handle.fate() == AttemptStop::Free { Outcome::CannotStart(why) } else { Outcome::Killed };
            return ended(job.ticket, outcome, began.elapsed());
        }
    };
    let mut result = watch(job, started, began, buffer);
    if result.outcome.is_success() {
        result.wrote = outputs.keep();
    } else {
        result.set_aside = outputs.set_aside();
    }
    result
}

fn program(job: &AttemptPlan, word: &RawText) -> Result<std::path::PathBuf, String> {
    match job.found {
        Some(found) if !word.0.contains(&b'/') => found.program(word, &job.env, job.cwd, job.view),
        _ => spawn::program(word, &job.env, job.cwd, job.view),
    }
}

/// Starts the program. The shell runs a script without a `#!` line.
fn start(job: &AttemptPlan, program: &Path, words: &[RawText], began: &mut Instant) -> Result<TaskProcess, String> {
    let refused = match spawned(job, program, words, began)? {
        Ok(started) => return Ok(started),
        Err(refused) => refused,
    };
    let file = job.view.real(&job.cwd.join(program));
    let describe = |error| format!("{}: {}", program.display(), refusal(&file, &job.view.real(job.cwd), &error));
    // In a private view homing itself starts, and it treats a script in the same way (`view::enter`).
    if !is_shell_script(&file, &refused) {
        return Err(describe(refused));
    }
    let words = spawn::words_by_shell(program, words, &job.env);
    let shell = self::program(job, &words[0])?;
    spawned(job, &shell, &words, began)?.map_err(describe)
}

/// Starts the program, as soon as the resources for it are there. The time until then does not count as the task's.
/// The inner error is that of a program which the system refuses.
fn spawned(
    job: &AttemptPlan,
    program: &Path,
    words: &[RawText],
    began: &mut Instant,
) -> Result<io::Result<TaskProcess>, String> {
    let (cwd, file, words) = job.view.wrap(program, words, job.cwd);
    let mut attempted = Attempted::Among;
    loop {
        let error = match job.ground.spawn(&file, &words, &job.env, &cwd, job.stdin) {
            Ok(started) => return Ok(Ok(started)),
            Err(error) => error,
        };
        let Some(what) = spawn::scarce(&error) else { return Ok(Err(error)) };
        let next = (job.room)(what, attempted);
        attempted = next.ok_or_else(|| format!("{}: {error}: too few {what}", program.display()))?;
        *began = Instant::now();
    }
}

/// Returns the end of an attempt without measurements.
pub(crate) fn ended(ticket: u64, outcome: Outcome, wall: Duration) -> AttemptEnd {
    AttemptEnd {
        ticket,
        outcome,
        wall_us: wall.as_micros() as u64,
        io: IoCounters::default(),
        io_wait: None,
        stdout: Vec::new(),
        stderr: Vec::new(),
        set_aside: Vec::new(),
        wrote: Vec::new(),
    }
}

struct Pipe {
    file: Option<File>,
    kept: Vec<u8>,
    stream: OutputStream,
    sent: bool,
}

impl Pipe {
    fn new(fd: OwnedFd, stream: OutputStream) -> Pipe {
        Pipe { file: Some(File::from(fd)), kept: Vec::new(), stream, sent: false }
    }

    /// Reads once. Sends all bytes at once if they are more than a chunk, or if the output is eager.
    fn pump(&mut self, job: &AttemptPlan, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Ok(0) };
        let n = file.read(buffer)?;
        if n == 0 {
            self.file = None;
            return Ok(0);
        }
        self.kept.extend_from_slice(&buffer[..n]);
        if job.eager || self.sent || self.kept.len() > CHUNK {
            self.send(job);
        }
        Ok(n)
    }

    /// Sends the kept bytes; from now on each read is sent at once.
    fn send(&mut self, job: &AttemptPlan) {
        self.sent = true;
        for chunk in std::mem::take(&mut self.kept).chunks(CHUNK) {
            (job.send)(FromWorker::Output { ticket: job.ticket, stream: self.stream, bytes: chunk.to_vec() });
        }
    }

    /// Reads the rest after the end of the leader, without waiting for a grandchild that still holds the other end.
    fn drain(&mut self, job: &AttemptPlan, buffer: &mut [u8]) {
        let Some(file) = &self.file else { return };
        let _ = rustix::fs::fcntl_setfl(file.as_fd(), rustix::fs::OFlags::NONBLOCK);
        while self.pump(job, buffer).is_ok_and(|n| n > 0) {}
    }
}

fn watch(job: &AttemptPlan, started: TaskProcess, began: Instant, buffer: &mut [u8]) -> AttemptEnd {
    let pid = started.pid;
    job.handle.pid.store(pid, Ordering::SeqCst);
    if job.handle.fate() != AttemptStop::Free {
        job.handle.end(AttemptStop::Killed, libc::SIGKILL);
    }
    let mut gauge = Gauge::new(pid, began, job.weigh);
    let mut pipes = [Pipe::new(started.stdout, OutputStream::Out), Pipe::new(started.stderr, OutputStream::Err)];
    until_ended(job, pid, &mut pipes, &mut gauge, buffer);
    let wall = began.elapsed();
    drop(started.writers);
    let (rchar, wchar) = gauge.char_counts();
    let io_wait = gauge.io_wait();
    if job.patient {
        await_orphans(pid, job.handle);
    }
    // Processes that a task leaves behind end with it. The leader is still a zombie, so that its number cannot have
    // become another group's.
    // SAFETY: a negative number means the process group.
    unsafe { libc::kill(-pid, libc::SIGKILL) };
    job.handle.pid.store(0, Ordering::SeqCst);
    let (status, usage) = reap(pid);
    let mut result = ended(job.ticket, outcome(status, job.handle.fate()), wall);
    result.io = IoCounters { rchar, wchar, ..usage };
    result.io_wait = io_wait;
    let [out, err] = pipes;
    (result.stdout, result.stderr) = (out.kept, err.kept);
    result
}

/// Reads output and enforces the time limit until the leader is a zombie.
fn until_ended(job: &AttemptPlan, pid: libc::pid_t, pipes: &mut [Pipe; 2], gauge: &mut Gauge, buffer: &mut [u8]) {
    let pidfd = spawn::pidfd(pid).ok();
    let mut next_signal = job.task.timeout_ms.map(|ms| (gauge.began() + Duration::from_millis(ms), libc::SIGTERM));
    loop {
        let signal_in = next_signal.map(|(at, _)| at.saturating_duration_since(Instant::now()));
        let look_in = pipes.iter().any(|pipe| !pipe.sent && !pipe.kept.is_empty()).then_some(KEPT_LOOK);
        let ready = poll(pipes, pidfd.as_ref(), [gauge.next(), signal_in, look_in].into_iter().flatten().min());
        let over = ready.ended || (pidfd.is_none() && has_ended(pid));
        for (pipe, _) in pipes.iter_mut().zip(ready.pipes).filter(|(_, filled)| *filled || (over && pidfd.is_none())) {
            // All output of the leader was in the pipe before its end was reported.
            if over {
                pipe.drain(job, buffer);
            } else if pipe.pump(job, buffer).is_err() {
                pipe.file = None;
            }
        }
        if over {
            return;
        }
        gauge.look();
        if job.handle.eager.load(Ordering::Relaxed) {
            pipes.iter_mut().filter(|pipe| !pipe.sent).for_each(|pipe| pipe.send(job));
        }
        if let Some((_, signal)) = next_signal.filter(|(at, _)| Instant::now() >= *at) {
            job.handle.end(AttemptStop::TimedOut, signal);
            next_signal = Some((Instant::now() + TERM_GRACE, libc::SIGKILL));
        }
    }
}

/// Waits for processes that a recipe's leader left running in its group. Orphans are children of this process, which
/// is a subreaper.
fn await_orphans(leader: libc::pid_t, handle: &Handle) {
    let began = Instant::now();
    let own = std::process::id() as libc::pid_t;
    let mut pause = Duration::from_millis(1);
    loop {
        let left = homing_os::process::children(own).into_iter().any(|child| lives_in_group(child, leader));
        if !left || handle.fate() != AttemptStop::Free || began.elapsed() > ORPHANS_PATIENCE {
            return;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn lives_in_group(pid: libc::pid_t, leader: libc::pid_t) -> bool {
    pid != leader && ProcessStat::of_living(pid).is_some_and(|stat| stat.group() == Some(leader))
}

struct Ready {
    pipes: [bool; 2],
    ended: bool,
}

/// Waits for output, for the end of the leader, or until `wait` is over.
fn poll(pipes: &[Pipe; 2], pidfd: Option<&OwnedFd>, wait: Option<Duration>) -> Ready {
    let entry = |fd: i32| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let of = |pipe: &Pipe| entry(pipe.file.as_ref().map_or(-1, |f| f.as_raw_fd()));
    let mut fds = [of(&pipes[0]), of(&pipes[1]), entry(pidfd.map_or(-1, |f| f.as_raw_fd()))];
    // Without a pidfd the end is looked for every 20 ms.
    let most = if pidfd.is_some() { -1 } else { 20 };
    let ms = wait.map_or(most, |w| {
        let ms = i32::try_from(w.as_millis()).unwrap_or(i32::MAX).saturating_add(1);
        ms.min(if most < 0 { i32::MAX } else { most })
    });
    // SAFETY: the array lives through the call and its length is given.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, ms) };
    let ready = |i: usize| fds[i].revents != 0;
    Ready { pipes: [ready(0), ready(1)], ended: ready(2) }
}

/// Whether the leader is a zombie; it stays one.
fn has_ended(pid: libc::pid_t) -> bool {
    // SAFETY: siginfo is plain data that waitid fills in.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_PID, pid as libc::id_t, &mut info, flags) == 0 && info.si_pid() == pid
    }
}

fn reap(pid: libc::pid_t) -> (libc::c_int, IoCounters) {
    // The status if the sweep at the worker's end reaped the leader first.
    let mut status = libc::SIGKILL;
    // SAFETY: rusage is plain data; both pointers live through the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        while libc::wait4(pid, &mut status, 0, &mut usage) < 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break;
            }
        }
        usage
    };
    let us = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
    let io = IoCounters {
        rchar: None,
        wchar: None,
        read_bytes: usage.ru_inblock as u64 * 512,
        write_bytes: usage.ru_oublock as u64 * 512,
        user_us: us(usage.ru_utime),
        sys_us: us(usage.ru_stime),
        max_rss: usage.ru_maxrss as u64 * 1024,
    };
    (status, io)
}

fn outcome(status: libc::c_int, fate: AttemptStop) -> Outcome {
    match fate {
        AttemptStop::TimedOut => Outcome::TimedOut,
        AttemptStop::Killed => Outcome::Killed,
        AttemptStop::Free if libc::WIFSIGNALED(status) => Outcome::Signal(libc::WTERMSIG(status)),
        AttemptStop::Free => Outcome::Exit(libc::WEXITSTATUS(status)),
    }
}

#[cfg(test)]
mod tests;
