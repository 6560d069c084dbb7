//! Tests plans with recorded answers, without hosts and sockets.

use super::*;
use crate::execute::{self, PlanEvent};
use crate::refuse::Danger;
use crate::spec::StorageFolder;
use crate::spec::tests::spec;
use crate::step::{DataMovement, MadeBeside, Then};
use crate::{HostFacts, VolumePlan, VolumeRecord};
use homing_steps::{Call, CallResult, Executor};
use std::collections::BTreeMap;
use std::sync::Mutex;

const PROGRAMS: &str = "program\tglusterd\nprogram\tmount.glusterfs\n";

/// A volume in the form of `gluster volume info --xml`.
fn info(bricks: &[&str], replica: usize) -> String {
    let each: String =
        bricks.iter().map(|b| format!("<brick><name>{b}</name><isArbiter>0</isArbiter></brick>")).collect();
    format!(
        "begin volume info\n<cliOutput><volInfo><volumes><volume><name>data</name><status>1</status>\
         <replicaCount>{replica}</replicaCount><arbiterCount>0</arbiterCount><bricks>{each}</bricks><options/>\
         </volume></volumes></volInfo></cliOutput>\n\nend volume info\n\
         begin volume status all tasks\n<cliOutput><volStatus><volumes/></volStatus></cliOutput>\nend volume status all tasks\n"
    )
}

fn peers(names: &[&str]) -> String {
    let each: String = names
        .iter()
        .map(|n| {
            format!("<peer><hostname>{n}</hostname><hostnames><hostname>{n}</hostname></hostnames><connected>1</connected><state>3</state></peer>")
        })
        .collect();
    format!("begin peer status\n<cliOutput><peerStatus>{each}</peerStatus></cliOutput>\nend peer status\n")
}

fn removal(status: &str) -> String {
    format!(
        "begin volume status all tasks\n<cliOutput><volStatus><volumes><volume><volName>data</volName><tasks><task>\
         <type>Remove brick</type><statusStr>{status}</statusStr></task></tasks></volume></volumes></volStatus></cliOutput>\n\
         end volume status all tasks\n"
    )
}

pub(crate) fn facts(spec: &Spec, text: &str) -> HostFacts {
    crate::observe::read(&format!("{PROGRAMS}{text}done\n"), spec).unwrap()
}

fn seen(spec: &Spec, text: impl Fn(&str) -> String) -> Observed {
    Observed { hosts: spec.hosts().into_iter().map(|h| (h.clone(), Ok(facts(spec, &text(&h))))).collect() }
}

fn store(content: &str, system: &str) -> String {
    format!("store\t/brick/data\t{system}\t{content}\t1000\t900\n")
}

pub(crate) fn four() -> Spec {
    spec(&["n1", "n2", "n3", "n4"], 2)
}

/// Facts of four hosts with the volume mounted.
pub(crate) fn running(spec: &Spec, more: &str) -> Observed {
    let bricks = ["n1:/brick/data", "n2:/brick/data", "n3:/brick/data", "n4:/brick/data"];
    seen(spec, |h| {
        if !bricks.iter().any(|b| b.starts_with(h)) {
            return store("absent", "no");
        }
        format!(
            "active\tglusterd\n{}mounted\tfuse.glusterfs\t{h}:/data\nfstab\t{h}:/data\t/data\tglusterfs\tx\n{}{}{more}",
            store("files", "no"),
            info(&bricks, 2),
            peers(&["n1", "n2", "n3", "n4"])
        )
    })
}

fn lines(plan: &VolumePlan) -> Vec<String> {
    plan.phases.iter().flat_map(|p| &p.steps).map(|s| format!("{}: {}", s.host, crate::shown(&s.argv))).collect()
}

fn has(plan: &VolumePlan, text: &str) -> bool {
    lines(plan).iter().any(|l| l.contains(text))
}

#[test]
fn from_nothing_in_order() {
    let spec = four();
    let plan = create(&spec, &seen(&spec, |_| store("absent", "no")), &[]).unwrap();
    let phases: Vec<&str> = plan.phases.iter().map(|p| p.why.as_str()).collect();
    assert_eq!(
        phases,
        [
            "start the daemons",
            "join the hosts",
            "wait for the peers",
            "make the bricks' folders",
            "define the volume",
            "set the options",
            "start the volume",
            "mount at /data"
        ]
    );
    let wanted = "n1: gluster --mode=script volume create data replica 2 \
                  n1:/brick/data n2:/brick/data n3:/brick/data n4:/brick/data";
    assert!(has(&plan, wanted), "{:#?}", lines(&plan));
    assert!(!has(&plan, "force"));
}

#[test]
fn what_is_there_is_left_alone() {
    let spec = four();
    let seen = running(&spec, "");
    let plan = create(&spec, &seen, &[]).unwrap();
    assert_eq!(plan.phases.len(), 1, "options only: {:#?}", lines(&plan));
    let three = Spec { copies: 4, ..spec };
    assert!(create(&three, &seen, &[]).unwrap_err()[0].why.contains("set-copies"));
}

#[test]
fn bricks_give_a_client_that_vanished_up_when_other_clients_do() {
    let spec = four();
    let plan = create(&spec, &seen(&spec, |_| store("absent", "no")), &[]).unwrap();
    assert!(has(&plan, "network.ping-timeout 10 server.tcp-user-timeout 10 server.keepalive-time 5"), "{plan:#?}");
    let number = |key: &str| VANISHED.iter().find(|(k, _)| *k == key).unwrap().1.parse::<u32>().unwrap();
    let probes = number("server.keepalive-interval") * number("server.keepalive-count");
    let idle = number("server.keepalive-time") + probes;
    assert_eq!((idle, number("server.tcp-user-timeout")), (number("network.ping-timeout"), idle));
    let remedies = |seen: &Observed| crate::health::findings(&spec, seen, None).into_iter().map(|f| f.remedy);
    let slow = running(&spec, "");
    assert!(
        remedies(&slow)
            .any(|remedy| remedy.contains("volume set data network.ping-timeout 10 server.tcp-user-timeout"))
    );
    let set = "<options><option><name>server.tcp-user-timeout</name><value>30</value></option></options>";
    let set_before = seen(&spec, |_| info(&["n1:/brick/data", "n2:/brick/data"], 2).replace("<options/>", set));
    assert!(!remedies(&set_before).any(|remedy| remedy.contains("timeout")), "the admin has set it");
}

#[test]
fn a_file_may_have_more_than_a_hundred_names() {
    let spec = four();
    let plan = create(&spec, &seen(&spec, |_| store("absent", "no")), &[]).unwrap();
    assert!(has(&plan, "storage.max-hardlinks 0 storage.gfid2path off"), "{plan:#?}");
    let remedies = |seen: &Observed| crate::health::findings(&spec, seen, None).into_iter().map(|f| f.remedy);
    assert!(
        remedies(&running(&spec, ""))
            .any(|remedy| remedy == "gluster volume set data storage.max-hardlinks 0 storage.gfid2path off")
    );
    let set = "<options><option><name>storage.max-hardlinks</name><value>500</value></option></options>";
    let decided = seen(&spec, |_| info(&["n1:/brick/data", "n2:/brick/data"], 2).replace("<options/>", set));
    assert!(
        remedies(&decided).any(|remedy| remedy == "gluster volume set data storage.gfid2path off"),
        "the admin has set it"
    );
}

#[test]
fn a_daemon_that_may_know_the_volume_is_started_first() {
    let spec = four();
    let plan =
        create(&spec, &seen(&spec, |_| format!("glusterd-knows\n{}", store("gluster", "no"))), &[Danger::StoreInUse]);
    let plan = plan.unwrap();
    assert_eq!((plan.phases.len(), &plan.then), (1, &Then::Again));
}

#[test]
fn dangers_are_refused_until_named() {
    let spec = four();
    let refused = |text: String, danger: Danger| {
        let seen = seen(&spec, |_| text.clone());
        let refusals = create(&spec, &seen, &[]).unwrap_err();
        assert!(refusals.iter().all(|r| r.danger == Some(danger)), "{refusals:?}");
        assert!(create(&spec, &seen, &[danger]).is_ok(), "{danger:?}");
    };
    refused(store("absent", "yes"), Danger::SystemDisk);
    refused(store("files", "no"), Danger::StoreInUse);
    refused(store("absent", "no") + "point\tfiles\n", Danger::MountOverFiles);
    let one_host = Spec {
        places: ["/a", "/b"].map(|p| StorageFolder { host: "n1".into(), path: p.into() }).into(),
        clients: vec!["n1".into()],
        ..four()
    };
    let refusals = create(&one_host, &seen(&one_host, |_| String::new()), &[]).unwrap_err();
    assert_eq!(refusals[0].danger, Some(Danger::CopiesOnOneHost));
}

#[test]
fn copies_lie_on_different_hosts_whatever_the_order() {
    let mut spec = four();
    spec.places = [("n1", "/a"), ("n1", "/b"), ("n2", "/a"), ("n2", "/b")]
        .map(|(h, p)| StorageFolder { host: h.into(), path: p.into() })
        .into();
    let bricks = layout::bricks(&spec);
    assert!(layout::doubled(&bricks, 2).is_empty(), "{bricks:?}");
    let arbiter = Spec { arbiter: true, ..four() };
    let bricks = layout::bricks(&arbiter);
    assert_eq!(bricks.len(), 6);
    assert!(layout::doubled(&bricks, 3).is_empty(), "{bricks:?}");
    assert!(bricks[2].arbiter && bricks[5].arbiter);
}

#[test]
fn one_host_more_shares_a_set_with_another() {
    let mut spec = four();
    spec.places.push(StorageFolder { host: "n5".into(), path: "/brick".into() });
    spec.clients.push("n5".into());
    let plan = add_host(&spec, &running(&spec, ""), &[]).unwrap();
    let add = lines(&plan).into_iter().find(|l| l.contains("add-brick")).unwrap();
    assert!(add.contains(" data 0 n5:/brick/data n") && add.ends_with(":/brick/data.2"), "{add}");
    assert!(has(&plan, "rebalance data start"));
    assert_eq!(plan.then, Then::Wait(DataMovement::Rebalance));
}

#[test]
fn a_drained_host_keeps_all_copies_on_the_way() {
    let spec = four();
    let plan = drain_host(&spec, &running(&spec, ""), "n4", &[]).unwrap();
    let add = lines(&plan).into_iter().find(|l| l.contains("add-brick")).unwrap();
    assert!(add.contains("n3:/brick/data.2 n") && !add.contains("n4:"), "{add}");
    let Then::Wait(DataMovement::Drain(leaving)) = &plan.then else { panic!("{:?}", plan.then) };
    assert_eq!(leaving, &["n3:/brick/data", "n4:/brick/data"]);
    let going = drain_host(&spec, &running(&spec, &removal("in progress")), "n4", &[]).unwrap();
    assert!(going.phases.is_empty() && matches!(going.then, Then::Wait(_)));
    // A brick with files left is never removed.
    let left = drain_host(&spec, &running(&spec, &removal("completed")), "n4", &[]).unwrap_err();
    assert!(left[0].danger.is_none() && left[0].why.contains("n4:/brick/data"), "{left:?}");
    let mut empty = running(&spec, &removal("completed"));
    for facts in empty.hosts.values_mut().flatten() {
        facts.stores[0].content = crate::observe::StoreContent::Brick;
    }
    assert!(has(&drain_host(&spec, &empty, "n4", &[]).unwrap(), "commit"));
}

/// A host that left is no server for the next mount of the others.
#[test]
fn a_drained_host_leaves_the_lines_in_fstab_of_the_others() {
    let spec = four();
    let line = |host: &str| {
        let line = mount_line(&spec, host);
        format!("fstab\t{}\t/data\t{}\tx-homing.data,{}\n", line.source, line.fstype, line.options)
    };
    let bricks = ["n1:/brick/data", "n2:/brick/data", "n3:/brick/data"];
    let left = seen(&spec, |host| {
        format!("active\tglusterd\n{}{}{}", peers(&["n1", "n2", "n3"]), info(&bricks, 1), line(host))
    });
    let plan = drain_host(&spec, &left, "n4", &[]).unwrap();
    let steps: Vec<_> = plan.phases.iter().flat_map(|phase| &phase.steps).collect();
    let rewrites: Vec<_> = steps.iter().filter(|step| step.why.contains("rewrite the line of")).collect();
    let hosts: Vec<&str> = rewrites.iter().map(|step| step.host.as_str()).collect();
    assert_eq!(hosts, ["n1", "n2", "n3"], "{steps:?}");
    assert!(rewrites.iter().all(|step| step.argv.last().is_some_and(|options| !options.contains("n4"))));
}

/// Seen on a busy machine: an unanswered query was taken for "no task is running", and the drain began a second time.
#[test]
fn a_drain_is_not_begun_while_it_is_unknown_whether_one_goes_on() {
    let spec = four();
    let busy = "begin volume status all tasks\n<cliOutput><opRet>-1</opRet><opErrstr>Locking failed on n2.\
        </opErrstr></cliOutput>\nend volume status all tasks\n";
    let refused = drain_host(&spec, &running(&spec, busy), "n4", &[]).unwrap_err();
    assert!(refused[0].danger.is_none() && refused[0].why.contains("repeat the command in a moment"), "{refused:?}");
    // One daemon that lists the task is enough.
    let mut one = running(&spec, busy);
    one.hosts.insert("n3".into(), running(&spec, &removal("in progress")).hosts.remove("n3").unwrap());
    let going = drain_host(&spec, &one, "n4", &[]).unwrap();
    assert!(going.phases.is_empty() && matches!(going.then, Then::Wait(_)));
}

/// A daemon with an identity, peers with theirs, and volumes.
fn daemon(uuid: &str, peers: &[&str], bricks: Option<&[&str]>) -> String {
    let peer = |name: &&str| {
        format!("<peer><uuid>u-{name}</uuid><hostname>{name}</hostname><connected>0</connected><state>3</state></peer>")
    };
    let peers: String = peers.iter().map(peer).collect();
    let none = "begin volume info\n<cliOutput><volInfo><volumes/></volInfo></cliOutput>\nend volume info\n";
    let info = bricks.map_or(none.into(), |bricks| info(bricks, 2));
    format!(
        "gluster-uuid\tu-{uuid}\nactive\tglusterd\n{info}begin peer status\n<cliOutput><peerStatus>{peers}</peerStatus>\
         </cliOutput>\nend peer status\n"
    )
}

/// Seen: n4 was drained while it was off. When it was on again, the deleted volume was listed, and returned.
#[test]
fn a_volume_that_a_host_outside_of_the_pool_alone_knows_does_not_exist() {
    let spec = four();
    let old = ["n1:/brick/data", "n4:/brick/data"];
    let pool = |n2: String| {
        let mut seen = seen(&spec, |host| match host {
            "n1" => daemon("n1", &["n2", "n3"], None),
            "n2" => n2.clone(),
            "n3" => daemon("n3", &["n1", "n2"], None),
            _ => daemon("n4", &["n1", "n2", "n3"], Some(&old)),
        });
        seen.disown_strays();
        seen
    };
    let seen = pool(daemon("n2", &["n1", "n3"], None));
    assert!(volume(&spec, &seen).is_none(), "the others have deleted it");
    assert!(crate::adopt::spec("data", &spec.hosts(), &seen).is_none() && seen.volume_names().is_empty());
    let strays: Vec<_> = seen.strays().collect();
    assert_eq!(strays.len(), 1, "{strays:?}");
    let text = "its glusterd remembers a pool that n[1-3] removed it from, with the volume data";
    assert_eq!((strays[0].0, strays[0].1.text().as_str()), ("n4", text));
    // It is no peer before it is cleaned, and its own line of the status has the command.
    let refused = crate::needs::refusals(&crate::VolumeChange::Create, &spec, &seen);
    assert!(refused.len() == 1 && refused[0].why.starts_with("n4: ") && refused[0].of_host, "{refused:?}");
    let row = crate::OnHost::of(&spec, &seen, "n4");
    assert!(!row.well && row.faults[0].remedy.starts_with("homing exec -w n4 'systemctl stop glusterd; "), "{row:?}");
    // A host that was installed anew knows nobody, and disowns nobody.
    let anew = pool(daemon("n2", &[], None));
    assert_eq!(anew.strays().map(|(host, _)| host).collect::<Vec<_>>(), ["n4"]);
}

#[test]
fn a_pool_with_a_host_that_was_installed_anew_keeps_its_volumes() {
    let spec = spec(&["n1", "n2"], 2);
    let mut seen = seen(&spec, |host| match host {
        "n1" => daemon("n1", &["n2"], Some(&["n1:/brick/data", "n2:/brick/data"])),
        _ => daemon("n2", &[], None),
    });
    seen.disown_strays();
    assert_eq!(seen.strays().count(), 0);
    assert!(volume(&spec, &seen).is_some());
}

/// A line of fstab that was not rewritten, since its host was off, names a server that has left.
#[test]
fn a_mount_replaces_the_line_of_a_server_that_has_left() {
    let mut spec = spec(&["n1", "n2"], 2);
    spec.clients.push("n4".into());
    let steps = |line: &str| {
        let seen = Observed { hosts: [("n4".to_string(), Ok(facts(&spec, line)))].into() };
        lines(&crate::mounts::mount(&spec, &seen, &[]).unwrap())
    };
    let of = |server: &str| format!("fstab\t{server}:/data\t/data\tglusterfs\tx-homing.data,defaults,ro\n");
    let mounts_n4 = |lines: &[String]| lines.iter().find(|line| line.starts_with("n4: ")).unwrap().clone();
    assert!(mounts_n4(&steps(&of("n4"))).contains("ENVIRON"), "it is replaced");
    assert!(!mounts_n4(&steps(&of("n2"))).contains("ENVIRON"), "options that were set by hand stay");
}

#[test]
fn the_last_copy_is_never_drained() {
    let two = spec(&["n1", "n2"], 2);
    let volume = info(&["n1:/brick/data", "n2:/brick/data"], 2);
    let observed = seen(&two, |_| format!("active\tglusterd\n{volume}"));
    let refusals = drain_host(&two, &observed, "n2", &[]).unwrap_err();
    assert_eq!(refusals[0].danger, Some(Danger::LastCopy));
    assert!(has(&drain_host(&two, &observed, "n2", &[Danger::LastCopy]).unwrap(), "n2:/brick/data"));
    let one = spec(&["n1"], 1);
    let observed = seen(&one, |_| format!("active\tglusterd\n{}", info(&["n1:/brick/data"], 1)));
    assert!(drain_host(&one, &observed, "n1", &[Danger::LastCopy]).unwrap_err()[0].danger.is_none());
}

#[test]
fn copies_are_given_up_only_when_told() {
    let spec = four();
    let seen = running(&spec, "");
    let refusals = set_copies(&spec, &seen, 1, &[]).unwrap_err();
    assert_eq!((refusals.len(), refusals[0].danger), (1, Some(Danger::LastCopy)));
    let plan = set_copies(&spec, &seen, 1, &[Danger::LastCopy]).unwrap();
    assert!(has(&plan, "n2:/brick/data n4:/brick/data"), "{:#?}", lines(&plan));
}

#[test]
fn a_dead_host_is_replaced_by_one_of_another_set() {
    let spec = four();
    let mut observed = running(&spec, "");
    observed.hosts.insert("n4".into(), Err("no route".into()));
    let plan = drain_host(&spec, &observed, "n4", &[]).unwrap();
    let replace = lines(&plan).into_iter().find(|l| l.contains("replace-brick")).unwrap();
    assert!(replace.contains("n4:/brick/data n1:/brick/data.2") || replace.contains("n4:/brick/data n2:/brick/data.2"));
    assert_eq!(plan.then, Then::Wait(DataMovement::Heal));
    // Both hosts of the only set, one of them dead: no host is left to take its copies.
    let two = Spec { places: four().places[2..].to_vec(), clients: vec![], ..four() };
    let mut observed = seen(&two, |_| format!("active\tglusterd\n{}", info(&["n3:/brick/data", "n4:/brick/data"], 2)));
    observed.hosts.insert("n4".into(), Err("no route".into()));
    assert!(drain_host(&two, &observed, "n4", &[]).unwrap_err()[0].why.contains("add-host"));
}

#[test]
fn files_are_deleted_only_when_told() {
    let spec = four();
    let seen = running(&spec, "");
    assert_eq!(delete(&spec, &seen, &[], &MadeBeside::default()).unwrap_err()[0].danger, Some(Danger::DeleteFiles));
    let plan = delete(&spec, &seen, &[Danger::DeleteFiles], &MadeBeside::default()).unwrap();
    let order: Vec<&str> = plan.phases.iter().map(|p| p.why.as_str()).collect();
    assert_eq!(order, ["unmount /data", "stop the volume", "delete the volume", "remove the bricks' folders"]);
}

#[test]
fn a_deleted_volume_takes_along_what_was_made_for_it() {
    let spec = four();
    let bare = "store\t/brick/data\tno\tabsent\t1000\t900\t\t/\n";
    let made = create(&spec, &seen(&spec, |_| bare.into()), &[]).unwrap().made;
    assert_eq!(made.daemons.iter().collect::<Vec<_>>(), ["n1", "n2", "n3", "n4"]);
    assert_eq!(made.peers.iter().collect::<Vec<_>>(), ["n2", "n3", "n4"]);
    assert_eq!((made.folders.len(), made.folders_on("n1")), (4, vec!["/brick"]));
    let there = running(&spec, "");
    let plan = delete(&spec, &there, &[Danger::DeleteFiles], &made).unwrap();
    let order: Vec<&str> = plan.phases.iter().skip(4).map(|p| p.why.as_str()).collect();
    assert_eq!(order, ["leave the pool", "stop the daemons", "remove empty folders"]);
    assert!(
        has(&plan, "n1: sh -c") && lines(&plan).iter().any(|l| l.contains("peer detach") && l.ends_with("n2 n3 n4"))
    );
    assert!(plan.notes.is_empty(), "{:?}", plan.notes);
    // A pool that was there before stays, and is named.
    let plan = delete(&spec, &there, &[Danger::DeleteFiles], &MadeBeside::default()).unwrap();
    assert_eq!(plan.notes, ["glusterd goes on on n[1-4]: homing did not start it for this volume"]);
    // The record keeps it for the deletion.
    let folder = tempfile::tempdir().unwrap();
    let mut record = VolumeRecord::new(folder.path(), spec);
    let plan = VolumePlan { made: made.clone(), ..VolumePlan::default() };
    record.take_up(&crate::VolumeChange::Create, &plan, &[]).unwrap();
    record.finish().unwrap();
    assert_eq!(VolumeRecord::load(folder.path(), "data").unwrap().unwrap().made(), &made);
}

/// Fails at the n-th phase.
struct Failing {
    at: Mutex<usize>,
    said: Mutex<Vec<String>>,
    why: &'static str,
}

impl Failing {
    fn new(at: usize) -> Failing {
        Failing { at: Mutex::new(at), said: Mutex::default(), why: "no" }
    }
}

impl Executor for Failing {
    fn run(&self, calls: &[(String, Call)]) -> Vec<CallResult> {
        let mut at = self.at.lock().unwrap();
        *at = at.wrapping_sub(1);
        let fails = *at == 0;
        let mut said = self.said.lock().unwrap();
        said.extend(calls.iter().map(|(host, call)| match call {
            Call::Program(argv) => format!("{host}: {}", crate::shown(argv)),
            Call::Script(text) => format!("{host}: {text}"),
        }));
        calls.iter().map(|_| if fails { Err(self.why.into()) } else { Ok(String::new()) }).collect()
    }
}

#[test]
fn what_was_begun_is_taken_back_last_first() {
    let spec = four();
    let plan = create(&spec, &seen(&spec, |_| store("absent", "no")), &[]).unwrap();
    let folder = std::env::temp_dir().join(format!("homing-volume-record-{}", std::process::id()));
    let mut record = VolumeRecord::new(&folder, spec);
    record.take_up(&crate::VolumeChange::Create, &plan, &[Danger::SystemDisk]).unwrap();
    let executor = Failing::new(5);
    assert!(execute::carry_out(&executor, &plan, &mut record, &mut |_| {}).is_err());
    // The record as another process loads it.
    let mut record = VolumeRecord::load(&folder, "data").unwrap().unwrap();
    let pending = record.pending.clone().unwrap();
    assert_eq!((pending.done, pending.begun, pending.allowed), (4, 5, vec![Danger::SystemDisk]));
    let executor = Failing::new(0);
    assert!(execute::undo(&executor, &record, &mut |_| {}).is_empty());
    let said = executor.said.into_inner().unwrap();
    assert!(said[0].contains("volume delete") && said.last().unwrap().contains("disable --now --quiet glusterd"));
    // Or it is finished: only unfinished phases run again.
    let executor = Failing::new(0);
    execute::carry_out(&executor, &plan, &mut record, &mut |_| {}).unwrap();
    assert!(executor.said.into_inner().unwrap()[0].contains("volume create data"));
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A process that was killed, or an administrator, may hold the daemons' lock for a moment.
#[test]
fn a_daemon_that_is_busy_is_asked_again() {
    let spec = four();
    let plan = create(&spec, &seen(&spec, |_| store("absent", "no")), &[]).unwrap();
    let folder = std::env::temp_dir().join(format!("homing-volume-busy-{}", std::process::id()));
    let mut record = VolumeRecord::new(&folder, spec);
    record.take_up(&crate::VolumeChange::Create, &plan, &[Danger::SystemDisk]).unwrap();
    let why = "volume create: data: failed: Another transaction is in progress. Please try again after some time.";
    let executor = Failing { why, ..Failing::new(5) };
    let mut waits = Vec::new();
    let mut news = |news: PlanEvent| {
        if let PlanEvent::Waits(step, why) = news {
            waits.push((crate::shown(&step.argv), why.to_string()));
        }
    };
    assert!(execute::carry_out(&executor, &plan, &mut record, &mut news).unwrap().is_empty());
    assert!(waits.len() == 1 && waits[0].0.contains("volume create data") && waits[0].1 == why, "{waits:?}");
    let said = executor.said.into_inner().unwrap();
    assert_eq!(said.iter().filter(|s| s.contains("volume create data")).count(), 2);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_answer_cut_short_is_no_answer() {
    let spec = four();
    assert!(crate::observe::read(PROGRAMS, &spec).is_none());
    let texts = BTreeMap::from([("volume info".to_string(), "<broken".to_string())]);
    assert!(xml::read(&texts).is_none());
}
