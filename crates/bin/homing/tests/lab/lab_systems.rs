//! Hosts with other systems than this machine's. Needs root; otherwise prints a note and is skipped.

use crate::support::{EXE, Lab, err, homing, missing};
use std::process::Command;

/// The root is made once, by debootstrap from a mirror: several minutes.
#[test]
#[ignore = "SLOW=1 make test-lab ONLY=lab_systems"]
fn a_lab_of_two_releases_runs_tasks_and_is_set_up() {
    if missing(&["systemd-nspawn", "debootstrap"]) {
        return;
    }
    let lab = Lab::up("systems", &["--hosts", "2", "--os", "this,trixie"]);
    lab.ok("n2", "grep -q '^VERSION_CODENAME=trixie' /etc/os-release && test \"$(cat /proc/1/comm)\" = systemd");
    let name = lab.name.as_str();
    let ran = homing(&["run", "-q", "-k", "--lab", name, "--wd", "/", "-j1", "hostname; echo {}", ":::", "a", "b"]);
    assert!(ran.status.success(), "{}", err(&ran));
    lab.ok("n2", &format!("{EXE} run -q 'echo {{}}' ::: a"));

    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("c.toml");
    std::fs::write(&file, "hosts = \"n[1-2]\"\n[up]\nssh = \"host-based\"\n[up.user.carla]\nuid = 3901\n").unwrap();
    let mut up = Command::new(EXE);
    up.arg("up").arg(&file).args(["--lab", name, "--yes", "--no-check"]).env("XDG_STATE_HOME", state.path());
    let done = up.output().unwrap();
    assert!(done.status.success(), "{}", err(&done));
    for (from, to) in [("n1", "n2"), ("n2", "n1")] {
        assert_eq!(lab.ok(from, &format!("su - carla -c 'ssh -o BatchMode=yes {to} hostname'")).trim(), to);
    }
}
