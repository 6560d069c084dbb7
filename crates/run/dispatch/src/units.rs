//! Assigns units of named resources to tasks, for example the numbers of graphics processors. Pure.

use homing_model::TaskId;
use std::collections::BTreeMap;

/// The largest amount that counts devices. A larger one counts a quantity such as gigabytes, which has no numbered
/// units.
const MOST: u64 = 256;
/// Resources whose units are CUDA devices. Their programs also receive `CUDA_VISIBLE_DEVICES`.
const CUDA: [&str; 2] = ["gpu", "gpus"];

/// The units of one host's resources, each with the task that has it.
#[derive(Debug, Default)]
pub(crate) struct Units(BTreeMap<String, Vec<Option<TaskId>>>);

impl Units {
    /// Makes so many free units of each resource.
    pub fn new(resources: &BTreeMap<String, u64>) -> Units {
        let counted = resources.iter().filter(|(_, all)| **all <= MOST);
        Units(counted.map(|(name, all)| (name.clone(), vec![None; *all as usize])).collect())
    }

    /// Gives a task the lowest free units of its resources. Returns the variables that name them.
    pub fn take(&mut self, task: TaskId, wanted: &[(String, u64)]) -> Vec<(String, String)> {
        let mut variables = Vec::new();
        for (name, amount) in wanted {
            let Some(units) = self.0.get_mut(name) else { continue };
            let free = units.iter_mut().enumerate().filter(|(_, holder)| holder.is_none()).take(*amount as usize);
            let numbers: Vec<String> = free
                .map(|(number, holder)| {
                    *holder = Some(task);
                    number.to_string()
                })
                .collect();
            let numbers = numbers.join(",");
            if CUDA.contains(&name.as_str()) {
                variables.push(("CUDA_VISIBLE_DEVICES".into(), numbers.clone()));
            }
            variables.push((variable(name), numbers));
        }
        variables
    }

    /// Takes back all units of a task.
    pub fn give_back(&mut self, task: TaskId) {
        for holder in self.0.values_mut().flatten().filter(|holder| **holder == Some(task)) {
            *holder = None;
        }
    }
}

/// Returns a variable such as `HOMING_RESOURCE_gpu`. Other characters become underscores.
fn variable(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("HOMING_RESOURCE_{}", name.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
        pairs.iter().map(|(name, amount)| (name.to_string(), *amount)).collect()
    }

    #[test]
    fn no_two_tasks_have_the_same_unit_and_the_lowest_free_ones_go_first() {
        let mut units = Units::new(&of(&[("gpu", 3), ("disk", 4000)]).into_iter().collect());
        let value =
            |found: Vec<(String, String)>, name: &str| found.into_iter().find(|(n, _)| n == name).map(|(_, v)| v);
        assert_eq!(value(units.take(1, &of(&[("gpu", 1)])), "CUDA_VISIBLE_DEVICES").as_deref(), Some("0"));
        assert_eq!(value(units.take(2, &of(&[("gpu", 2)])), "HOMING_RESOURCE_gpu").as_deref(), Some("1,2"));
        units.give_back(1);
        assert_eq!(value(units.take(3, &of(&[("gpu", 1)])), "CUDA_VISIBLE_DEVICES").as_deref(), Some("0"));
        assert!(units.take(4, &of(&[("disk", 3)])).is_empty(), "an amount has no units");
        assert_eq!(variable("fpga.a"), "HOMING_RESOURCE_fpga_a");
    }

    /// A task without a device must not see any: an empty value hides all.
    #[test]
    fn a_task_that_takes_nothing_of_it_has_an_empty_list() {
        let mut units = Units::new(&of(&[("gpu", 2)]).into_iter().collect());
        let found = units.take(1, &of(&[("gpu", 0)]));
        assert!(found.contains(&("CUDA_VISIBLE_DEVICES".into(), String::new())), "{found:?}");
    }
}
