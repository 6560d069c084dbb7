//! Storage servers that are no hosts of the run.

use super::*;
use homing_lease::{LeaseDemand, LeaseFolder};
use homing_model::StorageSample;

const NAS: StorageIx = StorageIx::Server(0);

/// Returns a task that reads a file of a volume which these hosts serve.
fn served(id: TaskId, by: &[&str]) -> Offer {
    Offer { served: by.iter().map(|name| name.to_string()).collect(), ..offer(id, by) }
}

fn three_hosts(io: Io) -> Core {
    core(Policy { io, ..policy() }, &[("n1", 4), ("n2", 4), ("n3", 4)])
}

#[test]
fn a_limit_is_that_of_the_server_for_all_its_clients() {
    for (limit, begun) in [(1, 1), (4, 4), (8, 8), (20, 12)] {
        let mut core = three_hosts(Io::Fixed(limit));
        (1..=60).for_each(|id| core.offer(served(id, &["nas"])));
        let mut running = assign(&mut core, 0);
        assert_eq!(running.len(), begun, "--io {limit}");
        // As each task ends, another starts on any free slot. There are never more.
        for n in 0..40 {
            let (_, host, ticket) = running.remove(0);
            core.ended(host, ended(ticket, Outcome::Exit(0)), at(S * (n + 1)));
            running.extend(assign(&mut core, S * (n + 1)));
            assert_eq!(running.len(), begun, "--io {limit}, after {n}");
        }
    }
}

#[test]
fn names_and_addresses_of_one_server_share_one_limit() {
    let mut core = three_hosts(Io::Fixed(2));
    core.server(&["nas".into(), "10.0.0.9".into()], None);
    core.offer(served(1, &["nas"]));
    core.offer(served(2, &["10.0.0.9"]));
    core.offer(served(3, &["nas.lab"]));
    core.offer(served(4, &["other"]));
    let begun: Vec<TaskId> = assign(&mut core, 0).into_iter().map(|(task, ..)| task).collect();
    assert_eq!(begun, [1, 2, 4]);
}

#[test]
fn what_lies_on_hosts_of_the_run_is_charged_to_them() {
    let mut core = three_hosts(Io::Fixed(1));
    (1..=4).for_each(|id| core.offer(served(id, &["n1", "nas"])));
    // The disk of this machine is not a storage server.
    core.offer(Offer { served: vec![], ..offer(5, &["login"]) });
    core.offer(Offer { served: vec![], ..offer(6, &["login"]) });
    let begun: Vec<(TaskId, HostIx)> = assign(&mut core, 0).into_iter().map(|(task, host, _)| (task, host)).collect();
    assert_eq!(begun, [(1, 0), (5, 1), (6, 2)]);
}

#[test]
fn a_host_of_the_run_is_known_by_what_its_server_name_resolves_to() {
    let mut core = core(policy(), &[]);
    core.server(&["files".into(), "10.0.0.2".into()], None);
    core.host_up("n1", 1, HostFacts::default());
    core.host_up("n2", 1, HostFacts { aliases: vec!["10.0.0.2".into()], ..HostFacts::default() });
    core.offer(served(1, &["files"]));
    assert_eq!(assign(&mut core, 0)[0].1, 1, "its bytes lie on n2");
}

#[test]
fn bricks_that_are_no_hosts_take_turns() {
    let mut core = three_hosts(Io::Fixed(1));
    (1..=6).for_each(|id| core.offer(served(id, &["b1", "b2"])));
    assert_eq!(assign(&mut core, 0).len(), 2, "one at each brick");
}

#[test]
fn a_server_that_joins_as_a_host_is_charged_as_one() {
    let mut core = core(Policy { io: Io::Fixed(1), ..policy() }, &[("n1", 4)]);
    (1..=3).for_each(|id| core.offer(served(id, &["nas"])));
    assert_eq!(assign(&mut core, 0).len(), 1);
    core.host_up("nas", 4, HostFacts::default());
    let begun: Vec<HostIx> = assign(&mut core, 1).into_iter().map(|(_, host, _)| host).collect();
    assert_eq!(begun, [1], "its own disks take one more");
}

#[test]
fn a_server_that_has_joined_as_a_host_gives_back_what_it_was_leased_as_a_server() {
    let mut core = core(Policy { io: Io::Fixed(2), shared: true, ..policy() }, &[("n1", 4)]);
    let place = LeaseFolder { folder: "/data/l".into(), server: "nas".into(), limit: None, unfit: None };
    core.server(&["nas".into()], Some(&place));
    (1..=6).for_each(|id| core.offer(served(id, &["nas"])));
    core.leased(NAS, Some(1));
    let begun = assign(&mut core, 0);
    core.host_up("nas", 4, HostFacts::default());
    assert_eq!((begun.len(), core.part_from_hosts()), (1, vec![]), "a task of before still uses it");
    core.ended(begun[0].1, ended(begun[0].2, Outcome::Exit(0)), at(S));
    assert_eq!((core.part_from_hosts(), core.part_from_hosts()), (vec![NAS], vec![]), "once");
}

#[test]
fn a_limit_is_found_from_what_its_clients_measure() {
    let mut core = three_hosts(Io::Auto);
    (1..=60).for_each(|id| core.offer(served(id, &["nas"])));
    assert_eq!(assign(&mut core, 0).len(), 1, "a slow start");
    let limits = |core: &mut Core| -> Vec<(String, Option<u32>)> {
        let limit = |action| match action {
            Action::Journal(EventKind::Limit { storage, limit, .. }) => Some((storage, limit)),
            _ => None,
        };
        core.take_actions().into_iter().filter_map(limit).collect()
    };
    // Its only client computes: no task waits for the storage.
    for ms in (5..500).step_by(5) {
        let pulse = StorageSample {
            at_us: ms * 1000,
            looked: ms,
            moved: Some(0),
            io_some_us: Some(0),
            ..StorageSample::default()
        };
        (0..3).for_each(|host| core.pulse(host, &pulse, Mono::from_us(ms * 1000)));
    }
    let told = limits(&mut core);
    assert!(told.iter().any(|(name, limit)| name == "nas" && *limit == Some(2)), "{told:?}");
}

fn shared(io: Io, limit: Option<u32>) -> Core {
    let mut core = core(Policy { io, shared: true, ..policy() }, &[("n1", 4), ("n2", 4)]);
    let place = LeaseFolder { folder: "/data/leases".into(), server: "nas".into(), limit, unfit: None };
    core.server(&["nas".into(), "10.0.0.9".into()], Some(&place));
    (1..=20).for_each(|id| core.offer(served(id, &["10.0.0.9"])));
    core
}

#[test]
fn no_task_begins_without_a_lease_and_those_that_run_keep_theirs() {
    let mut core = shared(Io::Fixed(6), None);
    assert!(assign(&mut core, 0).is_empty(), "nobody knows yet what others have");
    assert_eq!(core.wishes(NAS), LeaseDemand { wanted: 6, used: 0, limit: Some(6) });
    core.leased(NAS, Some(3));
    let begun = assign(&mut core, 1);
    assert_eq!(begun.len(), 3);
    core.leased(NAS, Some(1));
    assert_eq!(core.wishes(NAS).used, 3);
    let (_, host, ticket) = begun[0];
    core.ended(host, ended(ticket, Outcome::Exit(0)), at(S));
    assert!(assign(&mut core, S).is_empty(), "given back when it ends");
    assert_eq!(core.wishes(NAS).used, 2);
    core.leased(NAS, None);
    assert_eq!(assign(&mut core, 2 * S).len(), 4, "alone again, up to its own limit");
}

#[test]
fn the_sites_limit_holds_whatever_a_run_says() {
    for io in [Io::Fixed(6), Io::Auto] {
        let mut core = shared(io, Some(2));
        core.leased(NAS, None);
        assert!(assign(&mut core, 0).len() <= 2);
        assert!(core.wishes(NAS).wanted <= 2);
    }
}

#[test]
fn who_shares_nothing_asks_for_nothing() {
    let mut core = core(Policy { io: Io::Fixed(2), ..policy() }, &[("n1", 4)]);
    core.server(
        &["nas".into()],
        Some(&LeaseFolder { folder: "/data/l".into(), server: "nas".into(), limit: None, unfit: None }),
    );
    core.offer(served(1, &["nas"]));
    assert_eq!(assign(&mut core, 0).len(), 1);
    assert!(!core.take_actions().iter().any(|action| matches!(action, Action::Share(..))));
}

#[test]
fn licences_come_and_go_with_the_hosts_that_have_them() {
    let licensed = vec![Licensed { names: vec!["NAS".into(), "10.0.0.9".into()], each: 2 }];
    let mut core = core(Policy { io: Io::Fixed(20), shared: true, licensed, ..policy() }, &[("n1", 4), ("n2", 4)]);
    let place = LeaseFolder { folder: "/data/leases".into(), server: "nas".into(), limit: None, unfit: None };
    core.server(&["nas".into(), "10.0.0.9".into()], Some(&place));
    (1..=20).for_each(|id| core.offer(served(id, &["10.0.0.9"])));
    assert!(!core.take_actions().iter().any(|action| matches!(action, Action::Share(..))), "Slurm counts");
    assert_eq!(assign(&mut core, 0).len(), 4);
    core.host_up("n3", 4, HostFacts::default());
    assert_eq!(assign(&mut core, 1).len(), 2);
    core.host_lost(0, "cut", false, at(S));
    let left = core.wishes(NAS).used;
    assert_eq!(left + assign(&mut core, S).len() as u32, left.max(4), "two hosts are left");
}

#[test]
fn no_more_leases_are_wished_for_than_slots_could_use() {
    let mut core = shared(Io::Fixed(100), None);
    assert_eq!(core.wishes(NAS).wanted, 8);
    core.source_ended();
    core.leased(NAS, Some(8));
    assert_eq!(assign(&mut core, 0).len(), 8);
    assert_eq!(core.wishes(NAS), LeaseDemand { wanted: 8, used: 8, limit: Some(100) });
}

#[test]
fn a_host_of_the_run_that_serves_others_counts_its_own_tasks_for_all() {
    let mut core = core(Policy { io: Io::Fixed(4), shared: true, ..policy() }, &[("n1", 4), ("n2", 4)]);
    let place =
        |server: &str| LeaseFolder { folder: "/data/l".into(), server: server.into(), limit: None, unfit: None };
    for name in ["n1", "n2", "n3"] {
        core.server(&[name.into()], Some(&place(name)));
    }
    // Of a volume of three bricks, two are on hosts of the run.
    (1..=8).for_each(|id| core.offer(served(id, &["n1"])));
    (9..=16).for_each(|id| core.offer(served(id, &["n2"])));
    (17..=18).for_each(|id| core.offer(served(id, &["n3"])));
    let shared = |action| match action {
        Action::Share(storage, place) => Some((storage, place.server)),
        _ => None,
    };
    let asked: Vec<_> = core.take_actions().into_iter().filter_map(shared).collect();
    let servers = [(StorageIx::Host(0), "n1"), (StorageIx::Host(1), "n2"), (NAS, "n3")];
    assert_eq!(asked, servers.map(|(storage, name)| (storage, name.to_string())), "each once");
    assert!(assign(&mut core, 0).is_empty(), "nobody knows yet what others have");
    assert_eq!(core.wishes(StorageIx::Host(0)), LeaseDemand { wanted: 4, used: 0, limit: Some(4) });
    core.leased(StorageIx::Host(0), Some(3));
    let begun = assign(&mut core, 1);
    assert_eq!(begun.len(), 3, "those of one user on this server");
    core.leased(StorageIx::Host(1), None);
    assert_eq!(assign(&mut core, 2).len(), 4, "nothing is known of others at this one");
    let (_, host, ticket) = begun[0];
    core.ended(host, ended(ticket, Outcome::Exit(0)), at(S));
    assert_eq!(core.wishes(StorageIx::Host(0)).used, 2);
}

#[test]
fn what_a_host_of_the_run_has_on_its_own_disk_is_nobody_elses() {
    let mut core = core(Policy { io: Io::Fixed(4), shared: true, ..policy() }, &[("n1", 4)]);
    let place = LeaseFolder { folder: "/data/l".into(), server: "n1".into(), limit: None, unfit: None };
    core.server(&["n1".into()], Some(&place));
    (1..=8).for_each(|id| core.offer(Offer { served: vec![], ..offer(id, &["n1"]) }));
    assert_eq!(assign(&mut core, 0).len(), 4);
}

#[test]
fn the_sites_limit_holds_for_a_host_of_the_run() {
    let mut core = core(Policy { io: Io::Fixed(4), ..policy() }, &[("n1", 4)]);
    let place = LeaseFolder { folder: "/data/l".into(), server: "n1".into(), limit: Some(2), unfit: None };
    core.server(&["n1".into()], Some(&place));
    (1..=8).for_each(|id| core.offer(served(id, &["n1"])));
    assert_eq!(assign(&mut core, 0).len(), 2);
}
