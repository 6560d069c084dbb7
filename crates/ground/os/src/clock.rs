//! The one owner of time. A decision takes a [`Mono`], which nobody can set; a
//! record takes wall time. Wall time is read from the system once in a process,
//! and counted on from there by the clock that nobody sets: the difference of two
//! times of one process is right however often the system's clock was set between.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Microseconds on a clock that never goes back and that nobody sets. It stands while the machine
/// sleeps, as the tasks do that run on it. Two of different processes say nothing about each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mono(u64);

impl Mono {
    /// Now, by CLOCK_MONOTONIC.
    pub fn now() -> Mono {
        Mono(duration(clock_gettime(ClockId::Monotonic)).as_micros() as u64)
    }

    /// `us` microseconds after the clock's beginning.
    pub const fn from_us(us: u64) -> Mono {
        Mono(us)
    }

    /// Microseconds since the clock's beginning.
    pub const fn us(self) -> u64 {
        self.0
    }

    /// `us` microseconds later.
    pub const fn after_us(self, us: u64) -> Mono {
        Mono(self.0.saturating_add(us))
    }

    /// Microseconds since `earlier`; 0 when that is later.
    pub const fn us_since(self, earlier: Mono) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// A moment as decisions and as records take it.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// For decisions.
    pub mono: Mono,
    /// For records: nanoseconds since 1970, see [`wall_ns`].
    pub wall_ns: i64,
}

impl Moment {
    /// Now.
    pub fn now() -> Moment {
        Moment { mono: Mono::now(), wall_ns: wall_ns() }
    }
}

/// What the system's clock and the clock that nobody sets said at the same time.
struct Anchor {
    wall_ns: i64,
    awake: Duration,
}

fn anchor() -> &'static Anchor {
    static ANCHOR: OnceLock<Anchor> = OnceLock::new();
    ANCHOR.get_or_init(|| Anchor { wall_ns: system_ns(), awake: since_boot() })
}

/// Wall time for records, nanoseconds since 1970: what the system's clock said when this process
/// first asked, and the time since then, in which the machine may have slept.
pub fn wall_ns() -> i64 {
    let anchor = anchor();
    anchor.wall_ns + since_boot().saturating_sub(anchor.awake).as_nanos() as i64
}

/// Time since the machine was started, that in which it slept included: for a bound that also
/// holds for others who did not sleep.
pub fn since_boot() -> Duration {
    duration(clock_gettime(SINCE_BOOT))
}

#[cfg(target_os = "linux")]
const SINCE_BOOT: ClockId = ClockId::Boottime;
/// Elsewhere the one clock that nobody sets, whether it stands in sleep or not.
#[cfg(not(target_os = "linux"))]
const SINCE_BOOT: ClockId = ClockId::Monotonic;

/// What the system's clock says now, nanoseconds since 1970: for what other processes, other hosts
/// or file systems stamp as well. Somebody may set it at any time.
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
