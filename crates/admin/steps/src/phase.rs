//! Describes a phase, and finds hosts that were left in the middle of one.

use crate::{ChangePhase, HostChange, Observed};
use homing_model::NodeSet;
use std::collections::BTreeMap;

impl ChangePhase {
    /// Returns a line with the changes that were made, and their hosts.
    pub fn line(&self) -> String {
        self.line_of(HostChange::description)
    }

    /// Returns the line before the changes are made.
    pub fn start_line(&self) -> String {
        self.line_of(HostChange::action) + " ..."
    }

    fn line_of(&self, text: fn(&HostChange) -> String) -> String {
        let hosts: NodeSet = self.steps.keys().chain(self.void.keys()).cloned().collect();
        let mut lines: Vec<String> = Vec::new();
        for step in self.steps.values().flatten().map(|step| text(&step.change)) {
            if !lines.contains(&step) {
                lines.push(step);
            }
        }
        format!("{} on {hosts}: {}", self.name, lines.join(", "))
    }

    /// Whether a host has a step in it. Without one it only clears journal entries.
    pub fn has_steps(&self) -> bool {
        self.steps.values().any(|steps| !steps.is_empty())
    }

    /// Returns the phase without some of its hosts.
    pub fn without(&self, is_out: impl Fn(&str) -> bool) -> ChangePhase {
        let mut rest = self.clone();
        rest.steps.retain(|host, _| !is_out(host));
        rest.void.retain(|host, _| !is_out(host));
        rest
    }
}

/// Returns the hosts that a homing process left before it had confirmed its steps.
pub fn guarded(seen: &BTreeMap<String, Result<Observed, String>>) -> Vec<String> {
    let is_guarded = |there: &Result<Observed, String>| there.as_ref().is_ok_and(|there| there.guarded);
    seen.iter().filter(|(_, there)| is_guarded(there)).map(|(host, _)| host.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChangeStep;

    #[test]
    fn the_line_before_a_phase_is_no_report_of_it() {
        let change = HostChange::Package { name: "tree".into(), replaces: Vec::new() };
        let steps = || vec![ChangeStep { change: change.clone(), undoes: None }];
        let steps = [("n1".to_string(), steps()), ("n2".into(), steps())].into();
        let phase = ChangePhase { name: "packages".into(), steps, ..ChangePhase::default() };
        assert_eq!(phase.start_line(), "packages on n[1-2]: installing tree ...");
        assert_eq!(phase.without(|host| host == "n1").line(), "packages on n2: package tree: installed");
    }
}
