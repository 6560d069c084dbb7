//! The only module that reads clocks. A decision takes a [`Mono`], which no user can set; a record takes wall time. A
//! process reads wall time from the system once, and adds the time counted by a clock that cannot be set. So the
//! difference of two times of one process is right even if the system's clock was set in between.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds on a clock that never goes back and that cannot be set. It stops while the machine sleeps, like the
/// tasks on it. Times of different processes cannot be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mono(u64);

impl Mono {
    /// Returns the current time, by CLOCK_MONOTONIC.
    pub fn now() -> Mono {
        Mono(duration(clock_gettime(ClockId::Monotonic)).as_micros() as u64)
    }

    /// Returns the time `us` microseconds after the clock's beginning.
    pub const fn from_us(us: u64) -> Mono {
        Mono(us)
    }

    /// Returns the microseconds since the clock's beginning.
    pub const fn us(self) -> u64 {
        self.0
    }

    /// Returns the time `us` microseconds later.
    pub const fn after_us(self, us: u64) -> Mono {
        Mono(self.0.saturating_add(us))
    }

    /// Returns the microseconds since `earlier`; 0 if `earlier` is later.
    pub const fn us_since(self, earlier: Mono) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A moment, for decisions and for records.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The time for decisions.
    pub mono: Mono,
    /// The time for records: nanoseconds since 1970, see [`wall_ns`].
    pub wall_ns: i64,
}

impl Moment {
    /// Returns the current moment.
    pub fn now() -> Moment {
        Moment { mono: Mono::now(), wall_ns: wall_ns() }
    }
}

/// The system's clock and the time since boot, read at the same time.
struct Anchor {
    wall_ns: i64,
    awake: Duration,
}

fn anchor() -> &'static Anchor {
    static ANCHOR: OnceLock<Anchor> = OnceLock::new();
    ANCHOR.get_or_init(|| Anchor { wall_ns: system_ns(), awake: since_boot() })
}

/// Returns wall time for records, nanoseconds since 1970. It is the system's time at the first call in this process,
/// plus the time since then, including sleep of the machine.
pub fn wall_ns() -> i64 {
    let anchor = anchor();
    anchor.wall_ns + since_boot().saturating_sub(anchor.awake).as_nanos() as i64
}

/// Returns the time since the machine was started, including sleep. It suits bounds that also hold for other hosts,
/// which did not sleep.
pub fn since_boot() -> Duration {
    duration(clock_gettime(SINCE_BOOT))
}

#[cfg(target_os = "linux")]
const SINCE_BOOT: ClockId = ClockId::Boottime;
/// Other systems: the monotonic clock, which may or may not stop during sleep.
#[cfg(not(target_os = "linux"))]
const SINCE_BOOT: ClockId = ClockId::Monotonic;

/// Returns the system's clock, nanoseconds since 1970. It suits comparison with time stamps of other processes, hosts
/// and file systems. It may be set at any time.
pub fn system_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64)
}

/// Returns [`system_ns`] in seconds.
pub fn system_s() -> f64 {
    system_ns() as f64 / 1e9
}

fn duration(time: Timespec) -> Duration {
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_is_later_is_no_negative_duration() {
        let (early, late) = (Mono::from_us(5), Mono::from_us(12));
        assert_eq!((late.us_since(early), early.us_since(late)), (7, 0));
    }

    #[test]
    fn both_clocks_go_on_and_wall_time_is_that_of_the_system() {
        let (first, then) = (Moment::now(), Moment::now());
        assert!(then.mono >= first.mono && then.wall_ns >= first.wall_ns);
        assert!((system_ns() - wall_ns()).unsigned_abs() < 1_000_000_000 && first.wall_ns > 1_700_000_000_000_000_000);
    }
}
