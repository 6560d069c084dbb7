//! `homing up` on hosts with obstacles, and while others work on them. Needs root; otherwise prints a note and is
//! skipped.

use crate::setup::{Up, failed};
use crate::support::{EXE, Lab, err, missing};
use std::process::{Command, Stdio};

const CLUSTER: &str = r#"
hosts = "n[1-3]"
[up.user.carla]
uid = 3901
[up.limits]
nofile = "321:4321"
"#;

/// Returns a script that mounts a full disk at the folder.
fn full(folder: &str) -> String {
    format!(
        "set -e; mkdir -p {folder}; cp -a {folder} /root/kept; mount -t tmpfs -o size=64k full {folder}; \
         cp -a /root/kept/. {folder}; ! cat /dev/zero > {folder}/much 2>/dev/null; rm -r /root/kept"
    )
}

/// Replaces sudo: it runs the command, or refuses with sudo's own message.
fn sudo(refuses: bool) -> String {
    let does = if refuses {
        "echo 'sudo: a password is required' >&2; exit 1"
    } else {
        r#"[ "$1" = -n ] && shift; exec "$@""#
    };
    format!("cat > /usr/local/bin/sudo <<'END'\n#!/bin/sh\n{does}\nEND\nchmod 755 /usr/local/bin/sudo")
}

#[test]
fn full_disks_and_a_sudo_that_refuses_are_named_and_the_others_go_on() {
    if missing(&["systemd-nspawn"]) {
        return;
    }
    let up = Up { lab: Lab::up("traps", &["--hosts", "3"]), state: tempfile::tempdir().unwrap() };
    let lab = &up.lab;
    std::fs::write(up.state.path().join("c.toml"), CLUSTER).unwrap();
    let of = |told: &serde_json::Value, host: &str| failed(told, host).join("\n");
    let as_before = |host: &str| drop(lab.ok(host, "! getent passwd carla && ! test -e /var/lib/homing/up"));

    ["n1", "n2", "n3"].iter().for_each(|host| drop(lab.ok(host, &sudo(*host == "n3"))));
    lab.ok("n2", &full("/var/lib/homing/up"));
    let told = up.json(&["--no-check", "--sudo"]);
    assert!(told["exit"] == 254 && failed(&told, "n1").is_empty(), "{told}");
    assert!(of(&told, "n3").contains("sudo: a password is required"), "{told}");
    assert!(of(&told, "n2").contains("No space left on device"), "{told}");
    lab.ok("n1", "id carla; test -e /etc/security/limits.d/60-homing.conf");
    as_before("n3");
    lab.ok("n2", "! getent passwd carla; umount /var/lib/homing/up; rmdir /var/lib/homing/up");

    // Only the disk of one file is full. The steps before it are done, and no partial file is left.
    lab.ok("n2", &full("/etc/security/limits.d"));
    lab.ok("n3", &sudo(false));
    let told = up.json(&["--no-check", "--sudo"]);
    assert_eq!((failed(&told, "n1"), failed(&told, "n3")), (vec![], vec![]), "{told}");
    assert!(of(&told, "n2").contains("cannot write /etc/security/limits.d/60-homing.conf; it is unchanged"), "{told}");
    lab.ok("n2", "id carla; ! ls /etc/security/limits.d/60-homing.conf* 2>/dev/null; umount /etc/security/limits.d");
    let done = up.json(&["--no-check", "--sudo"]);
    assert!(done["exit"] == 0 && done["steps"] == 1, "{done}");

    lab.ok("n3", &sudo(true));
    let told = up.json(&["--undo", "--sudo"]);
    assert!(told["exit"] == 254 && of(&told, "n3").contains("sudo: a password is required"), "{told}");
    as_before("n1");
    lab.ok("n3", &(sudo(false) + "; id carla"));
    assert_eq!(up.json(&["--undo", "--sudo"])["exit"], 0);
    ["n1", "n2", "n3"].iter().for_each(|host| as_before(host));
}

/// A task that waits to be let go. Each host has a /run of its own, where a file of this machine cannot let it go.
const TASK: &str = "until [ -e /run/go ]; do sleep 0.1; done";
#[test]
fn a_host_joins_while_a_run_and_an_array_are_under_way() {
    if missing(&["systemd-nspawn", "slurmctld", "slurmd", "munged"]) {
        return;
    }
    let up = Up { lab: Lab::up("joins", &["--hosts", "3"]), state: tempfile::tempdir().unwrap() };
    let (lab, hosts) = (&up.lab, ["n1", "n2", "n3"]);
    let cluster = |hosts: &str| {
        format!("hosts = \"{hosts}\"\n[up]\nssh = \"host-based\"\n[up.user.carla]\nuid = 3901\n[up.slurm]\n")
    };
    std::fs::write(up.state.path().join("c.toml"), cluster("n[1-2]")).unwrap();
    let done = up.json(&["--no-check"]);
    assert_eq!(done["exit"], 0, "{done}");

    let array = format!("echo $SLURM_ARRAY_TASK_ID >> /run/array; {TASK}");
    lab.ok("n1", &format!("cd /tmp; sbatch --parsable --array 1-8 -o /dev/null --wrap '{array}'"));
    let task = format!("echo {{}} >> /run/run; {TASK}; echo {{}}");
    let words = ["run", "-q", "--on", "ssh", "--hosts", "n[1-2]", "-j2", &task, ":::", "1", "2", "3", "4", "5", "6"];
    let run =
        up.as_called(Command::new(EXE).args(words)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for host in ["n1", "n2"] {
        lab.ok(host, "until [ -s /run/array ] && [ -s /run/run ]; do sleep 0.1; done");
    }
    let daemons = "systemctl show -P ActiveEnterTimestampMonotonic slurmd munge ssh";
    let since = ["n1", "n2"].map(|host| lab.ok(host, daemons));

    std::fs::write(up.state.path().join("c.toml"), cluster("n[1-3]")).unwrap();
    up.killed_at("ssh");
    let grown = up.json(&["--no-check"]);
    assert_eq!(grown["exit"], 0, "{grown}");
    assert_eq!(["n1", "n2"].map(|host| lab.ok(host, daemons)), since, "no daemon was restarted");

    hosts.iter().for_each(|host| drop(lab.ok(host, "touch /run/go")));
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{}", err(&ended));
    lab.ok("n1", "until [ -z \"$(squeue -h)\" ]; do sleep 0.2; done");
    let all = |file: &str| {
        let mut lines: Vec<String> = hosts
            .iter()
            .flat_map(|host| {
                lab.ok(host, &format!("cat {file} 2>/dev/null; true")).lines().map(String::from).collect::<Vec<_>>()
            })
            .collect();
        lines.sort();
        lines.join(" ")
    };
    assert_eq!((all("/run/array"), all("/run/run")), ("1 2 3 4 5 6 7 8".to_string(), "1 2 3 4 5 6".to_string()));
    assert_eq!(String::from_utf8_lossy(&ended.stdout).lines().count(), 6);
    assert_eq!(lab.ok("n3", "srun -w n3 hostname"), "n3\n");
}
