//! Tests the rounds of a set-up on hosts that are values: a step changes the value.

use super::*;
use crate::SiteVolume;
use crate::areas::tests::{host, site};
use homing_steps::{FactQuery, Fault, HostChange, Observed};
use homing_volume::{Spec, StorageFolder, VolumeKind};
use std::collections::BTreeMap;

/// Hosts, their faults, and the calls of a set-up in order.
#[derive(Default)]
struct FakeHosts {
    hosts: BTreeMap<String, Observed>,
    /// By host and phase: faults of the next calls, the last first.
    faults: BTreeMap<(&'static str, &'static str), Vec<Fault>>,
    /// Whether steps change nothing.
    forgets: bool,
    /// Hosts that cannot get packages.
    cut_off: Vec<&'static str>,
    /// The volumes that are wanted and not made.
    due: Vec<SiteVolume>,
    /// The refusal of a volume that is known before the first change.
    refused: Option<&'static str>,
    /// The reason why a volume cannot be made.
    unmakable: Option<&'static str>,
    disagrees: bool,
    /// Hosts whose guarded change can be neither confirmed nor undone.
    stuck: Vec<&'static str>,
    calls: Vec<String>,
}

impl FakeHosts {
    fn of(hosts: u32) -> FakeHosts {
        let hosts = (1..=hosts).map(|n| {
            let mut seen = host(n);
            seen.sysctls.insert("vm.swappiness".into(), "60".into());
            (format!("n{n}"), seen)
        });
        FakeHosts { hosts: hosts.collect(), ..FakeHosts::default() }
    }

    /// Returns the calls that change or prompt.
    fn acts(&self) -> Vec<&str> {
        self.calls.iter().map(String::as_str).filter(|call| !call.starts_with("look")).collect()
    }

    fn count(&self, start: &str) -> usize {
        self.calls.iter().filter(|call| call.starts_with(start)).count()
    }
}

fn label<'h>(hosts: impl Iterator<Item = &'h String>) -> String {
    hosts.cloned().collect::<NodeSet>().to_string()
}

impl SetupEffects for FakeHosts {
    fn look(&mut self, _: &FactQuery, hosts: &[String]) -> AllSeen {
        self.calls.push(format!("look {}", label(hosts.iter())));
        let of = |host: &String| (host.clone(), self.hosts.get(host).cloned().ok_or("no route to host".to_string()));
        hosts.iter().map(of).collect()
    }

    fn end_guards(&mut self, hosts: &[String]) -> BTreeMap<String, String> {
        self.calls.push(format!("guards {}", label(hosts.iter())));
        hosts.iter().for_each(|host| self.hosts.get_mut(host).unwrap().guarded = false);
        self.stuck.iter().map(|host| (host.to_string(), "ssh: a new connection fails".to_string())).collect()
    }

    fn request_consent(&mut self, _: &str) -> Result<(), Failure> {
        self.calls.push("confirm".into());
        if self.disagrees { Err(Failure::usage("not confirmed")) } else { Ok(()) }
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.calls.push("begin".into());
        Ok(())
    }

    fn carry_out(&mut self, mut phase: ChangePhase, lost: &mut Lost) -> usize {
        lost.admit(&mut phase);
        self.calls.push(format!("{} {}", phase.name, label(phase.steps.keys())));
        let mut done = 0;
        for (host, steps) in &phase.steps {
            let faults = self.faults.iter_mut().find(|((h, p), _)| h == host && *p == phase.name);
            match faults.and_then(|(_, faults)| faults.pop()) {
                Some(fault) => lost.take(&phase.name, [(host.clone(), fault)].into()),
                None if phase.name == "mtu" => lost.refused.push((host.clone(), "mtu: no large packets".into())),
                None if self.forgets => done += steps.len(),
                None => {
                    let there = self.hosts.get_mut(host).unwrap();
                    steps.iter().for_each(|step| there.apply(&step.change));
                    done += steps.len();
                }
            }
        }
        done
    }

    fn cut_off(&self, _: &[ChangePhase]) -> HostFailures {
        self.cut_off.iter().map(|host| (host.to_string(), "packages: no mirror".to_string())).collect()
    }

    fn volumes_due(&self, _: &AllSeen) -> Vec<SiteVolume> {
        self.due.clone()
    }

    fn volumes_refused(&self, due: &[SiteVolume], disks_first: bool) -> HostFailures {
        let refused = self.refused.filter(|_| !due.is_empty() && !disks_first);
        refused.map(|why| ("n1".to_string(), why.to_string())).into_iter().collect()
    }

    fn make_volumes(&mut self, due: &[SiteVolume]) -> HostFailures {
        self.calls.extend(due.iter().map(|volume| format!("volume {}", volume.spec.name)));
        match self.unmakable {
            Some(why) => due.iter().map(|_| ("n1".to_string(), why.to_string())).collect(),
            None => {
                self.due.clear();
                Vec::new()
            }
        }
    }
}

const UP: &str = "packages = [\"gcc\"]\nclock = \"n1\"\n[sysctl]\n\"vm.swappiness\" = \"10\"\n";

fn areas(site: &ClusterSite) -> Vec<Area> {
    Area::ALL.into_iter().filter(|area| area.is_wanted(site)).collect()
}

fn cluster(up: &str) -> (ClusterSite, Vec<Area>) {
    let site = site(&["n1", "n2", "n3"], up);
    let areas = areas(&site);
    (site, areas)
}

/// A volume of three hosts, and the site with it.
fn with_volume() -> (ClusterSite, Vec<Area>, SiteVolume) {
    let (mut site, _) = cluster(UP);
    let spec = Spec {
        name: "data".into(),
        kind: VolumeKind::Gluster,
        places: site.hosts.iter().map(|host| StorageFolder { host: host.clone(), path: "/brick".into() }).collect(),
        copies: 3,
        arbiter: false,
        stripe: None,
        mount: "/data".into(),
        clients: site.hosts.clone(),
        master: None,
        options: Default::default(),
        export: Default::default(),
    };
    let volume = SiteVolume { spec, allowed: Vec::new(), exists: false };
    site.volumes.push(volume.clone());
    let mut areas = areas(&site);
    areas.push(Area::Volumes);
    areas.sort();
    (site, areas, volume)
}

fn failed<'o>(outcome: &'o SetupOutcome, host: &str) -> Vec<&'o str> {
    outcome.failed.iter().filter(|(h, _)| h == host).map(|(_, why)| why.as_str()).collect()
}

#[test]
fn bare_hosts_are_set_up_in_a_round_and_the_next_look_finds_nothing() {
    let (site, areas) = cluster(UP);
    let mut hosts = FakeHosts::of(3);
    let outcome = set_up(&site, &areas, &mut hosts).unwrap();
    assert_eq!(outcome.failed, []);
    let all = ["confirm", "begin", "names n[1-3]", "packages n[1-3]", "clock n[1-3]", "sysctl n[1-3]"];
    assert_eq!(hosts.acts(), all);
    assert_eq!(hosts.count("look"), 2);
    assert!(hosts.hosts.values().all(|seen| seen.sysctls["vm.swappiness"] == "10"));
    let again = set_up(&site, &areas, &mut hosts).unwrap();
    assert_eq!((again.steps, hosts.count("confirm")), (0, 1), "nothing is left, and nothing is requested");
}

#[test]
fn a_host_that_fails_takes_no_further_part_and_the_others_go_on() {
    let (site, areas) = cluster(UP);
    let mut hosts = FakeHosts::of(3);
    hosts.faults.insert(("n2", "packages"), vec![Fault::Failed("packages: disk full".into())]);
    let outcome = set_up(&site, &areas, &mut hosts).unwrap();
    let left = "not started there: clock";
    assert_eq!(failed(&outcome, "n2"), ["packages: disk full", left]);
    assert_eq!(outcome.failed.len(), 2, "{:?}", outcome.failed);
    assert!(hosts.calls.contains(&"clock n[1,3]".into()), "{:?}", hosts.calls);
    assert!(hosts.calls.contains(&"sysctl n[1-3]".into()), "settings of the kernel need no package: {:?}", hosts.calls);
    assert_eq!(hosts.calls.last().unwrap(), "look n[1,3]");
}

#[test]
fn a_host_that_others_change_meanwhile_is_looked_at_again_before_volumes_are_made() {
    let (site, areas, volume) = with_volume();
    let mut hosts = FakeHosts { due: vec![volume], ..FakeHosts::of(3) };
    hosts.faults.insert(("n3", "names"), vec![Fault::Outdated("names: /etc/hosts was changed".into())]);
    let outcome = set_up(&site, &areas, &mut hosts).unwrap();
    assert_eq!(outcome.failed, []);
    let place = |call: &str| hosts.calls.iter().position(|one| one == call).unwrap_or_else(|| panic!("{call}"));
    assert!(place("names n[1-3]") < place("names n3") && place("names n3") < place("volume data"));
    assert_eq!(hosts.count("volume"), 1);
}

#[test]
fn without_consent_nothing_is_recorded_or_changed() {
    let (site, areas) = cluster(UP);
    let mut hosts = FakeHosts { disagrees: true, ..FakeHosts::of(3) };
    set_up(&site, &areas, &mut hosts).unwrap_err();
    assert_eq!(hosts.acts(), ["confirm"]);
}

#[test]
fn a_plan_for_the_screen_changes_nothing_and_names_what_would_be_refused() {
    let (site, areas, volume) = with_volume();
    let mut hosts = FakeHosts { due: vec![volume], refused: Some("volumes: n1 is full"), ..FakeHosts::of(2) };
    hosts.cut_off = vec!["n2"];
    let plan = set_up_plan(&site, &areas, &mut hosts).unwrap();
    assert_eq!(hosts.calls, ["look n[1-3]"]);
    let reasons: Vec<&str> = plan.failed.iter().map(|(_, why)| why.as_str()).collect();
    for why in ["no route to host", "volumes: n1 is full", "packages: no mirror"] {
        assert!(reasons.contains(&why), "{reasons:?}");
    }
    assert_eq!(plan.phases[0].steps.len(), 2, "hosts that answer have their steps");
    assert!(plan.summary().contains("volume data (gluster) at /data\n"), "{}", plan.summary());
}

#[test]
fn a_volume_that_would_be_refused_stops_the_set_up_before_its_first_change() {
    let (site, areas, volume) = with_volume();
    let mut hosts = FakeHosts { due: vec![volume], refused: Some("volumes: n1 is full"), ..FakeHosts::of(3) };
    let failure = set_up(&site, &areas, &mut hosts).unwrap_err();
    assert!(failure.message.contains("nothing was changed") && failure.message.contains("n1 is full"));
    assert_eq!(hosts.acts(), [""; 0]);
}

#[test]
fn packages_that_no_host_can_get_stop_the_set_up_and_those_of_some_do_not() {
    let (site, areas) = cluster(UP);
    let mut hosts = FakeHosts { cut_off: vec!["n1", "n2", "n3"], ..FakeHosts::of(3) };
    let failure = set_up(&site, &areas, &mut hosts).unwrap_err();
    assert!(failure.message.contains("n[1-3] (3): packages: no mirror"), "{}", failure.message);
    assert_eq!(hosts.acts(), [""; 0]);
    let mut hosts = FakeHosts { cut_off: vec!["n1"], ..FakeHosts::of(3) };
    set_up(&site, &areas, &mut hosts).unwrap();
    assert!(hosts.calls.contains(&"packages n[1-3]".into()));
}

#[test]
fn changes_that_do_not_last_end_the_set_up_with_their_names() {
    let (site, _) = cluster(UP);
    let mut hosts = FakeHosts { forgets: true, ..FakeHosts::of(3) };
    let failure = set_up(&site, &[Area::Packages], &mut hosts).unwrap_err();
    assert!(failure.message.contains("n[1-3] still differ") && failure.message.contains("package gcc"));
    assert_eq!(hosts.count("packages"), ROUNDS);
}

#[test]
fn an_mtu_that_failed_is_not_tried_again_and_is_reported() {
    let (mut site, _) = cluster("[mtu]\nlan = 9000\n");
    let mut hosts = FakeHosts::of(3);
    for (name, seen) in &mut hosts.hosts {
        let address = seen.addresses[0].clone();
        let of_host = [("lan".to_string(), address.parse().unwrap())];
        site.addresses.insert(name.clone(), of_host.into());
        seen.carriers.insert(address, "eth0".into());
        let (interface, setting) = ("eth0".to_string(), "mtu".to_string());
        seen.apply(&HostChange::Link { interface, setting, from: String::new(), to: "1500".into() });
    }
    let outcome = set_up(&site, &[Area::Mtu], &mut hosts).unwrap();
    assert_eq!(hosts.count("mtu"), 1);
    assert_eq!(failed(&outcome, "n2"), ["mtu: no large packets"]);
}

#[test]
fn guarded_changes_of_an_interrupted_call_are_ended_first() {
    let (site, areas) = cluster(UP);
    let mut hosts = FakeHosts { stuck: vec!["n2"], ..FakeHosts::of(3) };
    ["n1", "n2"].iter().for_each(|host| hosts.hosts.get_mut(*host).unwrap().guarded = true);
    let outcome = set_up(&site, &areas, &mut hosts).unwrap();
    assert_eq!(hosts.calls[..4], ["look n[1-3]", "confirm", "guards n[1-2]", "look n[1,3]"]);
    assert!(hosts.calls.contains(&"names n[1,3]".into()), "{:?}", hosts.calls);
    assert_eq!(failed(&outcome, "n2"), ["ssh: a new connection fails"]);
}

#[test]
fn a_volume_that_cannot_be_made_is_not_tried_again_and_is_reported() {
    let (site, areas, volume) = with_volume();
    let mut hosts = FakeHosts { due: vec![volume], unmakable: Some("volumes: a brick is on /"), ..FakeHosts::of(3) };
    let outcome = set_up(&site, &areas, &mut hosts).unwrap();
    assert_eq!(hosts.count("volume"), 1);
    assert_eq!(failed(&outcome, "n1"), ["volumes: a brick is on /"]);
}

#[test]
fn a_setting_that_the_system_refuses_is_tried_once_and_reported() {
    let (site, _) = cluster(UP);
    let mut hosts = FakeHosts::of(3);
    let refused = [("sysctl vm.swappiness".to_string(), "sysctl: it is 60 after it was set to 10".to_string())];
    hosts.faults.insert(("n1", "sysctl"), vec![Fault::Untaken(refused.into())]);
    let outcome = set_up(&site, &[Area::Sysctl], &mut hosts).unwrap();
    assert_eq!(failed(&outcome, "n1"), ["sysctl: it is 60 after it was set to 10"]);
}

#[test]
fn homes_are_named_as_not_begun_on_a_host_that_failed_before() {
    let (site, areas, _) = with_volume();
    let mut hosts = FakeHosts::of(3);
    hosts.faults.insert(("n3", "names"), vec![Fault::Failed("names: disk full".into())]);
    let areas: Vec<Area> = areas.into_iter().chain([Area::Homes]).collect();
    let outcome = set_up(&site, &areas, &mut hosts).unwrap();
    let left = failed(&outcome, "n3").join("; ");
    assert!(left.contains("names: disk full") && left.contains("homes"), "{left}");
}

#[test]
fn a_file_with_a_fault_or_without_hosts_is_refused_before_any_look() {
    let mut hosts = FakeHosts::of(3);
    let faulty = site(&["n1"], "clock = \"n9\"\n");
    assert!(set_up(&faulty, &[Area::Clock], &mut hosts).unwrap_err().message.contains("n9"));
    assert!(set_up(&site(&[], ""), &[Area::Names], &mut hosts).unwrap_err().message.contains("no hosts"));
    assert_eq!(hosts.calls, [""; 0]);
}
