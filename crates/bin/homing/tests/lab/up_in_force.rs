//! `homing up` prints "up to date" for settings in force, and for nothing else. Needs root; otherwise prints a note
//! and is skipped.

use crate::setup::{Up, failed};
use crate::support::{Lab, err, missing};

const CLUSTER: &str = r#"
hosts = "n[1-2]"
[up]
ssh = "host-based"
[up.user.carla]
uid = 3901
[up.sysctl]
"net.core.somaxconn" = "4321"
"kernel.pid_max" = "123456"
[up.limits]
nofile = "321:4321"
[up.mount."/scratch"]
source = "n1:/y"
type = "nfs4"
"#;

/// A site's own files, which sort before homing's or after them.
const OVERRULE: &str = "echo 'HostbasedAuthentication no' > /etc/ssh/sshd_config.d/10-local.conf; systemctl reload ssh; \
                        echo 'carla hard nofile 100' > /etc/security/limits.d/99-local.conf; \
                        echo 'net/core/somaxconn = 99' > /etc/sysctl.d/99-local.conf";

/// A lab's /proc/sys cannot be written, and its /scratch is a disk of each host. So some settings cannot come into
/// force.
#[test]
fn what_another_file_or_the_system_overrules_is_named_and_the_rest_is_done() {
    if missing(&["systemd-nspawn"]) {
        return;
    }
    let up = Up { lab: Lab::up("force", &["--hosts", "2"]), state: tempfile::tempdir().unwrap() };
    let lab = &up.lab;
    let write = |text: &str| std::fs::write(up.state.path().join("c.toml"), text).unwrap();
    write(CLUSTER);
    let done = up.json(&["--no-check"]);
    let of_n2 = failed(&done, "n2").join("\n");
    assert!(of_n2.contains("mounts: /dev/") && of_n2.contains("is mounted at /scratch, not n1:/y"), "{of_n2}");
    assert!(
        of_n2.contains("sysctl: kernel.pid_max is ") && of_n2.contains("after it was set to 123456: sysctl: "),
        "{of_n2}"
    );
    assert_eq!(failed(&done, "n1").len(), 1, "the server has its own folder: {done}");
    lab.ok("n2", "! grep n1:/y /etc/fstab; test $(sysctl -n net.core.somaxconn) = 4321");
    lab.ok("n1", "su - carla -c 'ssh -o BatchMode=yes n2 true'");

    let (ours, _) = CLUSTER.split_once("[up.mount").unwrap();
    write(&ours.replace("\"kernel.pid_max\" = \"123456\"\n", ""));
    let done = up.json(&["--no-check"]);
    assert_eq!((&done["exit"], &done["steps"]), (&0.into(), &2.into()), "{done}");
    lab.ok("n1", OVERRULE);
    let again = up.json(&["--no-check"]);
    assert_eq!((&again["exit"], &again["steps"]), (&254.into(), &0.into()), "{again}");
    let (of_n1, of_n2) = (failed(&again, "n1").join("\n"), failed(&again, "n2").join("\n"));
    for part in [
        "ssh: sshd uses hostbasedauthentication no for carla",
        "/etc/ssh/sshd_config.d/10-local.conf (line 1: HostbasedAuthentication no) comes first",
        "limits: nofile = 321:4321 is not in force: a login of carla has 100:100",
        "/etc/security/limits.d/99-local.conf:1:carla hard nofile 100",
        "sysctl: net.core.somaxconn = 4321 until the next boot, and then 99: /etc/sysctl.d/99-local.conf (line 1)",
    ] {
        assert!(of_n1.contains(part), "{part}: {of_n1}");
    }
    assert!(
        of_n2.contains("ssh: carla cannot log in from n2 to n1: ") && of_n2.contains("Permission denied"),
        "{of_n2}"
    );
    lab.ok("n1", "rm /etc/ssh/sshd_config.d/10-local.conf /etc/security/limits.d/99-local.conf /etc/sysctl.d/99-local.conf; systemctl reload ssh");
    let mended = up.json(&["--no-check"]);
    assert_eq!((&mended["exit"], &mended["steps"]), (&0.into(), &0.into()), "{mended}");
    users_and_odd_values(&up);
    a_power_cut_amid_userdel(&up);
}

fn users_and_odd_values(up: &Up) {
    let write = |text: &str| std::fs::write(up.state.path().join("c.toml"), text).unwrap();
    write("hosts = \"n[1-2]\"\n[up.user.dora]\nuid = 3902\nshell = \"/bin/nosuch\"\n[up.user.emil]\nuid = 3903\n");
    up.lab.ok("n2", "mkdir /srv/homes && ln -s /srv/homes /home/emil");
    let done = up.json(&["--no-check"]);
    let (of_n1, of_n2) = (failed(&done, "n1").join("\n"), failed(&done, "n2").join("\n"));
    assert!(of_n1.contains("/bin/nosuch, the shell of dora, is missing"), "{of_n1}");
    assert!(of_n2.contains("/home/emil exists and belongs to number 0, not to emil (3903)"), "{of_n2}");
    up.lab.ok("n2", "! getent passwd emil && rm /home/emil");
    write("hosts = \"n[1-2]\"\n[up.mount.\"/proc\"]\nsource = \"n1:/y\"\ntype = \"nfs4\"\n[up.user.x]\nhome = \"/\"\n");
    let refused = up.up(&[]);
    let why = err(&refused);
    assert_eq!(refused.status.code(), Some(255), "{why}");
    assert!(why.contains("[up.mount.\"/proc\"]") && why.contains("[up.user.x] home = \"/\""), "{why}");
}

/// `userdel` writes passwd first. A power cut then leaves a line in each of the other files.
fn a_power_cut_amid_userdel(up: &Up) {
    let lab = &up.lab;
    std::fs::write(up.state.path().join("c.toml"), CLUSTER.split_once("[up.sysctl]").unwrap().0).unwrap();
    lab.ok("n2", "sed -i '/^carla:/d' /etc/passwd /etc/group; grep -q ^carla: /etc/shadow");
    let undone = up.json(&["--undo"]);
    assert_eq!(failed(&undone, "n2"), [""; 0], "{undone}");
    lab.ok("n2", "! grep carla /etc/passwd /etc/shadow /etc/group /etc/gshadow /etc/subuid /etc/subgid");
}
