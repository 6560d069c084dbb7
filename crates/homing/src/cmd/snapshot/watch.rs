//! What `homing check` tells of vaults: those that are overdue, banks that will be full, and figures of each.

use super::metrics;
use super::read::listed;
use super::show;
use super::target::{Target, all};
use crate::cluster::ClusterArgs;
use crate::failure::Failure;
use homing_check::Finding;
use homing_check::volume::{of_bank, of_vault};
use homing_model::units;
use homing_snapshot::ask::Listed;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

/// A bank needs room for so many more images of each of its vaults: those of the nights until somebody is there after a
/// long weekend.
const ROUNDS: f64 = 4.0;

/// The vaults of a cluster file, with what they hold.
pub struct Watched(Vec<(Target, Result<Listed, Failure>)>);

/// Asks the host of each bank.
pub fn watched(cluster: &ClusterArgs) -> Result<Watched, Failure> {
    let look = |target: Target| {
        let listed = listed(cluster, &target);
        (target, listed)
    };
    Ok(Watched(all(cluster)?.into_iter().map(look).collect()))
}

impl Watched {
    /// None for a check that does not look at vaults.
    pub fn none() -> Watched {
        Watched(Vec::new())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    fn told(&self) -> impl Iterator<Item = (&Target, &Listed)> {
        self.0.iter().filter_map(|(target, listed)| Some((target, listed.as_ref().ok()?)))
    }

    /// What is wrong.
    pub fn findings(&self) -> Vec<Finding> {
        let overdue = |(target, listed): (&Target, &Listed)| {
            show::overdue(target, listed).map(|what| of_vault(&target.name, &target.host, &what))
        };
        let banks = filling(self.told()).into_iter().map(|(host, vault, what)| of_bank(&host, &vault, &what));
        self.told().filter_map(overdue).chain(banks).collect()
    }

    /// Vaults that could not be asked about, and why. One without images yet is asked about where it has a window.
    pub fn unasked(&self) -> Vec<(String, String)> {
        let why = |(target, listed): &(Target, Result<Listed, Failure>)| {
            let failure = listed.as_ref().err().filter(|_| target.section.window.is_some())?;
            Some((format!("snapshot {}", target.name), failure.message.clone()))
        };
        self.0.iter().filter_map(why).collect()
    }

    /// Figures, for programs.
    pub fn json(&self) -> Value {
        self.told().map(|(target, listed)| show::figures(target, listed)).collect()
    }

    /// The same for Prometheus; nothing where there are none.
    pub fn prometheus(&self) -> String {
        let rows: Vec<(&str, &Listed)> = self.told().map(|(target, listed)| (target.name.as_str(), listed)).collect();
        if rows.is_empty() { String::new() } else { metrics::of_rows(&rows, Timestamp::now()) }
    }
}

/// Banks that have little room for what is added each time: the host, a vault of it, and the sentence.
fn filling<'a>(vaults: impl Iterator<Item = (&'a Target, &'a Listed)>) -> Vec<(String, String, String)> {
    let mut banks: BTreeMap<(&str, &std::path::Path), (u64, f64, &str)> = BTreeMap::new();
    for (target, listed) in vaults {
        let added = listed.space().and_then(|space| space.added_bytes_per_image).unwrap_or(0.0);
        let bank = (target.host.as_str(), target.site.bank.as_path());
        let (free, need, _) = banks.entry(bank).or_insert((listed.free, 0.0, &target.name));
        (*free, *need) = ((*free).min(listed.free), *need + added);
    }
    let short = banks.into_iter().filter(|(_, (free, need, _))| (*free as f64) < ROUNDS * need);
    let told = |((host, bank), (free, need, vault)): ((&str, &std::path::Path), (u64, f64, &str))| {
        let (free, need) = (units::bytes(free), units::bytes(need as u64));
        let what =
            format!("the bank {} has {free} free; a new image of each of its vaults adds {need}", bank.display());
        (host.to_string(), vault.to_string(), what)
    };
    short.map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use homing_snapshot::ask::Site;
    use homing_snapshot::image::Image;
    use homing_snapshot::section::Section;

    fn vault(name: &str, bank: &str, added: u64, free: u64) -> (Target, Listed) {
        let section = Section { bank: format!("b1:{bank}"), ..Section::default() };
        let site = Site { bank: bank.into(), vault: name.into() };
        let target = Target { name: name.into(), section, host: "b1".into(), site, below: "".into() };
        let image = |at: &str, own: u64| Image {
            created: at.parse().ok(),
            bytes: Some(900),
            own_bytes: Some(own),
            ..Image::default()
        };
        let images = vec![image("2026-03-01T00:00:00Z", 900), image("2026-03-02T00:00:00Z", added)];
        let now = "2026-03-02T01:00:00Z".parse().unwrap();
        (target, Listed { images, unfinished: vec![], removing: vec![], proved: None, journal: true, free, now })
    }

    #[test]
    fn a_bank_is_short_when_all_its_vaults_together_find_no_room_for_four_rounds() {
        let found = |vaults: &[(Target, Listed)]| filling(vaults.iter().map(|(target, listed)| (target, listed)));
        let alone = [vault("a", "/bank", 100, 400)];
        assert_eq!(found(&alone), []);
        let two = [vault("a", "/bank", 100, 400), vault("b", "/bank", 1, 400), vault("c", "/other", 100, 400)];
        let what = "the bank /bank has 400 B free; a new image of each of its vaults adds 101 B";
        assert_eq!(found(&two), [("b1".to_string(), "a".to_string(), what.to_string())]);
    }
}
