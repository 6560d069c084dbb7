//! Load indices for schedulers that do not follow from two samples ([`crate::sample`]): current values.

use std::collections::BTreeMap;
use std::fs::{self, read_to_string};
use std::os::unix::fs::MetadataExt;
use std::time::SystemTime;

/// Bytes of a record of /var/run/utmp by glibc: 400 where its times have 64 bits, as on aarch64, else 384
/// (`__WORDSIZE_TIME64_COMPAT32`).
const RECORD: usize = if cfg!(any(target_arch = "aarch64", target_arch = "loongarch64")) { 400 } else { 384 };
/// The kind of a record for a login session, in its first two bytes.
const USER_PROCESS: u16 = 7;

/// Returns load indices by LSF's names. Indices that cannot be read are absent.
///
/// - `r15s`: processes that run or wait for a processor now (homing does not average over 15 s).
/// - `r15m`: their mean over 15 minutes.
/// - `ls`: login sessions.
/// - `it`: minutes since a terminal was used, else since the start.
/// - `tmp`: MiB free in /tmp.
/// - `swp` and `maxswp`: MiB of swap space, free and in all.
pub fn indices() -> BTreeMap<String, f64> {
    let load = read_to_string("/proc/loadavg").unwrap_or_default();
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let memory = rustix::system::sysinfo();
    let unit = u64::from(memory.mem_unit.max(1));
    let tmp = rustix::fs::statvfs("/tmp").ok().map(|tmp| mib(tmp.f_bavail * tmp.f_frsize));
    let all = [
        ("r15s", running(&load)),
        ("r15m", load.split(' ').nth(2).and_then(|text| text.parse().ok())),
        ("ls", sessions()),
        ("it", idle()),
        ("tmp", tmp),
        ("swp", Some(mib(memory.freeswap as u64 * unit))),
        ("maxswp", Some(mib(memory.totalswap as u64 * unit))),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))).collect()
}

/// Reads the running processes of `0.20 0.18 0.12 2/80 11206`, without this process.
fn running(loadavg: &str) -> Option<f64> {
    let now = loadavg.split(' ').nth(3)?.split('/').next()?.parse::<f64>().ok()?;
    Some((now - 1.0).max(0.0))
}

/// Counts login sessions by logind, else by utmp.
fn sessions() -> Option<f64> {
    let of_user = |text: &String| text.lines().any(|line| line == "CLASS=user");
    if let Ok(all) = fs::read_dir("/run/systemd/sessions") {
        let files = all.flatten().filter_map(|entry| read_to_string(entry.path()).ok());
        return Some(files.filter(of_user).count() as f64);
    }
    fs::read("/run/utmp").ok().map(|records| logged_in(&records))
}

fn logged_in(records: &[u8]) -> f64 {
    let kind = |record: &&[u8]| u16::from_ne_bytes([record[0], record[1]]) == USER_PROCESS;
    records.chunks_exact(RECORD).filter(kind).count() as f64
}

/// Returns the idle time in whole minutes.
fn idle() -> Option<f64> {
    let names = |folder: &str| fs::read_dir(folder).into_iter().flatten().flatten().collect::<Vec<_>>();
    let numbered = |name: &str| name.bytes().last().is_some_and(|b| b.is_ascii_digit());
    let of_consoles = |name: &str| name.starts_with("tty") && numbered(name) && !name.starts_with("ttyS");
    let terminals = names("/dev/pts").into_iter().filter(|e| numbered(&e.file_name().to_string_lossy()));
    let consoles = names("/dev").into_iter().filter(|e| of_consoles(&e.file_name().to_string_lossy()));
    let used = terminals.chain(consoles).filter_map(|entry| entry.metadata().ok()).map(|meta| meta.atime());
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs() as i64;
    let since = used.max().map(|last| (now - last).max(0) as f64);
    let up = homing_os::clock::since_boot().as_secs_f64();
    // The kernel gives terminals that were never used the time of their creation, or none.
    Some((since.unwrap_or(up).min(up) / 60.0).floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_tells_all_of_them() {
        let found = indices();
        for name in ["r15s", "r15m", "it", "tmp", "swp", "maxswp"] {
            assert!(found.get(name).is_some_and(|value| *value >= 0.0), "{name}: {found:?}");
        }
    }

    #[test]
    fn who_asks_is_not_counted_and_only_sessions_of_users_are() {
        assert_eq!(running("0.20 0.18 0.12 2/80 11206\n"), Some(1.0));
        assert_eq!(running("0.20 0.18 0.12 0/80 11206\n"), Some(0.0), "in a container that hides them");
        assert_eq!(running(""), None);
        let mut records = vec![0u8; RECORD * 3];
        records[RECORD..RECORD + 2].copy_from_slice(&USER_PROCESS.to_ne_bytes());
        records[2 * RECORD..2 * RECORD + 2].copy_from_slice(&8u16.to_ne_bytes());
        assert_eq!(logged_in(&records), 1.0);
    }
}
