//! Findings of `homing check` about vaults: overdue images, banks that fill up, and figures of each vault.

use super::target::{all, known};
use crate::cluster::ClusterArgs;
use homing_check::HostFinding;
use homing_check::volume::{of_bank, of_vault};
use homing_model::Failure;
use homing_snapshot::ask::Listed;
use homing_snapshot::asking::listed;
use homing_snapshot::banks::filling;
use homing_snapshot::target::Target;
use homing_snapshot::{metrics, output};
use jiff::Timestamp;
use serde_json::Value;

/// The vaults of a cluster file, with their images.
pub struct Watched(Vec<(Target, Result<Listed, Failure>)>);

/// Queries the host of each bank.
pub fn watched(cluster: &ClusterArgs) -> Result<Watched, Failure> {
    let known = known(cluster)?;
    let look = |target: Target| {
        let listed = listed(&known, &target);
        (target, listed)
    };
    Ok(Watched(all(cluster)?.into_iter().map(look).collect()))
}

impl Watched {
    /// Returns no vaults, for a check that does not look at them.
    pub fn none() -> Watched {
        Watched(Vec::new())
    }

    /// Returns the number of vaults.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    fn listed_targets(&self) -> impl Iterator<Item = (&Target, &Listed)> {
        self.0.iter().filter_map(|(target, listed)| Some((target, listed.as_ref().ok()?)))
    }

    /// Returns the faults.
    pub fn findings(&self) -> Vec<HostFinding> {
        let overdue = |(target, listed): (&Target, &Listed)| {
            output::overdue(target, listed).map(|what| of_vault(&target.name, &target.host, &what))
        };
        let banks = filling(self.listed_targets()).into_iter().map(|(host, vault, what)| of_bank(&host, &vault, &what));
        self.listed_targets().filter_map(overdue).chain(banks).collect()
    }

    /// Returns the vaults that could not be queried, with the reason. Only vaults with a `window` count.
    pub fn unasked(&self) -> Vec<(String, String)> {
        let why = |(target, listed): &(Target, Result<Listed, Failure>)| {
            let failure = listed.as_ref().err().filter(|_| target.section.window.is_some())?;
            Some((format!("snapshot {}", target.name), failure.message.clone()))
        };
        self.0.iter().filter_map(why).collect()
    }

    /// Returns the figures as JSON.
    pub fn json(&self) -> Value {
        self.listed_targets().map(|(target, listed)| output::figures(target, listed)).collect()
    }

    /// Returns the figures for Prometheus; empty if there are none.
    pub fn prometheus(&self) -> String {
        let rows: Vec<(&str, &Listed)> =
            self.listed_targets().map(|(target, listed)| (target.name.as_str(), listed)).collect();
        if rows.is_empty() { String::new() } else { metrics::of_rows(&rows, Timestamp::now()) }
    }
}
