//! Groups waiting jobs by their kind. The jobs of a kind may start or not for the same reasons, so that the first of
//! them represent all. Pure.

use super::WINDOW;
use crate::Storage;
use crate::depend::{self, ConditionVerdict, ElementStates, JobLookup};
use crate::entry::Job;
use crate::plan::Config;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The most kinds in a round. If there are more, a round has the first ones and some others in turn.
const KINDS: usize = 512;
/// The most conditions that a round decides. If there are more, a round decides some in turn.
const CONDITIONS: usize = 512;

/// All that decides whether a waiting job may start, except its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JobClass {
    queue: String,
    host: Option<String>,
    slots: u32,
    over_several: bool,
    require: Vec<String>,
    storage: Option<Storage>,
    after: Option<String>,
    /// The job's number, if it is an array with a limit of its own.
    limited: Option<u64>,
}

impl JobClass {
    pub fn of(job: &Job) -> JobClass {
        let spec = &job.spec;
        JobClass {
            queue: spec.queue.clone(),
            host: spec.host.clone(),
            slots: spec.slots,
            over_several: spec.over_several().is_some(),
            require: spec.require.clone(),
            storage: spec.storage.clone(),
            after: spec.after.clone(),
            limited: spec.array.as_ref().and_then(|array| array.limit).map(|_| job.id),
        }
    }
}

/// The waiting jobs of a kind, by order and number.
struct WaitingJobs {
    jobs: BTreeSet<(i64, u64)>,
    verdict: ConditionVerdict,
}

/// All waiting jobs.
#[derive(Default)]
pub(super) struct Kinds {
    kinds: BTreeMap<Arc<JobClass>, WaitingJobs>,
    /// The kind and order of each job.
    places: HashMap<u64, (Arc<JobClass>, i64)>,
    /// The next turns of kinds and of conditions.
    turns: (usize, usize),
}

impl Kinds {
    /// Moves a job to its present kind and order; with `None` removes it, because it does not wait any more.
    pub fn put(&mut self, id: u64, wanted: Option<(JobClass, i64)>) {
        if let Some((kind, order)) = self.places.get(&id) {
            if wanted.as_ref().is_some_and(|(new, place)| *new == **kind && place == order) {
                return;
            }
            let (kind, order) = (kind.clone(), *order);
            self.places.remove(&id);
            if let Some(waiting) = self.kinds.get_mut(&kind) {
                waiting.jobs.remove(&(order, id));
                if waiting.jobs.is_empty() {
                    self.kinds.remove(&kind);
                }
            }
        }
        let Some((kind, order)) = wanted else { return };
        let kind = self.kinds.get_key_value(&kind).map_or_else(|| Arc::new(kind), |(known, _)| known.clone());
        let verdict = if kind.after.is_some() { ConditionVerdict::Waits } else { ConditionVerdict::Holds };
        let waiting = self.kinds.entry(kind.clone()).or_insert(WaitingJobs { jobs: BTreeSet::new(), verdict });
        waiting.jobs.insert((order, id));
        self.places.insert(id, (kind, order));
    }

    /// Whether a job is among the first of its kind.
    pub fn is_near_front(&self, id: u64) -> bool {
        let Some((kind, order)) = self.places.get(&id) else { return false };
        let before = |waiting: &WaitingJobs| waiting.jobs.range(..(*order, id)).take(WINDOW).count();
        self.kinds.get(kind).is_some_and(|waiting| before(waiting) < WINDOW)
    }

    /// Whether some jobs wait for other jobs.
    pub fn wait_for_conditions(&self) -> bool {
        self.kinds.values().any(|waiting| waiting.verdict == ConditionVerdict::Waits)
    }

    /// Decides conditions again; `states` returns the states of a job that they name.
    pub fn judge(&mut self, states: &dyn Fn(&str) -> ElementStates) {
        struct States<'a>(&'a dyn Fn(&str) -> ElementStates);
        impl JobLookup for States<'_> {
            fn parts(&self, job: &str) -> ElementStates {
                if job.is_empty() { Vec::new() } else { self.0(job) }
            }
        }
        let mut conditions: Vec<_> = self.kinds.iter_mut().filter(|(kind, _)| kind.after.is_some()).collect();
        let turn = next_turn(&mut self.turns.1, conditions.len(), CONDITIONS);
        for at in turn {
            let (kind, waiting) = &mut conditions[at];
            waiting.verdict = depend::judge(kind.after.as_deref().unwrap_or_default(), &States(states));
        }
    }

    /// Returns the jobs that could be next: the first of each kind that waits for no other job. If there are too many
    /// kinds, half of the choice are the kinds whose first jobs come first. The others come in turn, because all of
    /// the former may be blocked.
    pub fn front(&mut self, config: &Config) -> BTreeSet<u64> {
        let priority = |kind: &JobClass| config.queues.get(&kind.queue).map_or(0, |queue| queue.priority);
        let may = self.kinds.iter().filter(|(_, waiting)| waiting.verdict != ConditionVerdict::Waits);
        let mut kinds: Vec<_> = may.collect();
        let first_of = |jobs: &BTreeSet<(i64, u64)>| jobs.iter().take(WINDOW).map(|(_, id)| *id).collect::<Vec<u64>>();
        if kinds.len() <= KINDS {
            return kinds.iter().flat_map(|(_, waiting)| first_of(&waiting.jobs)).collect();
        }
        kinds.sort_by_key(|(kind, waiting)| (-priority(kind), waiting.jobs.first().copied()));
        let others = next_turn(&mut self.turns.0, kinds.len(), KINDS / 2);
        let chosen: BTreeSet<usize> = (0..KINDS / 2).chain(others).collect();
        // One of each: with so many kinds hardly one has more.
        chosen.into_iter().filter_map(|at| kinds[at].1.jobs.first().map(|(_, id)| *id)).collect()
    }
}

/// Returns the next `most` of `all` places, cyclically.
fn next_turn(turn: &mut usize, all: usize, most: usize) -> impl Iterator<Item = usize> + use<> {
    let from = if all == 0 { 0 } else { *turn % all };
    *turn = from + most;
    (from..from + all.min(most)).map(move |at| at % all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::ElementState;

    fn kind(queue: &str, after: Option<&str>) -> JobClass {
        let after = after.map(String::from);
        JobClass {
            queue: queue.into(),
            host: None,
            slots: 1,
            over_several: false,
            require: Vec::new(),
            storage: None,
            after,
            limited: None,
        }
    }

    #[test]
    fn the_first_of_each_kind_stand_for_the_others() {
        let mut kinds = Kinds::default();
        (1..=1000).for_each(|id| kinds.put(id, Some((kind("a", None), 0))));
        kinds.put(1001, Some((kind("b", None), 0)));
        let front = kinds.front(&Config::default());
        assert_eq!(front.len(), WINDOW + 1);
        assert!(front.contains(&1) && front.contains(&1001) && !front.contains(&500));
        assert!(kinds.is_near_front(WINDOW as u64) && !kinds.is_near_front(WINDOW as u64 + 1));
        // One goes before the others, one to another kind, and one is removed.
        kinds.put(500, Some((kind("a", None), -1)));
        kinds.put(1, Some((kind("b", None), 0)));
        kinds.put(1001, None);
        let front = kinds.front(&Config::default());
        assert!(front.contains(&500) && front.contains(&1) && !front.contains(&1001));
        (1..=1000).for_each(|id| kinds.put(id, None));
        assert!(kinds.kinds.is_empty() && kinds.places.is_empty());
    }

    #[test]
    fn what_waits_for_other_jobs_is_no_front_until_they_have_ended() {
        let mut kinds = Kinds::default();
        kinds.put(2, Some((kind("a", Some("done(1)")), 0)));
        assert!(kinds.front(&Config::default()).is_empty() && kinds.wait_for_conditions());
        kinds.judge(&|_| vec![(ElementState::Run, None)]);
        assert!(kinds.front(&Config::default()).is_empty());
        for (state, exit) in [(ElementState::Done, 0), (ElementState::Exit, 1)] {
            kinds.judge(&|_| vec![(state, Some(exit))]);
            // A job that can never start is in the front too: its runner ends it.
            assert_eq!(kinds.front(&Config::default()), [2].into());
            assert!(!kinds.wait_for_conditions());
        }
    }

    #[test]
    fn of_very_many_kinds_each_has_its_turn() {
        let mut kinds = Kinds::default();
        let many = KINDS as u64 * 3;
        (1..=many).for_each(|id| kinds.put(id, Some((kind(&format!("q{id}"), None), 0))));
        let mut seen = BTreeSet::new();
        for _ in 0..6 {
            let front = kinds.front(&Config::default());
            assert!(front.len() <= KINDS && front.contains(&1), "{}", front.len());
            seen.extend(front);
        }
        assert_eq!(seen.len() as u64, many);
    }
}
