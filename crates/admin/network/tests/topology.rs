//! Tests the tree from announcements of switches, also with neighbours that lie.

use homing_network::files;
use homing_network::lldp::{MOST, Neighbour, of_lldpcli};
use homing_network::tree::{HostNeighbours, SwitchEvidence, inferred, moved, tree};
use std::collections::BTreeMap;

fn heard(host: &str, neighbours: Vec<Neighbour>) -> HostNeighbours {
    HostNeighbours { host: host.into(), interface: Some("eth0".into()), neighbours }
}

fn on(host: &str, name: &str, chassis: u8, port: &str) -> HostNeighbours {
    let neighbour = Neighbour {
        interface: "eth0".into(),
        chassis: format!("02:00:00:00:00:{chassis:02x}"),
        name: Some(name.to_string()).filter(|name| !name.is_empty()),
        port: port.into(),
        bridge: true,
        ..Neighbour::default()
    };
    heard(host, vec![neighbour])
}

fn two_switches() -> Vec<HostNeighbours> {
    vec![on("n1", "s1", 1, "Gi1/1"), on("n2", "s1", 1, "Gi1/2"), on("n3", "s2", 2, "Gi1/1"), on("n4", "s2", 2, "Gi1/2")]
}

#[test]
fn a_forged_answer_is_a_short_line_or_nothing() {
    let long = "\u{1b}]0;root\u{7}\n\"; rm -rf /".repeat(12);
    let text = |text: &str| serde_json::json!([{ "value": text }]);
    let answer = |name: &str| {
        let chassis = serde_json::json!([{ "id": [{ "type": "mac", "value": name }], "name": text(name) }]);
        let port = serde_json::json!([{ "id": [{ "type": "ifname", "value": name }] }]);
        serde_json::json!({ "lldp": [{ "interface": [{ "name": "eth0", "chassis": chassis, "port": port }] }] })
    };
    let told = of_lldpcli(&answer(&long).to_string()).unwrap();
    for text in [told[0].name.as_deref().unwrap(), &told[0].port] {
        assert!(text.chars().count() <= 64 && !text.contains(|c: char| c.is_control()), "{text}");
    }
    let name = &tree(&[heard("n1", told)]).leaves[0].name;
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c)) && name.len() <= 64, "{name}");
    // An answer that is cut anywhere is an error. An answer with a value of another type lacks a neighbour.
    let whole = answer("s1").to_string();
    assert!((1..whole.len()).filter(|at| whole.is_char_boundary(*at)).all(|at| of_lldpcli(&whole[..at]).is_err()));
    assert_eq!(of_lldpcli(&whole.replace("\"s1\"", "7")), Ok(Vec::new()));
}

const JSON0: &str = r#"{"lldp": [{"interface": [
  {"name": "eth0", "via": "LLDP", "rid": "1", "age": "0 day, 00:00:12",
   "chassis": [{"id": [{"type": "mac", "value": "02:00:00:00:00:07"}], "name": [{"value": "leaf one"}],
     "descr": [{"value": "A switch"}], "mgmt-ip": [{"value": "10.0.0.9"}],
     "capability": [{"type": "Bridge", "enabled": true}, {"type": "Router", "enabled": false}]}],
   "port": [{"id": [{"type": "mac", "value": "02:00:00:00:01:07"}], "descr": [{"value": "swp4"}], "mfs": [{"value": "9216"}],
     "ttl": [{"value": "120"}]}]},
  {"name": "eth0", "via": "LLDP", "rid": "2", "age": "0 day, 00:00:12",
   "chassis": [{"id": [{"type": "mac", "value": "02:00:00:00:00:99"}], "capability": [{"type": "Station", "enabled": true}]}],
   "port": [{"id": [{"type": "mac", "value": "02:00:00:00:00:99"}], "ttl": [{"value": "120"}]}]}]}]}"#;

#[test]
fn what_lldpd_heard_is_read_and_a_card_that_speaks_is_no_switch() {
    let neighbours = of_lldpcli(JSON0).unwrap();
    assert_eq!(neighbours.len(), 2);
    assert_eq!((neighbours[0].port.as_str(), neighbours[0].frame, neighbours[0].bridge), ("swp4", Some(9216), true));
    let tree = tree(&[heard("n1", neighbours)]);
    assert_eq!((tree.leaves[0].name.as_str(), tree.leaves[0].hosts[0].port.as_deref()), ("leaf_one", Some("swp4")));
    assert_eq!(of_lldpcli(r#"{"lldp": [{}]}"#), Ok(Vec::new()));
    assert!(of_lldpcli("no").is_err());
}

#[test]
fn what_lldpd_says_is_read() {
    let told = of_lldpcli(include_str!("lldpcli-1.0.16.json")).unwrap();
    let neighbour = Neighbour {
        interface: "la".into(),
        chassis: "92:34:19:07:ec:dd".into(),
        name: Some("vm".into()),
        port: "lb".into(),
        ..Neighbour::default()
    };
    assert_eq!(told, [neighbour]);
}

#[test]
fn a_flood_of_neighbours_is_bounded() {
    let told: serde_json::Value = serde_json::from_str(JSON0).unwrap();
    let one = told["lldp"][0]["interface"][0].to_string();
    let flood = format!(r#"{{"lldp": [{{"interface": [{}]}}]}}"#, vec![one; 5000].join(","));
    assert_eq!(of_lldpcli(&flood).unwrap().len(), MOST);
}

#[test]
fn hosts_are_on_the_switch_that_they_hear() {
    let tree = tree(&two_switches());
    assert_eq!(
        files::slurm_conf(&tree),
        "SwitchName=s1 Nodes=n[1-2]\nSwitchName=s2 Nodes=n[3-4]\nSwitchName=core Switches=s1,s2\n"
    );
    assert_eq!(
        files::slurm_yaml(&tree),
        "- topology: tree\n  cluster_default: true\n  tree:\n    switches:\n      - switch: s1\n        nodes: n[1-2]\n      \
         - switch: s2\n        nodes: n[3-4]\n      - switch: core\n        children: s1,s2\n"
    );
    let addresses =
        BTreeMap::from([("n1".to_string(), [10, 0, 0, 1].into()), ("n3".to_string(), [10, 0, 0, 3].into())]);
    assert_eq!(files::moosefs(&tree, &addresses), "10.0.0.1 core|s1 # n1\n10.0.0.3 core|s2 # n3\n");
}

#[test]
fn two_switches_of_one_name_are_two() {
    let tree = tree(&[on("n1", "core", 1, "1"), on("n2", "core", 2, "1"), on("n3", "", 3, "1")]);
    let names: Vec<&str> = tree.leaves.iter().map(|leaf| leaf.name.as_str()).collect();
    assert_eq!(names, ["core", "core-2", "sw-1"]);
    assert!(files::slurm_conf(&tree).contains("SwitchName=core-3 Switches=core,core-2,sw-1"));
}

#[test]
fn hosts_that_hear_each_other_share_a_switch_that_says_nothing() {
    let station = |name: &str, n: u8| Neighbour { bridge: false, ..on("x", name, n, "eth0").neighbours[0].clone() };
    let all = [
        heard("n1", vec![station("n2.example.org", 2)]),
        heard("n2", vec![station("n1", 1)]),
        heard("n3", vec![station("n4", 4)]),
        heard("n4", vec![station("n3", 3)]),
        heard("n5", Vec::new()),
    ];
    let tree = tree(&all);
    assert_eq!(
        files::slurm_conf(&tree),
        "SwitchName=sw-1 Nodes=n[1-2]\nSwitchName=sw-2 Nodes=n[3-4]\nSwitchName=core Switches=sw-1,sw-2\n"
    );
    assert!(tree.leaves.iter().all(|leaf| leaf.source == SwitchEvidence::Heard));
    assert_eq!(tree.alone, ["n5"]);
}

#[test]
fn what_was_measured_is_marked() {
    let group = |hosts: &[&str]| hosts.iter().map(|host| (host.to_string(), None)).collect::<Vec<_>>();
    let tree = inferred(&[group(&["n1", "n2"]), group(&["n3"])]);
    assert!(tree.leaves.iter().all(|leaf| leaf.source == SwitchEvidence::Inferred));
    assert_eq!(tree.leaves.len(), 2);
}

#[test]
fn a_cable_that_was_moved_is_told() {
    let before = tree(&two_switches());
    let mut now = two_switches();
    now[1] = on("n2", "s2", 2, "Gi1/9");
    now.remove(3);
    assert_eq!(moved(&before, &before), Vec::<String>::new());
    assert_eq!(
        moved(&before, &tree(&now)),
        ["n2: was on s1 port Gi1/2, is on s2 port Gi1/9", "n4: was on s2 port Gi1/2, is on no known switch"]
    );
}
