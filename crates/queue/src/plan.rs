//! Which job starts next, and why another does not. Pure: each runner decides
//! about its own user's jobs and knows of the others how they stand, and all
//! come to the same answer, so nobody has to be in charge.

use crate::depend::Verdict;
use crate::load::Load;
use crate::state::State;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// A queue, as `[queue.NAME]` of the cluster file describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Queue {
    /// Queues of higher priority are served first. LSF's default is 1.
    pub priority: i32,
    /// Shown by `bqueues -l`.
    pub description: String,
    /// The queue that is used when none is named.
    pub default: bool,
    /// Takes no jobs (`false`: it does).
    pub closed: bool,
    /// Hosts that it may use, as a node set; all when empty.
    pub hosts: String,
    /// Slots that its jobs may have (QJOB_LIMIT).
    pub slots: Option<u32>,
    /// ... of one user (UJOB_LIMIT).
    pub per_user: Option<u32>,
    /// ... on one host (HJOB_LIMIT).
    pub per_host: Option<u32>,
    /// Minutes that a job may run (RUNLIMIT).
    pub run_limit: Option<u64>,
    /// Load thresholds, `bio = "1500/4000"`: nothing starts above the first, jobs stand still above the second.
    pub load: BTreeMap<String, String>,
}

/// What the queue goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Slots of this machine.
    pub slots: u32,
    /// Slots of other hosts that jobs may be sent to; `slots` where none are said.
    pub host_slots: BTreeMap<String, u32>,
    /// Queues by name; never empty.
    pub queues: BTreeMap<String, Queue>,
}

impl Config {
    /// The queue for jobs that name none.
    pub fn default_queue(&self) -> &str {
        let marked = self.queues.iter().find(|(_, q)| q.default).map(|(name, _)| name.as_str());
        marked
            .or_else(|| self.queues.keys().find(|n| *n == "normal").map(String::as_str))
            .unwrap_or_else(|| self.queues.keys().next().map_or("normal", String::as_str))
    }
    /// Slots of a host.
    pub fn slots_of(&self, host: &Option<String>) -> u32 {
        host.as_ref().and_then(|h| self.host_slots.get(h)).copied().unwrap_or(self.slots)
    }
}

/// A job, or an element of an array, as the decision sees it.
#[derive(Clone, Debug)]
pub struct View {
    /// Job id.
    pub id: u64,
    /// Index, 0 without an array.
    pub index: u32,
    /// Whose it is.
    pub uid: u32,
    /// Its queue.
    pub queue: String,
    /// Slots that it takes.
    pub slots: u32,
    /// Elements of its array at once.
    pub limit: Option<u32>,
    /// What it is doing.
    pub state: State,
    /// Its dependency.
    pub after: Verdict,
    /// The host that it must run on, when that is not this machine.
    pub host: Option<String>,
    /// Load expressions that must hold.
    pub require: Vec<String>,
    /// When it started, ns since the epoch.
    pub start_ns: i64,
}

/// Why a job that waits does so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A user said so.
    Stopped,
    /// Its dependency.
    After,
    /// Its dependency cannot come true any more.
    Never,
    /// The queue takes no jobs, or is not known (any more).
    Closed,
    /// The queue's slots are in use.
    QueueLimit,
    /// The user's share of the queue is in use.
    UserLimit,
    /// The queue's slots on the host are in use.
    HostLimit,
    /// As many elements of the array run as may.
    ArrayLimit,
    /// This load index is beyond the queue's threshold, or not known.
    Load(String),
    /// This requirement does not hold.
    Require(String),
    /// More slots than there are.
    TooLarge,
    /// Not enough slots are free.
    Slots,
    /// What the engine said, in its own words.
    Other(String),
}

impl std::fmt::Display for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Block::Stopped => write!(f, "held back by its user"),
            Block::After => write!(f, "what it waits for has not happened"),
            Block::Never => write!(f, "what it waits for cannot happen any more"),
            Block::Closed => write!(f, "its queue is closed"),
            Block::QueueLimit => write!(f, "the queue's slots are in use"),
            Block::UserLimit => write!(f, "the user's slots of the queue are in use"),
            Block::HostLimit => write!(f, "the queue's slots on the host are in use"),
            Block::ArrayLimit => write!(f, "as many elements of the array run as may"),
            Block::Load(index) => write!(f, "{index} is above the queue's threshold"),
            Block::Require(what) => write!(f, "{what} does not hold"),
            Block::TooLarge => write!(f, "it takes more slots than there are"),
            Block::Slots => write!(f, "no free slots"),
            Block::Other(reason) => write!(f, "{reason}"),
        }
    }
}

/// Slots in use, as limits count them.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    queue: HashMap<String, u32>,
    user: HashMap<(u32, String), u32>,
    host: HashMap<(String, Option<String>), u32>,
    /// Running elements of each job.
    elements: HashMap<(u32, u64), u32>,
}

impl Usage {
    /// Those of what runs among these.
    pub fn of<'a>(views: impl IntoIterator<Item = &'a View>) -> Usage {
        let mut usage = Usage::default();
        views.into_iter().filter(|v| v.state.is_running()).for_each(|v| usage.start(v));
        usage
    }
    /// One more runs.
    pub fn start(&mut self, it: &View) {
        self.add(it.uid, &it.queue, &it.host, it.slots);
        *self.elements.entry((it.uid, it.id)).or_default() += 1;
    }
    /// Slots of a user, as told by that user.
    pub fn add(&mut self, uid: u32, queue: &str, host: &Option<String>, slots: u32) {
        let sums = [
            self.queue.entry(queue.into()).or_default(),
            self.user.entry((uid, queue.into())).or_default(),
            self.host.entry((queue.into(), host.clone())).or_default(),
        ];
        sums.into_iter().for_each(|sum| *sum = sum.saturating_add(slots));
    }
}

/// Why a job may not start, even when it is its turn and there are slots.
pub fn blocked(config: &Config, usage: &Usage, it: &View, load: &Load) -> Option<Block> {
    if it.state == State::Psusp {
        return Some(Block::Stopped);
    }
    match it.after {
        Verdict::Waits => return Some(Block::After),
        Verdict::Never => return Some(Block::Never),
        Verdict::Holds => {}
    }
    let Some(queue) = config.queues.get(&it.queue).filter(|q| !q.closed) else { return Some(Block::Closed) };
    if it.slots > config.slots_of(&it.host) {
        return Some(Block::TooLarge);
    }
    let full = |limit: Option<u32>, used: Option<&u32>| {
        limit.is_some_and(|limit| used.copied().unwrap_or(0).saturating_add(it.slots) > limit)
    };
    if full(queue.slots, usage.queue.get(&it.queue)) {
        return Some(Block::QueueLimit);
    }
    if queue.per_user.is_some() && full(queue.per_user, usage.user.get(&(it.uid, it.queue.clone()))) {
        return Some(Block::UserLimit);
    }
    if queue.per_host.is_some() && full(queue.per_host, usage.host.get(&(it.queue.clone(), it.host.clone()))) {
        return Some(Block::HostLimit);
    }
    if it.limit.is_some_and(|limit| usage.elements.get(&(it.uid, it.id)).is_some_and(|n| *n >= limit)) {
        return Some(Block::ArrayLimit);
    }
    // Load is this machine's; that of another host is its own affair.
    if it.host.is_none() {
        if let Some(index) = load.above_first(queue) {
            return Some(Block::Load(index));
        }
        if let Some(expr) = it.require.iter().find(|e| !load.holds(e)) {
            return Some(Block::Require(expr.clone()));
        }
    }
    None
}

/// How a user stands on a host: all that the others need to know to decide whose turn it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// The host; `None` is this machine.
    pub host: Option<String>,
    /// Slots in use, by queue.
    pub used: BTreeMap<String, u32>,
    /// The last start, ns since the epoch.
    pub last_ns: i64,
    /// The job that would start next.
    pub wants: Option<Want>,
}

/// A job that waits for nothing but its turn and slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// Its number.
    pub id: u64,
    /// Index, 0 without an array.
    pub index: u32,
    /// Slots that it takes.
    pub slots: u32,
}

/// How the user who has these elements stands on a host. Of the jobs that may start the one of the queue of
/// highest priority is first, then the oldest.
///
/// It may need more slots than are free. Then it waits for them, and nobody
/// overtakes it: a wide job would else never start.
pub fn standing(config: &Config, usage: &Usage, own: &[View], host: &Option<String>, load: &Load) -> Standing {
    let mut stands = Standing { host: host.clone(), ..Standing::default() };
    let here = own.iter().filter(|v| v.host == *host);
    for view in here.clone() {
        stands.last_ns = stands.last_ns.max(view.start_ns);
        if view.state.is_running() {
            *stands.used.entry(view.queue.clone()).or_default() += view.slots;
        }
    }
    let priority = |v: &View| config.queues.get(&v.queue).map_or(0, |q| q.priority);
    let may = here.filter(|v| matches!(v.state, State::Pend | State::Psusp));
    let may = may.filter(|v| blocked(config, usage, v, load).is_none());
    let first = may.min_by_key(|v| (-priority(v), v.id, v.index));
    stands.wants = first.map(|v| Want { id: v.id, index: v.index, slots: v.slots });
    stands
}

/// The user who gets the next slots of a host: of those who want some the one with the fewest, among equals
/// the one who waits longest since the last start.
pub fn whose_turn<'a>(all: impl Iterator<Item = (u32, &'a Standing)>) -> Option<(u32, &'a Want)> {
    let key = |(uid, s): &(u32, &Standing)| {
        let used = s.used.values().fold(0u32, |sum, n| sum.saturating_add(*n));
        (used, s.last_ns, *uid)
    };
    let first = all.filter(|(_, s)| s.wants.is_some()).min_by_key(key)?;
    Some((first.0, first.1.wants.as_ref()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config { slots: 2, host_slots: BTreeMap::new(), queues: BTreeMap::from([("q".into(), Queue::default())]) }
    }
    fn view(id: u64, uid: u32) -> View {
        View {
            id,
            index: 0,
            uid,
            queue: "q".into(),
            slots: 1,
            limit: None,
            state: State::Pend,
            after: Verdict::Holds,
            host: None,
            require: vec![],
            start_ns: 0,
        }
    }

    /// The job that starts next, of all users.
    fn next<'a>(config: &Config, all: &'a [View], present: impl Fn(u32) -> bool) -> Option<&'a View> {
        let usage = Usage::of(all);
        let users: std::collections::BTreeSet<u32> = all.iter().map(|v| v.uid).filter(|uid| present(*uid)).collect();
        let own = |uid| all.iter().filter(|v| v.uid == uid).cloned().collect::<Vec<_>>();
        let stands = |uid| standing(config, &usage, &own(uid), &None, &Load::default());
        let standings: Vec<(u32, Standing)> = users.into_iter().map(|uid| (uid, stands(uid))).collect();
        let (uid, want) = whose_turn(standings.iter().map(|(uid, s)| (*uid, s)))?;
        all.iter().find(|v| (v.uid, v.id, v.index) == (uid, want.id, want.index))
    }
    fn why(config: &Config, all: &[View], it: &View) -> Option<Block> {
        blocked(config, &Usage::of(all), it, &Load::default())
    }

    /// Runs all jobs, each for one round, on `slots` slots; returns the order of starts.
    fn simulate(config: &Config, mut all: Vec<View>) -> Vec<u64> {
        let (mut order, mut clock) = (Vec::new(), 1);
        while all.iter().any(|v| v.state == State::Pend) {
            loop {
                let used: u32 = all.iter().filter(|v| v.state == State::Run).map(|v| v.slots).sum();
                assert!(used <= config.slots, "slots exceeded");
                let Some(found) = next(config, &all, |_| true) else { break };
                if found.slots > config.slots - used {
                    break;
                }
                let key = (found.id, found.index);
                order.push(found.id);
                let chosen = all.iter_mut().find(|v| (v.id, v.index) == key).unwrap();
                (chosen.state, chosen.start_ns) = (State::Run, clock);
                clock += 1;
            }
            // The longest running ends.
            all.iter_mut().filter(|v| v.state == State::Run).min_by_key(|v| v.start_ns).unwrap().state = State::Done;
        }
        order
    }

    #[test]
    fn users_take_turns_as_openlavas_did() {
        let all = vec![view(1, 10), view(2, 10), view(3, 10), view(4, 10), view(5, 11), view(6, 11)];
        assert_eq!(simulate(&config(), all), [1, 5, 2, 6, 3, 4]);
    }

    #[test]
    fn a_wide_job_is_not_overtaken_and_a_too_wide_one_blocks_nobody() {
        let mut all = vec![view(1, 10), view(2, 10), view(3, 10)];
        all[1].slots = 2;
        assert_eq!(simulate(&config(), all), [1, 2, 3]);
        let mut wide = view(1, 10);
        wide.slots = 3;
        let all = [wide, view(2, 10)];
        assert_eq!(next(&config(), &all, |_| true).unwrap().id, 2);
        assert_eq!(why(&config(), &all, &all[0]), Some(Block::TooLarge));
    }

    #[test]
    fn limits_hold() {
        let mut config = config();
        config.slots = 10;
        let mut all: Vec<View> = (1..=6).map(|id| view(id, 10 + (id % 2) as u32)).collect();
        all[0].state = State::Run;
        for (queue, block) in [
            (Queue { slots: Some(1), ..Queue::default() }, Block::QueueLimit),
            (Queue { per_host: Some(1), ..Queue::default() }, Block::HostLimit),
            (Queue { closed: true, ..Queue::default() }, Block::Closed),
        ] {
            config.queues.insert("q".into(), queue);
            assert_eq!(why(&config, &all, &all[1]), Some(block));
        }
        config.queues.insert("q".into(), Queue { per_user: Some(1), ..Queue::default() });
        assert_eq!(why(&config, &all, &all[2]), Some(Block::UserLimit));
        assert_eq!(next(&config, &all, |_| true).unwrap().id, 2);
        // An array's own limit.
        config.queues.insert("q".into(), Queue::default());
        let mut elements: Vec<View> = (1..=3).map(|i| View { index: i, limit: Some(1), ..view(7, 10) }).collect();
        elements[0].state = State::Run;
        assert_eq!(why(&config, &elements, &elements[1]), Some(Block::ArrayLimit));
    }

    #[test]
    fn thresholds_hold_dispatch() {
        let mut config = config();
        let load = BTreeMap::from([("bio".to_string(), "1500/4000".to_string())]);
        config.queues.insert("q".into(), Queue { load, ..Queue::default() });
        let all = [view(1, 10)];
        let at = |bio: f64| blocked(&config, &Usage::of(&all), &all[0], &Load::of(&[("bio", bio)]));
        assert_eq!(at(1500.0), None);
        assert_eq!(at(1501.0), Some(Block::Load("bio".into())));
        // What is not known is not beyond anything: a kernel without the counter must not stop the queue.
        assert_eq!(why(&config, &all, &all[0]), None);
    }

    #[test]
    fn a_user_without_a_runner_is_passed_over() {
        let all = [view(1, 10), view(2, 11)];
        assert_eq!(next(&config(), &all, |uid| uid == 11).unwrap().id, 2);
    }
}
