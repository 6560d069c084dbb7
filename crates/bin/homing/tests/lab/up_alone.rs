//! `homing up FILE --lab NAME` sets up a lab from the file alone. Nothing here repairs the lab or a host first. Needs
//! root; otherwise prints a note and is skipped.

use crate::setup::failed;
use crate::skipped::skipped;
use crate::support::{EXE, Lab, err, missing};
use serde_json::Value;
use std::process::{Command, Output, Stdio};

/// All areas but the MTU and foreign mounts. The limits are low: in a container root may not raise them.
const CLUSTER: &str = r#"
hosts = "n[1-3]"
[up]
hostname = true
ssh = "host-based"
clock = "n1"
packages = ["hello"]
[up.group.crew]
gid = 3900
[up.user.carla]
uid = 3901
groups = ["crew"]
[up.sysctl]
"net.core.somaxconn" = "4321"
[up.limits]
nofile = "321:4321"
[up.disk."/data"]
devices = { "n[1-3]" = "/dev/disk/by-id/lab-spare" }
[up.volume.homes]
kind = "gluster"
hosts = "n[1-3]:/data"
[up.homes]
volume = "homes"
[up.slurm]
"#;

/// Work of an ordinary user: a job over all hosts whose output is in the common home, and ssh without a password.
const USE: &str = "su - carla -c 'set -e; cd; sbatch -W --wrap hostname -N3 -o out >/dev/null; cat out; srun -N3 hostname | sort; \
                   ssh -o BatchMode=yes n1 cat out; ulimit -Sn; id -Gn'";

fn up(lab: &Lab, file: &std::path::Path, words: &[&str]) -> Output {
    let mut command = Command::new(EXE);
    command.arg("up").arg(file).args(["--lab", &lab.name, "--yes", "--json"]).args(words);
    command.env("XDG_STATE_HOME", file.parent().unwrap()).env_remove("HOMING_CLUSTER").env_remove("HOMING_SSH");
    command.stdin(Stdio::null()).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(output)))
}

#[test]
fn a_lab_becomes_a_cluster_from_the_file_alone() {
    if missing(&["systemd-nspawn", "glusterd", "mount.glusterfs", "rsync", "slurmctld", "slurmd", "munged", "apt-get"])
    {
        return;
    }
    let lab = Lab::up("alone", &["--hosts", "3", "--spare-disk", "1G"]);
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("c.toml");
    let hosts = ["n1", "n2", "n3"];

    std::fs::write(&file, CLUSTER.replacen("n[1-3]", "n[1-4],vm", 1)).unwrap();
    let refused = up(&lab, &file, &[]);
    let why = err(&refused);
    assert!(refused.status.code() == Some(255) && why.contains("names n4,vm; lab"), "{why}");

    std::fs::write(&file, CLUSTER).unwrap();
    let plan = json(&up(&lab, &file, &["--dry-run"]));
    if failed(&plan, "n1").join("\n").contains("this machine reaches none of them") {
        skipped("this machine has no way to a mirror of packages");
        return;
    }
    let done = json(&up(&lab, &file, &["--no-check"]));
    assert_eq!(done["exit"], 0, "{done}");

    let used = lab.ok("n3", USE);
    assert_eq!(used, "n1\nn1\nn2\nn3\nn1\n321\ncarla crew\n", "{used}");
    for host in hosts {
        lab.ok(host, "hello && findmnt -no FSTYPE /data | grep -qx ext4 && findmnt -no FSTYPE /home | grep -q gluster");
        lab.ok(host, "test $(sysctl -n net.core.somaxconn) = 4321 && getent ahostsv4 n1 && pgrep -x chronyd");
    }
    // A follower has queried n1, and accepted its time.
    lab.ok("n2", "for i in $(seq 60); do chronyc -n sources | grep -q '^\\^\\*' && exit; sleep 1; done; exit 1");
    let again = json(&up(&lab, &file, &["--no-check"]));
    assert_eq!((&again["exit"], &again["steps"]), (&0.into(), &0.into()), "{again}");

    // A host that lost its power comes back with its disk, and takes part again.
    let of_host = |verb: &str| Command::new(EXE).args(["lab", verb, "--name", &lab.name, "n3"]).output().unwrap();
    for verb in ["off", "on"] {
        let done = of_host(verb);
        assert!(done.status.success(), "{verb}: {}", err(&done));
    }
    lab.ok("n3", "findmnt -no FSTYPE /data | grep -qx ext4");

    std::fs::write(&file, CLUSTER.replace("hello", "sl")).unwrap();
    no_way_is_in_the_plan(&lab, &file);
}

/// Neither a host nor this machine reaches the mirror of the hosts: the plan names it, and nothing is changed.
fn no_way_is_in_the_plan(lab: &Lab, file: &std::path::Path) {
    for host in ["n1", "n2", "n3"] {
        let source = "deb [trusted=yes] http://127.0.0.1:9/debian stable main";
        lab.ok(host, &format!("rm -rf /etc/apt/sources.list.d; echo '{source}' > /etc/apt/sources.list"));
    }
    let refused = up(lab, file, &["--no-check", "--only", "packages"]);
    let why = err(&refused);
    assert_eq!(refused.status.code(), Some(254), "{why}");
    assert!(
        why.contains("no mirror can be reached: http://127.0.0.1:9") && why.contains("this machine reaches none"),
        "{why}"
    );
}
