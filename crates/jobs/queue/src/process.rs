//! Identifies processes so that a reused number is not taken for the old process.

use crate::files;
use homing_os::process::ProcessStat;
use serde::{Deserialize, Serialize};
use std::fs;
use std::time::Duration;

/// One process of one boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Its number.
    pub pid: u32,
    /// When it began, clock ticks since the boot (field 22 of /proc/PID/stat).
    pub ticks: u64,
    /// The boot.
    pub boot_id: String,
}

impl ProcessIdentity {
    /// Returns this process.
    pub fn own() -> ProcessIdentity {
        let pid = std::process::id();
        ProcessIdentity { pid, ticks: ticks(pid).unwrap_or(0), boot_id: files::boot_id() }
    }

    /// Returns when it began, as time since the boot, which no user can set.
    pub fn began(&self) -> Duration {
        Duration::from_micros(self.ticks.saturating_mul(1_000_000) / rustix::param::clock_ticks_per_second())
    }

    /// Whether it lives, as far as this user can see. With `hidepid` the processes of others are not in /proc; then
    /// only their numbers are checked.
    pub fn is_alive(&self, boot_id: &str) -> bool {
        if self.boot_id != boot_id || self.pid == 0 {
            return false;
        }
        match ticks(self.pid) {
            Some(now) => now == self.ticks,
            // SAFETY: signal 0 only checks for the process.
            None => {
                let code = unsafe { libc::kill(self.pid as libc::pid_t, 0) };
                code != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM)
            }
        }
    }
}

/// Whether a process of this user has that number, alive or not yet waited for.
pub(crate) fn is_there(pid: u32) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap_or(false)
}

fn ticks(pid: u32) -> Option<u64> {
    ProcessStat::of_living(pid)?.started()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_process_lives() {
        let own = ProcessIdentity::own();
        assert!(own.is_alive(&files::boot_id()));
        assert!(!own.is_alive("another boot"));
        assert!(!ProcessIdentity { ticks: own.ticks + 1, ..own.clone() }.is_alive(&files::boot_id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let gone = ProcessIdentity { pid: child.id(), ticks: ticks(child.id()).unwrap_or(0), ..own };
        child.wait().unwrap();
        assert!(!gone.is_alive(&files::boot_id()));
    }
}
