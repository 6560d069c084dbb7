//! Plans areas of all hosts as phases.

use crate::areas::Area;
use crate::site::{AllSeen, ClusterSite};
use homing_steps::{ChangePhase, FactQuery};

/// The steps of a set-up, and the obstacles.
#[derive(Debug, Default)]
pub(crate) struct SetupPlan {
    /// A phase for each area that needs steps.
    pub phases: Vec<ChangePhase>,
    /// A host, and an objection to an area there: nothing of that area is done on it.
    pub against: Vec<(String, String)>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Returns the query for each host.
pub fn question(site: &ClusterSite, areas: &[Area]) -> FactQuery {
    let mut question = FactQuery::default();
    areas.iter().for_each(|area| area.request_facts(site, &mut question));
    question
}

/// Returns the steps of all hosts that answered. A host with an objection to an area keeps its present state there,
/// and takes part in the others.
pub(crate) fn plan(site: &ClusterSite, areas: &[Area], seen: &AllSeen) -> SetupPlan {
    let mut plan = SetupPlan::default();
    let mut after = seen.clone();
    for area in areas {
        let mut phase = ChangePhase { name: area.name().into(), ..ChangePhase::default() };
        for host in &site.hosts {
            let wanted = area.wanted(site, host, seen);
            let Some(Ok(there)) = after.get_mut(host) else { continue };
            match wanted.and_then(|wanted| homing_steps::plan(&wanted, there)) {
                // A written setting counts only if it is in force.
                Ok(steps) if steps.is_empty() => {
                    let untaken = area.untaken(site, host, seen).into_iter();
                    plan.against.extend(untaken.map(|why| (host.clone(), format!("{}: {why}", area.name()))));
                }
                Ok(steps) => drop(phase.steps.insert(host.clone(), steps)),
                Err(why) => {
                    let each = why.into_iter().map(|why| (host.clone(), format!("{}: {why}", area.name())));
                    plan.against.extend(each);
                }
            }
        }
        plan.notes.extend(area.notes(site, seen));
        if !phase.steps.is_empty() {
            plan.phases.push(phase);
        }
    }
    plan
}
