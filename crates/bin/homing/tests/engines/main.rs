//! One short scenario an engine, on real hosts of a lab: the part of the lab that `make test` runs.
//! The program `lab` goes into each engine; sshd and the queue need no lab, and are in the program `local`.

#[path = "../../../../../tests/alone.rs"]
mod alone;
#[path = "../support/up.rs"]
mod setup;
#[path = "../../../../../tests/skipped.rs"]
mod skipped;
#[path = "../support/mod.rs"]
mod support;
#[path = "../../../../../tests/until.rs"]
mod until;

use serde_json::Value;
use setup::{Up, failed};
use std::collections::BTreeMap;
use support::{EXE, Lab, missing};
use until::until;

const FILES: usize = 8;

/// Returns the host of each file as the file system names it.
fn hosts_of_files(lab: &Lab) -> BTreeMap<String, String> {
    let layout: Value = serde_json::from_str(&lab.ok("n1", &format!("{EXE} where --json /data"))).unwrap();
    let files = layout["files"].as_array().unwrap().iter();
    let host = |file: &Value| file["extents"][0]["replicas"][0]["host"].as_str().unwrap().to_string();
    files.map(|file| (file["path"].as_str().unwrap().to_string(), host(file))).collect()
}

/// Checks that the plan has each task on the host of its file, and that the run executes each once.
fn tasks_run_at_their_files(lab: &Lab) {
    lab.ok("n1", &format!("cd /data; for i in $(seq {FILES}); do head -c 100000 /dev/urandom >f$i; done"));
    let hosts = hosts_of_files(lab);
    assert_eq!(hosts.len(), FILES, "{hosts:?}");
    // A host that answers too late, as on a busy machine, takes no part in a plan.
    let command = format!("{EXE} plan --on ssh --hosts 'n[1-2]' --need-all-hosts 'cksum {{}}' ::: /data/f*");
    let mut plan = String::new();
    until("both hosts answer", || {
        let (status, out, _) = lab.told("n1", &command);
        plan = out;
        status == Some(0)
    });
    // MooseFS may move a chunk to another server at any time.
    let after = hosts_of_files(lab);
    for (file, host) in &hosts {
        let line =
            plan.lines().find(|line| line.contains(&format!("cksum {file}"))).unwrap_or_else(|| panic!("{plan}"));
        let placed = [host, &after[file]].iter().any(|host| line.contains(host.as_str()));
        assert!(placed, "{file} lies on {host}, then on {}: {plan}", after[file]);
    }
    let out = lab.ok("n1", &format!("{EXE} run -q -k --on ssh --hosts 'n[1-2]' 'cksum <{{}}; echo {{}}' ::: /data/f*"));
    let ran: Vec<&str> = out.lines().filter(|line| line.starts_with("/data/")).collect();
    assert_eq!(ran, hosts.keys().collect::<Vec<_>>(), "{out}");
}

#[test]
fn glusterfs_and_slurm() {
    if missing(&["glusterd", "glusterfs", "slurmctld", "munged"]) {
        return;
    }
    let lab = Lab::up("engs", &["--hosts", "2", "--gluster", "2x1", "--slurm"]);
    tasks_run_at_their_files(&lab);
    let out = lab.ok("n1", &format!("cd /data; {EXE} run -q -k --on slurm 'echo {{}}' ::: f*"));
    assert_eq!(out.lines().count(), FILES, "{out}");
    let id = lab.ok("n1", &format!("cd /data; SHELL=/bin/sh {EXE} sub -q 'hostname >ran'"));
    lab.ok("n1", &format!("{EXE} wait {id}"));
    assert!(lab.ok("n2", &format!("cat /data/ran; scontrol show job {id}")).contains("JobState=COMPLETED"));
}

#[test]
fn moosefs() {
    if missing(&["mfsmaster", "mfschunkserver", "mfsmount"]) {
        return;
    }
    let lab = Lab::up("engm", &["--hosts", "2", "--disk", "700M", "--moosefs", "goal=1"]);
    tasks_run_at_their_files(&lab);
}

const CLUSTER: &str = "hosts = \"n[1-2]\"\n[up]\nhostname = true\nssh = \"host-based\"\n[up.user.carla]\nuid = 3901\n\
                       [up.sysctl]\n\"net.core.somaxconn\" = \"4321\"\n";

#[test]
fn up_and_its_undo() {
    if missing(&["systemd-nspawn"]) {
        return;
    }
    let up = Up { lab: Lab::up("engu", &["--hosts", "2"]), state: tempfile::tempdir().unwrap() };
    std::fs::write(up.state.path().join("c.toml"), CLUSTER).unwrap();
    let before = up.lab.ok("n2", "cat /etc/hosts /etc/passwd; sysctl -n net.core.somaxconn");
    let done = up.json(&["--no-check"]);
    assert_eq!((failed(&done, "n1"), failed(&done, "n2")), (vec![], vec![]), "{done}");
    let who = up.lab.ok("n1", "su - carla -c 'ssh -o BatchMode=yes n2 id -un'; sysctl -n net.core.somaxconn");
    assert_eq!(who, "carla\n4321\n");
    assert_eq!(up.json(&["--no-check"])["steps"], 0, "all is as wanted");
    let undone = up.json(&["--undo"]);
    assert_eq!(undone["exit"], 0, "{undone}");
    assert_eq!(up.lab.ok("n2", "cat /etc/hosts /etc/passwd; sysctl -n net.core.somaxconn"), before);
}
