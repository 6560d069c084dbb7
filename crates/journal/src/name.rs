//! Where runs are kept and what they are called.

use std::path::PathBuf;

/// The folder that holds one folder per run: `$HOMING_RUNS`, else
/// `$XDG_STATE_HOME/homing/runs`, else `~/.local/state/homing/runs`.
pub fn root() -> PathBuf {
    root_from(|name| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from))
}

fn root_from(var: impl Fn(&str) -> Option<PathBuf>) -> PathBuf {
    if let Some(runs) = var("HOMING_RUNS") {
        return runs;
    }
    // The XDG rules say that a relative path there is to be ignored.
    let state = var("XDG_STATE_HOME").filter(|p| p.is_absolute());
    let state = state.unwrap_or_else(|| var("HOME").unwrap_or_else(|| PathBuf::from("/")).join(".local/state"));
    state.join("homing/runs")
}

/// A short name that sorts by time, e.g. `20261121-033312-4k7`. The time is
/// UTC, so that names sort rightly across hosts and at the end of summer time.
pub fn new_run_name(now_ns: i64, pid: u32) -> String {
    // No i, l, o, u: such names are read aloud and typed.
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let time = jiff::Timestamp::from_nanosecond(i128::from(now_ns)).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let mut mixed = (now_ns as u64 ^ (u64::from(pid) << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut name = time.strftime("%Y%m%d-%H%M%S-").to_string();
    for _ in 0..3 {
        name.push(char::from(DIGITS[(mixed >> 59) as usize]));
        mixed <<= 5;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_sort_by_time_and_differ_by_process() {
        let at = 1_795_231_992_000_000_000;
        let name = new_run_name(at, 7);
        assert_eq!(name.len(), 19);
        assert!(name.starts_with("20261121-033312-"), "{name}");
        assert!(name < new_run_name(at + 1_000_000_000, 7));
        assert_ne!(name, new_run_name(at, 8));
    }

    #[test]
    fn the_root_follows_the_environment_in_order() {
        let with = |set: &[(&str, &str)]| {
            root_from(|name| set.iter().find(|(k, _)| *k == name).map(|(_, v)| PathBuf::from(v)))
        };
        assert_eq!(with(&[("HOMING_RUNS", "/r"), ("HOME", "/h")]), PathBuf::from("/r"));
        assert_eq!(with(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]), PathBuf::from("/s/homing/runs"));
        assert_eq!(with(&[("XDG_STATE_HOME", "s"), ("HOME", "/h")]), PathBuf::from("/h/.local/state/homing/runs"));
    }
}
