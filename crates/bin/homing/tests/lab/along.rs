//! `homing check` and `homing up` along a tree of hosts. Needs root; otherwise prints a note and is skipped.

use crate::setup::{Up, failed};
use crate::support::{EXE, Lab, err, missing};
use crate::until::until;
use serde_json::{Value, json};
use std::fs;
use std::process::{Child, Command, Output, Stdio};

const HOSTS: usize = 8;

const AREAS: &str = r#"
[up]
[up.user.carla]
uid = 3901
[up.sysctl]
"net.core.somaxconn" = "4321"
[up.limits]
nofile = "321:4321"
"#;

fn name(n: usize) -> String {
    format!("n{n}")
}

fn hosts() -> impl Iterator<Item = String> {
    (1..=HOSTS).map(name)
}

/// Writes the cluster file with the address of each host.
fn write_cluster(up: &Up) {
    let config = fs::read_to_string(format!("/var/lib/homing/labs/{}/ssh_config", up.lab.name)).unwrap();
    let words: Vec<&str> = config.split_whitespace().collect();
    let address = |host: &String| {
        let at = words.windows(2).position(|pair| pair == ["Host", host.as_str()]).unwrap();
        let host_name = words[at..].iter().position(|word| *word == "HostName").unwrap();
        words[at + host_name + 1].to_string()
    };
    let each: String =
        hosts().map(|h| format!("[host.{h}]\naddresses = {{ manage = \"{}\" }}\n", address(&h))).collect();
    fs::write(up.state.path().join("c.toml"), format!("hosts = \"n[1-{HOSTS}]\"\n{each}{AREAS}")).unwrap();
}

fn check(up: &Up, words: &[&str]) -> Command {
    let mut command = Command::new(EXE);
    // A machine that is busy with other tests is no dead host, and no slow login, clock or link either. So the areas
    // that depend on times are left out.
    command.args(["check", "-w", "n[1-8]", "--only", "users,mounts", "--json"]);
    command.args(["--persist", "0", "--connect-timeout", "60"]);
    command.args(words);
    if !words.contains(&"--deadline") {
        command.args(["--deadline", "60"]);
    }
    up.as_called(&mut command);
    command
}

/// Returns the findings, the unknowns and the exit status; also standard error.
fn found(output: &Output) -> (Value, String) {
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(output)));
    let findings = told["findings"].as_array().unwrap().iter();
    let rows: Vec<Value> = findings.map(|f| json!([f["code"], f["hosts"], f["what"]])).collect();
    (json!([rows, told["hosts"], told["unknown"], told["exit"]]), err(output))
}

/// The beginning of the note on hosts that were served directly.
const NOTE: &str = "homing: served directly, not through the tree: n";

fn told_once(said: &str) -> bool {
    said.starts_with(NOTE) && said.lines().count() == 1
}

/// Replaces a program on a host for one call. A call with this first word marks that it has begun, and waits for the
/// gate.
fn holds_up(lab: &Lab, host: &str, program: &str, word: &str) {
    let held = "rm $0; : > /srv/begun; read x < /srv/gate";
    let script = format!(
        "#!/bin/sh\\n[ \"$1\" != {word} ] || {{ {held}; }}\\nexec /usr/bin/env -i PATH=/usr/sbin:/usr/bin {program} \"$@\"\\n"
    );
    let path = format!("/usr/local/bin/{program}");
    lab.ok(host, &format!("mkfifo /srv/gate; printf '{script}' > {path}; chmod 755 {path}"));
}

fn until_held_up(lab: &Lab, host: &str) {
    until("the host is held up", || lab.told(host, "rm /srv/begun").0 == Some(0));
}

fn let_go(lab: &Lab, host: &str) {
    lab.ok(host, "timeout 60 sh -c 'echo > /srv/gate'; rm /srv/gate");
}

fn lose_leader(lab: &Lab, host: &str, signal: &str) {
    lab.ok(host, &format!("pkill -{signal} -f '[t]ree-host'"));
}

fn piped(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn checks_and_steps_come_to_the_same_along_a_tree_whatever_leaders_do() {
    if missing(&["systemd-nspawn", "pkill"]) {
        return;
    }
    let up = Up { lab: Lab::up("along", &["--hosts", "8"]), state: tempfile::tempdir().unwrap() };
    write_cluster(&up);
    the_same_is_found(&up);
    a_check_whose_leader_is_lost(&up);
    a_host_that_hangs_is_asked_once(&up);
    hosts_without_a_way_to_each_other(&up);
    steps_whose_leader_is_killed(&up);
    all_is_as_wanted(&up);
}

fn the_same_is_found(up: &Up) {
    let lab = &up.lab;
    lab.ok("n3", "useradd -u 3001 eve");
    lab.ok("n5", "useradd -u 3002 eve");
    lab.ok("n7", "mv /root/.ssh/authorized_keys /root/keys");
    let straight = found(&check(up, &["--tree", "0"]).output().unwrap());
    let led = found(&check(up, &["--tree", "4"]).output().unwrap());
    lab.ok("n7", "mv /root/keys /root/.ssh/authorized_keys");
    assert!(straight.0.to_string().contains("eve has number"), "{straight:?}");
    assert!(straight.0.to_string().contains("Permission denied"), "{straight:?}");
    assert_eq!((straight.0, straight.1.as_str()), (led.0, ""), "{}", led.1);
    // On a busy machine, homing connects to the host directly before its leader has reported that it is refused.
    assert!(led.1.is_empty() || led.1.starts_with(&format!("{NOTE}7: ")) && told_once(&led.1), "{}", led.1);
}

fn a_check_whose_leader_is_lost(up: &Up) {
    let lab = &up.lab;
    let straight = found(&check(up, &["--tree", "0"]).output().unwrap());
    for signal in ["KILL", "STOP"] {
        holds_up(lab, "n3", "id", "-u");
        let check = piped(&mut check(up, &["--tree", "4"]));
        until_held_up(lab, "n3");
        lose_leader(lab, "n1", signal);
        let led = found(&check.wait_with_output().unwrap());
        let_go(lab, "n3");
        assert_eq!(straight.0, led.0, "{signal}: {}", led.1);
        assert!(told_once(&led.1), "{signal}: {}", led.1);
    }
    lose_leader(lab, "n1", "KILL");
}

/// Checks that a host that hangs is queried once. Its leader reports that it still waits; a direct query would take
/// the deadline a second time. On a busy machine the host may send nothing for a quarter of the deadline. homing then
/// rightly queries it directly. So one of four attempts must have a single query.
fn a_host_that_hangs_is_asked_once(up: &Up) {
    let hangs = "#!/bin/sh\\n[ \"$1\" != -u ] || { echo >> /srv/asked; exec sleep 600; }\\nexec /usr/bin/id \"$@\"\\n";
    up.lab.ok("n3", &format!("printf '{hangs}' > /usr/local/bin/id; chmod 755 /usr/local/bin/id"));
    let was_asked_once = |_| {
        let (told, said) = found(&check(up, &["--tree", "4", "--deadline", "20"]).output().unwrap());
        assert_ne!(told[1][2]["status"], "answered", "{told}");
        let asked = up.lab.ok("n3", "pkill -x -f 'sleep 600'; cat /srv/asked | wc -l; rm -f /srv/asked");
        asked == "1\n" && said.is_empty()
    };
    assert!((0..4).any(was_asked_once));
    up.lab.ok("n3", "rm /usr/local/bin/id");
}

fn hosts_without_a_way_to_each_other(up: &Up) {
    hosts().for_each(|host| drop(up.lab.ok(&host, "mv /root/.ssh/id_ed25519 /root/key")));
    let plan = |tree: &str| up.up(&["--dry-run", "--json", "--tree", tree]);
    // With two levels of leaders, each lower leader might add a note of its own.
    let (straight, led) = (plan("0"), plan("4"));
    hosts().for_each(|host| drop(up.lab.ok(&host, "mv /root/key /root/.ssh/id_ed25519")));
    assert_eq!(straight.stdout, led.stdout);
    assert!(straight.stdout.windows(5).any(|word| word == b"carla"));
    assert_eq!(err(&straight), "");
    assert!(told_once(&err(&led)), "{}", err(&led));
    let led = plan("4");
    assert_eq!((straight.stdout, err(&led).as_str()), (led.stdout, ""));
}

/// A killed leader is like a connection that is cut. Hosts with an unknown state have failed, and the same command
/// continues.
fn steps_whose_leader_is_killed(up: &Up) {
    let lab = &up.lab;
    holds_up(lab, "n3", "sysctl", "-q");
    let command = piped(&mut up.command(&["--tree", "4", "--no-check", "--json"]));
    until_held_up(lab, "n3");
    lose_leader(lab, "n1", "KILL");
    let done = command.wait_with_output().unwrap();
    let told: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", err(&done)));
    let why = failed(&told, "n3").join("\n");
    assert!(why.contains("the command may or may not have run: n1 no longer leads its branch"), "{told}");
    assert!(
        hosts().all(|host| ["n2", "n3", "n4"].contains(&host.as_str()) || failed(&told, &host).is_empty()),
        "{told}"
    );
    assert_eq!(told["exit"], 254);
    // The step that has begun there comes to its end.
    let_go(lab, "n3");
    until("the step is done", || lab.ok("n3", "sysctl -n net.core.somaxconn") == "4321\n");
}

fn all_is_as_wanted(up: &Up) {
    // Here a leader has a leader, n3, which must carry out the remaining steps as any other host.
    let done = up.up(&["--tree", "2", "--no-check"]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    for host in hosts() {
        let look = "id -u carla; sysctl -n net.core.somaxconn; grep -l carla /var/lib/homing/up/* | wc -l; true";
        let said = up.lab.ok(&host, look);
        assert!(said.starts_with("3901\n4321\n"), "{host}: {said}");
        up.lab.ok(&host, "! pgrep -f '[t]ree-host' && ! ls -d /var/tmp/homing-tree-* 2>/dev/null");
    }
    let again = up.json(&["--tree", "4", "--no-check"]);
    assert_eq!((again["steps"].as_u64(), again["exit"].as_i64()), (Some(0), Some(0)), "{again}");
    assert_eq!(up.json(&["--undo", "--tree", "4"])["exit"], 0);
    hosts().for_each(|host| drop(up.lab.ok(&host, "! id carla 2>/dev/null && ! ls /var/lib/homing/up 2>/dev/null")));
}
