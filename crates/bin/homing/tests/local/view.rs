//! `homing in-view`: the view of a task on a host that has a volume under another name.

use crate::skipped::skipped;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn in_view(wrapper: &[&str], point: &str, local: &Path, cwd: &str, script: &str) -> Output {
    let exe = env!("CARGO_BIN_EXE_homing");
    let words = wrapper.iter().copied().chain([exe, "in-view", point, local.to_str().unwrap(), "--", cwd]);
    let words: Vec<&str> = words.chain(["/bin/sh", "sh", "-c", script, "zero", "a b"]).collect();
    Command::new(words[0]).args(&words[1..]).output().unwrap()
}

fn says(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

/// The users: root, and another user if root can become one.
fn users() -> Vec<Vec<&'static str>> {
    let nobody = vec!["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    if rustix::process::geteuid().is_root() { vec![vec!["env"], nobody] } else { vec![vec!["env"]] }
}

#[test]
fn a_task_sees_files_where_the_clients_mount_them() {
    let dir = tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o755)).tempdir().unwrap();
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    std::fs::write(dir.path().join("sub/f"), "hello").unwrap();
    let permitted = Command::new("unshare").args(["--user", "--mount", "true"]).status().is_ok_and(|s| s.success());
    if !permitted {
        skipped("this machine permits no mount namespaces");
        return;
    }
    // The mount points: one exists, one has only a parent, and one lacks all folders.
    let deep = dir.path().join("sub").join("deeper/still");
    for user in users() {
        for point in ["/opt", "/no-such-volume", deep.to_str().unwrap()] {
            let seen = in_view(&user, point, dir.path(), &format!("{point}/sub"), "pwd; cat f; echo $0 \"$1\"");
            assert_eq!(says(&seen), format!("{point}/sub\nhellozero a b"), "{user:?}");
        }
        // All other folders are unchanged, such as /tmp and /mnt.
        let script = format!("ls -d /proc/self/fd /dev/null /usr/bin/env /mnt {}", dir.path().display());
        assert_eq!(says(&in_view(&user, "/no-such-volume", dir.path(), "/", &script)).lines().count(), 5);
        let id = in_view(&user, "/no-such-volume", dir.path(), "/", "id -u");
        assert_eq!(says(&id) == "0", user.len() == 1 && rustix::process::geteuid().is_root());
    }
    assert!(!Path::new("/no-such-volume").exists() && !dir.path().join("sub/deeper").exists(), "nothing is made");
}

#[test]
fn the_programs_end_is_the_tasks() {
    let dir = tempfile::tempdir().unwrap();
    let missing = in_view(&["env"], "/no-such-volume", &dir.path().join("gone"), "/", "true");
    assert_eq!(missing.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&missing.stderr).starts_with("homing: "), "{missing:?}");
    let ended = in_view(&["env"], "/opt", dir.path(), "/", "exit 7");
    assert!([Some(7), Some(127)].contains(&ended.status.code()), "127 where no namespace is permitted: {ended:?}");
}
