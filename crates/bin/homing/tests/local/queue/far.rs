//! Jobs on another host: its slots are its own, whichever machine submits. The host is this machine under another
//! name. It has a queue of its own behind an `ssh` that makes no connection.

use super::world::World;
use crate::script::script;
use crate::until::until;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

/// Plays the sshd of the other host. Each requested process is no child of the process that requests it, whose guards
/// would end it.
fn listen(folder: &Path) {
    while folder.exists() {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        for asked in entries.filter(|path| path.extension().is_some_and(|e| e == "ready")) {
            let line = std::fs::read_to_string(asked.join("command")).unwrap();
            std::fs::remove_file(asked.join("command")).unwrap();
            let served = asked.with_extension("served");
            std::fs::rename(&asked, &served).unwrap();
            let mut command = Command::new("/bin/sh");
            // The shell that opens the pipes waits for them, not this process.
            let script = format!("exec < {0}/in > {0}/out; exec /bin/sh -c \"$1\"", served.display());
            command.args(["-c", &script, "sh", &line]).env("HOMING_QUEUE", folder.join("queue"));
            command.env("HOMING_CLUSTER", folder.join("cluster.toml")).env("XDG_CACHE_HOME", folder.join("cache"));
            let mut served = command.env("HOMING_ENGINE", "local").spawn().unwrap();
            std::thread::spawn(move || served.wait());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A host with a queue, and the machines that submit to it.
pub struct Cluster {
    pub host: World,
    pub ends: Vec<World>,
}

impl Cluster {
    /// Makes a host with `slots`, and `ends` machines that declare no slots of it.
    pub fn new(slots: u32, ends: usize) -> Cluster {
        let host = World::new(slots);
        let at = host.path().display().to_string();
        let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
        // The last argument of ssh is for the shell there.
        let ssh = format!(
            "[ -e {at}/down ] && {{ echo 'no route to host' >&2; exit 255; }}\n\
             for last in \"$@\"; do :; done\nd=$(mktemp -d {at}/new.XXXXXX)\nmkfifo $d/in $d/out\n\
             printf '%s' \"$last\" > $d/command\nexec 3<&0\nmv $d $d.ready\n\
             until [ -d $d.served ]; do sleep 0.01; done\ncat <&3 > $d.served/in &\nexec cat $d.served/out"
        );
        script(&host.path().join("ssh"), &ssh);
        let folder = host.path().to_path_buf();
        std::thread::spawn(move || listen(&folder));
        let end = |_| {
            let end = World::new(1);
            let text = format!("hosts = \"{own},far\"\n[host.\"{own}\"]\nslots = 1\n[queue.normal]\n[queue.other]\n");
            std::fs::write(end.path().join("cluster.toml"), text).unwrap();
            end
        };
        Cluster { ends: (0..ends).map(end).collect(), host }
    }

    pub fn command(&self, end: usize, args: &[&str]) -> Command {
        let mut command = self.ends[end].command(args);
        command.env("HOMING_SSH", self.host.path().join("ssh"));
        command
    }

    pub fn at(&self, end: usize, args: &[&str]) -> Output {
        self.command(end, args).output().unwrap()
    }

    pub fn out(&self, end: usize, args: &[&str]) -> String {
        let output = self.at(end, args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn sub(&self, end: usize, line: &str) -> String {
        self.out(end, &["sub", "-q", "--host", "far", line]).trim().to_string()
    }

    pub fn state(&self, end: usize, id: &str) -> serde_json::Value {
        serde_json::from_str::<serde_json::Value>(&self.out(end, &["jobs", "--json", "--why", id])).unwrap()[0].clone()
    }
}

#[test]
fn jobs_of_two_submitting_machines_share_the_slots_of_the_host() {
    let c = Cluster::new(2, 2);
    let log = c.host.path().join("log");
    // The first job waits for a second one. Otherwise it could end before the second begins, on a busy machine.
    let line = format!(
        "echo + >> {0}; until [ $(grep -c + {0}) -ge 2 ]; do sleep 0.05; done; sleep 0.3; echo - >> {0}",
        log.display()
    );
    let ids: Vec<(usize, String)> = (0..10).map(|n| (n % 2, c.sub(n % 2, &line))).collect();
    ids.iter().for_each(|(end, id)| drop(c.out(*end, &["wait", id])));
    let (mut now, mut most) = (0, 0);
    for step in std::fs::read_to_string(&log).unwrap().lines() {
        now += if step == "+" { 1 } else { -1 };
        most = most.max(now);
    }
    assert_eq!((now, most), (0, 2), "all have run, two at once");
}

#[test]
fn what_happens_there_is_seen_where_the_job_was_submitted() {
    let c = Cluster::new(1, 1);
    let there = c.host.path().display().to_string();
    let first = c.sub(0, &format!("echo $HOMING_JOB; pwd >&2; until [ -e {there}/go ]; do sleep 0.05; done; exit 7"));
    // The job runs a moment before its start, and with it the host, is recorded.
    until("the first runs there", || c.state(0, &first)["host"] == "far");
    until("its output has come", || c.out(0, &["peek", &first]).contains(&format!("{first}\n")));
    // The host's only slot is in use: the second job waits, and the host reports why.
    let second = c.sub(0, "sleep 1000");
    until("the host has said why", || {
        let job = c.state(0, &second);
        job["state"] == "PEND" && job["why"] == "far: no free slots"
    });
    std::fs::write(c.host.path().join("go"), "").unwrap();
    assert_eq!(c.at(0, &["wait", &first]).status.code(), Some(7));
    until("the second runs", || c.state(0, &second)["state"] == "RUN");
    c.out(0, &["kill", &second]);
    assert_eq!(c.at(0, &["wait", &second]).status.code(), Some(143));
    assert!(c.state(0, &second)["reason"].as_str().unwrap().starts_with("killed by"), "{}", c.state(0, &second));
    let left = c.host.out(&["jobs"]);
    assert_eq!(left.lines().count(), 1, "nothing of them is left on the host: {left}");
}

#[test]
fn a_host_that_is_down_is_told_and_a_keeper_that_dies_frees_its_slot() {
    let c = Cluster::new(1, 1);
    std::fs::write(c.host.path().join("down"), "").unwrap();
    let waits = c.sub(0, "true");
    until("why it waits is told", || {
        c.state(0, &waits)["why"].as_str().is_some_and(|why| why.contains("no route to host"))
    });
    std::fs::remove_file(c.host.path().join("down")).unwrap();
    assert_eq!(c.at(0, &["wait", &waits]).status.code(), Some(0), "the host has come back");
    let long = c.sub(0, "sleep 1000");
    // The host is recorded with the start. Without a recorded start the job would wait again.
    until("it runs", || c.state(0, &long)["host"] == "far");
    c.ends[0].kill_all();
    until("its slot is free", || c.host.out(&["jobs"]).lines().count() == 1);
    assert_eq!(c.state(0, &long)["state"], "LOST");
    c.out(0, &["sub", "--again", &long]);
    until("it runs again", || c.state(0, &long)["host"] == "far");
    c.out(0, &["kill", &long]);
}

/// The queue's second threshold is that of the host. A job from elsewhere stops there, and its submitter can see
/// that.
#[test]
fn a_job_stands_still_above_the_second_threshold_of_its_host_and_is_told_where_it_was_submitted() {
    let c = Cluster::new(1, 1);
    let there = c.host.path().display().to_string();
    let own = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // Less memory is worse: no machine is below 1 MB, and all are below the other value.
    let thresholds = |first: u32, second: u32| {
        let load = format!("[host.\"{own}\"]\nslots = 1\n[queue.normal]\nload = {{ mem = \"{first}/{second}\" }}\n");
        std::fs::write(c.host.path().join("new.toml"), load).unwrap();
        std::fs::rename(c.host.path().join("new.toml"), c.host.path().join("cluster.toml")).unwrap();
    };
    thresholds(1, 1);
    // The job must start no process. A shell whose child stops between fork and exec does not stop, but waits for
    // that child.
    let id = c.sub(0, &format!("cd {there}; mkfifo go; echo $$ > new; mv new pid; read line < go"));
    until("it runs", || c.host.path().join("pid").exists());
    let stands = || {
        let pid = std::fs::read_to_string(c.host.path().join("pid")).unwrap();
        let status = std::fs::read_to_string(format!("/proc/{}/status", pid.trim())).unwrap();
        status.lines().any(|line| line.starts_with("State:\tT"))
    };
    thresholds(1, 900_000_000);
    until("it stands still, and that is told", || stands() && c.state(0, &id)["state"] == "SSUSP");
    thresholds(1, 1);
    until("it goes on, and that is told", || !stands() && c.state(0, &id)["state"] == "RUN");
    std::fs::write(c.host.path().join("go"), "on\n").unwrap();
    assert_eq!(c.at(0, &["wait", &id]).status.code(), Some(0));
}
