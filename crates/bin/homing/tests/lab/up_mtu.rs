//! `homing up` and the MTU of a network, in a lab. Needs root; otherwise prints a note and is skipped.

use crate::setup::{Up, failed};
use crate::support::{Lab, err, missing};
use std::process::Command;

const HOSTS: [&str; 3] = ["n1", "n2", "n3"];

/// Replaces `ip` on a host: `does` runs when the MTU is set.
fn ip(does: &str) -> String {
    format!(
        "printf '#!/bin/sh\\n[ \"$*\" != \"link set dev host0 mtu 9000\" ] || {{ {does}; }}\\nexec /usr/sbin/ip \"$@\"\\n' \
         > /usr/local/sbin/ip; chmod 755 /usr/local/sbin/ip"
    )
}

const GOOD: &str = "rm /usr/local/sbin/ip";

#[test]
fn all_hosts_of_a_network_have_the_mtu_or_none() {
    if missing(&["systemd-nspawn", "ping"]) {
        return;
    }
    let up = Up { lab: Lab::up("mtu", &["--hosts", "3"]), state: tempfile::tempdir().unwrap() };
    let lab = &up.lab;
    let mut cluster =
        "hosts = \"n[1-3]\"\n[up.mtu]\nstorage = 9000\n[up.sysctl]\n\"net.core.somaxconn\" = \"4321\"\n".to_string();
    for host in HOSTS {
        let address = lab.ok(host, "ip -o -4 addr show host0 | awk '{ split($4, a, \"/\"); print a[1] }'");
        cluster += &format!("[host.{host}]\naddresses = {{ storage = \"{}\" }}\n", address.trim());
    }
    std::fs::write(up.state.path().join("c.toml"), cluster).unwrap();
    let only = |words: &[&str]| up.json(&[&["--no-check", "--only", "mtu,sysctl"], words].concat());
    let mtus = || {
        HOSTS.map(|host| lab.ok(host, "cat /sys/class/net/host0/mtu; ls /etc/systemd/system | grep homing-mtu; ls /run | grep homing-up; true"))
    };
    let none = || assert_eq!(mtus(), ["1500\n"; 3]);
    let switch = |host: &str, bytes: &str| {
        let port = crate::links::port(lab, host);
        assert!(Command::new("ip").args(["link", "set", &port, "mtu", bytes]).status().unwrap().success());
    };
    let refused = |why: &str| {
        let told = only(&[]);
        for host in HOSTS {
            assert!(told["exit"] == 254 && failed(&told, host).join("\n").contains(why), "{why}: {told}");
            assert_eq!(lab.ok(host, "sysctl -n net.core.somaxconn"), "4321\n", "the other areas go on");
        }
        none();
    };

    // A port of the switch between them takes small packets only.
    ["n1", "n2"].iter().for_each(|host| switch(host, "9000"));
    refused("packets of 9000 bytes do not arrive: n1 to 10.");
    let told = err(&up.up(&["--no-check", "--only", "mtu"]));
    assert_eq!(told.matches("  mtu: packets of 9000 bytes").count(), 1, "the same once: {told}");
    switch("n3", "9000");
    lab.ok("n3", &ip("exit 2"));
    refused("n3: mtu: cannot set mtu of host0 to 9000");
    lab.ok("n3", &ip("/usr/sbin/ip \"$@\"; exec /usr/sbin/ip link set host0 down"));
    refused("n3: no new connection succeeded in time");
    lab.ok("n3", GOOD);

    up.killed_at("mtu");
    let done = only(&[]);
    assert_eq!(done["exit"], 0, "{done}");
    assert_eq!(mtus(), ["9000\nhoming-mtu.service\n"; 3]);
    lab.ok("n2", "grep -qx 'ExecStart=-/usr/bin/env ip link set dev host0 mtu 9000' /etc/systemd/system/homing-mtu.service && systemctl is-enabled homing-mtu");
    assert_eq!(only(&[])["steps"], 0);
    // A host that joins later is checked against all.
    lab.ok("n3", "ip link set host0 mtu 1500");
    let done = only(&[]);
    assert_eq!((&done["exit"], &done["steps"]), (&0.into(), &1.into()), "{done}");
    assert_eq!(up.json(&["--undo"])["exit"], 0);
    none();
}
