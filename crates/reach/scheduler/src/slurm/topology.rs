//! The switches that `scontrol show topology` lists.

use homing_model::NodeSet;
use homing_model::links::Switch;

/// Parses the lines of `scontrol show topology`: the lowest switches list nodes, those above list the switches below.
/// Lines of another form are skipped. Slurm stores `LinkSpeed` and does not use it: the rate of the links is unknown.
pub fn parse_topology(text: &str) -> Vec<Switch> {
    let mut switches: Vec<Switch> = Vec::new();
    let mut joined: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines() {
        let field = |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let set = |key: &str| {
            let set = field(key).and_then(|text| NodeSet::parse(text).ok()).unwrap_or_default();
            set.iter().map(String::from).collect::<Vec<_>>()
        };
        let Some(name) = field("SwitchName") else { continue };
        let below = set("Switches");
        let hosts = if below.is_empty() { set("Nodes") } else { Vec::new() };
        switches.push(Switch { name: name.into(), hosts, ..Switch::default() });
        joined.push((name.into(), below));
    }
    for switch in &mut switches {
        switch.above = joined.iter().find(|(_, below)| below.contains(&switch.name)).map(|(name, _)| name.clone());
    }
    switches
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_model::ClusterLinks;
    use homing_model::links::Path;

    #[test]
    fn slurms_tree_is_read() {
        let text = "SwitchName=s1 Level=0 LinkSpeed=1 Nodes=n[1-2]\n\
                    SwitchName=s2 Level=0 LinkSpeed=1 Nodes=n[3-4]\n\
                    SwitchName=core Level=1 LinkSpeed=1 Nodes=n[1-4] Switches=s[1-2]\n";
        let links = ClusterLinks::new(parse_topology(text)).unwrap();
        assert_eq!(links.path(links.leaf("n1"), links.leaf("n4")), Path::Across(vec!["s1".into(), "s2".into()]));
        assert_eq!(links.path(links.leaf("n3"), links.leaf("n4")), Path::Leaf("s2".into()));
        assert_eq!(parse_topology("No topology information available\n"), []);
    }
}
