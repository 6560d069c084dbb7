use super::*;
use crate::Tally;
use crate::made::{ended, started};
use homing_model::{HostFacts, HostSample, IoCounters, Outcome};
use std::collections::BTreeMap;

const FAST: u64 = 125_000_000;
const SLOW: u64 = 12_500_000;
const MB: u64 = 1_000_000;
/// The bytes of a file for each byte of a link. The rest are frames and acknowledgements.
const PAYLOAD: f64 = 0.94;

/// A cluster that runs a batch of 144 files of 5 MB, all of them on n1.
#[derive(Clone, Copy)]
struct ReplayFixture {
    hosts: usize,
    /// The rate of n1's link, bytes per second. Other hosts have [`FAST`].
    link: u64,
    copy_on_n2: bool,
    locality: bool,
    work_us: u64,
    /// The length of a pause without events in the middle.
    pause_us: u64,
}

const WORLD: ReplayFixture =
    ReplayFixture { hosts: 8, link: SLOW, copy_on_n2: false, locality: false, work_us: 1_600_000, pause_us: 0 };

impl ReplayFixture {
    /// Returns the events of a run on it, with a sample of each host a second.
    fn run(self) -> Vec<Event> {
        let host = |at: usize| HostModel {
            slots: 1,
            nic_bytes_per_s: Some((if at == 0 { self.link } else { FAST } as f64 * PAYLOAD) as u64),
            serving: 0.0,
            switch: None,
        };
        let holders = |n: u64| match (self.copy_on_n2, n % 2) {
            (false, _) => vec![(0, 5 * MB)],
            (true, 0) => vec![(0, 5 * MB), (1, 5 * MB)],
            (true, _) => vec![(1, 5 * MB), (0, 5 * MB)],
        };
        let need = |n: u64| (n, Need { total: 5 * MB, per_host: holders(n), ..Need::default() });
        let needs: Vec<(TaskId, Need)> = (1..=144).map(need).collect();
        let hosts: Vec<HostModel> = (0..self.hosts).map(host).collect();
        let params = Params { locality: self.locality, ..Params::default() };
        let planned = replay(params, &hosts, &needs, |_, _| self.work_us);
        let argv: Vec<_> = ["homing", "run", if self.locality { "-v" } else { "--no-locality" }].map(Into::into).into();
        let name = |at: usize| format!("n{}", at + 1);
        let mut all = vec![(
            0,
            EventKind::RunStarted {
                v: 1,
                run: "r".into(),
                argv,
                cwd: "/".into(),
                host: "n1".into(),
                pid: 1,
                tasks: None,
                label: None,
            },
        )];
        for at in 0..self.hosts {
            let link = Some(if at == 0 { self.link } else { FAST });
            let facts = HostFacts { nic_bytes_per_s: link, ..HostFacts::default() };
            all.push((0, EventKind::HostUp { host: name(at), slots: 1, facts }));
        }
        let half = planned.iter().map(|one| one.end_us).max().unwrap_or(0) / 2;
        let paused = |us: u64| if us < half { us } else { us + self.pause_us };
        for one in &planned {
            let (start, end) = (paused(one.start_us), paused(one.end_us));
            let held: Vec<_> = holders(one.task).iter().map(|(at, n)| (name(*at), *n)).collect();
            let from = if one.remote == 0 { Vec::new() } else { homing_model::event::parts(one.remote, &held) };
            let bytes = PlannedBytes { local: one.local, remote: one.remote, remote_if_in_turn: 0, from };
            all.push((start, started(one.task, &name(one.host), 1, "md5sum x", Some(bytes))));
            let over = ended(one.task, &name(one.host), Outcome::Exit(0), end - start, IoCounters::default());
            all.push((end, over));
        }
        let last = all.iter().map(|(us, _)| *us).max().unwrap_or(0);
        for s in 0..=last / 1_000_000 {
            let us = s * 1_000_000;
            let us = if us < half { us } else { half.max(us.saturating_sub(self.pause_us)) };
            for at in 0..self.hosts {
                let net =
                    BTreeMap::from([("eth0".into(), (0, if at == 0 { self.sent(&planned, us as f64) } else { 0 }))]);
                let sample = HostSample { at_ns: s as i64 * 1_000_000_000, net, ..HostSample::default() };
                all.push((s * 1_000_000, EventKind::Sample { host: name(at), sample }));
            }
        }
        all.sort_by_key(|(us, _)| *us);
        all.into_iter().map(|(us, what)| Event { at_ns: us as i64 * 1000, what }).collect()
    }

    /// Returns the bytes that n1 has sent by the time `us`.
    fn sent(self, planned: &[homing_place::Planned], us: f64) -> u64 {
        let part = |one: &homing_place::Planned| {
            let fetches = (one.end_us - one.start_us - self.work_us).max(1) as f64;
            one.remote as f64 * ((us - one.start_us as f64) / fetches).clamp(0.0, 1.0)
        };
        (planned.iter().map(part).sum::<f64>() / PAYLOAD) as u64
    }

    fn tally(self) -> Tally {
        let mut tally = Tally::new();
        self.run().iter().for_each(|event| tally.add(event));
        tally
    }

    /// Returns the changes to n1's link in the report, each with the part of the time that it saves.
    fn predicted_savings(self) -> Vec<(ClusterChange, f64)> {
        let full = self.tally().full();
        let about = |(change, saves): &(ClusterChange, crate::change::Saves)| match saves {
            crate::change::Saves::About(part) => (change.clone(), *part),
            bound => panic!("{change}: {bound}: {:?}", full[0].unpredicted),
        };
        full[0].more.iter().map(about).collect()
    }

    fn seconds(self) -> f64 {
        self.tally().wall_us() as f64 / 1e6
    }
}

/// Makes each change and repeats the run. The saving must agree with the prediction within 15 % of the new time.
fn agrees(world: ReplayFixture) {
    let before = world.seconds();
    let then = |change: &ClusterChange| match change {
        ClusterChange::Link { .. } => ReplayFixture { link: FAST, ..world },
        ClusterChange::Copy(Some(host)) if host == "n2" => ReplayFixture { copy_on_n2: true, ..world },
        ClusterChange::Copy(other) => panic!("{other:?}"),
        ClusterChange::Host => ReplayFixture { hosts: world.hosts + 1, ..world },
    };
    let told = world.predicted_savings();
    assert_eq!(told.len(), 3);
    for (change, saves) in told {
        let (predicted, after) = (before * (1.0 - saves), then(&change).seconds());
        assert!((predicted / after - 1.0).abs() < 0.15, "{change}: {predicted:.1} s told, {after:.1} s measured");
    }
}

#[test]
fn what_is_told_is_what_each_change_brings() {
    agrees(WORLD);
    agrees(ReplayFixture { locality: true, ..WORLD });
    agrees(ReplayFixture { hosts: 24, work_us: 2_400_000, ..WORLD });
}

#[test]
fn the_line_tells_predictions_as_such() {
    // 18 tasks of each host fetch 5 MB in 7 x 0.43 s, and work 1.6 s meanwhile.
    let full = WORLD.tally().full();
    let text = full[0].to_string();
    assert!(text.starts_with("the link of n1 (12.5 MB/s) sent, "), "{text}");
    let told = |change: &str| text.split("; ").any(|part| part.starts_with(change));
    assert!(told("a copy on n2: about -") && told("one more host: about 0 %"), "{text}");
    assert!(told("a link of 1 Gbit/s: about -") && !text.contains("at most"), "{text}");
    let json = WORLD.tally().json();
    let changes = json["full"][0]["changes"].as_array().unwrap();
    assert_eq!((changes.len(), &changes[0]["at_most"]), (3, &serde_json::json!(false)));
}

#[test]
fn what_tasks_take_without_waiting_is_that_of_those_at_home_or_by_account_or_unknown() {
    let done = |host: &str, wall_us, waited_us, local, remote| ReplayTask {
        task: 1,
        host: host.into(),
        wall_us,
        waited_us,
        planned: PlannedBytes { local, remote, ..PlannedBytes::default() },
    };
    let work = |done: Vec<ReplayTask>| {
        let replay = Replay { done, ..Replay::default() };
        replay.work(&replay.done.iter().collect::<Vec<_>>())
    };
    let far = |waited_us| done("n2", 900, waited_us, 0, 40);
    let home = |wall_us| done("n1", wall_us, None, 20, 0);
    // The median task at home takes 10 for a byte, and no task took longer than its own time.
    let all = vec![home(100), home(200), home(9_000), far(Some(800)), done("n2", 300, None, 20, 20)];
    assert_eq!(work(all), Ok(vec![100, 200, 9_000, 400, 300]));
    assert_eq!(work(vec![far(Some(800)), far(Some(100))]), Ok(vec![100, 800]));
    assert!(work(vec![far(Some(800)), far(None)]).unwrap_err().starts_with("no task ran on the host of its bytes"));
}

#[test]
fn a_replay_that_is_off_predicts_nothing_and_says_so() {
    let paused = ReplayFixture { pause_us: 8_000_000, ..WORLD };
    let text = paused.tally().full()[0].to_string();
    assert!(text.contains("at most -") && text.contains("(no prediction: a replay takes "), "{text}");
    assert!(ReplayFixture { pause_us: 2_000_000, ..WORLD }.predicted_savings().len() == 3);
}

#[test]
fn a_run_that_was_taken_up_again_or_is_too_long_predicts_nothing() {
    let mut replay = Replay::default();
    let resumed = EventKind::RunResumed { host: "n1".into(), pid: 1 };
    replay.add(&Event { at_ns: 0, what: resumed });
    let full = WORLD.tally().full();
    assert_eq!(replay.predict(&[], &full[0], 1), Err("the run was resumed".into()));
    let mut replay = Replay::default();
    for task in 0..=MOST_TASKS as u64 {
        replay.add(&Event { at_ns: 0, what: ended(task, "n1", Outcome::Exit(0), 1, IoCounters::default()) });
    }
    assert_eq!(replay.predict(&[], &full[0], 1), Err("it has too many tasks for a replay".into()));
    assert!(replay.done.is_empty());
}

/// Six tasks on n1 and n2, of 10 s each. On n2 they take `fetch_s` more, for 10 MB of n1. A free host takes the next
/// task.
fn two_hosts(fetch_s: u64, argv: &[&str]) -> (Replay, [ReplayHost; 2]) {
    let mut replay = Replay::default();
    let argv = argv.iter().map(|word| (*word).into()).collect();
    let (run, cwd, host) = ("r".to_string(), "/".into(), "n1".to_string());
    replay.add(&Event {
        at_ns: 0,
        what: EventKind::RunStarted { v: 1, run, argv, cwd, host, pid: 1, tasks: None, label: None },
    });
    let mut free_s = [0, 0];
    for n in 0..6 {
        let at = usize::from(free_s[1] < free_s[0]);
        let (host, wall_s) = (["n1", "n2"][at], [10, 10 + fetch_s][at]);
        let start_s = free_s[at];
        free_s[at] += wall_s;
        let bytes = if fetch_s > 0 { 10 * MB } else { 0 };
        let planned = match host {
            "n2" => PlannedBytes { remote: bytes, from: vec![("n1".into(), bytes)], ..PlannedBytes::default() },
            _ => PlannedBytes { local: bytes, ..PlannedBytes::default() },
        };
        let at = |s: u64| s as i64 * 1_000_000_000;
        replay.add(&Event { at_ns: at(start_s), what: started(n, host, 1, "x", Some(planned)) });
        let end = ended(n, host, Outcome::Exit(0), wall_s * 1_000_000, IoCounters::default());
        replay.add(&Event { at_ns: at(start_s + wall_s), what: end });
    }
    let site = |name: &str, link, received| ReplayHost { name: name.into(), slots: 1, link, sent: None, received };
    // n2's link carries 10 MB in 5 s.
    (replay, [site("n1", Some(FAST), None), site("n2", Some(2 * MB), Some(20 * MB))])
}

fn full(host: &str, what: HostResource) -> Full {
    let hosts = std::iter::once(host.to_string()).collect();
    Full { hosts, what, share: 0.9, filled: 1.0, more: Vec::new(), unpredicted: None }
}

#[test]
fn processors_and_what_a_host_receives_are_played_too() {
    let near = |told: f64, is: f64| assert!((told - is).abs() < 0.01, "{told} {is}");
    let run = ["homing", "run", "--no-locality"];
    let (replay, sites) = two_hosts(0, &run);
    let told = replay.predict(&sites, &full("n[1-2]", HostResource::Processors), 30_000_000);
    let told = told.unwrap();
    assert_eq!(told.iter().map(|(change, _)| change).collect::<Vec<_>>(), [&ClusterChange::Host]);
    // Six tasks of 10 s: three rounds become two.
    near(told[0].1, 1.0 / 3.0);

    let (replay, sites) = two_hosts(5, &run);
    let told = replay.predict(&sites, &full("n2", HostResource::Received(2 * MB)), 40_000_000).unwrap();
    assert_eq!(told[0].0, ClusterChange::Host);
    // n1 had four of them in 40 s; now n2 ends its second, which is the last, after 30 s.
    near(told[0].1, 0.25);
    // 100 Mbit/s: 10 MB in 0.8 s.
    assert_eq!(told[1].0, ClusterChange::Link { from: 2 * MB, to: SLOW });
    near(told[1].1, 1.0 - 3.0 * 10.8 / 40.0);
}

#[test]
fn a_build_is_not_played_again() {
    let (replay, sites) = two_hosts(0, &["homing", "make", "-j2"]);
    let told = replay.predict(&sites, &full("n[1-2]", HostResource::Processors), 30_000_000);
    assert_eq!(told, Err("recipes of a build wait for each other".into()));
}
