//! Images over hosts: read by the host that has the bytes, kept on another. Needs root, rsync and GlusterFS; says so
//! and does nothing without them.

mod support;

use serde_json::Value;
use support::{EXE, Lab, missing};

#[test]
fn bytes_are_read_at_home_and_only_what_changed_crosses_a_link() {
    if missing(&["rsync", "glusterd", "glusterfs"]) {
        return;
    }
    let lab = Lab::up("snap", &["--hosts", "2", "--disk", "400M", "--gluster", "replica=2"]);
    let make = |words: &str| {
        let text = lab.ok("n1", &format!("{EXE} snapshot {words} --json"));
        serde_json::from_str::<Value>(&text).unwrap()["made"].clone()
    };
    lab.ok("n2", "mkdir -m 755 /scratch/bank");
    lab.ok("n1", "mkdir -p /scratch/src; cd /scratch/src; head -c 20000000 /dev/urandom >big; echo small >small");
    let words = "n1:/scratch/src --to n2:/scratch/bank --vault src";
    let first = make(words);
    let sent = |made: &Value| made["network"].as_u64().unwrap();
    assert!(sent(&first) > 20_000_000, "{first}");
    lab.ok("n1", "cd /scratch/src; echo changed | dd of=big bs=1 seek=7000000 conv=notrunc status=none; sleep 1.1");
    let second = make(words);
    assert_eq!(second["read"], 20_000_000, "{second}");
    assert!(sent(&second) < 200_000, "only what has changed crosses the link: {second}");

    // Back to where it was, over the link, with nothing replaced.
    lab.ok("n1", "cd /scratch/src; rm small; echo mine >big");
    let (status, out, err) =
        lab.told("n1", &format!("{EXE} snapshot restore src --to n2:/scratch/bank --into n1:/scratch/src"));
    assert_eq!(status, Some(1), "{out}{err}");
    assert_eq!(lab.ok("n1", "cd /scratch/src; cat small big"), "small\nmine\n");

    // A volume that the bank's host has bricks of: no byte crosses a link.
    lab.ok("n1", "mkdir -p /data/home; cd /data/home; for i in $(seq 20); do echo $i >f$i; done; ln f1 link");
    let beside = make("/data/home --to n2:/scratch/bank --vault home");
    assert!(beside["network"].is_null(), "{beside}");
    let image = beside["image"].as_str().unwrap();
    let same = format!("diff -r /data/home /scratch/bank/home/{image}/tree && echo same");
    assert_eq!(lab.ok("n2", &same), "same\n");
    assert!(lab.ok("n1", &format!("{EXE} snapshot verify home --to n2:/scratch/bank")).contains("all came back"));
}
