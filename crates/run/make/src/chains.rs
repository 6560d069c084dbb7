//! Finds the recipes that a recipe waited for, by the names of their outputs and inputs. Pure.

use homing_launch::wire::stub::RecipePosition;
use homing_model::graph::plain;
use homing_model::{RawText, TaskId};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// The outputs of the recipes so far.
#[derive(Default)]
pub struct Chains {
    made: HashMap<RawText, OutputMaker>,
    begun: HashMap<TaskId, Begun>,
    /// The end of the longest chain of all.
    longest: Option<OutputMaker>,
}

/// The maker of an output. Of several recipes it is the one that ends the longest chain, because others waited for it
/// longest.
#[derive(Clone, Copy)]
struct OutputMaker {
    by: TaskId,
    chain_ns: i64,
}

struct Begun {
    makes: Vec<RawText>,
    at_ns: i64,
    /// The longest chain that it waited for.
    behind_ns: i64,
    after: Vec<TaskId>,
}

impl Chains {
    /// Records the start of a recipe, with files that its text names. Returns the recipes that it waited for; `None`
    /// if make's data on it is unknown.
    pub fn begin(&mut self, task: TaskId, part: &RecipePosition, named: &[PathBuf], at_ns: i64) -> Option<Vec<TaskId>> {
        let target = part.target.as_ref().map(|target| plain(target.as_path()))?;
        // An earlier attempt waited for the same recipes.
        if let Some(begun) = self.begun.get(&task) {
            return Some(begun.after.clone());
        }
        let needs = part.needs.iter().map(|need| plain(need.as_path()));
        let named = named.iter().map(|path| plain(path));
        let wanted = needs.chain(named).chain([target.clone()]);
        let makers = wanted.filter_map(|name| self.made.get(&name).copied());
        let all = self.longest.filter(|_| part.more);
        let after: BTreeMap<TaskId, i64> = makers.chain(all).map(|made| (made.by, made.chain_ns)).collect();
        let behind_ns = after.values().copied().max().unwrap_or(0);
        let after: Vec<TaskId> = after.into_keys().collect();
        let makes = part.within.iter().map(|outer| plain(outer.as_path())).chain([target]).collect();
        self.begun.insert(task, Begun { makes, at_ns, behind_ns, after: after.clone() });
        Some(after)
    }

    /// Records the end of a recipe, and whether it succeeded.
    pub fn end(&mut self, task: TaskId, at_ns: i64, well: bool) {
        if !well {
            return;
        }
        let Some(begun) = self.begun.remove(&task) else { return };
        let made = OutputMaker { by: task, chain_ns: begun.behind_ns + at_ns - begun.at_ns };
        let is_longer = |old: &OutputMaker| old.chain_ns < made.chain_ns;
        for name in begun.makes {
            let known = self.made.entry(name).or_insert(made);
            if is_longer(known) {
                *known = made;
            }
        }
        self.longest = Some(self.longest.filter(|old| !is_longer(old)).unwrap_or(made));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(target: &str, needs: &[&str]) -> RecipePosition {
        let needs = needs.iter().map(|need| (*need).into()).collect();
        RecipePosition { target: Some(target.into()), needs, ..RecipePosition::default() }
    }

    /// Runs each of these from its first to its second moment.
    fn after(all: &[(&RecipePosition, &str, i64, i64)]) -> Vec<Vec<TaskId>> {
        let mut chains = Chains::default();
        let mut one = |(n, (part, named, from, to)): (usize, &(&RecipePosition, &str, i64, i64))| {
            let named = [PathBuf::from(named)];
            let after = chains.begin(n as TaskId + 1, part, &named, *from).unwrap();
            chains.end(n as TaskId + 1, *to, true);
            after
        };
        all.iter().enumerate().map(&mut one).collect()
    }

    #[test]
    fn a_recipe_waits_for_what_it_needs_and_names_and_for_the_line_before() {
        let (a, b) = (part("/p/a.o", &["/p/a.c"]), part("/p/b.o", &["/p/b.c"]));
        let prog = part("/p/prog", &["/p/./a.o", "/p/objs"]);
        assert_eq!(
            after(&[(&a, "", 0, 5), (&a, "", 5, 6), (&b, "", 0, 2), (&prog, "/p/x/../b.o", 6, 7)]),
            [vec![], vec![1], vec![], vec![2, 3]]
        );
    }

    #[test]
    fn what_needs_a_make_of_its_own_waits_for_the_longest_chain_in_it() {
        let within = |target: &str| RecipePosition { within: vec!["/p/lib".into()], ..part(target, &["/p/conf"]) };
        let (conf, prog) = (part("/p/conf", &[]), part("/p/prog", &["/p/lib"]));
        let (a, b, c) = (within("/p/lib/a.o"), within("/p/lib/b.o"), within("/p/lib/c.o"));
        assert_eq!(
            after(&[(&conf, "", 0, 1), (&a, "", 1, 5), (&b, "", 1, 8), (&c, "", 1, 3), (&prog, "", 8, 9)]),
            [vec![], vec![1], vec![1], vec![1], vec![3]]
        );
    }

    #[test]
    fn of_what_needs_too_much_to_be_told_the_longest_chain_is_waited_for() {
        let many = RecipePosition { more: true, ..part("/p/prog", &[]) };
        let (a, b) = (part("/p/a.o", &[]), part("/p/b.o", &[]));
        assert_eq!(after(&[(&a, "", 0, 5), (&b, "", 0, 2), (&many, "", 6, 7)]), [vec![], vec![], vec![1]]);
    }

    #[test]
    fn a_failure_makes_nothing_and_another_attempt_waited_for_the_same() {
        let mut chains = Chains::default();
        let (a, b) = (part("/p/a", &[]), part("/p/b", &["/p/a"]));
        chains.begin(1, &a, &[], 0);
        chains.end(1, 1, false);
        assert_eq!(chains.begin(2, &b, &[], 1), Some(vec![]));
        chains.begin(1, &a, &[], 2);
        chains.end(1, 3, true);
        assert_eq!(chains.begin(2, &b, &[], 4), Some(vec![]));
        assert_eq!(chains.begin(3, &b, &[], 4), Some(vec![1]));
        assert_eq!(chains.begin(4, &RecipePosition::default(), &[], 4), None);
    }
}
