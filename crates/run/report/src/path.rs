//! The critical path of a build: the recipes that could only run one after the other, and the number of useful hosts.
//! Pure.

use homing_model::event::EventKind;
use homing_model::fit::clipped;
use homing_model::units::{count, span};
use homing_model::{Event, TaskId};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// The number of the longest recipes of the path that are named.
const NAMED: usize = 3;
/// The most characters of a command.
const COMMAND: usize = 40;

/// The recipes of a build. The caller passes every event, in order.
#[derive(Clone, Debug, Default)]
pub struct Path {
    running: HashMap<TaskId, ChainRecipe>,
    done: HashMap<TaskId, ChainRecipe>,
    slots: BTreeMap<String, u32>,
    /// The last recipe of the longest chain.
    last: Option<TaskId>,
    work_us: u64,
    /// Whether the prerequisites of some recipe are unknown.
    unknown: bool,
}

#[derive(Clone, Debug)]
struct ChainRecipe {
    began_ns: i64,
    /// The time from the assignment to a host until its end was known.
    took_us: u64,
    /// The same, plus the longest chain that it waited for.
    chain_us: u64,
    /// The last recipe of that chain.
    before: Option<TaskId>,
    command: String,
}

/// The lower bound of a build's time, and the hosts that it can use.
#[derive(Debug, PartialEq)]
struct Bound {
    path_us: u64,
    work_us: u64,
    /// The recipes of the path, in order: number, microseconds, command.
    path: Vec<(TaskId, u64, String)>,
    /// The number of hosts that the build would have kept busy.
    hosts: u64,
}

impl Path {
    /// Takes the next event.
    pub fn add(&mut self, event: &Event) {
        match &event.what {
            EventKind::HostUp { host, slots, .. } => drop(self.slots.insert(host.clone(), *slots)),
            EventKind::TaskStarted { task, after, command, .. } => {
                self.begin(*task, after.as_deref(), &String::from_utf8_lossy(&command.0), event.at_ns)
            }
            EventKind::TaskEnded { task, outcome, last, .. } if *last => {
                self.end(*task, outcome.is_success(), event.at_ns)
            }
            _ => {}
        }
    }

    fn begin(&mut self, task: TaskId, after: Option<&[TaskId]>, command: &str, at_ns: i64) {
        self.unknown |= after.is_none();
        let chain = |task: &TaskId| self.done.get(task).map(|recipe| (recipe.chain_us, *task));
        let behind = after.unwrap_or_default().iter().filter_map(chain).max();
        let (chain_us, before) = behind.map_or((0, None), |(chain_us, task)| (chain_us, Some(task)));
        let command = clipped(command.lines().next().unwrap_or("").trim_end(), COMMAND);
        let recipe = ChainRecipe { began_ns: at_ns, took_us: 0, chain_us, before, command };
        // A lost attempt is part of the recipe's time.
        self.running.entry(task).or_insert(recipe);
    }

    fn end(&mut self, task: TaskId, well: bool, at_ns: i64) {
        let Some(mut recipe) = self.running.remove(&task).filter(|_| well) else { return };
        recipe.took_us = u64::try_from(at_ns - recipe.began_ns).unwrap_or(0) / 1000;
        recipe.chain_us += recipe.took_us;
        self.work_us += recipe.took_us;
        let longest = self.last.map_or(0, |last| self.done[&last].chain_us);
        if recipe.chain_us >= longest {
            self.last = Some(task);
        }
        self.done.insert(task, recipe);
    }

    fn bound(&self) -> Option<Bound> {
        let last = self.last.filter(|_| !self.unknown && self.done.len() > 1)?;
        let way = std::iter::successors(Some(last), |task| self.done[task].before);
        let mut path: Vec<_> =
            way.map(|task| (task, self.done[&task].took_us, self.done[&task].command.clone())).collect();
        path.reverse();
        let path_us = self.done[&last].chain_us.max(1);
        let at_once = self.work_us.div_ceil(path_us);
        Some(Bound { path_us, work_us: self.work_us, path, hosts: self.hosts(at_once) })
    }

    /// Returns the number of hosts that have so many slots, counting hosts with most slots first. Beyond the hosts of
    /// the build, further ones have the mean number of slots.
    fn hosts(&self, at_once: u64) -> u64 {
        let mut slots: Vec<u64> = self.slots.values().map(|slots| u64::from(*slots).max(1)).collect();
        slots.sort_unstable_by(|a, b| b.cmp(a));
        let all: u64 = slots.iter().sum();
        if at_once > all {
            let mean = (all / (slots.len() as u64).max(1)).max(1);
            return slots.len() as u64 + (at_once - all).div_ceil(mean);
        }
        let before = |n: &usize| slots.iter().take(*n).sum::<u64>();
        (0..slots.len()).take_while(|n| before(n) < at_once).count() as u64
    }

    /// Returns the path as lines. Empty if the prerequisites of recipes are unknown, or only one ran.
    pub fn lines(&self) -> Vec<String> {
        let Some(bound) = self.bound() else { return Vec::new() };
        let mut longest: Vec<_> = bound.path.iter().collect();
        longest.sort_by_key(|(task, us, _)| (std::cmp::Reverse(*us), *task));
        let named = longest.iter().take(NAMED).map(|(_, us, command)| format!("{} {command}", span(*us)));
        let named: Vec<String> = named.collect();
        let times = bound.work_us as f64 / bound.path_us as f64;
        let recipes = count(bound.path.len() as u64, "recipe");
        vec![
            format!("{} for {recipes} in sequence, longest: {}", span(bound.path_us), named.join("; ")),
            format!(
                "{} of work in all, {times:.1} times the path: more than {} would not shorten the build",
                span(bound.work_us),
                count(bound.hosts, "host")
            ),
        ]
    }

    /// Returns the path as JSON, `null` where it is unknown.
    pub fn json(&self) -> Value {
        let Some(bound) = self.bound() else { return Value::Null };
        let recipe = |(task, us, command): &(TaskId, u64, String)| json!({"task": task, "us": us, "command": command});
        json!({
            "length_us": bound.path_us, "work_us": bound.work_us, "most_hosts": bound.hosts,
            "recipes": bound.path.iter().map(recipe).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tally;
    use crate::made::{ended, started};
    use homing_model::{HostFacts, IoCounters, Outcome};

    const S: i64 = 1_000_000_000;

    /// Makes recipes: the name, the recipes that it waited for, and the seconds of its start and end.
    fn build(slots: &[u32], recipes: &[(&str, Option<&[TaskId]>, i64, i64)]) -> Vec<Event> {
        let up = |(n, slots): (usize, &u32)| EventKind::HostUp {
            host: format!("n{}", n + 1),
            slots: *slots,
            facts: HostFacts::default(),
        };
        let argv = ["/usr/bin/homing", "make", "-j9"].map(Into::into).into();
        let (run, cwd, host) = ("r".to_string(), "/p".into(), "n1".to_string());
        let begun = EventKind::RunStarted { v: 1, run, argv, cwd, host, pid: 1, tasks: None, label: None };
        let mut events = vec![Event { at_ns: 0, what: begun }];
        events.extend(slots.iter().enumerate().map(up).map(|what| Event { at_ns: 0, what }));
        let mut timed = Vec::new();
        for (n, (command, after, from, to)) in recipes.iter().enumerate() {
            let task = n as TaskId + 1;
            let mut start = started(task, "n1", 1, command, None);
            if let EventKind::TaskStarted { after: waited, .. } = &mut start {
                *waited = after.map(<[TaskId]>::to_vec);
            }
            timed.push(Event { at_ns: from * S, what: start });
            let end = ended(task, "n1", Outcome::Exit(0), (to - from) as u64 * 1_000_000, IoCounters::default());
            timed.push(Event { at_ns: to * S, what: end });
        }
        timed.sort_by_key(|event| (event.at_ns, matches!(event.what, EventKind::TaskStarted { .. })));
        events.extend(timed);
        events
    }

    fn of(events: &[Event]) -> Path {
        let mut path = Path::default();
        events.iter().for_each(|event| path.add(event));
        path
    }

    const FREE: Option<&[TaskId]> = Some(&[]);

    #[test]
    fn the_path_its_longest_recipes_and_the_hosts_of_use_are_told() {
        let events = build(
            &[2, 2, 2],
            &[
                ("cc -c a.c", FREE, 0, 4),
                ("cc -c b.c", FREE, 0, 1),
                ("cc -c c.c", FREE, 0, 3),
                ("ar lib", Some(&[2, 3]), 4, 5),
                ("ld", Some(&[1, 4]), 5, 7),
            ],
        );
        let text = [
            "6.0 s for 3 recipes in sequence, longest: 3.0 s cc -c c.c; 2.0 s ld; 1.0 s ar lib",
            "11.0 s of work in all, 1.8 times the path: more than 1 host would not shorten the build",
        ];
        assert_eq!(of(&events).lines(), text);
        let json = of(&events).json();
        assert_eq!((&json["length_us"], &json["work_us"]), (&json!(6_000_000), &json!(11_000_000)));
        assert_eq!(json["recipes"][2], json!({"task": 5, "us": 2_000_000, "command": "ld"}));
        let mut tally = Tally::new();
        events.iter().for_each(|event| tally.add(event));
        assert!(tally.text(false).contains(&format!("path       {}\n           {}\n", text[0], text[1])));
        assert_eq!(tally.json()["path"], json);
        assert!(crate::html(&events, &tally).contains("6.0 s for 3 recipes in sequence"));
    }

    #[test]
    fn more_hosts_than_there_were_are_told_where_they_would_be_used() {
        let all: Vec<_> = (0..20).map(|_| ("cc", FREE, 0, 2)).collect();
        assert!(of(&build(&[4, 4], &all)).lines()[1].ends_with("more than 5 hosts would not shorten the build"));
        assert!(of(&build(&[16, 2, 8], &all)).lines()[1].ends_with("more than 2 hosts would not shorten the build"));
    }

    #[test]
    fn where_it_is_not_known_what_one_waited_for_nothing_is_told() {
        let path = of(&build(&[2], &[("cc", FREE, 0, 2), ("ld", None, 2, 3)]));
        assert_eq!((path.lines(), path.json()), (vec![], Value::Null));
        assert_eq!(of(&build(&[2], &[("cc", FREE, 0, 2)])).lines(), [""; 0], "there is nothing to run beside it");
    }
}
