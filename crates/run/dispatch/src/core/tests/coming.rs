//! Hosts that may still come, and servers that have not answered yet.

use super::*;

#[test]
fn tasks_wait_for_hosts_that_may_still_come() {
    let mut core = core(Policy { tries: Some(3), ..policy() }, &[("n1", 1), ("n2", 1)]);
    core.host_released(1);
    core.offer(Offer { task: Task { cpus: 4, ..task(1) }, ..offer(1, &[]) });
    core.expect_hosts(true);
    core.assign(at(0).mono);
    assert!(core.take_actions().iter().all(|a| !matches!(a, Action::Ended { .. })));
    core.expect_hosts(false);
    core.assign(at(0).mono);
    assert!(matches!(&verdicts(core.take_actions())[..], [(1, Outcome::CannotStart(_))]));
}

/// A core with client n2, which mounts /data from n1, and n1, which does not.
fn nfs_core() -> (Core, VolumeIx) {
    let mount = Mount { point: "/data".into(), fstype: "nfs4".into(), source: "n1:/".into() };
    let mut core = core(policy(), &[("n1", 1)]);
    let facts = HostFacts { hostname: "n2".into(), mounts: vec![mount.clone()], ..HostFacts::default() };
    core.host_up("n2", 1, facts);
    let served = VolumeAlias { mount: mount.clone(), path: "/".into(), nonce: "n".into(), secret: "s".into() };
    core.served(served);
    let volume = core.volume(mount);
    let question = |action: &Action| match action {
        Action::Send(host, ToWorker::HasVolume { .. }) => Some(*host),
        _ => None,
    };
    let asked: Vec<HostIx> = core.take_actions().iter().filter_map(question).collect();
    assert_eq!(asked, [0], "who has the mount is not asked");
    (core, volume)
}

#[test]
fn a_server_that_proved_to_have_the_files_gets_their_tasks() {
    let (mut core, volume) = nfs_core();
    for id in [1, 2] {
        core.offer(Offer { volumes: vec![volume], ..offer(id, &["n1"]) });
    }
    assert_eq!(assign(&mut core, S).iter().map(|s| s.1).collect::<Vec<_>>(), [1], "not before its answer");
    core.has_volume(0, volume, true, "it serves /data".into());
    assert_eq!(assign(&mut core, 2 * S).iter().map(|s| s.1).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_server_that_could_not_prove_it_is_told_and_not_used() {
    let (mut core, volume) = nfs_core();
    core.host_lost(1, "gone", false, at(S));
    core.offer(Offer { volumes: vec![volume], ..offer(1, &["n1"]) });
    core.source_ended();
    assert!(assign(&mut core, S).is_empty() && core.waiting() == 1, "it may still answer");
    core.has_volume(0, volume, false, "no such directory".into());
    core.assign(at(2 * S).mono);
    let actions = core.take_actions();
    let told = |a: &Action| matches!(a, Action::Note(text) if text.contains("no such directory"));
    assert!(actions.iter().any(told) && core.is_over(), "{actions:?}");
}

const PATIENCE: Patience = Patience { least_us: 3_000_000, most_us: 10_000_000 };

#[test]
fn a_task_waits_for_its_home_while_that_costs_less_than_fetching() {
    let mut core = core(policy(), &[("n2", 1)]);
    core.connecting(["n1.lab"].into_iter(), 0, PATIENCE);
    // 10 GB take more than a minute to fetch. Tasks with inputs nowhere, or on a present host, start at once.
    core.offer(Offer { total: 10 << 30, per_host: vec![("N1".into(), 10 << 30)], ..offer(1, &["n1"]) });
    core.offer(offer(2, &["n3"]));
    assert_eq!(assign(&mut core, S), [(2, 0, 1)]);
    core.ended(0, ended(1, Outcome::Exit(0)), at(S));
    core.take_actions();
    core.connecting(["n1.lab"].into_iter(), 9_000_000, PATIENCE);
    core.connecting(["n1.lab"].into_iter(), 9_100_000, PATIENCE);
    let actions = core.take_actions();
    assert!(matches!(&actions[..], [Action::Note(text)] if text.contains("connecting to n1.lab;")), "{actions:?}");
    assert_eq!(assign(&mut core, 9 * S), []);
    assert!(core.waiting() == 1 && !core.is_over());
    let facts = HostFacts { hostname: "n1".into(), memory_bytes: 8 << 30, ..HostFacts::default() };
    core.host_up("n1", 1, facts);
    assert_eq!(assign(&mut core, 9 * S), [(1, 1, 2)]);
}

#[test]
fn a_home_that_does_not_come_is_not_waited_for() {
    // 100 MB: nearly two seconds over a link of unknown rate, in addition to the least wait.
    for (over_us, refused) in [(2_000_000, true), (5_000_000, false), (10_000_000, false)] {
        let mut core = core(policy(), &[("n2", 1)]);
        core.connecting(["n1"].into_iter(), 0, PATIENCE);
        core.offer(offer(1, &["n1"]));
        core.connecting(["n1"].into_iter(), 2_000_000, PATIENCE);
        assert_eq!(assign(&mut core, 2 * S), []);
        core.connecting(["n1"].into_iter().filter(|_| !refused), over_us, PATIENCE);
        assert_eq!(assign(&mut core, 10 * S), [(1, 0, 1)]);
    }
}

#[test]
fn a_server_is_waited_for_until_it_has_answered() {
    let (mut core, volume) = nfs_core();
    core.connecting([].into_iter(), 0, PATIENCE);
    core.offer(Offer { volumes: vec![volume], ..offer(1, &["n1"]) });
    assert_eq!(assign(&mut core, S), []);
    core.has_volume(0, volume, true, "it serves /data".into());
    assert_eq!(assign(&mut core, S), [(1, 0, 1)]);
    let (mut core, volume) = nfs_core();
    core.connecting([].into_iter(), 0, PATIENCE);
    core.offer(Offer { volumes: vec![volume], ..offer(1, &["n1"]) });
    core.has_volume(0, volume, false, "no such directory".into());
    assert_eq!(assign(&mut core, S), [(1, 1, 1)]);
}

#[test]
fn before_all_hosts_are_there_each_does_what_it_holds() {
    let mut core = core(policy(), &[("n1", 3), ("n2", 1)]);
    core.offer(offer(1, &["n1"]));
    core.offer(offer(2, &[]));
    core.assign_at_home(at(0).mono);
    assert_eq!(starts(&mut core), [(1, 0, 1)]);
    assert_eq!(assign(&mut core, 0).iter().map(|s| s.0).collect::<Vec<_>>(), [2]);
}
