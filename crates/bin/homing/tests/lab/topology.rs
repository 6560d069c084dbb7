//! `homing topology` in a lab: hosts whose lldpd reports two switches.

use crate::support::{err, missing};
use serde_json::Value;
use std::process::{Command, Output};

/// The output of lldpd on a neighbour.
const LLDPCLI: &str = include_str!("../../../../admin/network/tests/lldpcli-1.0.16.json");

struct Lab {
    hosts: crate::support::Lab,
    state: tempfile::TempDir,
}

impl Lab {
    /// Sets up an lldpd on each of these hosts, which reports one switch. Words: host, chassis, name of the switch,
    /// port.
    fn neighbours(&self, ports: &[(&str, &str, &str, &str)]) {
        for (host, chassis, name, port) in ports {
            let chassis = serde_json::json!([{
                "id": [{ "type": "mac", "value": chassis }], "name": [{ "value": name }],
                "capability": [{ "type": "Bridge", "enabled": true }],
            }]);
            let port = serde_json::json!([{ "id": [{ "type": "ifname", "value": port }] }]);
            let interface = serde_json::json!([{ "name": "host0", "chassis": chassis, "port": port }]);
            self.answer(host, &serde_json::json!({ "lldp": [{ "interface": interface }] }).to_string());
        }
    }

    fn answer(&self, host: &str, json: &str) {
        self.hosts.ok(host, &format!("printf '#!/bin/sh\ncat <<\"E\"\n%s\nE\n' '{json}' > /usr/local/bin/lldpcli"));
        self.hosts.ok(host, "chmod 755 /usr/local/bin/lldpcli");
    }

    fn ask(&self, words: &[&str]) -> Output {
        let mut command = Command::new(crate::support::EXE);
        command.args(["topology", "--lab", &self.hosts.name, "-w", "n[1-3]"]).args(words);
        command.env("XDG_STATE_HOME", self.state.path()).output().unwrap()
    }

    fn told(&self, words: &[&str]) -> Value {
        let output = self.ask(&[&["--json"], words].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)))
    }
}

#[test]
fn hosts_are_on_the_switches_that_speak() {
    if missing(&["systemd-nspawn", "sshd"]) {
        return;
    }
    let lab = Lab { hosts: crate::support::Lab::up("topo", &["--hosts", "3"]), state: tempfile::tempdir().unwrap() };
    let file = |name: &str| lab.state.path().join(name).to_str().unwrap().to_string();
    let (conf, yaml, moose) = (file("topology.conf"), file("topology.yaml"), file("mfstopology.cfg"));
    let written = ["--topology-conf", &conf, "--topology-yaml", &yaml, "--mfstopology", &moose];
    lab.neighbours(&[("n1", "02:00:00:00:00:01", "s1", "Gi1/1"), ("n2", "02:00:00:00:00:01", "s1", "Gi1/2")]);
    lab.answer("n3", r#"{"lldp": [{}]}"#);
    let output = lab.ask(&written);
    assert_eq!(output.status.code(), Some(254), "{}", err(&output));
    assert!(err(&output).contains("the switch of n3 is unknown"), "{}", err(&output));
    assert!(!std::path::Path::new(&conf).exists());
    let forged = "s\u{1b}[2J2";
    let both = [
        ("n1", "02:00:00:00:00:01", "s1", "Gi1/1"),
        ("n2", "02:00:00:00:00:01", "s1", "Gi1/2"),
        ("n3", "02:00:00:00:00:02", forged, "Gi1/1"),
    ];
    lab.neighbours(&both);
    let output = lab.ask(&written);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("n2  host0 on port Gi1/2") && !text.contains('\u{1b}'), "{text}");
    let read = |file: &str| std::fs::read_to_string(file).unwrap();
    let name = "s_u_1b__2J2";
    assert_eq!(
        read(&conf),
        format!("SwitchName=s1 Nodes=n[1-2]\nSwitchName={name} Nodes=n3\nSwitchName=core Switches=s1,{name}\n")
    );
    assert!(read(&yaml).contains("      - switch: s1\n        nodes: n[1-2]\n"), "{}", read(&yaml));
    assert_eq!(read(&moose).lines().filter(|line| line.contains(" core|s1 # n")).count(), 2, "{}", read(&moose));
    lab.neighbours(&[both[0], ("n2", "02:00:00:00:00:02", forged, "Gi1/7"), both[2]]);
    let told = lab.told(&["--diff"]);
    let moved = format!("n2: was on s1 port Gi1/2, is on {name} port Gi1/7");
    assert_eq!((&told["moved"], &told["exit"]), (&serde_json::json!([moved]), &1.into()), "{told}");
    // The output of lldpd 1.0.16.
    lab.answer("n1", &LLDPCLI.replacen("\"enabled\": false", "\"enabled\": true", 1));
    let told = lab.told(&[]);
    let leaves = told["leaves"].as_array().unwrap();
    let leaf = leaves.iter().find(|leaf| leaf["chassis"] == "92:34:19:07:ec:dd").unwrap_or_else(|| panic!("{told}"));
    assert_eq!(
        (&leaf["name"], &leaf["hosts"][0]["host"], &leaf["hosts"][0]["port"]),
        (&"vm".into(), &"n1".into(), &"lb".into())
    );
}
