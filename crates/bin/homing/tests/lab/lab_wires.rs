//! Switches and further networks of a lab. Needs root; otherwise prints a note and is skipped.

use crate::support::{EXE, Lab, err, homing, missing};
use serde_json::Value;
use std::process::Command;

/// Returns the interfaces of this machine that are of the lab with this bridge.
fn interfaces(bridge: &str) -> Vec<String> {
    let all = std::fs::read_dir("/sys/class/net").unwrap().flatten();
    let names = all.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_of(name, bridge)).collect()
}

/// Whether an interface is of this lab, and not of one whose number begins alike.
fn is_of(interface: &str, bridge: &str) -> bool {
    let rest = interface.strip_prefix("vb-").unwrap_or(interface).strip_prefix(bridge);
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns the bytes that an interface of this machine has sent.
fn sent(interface: &str) -> u64 {
    let file = format!("/sys/class/net/{interface}/statistics/tx_bytes");
    std::fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

/// Returns the part of the lab's interface names that is the number of the lab: `hl7` of 10.77.7.1.
fn bridge(lab: &Lab) -> String {
    let plan: Value =
        serde_json::from_slice(&homing(&["lab", "status", "--name", &lab.name, "--json"]).stdout).unwrap();
    let address = plan["hosts"][0]["address"].as_str().unwrap();
    format!("hl{}", address.split('.').nth(2).unwrap())
}

/// Sends a megabyte from n1 to a name of another host.
fn send(lab: &Lab, host: &str, name: &str) {
    lab.ok("n1", &format!("head -c 1000000 /dev/zero | ssh -o HostKeyAlias={host} {name} 'cat > /dev/null'"));
}

/// Returns the switch of each host, as `homing topology` finds it. The first announcement may be under way.
fn switches(lab: &Lab) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for _ in 0..30 {
        let printed = homing(&["topology", "--lab", &lab.name, "-w", "n[1-3]", "--json"]);
        let tree: Value = serde_json::from_slice(&printed.stdout).unwrap_or_else(|_| panic!("{}", err(&printed)));
        let name = |value: &Value| value.as_str().unwrap().to_string();
        let leaves = tree["leaves"].as_array().unwrap();
        let hosts = |leaf: &Value| -> Vec<(String, String)> {
            leaf["hosts"].as_array().unwrap().iter().map(|host| (name(&host["host"]), name(&leaf["name"]))).collect()
        };
        found = leaves.iter().flat_map(hosts).collect();
        found.sort();
        if found.len() >= 3 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    found
}

#[test]
fn hosts_are_on_switches_and_in_two_networks_until_the_lab_is_down() {
    if missing(&["systemd-nspawn", "lldpd", "ping"]) {
        return;
    }
    let words = ["--hosts", "3", "--network", "storage:200mbit", "--switches", "2", "--uplink", "100mbit"];
    let lab = Lab::up("wires", &words);
    let own = bridge(&lab);
    let on = [("n1", "s1"), ("n2", "s1"), ("n3", "s2")].map(|(host, switch)| (host.to_string(), switch.to_string()));
    assert_eq!(switches(&lab)[..3], on);

    // Between hosts of one switch nothing goes over its uplink. Of the core, `-d1` is the other end.
    let up = format!("vb-{own}-d1");
    let before = sent(&up);
    send(&lab, "n2", "n2");
    let within = sent(&up) - before;
    send(&lab, "n3", "n3");
    let across = sent(&up) - before - within;
    assert!(within < 500_000 && across > 900_000, "{within} {across}");
    let rate = Command::new("tc").args(["qdisc", "show", "dev", &up]).output().unwrap();
    assert!(String::from_utf8_lossy(&rate.stdout).contains("tbf") && within < across, "{rate:?}");

    // The name of a host in a network leads over that network, and over nothing else.
    let (storage, first) = (format!("vb-{own}-n3x1"), format!("vb-{own}-n3"));
    let before = [sent(&storage), sent(&first)];
    send(&lab, "n3", "n3-storage");
    let [by_storage, by_first] = [sent(&storage) - before[0], sent(&first) - before[1]];
    assert!(by_storage > 900_000 && by_first < 500_000, "{by_storage} {by_first}");

    // A host that was off has both links again, on the same switch.
    for verb in ["off", "on"] {
        let done = homing(&["lab", verb, "--name", &lab.name, "n3"]);
        assert!(done.status.success(), "{}", err(&done));
    }
    lab.ok("n1", "ping -c 1 -w 20 n3-storage && ping -c 1 -w 20 n3");
    assert_eq!(switches(&lab)[..3], on);

    names_of_both_networks_are_set_up(&lab);
    let status = homing(&["lab", "status", "--name", &lab.name]);
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains("on switch s2, n3-storage is 10.78."), "{status}");

    assert_eq!(interfaces(&own).iter().filter(|name| name.starts_with(&own)).count(), 4, "{:?}", interfaces(&own));
    let folder = format!("/var/lib/homing/labs/{}", lab.name);
    drop(lab);
    assert_eq!(interfaces(&own), [""; 0]);
    assert!(!std::path::Path::new(&folder).exists());
    let processes = Command::new("ps").args(["-eo", "args"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&processes.stdout).contains(&folder));
}

/// The file has no addresses: they are those of the lab.
fn names_of_both_networks_are_set_up(lab: &Lab) {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("c.toml");
    std::fs::write(&file, "hosts = \"n[1-3]\"\n[up]\nhostname = true\n[up.mtu]\nstorage = 9000\n").unwrap();
    let mut up = Command::new(EXE);
    up.arg("up").arg(&file).args(["--lab", &lab.name, "--yes", "--no-check"]).env("XDG_STATE_HOME", state.path());
    let done = up.output().unwrap();
    assert!(done.status.success(), "{}", err(&done));
    lab.ok("n1", "grep -q '^10[.]78[.].* n2-storage' /etc/hosts && test $(cat /sys/class/net/storage/mtu) = 9000");
    lab.ok("n1", "ping -M do -s 8972 -c 1 -w 20 n3-storage");
}
