//! The kernel's NFS server: one host's folder for all.

use crate::mount::{self, Line};
use crate::observe::{Content, Observed};
use crate::refuse::{Danger, Refusal, lifted};
use crate::spec::Spec;
use crate::step::{Plan, Step, script};

/// An export of its own file, so that others stay as they are.
const EXPORT: &str = r#"
    name=$1 store=$2; shift 2
    mkdir -p -- "$store" /etc/exports.d || exit
    { printf '%s' "$store"; for c; do printf ' %s(rw,no_subtree_check,sec=sys)' "$c"; done; echo; } > "/etc/exports.d/$name.exports.new" &&
    mv -f "/etc/exports.d/$name.exports.new" "/etc/exports.d/$name.exports" || exit
    if ! [ "$(cat /proc/fs/nfsd/threads 2>/dev/null || echo 0)" -gt 0 ]; then
    systemctl start nfs-server || exit
    systemctl is-enabled --quiet nfs-server || systemctl add-wants --quiet multi-user.target nfs-server || true
    fi
    PATH=$PATH:/usr/sbin:/sbin exportfs -ra
"#;
const UNEXPORT: &str = r#"
    rm -f "/etc/exports.d/$1.exports"; exportfs -ra 2>/dev/null || true
    [ ! -d "$2" ] || rmdir -- "$2" 2>/dev/null || true
"#;
const REMOVE: &str = r#"
    [ ! -d "$1" ] || rm -rf --one-file-system -- "$1"
"#;

const NOTES: &[&str] = &[
    "the export goes to the clients by name, root is squashed, writes are safe on the server's disk before they are answered",
    "the server sees the files at the same path by a bind mount, so that tasks there need no network",
    "rsize and wsize are left to client and server: homing bench volume --tune nfs measures whether another size is better",
];

/// The fstab line of a host; the server binds its own folder.
pub(crate) fn mount_line(spec: &Spec, host: &str) -> Line {
    let Some(place) = spec.places.first() else {
        return Line { source: String::new(), fstype: "nfs4", options: String::new() };
    };
    let store = spec.store(place);
    if place.host == host {
        return Line { source: store, fstype: "none", options: "bind,nofail".into() };
    }
    let options = "hard,vers=4.2,_netdev,nofail".into();
    Line { source: format!("{}:{store}", place.host), fstype: "nfs4", options }
}

/// Steps until the export is mounted on all clients.
pub fn create(spec: &Spec, seen: &Observed, allowed: &[Danger]) -> Result<Plan, Vec<Refusal>> {
    let Some(place) = spec.places.first() else { return Ok(Plan::default()) };
    let store = spec.store(place);
    let mut refusals = missing(spec, seen);
    let text = seen.host(&place.host).and_then(|f| f.texts.get("exports"));
    if let Some(there) = seen.store(&place.host, &store) {
        if there.on_system_disk && text.is_none() {
            let why = format!("{}:{store} lies on the disk of the system, which a full volume would stop", place.host);
            refusals.push(Refusal::danger(Danger::SystemDisk, why));
        }
        if !matches!(there.content, Content::Absent | Content::Empty) && text.is_none() {
            let why = format!("{}:{store} holds something, which the clients could then change", place.host);
            refusals.push(Refusal::danger(Danger::StoreInUse, why));
        }
    }
    refusals.extend(mount::refusals(spec, seen));
    lifted(refusals, allowed)?;
    let mut plan = Plan::default();
    let clients: Vec<&str> = spec.clients.iter().map(String::as_str).filter(|c| *c != place.host).collect();
    let told = |c: &&str| text.is_some_and(|t| t.contains(&format!(" {c}(")));
    if !clients.iter().all(told) || !seen.runs(&place.host, "nfs-server") || text.is_none() {
        let mut args = vec![spec.name.as_str(), &store];
        args.extend(&clients);
        let mut step = Step::new(&place.host, script(EXPORT, &args), format!("export {store}"));
        if text.is_none() {
            step = step.undo(script(UNEXPORT, &[&spec.name, &store]));
        }
        plan.phase("export", vec![step]);
        plan.notes = NOTES.iter().map(|n| n.to_string()).collect();
    }
    mount::mount(&mut plan, spec, seen, |h| mount_line(spec, h));
    Ok(plan)
}

fn missing(spec: &Spec, seen: &Observed) -> Vec<Refusal> {
    let mut refusals: Vec<Refusal> =
        seen.silent().iter().map(|(h, why)| Refusal::never(format!("{h} does not answer: {why}"))).collect();
    let server = spec.places.first().map_or("", |p| p.host.as_str());
    for (host, facts) in seen.hosts.iter().filter_map(|(h, f)| Some((h, f.as_ref().ok()?))) {
        let (program, package) =
            if host == server { ("exportfs", "nfs-kernel-server") } else { ("mount.nfs", "nfs-common") };
        if !facts.programs.contains(program) {
            refusals.push(Refusal::never(format!("{host} has no {program}; install the package {package} there")));
        }
    }
    refusals
}

/// Unmounts everywhere, withdraws the export, and removes the folder.
pub fn delete(spec: &Spec, seen: &Observed, allowed: &[Danger]) -> Result<Plan, Vec<Refusal>> {
    let Some(place) = spec.places.first() else { return Ok(Plan::default()) };
    let store = spec.store(place);
    let mut refusals: Vec<Refusal> =
        seen.silent().iter().map(|(h, why)| Refusal::never(format!("{h} does not answer: {why}"))).collect();
    let holds = seen.store(&place.host, &store).is_some_and(|s| matches!(s.content, Content::Files | Content::Folders));
    if holds {
        let why = format!("there are files on {}:{store}, and they would be gone", place.host);
        refusals.push(Refusal::danger(Danger::DeleteFiles, why));
    }
    lifted(refusals, allowed)?;
    let mut plan = crate::mounts::unmount_for_good(spec, seen);
    let withdraw = script(UNEXPORT, &[&spec.name, &store]);
    plan.phase("withdraw the export", vec![Step::new(&place.host, withdraw, format!("withdraw {store}"))]);
    let remove = script(REMOVE, &[&store]);
    plan.phase("remove the files", vec![Step::new(&place.host, remove, format!("remove {store}"))]);
    Ok(plan)
}
