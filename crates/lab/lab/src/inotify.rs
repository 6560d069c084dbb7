//! Explains why a host did not boot if the kernel's limit of inotify instances for one user is the reason. All hosts
//! of a lab share the limit, because they are the same user, root, to this machine. At the limit their systemd hangs,
//! or prints no reason.

use std::fs;

/// Instances of inotify that a host's systemd, udev, journal and bus have (systemd 252).
const OF_A_HOST: usize = 6;

/// Returns why a further host may not come up, if the limit is the reason.
pub(crate) fn shortage() -> Option<String> {
    let most = fs::read_to_string("/proc/sys/fs/inotify/max_user_instances").ok()?;
    of(in_use(), most.trim().parse().ok()?)
}

fn of(used: usize, most: usize) -> Option<String> {
    let more = (used * 2).max(1024);
    (used + OF_A_HOST > most).then(|| {
        format!(
            "{used} instances of inotify are in use, of {most} that a user may have, and a host needs {OF_A_HOST}: \
             sysctl fs.inotify.max_user_instances={more}"
        )
    })
}

/// Counts the instances of all visible processes. Those of other users count too, but are few.
fn in_use() -> usize {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let descriptors = processes.flat_map(|one| fs::read_dir(one.path().join("fd")).into_iter().flatten().flatten());
    let is_inotify = |path: std::path::PathBuf| fs::read_link(path).is_ok_and(|to| to.ends_with("anon_inode:inotify"));
    descriptors.filter(|one| is_inotify(one.path())).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_leaves_no_room_for_a_host_is_told_with_its_remedy() {
        assert_eq!(of(122, 128), None);
        let told = of(123, 128).unwrap();
        assert!(told.contains("123 instances") && told.ends_with("max_user_instances=1024"), "{told}");
    }

    #[test]
    fn what_watches_is_counted() {
        let _one = rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC).unwrap();
        assert!(in_use() > 0);
    }
}
