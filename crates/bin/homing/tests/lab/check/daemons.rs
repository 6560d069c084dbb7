//! Daemons of volumes that die, stop and hang.

use super::{Lab, found_names, shown};
use crate::support::missing;
use crate::until::until;

/// A host, the script that runs there, and all expected findings, by code and hosts.
type Stop = (&'static str, &'static str, &'static [&'static str]);

const GLUSTER: &[Stop] = &[
    ("n3", "killed glusterfsd", &["HC-NET-07 [\"n3\"]"]),
    // The daemon's port and its service; its bricks went with it.
    ("n3", "systemctl stop glusterd", &["HC-NET-07 [\"n3\"]", "HC-SVC-02 [\"n3\"]"]),
    ("n3", "killed -f process-nam[e].fuse", &["HC-MOUNT-08 [\"n3\"]"]),
    ("n3", "pkill -STOP -f process-nam[e].fuse", &["HC-MOUNT-07 [\"n3\"]"]),
];

const MOOSEFS: &[Stop] = &[
    ("n3", "systemctl stop moosefs-chunkserver", &["HC-NET-07 [\"n1\",\"n2\",\"n3\"]", "HC-SVC-02 [\"n3\"]"]),
    ("n3", "killed mfsmount", &["HC-MOUNT-08 [\"n3\"]"]),
    ("n3", "pkill -STOP mfsmount", &["HC-MOUNT-07 [\"n3\"]"]),
];

const SLURM: &[Stop] = &[
    ("n1", "scontrol update NodeName=n3 State=DOWN Reason=planted", &["HC-SLURM-01 [\"n3\"]"]),
    ("n3", "systemctl stop slurmd", &["HC-SVC-02 [\"n3\"]"]),
];

/// Checks that each fault is found, and nothing else. Pastes the remedies, and waits until the lab is well again.
fn each_is_found_and_mended(lab: &Lab, stops: &[Stop]) {
    for (host, script, expected) in stops {
        lab.run(host, script);
        let found = lab.findings();
        assert_eq!(found_names(&found), *expected, "after {script}: {:?}", shown(&found));
        let said: Vec<String> = found.iter().filter(|f| f["mends"] == true).map(|f| lab.paste(f)).collect();
        assert!(!said.is_empty(), "nothing mends {script}");
        println!("{script}: {said:?}");
        until("the lab is well again", || lab.findings().is_empty());
    }
}

#[test]
fn daemons_of_glusterfs_are_found_and_mended() {
    if missing(&["systemd-nspawn", "sshd", "glusterd"]) {
        return;
    }
    each_is_found_and_mended(&Lab::up("chkg", &["--gluster", "1x3"]), GLUSTER);
}

#[test]
fn daemons_of_slurm_are_found_and_mended() {
    if missing(&["systemd-nspawn", "sshd", "slurmctld"]) {
        return;
    }
    each_is_found_and_mended(&Lab::up("chks", &["--slurm"]), SLURM);
}

#[test]
fn daemons_of_moosefs_are_found_and_mended() {
    if missing(&["systemd-nspawn", "sshd", "mfsmaster", "mfscli"]) {
        return;
    }
    let lab = Lab::up("chkm", &["--moosefs"]);
    each_is_found_and_mended(&lab, MOOSEFS);
    // The clients of a server that hangs cannot mend it.
    lab.run("n1", "pkill -STOP mfsmaster");
    let found = lab.findings();
    assert_eq!(found_names(&found), ["HC-MOUNT-07 [\"n1\",\"n2\",\"n3\"]"], "{:?}", shown(&found));
    let command = found[0]["command"].as_str().unwrap();
    assert!(command.starts_with("homing exec -w n1 ") && found[0]["mends"] == false, "{command}");
    lab.run("n1", "pkill -CONT mfsmaster");
    until("the lab is well again", || lab.findings().is_empty());
}
