//! `homing run --gateway`: the member is this machine behind a fake ssh.

use crate::script::script;
use crate::until::until;
use crate::world::World;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Makes an ssh that runs its last argument with a shell. The shell ignores no signal, as with sshd. The ssh logs
/// whether it had to allocate a terminal.
fn ssh(w: &World) -> PathBuf {
    let ssh = w.path().join("ssh");
    let log = "echo \"$1\" >> ssh.log\nfor last; do :; done\nexec env --default-signal sh -c \"$last\"";
    script(&ssh, log);
    ssh
}

fn far(w: &World, words: &[&str]) -> Command {
    let mut command = w.command(&[&["run", "--gateway", "far"], words].concat());
    command.env("HOMING_SSH", ssh(w)).env("XDG_CACHE_HOME", w.path().join("cache"));
    command
}

#[test]
fn input_output_and_status_are_those_of_the_member() {
    let w = World::new();
    let mut command = far(&w, &["-q", "-k", "echo {} --gateway; echo $PPID >> ran; test {} != bad"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"it's\nbad\n").unwrap();
    let ran = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "it's --gateway\nbad --gateway\n", "{ran:?}");
    assert_eq!(ran.status.code(), Some(1));
    let left: Vec<_> =
        std::fs::read_dir(w.path().join("cache/homing")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("at-gateway")), "{left:?}");
    assert!(std::fs::read_to_string(w.path().join("ssh.log")).unwrap().lines().all(|line| line == "-T"));
}

#[test]
fn a_signal_reaches_the_run_and_its_status_comes_back() {
    let w = World::new();
    let mut child = far(&w, &["-q", ": {}; echo $$ > began; exec sleep 1000", ":::", "a"]).spawn().unwrap();
    let began = w.path().join("began");
    until("the task runs", || std::fs::read_to_string(&began).is_ok_and(|pid| pid.ends_with('\n')));
    let task: i32 = std::fs::read_to_string(&began).unwrap().trim().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    until("its task has ended", || !std::path::Path::new(&format!("/proc/{task}")).exists());
}
