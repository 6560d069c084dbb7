//! Plants faults in labs of three hosts. `homing check` must find them, and nothing else. Their remedies are pasted
//! as they were printed, and the hosts are clean again.

mod daemons;
mod faults;

use crate::support::{EXE, NO_PERL, err, missing};
use faults::{ALL, FAULTS, Fault, N3, Scripts, WORDS};
use homing_os::threads::lock;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard};

/// Allows one lab at a time: the load of another lab would look like a fault of the host.
static TURN: Mutex<()> = Mutex::new(());

/// Three hosts, and homing's state folder.
struct Lab {
    hosts: crate::support::Lab,
    state: tempfile::TempDir,
    /// After the hosts in this list, so that they are dropped first.
    _turn: MutexGuard<'static, ()>,
}

impl Lab {
    fn up(name: &str, words: &[&str]) -> Lab {
        let turn = lock(&TURN);
        let hosts = crate::support::Lab::up(name, &[&["--hosts", "3"], words].concat());
        Lab { _turn: turn, hosts, state: tempfile::tempdir().unwrap() }
    }

    /// Pastes a finding's command as it was printed. Returns it with its standard error.
    fn paste(&self, finding: &Value) -> String {
        let command = finding["command"].as_str().unwrap();
        let pasted = self.command("bash", "exec").args(["-c", command]).output().unwrap();
        format!("{command}: {}", err(&pasted))
    }

    fn run(&self, hosts: &str, script: &str) {
        for host in hosts.split(' ') {
            self.hosts.ok(host, &format!("{WORDS}\n{script}"));
        }
    }

    /// Returns a command with homing in its path, and a way to the hosts.
    fn command(&self, program: &str, connections: &str) -> Command {
        let config = PathBuf::from("/var/lib/homing/labs").join(&self.hosts.name).join("ssh_config");
        let folder = self.state.path().join(connections);
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new(program);
        let path = format!("{}:{}", Path::new(EXE).parent().unwrap().display(), std::env::var("PATH").unwrap());
        command.env("HOMING_SSH", format!("ssh -F {}", config.display())).env("PATH", path);
        command.env("XDG_STATE_HOME", self.state.path()).env("XDG_RUNTIME_DIR", folder).env_remove("HOMING_CLUSTER");
        command.env_remove("HOMING_VOLUMES");
        command
    }

    /// Uses new connections each time: limits are those of a new login.
    fn check(&self, words: &[&str]) -> Output {
        let mut command = self.command(EXE, "check");
        // A machine that is busy with other tests is no dead host. A mount that hangs takes two fifths of the
        // deadline.
        command.args(["check", "--persist", "0", "--deadline", "60", "-w", "n[1-3]"]).args(words).output().unwrap()
    }

    fn findings(&self) -> Vec<Value> {
        let output = self.check(&["--json"]);
        let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)));
        assert!(
            told["unknown"].as_array().unwrap().iter().all(|u| u["what"].as_str().unwrap().contains("(dns)")),
            "{told}"
        );
        told["findings"].as_array().unwrap().clone()
    }
}

fn shown(found: &[Value]) -> Vec<String> {
    let row = |f: &Value| format!("{} on {}: {}", f["code"].as_str().unwrap(), f["hosts"], f["what"]);
    found.iter().map(row).collect()
}

#[test]
fn planted_faults_are_found_and_mended_as_printed() {
    if missing(&["systemd-nspawn", "sshd", "bindfs"]) {
        return;
    }
    let lab = Lab::up("chk", &[]);
    // The kernel's log is the whole machine's. Lines from before this host booted belong to another host.
    lab.run(N3, "fake dmesg '[    0.500000] I/O error, dev sdb, sector 8'");
    assert_eq!(shown(&lab.findings()), [""; 0], "a clean lab");
    lab.run(N3, "unfake dmesg");
    lab.run(ALL, "for u in 3001:alice 3002:bob; do useradd -m -u ${u%:*} ${u#*:}; done; groupadd -g 4001 team; gpasswd -M alice team");
    clean_is_a_line_an_area(&lab);
    rounds().iter().for_each(|faults| planted(&lab, faults));
    assert_eq!(shown(&lab.findings()), [""; 0], "all is undone");
    a_clock_that_is_behind(&lab);
    a_mute_holds_for_its_host(&lab);
}

/// The deep check finds a slow link at n3. A stranger without the secret connects to its port, and gets nothing.
#[test]
fn hosts_under_load_are_compared() {
    if missing(&["systemd-nspawn", "sshd", "tc"]) {
        return;
    }
    let lab = Lab::up("chkd", &[]);
    lab.run(ALL, NO_PERL);
    lab.run(N3, "tc qdisc add dev host0 root tbf rate 100mbit burst 64k latency 50ms");
    let stranger =
        "until exec 3<> /dev/tcp/n3/47113; do sleep 0.05; done 2>/dev/null; head -c 9 <&3 | wc -c > /tmp/got";
    lab.run("n2", &format!("timeout 100 bash -c '{stranger}' > /dev/null 2>&1 &"));
    let output = lab.check(&["--deep=1", "--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)));
    for host in ["n1", "n2", "n3"] {
        for what in ["processors", "memory", "disk read", "disk randread", "network"] {
            assert!(told["measured"][host][what].as_f64().is_some_and(|rate| rate > 0.0), "{host}, {what}: {told}");
        }
    }
    // Hosts of one machine are no twins: another load may make further things slow there.
    let found = found_names(told["findings"].as_array().unwrap());
    assert!(found.contains(&"HC-NET-08 [\"n3\"]".into()), "{told}");
    assert!(!found.iter().any(|name| name.starts_with("HC-CPU-06")), "{told}");
    // Records of a cluster are in a folder of its ssh configuration.
    let clusters = std::fs::read_dir(lab.state.path().join("homing/clusters")).unwrap();
    let folder = clusters.into_iter().next().unwrap().unwrap().path();
    let kept = std::fs::read_to_string(folder.join("burn-in.json")).unwrap();
    assert!(kept.contains("\"n3\"") && kept.contains("disk randread"), "{kept}");
    lab.run(ALL, "! ss -ltn | grep :47113 && ! ls -d /dev/shm/homing-check* /var/tmp/homing-check* 2>/dev/null");
    lab.run("n2", "! [ -e /tmp/got ] || [ \"$(cat /tmp/got)\" = 0 ]");
}

/// Groups the faults into rounds. Faults that use the same thing are in different rounds.
fn rounds() -> Vec<Vec<&'static Fault>> {
    let mut rounds: Vec<Vec<&Fault>> = Vec::new();
    for (at, fault) in FAULTS.iter().enumerate() {
        let nth = FAULTS[..at].iter().filter(|f| !fault.uses.is_empty() && f.uses == fault.uses).count();
        rounds.resize_with(rounds.len().max(nth + 1), Vec::new);
        rounds[nth].push(fault);
    }
    rounds
}

/// Returns `CODE HOST` of each fault, sorted.
fn names<'a>(faults: impl Iterator<Item = &'a &'static Fault>) -> Vec<String> {
    let mut names: Vec<String> = faults.map(|f| format!("{} [\"{}\"]", f.code, f.on)).collect();
    names.sort();
    names
}

fn found_names(found: &[Value]) -> Vec<String> {
    let mut names: Vec<String> =
        found.iter().map(|f| format!("{} {}", f["code"].as_str().unwrap(), f["hosts"])).collect();
    names.sort();
    names
}

/// Plants all faults, checks, and pastes each remedy. Then checks that only the faults without a pasted remedy are
/// left, and removes the rest.
fn planted(lab: &Lab, faults: &[&'static Fault]) {
    let run = |scripts: Scripts| scripts.iter().for_each(|(hosts, script)| lab.run(hosts, script));
    faults.iter().for_each(|fault| run(fault.plant));
    let found = lab.findings();
    assert_eq!(found_names(&found), names(faults.iter()), "{:?}", shown(&found));
    let mut said = Vec::new();
    for fault in faults.iter().filter(|fault| fault.pasted) {
        let finding = found.iter().find(|f| f["code"] == fault.code).unwrap();
        assert_eq!(finding["mends"], true, "{}", fault.code);
        said.push(lab.paste(finding));
    }
    let after = lab.findings();
    let left = names(faults.iter().filter(|fault| !fault.pasted));
    assert_eq!(found_names(&after), left, "{:?} after {}", shown(&after), said.join("\n"));
    faults.iter().for_each(|fault| run(fault.undo));
}

fn clean_is_a_line_an_area(lab: &Lab) {
    let output = lab.check(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), text.lines().count()), (Some(0), 10), "{text}");
    assert!(text.lines().all(|line| line.ends_with("well on 3 hosts")), "{text}");
}

/// Loads the library of `tests/clock_shift.c` in every session of n3.
fn a_clock_that_is_behind(lab: &Lab) {
    let library = lab.state.path().join("shift.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/clock_shift.c");
    assert!(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status().unwrap().success());
    let push = ["push", "-w", "n3", "--dest", "/usr/local/lib/", library.to_str().unwrap()];
    assert!(lab.command(EXE, "exec").args(push).status().unwrap().success());
    let config = "SetEnv LD_PRELOAD=/usr/local/lib/shift.so CLOCK_SHIFT=-30";
    lab.run(N3, &format!("echo '{config}' > /etc/ssh/sshd_config.d/shift.conf; systemctl reload ssh; sleep 1"));
    let found = lab.findings();
    assert_eq!(found[0]["code"], "HC-CLOCK-01", "{:?}", shown(&found));
    // The round trip bounds how exactly the difference can be measured.
    let what = found[0]["what"].as_str().unwrap();
    let seconds = what.strip_prefix("its clock is ").and_then(|rest| rest.split_once(" s behind"));
    assert!(seconds.is_some_and(|(s, _)| (29.0..31.0).contains(&s.parse().unwrap())), "{:?}", shown(&found));
    lab.run(N3, "rm /etc/ssh/sshd_config.d/shift.conf; systemctl reload ssh; sleep 1");
    assert_eq!(shown(&lab.findings()), [""; 0]);
}

fn a_mute_holds_for_its_host(lab: &Lab) {
    let status = |words: &[&str]| lab.check(words).status.code();
    lab.run(N3, "touch /etc/nologin");
    let mut mute = lab.command(EXE, "check");
    mute.args(["check", "--mute", "hc-user-07", "-w", "n3", "--for", "1h", "--because", "it moves"]);
    assert!(mute.status().unwrap().success());
    let output = lab.check(&["--quick"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(0) && text.contains("muted: HC-USER-07 on n3: it moves"), "{text}");
    lab.run("n2", "touch /etc/nologin");
    assert_eq!(status(&["--only", "users"]), Some(2));
    lab.run("n2 n3", "rm /etc/nologin");
    assert_eq!(status(&["--only", "users"]), Some(0));
}
