//! Compares the promise of `homing advise` with its result, on a volume of MooseFS whose bytes are on one of four
//! hosts. Needs root and MooseFS; otherwise prints a note and is skipped.

use crate::support::{EXE, Lab, missing};
use serde_json::Value;

#[test]
fn one_copy_more_of_what_is_hot_brings_what_was_promised() {
    if missing(&["mfsmaster", "mfschunkserver", "mfsmount"]) {
        return;
    }
    let lab = Lab::up("advise", &["--hosts", "4", "--disk", "4G", "--link", "200mbit"]);
    let create = "--kind moosefs --hosts n1:/scratch --copies 1 --clients n[1-4] -q";
    lab.ok("n1", &format!("{EXE} volume create data --yes {create}"));
    // MooseFS moves no chunks as long as the hosts' disks are about as full.
    lab.ok("n1", "echo ACCEPTABLE_PERCENTAGE_DIFFERENCE = 10 >>/etc/mfs/mfsmaster.cfg; mfsmaster reload");
    lab.ok("n1", "mkdir -p /data/ann/raw; for i in $(seq 40); do head -c 6M /dev/urandom >/data/ann/raw/f$i; done");
    for host in ["n2", "n3", "n4"] {
        lab.ok("n1", &format!("{EXE} volume add-host data {host}:/scratch -q -y"));
    }
    let batch = || {
        let run = format!("{EXE} run -q --hosts n[1-4] -j1 'sleep 0.5; sha1sum {{}} >/dev/null' ::: /data/ann/raw/*");
        lab.ok("n1", &run);
        let told: Value = serde_json::from_str(&lab.ok("n1", &format!("{EXE} report last --json"))).unwrap();
        told["planned"]["remote_bytes"].as_u64().unwrap_or_else(|| panic!("{told}")) as f64
    };
    let before = batch();
    let told: Value = serde_json::from_str(&lab.ok("n1", &format!("{EXE} advise --json"))).unwrap();
    assert_eq!(told["folders"][0]["path"], "/data/ann/raw", "{told}");
    assert!(told["folders"][0]["on"]["n1"].as_f64().unwrap() > 0.5, "{told}");
    let one = &told["advice"][0];
    assert_eq!(one["command"], "homing volume set-copies data /data/ann/raw 2", "{told}");
    let shown = lab.ok("n1", &format!("{EXE} advise"));
    assert!(shown.contains("2 copies of /data/ann/raw: ") && shown.contains(" more disk\n"), "{shown}");

    let words = one["command"].as_str().unwrap().strip_prefix("homing").unwrap();
    lab.ok("n1", &format!("{EXE}{words} --yes"));
    let after = batch();
    let promised = one["remote_bytes_then"].as_f64().unwrap();
    assert!(
        (after - promised).abs() <= 0.2 * before,
        "promised {promised}, and came to {after}, from {before}: {told}"
    );
    assert!(after < 0.5 * before, "{after} of {before}");
}
