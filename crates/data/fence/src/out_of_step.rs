//! Hosts whose clocks make them unfit to write files that others read.

use crate::Fence;
use homing_model::HostFacts;
use homing_mounts::FileSystemKind;

/// Clocks may differ by this much, nanoseconds: make itself tolerates a file whose time is a second ahead.
const WITHIN_NS: i64 = 1_000_000_000;

/// Returns the reason why a host must not take part, in words for users; `None` if it may. It must not if its clock is
/// wrong and a volume stamps files with the writer's time. Its files would look older or newer than they are, and no
/// host could recognize the newest state of a file.
pub fn out_of_step(facts: &HostFacts) -> Option<String> {
    let told = facts.ahead?.offset_text(WITHIN_NS)?;
    let mounts = &facts.mounts;
    let mount =
        mounts.iter().find(|mount| Fence::of(FileSystemKind::of(mount)).is_some_and(|fence| fence.times_of_writer))?;
    Some(format!(
        "its clock is {told} this host's, and files on {} get their times from the host that writes them. homing runs no \
         task there (homing check --only clocks compares the clocks of both; --no-fence runs tasks all the same)",
        mount.point.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::{Ahead, Mount};

    #[test]
    fn a_clock_that_differs_for_certain_counts_where_files_bear_its_time() {
        let second = 1_000_000_000;
        let facts = |fstype: &str, least_s: i64, most_s: i64| HostFacts {
            mounts: vec![Mount { point: "/data".into(), fstype: fstype.into(), source: "n1:/data".into() }],
            ahead: Some(Ahead { least_ns: least_s * second, most_ns: most_s * second }),
            ..HostFacts::default()
        };
        let told = out_of_step(&facts("fuse.glusterfs", -31, -30)).unwrap();
        assert!(told.starts_with("its clock is 30.0 s behind this host's, and files on /data"), "{told}");
        assert!(out_of_step(&facts("fuse.glusterfs", 5, 9)).unwrap().contains("5.0 s ahead of"));
        // It took 40 s to come up, so the offset is unknown.
        assert_eq!(out_of_step(&facts("fuse.glusterfs", -40, 0)), None);
        assert_eq!(out_of_step(&facts("nfs4", -31, -30)), None, "the server's");
        assert_eq!(out_of_step(&HostFacts { ahead: None, ..facts("fuse.glusterfs", 0, 0) }), None);
    }
}
