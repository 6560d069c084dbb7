//! The record of a volume on the admin's machine: what was asked for, and what
//! is under way. One JSON file a volume, replaced whole.

use crate::change::Change;
use crate::refuse::Danger;
use crate::spec::Spec;
use crate::step::{Phase, Plan};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// A change that has not come to its end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pending {
    /// What is changed.
    #[serde(deserialize_with = "crate::change::kept")]
    pub what: Change,
    /// The plan that is being carried out.
    pub plan: Plan,
    /// Phases that have ended.
    pub done: usize,
    /// Phases that have begun.
    pub begun: usize,
    /// Phases of earlier plans of the same change, for the way back.
    #[serde(default)]
    pub before: Vec<Phase>,
    /// Dangers that were taken on, so that the change can be finished without saying so again.
    #[serde(default)]
    pub allowed: Vec<Danger>,
}

/// What is kept of a volume.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// As asked for.
    pub spec: Spec,
    /// What is under way.
    pub pending: Option<Pending>,
    #[serde(skip)]
    file: Option<PathBuf>,
}

/// Where records of this cluster's volumes lie: `$HOMING_VOLUMES`, else homing's folder in `$XDG_STATE_HOME` or
/// `~/.local/state`, and there one for each ssh configuration that is named.
pub fn folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("HOMING_VOLUMES") {
        return folder.into();
    }
    homing_os::folder::cluster_state().join("volumes")
}

/// Hosts that hold bytes of the volumes that homing has made, with one of their volumes.
pub fn holders() -> BTreeMap<String, String> {
    let folder = folder();
    let specs = Record::names(&folder).into_iter().filter_map(|name| Some(Record::load(&folder, &name).ok()??.spec));
    specs.flat_map(|spec| spec.places.into_iter().map(move |place| (place.host, spec.name.clone()))).collect()
}

impl Record {
    /// A record that is written to `folder` at the first change.
    pub fn new(folder: &Path, spec: Spec) -> Record {
        let file = folder.join(format!("{}.json", spec.name));
        Record { spec, pending: None, file: Some(file) }
    }

    /// A record that is never written, for what is no volume of homing's own.
    pub fn unwritten(spec: Spec) -> Record {
        Record { spec, pending: None, file: None }
    }

    /// The record of a volume; `None` when there is none.
    pub fn load(folder: &Path, name: &str) -> io::Result<Option<Record>> {
        let file = folder.join(format!("{name}.json"));
        let text = match std::fs::read(&file) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let mut record: Record = serde_json::from_slice(&text)?;
        record.file = Some(file);
        Ok(Some(record))
    }

    /// Names of all volumes with a record.
    pub fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|e| e.file_name().to_str()?.strip_suffix(".json").map(String::from));
        let mut names: Vec<String> = names.filter(|n| !n.starts_with('.')).collect();
        names.sort();
        names
    }

    /// Takes up a new plan, whose dangers `allowed` were taken on.
    pub fn take_up(&mut self, what: &Change, plan: &Plan, allowed: &[Danger]) -> Result<(), String> {
        let same = self.pending.as_ref().is_some_and(|p| p.what == *what);
        let before = if same { self.begun() } else { Vec::new() };
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

    /// Nothing is under way any more.
    pub fn finish(&mut self) -> Result<(), String> {
        self.pending = None;
        self.save()
    }

    /// Phases of the plan under way that have ended.
    pub(crate) fn done(&self) -> usize {
        self.pending.as_ref().map_or(0, |p| p.done)
    }

    /// No phase of the change under way came before this one.
    pub(crate) fn is_first(&self, phase: usize) -> bool {
        phase == 0 && self.pending.as_ref().is_some_and(|p| p.before.is_empty())
    }

    /// Phases of the change under way that have begun, in order.
    pub(crate) fn begun(&self) -> Vec<Phase> {
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

    /// Writes the record, whole or not at all.
    pub fn save(&self) -> Result<(), String> {
        let Some(file) = &self.file else { return Ok(()) };
        let write = || -> io::Result<()> {
            let folder = file.parent().unwrap_or(Path::new("/"));
            homing_os::folder::make_folder(folder, 0o777)?;
            homing_os::folder::write_whole(file, &serde_json::to_vec_pretty(self)?, None)
        };
        write().map_err(|e| format!("writing the record {}: {e}", file.display()))
    }

    /// Forgets the volume.
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
