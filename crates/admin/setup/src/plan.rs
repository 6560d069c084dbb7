//! Areas of all hosts to phases.

use crate::areas::Area;
use crate::site::{AllSeen, Site};
use homing_steps::{Phase, Question};

/// What is to be done, and what cannot be.
#[derive(Debug, Default)]
pub struct Plan {
    /// One an area in which anything is to be done.
    pub phases: Vec<Phase>,
    /// A host, and what stands against an area there: nothing of that area is done on it.
    pub against: Vec<(String, String)>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// What has to be asked of each host.
pub fn question(site: &Site, areas: &[Area]) -> Question {
    let mut question = Question::default();
    areas.iter().for_each(|area| area.ask(site, &mut question));
    question
}

/// The steps of all hosts that answered. A host with something against an area keeps what it has there, and takes part
/// in the others.
pub fn plan(site: &Site, areas: &[Area], seen: &AllSeen) -> Plan {
    let mut plan = Plan::default();
    let mut after = seen.clone();
    for area in areas {
        let mut phase = Phase { name: area.name().into(), ..Phase::default() };
        for host in &site.hosts {
            let wanted = area.wanted(site, host, seen);
            let Some(Ok(there)) = after.get_mut(host) else { continue };
            match wanted.and_then(|wanted| homing_steps::plan(&wanted, there)) {
                // What is written counts only when the system goes by it.
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
