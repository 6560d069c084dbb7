//! Describes a phase, and finds hosts that were left in the middle of one.

use crate::{Observed, Phase};
use homing_model::NodeSet;
use std::collections::BTreeMap;

impl Phase {
    /// Returns a line with the changes and their hosts.
    pub fn line(&self) -> String {
        let hosts: NodeSet = self.steps.keys().chain(self.void.keys()).cloned().collect();
        let mut told: Vec<String> = Vec::new();
        for step in self.steps.values().flatten().map(|step| step.change.told()) {
            if !told.contains(&step) {
                told.push(step);
            }
        }
        format!("{} on {hosts}: {}", self.name, told.join(", "))
    }
}

/// Returns the hosts that a homing process left before it had confirmed its steps.
pub fn guarded(seen: &BTreeMap<String, Result<Observed, String>>) -> Vec<String> {
    let is_guarded = |there: &Result<Observed, String>| there.as_ref().is_ok_and(|there| there.guarded);
    seen.iter().filter(|(_, there)| is_guarded(there)).map(|(host, _)| host.clone()).collect()
}
