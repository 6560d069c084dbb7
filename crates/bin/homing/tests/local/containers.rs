//! `--container` runs tasks by a program for containers. A script in place of podman records its words and runs the
//! command.

use crate::world::World;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// Runs the words behind the image in a session of its own, as podman does, until `podman rm` ends them.
const PODMAN: &str = r#"#!/bin/sh
echo "$@" >> "$STANDIN/words"
case $1 in
rm) sleep "${RM_TAKES:-0}"; shift; for last; do :; done; kill -KILL -"$(cat "$STANDIN/$last")"; echo "$last" >> "$STANDIN/removed"; exit;;
esac
while [ "$1" != img:1 ]; do [ "$1" != --name ] || name=$2; [ "$1" != --workdir ] || cd "$2"; shift; done; shift
exec 3<&0; setsid "$@" <&3 3<&- & echo $! > "$STANDIN/$name"; wait $!
"#;

struct Containers(World);

impl Containers {
    fn new() -> Containers {
        let world = World::new();
        let folder = world.path().join("standin");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("podman"), PODMAN).unwrap();
        std::fs::set_permissions(folder.join("podman"), std::fs::Permissions::from_mode(0o755)).unwrap();
        Containers(world)
    }

    fn command(&self, words: &[&str]) -> std::process::Command {
        let folder = self.0.path().join("standin");
        let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
        let mut command = self.0.command(&[&["run", "-q", "--on", "local"], words].concat());
        command.env("PATH", path).env("STANDIN", folder);
        command
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path().join("standin").join(name)).unwrap_or_default()
    }

    fn await_file(&self, path: &str) {
        let until = Instant::now() + Duration::from_secs(60);
        while !self.0.path().join(path).exists() {
            assert!(Instant::now() < until, "{path}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_task_runs_in_its_folder_with_the_folders_of_its_files() {
    let containers = Containers::new();
    let world = containers.0.path();
    std::fs::create_dir(world.join("in")).unwrap();
    std::fs::create_dir(world.join("work")).unwrap();
    std::fs::write(world.join("in/a"), "hello\n").unwrap();
    let file = world.join("in/a").display().to_string();
    let mut command =
        containers.command(&["--container", "img:1:arg=--memory=1g", "cat {}; pwd; exit 3", ":::", &file]);
    let output = command.current_dir(world.join("work")).env("LANE", "4").output().unwrap();
    let work = world.join("work").display().to_string();
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("hello\n{work}\n"));
    assert_eq!(output.status.code(), Some(1), "the status is that of the command");
    let words = containers.read("words");
    for part in
        [format!("--volume {work}:{work}"), format!("--volume {0}/in:{0}/in", world.display()), "--env LANE".into()]
    {
        assert!(words.contains(&part), "{part}: {words}");
    }
    assert!(words.contains("--memory=1g img:1 /bin/sh -c"), "{words}");
    assert!(!words.contains("--env PATH") && !words.contains("--env HOME "), "{words}");
}

#[test]
fn a_time_limit_ends_the_container() {
    let containers = Containers::new();
    let words = ["--container", "img:1", "--timeout", "2", "touch began; exec sleep 600", ":::", "1"];
    let output = containers.command(&words).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    containers.await_file("standin/removed");
    let removed = containers.read("removed");
    assert!(removed.starts_with("homing-"), "{removed}");
}

#[test]
fn a_signal_to_homing_ends_the_container() {
    let containers = Containers::new();
    let words = ["--container", "img:1", "touch began; exec sleep 600", ":::", "1"];
    let mut run = containers.command(&words).spawn().unwrap();
    containers.await_file("began");
    let pid = rustix::process::Pid::from_child(&run);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(143));
    let words = containers.read("words");
    let name = words.split_whitespace().find(|word| word.starts_with("homing-")).unwrap();
    let pid = containers.read(name);
    let until = Instant::now() + Duration::from_secs(60);
    while std::path::Path::new("/proc").join(pid.trim()).exists() {
        assert!(Instant::now() < until, "the container runs on as process {pid}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// podman needs a second on a loaded host; without its `rm`, its records keep a dead container for ever.
#[test]
fn a_lost_coordinator_leaves_no_container() {
    let containers = Containers::new();
    let words = ["--container", "img:1", "touch began; exec sleep 600", ":::", "1"];
    let mut run = containers.command(&words).env("RM_TAKES", "2").spawn().unwrap();
    containers.await_file("began");
    run.kill().unwrap();
    run.wait().unwrap();
    containers.await_file("standin/removed");
}

#[test]
fn a_host_without_the_program_is_not_used() {
    let containers = Containers::new();
    let words = ["--container", "none.sif", "touch ran", ":::", "1"];
    let output = containers.command(&words).env("PATH", "/bin").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("it has no apptainer or singularity, which --container needs"), "{text}");
    assert!(!output.status.success() && !containers.0.path().join("ran").exists());
}
