//! The kernel's counters of a running task. Reading them costs: opening `/proc/PID/io` takes a twelfth of the time of
//! the shortest task (measured beside the loop in `bench/limit.c`). Counters of a short task without inputs are not
//! read.

use homing_model::IoWait;
use homing_os::process::ProcessStat;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Age from which the bytes of a task without known inputs are counted.
const WORTH_COUNTING: Duration = Duration::from_millis(5);
const WORTH_ASKING: Duration = Duration::from_micros(homing_model::WAIT_ASKED_FROM_US);

/// Reads the counters of one process while it runs, and once more when it is a zombie.
pub(crate) struct Gauge {
    pid: libc::pid_t,
    began: Instant,
    /// Opened while the process runs: a zombie's file belongs to root.
    counters: Option<File>,
    counted: bool,
}

impl Gauge {
    /// `weigh`: count its bytes even if it is short.
    pub fn new(pid: libc::pid_t, began: Instant, weigh: bool) -> Gauge {
        let mut gauge = Gauge { pid, began, counters: None, counted: false };
        if weigh {
            gauge.open();
        }
        gauge
    }

    /// Returns the start time of the process.
    pub fn began(&self) -> Instant {
        self.began
    }

    fn open(&mut self) {
        self.counted = true;
        self.counters = File::open(format!("/proc/{}/io", self.pid)).ok();
    }

    /// Returns the time until the next look is due, if there is one.
    pub fn next(&self) -> Option<Duration> {
        (!self.counted).then(|| WORTH_COUNTING.saturating_sub(self.began.elapsed()))
    }

    /// Takes the look that is due.
    pub fn look(&mut self) {
        if !self.counted && self.began.elapsed() >= WORTH_COUNTING {
            self.open();
        }
    }

    /// Returns `rchar` and `wchar` of the zombie and the children that it waited for.
    pub fn char_counts(&self) -> (Option<u64>, Option<u64>) {
        let Some(file) = &self.counters else { return (None, None) };
        let mut text = [0u8; 512];
        let n = file.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..n]);
        let field = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)?.trim().parse().ok());
        (field("rchar:"), field("wchar:"))
    }

    /// Returns the time of the zombie in block I/O, if the kernel accounts for it. The host's pressure is no
    /// substitute: it charges a sleeping task with the waits of others.
    pub fn io_wait(&self) -> Option<IoWait> {
        if self.began.elapsed() < WORTH_ASKING {
            return None;
        }
        let on = std::fs::read_to_string("/proc/sys/kernel/task_delayacct").ok()?;
        if on.trim() != "1" {
            return None;
        }
        let ticks: u64 = ProcessStat::of(self.pid)?.field(42)?;
        Some(IoWait::DelayAccounting(ticks * 1_000_000 / rustix::param::clock_ticks_per_second()))
    }
}
