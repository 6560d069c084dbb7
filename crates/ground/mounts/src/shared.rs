//! Names mounts in the same way on all hosts. Only CephFS needs a query for that.

use crate::ceph;
use crate::kind::FileSystemKind;
use crate::table::MountLine;
use homing_model::Mount;

/// Returns the mounts whose files other hosts may see, each named as on every other host.
pub fn network(lines: Vec<MountLine>) -> Vec<Mount> {
    lines.iter().filter(|line| FileSystemKind::of(&line.mount).is_network()).map(identified).collect()
}

/// Returns a mount as every host with this volume names it. A CephFS mount is queried for its cluster, with a time
/// limit.
pub fn identified(line: &MountLine) -> Mount {
    if FileSystemKind::of(&line.mount) == FileSystemKind::Ceph { ceph::identified(line) } else { line.mount.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn only_network_mounts_travel() {
        let text = b"36 35 0:40 / /my\\040data rw - fuse.glusterfs n1:/data rw\n\
            37 35 0:41 / /m rw - fuse mfs\\043n1:9421 rw\n1 0 8:1 / / rw - ext4 /dev/sda1 rw\n";
        let points: Vec<String> = network(parse(text)).iter().map(|m| m.point.display()).collect();
        assert_eq!(points, ["/my data", "/m"]);
    }
}
