//! Hosts that do not answer, and this host as Slurm checks it, over real OpenSSH without a lab.

use crate::script::script;
use crate::sshd::Sshd;
use crate::support::{EXE, err};
use serde_json::Value;
use std::process::{Command, Output};

/// Hosts that are all this machine, and one whose connection is open but sends nothing.
struct World(Sshd);

impl World {
    fn new() -> Option<World> {
        let world = World(Sshd::new()?);
        let hosts = format!(
            "Match originalhost deaf\n  ProxyCommand sleep 600\nMatch originalhost n*\n  ProxyCommand {}",
            world.0.proxy()
        );
        world.0.client("user", &hosts);
        Some(world)
    }

    fn check(&self, words: &[&str]) -> Output {
        let mut command = Command::new(EXE);
        command
            .args(["check", "--persist", "5", "--only", "disks", "-o"])
            .arg(format!("-F {}", self.0.path("user_config").display()));
        command.env("XDG_RUNTIME_DIR", self.0.0.path()).env("XDG_STATE_HOME", self.0.0.path()).env_remove("HOMING_SSH");
        command.env("SHELL", "/bin/sh").current_dir(self.0.0.path()).args(words).output().unwrap()
    }
}

#[test]
fn a_host_that_says_nothing_holds_up_nobody() {
    let Some(world) = World::new() else { return };
    let output = world.check(&["-w", "n[1-8],deaf", "--json", "--deadline", "60"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let silent: Vec<&Value> = told["hosts"].as_array().unwrap().iter().filter(|h| h["status"] == "silent").collect();
    assert_eq!(silent.len(), 1, "{told}");
    assert_eq!((&silent[0]["host"], output.status.code()), (&"deaf".into(), Some(3)));
}

/// The host `late` answers late during the first session, and at once in the later one that reads the clock alone.
#[test]
fn a_host_that_answered_late_has_no_wrong_clock_and_one_that_is_behind_has() {
    let Some(world) = World::new() else { return };
    let at = |name: &str| world.0.path(name).display().to_string();
    let late = "[ -e $0.first ] || echo $session >$0.first; [ $session != $(cat $0.first) ] || sleep 2";
    let mut hosts = format!("Match originalhost n*\n  ProxyCommand {}\n", world.0.proxy());
    for (name, shift, then) in [("late", "now", late), ("behind", "-1 hour", ":")] {
        let bin = world.0.path(name);
        std::fs::create_dir(&bin).unwrap();
        let session = "session=$(cut -d' ' -f6 /proc/self/stat)";
        script(&bin.join("date"), &format!("said=$(/bin/date -d '{shift}' \"$@\"); {session}; {then}\necho \"$said\""));
        let config = std::fs::read_to_string(at("sshd_config")).unwrap();
        let path = format!("SHLVL=1 PATH={}:/usr/bin:/bin", bin.display());
        std::fs::write(at(&format!("{name}_sshd")), config.replace("SHLVL=1", &path)).unwrap();
        let proxy = world.0.proxy().replace("/sshd_config", &format!("/{name}_sshd"));
        hosts += &format!("Match originalhost {name}\n  ProxyCommand {proxy}\n");
    }
    world.0.client("user", &hosts);
    let output = world.check(&["-w", "n[1-3],late,behind", "--only", "clocks", "--json", "--deadline", "60"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = told["findings"].as_array().unwrap().iter().filter(|f| f["code"].as_str().unwrap().contains("CLOCK"));
    let found: Vec<(&Value, &Value)> = found.map(|f| (&f["code"], &f["hosts"])).collect();
    assert_eq!(found, [(&"HC-CLOCK-01".into(), &serde_json::json!(["behind"]))], "{told:#}");
    assert!(std::path::Path::new(&at("late/date.first")).exists(), "it was late");
}

#[test]
fn what_is_asked_of_nobody() {
    let Some(world) = World::new() else { return };
    let told = Command::new(EXE).args(["check", "--explain", "hc-disk-06"]).output().unwrap();
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.starts_with("HC-DISK-06: not all users can write to /tmp") && told.contains("chmod 1777"), "{told}");
    assert_eq!(world.check(&["--explain", "HC-NONE-01"]).status.code(), Some(255));
    assert_eq!(world.check(&["--mute", "HC-DISK-06"]).status.code(), Some(255), "without a reason");
}

/// Scripts on this machine replace Slurm's commands and the kernel's log.
#[test]
fn a_node_drains_itself_and_comes_back() {
    let Some(world) = World::new() else { return };
    let bin = world.0.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let program = |name: &str, text: &str| script(&bin.join(name), text);
    let log = world.0.path("log");
    program("scontrol", &format!("printf '%s|' \"$@\" >> {}", log.display()));
    let health = || {
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(EXE);
        command.args(["check", "--slurm-health", "--only", "memory", "--deadline", "60"]).env("PATH", path);
        command.env("XDG_STATE_HOME", world.0.0.path()).env("SLURMD_NODENAME", "n7");
        let output = command.output().unwrap();
        let told = std::fs::read_to_string(&log).unwrap_or_default();
        let _ = std::fs::remove_file(&log);
        (output.status.code(), told, err(&output))
    };
    program("sinfo", "echo 'idle|none'");
    program("dmesg", "echo 'mce: [Hardware Error]: CPU 2: Machine Check: 0'");
    let (status, told, said) = health();
    let reason = "homing check: HC-MEM-06 the processor reports a machine check (1 line)";
    assert_eq!((status, told), (Some(2), format!("update|NodeName=n7|State=DRAIN|Reason={reason}|")), "{said}");
    program("sinfo", &format!("echo 'drained|{reason}'"));
    assert_eq!(health().1, "", "it is drained already");
    program("dmesg", "true");
    let (_, told, said) = health();
    assert_eq!(told, "update|NodeName=n7|State=RESUME|", "{said}");
}
