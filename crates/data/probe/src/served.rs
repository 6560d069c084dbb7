//! The traffic of this host with NFS servers, from `/proc/self/mountstats`.

use homing_model::ServerTraffic;
use homing_mounts::{Counted, counted, split};
use std::collections::{BTreeMap, HashSet};

/// Returns the traffic by server, as the mounts' sources name it, all its mounts together.
pub(crate) fn by_server(mountstats: &str) -> BTreeMap<String, ServerTraffic> {
    let mut servers: BTreeMap<String, ServerTraffic> = BTreeMap::new();
    let mut met = HashSet::new();
    for mount in counted(mountstats.as_bytes()).into_iter().filter(|mount| mount.fstype.starts_with(b"nfs")) {
        // A volume that is mounted at several places has the same line of events for all.
        let events = mount.lines().find(|line| line.trim_start().starts_with("events:"));
        if !met.insert((mount.source, events)) {
            continue;
        }
        let (server, _) = split(mount.source);
        *servers.entry(String::from_utf8_lossy(server).into_owned()).or_default() += of_mount(&mount);
    }
    servers
}

fn of_mount(mount: &Counted) -> ServerTraffic {
    let mut served = ServerTraffic::default();
    let mut lines = mount.lines();
    let numbers = |text: &str| text.split_ascii_whitespace().filter_map(|n| n.parse().ok()).collect::<Vec<u64>>();
    for line in lines.by_ref().take_while(|line| !line.contains("per-op statistics")) {
        // The fields are bytes read and written by calls, the same for direct I/O, then bytes received from and sent
        // to the server.
        if let Some(bytes) = line.trim_start().strip_prefix("bytes:").map(numbers) {
            served.bytes = bytes.get(4).unwrap_or(&0) + bytes.get(5).unwrap_or(&0);
        }
    }
    for line in lines {
        // Operations, transmissions, timeouts, bytes sent and received. Then milliseconds in the queue, from
        // transmission to answer, and in all (Linux, net/sunrpc/stats.c).
        let Some((_, told)) = line.split_once(':') else { continue };
        let [requests, sent, _, _, _, queued_ms, answered_ms, ..] = numbers(told)[..] else { continue };
        served += ServerTraffic { requests, again: sent.saturating_sub(requests), queued_ms, answered_ms, bytes: 0 };
    }
    served
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.1 writes it, with fewer operations.
    const TWO: &str = "device sysfs mounted on /sys with fstype sysfs
device nas:/export mounted on /data with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=262144
\tage:\t62
\tevents:\t2 5 0 0 1 4 9
\tbytes:\t0 0 0 0 8388608 4096 2048 1
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 0 2 0 10 139 139 0 145 0 2 8 9
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 32 33 0 7000 8391680 12 640 655 0
\t       WRITE: 1 1 0 4300 176 0 9 9 0

device nas:/export mounted on /home/my\\040data with fstype nfs4 statvers=1.1
\tage:\t62
\tevents:\t2 5 0 0 1 4 9
\tbytes:\t0 0 0 0 8388608 4096 2048 1
\tper-op statistics
\t        READ: 32 33 0 7000 8391680 12 640 655 0
device [fd00::9]:/other mounted on /other with fstype nfs statvers=1.1
\tevents:\t1
\tbytes:\t1 0 0 0 100 0 1 0
\tper-op statistics
\t        READ: 1 1 0 1 1 2 3 4
";

    #[test]
    fn each_volume_counts_once_for_its_server() {
        let nas = ServerTraffic { bytes: 8_392_704, requests: 34, again: 1, queued_ms: 12, answered_ms: 649 };
        let other = ServerTraffic { bytes: 100, requests: 1, again: 0, queued_ms: 2, answered_ms: 3 };
        let of = by_server(TWO);
        assert_eq!(of, BTreeMap::from([("nas".into(), nas), ("fd00::9".into(), other)]));
        assert!(by_server("").is_empty());
    }

    #[test]
    fn what_is_cut_off_is_no_reason_to_stop() {
        let lengths = 0..TWO.len();
        assert!(lengths.filter_map(|n| TWO.get(..n)).all(|text| by_server(text).len() <= 2));
    }
}
