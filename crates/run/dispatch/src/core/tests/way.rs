//! The path of bytes between hosts.

use super::*;
use homing_model::links::{ClusterLinks, Switch};

#[test]
fn a_fetch_is_planned_from_the_nearer_copy_and_its_record_tells_the_way() {
    let switch = |name: &str, hosts: &[&str]| Switch {
        name: name.into(),
        hosts: hosts.iter().map(|host| host.to_string()).collect(),
        ..Switch::default()
    };
    let links = ClusterLinks::new(vec![switch("s1", &["n1"]), switch("s2", &["n2", "n3"])]).unwrap();
    let mut core = core(Policy { links, ..policy() }, &[("n1", 1), ("n2", 1), ("n3", 1)]);
    (1..=40).for_each(|id| core.offer(offer(id, &["n1", "n2"])));
    core.assign(at(0).mono);
    let why = |action| match action {
        Action::Journal(EventKind::TaskStarted { host, why, .. }) if host == "n3" => why,
        _ => None,
    };
    let told: Vec<String> = core.take_actions().into_iter().filter_map(why).collect();
    assert!(told[0].starts_with("n2 holds it") && told[0].ends_with("on the same switch s2"), "{told:?}");
}
