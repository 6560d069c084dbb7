//! The bytes that the page cache can hold for tasks on this host. It is the available memory of the host, or less if
//! a control group of this process limits it, as in batch systems and containers.

use crate::parse;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Returns the room in bytes; `None` if the kernel does not report it.
pub(crate) fn room() -> Option<u64> {
    let host = read_to_string("/proc/meminfo").ok().and_then(|t| Some(parse::row(&t, "MemAvailable:")? * 1024));
    let mine = read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups(&mine, Path::new("/sys/fs/cgroup")).iter().filter_map(|g| in_group(g)).chain(host).min()
}

/// Returns the directories of the groups that limit memory, innermost first, for the content of `/proc/self/cgroup`.
/// Supports version 2, and version 1's memory controller.
fn groups(mine: &str, base: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for line in mine.lines() {
        let mut words = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (words.next(), words.next(), words.next()) else { continue };
        let top = match controllers {
            "" => base.to_path_buf(),
            _ if controllers.split(',').any(|c| c == "memory") => base.join("memory"),
            _ => continue,
        };
        // A group outside of this name space is not visible.
        let path = path.trim_start_matches('/');
        if path.split('/').all(|part| part != "..") {
            all.extend(top.join(path).ancestors().take_while(|dir| dir.starts_with(&top)).map(Path::to_path_buf));
        }
    }
    all
}

/// Returns the free memory of a group, including its page cache; `None` without a limit.
fn in_group(group: &Path) -> Option<u64> {
    let text = |name: &str| read_to_string(group.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    let limit = number("memory.max").or_else(|| number("memory.limit_in_bytes"))?;
    let used = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let stat = text("memory.stat")?;
    let row = |name: &str| parse::row(&stat, &format!("total_{name}")).or_else(|| parse::row(&stat, name)).unwrap_or(0);
    // Version 1 means "no limit" by a number near the maximum.
    (limit < 1 << 60).then(|| limit.saturating_sub(used.saturating_sub(row("inactive_file") + row("active_file"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_groups_of_both_versions_are_found_with_those_above_them() {
        let base = Path::new("/sys/fs/cgroup");
        let found = groups("5:cpu:/x\n4:memory:/job_7/step_0\n0::/a\n", base);
        let all = ["memory/job_7/step_0", "memory/job_7", "memory", "a", ""];
        assert_eq!(found, all.map(|g| base.join(g)));
        assert!(groups("0::/../../init.scope\n4:memory:/..\n", base).is_empty());
    }

    #[test]
    fn what_is_cached_is_room_too() {
        let group = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
        put("memory.max", "max\n");
        put("memory.current", "300\n");
        put("memory.stat", "anon 100\nfile 200\ninactive_file 150\nactive_file 40\n");
        assert_eq!(in_group(group.path()), None);
        put("memory.max", "1000\n");
        assert_eq!(in_group(group.path()), Some(1000 - (300 - 190)));
    }

    #[test]
    fn version_1_counts_what_is_below() {
        let group = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(group.path().join(name), text).unwrap();
        put("memory.usage_in_bytes", "300\n");
        put("memory.stat", "inactive_file 1\ntotal_inactive_file 150\ntotal_active_file 40\n");
        put("memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(in_group(group.path()), None);
        put("memory.limit_in_bytes", "200\n");
        assert_eq!(in_group(group.path()), Some(90));
    }

    #[test]
    fn this_host_has_some() {
        assert!(room().is_some_and(|bytes| bytes > 1 << 20));
    }
}
