//! Files along a tree of hosts. Needs root; otherwise prints a note and is skipped.

use crate::setup::Up;
use crate::support::{EXE, Lab, err, missing};
use crate::until::until;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Bytes of the file that is pushed.
const SIZE: u64 = 20_000_000;

struct World {
    up: Up,
    file: PathBuf,
    hosts: Vec<String>,
}

impl World {
    fn push(&self, words: &[&str]) -> Command {
        let mut command = Command::new(EXE);
        command.args(["push", "-w", "n[1-8]", "--json", "--dest", "/srv/"]).args(words).arg(&self.file);
        self.up.as_called(&mut command);
        command
    }

    fn pushed(&self, words: &[&str]) -> (Value, String) {
        read(&self.push(words).output().unwrap())
    }

    /// Writes a file that no host has.
    fn write_anew(&self) {
        let mut random = fs::File::open("/dev/urandom").unwrap();
        std::io::copy(&mut std::io::Read::take(&mut random, SIZE), &mut fs::File::create(&self.file).unwrap()).unwrap();
    }

    /// Checks that each host has the file, and no process or folder of homing.
    fn has_it_and_nothing_else(&self) {
        let sum = Command::new("sha256sum").arg(&self.file).output().unwrap();
        let sum = String::from_utf8(sum.stdout).unwrap()[..64].to_string();
        for host in &self.hosts {
            assert_eq!(&self.up.lab.ok(host, "sha256sum /srv/data")[..64], sum, "{host}");
            until("the host has nothing left", || !self.is_at_work(host));
        }
    }

    fn is_at_work(&self, host: &str) -> bool {
        self.up.lab.told(host, "pgrep -f '[t]ree-host|[r]sync ' || ls -d /var/tmp/homing-tree-*").0 == Some(0)
    }

    /// Replaces the next rsync of a host by one that marks its begin and discards the data.
    fn holds_up(&self, host: &str) {
        let script = "#!/bin/sh\\nrm /usr/local/bin/rsync; : > /srv/begun; exec cat > /dev/null\\n";
        self.up.lab.ok(host, &format!("printf '{script}' > /usr/local/bin/rsync; chmod 755 /usr/local/bin/rsync"));
    }

    fn until_held_up(&self, host: &str) {
        until("the host is held up", || self.up.lab.told(host, "rm /srv/begun").0 == Some(0));
    }

    /// Returns the bytes that this machine has sent to the lab.
    fn sent(&self) -> u64 {
        let config = fs::read_to_string(format!("/var/lib/homing/labs/{}/ssh_config", self.up.lab.name)).unwrap();
        let address = config.split_whitespace().skip_while(|word| *word != "HostName").nth(1).unwrap();
        let route = Command::new("ip").args(["-o", "route", "get", address]).output().unwrap();
        let route = String::from_utf8(route.stdout).unwrap();
        let link = route.split_whitespace().skip_while(|word| *word != "dev").nth(1).unwrap();
        let count = fs::read_to_string(format!("/sys/class/net/{link}/statistics/tx_bytes")).unwrap();
        count.trim().parse().unwrap()
    }
}

fn read(output: &Output) -> (Value, String) {
    let told = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(output)));
    (told, err(output))
}

/// Returns the sender of each host's files; this machine is "".
fn givers(told: &Value) -> Vec<&str> {
    told["hosts"].as_array().unwrap().iter().map(|row| row["by"].as_str().unwrap_or("")).collect()
}

#[test]
fn files_leave_this_machine_once_for_each_leader_and_reach_all_whatever_leaders_do() {
    if missing(&["systemd-nspawn", "rsync", "pgrep", "ip"]) {
        return;
    }
    let up = Up { lab: Lab::up("tree", &["--hosts", "8"]), state: tempfile::tempdir().unwrap() };
    let file = up.state.path().join("data");
    let world = World { up, file, hosts: (1..=8).map(|n| format!("n{n}")).collect() };
    world.write_anew();
    few_bytes_leave_this_machine(&world);
    a_leader_that_reaches_nobody(&world);
    a_leader_that_is_killed(&world);
    nothing_is_at_work_after_the_push(&world);
    commands_go_the_same_way(&world);
    a_command_is_not_run_twice_when_its_leader_is_killed(&world);
    a_command_ends_with_the_program_that_asked_for_it(&world);
    a_leader_that_tells_of_others(&world);
}

fn few_bytes_leave_this_machine(world: &World) {
    // The first call carries the program to the leaders.
    let (told, said) = world.pushed(&["--tree", "2", "--dry-run"]);
    assert_eq!((&told["exit"], &told["sent_bytes"]), (&0.into(), &0.into()), "{said}");
    world.pushed(&["--tree", "2"]);
    world.has_it_and_nothing_else();
    world.write_anew();
    let before = world.sent();
    let (told, said) = world.pushed(&["--tree", "2", "--verify"]);
    let sent = world.sent() - before;
    assert_eq!((&told["exit"], said.as_str()), (&0.into(), ""), "{told}");
    assert_eq!(givers(&told), ["", "n1", "n1", "n1", "", "n5", "n5", "n5"]);
    // The file goes to two of eight hosts. ssh and the comparison add the rest.
    assert!((2 * SIZE..2 * SIZE + SIZE / 2).contains(&sent), "{sent}");
    assert!((2 * SIZE..2 * SIZE + SIZE / 100).contains(&told["sent_bytes"].as_u64().unwrap()), "{told}");
    world.has_it_and_nothing_else();
    // Files that leaders already have are not sent to them again.
    let (told, _) = world.pushed(&["--tree", "2"]);
    assert_eq!((&told["exit"], &told["sent_bytes"]), (&0.into(), &0.into()));
    assert!(told["hosts"].as_array().unwrap().iter().all(|row| row["changed"] == 0), "{told}");
}

fn a_leader_that_reaches_nobody(world: &World) {
    let lab = &world.up.lab;
    lab.ok("n1", "mv /root/.ssh/id_ed25519 /root/key");
    world.write_anew();
    let (told, said) = world.pushed(&["--tree", "4"]);
    lab.ok("n1", "mv /root/key /root/.ssh/id_ed25519");
    assert_eq!(told["exit"], 0, "{said}");
    assert_eq!(givers(&told), ["", "", "", "", "", "n5", "n5", "n5"], "{said}");
    assert!(said.starts_with("homing: served directly, not through the tree: n[2-4] (3): host n[2-4] "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    world.has_it_and_nothing_else();
}

fn a_leader_that_is_killed(world: &World) {
    world.write_anew();
    world.holds_up("n3");
    let push = world.push(&["--tree", "4"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.until_held_up("n3");
    world.up.lab.ok("n1", "pkill -KILL -f '[t]ree-host'");
    let (told, said) = read(&push.wait_with_output().unwrap());
    assert_eq!(told["exit"], 0, "{said}");
    let note = "served directly, not through the tree: n";
    assert!(said.contains(note) && said.contains("n1 no longer leads its branch: its connection has ended"), "{said}");
    assert_eq!(said.matches(note).count(), 1, "{said}");
    assert_eq!((givers(&told)[2], givers(&told)[7]), ("", "n5"), "{told}");
    // The guard of the leader was killed too. The next leader there removes the folder.
    assert_eq!(world.pushed(&["--tree", "4"]).0["exit"], 0);
    world.has_it_and_nothing_else();
}

fn nothing_is_at_work_after_the_push(world: &World) {
    world.write_anew();
    world.holds_up("n3");
    let mut push = world.push(&["--tree", "4"]).stdout(Stdio::null()).spawn().unwrap();
    world.until_held_up("n3");
    push.kill().unwrap();
    push.wait().unwrap();
    world.hosts.iter().for_each(|host| until("the host has nothing left", || !world.is_at_work(host)));
    assert_eq!(world.pushed(&["--tree", "4"]).0["exit"], 0);
    world.has_it_and_nothing_else();
}

/// Checks the input that a command of `homing exec` has read, and its end, by host.
fn commands_go_the_same_way(world: &World) {
    fs::write(&world.file, "given to all\n").unwrap();
    let exec = |words: &[&str]| {
        let mut command = Command::new(EXE);
        command.args(["exec", "-w", "n[1-8]", "--tree", "2"]).args(words);
        let command = world.up.as_called(&mut command).stdin(fs::File::open(&world.file).unwrap());
        command.output().unwrap()
    };
    let told = exec(&["-S", "cat; hostname; test $(hostname) != n4 || exit 7"]);
    let said = String::from_utf8(told.stdout.clone()).unwrap();
    let mut said: Vec<&str> = said.lines().collect();
    // Sorts by host; each host's lines stay in their order.
    said.sort_by_key(|line| line.split(':').next().unwrap().to_string());
    let lines: String = (1..=8).map(|n| format!("n{n}: given to all\nn{n}: n{n}\n")).collect();
    assert_eq!(said, lines.lines().collect::<Vec<_>>(), "{}", err(&told));
    assert_eq!((told.status.code(), err(&told).as_str()), (Some(7), "homing: n4: exited with exit code 7\n"));
    let (told, said) = read(&exec(&["--json", "hostname >&2"]));
    assert_eq!(said, "");
    for row in told["hosts"].as_array().unwrap() {
        let host = row["host"].as_str().unwrap();
        let leader = if host < "n5" { "n1" } else { "n5" };
        assert_eq!(row["by"].as_str(), (host != leader).then_some(leader), "{told}");
        assert_eq!(row["stderr"], format!("{host}\n"), "{told}");
    }
    // Daemons go on after the command, also on hosts that led.
    exec(&["setsid sleep 4321 >/dev/null 2>&1 &"]);
    let (told, _) = read(&exec(&["--json", "pkill -cx -f 'sleep 4321'"]));
    let ended = told["hosts"].as_array().unwrap().iter().map(|row| row["stdout"].as_str());
    assert_eq!(ended.collect::<Vec<_>>(), [Some("1\n"); 8], "{told}");
}

/// Starts a command on all hosts that marks when it has begun, and ends with its input.
fn begun_everywhere(world: &World) -> std::process::Child {
    let mut command = Command::new(EXE);
    let line = "echo ran >> /srv/ran; : > /srv/begun; exec cat > /dev/null";
    command.args(["exec", "-w", "n[1-8]", "--tree", "4", "--json", line]);
    world.hosts.iter().for_each(|host| drop(world.up.lab.ok(host, "rm -f /srv/ran")));
    let command = world.up.as_called(&mut command).stdin(Stdio::piped());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    world.hosts.iter().for_each(|host| world.until_held_up(host));
    child
}

fn a_command_is_not_run_twice_when_its_leader_is_killed(world: &World) {
    let mut exec = begun_everywhere(world);
    world.up.lab.ok("n1", "pkill -KILL -f '[t]ree-host'");
    // The input of the commands behind other leaders has not ended, so they go on.
    world.hosts[1..4].iter().for_each(|host| until("the command ends", || !is_reading(world, host)));
    assert!(world.hosts[4..].iter().all(|host| is_reading(world, host)));
    drop(exec.stdin.take());
    let (told, said) = read(&exec.wait_with_output().unwrap());
    assert_eq!(told["exit"], 254, "{said}");
    for row in told["hosts"].as_array().unwrap() {
        let lost = row["host"].as_str().unwrap() < "n5";
        assert_eq!(row["outcome"], if lost { "lost" } else { "ok" }, "{told}");
        assert!(!lost || row["reason"].as_str().unwrap().contains("n1 no longer leads its branch"), "{told}");
    }
    world.hosts.iter().for_each(|host| assert_eq!(world.up.lab.ok(host, "cat /srv/ran"), "ran\n", "{host}"));
}

fn is_reading(world: &World, host: &str) -> bool {
    world.up.lab.told(host, "pgrep -x cat").0 == Some(0)
}

fn a_command_ends_with_the_program_that_asked_for_it(world: &World) {
    let mut exec = begun_everywhere(world);
    exec.kill().unwrap();
    exec.wait().unwrap();
    for host in &world.hosts {
        until("the command ends", || !is_reading(world, host));
        until("the host has nothing left", || !world.is_at_work(host));
    }
}

fn a_leader_that_tells_of_others(world: &World) {
    world.write_anew();
    crate::setup::lies(&world.up.lab, "n1", r#"s/"begun":1\b/"begun":4/g"#);
    let (told, said) = world.pushed(&["--tree", "4"]);
    assert_eq!(told["exit"], 0, "{said}");
    assert!(said.contains("n1 no longer leads its branch: it reports a host that is not in its branch"), "{said}");
    assert_eq!((givers(&told)[1], &givers(&told)[4..]), ("", &["", "n5", "n5", "n5"][..]), "{told}");
    world.has_it_and_nothing_else();
}
