//! `lab up`: makes a lab, from the state folder to hosts that answer.

use crate::error::Result;
use crate::exec::on_each;
use crate::plan::LabPlan;
use crate::spec::{DiskModel, LabSpec};
use crate::{
    boot, ceph, disk, down, folder, gluster, guest, moosefs, net, nfs, program, root, slurm, switches, systems,
};

/// Raises a lab. When it fails on the way, the parts that it made are taken down again.
pub fn up(spec: &LabSpec) -> Result<LabPlan> {
    up_with(spec, &|_| {})
}

/// Raises a lab like [`up`]. The callback receives a line before each step that takes long.
pub fn up_with(spec: &LabSpec, report: &dyn Fn(&str)) -> Result<LabPlan> {
    program::need_root()?;
    keep_inherited();
    spec.check()?;
    program::require(&[])?;
    if spec.disk_model != DiskModel::Plain {
        program::require(program::FOR_HDD)?;
    }
    if spec.gluster.is_some() {
        program::require(program::FOR_GLUSTER)?;
    }
    if spec.slurm {
        program::require(program::FOR_SLURM)?;
    }
    if spec.switches.is_some() {
        program::require(program::FOR_SWITCHES)?;
    }
    if spec.moosefs.is_some() {
        program::require(program::FOR_MOOSEFS)?;
    }
    if spec.ceph.is_some() {
        program::require(program::FOR_CEPH)?;
    }
    if spec.nfs.is_some() {
        program::require(program::FOR_NFS)?;
    }
    if spec.has_guests() {
        spec.guests.require()?;
    }
    systems::check(&spec.systems)?;
    let plan = folder::claim(spec)?;
    let made = raise(&plan, report);
    if let Err(e) = made {
        // The caller receives the first failure, not that of `down`, which the user can repeat.
        let _ = down::down(&spec.name);
        return Err(e);
    }
    Ok(plan)
}

/// Keeps the caller's open files from the hosts, which would hold its locks and the ends of its pipes.
fn keep_inherited() {
    // SAFETY: descriptors stay open here and are only marked. The call is not in every C library. A kernel older than
    // 5.11 does not know the flag; hosts then inherit the descriptors.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

fn raise(plan: &LabPlan, tell: &dyn Fn(&str)) -> Result<()> {
    systems::make(plan, tell)?;
    net::make_bridges(plan)?;
    let keys = root::make_keys(plan)?;
    let munge_key = slurm::new_key()?;
    let kernel = plan.spec.has_guests().then(|| plan.spec.guests.kernel()).transpose()?;
    let guests = if kernel.is_some() { ", some of them guests with their own kernels" } else { "" };
    tell(&format!("starting {} hosts{guests}, and waiting until their sshd answers", plan.spec.hosts));
    on_each(plan, |host| {
        root::make(plan, host, &keys)?;
        slurm::forget(&host.root().join("etc"))?;
        if let Some(kernel) = kernel.as_ref().filter(|_| host.is_guest()) {
            let disk = disk::image(host, &plan.spec, &guest::LAZY)?;
            return boot::boot_guest(plan, host, kernel, &disk);
        }
        disk::make(host, &plan.spec)?;
        if let Some(bytes) = plan.spec.spare_bytes {
            disk::make_spare(host, bytes)?;
        }
        if plan.spec.slurm {
            slurm::configure(plan, host, &munge_key)?;
        }
        boot::boot(plan, host)
    })?;
    if plan.spec.switches.is_some() {
        switches::start(plan)?;
    }
    if let Some(shape) = plan.spec.gluster {
        tell("making the GlusterFS volume, and waiting until all hosts have mounted it");
        gluster::make(plan, shape)?;
    }
    if let Some(shape) = plan.spec.moosefs {
        tell("starting MooseFS, and waiting for its chunkservers");
        moosefs::make(plan, shape)?;
    }
    if let Some(shape) = plan.spec.ceph {
        tell("starting Ceph, and waiting until it is healthy");
        ceph::make(plan, shape)?;
    }
    if let Some(shape) = plan.spec.nfs {
        tell("serving NFS from n1, and mounting it on the others");
        nfs::make(plan, shape)?;
    }
    if plan.spec.slurm {
        tell("starting Slurm, and waiting until its nodes are idle");
        slurm::start(plan)?;
    }
    folder::finish(plan)
}
