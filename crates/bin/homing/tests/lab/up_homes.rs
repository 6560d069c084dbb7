//! Homes of a lab go to a volume, and come back. Needs root; otherwise prints a note and is skipped.

use crate::setup::{Up, failed};
use crate::support::{EXE, Lab, err, missing};
use std::process::Command;

const CLUSTER: &str = r#"
hosts = "n[1-3]"
[up.user.carla]
uid = 3901
[up.volume.homes]
kind = "gluster"
hosts = "n[1-3]:/scratch"
[up.homes]
volume = "homes"
"#;

/// A home with everything that a plain copy loses. It has a hard link, a link, a name with a newline, an attribute,
/// modes, a hole and a pipe.
const HOME: &str = r#"set -e; useradd -u 3901 -m carla; cd /home/carla; echo secret > a; ln a b; ln -s /nowhere c
echo x > "$(printf 'odd\nname')"; setfattr -n user.kind -v odd a; chmod 600 a; truncate -s 3M hole; mkfifo pipe; chown -Rh carla: ."#;

/// Lists a folder: names, types, modes, owners, links and bytes.
fn tree(folder: &str) -> String {
    format!(
        "cd {folder}; find . ! -name '.homing*' -printf '%p %y %m %U %G %n %l\\n' | grep -v '^. d' | sort; \
         find . -type f -print0 | sort -z | xargs -0 sha256sum; getfattr -n user.kind --only-values carla/a"
    )
}

#[test]
fn homes_go_to_a_volume_and_come_back() {
    if missing(&["systemd-nspawn", "glusterd", "mount.glusterfs", "rsync"]) {
        return;
    }
    let up = Up { lab: Lab::up("homes", &["--hosts", "3", "--disk", "1G"]), state: tempfile::tempdir().unwrap() };
    let (lab, hosts) = (&up.lab, ["n1", "n2", "n3"]);
    std::fs::write(up.state.path().join("c.toml"), CLUSTER).unwrap();
    lab.ok("n1", HOME);
    let before = lab.ok("n1", &tree("/home"));

    // A user is logged in on a host that has no files of its own to move.
    lab.ok("n3", "useradd -u 3901 -m carla; systemd-run --quiet --unit shell --uid carla --working-directory=/home/carla sleep 1000");
    let told = up.json(&["--no-check"]);
    let of_n3 = failed(&told, "n3").join("; ");
    assert!(of_n3.contains("/home is in use there (carla: sleep)"), "{told}");
    assert!(told.to_string().contains("homing moves nothing on n[1-3] while a user is logged in"), "{told}");
    hosts
        .iter()
        .for_each(|host| drop(lab.ok(host, "mountpoint -q /homes && ! mountpoint -q /home && ! test -e /homes/home")));

    // An interrupted copy is continued.
    lab.ok("n3", "systemctl stop shell");
    up.killed_at("homes");
    let done = up.json(&["--no-check"]);
    assert_eq!(done["exit"], 0, "{done}");
    for host in hosts {
        assert_eq!(lab.ok(host, &tree("/home")), before, "{host}");
        lab.ok(host, "! test -e /run/nologin");
    }
    lab.ok("n3", "su - carla -c 'echo new > from-n3'");
    assert_eq!(lab.ok("n1", "su - carla -c 'cat from-n3'"), "new\n");
    assert_eq!(up.json(&["--no-check"])["steps"], 0);
    lab.ok("n2", "umount /home");
    assert_eq!(up.json(&["--no-check"])["steps"], 1, "a mount that is missing is made again");
    let delete = || {
        let mut delete = Command::new(EXE);
        up.as_called(delete.args(["volume", "delete", "homes", "--delete-files", "--yes"])).output().unwrap()
    };
    let refused = delete();
    assert!(
        !refused.status.success() && err(&refused).contains("a folder of the volume is mounted at /home"),
        "{}",
        err(&refused)
    );
    a_host_leaves(&up);

    // Newer files stay on the volume.
    let undone = up.json(&["--undo"]);
    assert!(undone.to_string().contains("volume homes stays"), "{undone}");
    assert_eq!(lab.ok("n1", &tree("/home")), before);
    let again = up.json(&["--no-check"]);
    assert!(
        failed(&again, "n1").join(" ").contains("which was /home of all hosts: move one of the two elsewhere"),
        "{again}"
    );
    hosts.iter().for_each(|host| drop(lab.ok(host, "! mountpoint -q /home")));
    let deleted = delete();
    assert!(deleted.status.success(), "{}", err(&deleted));
    assert_eq!(up.json(&["--undo"])["exit"], 0);
    hosts.iter().for_each(|host| {
        drop(lab.ok(host, "! test -e /homes && ! grep homing /etc/fstab && ! test -e /var/lib/homing/up"))
    });
    assert_eq!(lab.ok("n1", &tree("/home")), before);
}

/// The host's bytes move to the others, and its homes and names go back. No user of another host notices.
fn a_host_leaves(up: &Up) {
    let lab = &up.lab;
    lab.ok(
        "n3",
        "for i in $(seq 30); do head -c 10000 /dev/urandom > /home/carla/f$i; done; chown -R carla: /home/carla",
    );
    let all = lab.ok("n1", &tree("/home"));
    assert!(lab.ok("n3", "find /scratch/homes/home/carla -name 'f*' | wc -l") != "0\n");
    let cluster = up.state.path().join("c.toml").display().to_string();
    let down = |host: &str| {
        up.as_called(Command::new(EXE).args(["down", host, "--yes", "--cluster", &cluster])).output().unwrap()
    };
    let refused = down("n9");
    assert!(
        refused.status.code() == Some(255) && err(&refused).contains("n9 is not a host of the cluster file"),
        "{}",
        err(&refused)
    );
    let out = down("n3");
    assert!(out.status.success(), "{}", err(&out));
    assert!(String::from_utf8_lossy(&out.stdout).contains("remove it from the cluster file"), "{out:?}");
    lab.ok("n3", "! mountpoint -q /home && ! mountpoint -q /homes && ! grep -q homing /etc/fstab /etc/hosts && ! test -e /var/lib/homing/up");
    lab.ok("n1", "! sed -n '/^# homing names: begin/,/^# homing names: end/p' /etc/hosts | grep n3");
    assert_eq!(lab.ok("n2", &tree("/home")), all, "all bytes are with those that stay");
    assert!(down("n3").status.success(), "there is nothing left to do");
    let text = std::fs::read_to_string(&cluster).unwrap().replace("n[1-3]", "n[1-2]");
    std::fs::write(&cluster, text).unwrap();
    assert_eq!(up.json(&["--no-check"])["steps"], 0);
    lab.ok("n1", "rm /home/carla/f*");
}
