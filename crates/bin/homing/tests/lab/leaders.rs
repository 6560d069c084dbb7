//! Workers of a run behind leaders. Needs root; otherwise prints a note and is skipped.

use crate::setup::Up;
use crate::support::{EXE, Lab, err, missing};
use crate::until::until;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

const TASKS: usize = 10_000;

/// Writes a line when it begins and when it ends. A long task also writes lines in between.
const TASK: &str = "say() { echo {} $1 $EPOCHREALTIME >> /srv/ran; }; say begins; \
                    if [ $(( {} % 100 )) = 0 ]; then for i in 1 2 3 4 5 6 7 8 9; do sleep 0.1; say is; done; fi; say done";

struct World {
    up: Up,
    hosts: Vec<String>,
}

/// A run's record.
struct LeadersRun {
    events: Vec<Value>,
    said: String,
    status: Option<i32>,
}

impl World {
    fn run(&self, words: &[&str]) -> Child {
        let mut command = Command::new(EXE);
        command.args(["run", "--hosts", "n[1-8]"]).args(words).current_dir("/");
        let command = self.up.as_called(&mut command).env("HOMING_SHELL", "/bin/bash").env("HOMING_RUNS", self.runs());
        let _ = fs::remove_dir_all(self.runs());
        self.hosts.iter().for_each(|host| drop(self.up.lab.ok(host, ": > /srv/ran")));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn runs(&self) -> PathBuf {
        self.up.state.path().join("runs")
    }

    /// Waits until no process of the run is left on any host. Returns its record.
    fn told(&self, run: Child) -> LeadersRun {
        let output: Output = run.wait_with_output().unwrap();
        for host in &self.hosts {
            let at_work = || self.up.lab.told(host, "pgrep -f '/worker-[^ ]* (lead|worker)'").0 == Some(0);
            until("the host has nothing left", || !at_work());
        }
        let folder = fs::read_dir(self.runs()).unwrap().next().unwrap().unwrap().path();
        let journal = fs::read_to_string(folder.join("journal.jsonl")).unwrap();
        let events = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        LeadersRun { events, said: err(&output), status: output.status.code() }
    }

    /// Reads the lines of tasks. Returns when each of their executions was first and last seen, in seconds.
    fn executions(&self) -> BTreeMap<usize, Vec<(f64, f64)>> {
        let mut seen: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
        for host in &self.hosts {
            for line in self.up.lab.ok(host, "cat /srv/ran").lines() {
                let [task, what, at] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
                let (task, at): (usize, f64) = (task.parse().unwrap(), at.parse().unwrap());
                let executions = seen.entry(task).or_default();
                match what {
                    "begins" => executions.push((at, at)),
                    // Belongs to the last execution that began here. Lines of another host are read before or after.
                    _ => executions.last_mut().unwrap().1 = at,
                }
            }
        }
        seen
    }

    /// Counts the ssh processes of a run.
    fn ssh_of(run: &Child) -> usize {
        let of = |pid: u32| {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
            let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
            children.flat_map(|line| line.split_whitespace().map(String::from).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        let is_ssh = |pid: &String| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm == "ssh\n");
        of(run.id()).iter().filter(|pid| is_ssh(pid)).count()
    }

    /// Starts a run that holds its hosts until it is let go. Returns the number of its ssh processes meanwhile, and
    /// its record.
    fn held(&self, words: &[&str]) -> (usize, LeadersRun) {
        let line = "echo {} > /srv/ran; until [ ! -s /srv/ran ]; do sleep 0.05; done";
        let run = self.run(&[words, &["-j1", line, ":::", "1", "2", "3", "4", "5", "6", "7", "8"]].concat());
        for host in &self.hosts {
            until("each host has a task", || !self.up.lab.ok(host, "cat /srv/ran").is_empty());
        }
        let count = World::ssh_of(&run);
        self.hosts.iter().for_each(|host| drop(self.up.lab.ok(host, ": > /srv/ran")));
        (count, self.told(run))
    }
}

impl LeadersRun {
    fn of<'t>(&'t self, event: &str) -> impl Iterator<Item = &'t Value> {
        self.events.iter().filter(move |told| told["event"] == event)
    }

    /// Checks that each task has one last end, and that it is a success.
    fn all_ended_once(&self, tasks: usize) {
        assert_eq!(self.status, Some(0), "{}", self.said);
        let mut ends = vec![0; tasks];
        for end in self.of("task_ended").filter(|end| end["last"] == true) {
            assert_eq!(end["outcome"], serde_json::json!({"exit": 0}), "{end}");
            ends[end["task"].as_u64().unwrap() as usize - 1] += 1;
        }
        assert!(ends.iter().all(|count| *count == 1), "none is lost, none ends twice");
    }
}

#[test]
fn a_run_has_few_connections_and_loses_no_task_with_a_leader() {
    if missing(&["systemd-nspawn", "pgrep"]) {
        return;
    }
    let up = Up { lab: Lab::up("leaders", &["--hosts", "8"]), state: tempfile::tempdir().unwrap() };
    let world = World { up, hosts: (1..=8).map(|n| format!("n{n}")).collect() };
    connections_are_as_many_as_leaders(&world);
    a_leader_that_reaches_nobody(&world);
    a_leader_that_is_killed(&world);
    a_build_that_loses_a_leader_and_a_host(&world);
    a_build_whose_hosts_are_switched_off(&world);
}

fn connections_are_as_many_as_leaders(world: &World) {
    for (width, connections) in [("4", 2), ("0", 8)] {
        let (count, told) = world.held(&["-q", "--tree", width]);
        assert_eq!((count, told.said.as_str()), (connections, ""), "--tree {width}");
        told.all_ended_once(8);
    }
}

fn a_leader_that_reaches_nobody(world: &World) {
    world.up.lab.ok("n1", "mv /root/.ssh/id_ed25519 /root/key");
    let (count, told) = world.held(&["-q", "--tree", "4"]);
    world.up.lab.ok("n1", "mv /root/key /root/.ssh/id_ed25519");
    // Two leaders, and three hosts with a direct connection.
    assert_eq!(count, 5, "{}", told.said);
    told.all_ended_once(8);
    let note = "homing: connected directly, not through the tree: n[2-4] (3): host n[2-4] ";
    assert!(told.said.starts_with(note) && told.said.lines().count() == 1, "{}", told.said);
}

fn a_leader_that_is_killed(world: &World) {
    let numbers = world.up.state.path().join("numbers");
    fs::write(&numbers, (1..=TASKS).map(|n| format!("{n}\n")).collect::<String>()).unwrap();
    let run = world.run(&["-q", "--need-all-hosts", "--tree", "4", "-j4", "-a", numbers.to_str().unwrap(), TASK]);
    let lines = |host: &str| world.up.lab.ok(host, "wc -l < /srv/ran").trim().parse::<usize>().unwrap();
    until("tasks run", || lines("n3") > TASKS / 20);
    // n4 refuses further connections from this machine: it is reported, and the others go on.
    world.up.lab.ok("n4", "mv /root/.ssh/authorized_keys /root/keys");
    // The guard ends too, so no process is left on that host to end the leader's children.
    world.up.lab.ok("n1", "pkill -KILL -f '/worker-[^ ]* [l]ead'");
    let told = world.told(run);
    told.all_ended_once(TASKS);
    let note = "homing: connected directly, not through the tree: n[1-4] (4): n1 no longer leads its branch: its \
        connection has ended";
    assert!(told.said.contains(note) && told.said.contains("homing: host n4 refuses the login"), "{}", told.said);
    assert_eq!(told.said.lines().count(), 2, "{}", told.said);
    // The hosts of its branch came back, and no other host was lost.
    let hosts = |event| told.of(event).map(|told| told["host"].as_str().unwrap()).collect::<Vec<_>>();
    let mut lost = hosts("host_lost");
    lost.sort();
    assert_eq!(lost, ["n1", "n2", "n3", "n4"]);
    let mut back = hosts("host_up").split_off(8);
    back.sort();
    assert_eq!(back, ["n1", "n2", "n3"]);
    let cut = told.of("task_ended").filter(|end| end["outcome"].get("lost").is_some()).count();
    assert!(cut > 0, "some ran there");
    let executions = world.executions();
    assert_eq!(executions.len(), TASKS);
    for (task, mut seen) in executions {
        seen.sort_by(|a, b| a.partial_cmp(b).unwrap());
        assert!(seen.windows(2).all(|pair| pair[0].1 < pair[1].0), "task {task} ran twice at once: {seen:?}");
    }
}

/// A build that gives each host one recipe, until all are let go.
struct Held<'w> {
    world: &'w World,
    build: Child,
}

impl Held<'_> {
    fn begin(world: &World) -> Held<'_> {
        let lab = &world.up.lab;
        // The folder is not shared. It has the same path on each host.
        let folder = world.up.state.path().join("build");
        let _ = fs::create_dir(&folder);
        let recipe = "echo $@ >> /srv/ran; until [ -e /srv/go ]; do sleep 0.05; done; echo $@ made";
        let targets = "1 2 3 4 5 6 7 8";
        fs::write(folder.join("Makefile"), format!("all: {targets}\n{targets}:\n\t@{recipe}\n")).unwrap();
        fs::write(folder.join("cluster.toml"), "[host.\"n[1-8]\"]\nslots = 1\n").unwrap();
        for host in &world.hosts {
            lab.ok(host, &format!("mkdir -p {}; : > /srv/ran; rm -f /srv/go", folder.display()));
        }
        let mut make = Command::new(EXE);
        make.args([
            "make",
            "--hosts",
            "n[1-8]",
            "--cluster",
            "cluster.toml",
            "--tree",
            "4",
            "--assume-shared",
            "-s",
            "-j8",
        ]);
        let make = world.up.as_called(&mut make).current_dir(&folder).env("HOMING_RUNS", world.runs());
        let build = make.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let held = Held { world, build };
        until("each host has a recipe", || world.hosts.iter().all(|host| held.ran(host) == 1));
        assert_eq!(World::ssh_of(&held.build), 2);
        held
    }

    fn ran(&self, host: &str) -> usize {
        self.world.up.lab.ok(host, "cat /srv/ran").lines().count()
    }

    /// Lets these hosts go. Checks that all is made once, and returns standard error.
    fn made(self, hosts: &[String]) -> String {
        hosts.iter().for_each(|host| drop(self.world.up.lab.ok(host, ": > /srv/go")));
        let output = self.build.wait_with_output().unwrap();
        let said = err(&output);
        let mut made: Vec<&str> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
        made.sort_unstable();
        assert_eq!(made, (1..=8).map(|n| format!("{n} made")).collect::<Vec<_>>(), "{said}");
        assert_eq!(output.status.code(), Some(0), "{said}");
        said
    }
}

fn told_once(said: &str, words: &str) {
    assert_eq!(said.matches(words).count(), 1, "{words}: {said}");
}

/// A leader and a worker are killed, while their hosts stay up.
fn a_build_that_loses_a_leader_and_a_host(world: &World) {
    let lab = &world.up.lab;
    lab.ok("n4", "mv /root/keys /root/.ssh/authorized_keys");
    let held = Held::begin(world);
    lab.ok("n1", "pkill -KILL -f '/worker-[^ ]* [l]ead'");
    until("its branch is connected to from here", || World::ssh_of(&held.build) == 5);
    lab.ok("n8", "pkill -KILL -f '/worker-[^ ]* [w]orker'");
    let again = || world.hosts.iter().map(|host| held.ran(host)).sum::<usize>() == 12;
    until("what ran on the branch runs again", again);
    let said = held.made(&world.hosts);
    told_once(
        &said,
        "homing make: connected directly, not through the tree: n[1-4] (4): n1 no longer leads its branch: ",
    );
    told_once(&said, "homing make: n8 gets no new tasks: ");
    told_once(&said, "homing make: n8 is lost: ");
}

/// The host of a leader loses its power, then a host of a branch.
fn a_build_whose_hosts_are_switched_off(world: &World) {
    let off = |host: &str| {
        let lab = ["lab", "off", "--name", &world.up.lab.name, host];
        assert!(Command::new(EXE).args(lab).status().unwrap().success(), "{host}");
    };
    let held = Held::begin(world);
    off("n1");
    let left: Vec<String> = world.hosts.iter().filter(|host| *host != "n1").cloned().collect();
    // Seven hosts have seven of the eight recipes. Three hosts of the branch had another one before.
    let again = || left.iter().map(|host| held.ran(host)).sum::<usize>() == 10;
    until("what ran on the branch runs again", again);
    off("n7");
    let left: Vec<String> = left.into_iter().filter(|host| host != "n7").collect();
    let said = held.made(&left);
    told_once(
        &said,
        "homing make: connected directly, not through the tree: n[1-4] (4): n1 no longer leads its branch: ",
    );
    told_once(&said, "homing make: host n1 cannot be reached: ");
    told_once(&said, "homing make: n7 is lost: ");
}
