//! The state folders of labs: one for each name, with the plan in it, and a mark when the lab is complete.

use crate::error::{Doing, LabError, Result};
use crate::plan::{LABS, LabPlan};
use crate::spec::LabSpec;
use crate::{net, process, program};
use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::path::Path;

/// The name of the mark, which is written last. Without it a lab is half-made.
const READY: &str = "ready";
const RECORD: &str = "lab.json";

/// Makes the state folder and takes a number that no other lab has. The record
/// is complete before anything else exists, so that `down` always knows the names.
pub(crate) fn claim(spec: &LabSpec) -> Result<LabPlan> {
    let labs = Path::new(LABS);
    fs::create_dir_all(labs).doing("making", labs)?;
    let gate = File::open(labs).doing("opening", labs)?;
    rustix::fs::flock(&gate, FlockOperation::LockExclusive).doing("locking", labs)?;
    let dir = LabPlan::dir_of(&spec.name);
    if dir.exists() {
        return Err(match is_up(&spec.name) {
            true => LabError::Up(spec.name.clone()),
            false => LabError::Stale { name: spec.name.clone() },
        });
    }
    let taken: Vec<u8> = names().iter().filter_map(|n| load(n).ok()).map(|p| p.number).collect();
    let number = (1..=254u8).find(|k| {
        let plan = LabPlan { spec: spec.clone(), number: *k };
        !taken.contains(k) && net::interfaces(&plan).is_empty()
    });
    let Some(number) = number else {
        return Err(LabError::Request("254 labs are up already; no subnet of 10.77.0.0/16 is free".into()));
    };
    let plan = LabPlan { spec: spec.clone(), number };
    record(&plan)?;
    Ok(plan)
}

/// Writes the record. The folder appears under its name only with the record in it.
fn record(plan: &LabPlan) -> Result<()> {
    let dir = plan.dir();
    let fresh = Path::new(LABS).join(format!(".{}.new", plan.spec.name));
    let _ = fs::remove_dir_all(&fresh);
    fs::create_dir(&fresh).doing("making", &fresh)?;
    let file = fresh.join(RECORD);
    let text = serde_json::to_vec_pretty(plan).map_err(std::io::Error::from).doing("writing", &file)?;
    fs::write(&file, text).doing("writing", &file)?;
    fs::rename(&fresh, &dir).doing("making", &dir)
}

/// Marks a lab as complete.
pub(crate) fn finish(plan: &LabPlan) -> Result<()> {
    let ready = plan.dir().join(READY);
    fs::write(&ready, "").doing("writing", &ready)
}

/// Returns the names of all labs that have a state folder.
pub fn names() -> Vec<String> {
    let Ok(entries) = fs::read_dir(LABS) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|e| e.file_name().into_string().ok()).filter(|n| !n.starts_with('.')).collect();
    names.sort();
    names
}

/// Returns the plan of a lab that has a state folder.
pub fn load(name: &str) -> Result<LabPlan> {
    crate::spec::check_name(name)?;
    let file = LabPlan::dir_of(name).join(RECORD);
    let text = match fs::read(&file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(LabError::Down(name.into())),
        other => other.doing("reading", &file)?,
    };
    serde_json::from_slice(&text).map_err(std::io::Error::from).doing("reading", &file)
}

/// Returns the plan of a lab that can take commands. It is complete, and not left by a restart of the machine. Only
/// root can read its key.
pub fn reach(name: &str) -> Result<LabPlan> {
    program::need_root()?;
    let plan = load(name)?;
    let lives = plan.hosts().iter().any(|h| process::leader_of(h).is_some());
    let ready = plan.dir().join(READY).exists();
    (lives && ready).then_some(plan).ok_or_else(|| LabError::Stale { name: name.into() })
}

/// Whether a lab is complete and all its hosts live.
pub fn is_up(name: &str) -> bool {
    let Ok(plan) = load(name) else { return false };
    plan.dir().join(READY).exists() && plan.hosts().iter().all(|h| process::leader_of(h).is_some())
}
