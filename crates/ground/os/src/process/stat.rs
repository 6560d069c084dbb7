//! Parses `/proc/PID/stat`. The name in its second field may hold blanks and brackets.

use std::fs;
use std::str::FromStr;

/// The fields of a process from its state on.
#[derive(Clone, Debug)]
pub struct ProcessStat {
    rest: String,
}

impl ProcessStat {
    /// Reads the file of a process; `None` if it is gone.
    pub fn of(pid: impl std::fmt::Display) -> Option<ProcessStat> {
        ProcessStat::parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The same for a process that runs; `None` if it is gone or a zombie.
    pub fn of_living(pid: impl std::fmt::Display) -> Option<ProcessStat> {
        ProcessStat::of(pid).filter(|stat| !stat.has_ended())
    }

    fn parse(line: &[u8]) -> Option<ProcessStat> {
        let close = line.iter().rposition(|byte| *byte == b')')?;
        Some(ProcessStat { rest: String::from_utf8_lossy(&line[close + 1..]).trim_start().to_string() })
    }

    /// Returns the state: `R`, `S`, `D`, `T`, `Z` and so on.
    pub fn state(&self) -> char {
        self.rest.chars().next().unwrap_or('X')
    }

    /// Whether it has ended. A zombie runs no code, and holds no lock.
    pub fn has_ended(&self) -> bool {
        matches!(self.state(), 'Z' | 'X')
    }

    /// Returns a field by its number in proc_pid_stat(5), from 3 on.
    pub fn field<T: FromStr>(&self, number: usize) -> Option<T> {
        self.rest.split_ascii_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
    }

    /// Returns the number of its parent.
    pub fn parent(&self) -> Option<libc::pid_t> {
        self.field(4)
    }

    /// Returns its process group.
    pub fn group(&self) -> Option<libc::pid_t> {
        self.field(5)
    }

    /// Returns the time of its start, in ticks since the host's start. With the number it identifies a process.
    pub fn started(&self) -> Option<u64> {
        self.field(22)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_moves_no_field() {
        let line = b"77 (a) b (c)) Z 5 6 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 3 0 998 0";
        let stat = ProcessStat::parse(line).unwrap();
        assert_eq!((stat.state(), stat.parent(), stat.group(), stat.has_ended()), ('Z', Some(5), Some(6), true));
        assert_eq!((stat.field(20), stat.started()), (Some(3), Some(998)));
        assert!(ProcessStat::parse(b"").is_none() && ProcessStat::of(0).is_none());
    }

    #[test]
    fn this_process_lives() {
        let own = ProcessStat::of("self").unwrap();
        assert!(!own.has_ended() && own.started().is_some());
    }
}
