//! `homing tune net` in a lab. A better setting is kept, another is taken back, and a host that was cut off comes
//! back by itself.

use crate::support::{Lab, err, homing, missing};
use serde_json::Value;
use std::process::Command;

fn tune(lab: &Lab, words: &[&str]) -> Value {
    let all = ["tune", "net", "--lab", &lab.name, "-w", "n[1-2]", "--json", "--yes"];
    // Only a measurement has a length.
    let length: &[&str] = if words.contains(&"--undo") { &[] } else { &["--seconds", "0.2"] };
    let output = homing(&[&all[..], length, words].concat());
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)));
    assert_eq!(output.status.code(), told["exit"].as_i64().map(|exit| exit as i32), "{told}");
    told
}

fn offload(lab: &Lab, host: &str, word: &str) -> String {
    lab.ok(host, &format!("ethtool -k host0 | sed -n 's/^{word}: //p'"))
}

/// An ethtool that takes the link down with a setting and leaves it down.
const BREAKS: &str = "printf '#!/bin/sh\n/usr/sbin/ethtool \"$@\"; s=$?\ncase $1 in -K) ip link set host0 down;; esac\nexit $s\n' \
    > /usr/local/sbin/ethtool; chmod 755 /usr/local/sbin/ethtool";

#[test]
fn what_is_no_good_is_taken_back_and_what_is_better_is_kept_until_it_is_undone() {
    if missing(&["systemd-nspawn", "sshd", "tc", "ethtool", "ping"]) {
        return;
    }
    let lab = Lab::up("tune", &["--hosts", "2"]);
    let all = ["n1", "n2"];
    // Each message has a segment of its own. A buffer of one page costs more of the rate than noise can.
    for host in all {
        lab.ok(host, "sysctl -qw net.ipv4.tcp_rmem='4096 4096 4096' net.ipv4.tcp_wmem='4096 4096 4096'");
    }
    // On a busy machine no gain may exceed the noise. The report must be true in either case.
    let told = tune(&lab, &["--only", "buffers"]);
    let (fate, before) = (told["tried"][0]["fate"].as_str().unwrap_or_default(), "4096\t4096\t4096\n");
    assert!(["kept", "left"].contains(&fate), "{told}");
    for host in all {
        let (now, file) =
            (lab.ok(host, "sysctl -n net.ipv4.tcp_wmem"), "cat /etc/sysctl.d/59-homing-net.conf 2>&1; true");
        let written = lab.ok(host, file).contains("net.ipv4.tcp_rmem = 4096 4096 6291456");
        assert_eq!(
            (now == "4096\t4096\t4194304\n", written, now != before),
            (fate == "kept", fate == "kept", fate == "kept")
        );
        assert_eq!(lab.ok(host, "ls /run | grep -E 'homing-(up|net)'; true"), "", "no guard is left");
    }
    let told = tune(&lab, &["--undo"]);
    assert_eq!(told["undone"].as_array().map(Vec::len), Some(if fate == "kept" { 6 } else { 0 }), "{told}");
    let left = lab.ok(
        "n2",
        "sysctl -n net.ipv4.tcp_wmem; ls /etc/sysctl.d | grep homing; ls -d /var/lib/homing/up 2>/dev/null; true",
    );
    assert_eq!(left, before);
    what_others_say_stays(&lab);
    // A port of the switch between them takes small packets only, so no host may get a larger MTU.
    for host in all {
        lab.ok(host, "sysctl -qw net.ipv4.tcp_rmem='4096 131072 6291456' net.ipv4.tcp_wmem='4096 16384 4194304'");
    }
    let port = crate::links::port(&lab, "n1");
    assert!(Command::new("ip").args(["link", "set", &port, "mtu", "9000"]).status().unwrap().success());
    let told = tune(&lab, &["--only", "mtu", "--mtu", "9000", "--not-all"]);
    assert!(told["tried"][0]["why"].as_str().unwrap().contains("packets of 9000 bytes do not arrive"), "{told}");
    for host in all {
        assert_eq!(lab.ok(host, "cat /sys/class/net/host0/mtu"), "1500\n");
    }
    // The setting cuts n2 off.
    for host in all {
        lab.ok(host, "ethtool -K host0 gro off");
    }
    lab.ok("n2", BREAKS);
    let told = tune(&lab, &["--only", "offloads"]);
    let why = told["tried"][0]["why"].as_str().unwrap_or_else(|| panic!("{told}"));
    assert!(why.contains("n2: no new connection succeeded in time"), "{told}");
    lab.ok("n2", "rm /usr/local/sbin/ethtool");
    for host in all {
        assert_eq!(offload(&lab, host, "generic-receive-offload"), "off\n", "{host}");
        assert_eq!(lab.ok(host, "ls /etc/systemd/system | grep homing-net; true"), "", "{host}");
    }
}

/// A setting of the cluster file is not tried. A value that somebody has changed since is not taken back.
fn what_others_say_stays(lab: &Lab) {
    lab.ok("n2", "echo 'net.ipv4.tcp_wmem = 4096 4096 4096' > /etc/sysctl.d/60-homing.conf");
    let told = tune(lab, &["--only", "buffers"]);
    assert_eq!(told["tried"].as_array().map(Vec::len), Some(0), "{told}");
    assert!(told["not_tried"][0].as_str().unwrap().contains("homing up has set it"), "{told}");
    lab.ok("n2", "rm /etc/sysctl.d/60-homing.conf");
    // An earlier homing recorded this step. Later somebody set another value.
    let entry = r#"{"kind":"sysctl","key":"net.ipv4.tcp_rmem","from":"4096 4096 4096","to":"4096 4096 8192"}"#;
    lab.ok("n2", &format!("mkdir -p -m 700 /var/lib/homing/up && echo '{entry}' > /var/lib/homing/up/00000001.json"));
    lab.ok("n2", "sysctl -qw net.ipv4.tcp_rmem='4096 4096 16384'");
    let told = tune(lab, &["--undo"]);
    assert!(told["undone"][0].as_str().unwrap().contains("it was changed since"), "{told}");
    assert_eq!(lab.ok("n2", "sysctl -n net.ipv4.tcp_rmem; rm -r /var/lib/homing/up"), "4096\t4096\t16384\n");
}

#[test]
fn what_nobody_could_try_is_told_before_any_host_is_asked() {
    let output = homing(&["tune", "net", "-y", "-w", "localhost"]);
    assert_eq!(output.status.code(), Some(255), "{}", err(&output));
    assert!(err(&output).contains("at least two hosts"), "{}", err(&output));
    let output = homing(&["tune", "net", "-w", "n[1-2]", "--mtu", "100"]);
    assert_eq!(output.status.code(), Some(255), "{}", err(&output));
}
