//! `homing bench net` in a lab of four hosts: faults that are planted in their links are named, and nothing else is.

use crate::support::{EXE, NO_PERL, err, homing, missing};
use serde_json::Value;
use std::process::Command;

/// The rate of each link of the lab. Processors of a machine that is busy with other tests do not limit it.
const LINK: &str = "40mbit";

struct Lab(crate::support::Lab);

impl Lab {
    fn bench(&self) -> Value {
        let output = homing(&["bench", "net", "--lab", &self.0.name, "-w", "n[1-4]", "--seconds", "0.4", "--json"]);
        let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)));
        assert_eq!(output.status.code(), told["exit"].as_i64().map(|exit| exit as i32));
        told
    }
}

fn findings(told: &Value) -> Vec<(String, Value)> {
    let found = told["findings"].as_array().unwrap();
    found.iter().map(|f| (f["kind"].as_str().unwrap().to_string(), f["hosts"].clone())).collect()
}

#[test]
fn faults_of_links_are_named_and_nothing_else() {
    if missing(&["systemd-nspawn", "sshd", "tc"]) {
        return;
    }
    let lab = Lab(crate::support::Lab::up("bnet", &["--hosts", "4", "--link", LINK]));
    for host in ["n1", "n2", "n3", "n4"] {
        lab.0.ok(host, NO_PERL);
    }
    assert_eq!(findings(&lab.bench()), [], "a clean lab");
    let output = homing(&["topology", "--lab", &lab.0.name, "-w", "n[1-4]", "--measure"]);
    let tree = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(
        tree.starts_with("sw-1 (inferred by measuring)\n  n1") && tree.lines().count() == 5,
        "{tree}{}",
        err(&output)
    );
    let output =
        homing(&["bench", "net", "--lab", &lab.0.name, "-w", "n[1-2]", "--seconds", "0.1", "--curve", "--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)));
    let curve = told["curve"].as_array().unwrap();
    let took = |at: usize| curve[at]["p50_us"].as_f64().unwrap();
    assert_eq!((curve.len(), curve[20]["bytes"].as_u64()), (21, Some(1 << 20)), "{told}");
    // A megabyte takes a fifth of a second on this link.
    assert!(took(20) > 100_000.0 && took(20) > took(0), "{told}");
    more(&lab);
    lab.0.ok("n3", "tc qdisc replace dev host0 root tbf rate 15mbit burst 64k latency 50ms");
    // A queue of five packets loses most of each burst.
    let port = crate::links::port(&lab.0, "n2");
    let tc = ["qdisc", "replace", "dev", &port, "root", "tbf", "rate", "20mbit", "burst", "4k", "limit", "8k"];
    assert!(Command::new("tc").args(tc).status().unwrap().success());
    lab.0.ok("n4", "ip link set host0 mtu 1400");
    let told = lab.bench();
    let found = findings(&told);
    let of = |host: &str| {
        let own = found.iter().filter(|(_, hosts)| *hosts == serde_json::json!([host]));
        own.map(|(kind, _)| kind.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of("n3"), ["send"], "{told}");
    assert_eq!(of("n2"), ["receive"], "{told}");
    assert_eq!(of("n4"), ["mtu"], "{told}");
    assert_eq!(found.len(), 3, "{told}");
    assert!(told.to_string().contains("of the bytes sent to it are retransmitted"), "{told}");
    for host in told["hosts"].as_array().unwrap() {
        assert!(host["best"]["p50_us"].as_f64().is_some_and(|us| us > 0.0), "{told}");
    }
    // No port is left open.
    for host in ["n1", "n2", "n3", "n4"] {
        lab.0.ok(host, "! ss -Hltn | grep -q :47113");
    }
}

/// Checks the rate from one server to three hosts at once, and a picture.
fn more(lab: &Lab) {
    let page = tempfile::NamedTempFile::new().unwrap();
    let words = ["bench", "net", "--lab", &lab.0.name, "-w", "n[1-3]", "--seconds", "0.4", "--json"];
    let file = page.path().to_str().unwrap();
    let output = homing(&[&words[..], &["--storage=n4", "--html", file]].concat());
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", err(&output)));
    let served = &told["storage"][0];
    assert_eq!((&served["server"], served["clients"].as_array().map(Vec::len)), (&"n4".into(), Some(3)), "{told}");
    for way in ["read", "write"] {
        let of = |which: &str| served[way][which].as_f64().unwrap();
        // All three together use the one link of the server, which is as wide as theirs. On a machine that does other
        // work they do not all send at the same time. The sum of their rates is then more than the link's.
        assert!(of("alone") > 10.0 && of("together") < of("alone") * 2.7, "{told}");
    }
    let page = std::fs::read_to_string(file).unwrap();
    assert!(page.contains("<svg") && page.contains("n1 to n2: ") && page.contains("n4"), "{page}");
}

#[test]
fn a_network_has_two_hosts_at_least() {
    let output = Command::new(EXE).args(["bench", "net", "-w", "localhost"]).output().unwrap();
    assert_eq!(output.status.code(), Some(255), "{}", err(&output));
    assert!(err(&output).contains("at least two hosts"), "{}", err(&output));
}
