//! Hosts that take no further part: for good, or until they are observed again.

use crate::{ChangePhase, Fault, Observed};
use std::collections::{BTreeMap, BTreeSet};

/// How often a host that changes between the query and the act is queried again. After that, some process keeps
/// changing it.
const AGAIN: usize = 2;

/// Phases that fail for want of a package.
const PACKAGE_PHASES: [&str; 2] = ["packages", "clock"];
/// Phases that need nothing of another phase.
const FREE_PHASES: [&str; 2] = ["sysctl", "limits"];

/// The lost hosts of one call.
#[derive(Default)]
pub struct Lost {
    /// Hosts that are lost for good, with the reason.
    pub failed: BTreeMap<String, String>,
    /// Hosts that take part, with the reason why an area failed on them.
    pub refused: Vec<(String, String)>,
    /// By host and thing: settings that the system refused, with its message. They are not tried again in this call.
    untaken: BTreeMap<(String, String), String>,
    /// By host: the phase that failed there first.
    first: BTreeMap<String, String>,
    /// By host: phases that were not begun there because an earlier one failed.
    left: BTreeMap<String, Vec<String>>,
    outdated: BTreeSet<String>,
    times: BTreeMap<String, usize>,
}

impl Lost {
    /// Records the faults of a phase.
    pub fn take(&mut self, phase: &str, faults: BTreeMap<String, Fault>) {
        for (host, fault) in faults {
            let why = match fault {
                Fault::Failed(why) => why,
                Fault::Untaken(settings) => {
                    let of = |(thing, why)| ((host.clone(), thing), why);
                    self.untaken.extend(settings.into_iter().map(of));
                    continue;
                }
                Fault::Outdated(why) => {
                    let times = self.times.entry(host.clone()).or_default();
                    *times += 1;
                    if *times <= AGAIN {
                        self.outdated.insert(host);
                        continue;
                    }
                    format!(
                        "{why}, {times} times; stop the other program that changes it there (another homing, a \
                         configuration manager, an editor), then repeat the command"
                    )
                }
            };
            // The first reason is kept: a later phase may fail because of it.
            self.first.entry(host.clone()).or_insert_with(|| phase.into());
            self.failed.entry(host).and_modify(|first| *first = format!("{first}; {why}")).or_insert(why);
        }
    }

    /// Records hosts that failed in a phase in another way than by a step, with the reasons.
    pub fn fail(&mut self, phase: &str, failed: BTreeMap<String, String>) {
        self.first.extend(failed.keys().map(|host| (host.clone(), phase.to_string())));
        self.failed.extend(failed);
    }

    /// Returns the hosts that failed, each with its first phase that did.
    pub fn failed_in(&self) -> impl Iterator<Item = (&String, &String)> {
        self.first.iter()
    }

    /// Removes hosts that take no part from a phase, and records that the phase is not begun there.
    pub fn admit(&mut self, phase: &mut ChangePhase) {
        let out: Vec<String> = phase.steps.keys().filter(|host| !self.admits(host, &phase.name)).cloned().collect();
        out.iter().for_each(|host| self.leave(host, &phase.name));
        phase.steps.retain(|host, _| !out.contains(host));
        phase.void.retain(|host, _| !self.has(host));
    }

    /// Whether the host takes part in a phase. Settings of the kernel and limits need nothing of a package, so a host
    /// without one still gets them.
    fn admits(&self, host: &str, phase: &str) -> bool {
        let failed = self.first.get(host).map(String::as_str);
        let is_free = failed.is_some_and(|first| PACKAGE_PHASES.contains(&first)) && FREE_PHASES.contains(&phase);
        !self.outdated.contains(host) && (is_free || !self.failed.contains_key(host))
    }

    /// Records a phase that a host does not take part in.
    pub fn leave(&mut self, host: &str, phase: &str) {
        let left = self.left.entry(host.into()).or_default();
        if self.failed.contains_key(host) && !left.iter().any(|known| known == phase) {
            left.push(phase.into());
        }
    }

    /// Returns the hosts with phases that were not begun there, as text.
    pub fn not_begun(&self) -> impl Iterator<Item = (String, String)> {
        let left = self.left.iter().filter(|(host, phases)| self.failed.contains_key(*host) && !phases.is_empty());
        left.map(|(host, phases)| (host.clone(), format!("not started there: {}", phases.join(", "))))
    }

    /// Whether the host takes no part now.
    pub fn has(&self, host: &str) -> bool {
        self.failed.contains_key(host) || self.outdated.contains(host)
    }

    /// Lets all hosts take part again except those that are lost for good. Returns whether there are any.
    pub fn look_again(&mut self) -> bool {
        !std::mem::take(&mut self.outdated).is_empty()
    }

    /// Returns the hosts with a refused setting, and the system's message.
    pub fn untaken(&self) -> impl Iterator<Item = (String, String)> {
        self.untaken.iter().map(|((host, _), why)| (host.clone(), why.clone()))
    }

    /// Removes the steps for refused settings from a plan.
    pub fn leave_untaken(&self, phases: &mut Vec<ChangePhase>) {
        for phase in phases.iter_mut() {
            for (host, steps) in &mut phase.steps {
                steps.retain(|step| !self.untaken.contains_key(&(host.clone(), step.change.thing())));
            }
            phase.steps.retain(|_, steps| !steps.is_empty());
        }
        phases.retain(|phase| !phase.steps.is_empty());
    }

    /// Returns the failed hosts in the form of hosts that did not answer.
    pub fn unseen(&self) -> impl Iterator<Item = (String, Result<Observed, String>)> {
        self.failed.iter().map(|(host, why)| (host.clone(), Err(why.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChangeStep, HostChange};

    #[test]
    fn a_host_that_others_change_is_looked_at_again_but_not_for_ever() {
        let mut lost = Lost::default();
        let outdated = || [("n1".to_string(), Fault::Outdated("ssh: /etc/x was changed".into()))].into();
        for _ in 0..2 {
            lost.take("ssh", outdated());
            assert!(lost.has("n1") && lost.failed.is_empty());
            assert!(lost.look_again() && !lost.has("n1"));
        }
        lost.take("ssh", outdated());
        lost.take("ssh", [("n2".to_string(), Fault::Failed("ssh: disk full".into()))].into());
        assert!(!lost.look_again() && lost.has("n1") && lost.has("n2"));
        assert!(lost.failed["n1"].starts_with("ssh: /etc/x was changed, 3 times; stop"), "{:?}", lost.failed);
        assert_eq!(lost.failed["n2"], "ssh: disk full");
    }

    #[test]
    fn a_host_without_a_package_still_gets_its_kernel_settings_and_the_rest_is_named() {
        let mut lost = Lost::default();
        lost.take("packages", [("n1".to_string(), Fault::Failed("packages: no way to a mirror".into()))].into());
        lost.take("ssh", [("n2".to_string(), Fault::Failed("ssh: disk full".into()))].into());
        assert!(lost.admits("n1", "sysctl") && lost.admits("n1", "limits") && !lost.admits("n1", "clock"));
        assert!(!lost.admits("n2", "sysctl") && lost.admits("n3", "clock"));
        ["clock", "homes", "clock"].iter().for_each(|phase| lost.leave("n1", phase));
        lost.leave("n3", "clock");
        lost.take("sysctl", [("n1".to_string(), Fault::Failed("sysctl: no".into()))].into());
        assert_eq!(lost.failed["n1"], "packages: no way to a mirror; sysctl: no");
        let not_begun = [("n1".to_string(), "not started there: clock, homes".to_string())];
        assert_eq!(lost.not_begun().collect::<Vec<_>>(), not_begun);
    }

    #[test]
    fn a_setting_that_was_not_taken_is_named_once_and_its_host_goes_on() {
        let step = |key: &str| {
            let change = HostChange::Sysctl { key: key.into(), from: "1".into(), to: "2".into() };
            ChangeStep { change, undoes: None }
        };
        let mut lost = Lost::default();
        let why = "sysctl: a.b: it is 1".to_string();
        lost.take(
            "sysctl",
            [("n1".to_string(), Fault::Untaken([("sysctl a.b".to_string(), why.clone())].into()))].into(),
        );
        assert!(!lost.has("n1") && !lost.look_again());
        let hosts = ["n1", "n2"].map(|host| (host.to_string(), vec![step("a.b"), step("c.d")]));
        let alone = ChangePhase { steps: [("n1".to_string(), vec![step("a.b")])].into(), ..ChangePhase::default() };
        let mut phases = vec![ChangePhase { steps: hosts.into(), ..ChangePhase::default() }, alone];
        lost.leave_untaken(&mut phases);
        assert_eq!(phases.len(), 1, "{phases:?}");
        assert_eq!((&phases[0].steps["n1"], phases[0].steps["n2"].len()), (&vec![step("c.d")], 2));
        assert_eq!(lost.untaken().collect::<Vec<_>>(), [("n1".to_string(), why)]);
    }
}
