//! `lab up`: everything from the state folder to hosts that answer.

use crate::error::{Doing, LabError, Result};
use crate::kernel::Kernel;
use crate::plan::{LABS, Plan};
use crate::spec::{DiskModel, LabSpec};
use crate::{boot, disk, down, gluster, guest, moosefs, net, nfs, process, program, root, slurm};
use rustix::fs::FlockOperation;
use std::fs::{self, File};
use std::path::Path;

/// Written last: without it a lab is half-made.
const READY: &str = "ready";
const RECORD: &str = "lab.json";

/// Refuses unless the caller is root.
pub(crate) fn need_root() -> Result<()> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(LabError::NotRoot) }
}

/// Raises a lab. When it fails on the way, what was made is taken down again.
pub fn up(spec: &LabSpec) -> Result<Plan> {
    need_root()?;
    spec.check()?;
    program::require(&[])?;
    if spec.disk_model == DiskModel::Hdd {
        program::require(program::FOR_HDD)?;
    }
    if spec.gluster.is_some() {
        program::require(program::FOR_GLUSTER)?;
    }
    if spec.slurm {
        program::require(program::FOR_SLURM)?;
    }
    if spec.moosefs.is_some() {
        program::require(program::FOR_MOOSEFS)?;
    }
    if spec.nfs.is_some() {
        program::require(program::FOR_NFS)?;
    }
    let plan = claim(spec)?;
    let made = raise(&plan);
    if let Err(e) = made {
        // The first failure is the one to tell; `down` can be said again by hand.
        let _ = down::down(&spec.name);
        return Err(e);
    }
    Ok(plan)
}

fn raise(plan: &Plan) -> Result<()> {
    net::make_bridge(plan)?;
    let keys = root::make_keys(plan)?;
    let munge_key = slurm::new_key()?;
    let kernel = plan.spec.nfs.map(|_| Kernel::find()).transpose()?;
    on_each(plan, |host| {
        root::make(plan, host, &keys)?;
        if let Some(kernel) = &kernel {
            guest::make_disk(host, plan.spec.disk_bytes)?;
            return boot::boot_guest(plan, host, kernel);
        }
        disk::make(host, &plan.spec)?;
        if plan.spec.slurm {
            slurm::configure(plan, host, &munge_key)?;
        }
        boot::boot(plan, host)
    })?;
    if let Some(shape) = plan.spec.gluster {
        gluster::make(plan, shape)?;
    }
    if let Some(shape) = plan.spec.moosefs {
        moosefs::make(plan, shape)?;
    }
    if let Some(shape) = plan.spec.nfs {
        nfs::make(plan, shape)?;
    }
    if plan.spec.slurm {
        slurm::start(plan)?;
    }
    let ready = plan.dir().join(READY);
    fs::write(&ready, "").doing("writing", &ready)
}

/// Does something for every host at once; the first failure, in the hosts' order, is returned.
pub(crate) fn on_each(plan: &Plan, act: impl Fn(&crate::plan::HostPlan) -> Result<()> + Sync) -> Result<()> {
    let hosts = plan.hosts();
    std::thread::scope(|scope| {
        let threads: Vec<_> = hosts.iter().map(|h| scope.spawn(|| act(h))).collect();
        let results: Vec<Result<()>> =
            threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect();
        results.into_iter().collect()
    })
}

/// Makes the state folder and takes a number that no other lab has. The record
/// is complete before anything else exists, so that `down` always knows the names.
fn claim(spec: &LabSpec) -> Result<Plan> {
    let labs = Path::new(LABS);
    fs::create_dir_all(labs).doing("making", labs)?;
    let gate = File::open(labs).doing("opening", labs)?;
    rustix::fs::flock(&gate, FlockOperation::LockExclusive).doing("locking", labs)?;
    let dir = Plan::dir_of(&spec.name);
    if dir.exists() {
        return Err(match is_up(&spec.name) {
            true => LabError::Up(spec.name.clone()),
            false => LabError::Stale { name: spec.name.clone() },
        });
    }
    let taken: Vec<u8> = names().iter().filter_map(|n| load(n).ok()).map(|p| p.number).collect();
    let number = (1..=254u8).find(|k| {
        let plan = Plan { spec: spec.clone(), number: *k };
        !taken.contains(k) && net::interfaces(&plan).is_empty()
    });
    let Some(number) = number else {
        return Err(LabError::Request("254 labs are up already; no subnet of 10.77.0.0/16 is free".into()));
    };
    let plan = Plan { spec: spec.clone(), number };
    record(&plan)?;
    Ok(plan)
}

/// The folder appears under its name only with the record in it.
fn record(plan: &Plan) -> Result<()> {
    let dir = plan.dir();
    let fresh = Path::new(LABS).join(format!(".{}.new", plan.spec.name));
    let _ = fs::remove_dir_all(&fresh);
    fs::create_dir(&fresh).doing("making", &fresh)?;
    let file = fresh.join(RECORD);
    let text = serde_json::to_vec_pretty(plan).map_err(std::io::Error::from).doing("writing", &file)?;
    fs::write(&file, text).doing("writing", &file)?;
    fs::rename(&fresh, &dir).doing("making", &dir)
}

/// Names of all labs that have a state folder.
pub fn names() -> Vec<String> {
    let Ok(entries) = fs::read_dir(LABS) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|e| e.file_name().into_string().ok()).filter(|n| !n.starts_with('.')).collect();
    names.sort();
    names
}

/// The plan of a lab that has a state folder.
pub fn load(name: &str) -> Result<Plan> {
    crate::spec::check_name(name)?;
    let file = Plan::dir_of(name).join(RECORD);
    let text = match fs::read(&file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Err(LabError::Down(name.into())),
        other => other.doing("reading", &file)?,
    };
    serde_json::from_slice(&text).map_err(std::io::Error::from).doing("reading", &file)
}

/// Whether a lab was made to the end and all its hosts live.
pub fn is_up(name: &str) -> bool {
    let Ok(plan) = load(name) else { return false };
    plan.dir().join(READY).exists() && plan.hosts().iter().all(|h| process::leader_of(h).is_some())
}
