//! Decides whether the hosts and daemons that a change needs are there. A change that is begun without them stops
//! halfway, and then blocks the repair.

use crate::change::VolumeChange;
use crate::gluster::{self, UNIT};
use crate::observe::{Observed, StrayPool};
use crate::refuse::{Refusal, of_silent};
use crate::spec::{Spec, VolumeKind};
use crate::step::on_hosts;
use homing_model::NodeSet;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the objections to beginning or continuing a change now, each with the command that removes its cause.
pub(crate) fn refusals(what: &VolumeChange, spec: &Spec, seen: &Observed) -> Vec<Refusal> {
    match spec.kind {
        VolumeKind::Gluster => of_gluster(what, spec, seen),
        VolumeKind::Moosefs => of_moosefs(what, spec, seen),
        // Its changes start the server.
        VolumeKind::Nfs => Vec::new(),
    }
}

fn of_gluster(what: &VolumeChange, spec: &Spec, seen: &Observed) -> Vec<Refusal> {
    let servers: BTreeSet<String> = spec.servers().into_iter().collect();
    let mut refusals = of_strays(what, &servers, seen);
    let stopped = |host: &String| seen.host(host).is_some_and(|facts| !facts.active.contains(UNIT));
    match what {
        // It starts the daemons.
        VolumeChange::Create | VolumeChange::Unmount { .. } => return refusals,
        // A client needs one server. A silent one may be up for the clients.
        VolumeChange::Mount => {
            if servers.iter().all(stopped) {
                refusals.extend(of_stopped(UNIT, servers));
            }
            return refusals;
        }
        _ => {}
    }
    // A host without a part in the volume so far has its daemon started by the change.
    let bricks: BTreeSet<String> =
        gluster::volume(spec, seen).iter().flat_map(|volume| &volume.bricks).map(|brick| brick.host.clone()).collect();
    let knows = |host: &String| seen.host(host).is_some_and(|facts| facts.glusterd_knows);
    let joins = |host: &String| matches!(what, VolumeChange::AddHost { hosts } if hosts.contains(host));
    let is_member = |host: &&String| bricks.contains(*host) || (knows(host) && !joins(host));
    let members: BTreeSet<String> = servers.union(&bricks).filter(is_member).cloned().collect();
    refusals.extend(of_stopped(UNIT, members.iter().filter(|host| stopped(host)).cloned()));
    match what {
        VolumeChange::DrainHost { host } => {
            refusals.extend(of_silent(seen, |name| members.contains(name) && name != host));
        }
        VolumeChange::SetCopies { .. } => refusals.extend(of_silent(seen, |name| members.contains(name))),
        // Copies are brought up to date on the hosts that are connected.
        VolumeChange::Heal => return refusals,
        _ => {}
    }
    refusals.extend(of_disconnected(spec, seen, &members));
    refusals
}

/// Refuses to use a host whose daemon has a pool that the others have left.
fn of_strays(what: &VolumeChange, servers: &BTreeSet<String>, seen: &Observed) -> Vec<Refusal> {
    let joins = matches!(what, VolumeChange::Create | VolumeChange::AddHost { .. });
    let strays = seen.strays().filter(|(host, _)| joins && servers.contains(*host));
    strays
        .map(|(host, pool)| Refusal::of_host(format!("{host}: {}", pool.text()), Some(StrayPool::remedy(host))))
        .collect()
}

fn of_stopped(unit: &str, hosts: impl IntoIterator<Item = String>) -> Option<Refusal> {
    let hosts: NodeSet = hosts.into_iter().collect();
    let command = || on_hosts(&hosts.to_string(), &format!("systemctl start {unit}"));
    (!hosts.is_empty()).then(|| Refusal::of_host(format!("{unit} does not run on {hosts}"), Some(command())))
}

/// Refuses while a daemon that runs is not connected with the one that would carry out the commands.
fn of_disconnected(spec: &Spec, seen: &Observed, members: &BTreeSet<String>) -> Option<Refusal> {
    let (speaker, cluster) = gluster::speaker_of(spec, seen).ok()?;
    let is_cut = |host: &&String| seen.runs(host, UNIT) && cluster.is_connected(host) == Some(false);
    let cut: NodeSet = members.iter().filter(is_cut).cloned().collect();
    let why = format!("glusterd of {speaker} is not connected with glusterd of {cut}");
    let look = on_hosts(&speaker, "gluster peer status");
    let remedy = Some(format!("{look}; repeat the command when it is connected"));
    (!cut.is_empty()).then(|| Refusal { passing: true, ..Refusal::of_host(why, remedy) })
}

fn of_moosefs(what: &VolumeChange, spec: &Spec, seen: &Observed) -> Vec<Refusal> {
    use VolumeChange::{DrainHost, Rebalance, SetCopies};
    // The other changes start or stop the units themselves.
    if !matches!(what, DrainHost { .. } | SetCopies { .. } | Rebalance) {
        return Vec::new();
    }
    let mut stopped: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for host in spec.hosts() {
        let Some(facts) = seen.host(&host) else { continue };
        for unit in crate::stopped_units(spec, &host, facts) {
            stopped.entry(unit).or_default().push(host.clone());
        }
    }
    stopped.into_iter().rev().filter_map(|(unit, hosts)| of_stopped(unit, hosts)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gluster::tests::{facts, four, running};
    use crate::observe::HostFacts;

    fn changes() -> Vec<VolumeChange> {
        vec![
            VolumeChange::AddHost { hosts: vec!["n5".into()] },
            VolumeChange::DrainHost { host: "n4".into() },
            VolumeChange::SetCopies { path: "/data".into(), copies: 1 },
            VolumeChange::SetStripe { path: "/data".into(), size: Some(1 << 20) },
            VolumeChange::Heal,
            VolumeChange::Rebalance,
            VolumeChange::Delete,
        ]
    }

    /// Facts of a host whose glusterd was stopped.
    fn stopped(spec: &Spec) -> Result<HostFacts, String> {
        Ok(facts(spec, "glusterd-knows\n"))
    }

    #[test]
    fn each_change_is_refused_before_its_first_step_while_a_daemon_is_down() {
        let spec = four();
        let well = running(&spec, "");
        let mut ill = running(&spec, "");
        ill.hosts.insert("n2".into(), stopped(&spec));
        for what in changes() {
            assert_eq!(refusals(&what, &spec, &well), [], "{what}");
            let refused = refusals(&what, &spec, &ill);
            assert_eq!(refused.len(), 1, "{what}: {refused:?}");
            assert!(refused[0].why == "glusterd does not run on n2" && refused[0].of_host, "{what}: {refused:?}");
            assert_eq!(refused[0].remedy.as_deref(), Some("homing exec -w n2 'systemctl start glusterd'"));
        }
        // One server is enough to mount, and none is needed to unmount.
        let unmount = VolumeChange::Unmount { hosts: vec!["n3".into()] };
        for what in [VolumeChange::Mount, VolumeChange::Create, unmount.clone()] {
            assert_eq!(refusals(&what, &spec, &ill), [], "{what}");
        }
        let mut none = running(&spec, "");
        none.hosts.values_mut().for_each(|host| *host = stopped(&spec));
        let command = "homing exec -w 'n[1-4]' 'systemctl start glusterd'";
        for what in [VolumeChange::Mount, VolumeChange::Delete, VolumeChange::Heal] {
            assert_eq!(refusals(&what, &spec, &none)[0].remedy.as_deref(), Some(command), "{what}");
        }
        assert_eq!(refusals(&unmount, &spec, &none), []);
    }

    #[test]
    fn a_new_host_and_a_dead_one_that_leaves_need_no_daemon() {
        let mut spec = four();
        spec.places.push(crate::StorageFolder { host: "n5".into(), path: "/brick".into() });
        let seen = running(&spec, "");
        let add = VolumeChange::AddHost { hosts: vec!["n5".into()] };
        assert_eq!(refusals(&add, &spec, &seen), []);
        // The change was interrupted when it had joined the pool: its glusterd knows the volume.
        let mut joined = running(&spec, "");
        joined.hosts.insert("n5".into(), stopped(&spec));
        assert_eq!(refusals(&add, &spec, &joined), []);
        assert_eq!(refusals(&VolumeChange::Rebalance, &spec, &joined).len(), 1);
        let mut dead = running(&four(), "");
        dead.hosts.insert("n4".into(), Err("no route".into()));
        let drain = |host: &str| refusals(&VolumeChange::DrainHost { host: host.into() }, &four(), &dead);
        assert_eq!(drain("n4"), []);
        assert_eq!(drain("n3")[0].why, "n4 does not answer: no route");
    }

    #[test]
    fn a_daemon_without_its_connection_is_named() {
        let spec = four();
        let mut seen = running(&spec, "");
        for cluster in seen.hosts.values_mut().flatten().filter_map(|facts| facts.gluster.as_mut()) {
            cluster.peers.iter_mut().filter(|peer| peer.names == ["n3"]).for_each(|peer| peer.connected = false);
        }
        let refused = refusals(&VolumeChange::Rebalance, &spec, &seen);
        assert_eq!(refused[0].why, "glusterd of n1 is not connected with glusterd of n3");
        assert!(refused[0].passing, "it may have been started a moment ago");
        assert_eq!(refusals(&VolumeChange::Heal, &spec, &seen), []);
    }

    #[test]
    fn a_moosefs_without_its_master_is_refused() {
        let kind = VolumeKind::Moosefs;
        let spec = Spec { kind, ..crate::spec::tests::spec(&["n1", "n2"], 2) };
        let served = |units: &[&str]| HostFacts {
            active: units.iter().map(|unit| unit.to_string()).collect(),
            ..HostFacts::default()
        };
        let seen = |first: &[&str]| Observed {
            hosts: [("n1", served(first)), ("n2", served(&["moosefs-chunkserver"]))]
                .map(|(host, facts)| (host.to_string(), Ok(facts)))
                .into(),
        };
        let copies = VolumeChange::SetCopies { path: "/data".into(), copies: 1 };
        assert_eq!(refusals(&copies, &spec, &seen(&["moosefs-master", "moosefs-chunkserver"])), []);
        let refused = refusals(&copies, &spec, &seen(&["moosefs-chunkserver"]));
        assert_eq!(refused[0].remedy.as_deref(), Some("homing exec -w n1 'systemctl start moosefs-master'"));
        assert_eq!(refusals(&VolumeChange::Heal, &spec, &seen(&[])), [], "it starts them");
    }
}
