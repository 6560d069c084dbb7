//! A site's commands switch idle hosts off and on. Here they switch hosts of a lab, whose power homing cuts. Needs
//! root; otherwise prints a note and is skipped.

use crate::support::{EXE, Lab, err, missing};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Site {
    lab: Lab,
    dir: tempfile::TempDir,
}

impl Site {
    /// Raises three hosts, of which the first stays on. The load is ignored, because it is that of the machine below
    /// them.
    fn up() -> Site {
        let (lab, dir) = (Lab::up("power", &["--hosts", "3"]), tempfile::tempdir().unwrap());
        let log = dir.path().display();
        let switch = |word: &str| {
            format!("{word} = \"echo {{host}} >>{log}/{word}; {EXE} lab {word} --name {} {{host}}\"\n", lab.name)
        };
        let hosts: String = (1..=3).map(|n| format!("[host.n{n}]\nslots = 2\n")).collect();
        let power = "[power]\nidle_min = 0\nidle_load = 1e6\nkeep = \"n1\"\n";
        fs::write(
            dir.path().join("cluster.toml"),
            format!("hosts = \"n[1-3]\"\n{hosts}{power}{}{}", switch("off"), switch("on")),
        )
        .unwrap();
        Site { lab, dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let config = Path::new("/var/lib/homing/labs").join(&self.lab.name).join("ssh_config");
        let mut command = Command::new(EXE);
        command.args(args).current_dir(self.dir.path()).env("HOMING_SSH", format!("ssh -F {}", config.display()));
        command.env("HOMING_CLUSTER", self.path("cluster.toml")).env("HOMING_POWER", self.path("power.json"));
        command.env("HOMING_RUNS", self.path("runs")).env("HOMING_QUEUE", self.path("queue"));
        command
    }

    fn homing(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = self.homing(args);
        assert!(output.status.success(), "{args:?}: {}", err(&output));
        String::from_utf8_lossy(&output.stdout).into_owned() + &err(&output)
    }

    /// Returns for each host whether it is on.
    fn on(&self) -> Vec<bool> {
        let status: Value = serde_json::from_slice(&self.homing(&["power", "status", "--json"]).stdout).unwrap();
        status["hosts"].as_array().unwrap().iter().map(|host| host["power"] == "on").collect()
    }
}

#[test]
fn idle_hosts_are_switched_off_and_those_that_tasks_need_on_again() {
    if missing(&["systemd-nspawn"]) {
        return;
    }
    let site = Site::up();
    // homing sees a process that a user has left behind at once, and does not wait for its end.
    site.lab.ok("n3", "useradd -m -u 5001 user; setsid -f su user -c 'exec sleep infinity' </dev/null >/dev/null 2>&1");
    let saved = site.ok(&["power", "save"]);
    assert!(saved.contains("n2 switched off") && !saved.contains("n3 switched off"), "{saved}");
    let status = site.ok(&["power"]);
    assert!(status.contains("keep in [power]") && status.contains("5001 runs sleep"), "{status}");
    let refused = site.homing(&["power", "off", "--yes", "n3"]);
    assert!(err(&refused).contains("not switched off: 5001 runs sleep; --force"), "{}", err(&refused));

    // The host is off, and that is no fault.
    let hosts: Value = serde_json::from_slice(&site.homing(&["hosts", "--json"]).stdout).unwrap();
    let states: Vec<&Value> = hosts["hosts"].as_array().unwrap().iter().map(|host| &host["status"]).collect();
    assert_eq!(states, ["ok", "off", "ok"]);
    let checked = site.homing(&["check", "--only", "ssh"]);
    let text = String::from_utf8_lossy(&checked.stdout);
    assert!(text.contains("not checked: n2: switched off for") && text.contains("homing power on n2"), "{text}");

    site.lab.ok("n3", "pkill -u user; while pgrep -u user; do :; done");
    assert!(site.ok(&["power", "save"]).contains("n3 switched off"));
    assert_eq!(site.on(), [true, false, false]);

    // A run switches on the hosts that its tasks need, and a job its host.
    let small = site.ok(&["run", "echo", ":::", "a", "b"]);
    assert!(small.contains("n[2-3] are switched off, and are not needed for 2 tasks"), "{small}");
    assert_eq!(site.on(), [true, false, false]);
    let large = site.ok(&["run", "--need-all-hosts", "--hosts", "n[1-2]", "echo", ":::", "a", "b"]);
    assert!(large.contains("n2 is switched off, and is being switched on for this run"), "{large}");
    assert_eq!(site.on(), [true, true, false]);
    site.ok(&["sub", "--host", "n3", "--wait", "true"]);
    let switched = fs::read_to_string(site.path("on")).unwrap();
    assert_eq!(switched.lines().collect::<Vec<_>>(), ["n2", "n3"]);

    // By hand. A host of a lab is a process: n3 ended with the job that had switched it on.
    assert!(site.ok(&["power", "off", "--yes", "n3"]).contains("n3 is already off"));
    assert!(site.ok(&["power", "on", "n3"]).contains("n3 is on after"));
    assert_eq!(site.on(), [true; 3]);
}
