//! The record of a volume on the admin's machine: its specification, and the change under way. There is one JSON file
//! for each volume, which is replaced as a whole.

use crate::change::VolumeChange;
use crate::refuse::Danger;
use crate::spec::Spec;
use crate::step::{CommandPhase, MadeBeside, VolumePlan};
use homing_model::Failure;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// A change that is not complete.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pending {
    /// The change.
    #[serde(deserialize_with = "crate::change::kept")]
    pub what: VolumeChange,
    /// The plan that is being carried out.
    pub plan: VolumePlan,
    /// Phases that have ended.
    pub done: usize,
    /// Phases that have begun.
    pub begun: usize,
    /// Phases of earlier plans of the same change, for its undo.
    #[serde(default)]
    pub before: Vec<CommandPhase>,
    /// Dangers that the user accepted: finishing the change needs no new consent.
    #[serde(default)]
    pub allowed: Vec<Danger>,
}

/// The saved facts of a volume.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VolumeRecord {
    /// The wanted volume.
    pub spec: Spec,
    /// The change under way.
    pub pending: Option<Pending>,
    /// The hosts that were named to be queried, if the volume was found by them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    found_on: Vec<String>,
    /// Things beside the volume that its changes made.
    #[serde(default, skip_serializing_if = "MadeBeside::is_empty")]
    made: MadeBeside,
    #[serde(skip)]
    file: Option<PathBuf>,
}

/// Returns the folder for records of this cluster's volumes: `$HOMING_VOLUMES`, else homing's folder in
/// `$XDG_STATE_HOME` or `~/.local/state`. That has a subfolder for each ssh configuration that is named.
pub fn folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("HOMING_VOLUMES") {
        return folder.into();
    }
    homing_os::folder::cluster_state().join("volumes")
}

/// Returns the hosts that hold bytes of homing's volumes, each with one of its volumes.
pub fn holders() -> BTreeMap<String, String> {
    let folder = folder();
    let specs = VolumeRecord::names(&folder)
        .into_iter()
        .filter_map(|name| Some(VolumeRecord::load(&folder, &name).ok()??.spec));
    specs.flat_map(|spec| spec.places.into_iter().map(move |place| (place.host, spec.name.clone()))).collect()
}

impl VolumeRecord {
    /// Makes a record that is written to `folder` at the first change.
    pub fn new(folder: &Path, spec: Spec) -> VolumeRecord {
        let file = folder.join(format!("{}.json", spec.name));
        VolumeRecord { file: Some(file), ..VolumeRecord::unwritten(spec) }
    }

    /// Makes a record, as [`VolumeRecord::new`], of a volume that was found by querying these hosts.
    pub fn found(folder: &Path, spec: Spec, hosts: &[String]) -> VolumeRecord {
        VolumeRecord { found_on: hosts.to_vec(), ..VolumeRecord::new(folder, spec) }
    }

    /// Refuses a command that names hosts to be queried, since a record exists: it could mean that only these hosts are
    /// changed. The repetition of a command that was interrupted is no such command.
    pub fn refuse_hosts(&self, hosts: &[String]) -> Result<(), Failure> {
        if self.repeats(hosts) {
            return Ok(());
        }
        let name = &self.spec.name;
        let text = format!("volume {name}: -w is for volumes without a record, and this machine has a record of it");
        Err(Failure::usage(text)
            .hint(format!("homing volume status {name}, without -w; mount and unmount name hosts with --on")))
    }

    /// Whether a command that names these hosts to be queried is the repetition of one that was interrupted. Then it
    /// goes on by the record. Another one that names hosts may mean that only these are changed.
    fn repeats(&self, hosts: &[String]) -> bool {
        let sorted = |hosts: &[String]| hosts.iter().cloned().collect::<BTreeSet<_>>();
        self.pending.is_some() && !hosts.is_empty() && sorted(&self.found_on) == sorted(hosts)
    }

    /// Makes a record that is never written, for something that is no volume of homing.
    pub fn unwritten(spec: Spec) -> VolumeRecord {
        VolumeRecord { spec, pending: None, found_on: Vec::new(), made: MadeBeside::default(), file: None }
    }

    /// Loads the record of a volume; `None` if there is none.
    pub fn load(folder: &Path, name: &str) -> io::Result<Option<VolumeRecord>> {
        let file = folder.join(format!("{name}.json"));
        let text = match std::fs::read(&file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let mut record: VolumeRecord = serde_json::from_slice(&text)?;
        record.file = Some(file);
        Ok(Some(record))
    }

    /// Returns the names of all volumes with a record.
    pub fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|e| e.file_name().to_str()?.strip_suffix(".json").map(String::from));
        let mut names: Vec<String> = names.filter(|n| !n.starts_with('.')).collect();
        names.sort();
        names
    }

    /// Records a new plan, whose dangers in `allowed` were accepted.
    pub fn take_up(&mut self, what: &VolumeChange, plan: &VolumePlan, allowed: &[Danger]) -> Result<(), String> {
        let same = self.pending.as_ref().is_some_and(|p| p.what == *what);
        let before = if same { self.begun() } else { Vec::new() };
        self.made.add(&plan.made);
        self.pending = Some(Pending {
            what: what.clone(),
            plan: plan.clone(),
            done: 0,
            begun: 0,
            before,
            allowed: allowed.to_vec(),
        });
        self.save()
    }

    /// Records that no change is under way any more.
    pub fn finish(&mut self) -> Result<(), String> {
        self.pending = None;
        self.save()
    }

    /// Returns the things beside the volume that its changes made.
    pub fn made(&self) -> &MadeBeside {
        &self.made
    }

    /// Returns the number of ended phases of the current plan.
    pub(crate) fn done(&self) -> usize {
        self.pending.as_ref().map_or(0, |p| p.done)
    }

    /// Whether the change under way has no phase before this one.
    pub(crate) fn is_first(&self, phase: usize) -> bool {
        phase == 0 && self.pending.as_ref().is_some_and(|p| p.before.is_empty())
    }

    /// Returns the begun phases of the change under way, in order.
    pub(crate) fn begun(&self) -> Vec<CommandPhase> {
        let Some(p) = &self.pending else { return Vec::new() };
        let now = &p.plan.phases[..p.begun.min(p.plan.phases.len())];
        p.before.iter().chain(now).cloned().collect()
    }

    pub(crate) fn begin(&mut self, phase: usize) -> Result<(), String> {
        if let Some(p) = &mut self.pending {
            p.begun = p.begun.max(phase + 1);
        }
        self.save()
    }

    pub(crate) fn end(&mut self, phase: usize) -> Result<(), String> {
        if let Some(p) = &mut self.pending {
            p.done = phase + 1;
        }
        self.save()
    }

    /// Writes the whole record or nothing.
    pub fn save(&self) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        let write = || -> io::Result<()> {
            let folder = file.parent().unwrap_or(Path::new("/"));
            homing_os::folder::make_folder(folder, 0o777)?;
            homing_os::folder::write_whole(file, &serde_json::to_vec_pretty(self)?, None)
        };
        write().map_err(|e| format!("writing the record {}: {e}", file.display()))
    }

    /// Deletes the record.
    pub fn remove(&self) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        match std::fs::remove_file(file) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(format!("removing the record {}: {e}", file.display()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repetition_of_an_interrupted_command_names_the_same_hosts() {
        let hosts = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let folder = tempfile::tempdir().unwrap();
        let mut record =
            VolumeRecord::found(folder.path(), crate::adopt::unknown("data", &hosts(&["n1"])), &hosts(&["n1", "n2"]));
        assert!(!record.repeats(&hosts(&["n1", "n2"])), "nothing was interrupted: -w could mean the hosts to change");
        record.take_up(&VolumeChange::Rebalance, &VolumePlan::default(), &[]).unwrap();
        let record = VolumeRecord::load(folder.path(), "data").unwrap().unwrap();
        assert!(record.repeats(&hosts(&["n2", "n1"])));
        assert!(!record.repeats(&hosts(&["n1"])) && !record.repeats(&[]));
        let known = VolumeRecord { found_on: Vec::new(), ..record };
        assert!(!known.repeats(&hosts(&["n1", "n2"])), "the command that was interrupted named no hosts");
        let refused = known.refuse_hosts(&hosts(&["n3"])).unwrap_err();
        assert!(refused.message.contains("this machine has a record") && refused.hint.unwrap().contains("with --on"));
    }
}
