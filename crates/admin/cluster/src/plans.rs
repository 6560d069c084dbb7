//! Makes the hosts of a cluster file the hosts of a run.

use super::Cluster;
use homing_launch::HostPlan;
use homing_model::{Failure, NodeSet};

impl Cluster {
    /// Plans a host with the slots that the cluster files give it.
    pub fn plan(&self, name: String) -> HostPlan {
        let slots = self.slots_of(&name);
        HostPlan::named(name, slots)
    }

    /// Plans the hosts that take tasks, and prints the hosts to which the cluster files give no slot.
    pub fn plans(&self, names: Vec<String>) -> Result<Vec<HostPlan>, Failure> {
        with_slots(names.into_iter().map(|name| self.plan(name)).collect())
    }
}

/// Filters hosts that are planned already, likewise.
pub fn with_slots(plans: Vec<HostPlan>) -> Result<Vec<HostPlan>, Failure> {
    let named = !plans.is_empty();
    let (plans, none): (Vec<HostPlan>, Vec<HostPlan>) = plans.into_iter().partition(|plan| plan.slots != Some(0));
    if named && plans.is_empty() {
        return Err(Failure::usage("none of these hosts takes tasks: the cluster file gives them slots = 0"));
    }
    if !none.is_empty() {
        let none: NodeSet = none.into_iter().map(|plan| plan.name).collect();
        homing_os::say!("homing: no task runs on {none}: slots = 0 in the cluster file");
    }
    Ok(plans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_without_a_slot_are_left_out_and_all_of_them_are_an_error() {
        let plan = |name: &str, slots| HostPlan::named(name.into(), slots);
        let told = with_slots(vec![plan("n1", Some(0)), plan("n2", None), plan("n3", Some(1))]).unwrap();
        assert_eq!(told.into_iter().map(|plan| plan.name).collect::<Vec<_>>(), ["n2", "n3"]);
        assert!(with_slots(vec![plan("n1", Some(0))]).is_err() && with_slots(Vec::new()).unwrap().is_empty());
    }
}
