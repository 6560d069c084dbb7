//! Tests areas on observed states, without hosts.

use crate::plan::{SetupPlan, plan};
use crate::site::{AllSeen, ClusterSite};
use crate::{Area, question};
use homing_steps::{
    Account, FileState, HomeCopyState, HomeFolder, HostChange, MountState, Observed, PathState, UnitState, block_of,
};

pub(crate) fn site(hosts: &[&str], up: &str) -> ClusterSite {
    ClusterSite {
        hosts: hosts.iter().map(|h| h.to_string()).collect(),
        up: toml::from_str(up).unwrap(),
        ..ClusterSite::default()
    }
}

fn with(mut seen: Observed, path: &str, text: &str) -> Observed {
    let state = FileState { content: text.into(), mode: 0o644, uid: 0, gid: 0 };
    seen.files.insert(path.into(), PathState::File(state, 1));
    seen
}

/// Facts of a bare Debian host with this number.
pub(crate) fn host(n: u32) -> Observed {
    let mut seen = Observed {
        hostname: format!("n{n}"),
        addresses: vec![format!("10.0.0.{n}"), format!("10.9.0.{n}")],
        reached_at: Some(format!("10.0.0.{n}")),
        host_keys: vec![format!("ssh-ed25519 KEY{n}")],
        family: vec!["debian".into()],
        ..Observed::default()
    };
    let root = Account { uid: 0, gid: 0, home: "/root".into(), shell: "/bin/bash".into() };
    seen.users.insert("root".into(), root);
    seen.groups.insert("root".into(), (0, Default::default()));
    seen.units.insert("ssh".into(), (UnitState { enabled: true, active: true }, 100));
    let seen = with(seen, "/etc/hosts", &format!("127.0.0.1\tlocalhost\n127.0.1.1\tn{n}.lab n{n}\n"));
    let seen = with(seen, "/etc/ssh/sshd_config", "Include /etc/ssh/sshd_config.d/*.conf\n");
    with(seen, "/etc/ssh/ssh_config", "Include /etc/ssh/ssh_config.d/*.conf\n")
}

fn all(hosts: u32) -> AllSeen {
    (1..=hosts).map(|n| (format!("n{n}"), Ok(host(n)))).collect()
}

/// Plans, and carries the plan out.
fn carry(seen: &mut AllSeen, site: &ClusterSite, areas: &[Area]) -> SetupPlan {
    let plan = plan(site, areas, seen);
    for (host, steps) in plan.phases.iter().flat_map(|phase| &phase.steps) {
        let there = seen.get_mut(host).unwrap().as_mut().unwrap();
        steps.iter().for_each(|step| there.apply(&step.change));
    }
    plan
}

fn text<'s>(seen: &'s AllSeen, host: &str, path: &str) -> &'s str {
    seen[host].as_ref().unwrap().text(path).unwrap()
}

const EVERYTHING: &str = r#"
hostname = true
ssh = "host-based"
packages = ["gcc"]
clock = "n1"
[sysctl]
"net.core.rmem_max" = "1 2"
[limits]
memlock = "unlimited"
nofile = "1024:65536"
[group.lab]
gid = 3000
[user.alice]
groups = ["lab"]
[user.bob]
uid = 2000
group = "lab"
[mount."/home"]
source = "n1:/export/home"
type = "nfs4"
"#;

fn everything(hosts: u32) -> (ClusterSite, AllSeen) {
    let names: Vec<String> = (1..=hosts).map(|n| format!("n{n}")).collect();
    let site = site(&names.iter().map(String::as_str).collect::<Vec<_>>(), EVERYTHING);
    let mut seen = all(hosts);
    for there in seen.values_mut() {
        there.as_mut().unwrap().sysctls.insert("net.core.rmem_max".into(), "0".into());
    }
    (site, seen)
}

#[test]
fn bare_hosts_become_a_cluster_and_then_nothing_is_left_to_do() {
    let (site, mut seen) = everything(3);
    assert_eq!(site.faults(), Vec::<String>::new());
    let first = carry(&mut seen, &site, &Area::ALL);
    assert!(first.against.is_empty() && first.notes.is_empty(), "{first:?}");
    let expected: Vec<&str> = Area::ALL.into_iter().filter(|a| a.is_wanted(&site)).map(Area::name).collect();
    assert_eq!(first.phases.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), expected);
    let again = plan(&site, &Area::ALL, &seen);
    assert!(again.phases.is_empty() && again.against.is_empty(), "{again:?}");
    let names = block_of(text(&seen, "n2", "/etc/hosts"), "names").unwrap();
    assert_eq!(names, "10.0.0.1 n1.lab n1\n10.0.0.2 n2.lab n2\n10.0.0.3 n3.lab n3\n");
    assert!(text(&seen, "n2", "/etc/hosts").contains("#homing: 127.0.1.1\tn2.lab n2\n"));
    let known = text(&seen, "n2", "/etc/ssh/ssh_known_hosts");
    assert!(known.contains("\nn1,n1.lab,10.0.0.1 ssh-ed25519 KEY1\n"), "{known}");
    assert!(text(&seen, "n3", "/etc/chrony/conf.d/homing.conf").starts_with("server 10.0.0.1 iburst\n"));
    assert!(text(&seen, "n1", "/etc/chrony/conf.d/homing.conf").contains("allow 10.0.0.2\nallow 10.0.0.3\n"));
    let users = |host: &str| seen[host].as_ref().unwrap().users.clone();
    assert_eq!((users("n1")["alice"].uid, users("n1")["alice"].gid, users("n1")["bob"].gid), (1000, 1000, 3000));
    assert_eq!(users("n1"), users("n3"));
    assert!(!seen["n1"].as_ref().unwrap().mounts.contains_key("/home"), "the server has it already");
    let limits = "* - memlock unlimited\n* soft nofile 1024\n* hard nofile 65536\n";
    assert_eq!(text(&seen, "n2", "/etc/security/limits.d/60-homing.conf"), limits);
    assert!(text(&seen, "n2", "/etc/fstab").contains("n1:/export/home /home nfs4 defaults 0 0\n"));
}

#[test]
fn all_that_is_looked_at_is_asked_for() {
    let (site, mut seen) = everything(2);
    carry(&mut seen, &site, &Area::ALL);
    let asked = question(&site, &Area::ALL);
    let touched = &seen["n2"].as_ref().unwrap().files;
    assert!(touched.keys().all(|path| asked.files.contains(path)), "{touched:?} of {:?}", asked.files);
}

#[test]
fn a_host_more_changes_only_lines_that_name_it() {
    let (site, mut seen) = everything(2);
    carry(&mut seen, &site, &Area::ALL);
    let (wider, fresh) = everything(3);
    seen.insert("n3".into(), fresh["n3"].clone());
    let grown = plan(&wider, &Area::ALL, &seen);
    let on_old = grown.phases.iter().flat_map(|p| p.steps.get("n2")).flatten();
    for step in on_old {
        let HostChange::File { from: Some(from), to: Some(to), .. } = &step.change else { panic!("{step:?}") };
        let old: Vec<&str> = from.content.text().unwrap().lines().collect();
        let new = to.content.text().unwrap();
        assert!(new.lines().all(|line| old.contains(&line) || line.contains("n3")), "{new}");
    }
    let restarts = |host: &str| {
        let steps = grown.phases.iter().flat_map(|p| p.steps.get(host)).flatten();
        steps.filter(|s| matches!(s.change, HostChange::Nudge { .. } | HostChange::Unit { .. })).count()
    };
    assert_eq!(restarts("n2"), 0, "nothing is restarted on a host that was there");
}

#[test]
fn a_host_that_does_not_answer_keeps_its_lines_on_the_others() {
    let (site, mut seen) = everything(3);
    carry(&mut seen, &site, &Area::ALL);
    seen.insert("n3".into(), Err("no route to host".into()));
    let again = plan(&site, &Area::ALL, &seen);
    assert!(again.phases.is_empty(), "{again:?}");
}

#[test]
fn each_network_has_its_name_and_an_address_that_is_not_there_is_told() {
    let mut site = site(&["n1", "n2"], "network = \"manage\"");
    let of = |n: u32| {
        let row = |net: &str, a: String| (net.to_string(), a.parse().unwrap());
        [row("manage", format!("10.0.0.{n}")), row("storage", format!("10.9.0.{n}"))].into()
    };
    site.addresses = [("n1".to_string(), of(1)), ("n2".to_string(), of(2))].into();
    let mut seen = all(2);
    carry(&mut seen, &site, &[Area::Names]);
    let names = block_of(text(&seen, "n1", "/etc/hosts"), "names").unwrap();
    assert!(names.contains("10.9.0.1 n1-storage\n10.0.0.2 n2.lab n2\n10.9.0.2 n2-storage\n"), "{names}");
    site.addresses.insert("n2".into(), of(7));
    let against = plan(&site, &[Area::Names], &seen).against;
    let told = "names: it has no address 10.0.0.7 for network manage; it has 10.0.0.2, 10.9.0.2";
    assert_eq!(against[0], ("n2".to_string(), told.to_string()), "{against:?}");
    assert!(against.iter().all(|(host, _)| host == "n2"), "n1's line of n2 is homing's own: {against:?}");
}

#[test]
fn lines_by_hand_that_say_otherwise_are_named_not_overwritten() {
    let site = site(&["n1", "n2"], "");
    let mut seen = all(2);
    let edited = with(host(2), "/etc/hosts", "127.0.0.1 localhost n2\n10.0.0.77 n1\n10.0.0.2 n2\n");
    seen.insert("n2".into(), Ok(edited));
    let plan = plan(&site, &[Area::Names], &seen);
    let told: Vec<&str> = plan.against.iter().map(|(_, why)| why.as_str()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("remove n2 from it") && told[1].contains("n1 is 10.0.0.1"), "{told:?}");
    assert_eq!(plan.phases[0].steps.keys().collect::<Vec<_>>(), ["n1"], "the other host goes on");
}

#[test]
fn one_user_with_two_numbers_is_named_with_the_hosts() {
    let mut seen = all(3);
    let account = |uid| Account { uid, gid: 0, home: "/h".into(), shell: "/bin/sh".into() };
    for (host, uid) in [("n1", 1500), ("n2", 1600), ("n3", 1600)] {
        seen.get_mut(host).unwrap().as_mut().unwrap().users.insert("alice".into(), account(uid));
    }
    let told = plan(&site(&["n1", "n2", "n3"], "[user.alice]\n"), &[Area::Users], &seen).against;
    assert_eq!(told.len(), 3);
    assert!(
        told[0].1.contains("user alice has number 1500 on n1, 1600 on n[2-3]: choose one with [up.user.alice] uid"),
        "{told:?}"
    );
    let told = plan(&site(&["n1", "n2", "n3"], "[user.alice]\nuid = 1600\n"), &[Area::Users], &seen);
    assert_eq!(told.against.len(), 1, "{told:?}");
    assert!(told.against[0].0 == "n1" && told.against[0].1.contains("find / -xdev -uid 1500"), "{told:?}");
}

#[test]
fn a_number_is_free_on_all_hosts_and_the_one_of_a_host_is_taken_over() {
    let mut seen = all(2);
    let there = seen.get_mut("n2").unwrap().as_mut().unwrap();
    there.users.insert("x".into(), Account { uid: 1000, gid: 1000, home: "/x".into(), shell: "/bin/sh".into() });
    there.users.insert("bob".into(), Account { uid: 1234, gid: 1000, home: "/b".into(), shell: "/bin/sh".into() });
    there.groups.insert("people".into(), (1000, Default::default()));
    carry_users(&mut seen);
    let on = |host: &str| seen[host].as_ref().unwrap();
    assert_eq!((on("n1").users["alice"].uid, on("n1").users["alice"].gid), (1001, 1001));
    assert_eq!((on("n1").users["bob"].uid, on("n1").groups["people"].0), (1234, 1000));
    assert_eq!(on("n2").users["bob"].home, "/b");
}

fn carry_users(seen: &mut AllSeen) {
    let plan = carry(seen, &site(&["n1", "n2"], "[user.alice]\n[user.bob]\n"), &[Area::Users]);
    assert!(plan.against.is_empty(), "{:?}", plan.against);
}

#[test]
fn hosts_with_one_key_are_told() {
    let mut seen = all(3);
    for host in ["n2", "n3"] {
        seen.get_mut(host).unwrap().as_mut().unwrap().host_keys = vec!["ssh-ed25519 SAME".into()];
    }
    let notes = plan(&site(&["n1", "n2", "n3"], "ssh = \"host-based\""), &[Area::Ssh], &seen).notes;
    assert!(notes.len() == 1 && notes[0].starts_with("n[2-3] have the same host key"), "{notes:?}");
}

#[test]
fn a_file_that_contradicts_itself_is_told() {
    let text = "clock = \"n9\"\npackages = [\"-o\"]\n[user.\"a b\"]\ngroup = \"none\"\n[mount.home]\nsource = \"a\"\ntype = \"b c\"\n";
    let faults = site(&["n1"], text).faults();
    for part in ["\"n9\"", "\"-o\"", "\"a b\"", "[up.group.none]", "\"home\"", "fstab"] {
        assert!(faults.iter().any(|f| f.contains(part)), "{part}: {faults:?}");
    }
}

/// Facts of a host with Slurm's packages, just after their installation.
fn with_slurm(n: u32) -> Observed {
    let mut seen = host(n);
    seen.packages = ["munge", "slurmd", "slurm-client"].map(String::from).into();
    seen.packages.extend((n == 1).then(|| "slurmctld".to_string()));
    let offers = format!("NodeName=vm CPUs={n} Boards=1 RealMemory={}000\nUpTime=1-0\n", 2 * n);
    seen.outputs.insert("slurmd -C".into(), offers);
    seen.outputs.insert("stat -fc %T /sys/fs/cgroup".into(), "cgroup2fs\n".into());
    let munge = Account { uid: 100 + n, gid: 200 + n, home: "/x".into(), shell: "/bin/false".into() };
    seen.users.insert("munge".into(), munge);
    seen.units.insert("munge".into(), (UnitState { enabled: true, active: true }, 100));
    with(seen, "/etc/munge/munge.key", &format!("key of n{n}"))
}

fn slurm(hosts: u32) -> (ClusterSite, AllSeen) {
    let names: Vec<String> = (1..=hosts).map(|n| format!("n{n}")).collect();
    let site = site(
        &names.iter().map(String::as_str).collect::<Vec<_>>(),
        "[slurm]\nsettings = { KillWait = \"3\", ReturnToService = \"1\" }\n",
    );
    (site, (1..=hosts).map(|n| (format!("n{n}"), Ok(with_slurm(n)))).collect())
}

#[test]
fn slurm_has_one_key_one_file_and_nodes_as_the_hosts_are() {
    let (site, mut seen) = slurm(2);
    let bare = plan(&site, &[Area::Slurm], &all(2));
    let told: Vec<String> = bare.phases[0].steps["n1"].iter().map(|s| s.change.description()).collect();
    assert!(told.len() == 4 && told.iter().all(|t| t.starts_with("package ")), "{told:?}");
    assert_eq!(bare.phases[0].steps["n2"].len(), 3, "only n1 leads");
    assert!(bare.notes[0].contains("when the packages are installed"), "{:?}", bare.notes);

    let first = carry(&mut seen, &site, &[Area::Slurm]);
    assert!(first.against.is_empty() && first.notes.is_empty(), "{first:?}");
    let Some(PathState::File(key, _)) = seen["n2"].as_ref().unwrap().files.get("/etc/munge/munge.key") else {
        panic!()
    };
    assert_eq!((key.content.text(), key.mode, key.uid, key.gid), (Some("key of n1"), 0o600, 102, 202));
    let restarted = |host: &str| {
        let steps = first.phases[0].steps[host].iter().filter(|s| matches!(s.change, HostChange::Nudge { .. }));
        steps.map(|s| s.change.thing()).collect::<Vec<_>>()
    };
    assert_eq!(restarted("n2"), ["files of unit munge"], "it ran with another key");
    let conf = text(&seen, "n2", "/etc/slurm/slurm.conf");
    assert_eq!(conf, text(&seen, "n1", "/etc/slurm/slurm.conf"));
    let node = "NodeName=n2 NodeAddr=10.0.0.2 CPUs=2 Boards=1 RealMemory=3800\n";
    for line in ["SlurmctldHost=n1(10.0.0.1)\n", "ProctrackType=proctrack/cgroup\n", "KillWait=3\n", node] {
        assert!(conf.contains(line), "{line}: {conf}");
    }
    assert!(conf.contains("DefMemPerCPU=1900\n"), "{conf}");
    assert_eq!(conf.matches("ReturnToService=").count(), 1, "a setting of the file stands for homing's own");
    assert!(plan(&site, &[Area::Slurm], &seen).phases.is_empty());
}

#[test]
fn slurm_keeps_a_node_that_does_not_answer_and_takes_no_hosts_of_another_cluster() {
    let (site, mut seen) = slurm(3);
    carry(&mut seen, &site, &[Area::Slurm]);
    seen.insert("n3".into(), Err("no route to host".into()));
    assert!(plan(&site, &[Area::Slurm], &seen).phases.is_empty());
    seen.insert("n1".into(), Err("no route to host".into()));
    let against = plan(&site, &[Area::Slurm], &seen).against;
    assert!(
        against.len() == 1 && against[0].1.contains("n1, which is to run Slurm's controller, does not answer"),
        "{against:?}"
    );

    let (site, mut seen) = slurm(2);
    let theirs = with(with_slurm(2), "/etc/slurm/slurm.conf", "ClusterName=theirs\n");
    seen.insert("n2".into(), Ok(theirs));
    let plan = plan(&site, &[Area::Slurm], &seen);
    assert!(
        plan.against[0].0 == "n2" && plan.against[0].1.contains("homing did not write /etc/slurm/slurm.conf"),
        "{plan:?}"
    );
    let conf = plan.phases[0].steps["n1"].iter().find_map(|step| match &step.change {
        HostChange::File { path, to: Some(to), .. } if path == "/etc/slurm/slurm.conf" => to.content.text(),
        _ => None,
    });
    assert!(!conf.unwrap().contains("NodeName=n2"), "{conf:?}");
}

#[test]
fn nodes_that_do_not_serve_are_told_as_sinfo_has_them() {
    let hosts = ["n1", "n2", "n3"].map(String::from);
    let told = crate::unfit(&hosts, "n1 idle none\nn2 down* Not responding\n");
    assert_eq!(told.iter().map(|(host, _)| host.as_str()).collect::<Vec<_>>(), ["n2", "n3"]);
    assert!(
        told[0].1.contains("down* Not responding") && told[1].1.contains("missing in the output of sinfo"),
        "{told:?}"
    );
}

#[test]
fn jobs_on_a_host_that_leaves_and_those_queued_for_it_stand_against_that() {
    let script = crate::drain("n3");
    assert!(script.contains("NodeName=n3 State=DRAIN") && script.contains("squeue -h -w n3 "), "{script}");
    assert_eq!(crate::held(""), crate::BlockingJobs::default());
    let held = crate::held("runs 7\nruns 8_2\nqueued 9\nslurm_load_jobs error\n");
    assert_eq!((held.run, held.queued), (vec!["7".to_string(), "8_2".into()], vec!["9".to_string()]));
}

#[test]
fn what_a_host_without_its_journal_still_has_is_told() {
    let (site, mut seen) = slurm(2);
    assert_eq!(crate::remains(seen["n2"].as_ref().unwrap()), [""; 0]);
    carry(&mut seen, &site, &[Area::Names, Area::Slurm]);
    let told = crate::remains(seen["n2"].as_ref().unwrap());
    assert!(told.len() == 2 && told[0].contains("/etc/hosts") && told[1].contains("/etc/slurm/slurm.conf"), "{told:?}");
}

const HOMES: &str = "[volume.homes]\nkind = \"nfs\"\nhosts = \"n1:/export\"\n[homes]\nvolume = \"homes\"\n";

/// Facts of three hosts that mount an NFS volume of n1.
fn with_homes(up: &str) -> (ClusterSite, AllSeen) {
    let mut site = site(&["n1", "n2", "n3"], up);
    let spec = homing_volume::Spec {
        name: "homes".into(),
        kind: homing_volume::VolumeKind::Nfs,
        places: vec![homing_volume::StorageFolder { host: "n1".into(), path: "/export".into() }],
        copies: 1,
        arbiter: false,
        stripe: None,
        mount: "/homes".into(),
        clients: site.hosts.clone(),
        master: None,
        options: Default::default(),
        export: Default::default(),
    };
    site.volumes.push(crate::SiteVolume { spec, allowed: Vec::new(), exists: false });
    let mut seen = all(3);
    for there in seen.values_mut() {
        let there = there.as_mut().unwrap();
        there.packages.extend(["nfs-kernel-server", "nfs-common", "rsync"].map(String::from));
        there.mounts.insert("/homes".into(), (MountState { exists: true, mounted: true }, true));
        there.mounts.insert("/home".into(), (MountState { exists: true, mounted: false }, true));
    }
    (site, seen)
}

fn homes_of<'s>(seen: &'s mut AllSeen, host: &str) -> &'s mut homing_steps::Homed {
    &mut seen.get_mut(host).unwrap().as_mut().unwrap().homes
}

fn holds(seen: &mut AllSeen, host: &str, name: &str) {
    homes_of(seen, host).homes.push(HomeFolder { name: name.into(), holds: true });
}

#[test]
fn homes_are_copied_then_their_host_has_the_copy_and_then_all() {
    let (site, mut seen) = with_homes(HOMES);
    holds(&mut seen, "n1", "alice");
    let areas = [Area::Packages, Area::Volumes, Area::Homes];
    let done = |seen: &mut AllSeen| -> Vec<String> {
        let plan = carry(seen, &site, &areas);
        assert_eq!(plan.against, []);
        let told = plan.phases.iter().flat_map(|phase| &phase.steps);
        let told: Vec<String> =
            told.map(|(host, steps)| format!("{host} {}", steps.last().unwrap().change.description())).collect();
        // The copy lies on the volume: all hosts see the same state of it.
        let copied = seen["n1"].as_ref().unwrap().homes.copied.clone();
        ["n2", "n3"].iter().for_each(|host| homes_of(seen, host).copied = copied.clone());
        told
    };
    assert_eq!(done(&mut seen), ["n1 copy of /home in /homes/home: made and compared"]);
    assert_eq!(done(&mut seen), ["n1 mount /home"]);
    ["n1", "n2", "n3"].iter().for_each(|h| homes_of(&mut seen, h).copied = Some(HomeCopyState::Used("n1".into())));
    assert_eq!(done(&mut seen), ["n2 mount /home", "n3 mount /home"]);
    assert_eq!(done(&mut seen), Vec::<String>::new());
}

#[test]
fn homes_stay_while_it_is_not_clear_whose_are_meant_or_somebody_is_there() {
    let areas = [Area::Homes];
    let (site, mut seen) = with_homes(HOMES);
    ["n1", "n2"].iter().for_each(|host| holds(&mut seen, host, "alice"));
    let told = plan(&site, &areas, &seen);
    assert!(told.phases.is_empty() && told.against.len() == 2, "{told:?}");
    assert!(told.against[0].1.contains("several hosts have homes with files, n1 (alice), n2 (alice)"), "{told:?}");

    let site = with_homes(&format!("{HOMES}from = \"n1\"\n")).0;
    homes_of(&mut seen, "n3").used.insert("bob: bash".into());
    let told = plan(&site, &areas, &seen);
    assert!(told.phases.is_empty(), "{told:?}");
    let why = "homes: /home is in use there (bob: bash): homing moves no home until these users have logged out";
    assert_eq!(told.against, [("n3".to_string(), why.to_string())]);
    assert!(told.notes[1].contains("on n2 the files of alice stay where they are"), "{:?}", told.notes);

    homes_of(&mut seen, "n3").used.clear();
    let site = with_homes(&format!("{HOMES}from = \"n2\"\n")).0;
    let told = plan(&site, &areas, &seen);
    assert!(told.against[0].1.contains("root of n2 has no rights on the volume of n1"), "{told:?}");
}

#[test]
fn homes_that_came_back_are_not_hidden_by_older_ones_nor_the_other_way_round() {
    let (site, mut seen) = with_homes(HOMES);
    holds(&mut seen, "n1", "alice");
    ["n1", "n2", "n3"].iter().for_each(|h| homes_of(&mut seen, h).copied = Some(HomeCopyState::Used("n1".into())));
    let told = plan(&site, &[Area::Homes], &seen);
    assert!(told.phases.is_empty() && told.against.len() == 1, "{told:?}");
    assert!(told.against[0].1.contains("move one of the two elsewhere"), "{told:?}");
}

#[test]
fn a_family_without_a_folder_of_chronys_has_a_block_and_one_that_nobody_knows_is_named() {
    let site = site(&["n1", "n2", "n3"], "clock = \"n1\"");
    let mut seen = all(3);
    let of = |seen: &mut AllSeen, host: &str, family: &[&str]| {
        seen.get_mut(host).unwrap().as_mut().unwrap().family = family.iter().map(|f| f.to_string()).collect();
    };
    of(&mut seen, "n2", &["rocky", "rhel", "centos", "fedora"]);
    of(&mut seen, "n3", &["arch"]);
    let n2 = seen.remove("n2").unwrap().unwrap();
    seen.insert("n2".into(), Ok(with(n2, "/etc/chrony.conf", "pool a iburst\n")));
    assert!(question(&site, &[Area::Clock]).units.contains("chronyd"));
    let plan = carry(&mut seen, &site, &[Area::Clock]);
    let conf = text(&seen, "n2", "/etc/chrony.conf");
    assert!(
        conf.starts_with("pool a iburst\n") && block_of(conf, "clock").unwrap().contains("server 10.0.0.1"),
        "{conf}"
    );
    assert_eq!(text(&seen, "n1", "/etc/chrony/conf.d/homing.conf").lines().next(), Some("local stratum 10"));
    let units: Vec<String> = plan.phases[0].steps["n2"].iter().map(|step| step.change.thing()).collect();
    assert!(units.contains(&"unit chronyd".to_string()), "{units:?}");
    assert!(plan.against[0].1.contains("[up.family.arch] \"clock.package\""), "{:?}", plan.against);
}

#[test]
fn an_mtu_is_of_all_hosts_of_a_network_or_of_none() {
    let mut site = site(&["n1", "n2", "n3"], "[mtu]\nstorage = 9000");
    assert!(site.faults()[0].contains("no addresses of a [host.NAME] has a network of this name"));
    let link = |n: u32, mtu: &str| {
        let said = homing_steps::FileContent::from(mtu).encoded();
        let text = format!("carrier\t10.9.0.{n}\teth1\nlink\teth1\tmtu\t{said}\ndone");
        let told = Observed::read(&text).unwrap();
        Ok(Observed { carriers: told.carriers, links: told.links, ..host(n) })
    };
    for n in 1..=2 {
        site.addresses
            .entry(format!("n{n}"))
            .or_default()
            .insert("storage".into(), format!("10.9.0.{n}").parse().unwrap());
    }
    let mut seen: AllSeen =
        [("n1".into(), link(1, "1500\nmaxmtu 9216")), ("n2".into(), link(2, "1500\nmaxmtu 4000"))].into();
    let against = carry(&mut seen, &site, &[Area::Mtu]).against;
    let why = "mtu: all hosts of storage get MTU 9000 or none does, and n2 accepts at most 4000 on eth1";
    assert_eq!(against, ["n1", "n2"].map(|host| (host.to_string(), why.to_string())));
    seen.insert("n2".into(), Err("gone".into()));
    assert!(carry(&mut seen, &site, &[Area::Mtu]).against[0].1.ends_with("and n2 does not answer"));
    seen.insert("n2".into(), link(2, "9000\nmaxmtu 9216"));
    let plan = carry(&mut seen, &site, &[Area::Mtu]);
    assert_eq!((plan.phases[0].steps.len(), plan.phases[0].steps["n1"].len()), (1, 1), "{plan:?}");
    let plan = carry(&mut seen, &site, &[Area::Mtu]);
    assert_eq!(plan.phases[0].steps["n2"].len(), 2, "a file and its unit, when all have it: {plan:?}");
    seen.insert("n2".into(), Err("gone".into()));
    let plan = carry(&mut seen, &site, &[Area::Mtu]);
    assert_eq!((plan.phases.len(), plan.against.len()), (0, 0), "who has it needs nobody: {plan:?}");
}
