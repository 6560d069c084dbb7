//! The plan of one round, and its summary.

use super::HostFailures;
use crate::SiteVolume;
use homing_model::text::shown_lines;
use homing_model::{NodeSet, alike};
use homing_steps::{ChangePhase, summary};
use homing_volume::Spec;

/// The changes of one round.
#[derive(Debug, Default)]
pub struct RoundPlan {
    /// The phases, in order.
    pub phases: Vec<ChangePhase>,
    /// Volumes that are made or changed between them.
    pub volumes: Vec<SiteVolume>,
    /// Hosts with an obstacle, and the reason.
    pub failed: HostFailures,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Returns lines on the wanted settings of a volume, and the risks of these.
fn settings(spec: &Spec) -> Vec<String> {
    let options: Vec<String> = spec.options.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let options = (!options.is_empty()).then(|| format!("  options: {}\n", options.join(", ")));
    let export = (!spec.export.is_default()).then(|| format!("  export: {}\n", spec.export));
    let risks = spec.export.risks().into_iter().map(|risk| format!("  note: {risk}\n"));
    options.into_iter().chain(export).chain(risks).collect()
}

impl RoundPlan {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.phases.is_empty() && self.volumes.is_empty()
    }

    /// Returns the text before the request for consent: the summary, and the obstacles.
    pub fn question(&self) -> String {
        self.summary() + &self.obstacles() + "homing up --dry-run shows each step.\n"
    }

    /// Returns a line for all phases, and one for each volume.
    pub fn summary(&self) -> String {
        let mut lines = Vec::new();
        if self.volumes.is_empty() || self.phases.iter().any(|phase| !phase.steps.is_empty()) {
            lines.push(summary(&self.phases) + "\n");
        }
        for volume in &self.volumes {
            let spec = &volume.spec;
            let servers: NodeSet = spec.servers().into_iter().collect();
            let line = format!("{}: volume {} ({}) at {}\n", alike::label(&servers), spec.name, spec.kind, spec.mount);
            lines.push(line);
            lines.extend(settings(spec));
        }
        lines.concat()
    }

    /// Returns a line for each obstacle.
    pub fn obstacles(&self) -> String {
        let mut failed = alike::folded(self.failed.iter().map(|(host, why)| (host.as_str(), why.as_str())));
        failed.dedup();
        failed.iter().map(|line| format!("impossible: {}\n", shown_lines(line))).collect()
    }
}
