//! Finds the banks that will be full soon.

use crate::ask::Listed;
use crate::target::Target;
use homing_model::units;
use std::collections::BTreeMap;

/// A bank needs room for this many more images of each of its vaults: the nights of a long weekend until somebody can
/// act.
const ROUNDS: f64 = 4.0;

/// Returns the banks that have little room for the next images: the host, a vault of the bank, and the message.
pub fn filling<'a>(vaults: impl Iterator<Item = (&'a Target, &'a Listed)>) -> Vec<(String, String, String)> {
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
            format!("the bank {} has {free} free; one new image of each of its vaults takes {need}", bank.display());
        (host.to_string(), vault.to_string(), what)
    };
    short.map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::VaultLocation;
    use crate::image::Image;
    use crate::section::Section;

    fn vault(name: &str, bank: &str, added: u64, free: u64) -> (Target, Listed) {
        let section = Section { bank: format!("b1:{bank}"), ..Section::default() };
        let site = VaultLocation { bank: bank.into(), vault: name.into() };
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
        let what = "the bank /bank has 400 B free; one new image of each of its vaults takes 101 B";
        assert_eq!(found(&two), [("b1".to_string(), "a".to_string(), what.to_string())]);
    }
}
