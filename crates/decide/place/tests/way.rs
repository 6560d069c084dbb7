//! Two switches with a link between them: measures how much crosses it, and how many fetches do so at once. It checks
//! that this costs nothing against hosts in turn.

use homing_model::TaskId;
use homing_model::links::{ClusterLinks, Switch};
use homing_place::{HostIx, HostModel, Need, Params, Planned, Reason, simulate};

const MB: u64 = 1_000_000;
const LINK: u64 = 100 * MB;

/// The first half of the hosts is on one switch, the rest on the other.
fn hosts(n: usize, slots: u32) -> Vec<HostModel> {
    let host = |ix| HostModel { slots, nic_bytes_per_s: Some(LINK), serving: 0.0, switch: Some(ix * 2 / n) };
    (0..n).map(host).collect()
}

fn links(uplink: u64) -> ClusterLinks {
    let switch = |name: &str| Switch { name: name.into(), uplink: Some(uplink), ..Switch::default() };
    ClusterLinks::new(vec![switch("leaf1"), switch("leaf2")]).unwrap()
}

fn files(n: TaskId, size: u64, at: impl Fn(TaskId) -> Vec<HostIx>) -> Vec<(TaskId, Need)> {
    let held = |task| at(task).into_iter().map(|host| (host, size)).collect();
    (1..=n).map(|task| (task, Need { total: size, per_host: held(task), ..Need::default() })).collect()
}

fn play(params: &Params, hosts: &[HostModel], needs: &[(TaskId, Need)], work_us: u64) -> Vec<Planned> {
    let plan = simulate(params.clone(), hosts, needs, |task, _| work_us + work_us * (task * 7 % 31) / 100);
    assert_eq!(plan.len(), needs.len());
    plan
}

fn ends(plan: &[Planned]) -> u64 {
    plan.iter().map(|p| p.end_us).max().unwrap_or(0)
}

/// Returns the host that a planned task reads from. It is the host that it fetches from, else one copy after the
/// other, like a file system without a preference.
fn source(planned: &Planned, needs: &[(TaskId, Need)]) -> HostIx {
    let holders = &needs[planned.task as usize - 1].1.per_host;
    match planned.why {
        Reason::Fetches { from, .. } => from,
        _ if planned.remote == 0 => planned.host,
        _ => holders[planned.task as usize % holders.len()].0,
    }
}

#[test]
fn with_a_copy_on_each_side_nothing_crosses() {
    let hosts = hosts(8, 2);
    let needs = files(400, 20 * MB, |_| vec![0, 4]);
    let crossed = |locality| {
        let params = Params { locality, links: links(LINK), ..Params::default() };
        let plan = play(&params, &hosts, &needs, 900_000);
        let across = |p: &&Planned| hosts[p.host].switch != hosts[source(p, &needs)].switch;
        let bytes = |p: &Planned| p.remote;
        plan.iter().filter(across).map(bytes).sum::<u64>() as f64 / plan.iter().map(bytes).sum::<u64>() as f64
    };
    assert!(crossed(true) <= 0.05, "{}", crossed(true));
    assert!((0.35..0.65).contains(&crossed(false)), "{}", crossed(false));
}

#[test]
fn the_nearer_copy_is_taken_and_the_way_is_told() {
    let needs = files(60, 20 * MB, |_| vec![0, 2]);
    let params = Params { links: links(LINK), ..Params::default() };
    let plan = play(&params, &hosts(4, 1), &needs, 900_000);
    let told: Vec<(HostIx, String)> =
        plan.iter().filter(|p| matches!(p.why, Reason::Fetches { .. })).map(|p| (p.host, p.why.to_string())).collect();
    assert!(told.len() >= 20, "{told:?}");
    for (host, why) in told {
        let (from, leaf) = if host == 1 { ("host 0 ", "leaf1") } else { ("host 2 ", "leaf2") };
        assert!(why.starts_with(from) && why.ends_with(&format!("on the same switch {leaf}")), "{host}: {why}");
    }
}

#[test]
fn an_uplink_is_crossed_by_as_many_as_it_carries() {
    // All bytes are on one side, and tasks do little but read.
    let needs = files(300, 50 * MB, |task| vec![task as usize % 4]);
    for (uplink, most) in [(LINK / 10, 1), (LINK, 1), (5 * LINK / 2, 2)] {
        let params = Params { links: links(uplink), ..Params::default() };
        let plan = play(&params, &hosts(8, 2), &needs, 50_000);
        let across: Vec<&Planned> = plan.iter().filter(|p| p.host >= 4).collect();
        // Tasks that began before a task had shown how long it takes are not held back.
        let learnt = across.iter().take(8).map(|p| p.end_us).max().unwrap_or(0);
        let later = across.iter().filter(|p| p.start_us > learnt).map(|p| p.start_us);
        let at = |now: u64| across.iter().filter(|p| (p.start_us..p.end_us).contains(&now)).count();
        let seen = later.map(at).max().unwrap_or(0);
        // A task that computes for a part of its time counts for less.
        assert!(seen <= most + 1, "{seen} cross a link of {uplink} B/s");
    }
}

#[test]
fn all_on_one_side_of_a_slow_link_is_never_slower_than_in_turn() {
    let mut slower = Vec::new();
    for (tenths, holders) in [1, 10, 19].into_iter().flat_map(|tenths| [(tenths, 1), (tenths, 4)]) {
        let sizes = [20_000, 500_000, 5_000_000].into_iter().flat_map(|work| [(work, MB), (work, 50 * MB)]);
        for (tasks, (work, size)) in sizes.flat_map(|size| [(40, size), (150, size)]) {
            let hosts = hosts(8, 2);
            // The mean of several runs: the last task may dominate the time of a short batch.
            let end = |locality| {
                let params = Params { locality, links: links(LINK / 10 * tenths), ..Params::default() };
                let needs = |n| files(n, size, |task| vec![task as usize % holders]);
                (0..4)
                    .map(|more| ends(&play(&params, &hosts, &needs(tasks + 2 * more), work)) as f64 / 4.0)
                    .sum::<f64>()
            };
            let (near, blind) = (end(true), end(false));
            // Retries have a grain of one millisecond.
            if near > 1.05 * blind + 1000.0 {
                let shape = format!("uplink {tenths}/10 of a link, {holders} holders");
                slower.push(format!("{:.2}: {shape}, {tasks} tasks of {work} us and {size} B", near / blind));
            }
        }
    }
    assert!(slower.is_empty(), "{} cases:\n{}", slower.len(), slower.join("\n"));
}
