//! Tests plans with recorded answers of MooseFS 3.0.117.

use super::*;
use crate::observe::{self, Observed};
use crate::spec::tests::spec;
use crate::spec::{Spec, VolumeKind};
use crate::step::{DataMovement, Then};

fn mfs() -> Spec {
    Spec { kind: VolumeKind::Moosefs, ..spec(&["n1", "n2", "n3"], 2) }
}

fn table(which: &str, cells: &[(u64, u64, u64)], missing: u64) -> String {
    let mut text = String::new();
    for (goal, copies, n) in cells {
        text += &format!("{which} chunks matrix:\tgoal/copies/chunks:\t{goal}\t{copies}\t{n}\n");
    }
    text + &format!("{which} chunks matrix:\tchunkclass missing:\t{missing}\n")
}

fn disk(host: &str, chunks: u64, state: &str) -> String {
    let place = format!("10.0.0.{}:9422:/brick/data/", &host[1..]);
    format!("disks:\t{place}\t{chunks}\tno errors\t{state}\t-\t-\t-\t-\t-\t-\t-\t-\t188858368\t1003925504\n")
}

/// Facts of hosts while n3 is in `state`, with these copies on disks that stay.
fn seen(spec: &Spec, regular: &[(u64, u64, u64)], state: &str, dead: Option<&str>) -> Observed {
    let mut chunks = table("all", &[(2, 2, 40)], 0) + &table("regular", regular, 0);
    for host in ["n1", "n2", "n3"].iter().filter(|h| Some(**h) != dead) {
        chunks += &disk(host, if *host == "n3" { 20 } else { 30 }, if *host == "n3" { state } else { "ok" });
    }
    let mark = if state == "ok" { "" } else { "*" };
    let facts = |host: &String| {
        if Some(host.as_str()) == dead {
            return (host.clone(), Err("no route".to_string()));
        }
        let text = format!(
            "begin chunks\n{chunks}\nend chunks\nbegin addresses\n10.0.0.{}\nend addresses\n\
             begin mfschunkserver.cfg\n# homing volume data\nend mfschunkserver.cfg\n\
             begin mfshdd.cfg\n{mark}/brick/data -64MiB\nend mfshdd.cfg\ndone\n",
            &host[1..]
        );
        (host.clone(), Ok(observe::read(&text, spec).unwrap()))
    };
    Observed { hosts: spec.hosts().iter().map(facts).collect() }
}

const LEAVING: &str = "marked for removal (not ready)";

#[test]
fn a_host_goes_when_every_chunk_has_its_copies_elsewhere() {
    let s = mfs();
    let drain = |regular: &[(u64, u64, u64)], state| drain_host(&s, &seen(&s, regular, state, None), "n3").unwrap();
    let begun = drain(&[(2, 2, 40)], "ok");
    assert_eq!(begun.phases.len(), 1);
    assert_eq!(begun.then, Then::Wait(DataMovement::Drain(vec!["10.0.0.3".into()])));
    // The disk is marked, but its chunks are not yet: the master still reports "ready".
    let stale = drain(&[(2, 2, 40)], "marked for removal (ready)");
    assert!(stale.phases.is_empty() && stale.then != Then::Done);
    let halfway = drain(&[(2, 1, 15), (2, 2, 25)], LEAVING);
    assert!(halfway.phases.is_empty() && halfway.then != Then::Done);
    let mut over = seen(&s, &[(2, 2, 40)], LEAVING, None);
    for facts in over.hosts.values_mut().flatten() {
        let text = facts.texts.get_mut("chunks").unwrap();
        *text = text.replace(
            "all chunks matrix:\tgoal/copies/chunks:\t2\t2\t40",
            "all chunks matrix:\tgoal/copies/chunks:\t2\t2\t20\nall chunks matrix:\tgoal/copies/chunks:\t2\t3\t20",
        );
    }
    let done = drain_host(&s, &over, "n3").unwrap();
    assert_eq!(done.phases.len(), 2, "{done:?}");
}

#[test]
fn a_goal_that_too_few_hosts_can_keep_is_no_drain() {
    let s = Spec { places: mfs().places[1..].to_vec(), master: Some("n1".into()), ..mfs() };
    let refused = drain_host(&s, &seen(&s, &[(2, 2, 40)], "ok", None), "n3").unwrap_err();
    assert!(refused[0].danger.is_none() && refused[0].why.contains("set-copies data /data 1"), "{refused:?}");
}

#[test]
fn a_dead_host_is_let_go_when_its_copies_are_made_anew() {
    let s = mfs();
    let behind = drain_host(&s, &seen(&s, &[(2, 1, 3), (2, 2, 37)], "ok", Some("n3")), "n3").unwrap();
    assert_eq!(behind.then, Then::Wait(DataMovement::Heal));
    let healed = drain_host(&s, &seen(&s, &[(2, 2, 40)], "ok", Some("n3")), "n3").unwrap();
    assert_eq!((healed.phases.len(), healed.then), (1, Then::Done));
}

fn goal_told(seen: &mut Observed, text: &str, mounted: bool) {
    for facts in seen.hosts.values_mut().flatten() {
        facts.programs = ["mfsmaster", "mfscli", "mfschunkserver", "mfsmount"].map(String::from).into();
        facts.active = [MASTER, CHUNKSERVER].map(String::from).into();
        facts.texts.insert("mfsmaster.cfg".into(), "# homing volume data".into());
        facts.texts.insert("mfsexports.cfg".into(), "# n1\n10.0.0.1 / rw\n# n2\n# n3\n".into());
        facts.texts.insert("goal".into(), text.into());
        if mounted {
            facts.point = crate::observe::MountPoint::Ours;
            facts.fstab = Some(["n1:", "/data", "moosefs", "defaults"].map(String::from));
        }
    }
}

/// An earlier call may have been killed between the mount and the goal.
#[test]
fn a_second_create_sets_the_goal_that_the_first_did_not() {
    let s = mfs();
    let last = |text: &str, mounted| {
        let mut seen = seen(&s, &[(2, 2, 40)], "ok", None);
        goal_told(&mut seen, text, mounted);
        create(&s, &seen, &[]).unwrap().phases.last().map(|p| p.why.clone())
    };
    assert_eq!(last("/data: 1", true).as_deref(), Some("set the goal"));
    assert_eq!(last("", false).as_deref(), Some("set the goal"));
    assert_eq!(last("/data: 2", true), None);
    assert_eq!(last("/data: 'fast'", true), None, "a storage class is somebody's own choice");
    let mut seen = seen(&s, &[(2, 2, 40)], "ok", None);
    goal_told(&mut seen, "/data: 3", true);
    assert!(add_host(&s, &seen, &[]).unwrap().is_empty(), "add-host changes no goal");
}

#[test]
fn giving_up_copies_takes_the_words_as_on_gluster() {
    let s = mfs();
    let mut seen = seen(&s, &[(2, 2, 40)], "ok", None);
    goal_told(&mut seen, "/data: 2", true);
    let set = |copies, text: &str, allowed: &[Danger]| {
        set_copies(&s, &seen, ("/data/a", copies), &goals::read(text).unwrap(), allowed)
    };
    let two = "/data/a:\n files with goal 2 : 7\n";
    let refused = set(1, two, &[]).unwrap_err();
    assert_eq!(refused[0].danger, Some(Danger::LastCopy));
    assert_eq!(refused[0].why, "1 copy of each file below /data/a would remain; now there are 7 files with 2 copies");
    assert_eq!(set(1, two, &[Danger::LastCopy]).unwrap().phases.len(), 1);
    assert_eq!(set(2, two, &[]).unwrap().phases.len(), 1);
    assert_eq!(set(3, two, &[]).unwrap().then, Then::Wait(DataMovement::Heal));
}

#[test]
fn a_client_that_is_new_to_the_master_is_let_in_before_it_mounts() {
    let mut s = mfs();
    s.clients.push("n9".into());
    let mut seen = seen(&s, &[(2, 2, 40)], "ok", None);
    goal_told(&mut seen, "/data: 2", true);
    let client = observe::read("begin addresses\n10.0.0.9\nend addresses\ndone\n", &s).unwrap();
    seen.hosts.insert("n9".into(), Ok(client));
    // A server that is down is no reason to keep a client out.
    seen.hosts.insert("n3".into(), Err("no route".into()));
    let plan = crate::mounts::mount(&s, &seen, &[]).unwrap();
    let whys: Vec<(&str, &str)> = plan.phases.iter().map(|p| (p.steps[0].host.as_str(), p.why.as_str())).collect();
    assert_eq!(whys[0], ("n1", "grant the clients access"), "{whys:?}");
    assert_eq!(plan.phases[0].steps[0].argv.last().unwrap(), "n9", "only the new one");
    assert!(plan.phases[1].steps.iter().any(|step| step.host == "n9"));
}

#[test]
fn how_far_the_balance_is_can_be_told_and_no_more() {
    let s = mfs();
    let mut seen = seen(&s, &[(2, 2, 40)], "ok", None);
    for facts in seen.hosts.values_mut().flatten() {
        let text = facts.texts.get_mut("chunks").unwrap();
        // 188858368 of 1003925504 bytes on each disk; on one 100 MB more.
        *text = text.replacen("188858368", "288858368", 1);
    }
    let plan = rebalance(&s, &seen).unwrap();
    assert!(plan.is_empty());
    assert!(plan.notes[0].ends_with("now they are 19 % to 29 % full, 66 MB above the mean"), "{:?}", plan.notes);
}

#[test]
fn a_mount_is_the_volumes_own_as_the_kernel_writes_its_source() {
    let facts = observe::read("mounted\tfuse\tmfs\\043n1:9421\ndone\n", &mfs()).unwrap();
    assert_eq!(facts.point, observe::MountPoint::Ours);
    let other = observe::read("mounted\tfuse\tbindfs\ndone\n", &mfs()).unwrap();
    assert!(matches!(other.point, observe::MountPoint::Other(_)));
}
