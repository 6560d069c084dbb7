//! A run over a MooseFS volume, on real hosts of a lab. Needs root and MooseFS; otherwise prints a note and is
//! skipped.

use crate::support::{EXE, Lab, err, missing};
use crate::until::until;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

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

    // Compares the hosts of tasks with the places that the master reports. Round robin would give half of them a
    // local file. Some tasks go to an idle host when their own seems slow, as it does where other tests keep this
    // machine busy.
    let out = String::from_utf8(output.stdout).unwrap();
    let ran: BTreeSet<(&str, &str)> = out.lines().filter_map(|l| l.split_once(' ')).collect();
    let lies = |host: &str, path: &str| {
        let file = layout["files"].as_array().unwrap().iter().find(|f| f["path"] == path).unwrap();
        file["extents"][0]["replicas"].as_array().unwrap().iter().any(|r| r["host"] == host)
    };
    let at_home = ran.iter().filter(|(host, path)| lies(host, path)).count();
    assert!(ran.len() == 24 && at_home >= 18, "{at_home} of {} ran where their files lie: {ran:?}", ran.len());
    let evidence: Value = serde_json::from_str(err.lines().rfind(|l| l.starts_with('{')).unwrap()).unwrap();
    let planned = &evidence["planned"];
    assert_eq!(planned["attempts_without_layout"], 0, "{evidence}");
    assert!(planned["local_bytes"].as_u64().unwrap() >= 18 * 2_000_000, "{evidence}");
    where_tells_goals_and_what_goes(&lab);
}

/// Checks that `homing where` shows goals, a disk that is marked for removal, and a chunkserver that is down.
fn where_tells_goals_and_what_goes(lab: &Lab) {
    for goal in 1..=3 {
        let dir = format!("/data/goal{goal}");
        lab.ok("n1", &format!("mkdir {dir}; mfssetgoal {goal} {dir}; for i in $(seq 8); do echo x >{dir}/$i; done"));
        assert!(placed(lab, &dir).values().all(|hosts| hosts.len() == goal), "{dir}: {:?}", placed(lab, &dir));
        let text = lab.ok("n1", &format!("{EXE} where {dir}/1"));
        let hosts: Vec<String> = placed(lab, &dir)[&format!("{dir}/1")].iter().cloned().collect();
        let row = text.lines().next().unwrap().split_whitespace().collect::<Vec<_>>();
        assert_eq!(row, ["2", &hosts.join(","), &format!("{dir}/1")], "{text}");
    }
    // Until copies are made elsewhere `homing where` names the other hosts, and afterwards the new ones.
    lab.ok("n3", "sed -i 's/^/*/' /etc/mfs/mfshdd.cfg && systemctl reload moosefs-chunkserver");
    until("n3, which is being emptied, is told of no file with two copies", || {
        placed(lab, "/data/goal2").values().all(|hosts| !hosts.contains("n3") && !hosts.is_empty())
    });
    let sole = sole_copy_on(lab, "n4");
    lab.ok("n4", "systemctl kill -s KILL moosefs-chunkserver");
    until("the master has noticed that n4 is down", || !lab.on("n1", &format!("{EXE} where {sole}")).status.success());
    let told = lab.on("n1", &format!("{EXE} where {sole}"));
    let row = String::from_utf8_lossy(&told.stdout).into_owned();
    assert_eq!(row.split_whitespace().take(3).collect::<Vec<_>>(), ["2", "-", &sole], "{row}");
    assert!(err(&told).contains(&format!("{sole}: no chunkserver that is up holds a valid copy")), "{}", err(&told));
    assert_eq!(told.status.code(), Some(254));
    assert!(placed(lab, "/data/goal3").values().all(|hosts| !hosts.contains("n4") && !hosts.is_empty()));
}

/// Returns the hosts of each file, by its path, from `homing where --json`.
fn placed(lab: &Lab, dir: &str) -> BTreeMap<String, BTreeSet<String>> {
    let told: Value = serde_json::from_slice(&lab.on("n1", &format!("{EXE} where --json {dir}")).stdout).unwrap();
    let hosts = |file: &Value| {
        let replicas = file["extents"].as_array().unwrap().iter().flat_map(|e| e["replicas"].as_array().unwrap());
        replicas.map(|r| r["host"].as_str().unwrap().to_string()).collect()
    };
    told["files"].as_array().unwrap().iter().map(|f| (f["path"].as_str().unwrap().to_string(), hosts(f))).collect()
}

/// Makes files until one has its only copy on `host`: the master spreads single copies at will.
fn sole_copy_on(lab: &Lab, host: &str) -> String {
    for n in 0..100 {
        let file = format!("/data/goal1/more{n}");
        lab.ok("n1", &format!("echo x >{file}"));
        if placed(lab, &file)[&file].contains(host) {
            return file;
        }
    }
    panic!("of 100 files none lies on {host}");
}
