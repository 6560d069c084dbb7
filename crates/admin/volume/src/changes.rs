//! Carries out each change of a volume: selects the plan for its kind, and updates its record. Each change returns a
//! message for the user.

use crate::drive::{Drive, PlanResult};
use crate::moosefs::goals::{self, Goals};
use crate::refuse::of_silent;
use crate::{
    Danger, ExportOptions, Observed, OptionChanges, Refusal, Spec, StorageFolder, VolumeChange, VolumeKind,
    VolumeRecord, adopt, folder, gluster, lustre, moosefs, mounts, nfs,
};
use homing_model::{Failure, NodeSet};
use homing_steps::Executor;
use std::collections::BTreeMap;
use std::path::Path;

/// A message for the user after a change.
type ChangeResult = Result<Option<String>, Failure>;

/// Returns the command for a volume that exists with other settings than the wanted ones.
fn other_settings(old: &Spec, wanted: &Spec) -> String {
    let name = &wanted.name;
    let same = Spec { options: old.options.clone(), export: old.export.clone(), ..wanted.clone() } == *old;
    match (same, old.export == wanted.export) {
        (true, true) => format!("homing volume set-option {name} KEY=VALUE changes its options"),
        (true, false) => format!("homing volume set-export {name} OPTION changes its export"),
        (false, _) => format!("homing volume status {name}"),
    }
}

fn one_host() -> PlanResult {
    Err(vec![Refusal::never("NFS serves a volume from one host, in one copy")])
}

impl Drive {
    /// Returns the plan that makes a volume of its kind.
    fn creation(&self, spec: &Spec, seen: &Observed, allowed: &[Danger]) -> PlanResult {
        match spec.kind {
            VolumeKind::Gluster => {
                self.check_options(spec, seen, spec.options.keys())?;
                gluster::create(spec, seen, allowed)
            }
            VolumeKind::Moosefs => moosefs::create(spec, seen, allowed),
            VolumeKind::Nfs => nfs::create(spec, seen, allowed),
        }
    }

    /// Returns the options that GlusterFS knows on the hosts of a volume, with their defaults; empty if none answers.
    pub fn known_options(&self, spec: &Spec, seen: &Observed) -> BTreeMap<String, String> {
        let Some((host, _)) = gluster::speaker(spec, seen) else { return BTreeMap::new() };
        let answer = self.executor.programs(&[(host, gluster::options::known_question())]).remove(0);
        answer.map(|text| gluster::options::read_known(&text)).unwrap_or_default()
    }

    /// Refuses options that GlusterFS does not know. If no daemon runs yet, the step that sets them refuses them.
    fn check_options<'k>(
        &self,
        spec: &Spec,
        seen: &Observed,
        keys: impl ExactSizeIterator<Item = &'k String>,
    ) -> Result<(), Vec<Refusal>> {
        if keys.len() == 0 {
            return Ok(());
        }
        let refusals = gluster::options::refusals(keys, &self.known_options(spec, seen));
        if refusals.is_empty() { Ok(()) } else { Err(refusals) }
    }

    /// Changes and saves the record, except in a dry run.
    fn kept(&self, record: &mut VolumeRecord, change: impl FnOnce(&mut VolumeRecord)) -> Result<(), Failure> {
        if self.manner.dry_run {
            return Ok(());
        }
        change(record);
        record.save().map_err(Failure::system)
    }

    /// Makes a volume and mounts it.
    pub fn create(&self, spec: &Spec) -> Result<(), Failure> {
        let folder = folder();
        let old = VolumeRecord::load(&folder, &spec.name);
        let mut record = match old.map_err(|e| Failure::system(format!("reading the record of the volume: {e}")))? {
            Some(mut old) if old.pending.as_ref().is_some_and(|p| p.what == VolumeChange::Create) => {
                old.spec = spec.clone();
                old
            }
            Some(old) if old.spec != *spec => {
                let failure = Failure::usage(format!("a volume {} exists already, with other settings", spec.name));
                return Err(failure.hint(other_settings(&old.spec, spec)));
            }
            Some(old) => old,
            None => VolumeRecord::new(&folder, spec.clone()),
        };
        self.converge(&mut record, &VolumeChange::Create, true, &|spec, seen, allowed| {
            self.creation(spec, seen, allowed)
        })
    }

    /// Returns the dangers of making a volume that the user has not accepted, each with its reason. Packages and
    /// daemons that a set-up installs before the volume are not among them.
    pub fn dangers_of_creation(&self, spec: &Spec) -> Vec<(String, Danger)> {
        let seen = self.observe(spec, &spec.hosts());
        let refusals = self.creation(spec, &seen, self.allowed()).err().unwrap_or_default();
        let dangerous = refusals.into_iter().filter_map(|refusal| Some((refusal.why, refusal.danger?)));
        dangerous.filter(|(_, danger)| !self.allowed().contains(danger)).collect()
    }

    /// Mounts on more hosts; if none are named, on all hosts of the volume.
    pub fn mount(&self, record: &mut VolumeRecord, hosts: Option<Vec<String>>) -> ChangeResult {
        let named = hosts.unwrap_or_default();
        for host in &named {
            if !record.spec.clients.contains(host) {
                record.spec.clients.push(host.clone());
            }
        }
        self.converge(record, &VolumeChange::Mount, true, &|spec, seen, allowed| {
            let silent = of_silent(seen, |host| named.iter().any(|name| name == host));
            if silent.is_empty() { mounts::mount(spec, seen, allowed) } else { Err(silent) }
        })?;
        let Spec { name, mount, clients, .. } = &record.spec;
        let set: NodeSet = if named.is_empty() { clients } else { &named }.iter().cloned().collect();
        Ok(Some(format!("volume {name} is mounted at {mount} on {set}")))
    }

    /// Unmounts; if no hosts are named, on all hosts of the volume.
    pub fn unmount(&self, record: &mut VolumeRecord, hosts: Option<Vec<String>>) -> ChangeResult {
        let gone = hosts.unwrap_or_else(|| record.spec.clients.clone());
        let what = VolumeChange::Unmount { hosts: gone.clone() };
        self.converge(record, &what, true, &|spec, seen, _| Ok(mounts::unmount(spec, seen, &gone)))?;
        self.kept(record, |record| record.spec.clients.retain(|c| !gone.contains(c)))?;
        let set: NodeSet = gone.into_iter().collect();
        Ok(Some(format!("volume {} is not mounted on {set}", record.spec.name)))
    }

    /// Adds space.
    pub fn add_host(&self, record: &mut VolumeRecord, places: Vec<StorageFolder>) -> ChangeResult {
        let set: NodeSet = places.iter().map(|p| p.host.clone()).collect();
        for place in places {
            if !record.spec.clients.contains(&place.host) {
                record.spec.clients.push(place.host.clone());
            }
            if !record.spec.places.contains(&place) {
                record.spec.places.push(place);
            }
        }
        let what = VolumeChange::AddHost { hosts: set.iter().map(String::from).collect() };
        self.converge(record, &what, true, &|spec, seen, allowed| match spec.kind {
            VolumeKind::Gluster => gluster::add_host(spec, seen, allowed),
            VolumeKind::Moosefs => moosefs::add_host(spec, seen, allowed),
            VolumeKind::Nfs => one_host(),
        })?;
        Ok(Some(format!("volume {} has space on {set} too", record.spec.name)))
    }

    /// Moves all bytes off a host.
    pub fn drain_host(&self, record: &mut VolumeRecord, host: &str) -> ChangeResult {
        let name = record.spec.name.clone();
        if !record.spec.places.iter().any(|p| p.host == host) {
            return Err(Failure::usage(format!("{host} stores no files of volume {name}"))
                .hint(format!("homing volume status {name}")));
        }
        let what = VolumeChange::DrainHost { host: host.into() };
        self.converge(record, &what, false, &|spec, seen, allowed| match spec.kind {
            VolumeKind::Gluster => gluster::drain_host(spec, seen, host, allowed),
            VolumeKind::Moosefs => moosefs::drain_host(spec, seen, host),
            VolumeKind::Nfs => one_host(),
        })?;
        self.kept(record, |record| record.spec.places.retain(|p| p.host != host))?;
        self.keep_copies(record)?;
        Ok(Some(format!("{host} holds no bytes of volume {name} any more")))
    }

    /// Records the present number of copies: a host may have left with one of them.
    fn keep_copies(&self, record: &mut VolumeRecord) -> Result<(), Failure> {
        if self.manner.dry_run || record.spec.kind != VolumeKind::Gluster {
            return Ok(());
        }
        let seen = self.observe(&record.spec, &record.spec.hosts());
        let copies = gluster::volume(&record.spec, &seen).map(|volume| volume.copies() as u32);
        match copies.filter(|copies| *copies != record.spec.copies) {
            Some(copies) => self.kept(record, |record| record.spec.copies = copies),
            None => Ok(()),
        }
    }

    /// Changes the number of copies.
    pub fn set_copies(&self, record: &mut VolumeRecord, path: &str, copies: u32) -> ChangeResult {
        let path = path.trim_end_matches('/');
        let Spec { name, kind, mount, .. } = &record.spec;
        if *kind == VolumeKind::Gluster && path != *mount {
            return Err(Failure::usage(format!(
                "GlusterFS has one number of copies for the whole volume: name {mount}, not {path}"
            ))
            .hint("a volume of kind moosefs has one per file"));
        }
        if !Path::new(path).starts_with(mount) {
            return Err(Failure::usage(format!("{path} is not on volume {name}, which is at {mount}")));
        }
        let (once, whole) = (*kind == VolumeKind::Moosefs, path == *mount);
        let what = VolumeChange::SetCopies { path: path.into(), copies };
        self.converge(record, &what, once, &|spec, seen, allowed| match spec.kind {
            VolumeKind::Gluster => gluster::set_copies(spec, seen, copies as usize, allowed),
            VolumeKind::Moosefs => {
                let goals = self.goals_below(spec, seen, path)?;
                moosefs::set_copies(spec, seen, (path, copies), &goals, allowed)
            }
            VolumeKind::Nfs => one_host(),
        })?;
        if whole {
            self.kept(record, |record| record.spec.copies = copies)?;
        }
        Ok(None)
    }

    /// Reads the present goals of the files below the path, on a host that has the volume mounted.
    fn goals_below(&self, spec: &Spec, seen: &Observed, path: &str) -> Result<Goals, Vec<Refusal>> {
        let client = goals::client(spec, seen).ok_or_else(moosefs::nowhere_mounted)?;
        let said = self.executor.programs(&[(client.clone(), goals::question(path))]).remove(0);
        let never =
            |why: String| vec![Refusal::never(format!("reading the goals of files below {path} on {client}: {why}"))];
        goals::read(&said.map_err(never)?).ok_or_else(|| never("mfsgetgoal printed no counts".into()))
    }

    /// Changes how new files are cut.
    pub fn set_stripe(&self, record: &mut VolumeRecord, path: &str, size: Option<u64>) -> ChangeResult {
        let Spec { name, kind, mount, .. } = &record.spec;
        let size = size.ok_or_else(|| Failure::usage("--size, the size of the pieces, is missing"))?;
        if *kind != VolumeKind::Gluster {
            let what = "size of pieces that can be set (MooseFS: always 64 MiB)";
            return Err(Failure::usage(format!("volume {name} is {kind}, which has no {what}")));
        }
        if path.trim_end_matches('/') != mount {
            return Err(Failure::usage(format!(
                "GlusterFS cuts the files of a whole volume into pieces of one size: name {mount}"
            )));
        }
        let what = VolumeChange::SetStripe { path: path.into(), size: Some(size) };
        self.converge(record, &what, true, &|spec, seen, allowed| gluster::set_stripe(spec, seen, size, allowed))?;
        self.kept(record, |record| record.spec.stripe = Some(size))?;
        Ok(None)
    }

    /// Changes options of the file system; those without a value get their default.
    pub fn set_option(&self, record: &mut VolumeRecord, options: OptionChanges) -> ChangeResult {
        let Spec { name, kind, .. } = &record.spec;
        if *kind != VolumeKind::Gluster {
            let text = format!("volume {name} is {kind}, which has no options of GlusterFS");
            return Err(Failure::usage(text).hint(kind.options_instead()));
        }
        let what = VolumeChange::SetOption { options: options.clone() };
        self.converge(record, &what, true, &|spec, seen, _| {
            self.check_options(spec, seen, options.keys())?;
            gluster::options::set_options(spec, seen, &options)
        })?;
        self.kept(record, |record| {
            for (key, value) in options {
                match value {
                    Some(value) => drop(record.spec.options.insert(key, value)),
                    None => drop(record.spec.options.remove(&key)),
                }
            }
        })?;
        Ok(None)
    }

    /// Changes the way in which an NFS volume is exported.
    pub fn set_export(&self, record: &mut VolumeRecord, export: ExportOptions) -> ChangeResult {
        let Spec { name, kind, .. } = &record.spec;
        if *kind != VolumeKind::Nfs {
            return Err(Failure::usage(format!("volume {name} is {kind}: only NFS has an export")));
        }
        let what = VolumeChange::SetExport { export: export.clone() };
        self.converge(record, &what, true, &|spec, seen, _| nfs::set_export(spec, seen, &export))?;
        self.kept(record, |record| record.spec.export = export)?;
        Ok(None)
    }

    /// Sets the stripe of a directory of Lustre, on a host that has it mounted. homing makes no volumes of Lustre.
    pub fn set_lustre_stripe(
        &self,
        name: &str,
        client: &str,
        path: &str,
        count: Option<i32>,
        size: Option<u64>,
    ) -> ChangeResult {
        let plan = lustre::set_stripe(client, path, count, size);
        let mut record = VolumeRecord::unwritten(adopt::unknown(name, &[]));
        let what = VolumeChange::SetStripe { path: path.into(), size };
        self.converge(&mut record, &what, true, &|_, _, _| Ok(plan.clone()))?;
        Ok(None)
    }

    /// Brings copies up to date, also while another change is interrupted: that may need it.
    pub fn heal(&self, record: &mut VolumeRecord, full: bool) -> ChangeResult {
        let mut beside = VolumeRecord::unwritten(record.spec.clone());
        let interrupted = record.pending.as_ref().is_some_and(|pending| pending.what != VolumeChange::Heal);
        let record = if interrupted { &mut beside } else { record };
        self.converge(record, &VolumeChange::Heal, true, &|spec, seen, _| match spec.kind {
            VolumeKind::Gluster => gluster::heal(spec, seen, full),
            VolumeKind::Moosefs => moosefs::heal(spec, seen),
            VolumeKind::Nfs => one_host(),
        })?;
        Ok(None)
    }

    /// Redistributes files.
    pub fn rebalance(&self, record: &mut VolumeRecord) -> ChangeResult {
        self.converge(record, &VolumeChange::Rebalance, true, &|spec, seen, _| match spec.kind {
            VolumeKind::Gluster => gluster::rebalance(spec, seen),
            VolumeKind::Moosefs => moosefs::rebalance(spec, seen),
            VolumeKind::Nfs => one_host(),
        })?;
        Ok(None)
    }

    /// Deletes the volume.
    pub fn delete(&self, record: &mut VolumeRecord) -> ChangeResult {
        let made = record.made().clone();
        self.converge(record, &VolumeChange::Delete, true, &|spec, seen, allowed| match spec.kind {
            VolumeKind::Gluster => gluster::delete(spec, seen, allowed, &made),
            VolumeKind::Moosefs => moosefs::delete(spec, seen, allowed),
            VolumeKind::Nfs => nfs::delete(spec, seen, allowed),
        })?;
        if self.manner.dry_run {
            return Ok(None);
        }
        record.remove().map_err(Failure::system)?;
        Ok(Some(format!("volume {} is deleted", record.spec.name)))
    }

    /// Finishes an interrupted change, with the dangers that were accepted for it.
    pub fn resume(self, record: &mut VolumeRecord) -> ChangeResult {
        let Some(pending) = record.pending.clone() else {
            return Ok(Some(format!("volume {}: no change was interrupted", record.spec.name)));
        };
        let drive = self.allowing(pending.allowed);
        match pending.what {
            VolumeChange::Create => {
                let plan = |spec: &Spec, seen: &Observed, allowed: &[Danger]| drive.creation(spec, seen, allowed);
                drive.converge(record, &VolumeChange::Create, true, &plan).map(|()| None)
            }
            VolumeChange::DrainHost { host } => drive.drain_host(record, &host),
            VolumeChange::AddHost { hosts } => {
                let mine = record.spec.places.iter().filter(|p| hosts.contains(&p.host)).cloned().collect();
                drive.add_host(record, mine)
            }
            VolumeChange::SetCopies { path, copies } => drive.set_copies(record, &path, copies),
            VolumeChange::Delete => drive.delete(record),
            VolumeChange::Rebalance => drive.rebalance(record),
            VolumeChange::Heal => drive.heal(record, false),
            VolumeChange::Mount => drive.mount(record, None),
            VolumeChange::Unmount { hosts } => drive.unmount(record, Some(hosts)),
            VolumeChange::SetStripe { path, size } => drive.set_stripe(record, &path, size),
            VolumeChange::SetOption { options } => drive.set_option(record, options),
            VolumeChange::SetExport { export } => drive.set_export(record, export),
        }
    }
}
