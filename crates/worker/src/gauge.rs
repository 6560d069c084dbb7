//! What the kernel tells of a running task. Asking costs: to open
//! `/proc/PID/io` takes as long as a twelfth of the shortest task (measured
//! beside the loop in `bench/limit.c`), so a short task without inputs is not asked.

use homing_model::{IoCounters, IoWait};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Tasks whose inputs are not known are asked for bytes when they last this long.
const WORTH_COUNTING: Duration = Duration::from_millis(5);
const WORTH_ASKING: Duration = Duration::from_micros(homing_model::WAIT_ASKED_FROM_US);

/// Looks at one process while it runs and once more when it is a zombie.
pub(crate) struct Gauge {
    pid: libc::pid_t,
    began: Instant,
    /// Opened while the process runs: a zombie's file belongs to root.
    counters: Option<File>,
    counted: bool,
    pressure_before: Option<u64>,
    asked: bool,
}

impl Gauge {
    /// `weigh`: count its bytes however short it is.
    pub fn new(pid: libc::pid_t, began: Instant, weigh: bool) -> Gauge {
        let mut gauge = Gauge { pid, began, counters: None, counted: false, pressure_before: None, asked: false };
        if weigh {
            gauge.open();
        }
        gauge
    }

    /// When the process was started.
    pub fn began(&self) -> Instant {
        self.began
    }

    fn open(&mut self) {
        self.counted = true;
        self.counters = File::open(format!("/proc/{}/io", self.pid)).ok();
    }

    /// Time until the next look is due, when there is one.
    pub fn next(&self) -> Option<Duration> {
        let at = match () {
            () if !self.counted => WORTH_COUNTING,
            () if !self.asked => WORTH_ASKING,
            () => return None,
        };
        Some(at.saturating_sub(self.began.elapsed()))
    }

    /// Takes the looks that are due.
    pub fn look(&mut self) {
        let ran = self.began.elapsed();
        if !self.counted && ran >= WORTH_COUNTING {
            self.open();
        }
        if !self.asked && ran >= WORTH_ASKING {
            self.asked = true;
            self.pressure_before = homing_probe::io_pressure_us();
        }
    }

    /// `rchar` and `wchar` of the zombie and the children that it waited for.
    pub fn char_counts(&self) -> (Option<u64>, Option<u64>) {
        let Some(file) = &self.counters else { return (None, None) };
        let mut text = [0u8; 512];
        let n = file.read_at(&mut text, 0).unwrap_or(0);
        let text = String::from_utf8_lossy(&text[..n]);
        let field = |name: &str| text.lines().find_map(|l| l.strip_prefix(name)?.trim().parse().ok());
        (field("rchar:"), field("wchar:"))
    }

    /// Time in block I/O of the zombie by delay accounting, when the kernel keeps it, microseconds.
    pub fn delay_us(&self) -> Option<u64> {
        if !self.asked {
            return None;
        }
        let on = std::fs::read_to_string("/proc/sys/kernel/task_delayacct").ok()?;
        if on.trim() != "1" {
            return None;
        }
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        // Field 42 of the line; the name in field 2 may hold blanks.
        let ticks: u64 = stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(39)?.parse().ok()?;
        Some(ticks * 1_000_000 / rustix::param::clock_ticks_per_second())
    }

    /// The better of the two measures that there are.
    pub fn io_wait(&self, delay_us: Option<u64>, wall: Duration, io: &IoCounters) -> Option<IoWait> {
        if let Some(us) = delay_us {
            return Some(IoWait::DelayAccounting(us));
        }
        let before = self.pressure_before?;
        let stalled = homing_probe::io_pressure_us()?.saturating_sub(before);
        let idle = (wall.as_micros() as u64).saturating_sub(io.user_us + io.sys_us);
        Some(IoWait::Pressure(stalled.min(idle)))
    }
}
