//! `[switch.NAME]` of the cluster file.

use homing_model::links::{ClusterLinks, LinksError, Switch};
use homing_model::{NodeSet, units};
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;

/// `[switch.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchSection {
    /// Its hosts, as a node set.
    pub hosts: Option<String>,
    /// Rate of its link to the switch above.
    pub uplink: Option<Rate>,
    /// The switch above.
    pub above: Option<String>,
}

/// A link's rate, bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate(pub u64);

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Rate, D::Error> {
        let text = String::deserialize(from)?;
        let wrong = || de::Error::custom(format!("{text:?} is not a rate of a link, as in \"10G\" or \"200mbit\""));
        units::bit_rate(&text).map(|bits| Rate((bits / 8).max(1))).ok_or_else(wrong)
    }
}

/// Finds a contradiction within one file, as far as possible without groups: the switch and the reason.
pub(super) fn fault(said: &BTreeMap<String, SwitchSection>) -> Option<LinksError> {
    let mut switches = Vec::new();
    let plain = |text: &str| Ok::<NodeSet, ()>(NodeSet::parse(text).unwrap_or_default());
    add(&mut switches, said, &plain).ok()?;
    // The other file, or the switches that were found, may have the switch above.
    let names: Vec<String> = switches.iter().map(|switch| switch.name.clone()).collect();
    let there = |above: &String| names.contains(above);
    switches.iter_mut().for_each(|switch| switch.above = switch.above.take().filter(there));
    ClusterLinks::new(switches).err()
}

/// Adds settings of switches to the known switches.
pub(super) fn add<E>(
    switches: &mut Vec<Switch>,
    all: &BTreeMap<String, SwitchSection>,
    set: &impl Fn(&str) -> Result<NodeSet, E>,
) -> Result<(), E> {
    for (name, said) in all {
        let at = switches.iter().position(|switch| switch.name == *name).unwrap_or_else(|| {
            switches.push(Switch { name: name.clone(), ..Switch::default() });
            switches.len() - 1
        });
        let switch = &mut switches[at];
        if let Some(text) = &said.hosts {
            switch.hosts = set(text)?.iter().map(String::from).collect();
        }
        switch.uplink = said.uplink.map(|rate| rate.0).or(switch.uplink);
        switch.above = said.above.clone().or(switch.above.take());
    }
    Ok(())
}
