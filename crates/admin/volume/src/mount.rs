//! Mount points: writes a line into fstab that names its volume, and mounts it.

use crate::observe::{MountPoint, Observed};
use crate::refuse::{Danger, Refusal};
use crate::spec::{Spec, VolumeKind};
use crate::step::{CommandStep, VolumePlan, script, words};

/// fstab is replaced as a whole; other lines stay. mount(8) treats `x-` options as comments. mount.glusterfs succeeds
/// although the servers refuse the client, and the mount then goes away.
const MOUNT: &str = r#"
    mkdir -p -- "$1" || exit
    if ! grep -qF "x-homing.$2," /etc/fstab 2>/dev/null; then
    { [ ! -e /etc/fstab ] || cat /etc/fstab; } > /etc/fstab.homing && {
    printf '%s %s %s %s 0 0\n' "$3" "$1" "$4" "x-homing.$2,$5"; } >> /etc/fstab.homing &&
    chmod 644 /etc/fstab.homing && mv -f /etc/fstab.homing /etc/fstab || exit
    fi
    mountpoint -q -- "$1" && exit 0
    timeout 60 mount -- "$1" || exit
    timeout 60 stat -f -- "$1" >/dev/null 2>&1 && mountpoint -q -- "$1" && exit 0
    echo "mount succeeded, but nothing is mounted at $1: the servers may not let this host in (auth.allow, clients)" >&2
    exit 1
"#;

/// Replaces the volume's line in fstab, in its place; the mount stays as it is.
const REWRITE: &str = r#"
    line="$3 $1 $4 x-homing.$2,$5 0 0" mark="x-homing.$2," \
    awk 'index($0, ENVIRON["mark"]) { print ENVIRON["line"]; next } { print }' /etc/fstab > /etc/fstab.homing &&
    chmod 644 /etc/fstab.homing && mv -f /etc/fstab.homing /etc/fstab
"#;

/// Unmounts first: a mount that is in use keeps its line, and the processes that use it are printed. The folder of
/// the mount point is removed only if it is empty.
const UNMOUNT: &str = r#"
    also=$(awk -v p="$1" '$5 == p { d = $3; r = $4 == "/" ? "" : $4 } { dev[NR] = $3; root[NR] = $4; at[NR] = $5 }
    END { for (i = 1; i <= NR && d != ""; i++) if (dev[i] == d && root[i] != "/" && index(root[i], r "/") == 1) print at[i] }' /proc/self/mountinfo)
    [ -z "$also" ] || { echo "a folder of the volume is mounted at" $also >&2; exit 1; }
    if mountpoint -q -- "$1" && ! umount -- "$1"; then
    find /proc/[0-9]*/cwd /proc/[0-9]*/fd '(' -lname "$1" -o -lname "$1/*" ')' 2>/dev/null | cut -d/ -f3 | sort -un |
    head -n 3 | while read -r p; do echo "in use by process $p ($(cat "/proc/$p/comm"))" >&2; done
    exit 1
    fi
    if grep -qF "x-homing.$2," /etc/fstab 2>/dev/null; then
    { grep -vF "x-homing.$2," /etc/fstab || [ $? = 1 ]; } > /etc/fstab.homing &&
    chmod 644 /etc/fstab.homing && mv -f /etc/fstab.homing /etc/fstab || exit
    fi
    rmdir -- "$1" 2>/dev/null || true
"#;

/// A line of fstab on a host.
pub(crate) struct FstabLine {
    pub(crate) source: String,
    pub(crate) fstype: &'static str,
    pub(crate) options: String,
}

/// Mounts on all clients that lack it.
pub(crate) fn mount(plan: &mut VolumePlan, spec: &Spec, seen: &Observed, line: impl Fn(&str) -> FstabLine) {
    let steps = spec.clients.iter().filter(|host| !seen.is_mounted(host)).map(|host| {
        let line = line(host);
        let why = format!("mount {} at {}", line.source, spec.mount);
        let stale = seen.host(host).and_then(|facts| facts.fstab.as_ref()).is_some_and(|old| is_stale(spec, old));
        CommandStep::new(host, mount_argv(spec, &line, stale), why).undo(unmount_argv(spec))
    });
    plan.phase_each(format!("mount at {}", spec.mount), steps.collect());
}

/// Writes the lines in fstab anew that differ from those of the volume: the others name servers that have left.
pub(crate) fn rewrite(plan: &mut VolumePlan, spec: &Spec, seen: &Observed, line: impl Fn(&str) -> FstabLine) {
    let step = |host: &String| {
        let (old, new) = (seen.host(host)?.fstab.as_ref()?, line(host));
        let options = format!("x-homing.{},{}", spec.name, new.options);
        let is_same = old[0] == new.source && old[3] == options;
        let argv = script(REWRITE, &[&spec.mount, &spec.name, &new.source, new.fstype, &new.options]);
        (!is_same).then(|| CommandStep::new(host, argv, format!("rewrite the line of {} in /etc/fstab", spec.mount)))
    };
    plan.phase_each("rewrite the lines of /etc/fstab", spec.clients.iter().filter_map(step).collect());
}

/// Unmounts on `hosts`. `back` returns the fstab line that the undo writes again.
pub(crate) fn unmount(plan: &mut VolumePlan, spec: &Spec, hosts: &[String], back: impl Fn(&str) -> Option<FstabLine>) {
    let step = |host: &String| {
        let step = CommandStep::new(host, unmount_argv(spec), format!("unmount {}", spec.mount));
        match back(host) {
            Some(line) => step.undo(mount_argv(spec, &line, false)),
            None => step,
        }
    };
    plan.phase(format!("unmount {}", spec.mount), hosts.iter().map(step).collect());
}

/// Unmounts before the volume itself is deleted: there is no undo.
pub(crate) fn unmount_for_good(spec: &Spec, seen: &Observed) -> VolumePlan {
    let mut plan = VolumePlan::default();
    let all: Vec<String> = seen.hosts.keys().cloned().collect();
    unmount(&mut plan, spec, &mounted(seen, &all), |_| None);
    plan
}

/// Returns the hosts that have it mounted, or will at their next boot.
pub(crate) fn mounted(seen: &Observed, hosts: &[String]) -> Vec<String> {
    let mounted = |h: &&String| seen.host(h).is_some_and(|f| f.fstab.is_some() || f.point == MountPoint::Ours);
    hosts.iter().filter(mounted).cloned().collect()
}

/// Whether a line in fstab names a server that the volume has left. Other differences may be wanted: options of the
/// line can be set by hand.
fn is_stale(spec: &Spec, line: &[String; 4]) -> bool {
    let server = line[0].split(':').next().unwrap_or_default();
    spec.kind == VolumeKind::Gluster && !spec.places.is_empty() && !spec.places.iter().any(|place| place.host == server)
}

fn mount_argv(spec: &Spec, line: &FstabLine, stale: bool) -> Vec<String> {
    let text = if stale { format!("{{ {REWRITE} }} || exit\n{MOUNT}") } else { MOUNT.into() };
    script(&text, &[&spec.mount, &spec.name, &line.source, line.fstype, &line.options])
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
                format!("{host}: {} contains files, which a mount would hide", spec.mount),
            )),
            MountPoint::Free | MountPoint::Ours => {}
        }
    }
    refusals
}

/// Starts a unit now and at each boot.
pub(crate) fn start_unit(host: &str, unit: &str) -> CommandStep {
    let argv = words(&["systemctl", "enable", "--now", "--quiet", unit]);
    CommandStep::new(host, argv, format!("start {unit}")).undo(words(&[
        "systemctl",
        "disable",
        "--now",
        "--quiet",
        unit,
    ]))
}
