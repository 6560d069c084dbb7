//! Mounting and unmounting a volume of any kind on single hosts.

use crate::mount::{self, Line};
use crate::observe::Observed;
use crate::refuse::{Danger, Refusal, lifted};
use crate::spec::{Kind, Spec};
use crate::step::Plan;

/// The fstab line of a host.
pub(crate) fn line(spec: &Spec, host: &str) -> Line {
    match spec.kind {
        Kind::Gluster => crate::gluster::mount_line(spec, host),
        Kind::Moosefs => crate::moosefs::mount_line(spec, host),
        Kind::Nfs => crate::nfs::mount_line(spec, host),
    }
}

/// Mounts on all clients that lack it.
pub fn mount(spec: &Spec, seen: &Observed, allowed: &[Danger]) -> Result<Plan, Vec<Refusal>> {
    lifted(mount::refusals(spec, seen), allowed)?;
    let mut plan = Plan::default();
    mount::mount(&mut plan, spec, seen, |h| line(spec, h));
    Ok(plan)
}

/// Unmounts where it is mounted.
pub fn unmount(spec: &Spec, seen: &Observed, hosts: &[String]) -> Plan {
    use crate::observe::MountPoint::Ours;
    let mounted = |h: &&String| seen.host(h).is_some_and(|f| f.fstab.is_some() || f.point == Ours);
    let hosts: Vec<String> = hosts.iter().filter(mounted).cloned().collect();
    let mut plan = Plan::default();
    mount::unmount(&mut plan, spec, &hosts);
    plan
}
