//! `homing topology` in a lab: this machine speaks on the hosts' links as two switches do.

use crate::support::{err, missing};
use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};

/// Says, on each interface and ten times a second, what its switch says. Words: INTERFACE=CHASSIS=NAME=PORT.
const SWITCHES: &str = r#"
socket my $s, 17, 3, unpack("S", pack "n", 0x88cc) or die $!;
sub part { pack "na*", $_[0] << 9 | length $_[1], $_[1] }
my @ports = map { [split /=/] } @ARGV;
while (getppid != 1) {
  for (@ports) {
    my ($interface, $chassis, $name, $port) = @$_;
    open my $f, "<", "/sys/class/net/$interface/ifindex" or exit; my $index = <$f>;
    my $frame = pack("H*", "0180c200000e020000000001" . "88cc") . part(1, pack("CH*", 4, $chassis)) . part(2, "\x05$port")
      . part(3, "\0\x78") . part(5, $name) . part(7, "\0\x14\0\x04") . part(0, "");
    send $s, $frame, 0, pack "S S i S C C a8", 17, unpack("S", pack "n", 0x88cc), $index, 0, 0, 6, "\x01\x80\xc2\0\0\x0e";
  }
  select undef, undef, undef, 0.1;
}"#;

/// What lldpd says of a neighbour.
const LLDPCLI: &str = include_str!("../../../../admin/network/tests/lldpcli-1.0.16.json");

struct Speaking(Child);

impl Drop for Speaking {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Lab {
    hosts: crate::support::Lab,
    state: tempfile::TempDir,
}

impl Lab {
    fn speak(&self, ports: &[(&str, &str, &str, &str)]) -> Speaking {
        let word = |(host, chassis, name, port): &(&str, &str, &str, &str)| {
            format!("{}={chassis}={name}={port}", crate::links::port(&self.hosts, host))
        };
        let mut command = Command::new("perl");
        command.args(["-e", SWITCHES]).args(ports.iter().map(word));
        Speaking(command.stdin(Stdio::null()).spawn().unwrap())
    }

    fn ask(&self, words: &[&str]) -> Output {
        let mut command = Command::new(crate::support::EXE);
        command.args(["topology", "--lab", &self.hosts.name, "-w", "n[1-3]", "--wait", "4"]).args(words);
        command.env("XDG_STATE_HOME", self.state.path()).output().unwrap()
    }

    fn told(&self, words: &[&str]) -> Value {
        let output = self.ask(&[&["--json"], words].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)))
    }
}

#[test]
fn hosts_are_on_the_switches_that_speak() {
    if missing(&["systemd-nspawn", "sshd", "perl"]) {
        return;
    }
    let lab = Lab { hosts: crate::support::Lab::up("topo", &["--hosts", "3"]), state: tempfile::tempdir().unwrap() };
    let file = |name: &str| lab.state.path().join(name).to_str().unwrap().to_string();
    let (conf, yaml, moose) = (file("topology.conf"), file("topology.yaml"), file("mfstopology.cfg"));
    let written = ["--topology-conf", &conf, "--topology-yaml", &yaml, "--mfstopology", &moose];
    let speaking = lab.speak(&[("n1", "020000000001", "s1", "Gi1/1"), ("n2", "020000000001", "s1", "Gi1/2")]);
    let output = lab.ask(&written);
    assert_eq!(output.status.code(), Some(254), "{}", err(&output));
    assert!(err(&output).contains("the switch of n3 is not known"), "{}", err(&output));
    assert!(!std::path::Path::new(&conf).exists());
    drop(speaking);
    let forged = "s\u{1b}[2J2";
    let both = [
        ("n1", "020000000001", "s1", "Gi1/1"),
        ("n2", "020000000001", "s1", "Gi1/2"),
        ("n3", "020000000002", forged, "Gi1/1"),
    ];
    let speaking = lab.speak(&both);
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
    drop(speaking);
    let _speaking = lab.speak(&[both[0], ("n2", "020000000002", forged, "Gi1/7"), both[2]]);
    let told = lab.told(&["--diff"]);
    let moved = format!("n2: was on s1 port Gi1/2, is on {name} port Gi1/7");
    assert_eq!((&told["moved"], &told["exit"]), (&serde_json::json!([moved]), &1.into()), "{told}");
    // Where lldpd runs, it is asked.
    let switch = LLDPCLI.replacen("\"enabled\": false", "\"enabled\": true", 1);
    lab.hosts.ok("n1", &format!("printf '#!/bin/sh\ncat <<\"E\"\n%s\nE\n' '{switch}' > /usr/local/bin/lldpcli"));
    lab.hosts.ok("n1", "chmod 755 /usr/local/bin/lldpcli");
    let told = lab.told(&[]);
    let leaves = told["leaves"].as_array().unwrap();
    let leaf = leaves.iter().find(|leaf| leaf["chassis"] == "92:34:19:07:ec:dd").unwrap_or_else(|| panic!("{told}"));
    assert_eq!(
        (&leaf["name"], &leaf["hosts"][0]["host"], &leaf["hosts"][0]["port"]),
        (&"vm".into(), &"n1".into(), &"lb".into())
    );
}
