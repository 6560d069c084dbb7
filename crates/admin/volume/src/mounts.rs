//! Mounts and unmounts a volume of any kind on single hosts.

use crate::mount::{self, FstabLine};
use crate::observe::Observed;
use crate::refuse::{Danger, Refusal, lifted};
use crate::spec::{Spec, VolumeKind};
use crate::step::VolumePlan;

/// Returns the fstab line of a host.
pub(crate) fn line(spec: &Spec, seen: &Observed, host: &str) -> FstabLine {
    match spec.kind {
        VolumeKind::Gluster => crate::gluster::mount_line(spec, host),
        VolumeKind::Moosefs => crate::moosefs::mount_line(spec, host),
        VolumeKind::Nfs => crate::nfs::mount_line(spec, seen, host),
    }
}

/// Mounts on all clients that lack it. If a server lists its clients, new ones are added there first.
pub fn mount(spec: &Spec, seen: &Observed, allowed: &[Danger]) -> Result<VolumePlan, Vec<Refusal>> {
    let mut refusals = mount::refusals(spec, seen);
    let in_force = crate::gluster::volume(spec, seen).map(|volume| &volume.options);
    let waiting =
        Spec { clients: spec.clients.iter().filter(|h| !seen.is_mounted(h)).cloned().collect(), ..spec.clone() };
    refusals.extend(in_force.and_then(|options| crate::gluster::options::shut_out(&waiting, seen, options)));
    lifted(refusals, allowed)?;
    let mut plan = VolumePlan::default();
    match spec.kind {
        VolumeKind::Gluster => {}
        VolumeKind::Moosefs => crate::moosefs::let_in(&mut plan, spec, seen),
        VolumeKind::Nfs => crate::nfs::let_in(&mut plan, spec, seen),
    }
    mount::mount(&mut plan, spec, seen, |h| line(spec, seen, h));
    Ok(plan)
}

/// Unmounts where it is mounted, and withdraws the export to these hosts; the undo mounts it there again.
pub fn unmount(spec: &Spec, seen: &Observed, hosts: &[String]) -> VolumePlan {
    let mut plan = VolumePlan::default();
    mount::unmount(&mut plan, spec, &mount::mounted(seen, hosts), |host| Some(line(spec, seen, host)));
    if spec.kind == VolumeKind::Nfs && crate::nfs::is_exported(spec, seen) {
        let left = spec.clients.iter().filter(|client| !hosts.contains(client)).cloned().collect();
        crate::nfs::let_in(&mut plan, &Spec { clients: left, ..spec.clone() }, seen);
    }
    plan
}
