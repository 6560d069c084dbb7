//! Mount points: an fstab line that names its volume, and the mount itself.

use crate::observe::{MountPoint, Observed};
use crate::refuse::{Danger, Refusal};
use crate::spec::Spec;
use crate::step::{Plan, Step, script, words};

/// Written whole or not at all; other lines stay. `x-` options are comments to mount(8).
const MOUNT: &str = r#"
    mkdir -p -- "$1" || exit
    if ! grep -qF "x-homing.$2," /etc/fstab 2>/dev/null; then
    { cat /etc/fstab 2>/dev/null; printf '%s %s %s %s 0 0\n' "$3" "$1" "$4" "x-homing.$2,$5"; } > /etc/fstab.homing &&
    chmod 644 /etc/fstab.homing && mv -f /etc/fstab.homing /etc/fstab || exit
    fi
    mountpoint -q -- "$1" || timeout 60 mount -- "$1"
"#;

/// The point's folder goes only when it is empty.
const UNMOUNT: &str = r#"
    if grep -qF "x-homing.$2," /etc/fstab 2>/dev/null; then
    grep -vF "x-homing.$2," /etc/fstab > /etc/fstab.homing; chmod 644 /etc/fstab.homing
    mv -f /etc/fstab.homing /etc/fstab || exit
    fi
    if mountpoint -q -- "$1"; then umount -- "$1" || exit; fi
    rmdir -- "$1" 2>/dev/null || true
"#;

/// What to write into fstab on a host.
pub(crate) struct Line {
    pub(crate) source: String,
    pub(crate) fstype: &'static str,
    pub(crate) options: String,
}

/// Mounts on all clients that lack it.
pub(crate) fn mount(plan: &mut Plan, spec: &Spec, seen: &Observed, line: impl Fn(&str) -> Line) {
    let steps = spec.clients.iter().filter(|host| !seen.is_mounted(host)).map(|host| {
        let Line { source, fstype, options } = line(host);
        let argv = script(MOUNT, &[&spec.mount, &spec.name, &source, fstype, &options]);
        Step::new(host, argv, format!("mount {source} at {}", spec.mount)).undo(unmount_argv(spec))
    });
    plan.phase_each(format!("mount at {}", spec.mount), steps.collect());
}

/// Takes the mounts away from `hosts`.
pub(crate) fn unmount(plan: &mut Plan, spec: &Spec, hosts: &[String]) {
    let steps = hosts.iter().map(|h| Step::new(h, unmount_argv(spec), format!("unmount {}", spec.mount)));
    plan.phase(format!("unmount {}", spec.mount), steps.collect());
}

fn unmount_argv(spec: &Spec) -> Vec<String> {
    script(UNMOUNT, &[&spec.mount, &spec.name])
}

/// Refuses to hide files, or another mount.
pub(crate) fn refusals(spec: &Spec, seen: &Observed) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for host in spec.clients.iter().filter(|h| !seen.is_mounted(h)) {
        let Some(facts) = seen.host(host) else { continue };
        match &facts.point {
            MountPoint::Other(what) => refusals.push(Refusal::never(format!(
                "{host}: {} is the mount point of {what}; choose another with --mount",
                spec.mount
            ))),
            MountPoint::Files => refusals.push(Refusal::danger(
                Danger::MountOverFiles,
                format!("{host}: {} holds files, which a mount would hide", spec.mount),
            )),
            MountPoint::Free | MountPoint::Ours => {}
        }
    }
    refusals
}

/// Starts a unit now and at each boot.
pub(crate) fn start_unit(host: &str, unit: &str) -> Step {
    let argv = words(&["systemctl", "enable", "--now", "--quiet", unit]);
    Step::new(host, argv, format!("start {unit}")).undo(words(&["systemctl", "disable", "--now", "--quiet", unit]))
}
