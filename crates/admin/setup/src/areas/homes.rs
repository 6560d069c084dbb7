//! Plans homes on a volume: its folder `home` becomes /home of all hosts that mount it, by a bind mount. The files in
//! /home of one host are first copied there and compared. They are not removed: they lie beneath the mount, and
//! reappear when the mount is removed.

use super::{AreaResult, volumes};
use crate::site::{AllSeen, ClusterSite};
use crate::volumes::Homes;
use homing_model::NodeSet;
use homing_steps::{FactQuery, HomeCopyState, HomeFolder, Homed, HostRequirement, Over, block_begin, block_of};
use homing_volume::{Spec, VolumeKind};
use std::collections::BTreeSet;

const HOME: &str = "/home";
const FSTAB: &str = "/etc/fstab";
const BLOCK: &str = "homes";

/// Returns the mount point of homes, and the line of /etc/fstab that is there on hosts whose homes were moved. Their
/// former homes lie beneath the mount.
pub fn homes_mark() -> (&'static str, String) {
    (HOME, block_begin(BLOCK))
}

/// Returns the folder of the volume.
fn copy(spec: &Spec) -> String {
    format!("{}/home", spec.mount)
}

fn of(site: &ClusterSite) -> Option<(&Homes, &Spec)> {
    let homes = site.up.homes.as_ref()?;
    Some((homes, &site.volumes.iter().find(|volume| volume.spec.name == homes.volume)?.spec))
}

pub(super) fn request_facts(site: &ClusterSite, question: &mut FactQuery) {
    let Some((_, spec)) = of(site) else { return };
    question.files.insert(FSTAB.into());
    question.mounts.extend([HOME.into(), spec.mount.clone()]);
    question.homes = Some((HOME.into(), copy(spec)));
}

pub(super) fn wanted(site: &ClusterSite, host: &str, seen: &AllSeen) -> AreaResult {
    let (Some((homes, spec)), Some(Ok(there))) = (of(site), seen.get(host)) else { return Ok(Vec::new()) };
    if !spec.clients.iter().any(|client| client == host) || !volumes::is_mounted(spec, host, there) {
        return Ok(Vec::new());
    }
    let homed = &there.homes;
    if homed.shared {
        return Ok(mount(spec, false));
    }
    if there.mounts.get(HOME).is_some_and(|(state, _)| state.mounted) {
        return Err(vec![format!("{HOME} is a mount there already, and homing does not mount over it")]);
    }
    if !homed.used.is_empty() {
        let used = homed.used.iter().cloned().collect::<Vec<_>>().join(", ");
        return Err(vec![format!(
            "{HOME} is in use there ({used}): homing moves no home until these users have logged out"
        )]);
    }
    match &homed.copied {
        Some(HomeCopyState::Used(from)) if is_undone(from, seen) => {
            let copy = copy(spec);
            let why = format!(
                "{HOME} there has homes, and so has {copy}, which was {HOME} of all hosts: move one of the two elsewhere"
            );
            if from == host { Err(vec![why]) } else { Ok(Vec::new()) }
        }
        Some(HomeCopyState::Used(_)) => Ok(mount(spec, false)),
        // If a user is logged in on one host, the others would change, and that host would keep its old homes.
        _ if !idle(spec, seen) => Ok(Vec::new()),
        // The copy is updated once more, and no other host may write into it before that.
        Some(HomeCopyState::Whole(from)) => Ok(if from == host { mount(spec, true) } else { Vec::new() }),
        Some(HomeCopyState::Partly(_)) | None => gathered(homes, spec, host, seen),
    }
}

/// Whether the host whose homes were copied uses its own again: its mount was removed, and not only lost.
fn is_undone(from: &str, seen: &AllSeen) -> bool {
    let Some(Ok(there)) = seen.get(from) else { return false };
    let has_line = there.text(FSTAB).is_some_and(|text| block_of(text, BLOCK).is_some());
    !there.homes.shared && !has_line && there.homes.homes.iter().any(|home| home.holds)
}

/// Plans the copy, which is made on the host that has the homes.
fn gathered(homes: &Homes, spec: &Spec, host: &str, seen: &AllSeen) -> AreaResult {
    let from = match source(homes, spec, seen) {
        Ok(from) => from,
        Err((hosts, why)) if hosts.contains(&host.to_string()) => return Err(vec![why]),
        Err(_) => return Ok(Vec::new()),
    };
    if from != host {
        return Ok(Vec::new());
    }
    if spec.kind == VolumeKind::Nfs && spec.places.iter().all(|place| place.host != host) {
        let server = spec.places.first().map_or("", |place| &place.host);
        return Err(vec![format!(
            "root of {host} has no rights on the volume of {server} (root_squash) and cannot copy homes there: copy them to \
             {HOME} of {server}, and set [up.homes] from = {server:?}"
        )]);
    }
    Ok(vec![HostRequirement::Copy { from: HOME.into(), to: copy(spec), host: host.into() }])
}

fn clients<'s>(spec: &'s Spec, seen: &'s AllSeen) -> impl Iterator<Item = (&'s String, &'s Homed)> {
    spec.clients.iter().filter_map(|host| Some((host, &seen.get(host)?.as_ref().ok()?.homes)))
}

fn idle(spec: &Spec, seen: &AllSeen) -> bool {
    clients(spec, seen).all(|(_, homed)| homed.shared || homed.used.is_empty())
}

/// Returns the hosts with homes that hold files.
fn holders<'s>(spec: &'s Spec, seen: &'s AllSeen) -> Vec<(&'s String, Vec<&'s HomeFolder>)> {
    let held = |homed: &'s Homed| homed.homes.iter().filter(|home| home.holds).collect::<Vec<_>>();
    let all = clients(spec, seen).filter(|(_, homed)| !homed.shared).map(|(host, homed)| (host, held(homed)));
    all.filter(|(_, homes)| !homes.is_empty()).collect()
}

fn names(homes: &[&HomeFolder]) -> String {
    homes.iter().map(|home| home.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns the host whose homes are used; if that is unclear, the hosts that have some.
fn source(homes: &Homes, spec: &Spec, seen: &AllSeen) -> Result<String, (Vec<String>, String)> {
    if let Some(from) = &homes.from {
        return Ok(from.clone());
    }
    let holders = holders(spec, seen);
    match holders.as_slice() {
        [] => {
            let servers = spec.places.iter().map(|place| &place.host);
            let mounts = |host: &&String| spec.clients.contains(host);
            Ok(servers.chain(&spec.clients).find(mounts).cloned().unwrap_or_default())
        }
        [(host, _)] => Ok((*host).clone()),
        several => {
            let each: Vec<String> = several.iter().map(|(host, homes)| format!("{host} ({})", names(homes))).collect();
            let why = format!(
                "several hosts have homes with files, {}: choose one with [up.homes] from = HOST; the files of the others \
                 stay where they are, below the mount",
                each.join(", ")
            );
            Err((several.iter().map(|(host, _)| (*host).clone()).collect(), why))
        }
    }
}

fn mount(spec: &Spec, is_source: bool) -> Vec<HostRequirement> {
    let copy = copy(spec);
    let lines = format!("{copy} {HOME} none bind,nofail,x-systemd.requires-mounts-for={} 0 0\n", spec.mount);
    vec![
        HostRequirement::Block { path: FSTAB.into(), name: BLOCK.into(), lines, retire: Vec::new() },
        HostRequirement::Mount { point: HOME.into(), over: Some(Over { copy, is_source }), disk: false },
    ]
}

pub(super) fn notes(site: &ClusterSite, seen: &AllSeen) -> Vec<String> {
    let Some((homes, spec)) = of(site) else { return Vec::new() };
    let without: BTreeSet<&String> = clients(spec, seen).filter(|(_, homed)| !homed.shared).map(|(h, _)| h).collect();
    if without.is_empty() {
        return Vec::new();
    }
    let mounted = |host: &&&String| seen[**host].as_ref().is_ok_and(|there| volumes::is_mounted(spec, host, there));
    if !without.iter().all(|host| mounted(&host)) {
        return vec![format!("homes: homing plans them when volume {} is mounted", spec.name)];
    }
    let mut notes = Vec::new();
    if !idle(spec, seen) {
        let waiting: NodeSet = without.iter().map(|host| (*host).clone()).collect();
        notes.push(format!("homes: homing moves nothing on {waiting} while a user is logged in on one of them"));
    }
    if let Ok(from) = source(homes, spec, seen) {
        let stay = holders(spec, seen).into_iter().filter(|(host, _)| **host != from);
        notes.extend(stay.map(|(host, of)| {
            format!("homes: on {host} the files of {} stay where they are, below the mount on {HOME}", names(&of))
        }));
    }
    notes
}
