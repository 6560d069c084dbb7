//! A run over a MooseFS volume, on real hosts of a lab. Needs root and MooseFS;
//! says so and does nothing without them.

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use support::{EXE, Lab, err, missing};

#[test]
fn commands_run_where_their_chunks_lie() {
    if missing(&["mfsmaster", "mfschunkserver", "mfsmount"]) {
        return;
    }
    let lab = Lab::up("moose", &["--hosts", "4", "--disk", "700M", "--moosefs", "goal=2"]);
    lab.ok("n1", "for i in $(seq 24); do head -c 2000000 /dev/urandom > \"/data/f $i\"; done");
    let text = lab.ok("n1", &format!("setpriv --reuid 65534 --clear-groups {EXE} where --json /data"));
    let layout: Value = serde_json::from_str(&text).unwrap();
    let hosts: BTreeSet<&str> = layout["hosts"].as_object().unwrap().keys().map(String::as_str).collect();
    assert!(hosts.is_subset(&BTreeSet::from(["n1", "n2", "n3", "n4"])), "names, not addresses: {hosts:?}");

    // A first run carries the program to the hosts: `homing hosts` waits until all have it.
    lab.ok("n1", &format!("{EXE} hosts --hosts 'n[1-4]'"));
    let task = "echo $HOMING_HOST {}; cksum {} >/dev/null; sleep 0.2";
    let output =
        lab.on("n1", &format!("cd /data && {EXE} run -k --json --on ssh --hosts 'n[1-4]' -j1 '{task}' ::: /data/f*"));
    let err = err(&output);
    assert!(output.status.success(), "{err}");

    // Where tasks ran beside where the master says that their files lie. One
    // or two may go to an idle host when their own are busy.
    let out = String::from_utf8(output.stdout).unwrap();
    let ran: BTreeSet<(&str, &str)> = out.lines().filter_map(|l| l.split_once(' ')).collect();
    let lies = |host: &str, path: &str| {
        let file = layout["files"].as_array().unwrap().iter().find(|f| f["path"] == path).unwrap();
        file["extents"][0]["replicas"].as_array().unwrap().iter().any(|r| r["host"] == host)
    };
    let at_home = ran.iter().filter(|(host, path)| lies(host, path)).count();
    assert!(ran.len() == 24 && at_home >= 22, "{at_home} of {} ran where their files lie: {ran:?}", ran.len());
    let evidence: Value = serde_json::from_str(err.lines().rfind(|l| l.starts_with('{')).unwrap()).unwrap();
    let planned = &evidence["planned"];
    assert_eq!(planned["attempts_without_layout"], 0, "{evidence}");
    assert!(planned["local_bytes"].as_u64().unwrap() >= 22 * 2_000_000, "{evidence}");
}
