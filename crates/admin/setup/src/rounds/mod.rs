//! Sets hosts up in rounds: looks, plans, acts, and looks again until nothing is left to do. All effects are behind
//! [`SetupEffects`], which the tests replace by hosts that are values.

mod effects;
mod round_plan;
#[cfg(test)]
mod tests;

pub use effects::{HostFailures, SetupEffects};
pub use round_plan::RoundPlan;

use crate::plan::{SetupPlan, plan};
use crate::site::AllSeen;
use crate::{Area, ClusterSite, question};
use homing_model::{Failure, NodeSet, alike};
use homing_steps::{ChangePhase, Lost, guarded};
use std::collections::BTreeSet;

/// The most rounds before the set-up gives up. A full set-up has a round for packages and volumes, and one for the
/// copy of homes. The host of that copy and the other hosts have one each, and the last finds nothing to do.
const ROUNDS: usize = 6;

/// The outcome of a set-up or of its undoing.
#[derive(Debug, Default)]
pub struct SetupOutcome {
    /// Steps that were carried out.
    pub steps: usize,
    /// Hosts with a failure, and the reason.
    pub failed: HostFailures,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Returns the plan of the first round, and changes nothing.
///
/// # Errors
/// The cluster file has a fault.
pub fn set_up_plan(site: &ClusterSite, areas: &[Area], effects: &mut dyn SetupEffects) -> Result<RoundPlan, Failure> {
    check_site(site)?;
    let mut rounds = Rounds::new(site, effects);
    let seen = rounds.look(areas);
    let mut plan = rounds.plan(areas, &seen);
    plan.failed.extend(rounds.refused_volumes(&plan));
    plan.failed.extend(rounds.effects.cut_off(&plan.phases));
    Ok(plan)
}

/// Sets hosts up. A host that fails takes no further part, and the others go on.
///
/// # Errors
/// The cluster file has a fault, the plan has one that stops it before the first change, the user does not agree, or
/// changes do not last.
pub fn set_up(site: &ClusterSite, areas: &[Area], effects: &mut dyn SetupEffects) -> Result<SetupOutcome, Failure> {
    check_site(site)?;
    Rounds::new(site, effects).run(areas)
}

fn check_site(site: &ClusterSite) -> Result<(), Failure> {
    let faults = site.faults();
    if !faults.is_empty() {
        return Err(Failure::usage(format!("the cluster file: {}", faults.join("; "))));
    }
    if site.hosts.is_empty() {
        return Err(Failure::usage("no hosts are named").hint("hosts = \"n[1-4]\" in the cluster file"));
    }
    Ok(())
}

/// The state of one set-up under way.
struct Rounds<'a> {
    site: &'a ClusterSite,
    effects: &'a mut dyn SetupEffects,
    lost: Lost,
    /// Volumes that could not be made. They are not tried again.
    unmade: HostFailures,
    steps: usize,
}

impl<'a> Rounds<'a> {
    fn new(site: &'a ClusterSite, effects: &'a mut dyn SetupEffects) -> Rounds<'a> {
        Rounds { site, effects, lost: Lost::default(), unmade: Vec::new(), steps: 0 }
    }

    fn run(mut self, areas: &[Area]) -> Result<SetupOutcome, Failure> {
        let mut round = 0;
        let mut last = loop {
            let due: Vec<Area> = areas.iter().copied().filter(|area| self.is_tried(*area)).collect();
            let seen = self.look_unguarded(&due)?;
            let mut plan = self.plan(&due, &seen);
            if round == 0 {
                self.check_obstacles(&mut plan)?;
            }
            plan.failed.extend(self.earlier_failures());
            if plan.is_empty() {
                break plan;
            }
            if round == ROUNDS {
                return Err(unlasting(&plan));
            }
            self.effects.request_consent(&plan.question())?;
            self.effects.begin()?;
            if self.act(plan) {
                round += 1;
            }
        };
        self.leave_homes(areas);
        last.failed.extend(self.lost.not_begun());
        Ok(SetupOutcome { steps: self.steps, failed: last.failed, notes: last.notes })
    }

    /// Whether an area is still tried. An MTU that failed is not.
    fn is_tried(&self, area: Area) -> bool {
        area != Area::Mtu || self.lost.refused.is_empty()
    }

    /// Looks at hosts, except those that failed before.
    fn look(&mut self, areas: &[Area]) -> AllSeen {
        let hosts: Vec<String> = self.site.hosts.iter().filter(|host| !self.lost.has(host)).cloned().collect();
        let mut seen = self.effects.look(&question(self.site, areas), &hosts);
        seen.extend(self.lost.unseen());
        seen
    }

    /// Looks at hosts. Guarded changes that an interrupted call left on some of them are ended first.
    fn look_unguarded(&mut self, areas: &[Area]) -> Result<AllSeen, Failure> {
        let mut seen = self.look(areas);
        let left = guarded(&seen);
        if left.is_empty() {
            return Ok(seen);
        }
        let hosts: NodeSet = left.iter().cloned().collect();
        self.effects.request_consent(&format!("{hosts}: an interrupted change of ssh will be confirmed or undone"))?;
        let failed = self.effects.end_guards(&left);
        self.lost.fail(Area::Ssh.name(), failed);
        if left.iter().any(|host| !self.lost.has(host)) {
            // A change that was taken back differs from the state that was seen.
            return Ok(self.look(areas));
        }
        seen.extend(self.lost.unseen());
        Ok(seen)
    }

    fn plan(&self, areas: &[Area], seen: &AllSeen) -> RoundPlan {
        let SetupPlan { mut phases, against, notes } = plan(self.site, areas, seen);
        self.lost.leave_untaken(&mut phases);
        let silent = seen.iter().filter_map(|(host, s)| Some((host.clone(), s.as_ref().err()?.clone())));
        let failed = silent.chain(against).collect();
        let wants_volumes = areas.contains(&Area::Volumes) && self.unmade.is_empty();
        let volumes = if wants_volumes { self.effects.volumes_due(seen) } else { Vec::new() };
        RoundPlan { phases, volumes, failed, notes }
    }

    /// Returns the refusals of volumes that are known before the first change.
    fn refused_volumes(&self, plan: &RoundPlan) -> HostFailures {
        // The folders of a volume may be meant for a disk that is mounted first.
        let disks_first = plan.phases.iter().any(|phase| phase.name == Area::Disks.name());
        self.effects.volumes_refused(&plan.volumes, disks_first)
    }

    /// Stops a set-up before its first change if it could not be completed on any host.
    fn check_obstacles(&self, plan: &mut RoundPlan) -> Result<(), Failure> {
        let refused = self.refused_volumes(plan);
        if !refused.is_empty() {
            return Err(Failure::usage(refusal(&refused)));
        }
        let cut_off = self.effects.cut_off(&plan.phases);
        // If others can go on, the plan names these hosts, and their own steps fail.
        if !cut_off.is_empty() && cut_off.len() == self.site.hosts.len() {
            return Err(Failure::system(refusal(&cut_off)));
        }
        plan.failed.extend(cut_off);
        Ok(())
    }

    /// Returns the failures of earlier rounds that the hosts themselves do not show.
    fn earlier_failures(&self) -> HostFailures {
        self.unmade.iter().chain(&self.lost.refused).cloned().chain(self.lost.untaken()).collect()
    }

    /// Carries out a plan. Returns whether a round is complete. It is not if a host must be looked at again.
    fn act(&mut self, plan: RoundPlan) -> bool {
        let precedes = |phase: &ChangePhase| Area::named(&phase.name).is_some_and(|area| area < Area::Volumes);
        let (before, behind): (Vec<_>, Vec<_>) = plan.phases.into_iter().partition(precedes);
        self.carry_out(before);
        // A volume needs the earlier phases on all of its hosts.
        if self.lost.look_again() {
            return false;
        }
        self.steps += plan.volumes.len();
        self.unmade.extend(self.effects.make_volumes(&plan.volumes));
        self.carry_out(behind);
        !self.lost.look_again()
    }

    fn carry_out(&mut self, phases: Vec<ChangePhase>) {
        for phase in phases {
            self.steps += self.effects.carry_out(phase, &mut self.lost);
        }
    }

    /// Records that homes were not begun on hosts that failed. Their steps are planned only once the volume is mounted.
    fn leave_homes(&mut self, areas: &[Area]) {
        if !areas.contains(&Area::Homes) {
            return;
        }
        let is_early = |phase: &str| Area::named(phase).is_some_and(|area| area < Area::Homes);
        let failed = self.lost.failed_in().filter(|(_, phase)| is_early(phase)).map(|(host, _)| host.clone());
        failed.collect::<Vec<_>>().iter().for_each(|host| self.lost.leave(host, Area::Homes.name()));
    }
}

/// Returns the message about faults that are known before the first change. They must not stop a set-up in the middle.
fn refusal(refused: &[(String, String)]) -> String {
    let lines = alike::folded(refused.iter().map(|(host, why)| (host.as_str(), why.as_str())));
    format!("nothing was changed, because the plan has faults:\n  {}", lines.join("\n  "))
}

fn unlasting(plan: &RoundPlan) -> Failure {
    let hosts: NodeSet = plan.phases.iter().flat_map(|p| p.steps.keys().cloned()).collect();
    let steps = plan.phases.iter().flat_map(|phase| phase.steps.values().flatten());
    let things: BTreeSet<String> = steps.map(|step| step.change.thing()).collect();
    let things = things.into_iter().collect::<Vec<_>>().join(", ");
    Failure::system(format!(
        "after {ROUNDS} rounds {hosts} still differ from the cluster file; each round succeeded, but these changes \
         did not last: {things}"
    ))
    .hint("homing up --dry-run")
}
