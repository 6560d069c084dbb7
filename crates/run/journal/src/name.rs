//! The folder of the runs, and their names.

use rustix::fs::Access;
use std::path::{Path, PathBuf};

/// Returns the folder that holds one folder per run: `$HOMING_RUNS`, else `$XDG_STATE_HOME/homing/runs`, else
/// `~/.local/state/homing/runs`. There, ~ is `$HOME` or the home in the password file. If that folder cannot be
/// written (cron, containers), it is a folder of this user's own in `$TMPDIR`.
pub fn root() -> PathBuf {
    chosen().0
}

/// Returns a note for a user whose runs are not kept in the home.
pub fn root_note() -> Option<String> {
    chosen().1
}

fn chosen() -> (PathBuf, Option<String>) {
    let wanted = root_from(set, homing_os::names::home());
    if set("HOMING_RUNS").is_some() {
        return (wanted, None);
    }
    let Err(why) = writable(&wanted) else { return (wanted, None) };
    let temporary = set("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
    // Without a folder of the user's own there either, the error names the folder in the home.
    let name = format!("homing-{}", rustix::process::geteuid().as_raw());
    let Ok(own) = homing_os::folder::own(&temporary, &name, 0o700) else { return (wanted, None) };
    let runs = own.join("runs");
    let note = format!(
        "{} cannot be written ({why}): runs are kept in {}; set HOMING_RUNS to use another folder",
        wanted.display(),
        runs.display()
    );
    (runs, Some(note))
}

fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

fn root_from(var: impl Fn(&str) -> Option<PathBuf>, home: Option<PathBuf>) -> PathBuf {
    if let Some(runs) = var("HOMING_RUNS") {
        return runs;
    }
    homing_os::folder::state_from(var, home).join("runs")
}

/// Checks whether a folder can be written or made: tests the access to its nearest existing ancestor. No folder is
/// made in a missing home.
fn writable(folder: &Path) -> std::io::Result<()> {
    if let Some(home) = homing_os::names::missing_home(folder) {
        return Err(homing_os::names::no_home(&home));
    }
    let there = folder.ancestors().find(|f| f.exists()).unwrap_or(Path::new("/"));
    Ok(rustix::fs::access(there.join("."), Access::WRITE_OK | Access::EXEC_OK)?)
}

/// The last characters of a run's name. No i, l, o, u: people read such names aloud and type them.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Their number.
const LAST: usize = 3;

/// Returns a short name that sorts by time, e.g. `20261121-033312-4k7`. The time is UTC, so names sort correctly
/// across hosts and at the end of summer time.
pub(crate) fn new_run_name(now_ns: i64, pid: u32) -> String {
    let time = jiff::Timestamp::from_nanosecond(i128::from(now_ns)).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let mut mixed = (now_ns as u64 ^ (u64::from(pid) << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut name = time.strftime("%Y%m%d-%H%M%S-").to_string();
    for _ in 0..LAST {
        name.push(char::from(DIGITS[(mixed >> 59) as usize]));
        mixed <<= 5;
    }
    name
}

/// Whether [`new_run_name`] may return this name.
pub(crate) fn has_form_of_name(text: &str) -> bool {
    let is_number = |part: &str, length| part.len() == length && part.bytes().all(|b| b.is_ascii_digit());
    let is_last = |part: &str| part.len() == LAST && part.bytes().all(|b| DIGITS.contains(&b));
    let parts: Vec<&str> = text.split('-').collect();
    matches!(parts[..], [date, time, last] if is_number(date, 8) && is_number(time, 6) && is_last(last))
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
        assert!(has_form_of_name(&name));
        for other in ["", "night", "20261121-033312", "20261121-033312-", "20261121-033312-4K7", "2026112-1033312-4k7"]
        {
            assert!(!has_form_of_name(other), "{other}");
        }
    }

    #[test]
    fn the_root_follows_the_environment_in_order() {
        let with = |set: &[(&str, &str)]| {
            let var = |name: &str| set.iter().find(|(k, _)| *k == name).map(|(_, v)| PathBuf::from(v));
            root_from(var, var("HOME"))
        };
        assert_eq!(with(&[("HOMING_RUNS", "/r"), ("HOME", "/h")]), PathBuf::from("/r"));
        assert_eq!(with(&[("XDG_STATE_HOME", "/s"), ("HOME", "/h")]), PathBuf::from("/s/homing/runs"));
        assert_eq!(with(&[("XDG_STATE_HOME", "s"), ("HOME", "/h")]), PathBuf::from("/h/.local/state/homing/runs"));
    }
}
