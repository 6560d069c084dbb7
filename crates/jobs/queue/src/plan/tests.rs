use super::*;
use crate::control::{Control, ControlOrder};

fn config() -> Config {
    let queues = BTreeMap::from([("q".into(), Queue::default())]);
    Config { slots: 2, queues, name: "here".into(), ..Config::default() }
}
pub(crate) fn view(id: u64, uid: u32) -> JobView {
    JobView {
        id,
        index: 0,
        uid,
        queue: "q".into(),
        slots: 1,
        gpu_parts: 0,
        order: 0,
        limit: None,
        state: ElementState::Pend,
        asks: false,
        after: ConditionVerdict::Holds,
        host: None,
        require: vec![],
        storage: None,
        began: Duration::ZERO,
    }
}

#[test]
fn jobs_start_while_graphics_processors_are_free_and_others_pass_those_that_wait() {
    let config = Config { slots: 8, gpus: 2, ..config() };
    let mut all: Vec<JobView> = (1..=3).map(|id| JobView { gpu_parts: 100, ..view(id, 10) }).collect();
    all.push(view(4, 10));
    all.push(JobView { gpu_parts: 300, ..view(5, 10) });
    all.push(JobView { host: Some("n2".into()), gpu_parts: 300, ..view(6, 10) });
    for id in [1, 2] {
        assert_eq!(next(&config, &all, |_| true).map(|v| v.id), Some(id));
        all[id as usize - 1].state = ElementState::Run;
    }
    assert_eq!(why(&config, &all, &all[2]), Some(Block::Gpus));
    assert_eq!(next(&config, &all, |_| true).map(|v| v.id), Some(4));
    assert_eq!(why(&config, &all, &all[4]), Some(Block::Beyond("gpu=3".into())));
    assert_eq!(why(&config, &all, &all[5]), None, "another host counts its own");
    let half = JobView { gpu_parts: 50, ..view(7, 10) };
    assert_eq!(why(&config, &all, &half), Some(Block::Gpus));
    all[0].state = ElementState::Pend;
    assert_eq!(why(&config, &all, &half), None);
}

/// Returns the job of all users that starts next.
fn next<'a>(config: &Config, all: &'a [JobView], present: impl Fn(u32) -> bool) -> Option<&'a JobView> {
    let usage = Usage::of(all);
    let users: std::collections::BTreeSet<u32> = all.iter().map(|v| v.uid).filter(|uid| present(*uid)).collect();
    let own = |uid| all.iter().filter(|v| v.uid == uid).cloned().collect::<Vec<_>>();
    let stands = |uid| standing(config, &usage, &own(uid), &None, &LoadIndices::default());
    let standings: Vec<(u32, Standing)> = users.into_iter().map(|uid| (uid, stands(uid))).collect();
    let (uid, want) = whose_turn(standings.iter().map(|(uid, s)| (*uid, s)))?;
    all.iter().find(|v| (v.uid, v.id, v.index) == (uid, want.id, want.index))
}
fn why(config: &Config, all: &[JobView], it: &JobView) -> Option<Block> {
    blocked(config, &Usage::of(all), it, &LoadIndices::default())
}

/// Runs all jobs, each for one round, on `slots` slots; returns the order of starts.
fn simulate(config: &Config, mut all: Vec<JobView>) -> Vec<u64> {
    let (mut order, mut clock) = (Vec::new(), 1);
    while all.iter().any(|v| v.state == ElementState::Pend) {
        loop {
            let used: u32 = all.iter().filter(|v| v.state == ElementState::Run).map(|v| v.slots).sum();
            assert!(used <= config.slots, "slots exceeded");
            let Some(found) = next(config, &all, |_| true) else { break };
            if found.slots > config.slots - used {
                break;
            }
            let key = (found.id, found.index);
            order.push(found.id);
            let chosen = all.iter_mut().find(|v| (v.id, v.index) == key).unwrap();
            (chosen.state, chosen.began) = (ElementState::Run, Duration::from_secs(clock));
            clock += 1;
        }
        // The element that has run longest ends.
        all.iter_mut().filter(|v| v.state == ElementState::Run).min_by_key(|v| v.began).unwrap().state =
            ElementState::Done;
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
    let mut all: Vec<JobView> = (1..=6).map(|id| view(id, 10 + (id % 2) as u32)).collect();
    all[0].state = ElementState::Run;
    for (queue, block) in [
        (Queue { slots: Some(1), ..Queue::default() }, Block::QueueLimit),
        (Queue { per_host: Some(1), ..Queue::default() }, Block::HostLimit),
        (Queue { closed: true, ..Queue::default() }, Block::Closed),
    ] {
        config.queues.insert("q".into(), queue);
        assert_eq!(why(&config, &all, &all[1]), Some(block));
    }
    config.queues.insert("q".into(), Queue::default());
    let order = ControlOrder { shut: true, by: "root".into(), at_ns: 0, why: None };
    let shut = |target, name: &str| Control::default().with(target, &[name.to_string()], &order);
    let by = |control: Control, it: &JobView| why(&Config { control, ..config.clone() }, &all, it);
    assert_eq!(by(shut(Target::Dispatch, "q"), &all[1]), Some(Block::Inactive(order.to_string())));
    assert_eq!(by(shut(Target::Host, "here"), &all[1]), Some(Block::ClosedHost(order.to_string())));
    assert_eq!(by(shut(Target::Submission, "q"), &all[1]), None, "what waits in a closed queue starts");
    assert_eq!(by(shut(Target::Host, "n2"), &all[1]), None);
    let there = JobView { host: Some("n2".into()), ..all[1].clone() };
    assert_eq!(by(shut(Target::Host, "n2"), &there), Some(Block::ClosedHost(order.to_string())));
    config.queues.insert("q".into(), Queue { per_user: Some(1), ..Queue::default() });
    assert_eq!(why(&config, &all, &all[2]), Some(Block::UserLimit));
    assert_eq!(next(&config, &all, |_| true).unwrap().id, 2);
    // An array's own limit.
    config.queues.insert("q".into(), Queue::default());
    let mut elements: Vec<JobView> = (1..=3).map(|i| JobView { index: i, limit: Some(1), ..view(7, 10) }).collect();
    elements[0].state = ElementState::Run;
    assert_eq!(why(&config, &elements, &elements[1]), Some(Block::ArrayLimit));
}

#[test]
fn thresholds_hold_dispatch() {
    let mut config = config();
    let load = BTreeMap::from([("bio".to_string(), "1500/4000".to_string())]);
    config.queues.insert("q".into(), Queue { load, ..Queue::default() });
    let all = [view(1, 10)];
    let at = |bio: f64| blocked(&config, &Usage::of(&all), &all[0], &LoadIndices::of(&[("bio", bio)]));
    assert_eq!(at(1500.0), None);
    assert_eq!(at(1501.0), Some(Block::Load("bio".into())));
    // An unknown index is not beyond any threshold: a kernel without the counter must not stop the queue.
    assert_eq!(why(&config, &all, &all[0]), None);
}

#[test]
fn a_user_without_a_runner_is_passed_over() {
    let all = [view(1, 10), view(2, 11)];
    assert_eq!(next(&config(), &all, |uid| uid == 11).unwrap().id, 2);
}

fn storage(limit: Option<u32>) -> Storage {
    Storage { name: "nas".into(), server: "nfs".into(), leases: "/data/.homing-leases".into(), limit }
}

#[test]
fn jobs_of_a_storage_server_start_while_they_have_leases_of_it() {
    let mut all: Vec<JobView> = (1..=4).map(|id| JobView { storage: Some(storage(Some(8))), ..view(id, 10) }).collect();
    all[0].state = ElementState::Run;
    all[3].storage = None;
    let leased = |may_use| BTreeMap::from([(storage(Some(8)), Leased { may_use, why: "nas serves 8 of 8".into() })]);
    let why =
        |may_use, it: &JobView| blocked(&config(), &Usage::of(&all).with(leased(may_use)), it, &LoadIndices::default());
    assert_eq!(why(1, &all[1]), Some(Block::Storage("nas serves 8 of 8".into())));
    assert_eq!(why(2, &all[1]), None);
    assert_eq!(why(0, &all[3]), None, "it uses no server");
    let far = JobView { host: Some("n2".into()), ..all[1].clone() };
    assert_eq!(why(0, &far), None, "its host asks for its leases");
    assert_eq!(blocked(&config(), &Usage::of(&all), &all[1], &LoadIndices::default()), None, "no leases are to be had");
}

#[test]
fn a_lease_is_wished_for_each_job_that_runs_or_could() {
    let mut all: Vec<JobView> = (1..=5).map(|id| JobView { storage: Some(storage(None)), ..view(id, 10) }).collect();
    all[0].state = ElementState::Run;
    all[1].after = ConditionVerdict::Waits;
    all[2].state = ElementState::Done;
    let wished = |own: &[JobView], load: &LoadIndices, free| wishes(&config(), &Usage::of(own), own, load, free);
    let wish = |free| wished(&all, &LoadIndices::default(), free)[&storage(None)].0;
    assert_eq!((wish(8).used, wish(8).wanted), (1, 3));
    assert_eq!((wish(1).used, wish(1).wanted), (1, 2), "one slot is free");
    assert!(wished(&all[2..3], &LoadIndices::default(), 8).is_empty(), "what has ended gives its lease back");
    all.iter_mut().for_each(|view| view.require = vec!["mem>100".into()]);
    let full = LoadIndices::of(&[("mem", 50.0)]);
    assert_eq!(
        wished(&all, &full, 8)[&storage(None)].0.wanted,
        1,
        "what waits for another reason keeps nobody from them"
    );
}

#[test]
fn a_queue_with_leases_counts_slots_over_all_hosts() {
    let mut config = config();
    let queue = Queue { slots: Some(8), per_user: Some(4), leases: Some("/data/l".into()), ..Queue::default() };
    config.queues.insert("q".into(), queue.clone());
    let mut all: Vec<JobView> = (1..=3).map(|id| JobView { slots: 2, ..view(id, 10) }).collect();
    all[0].state = ElementState::Run;
    let wishes = |config: &Config| wishes(config, &Usage::of(&all), &all, &LoadIndices::default(), 16);
    let told = wishes(&config).into_iter();
    let told = told.map(|(s, (wish, least))| (s.server, s.limit, wish.used, wish.wanted, least)).collect::<Vec<_>>();
    // Its own limit permits the user one more job of two slots.
    assert_eq!(told, [("queue-q".into(), Some(8), 2, 6, 2), ("queue-q.10".into(), Some(4), 2, 6, 2)]);
    let leased = |all_may: u32, user_may: u32| {
        let of = |(storage, _): (Storage, (LeaseDemand, u32))| {
            let may_use = if storage.server == "queue-q" { all_may } else { user_may };
            (storage.clone(), Leased { may_use, why: storage.name })
        };
        Usage::of(&all).with(wishes(&config).into_iter().map(of).collect())
    };
    let why = |usage: &Usage, it: &JobView| blocked(&config, usage, it, &LoadIndices::default());
    assert_eq!(why(&leased(4, 4), &all[1]), None);
    assert_eq!(why(&leased(3, 4), &all[1]), Some(Block::Storage("queue q".into())), "one lease is missing");
    let full = leased(8, 2);
    assert_eq!(why(&full, &all[1]), Some(Block::Storage("queue q for its user".into())));
    assert_eq!(full_servers(&config, &full, &all).into_keys().collect::<Vec<_>>(), ["queue q for its user"]);
    let far = JobView { host: Some("n2".into()), ..all[1].clone() };
    assert_eq!(why(&leased(0, 0), &far), None, "its host asks for its leases");
    config.queues.insert("q".into(), Queue { leases: None, ..queue });
    assert!(wishes(&config).is_empty(), "each host counts its own");
}

#[test]
fn a_requirement_beyond_the_host_is_told_apart_from_one_that_waits() {
    let mut asks = view(1, 1);
    let load = LoadIndices::of(&[("mem", 100.0), ("maxmem", 1000.0)]);
    let why = |asks: &JobView| blocked(&config(), &Usage::default(), asks, &load);
    for (text, block) in [
        ("select[mem>=500]", Some(Block::Require("select[mem>=500]".into()))),
        ("select[mem>=5000]", Some(Block::Beyond("select[mem>=5000]".into()))),
        ("rusage[mem=5000]", Some(Block::Beyond("rusage[mem=5000]".into()))),
        ("select[mem>=50]", None),
    ] {
        asks.require = vec![text.into()];
        assert_eq!(why(&asks), block, "{text}");
    }
}

#[test]
fn of_a_users_jobs_of_a_queue_the_one_with_the_smallest_order_is_first() {
    let all = vec![view(1, 1), JobView { order: 1, ..view(2, 1) }, JobView { order: -1, ..view(3, 1) }, view(4, 1)];
    assert_eq!(simulate(&Config { slots: 1, ..config() }, all), [3, 1, 4, 2]);
}
