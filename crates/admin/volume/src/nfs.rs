//! The kernel's NFS server: exports one host's folder to all clients.

use crate::mount::{self, FstabLine};
use crate::observe::{Observed, StoreContent};
use crate::refuse::{Danger, Refusal, lifted, of_silent};
use crate::spec::Spec;
use crate::step::{CommandStep, VolumePlan, script};

/// Writes an export file of its own: other exports stay as they are.
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
    rm -f "/etc/exports.d/$1.exports"; PATH=$PATH:/usr/sbin:/sbin
    ! command -v exportfs >/dev/null || exportfs -ra || exit
    [ ! -d "$2" ] || rmdir -- "$2" 2>/dev/null || true
"#;
const REMOVE: &str = r#"
    [ ! -d "$1" ] || rm -rf --one-file-system -- "$1"
"#;

const NOTES: &[&str] = &[
    "the export names each client, squashes root, and answers a write when it is safe on the server's disk",
    "a bind mount gives the server the same path, so tasks on the server need no network",
    "client and server negotiate rsize and wsize; homing bench volume --tune nfs finds better ones",
];

/// Returns the path of a folder for clients of version 4; `None` if they cannot see it.
fn seen_by_clients(store: &str, pseudo_root: Option<&str>) -> Option<String> {
    let Some(root) = pseudo_root.map(|r| r.trim_end_matches('/')) else { return Some(store.into()) };
    let rest = store.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
    Some(if rest.is_empty() { "/".into() } else { rest.into() })
}

/// Returns the fstab line of a host; the server binds its own folder.
pub(crate) fn mount_line(spec: &Spec, seen: &Observed, host: &str) -> FstabLine {
    let Some(place) = spec.places.first() else {
        return FstabLine { source: String::new(), fstype: "nfs4", options: String::new() };
    };
    let store = spec.store(place);
    if place.host == host {
        return FstabLine { source: store, fstype: "none", options: "bind,nofail".into() };
    }
    let options = "hard,vers=4.2,_netdev,nofail".into();
    let root = seen.host(&place.host).and_then(|f| f.pseudo_root.as_deref());
    let path = seen_by_clients(&store, root).unwrap_or(store);
    FstabLine { source: format!("{}:{path}", place.host), fstype: "nfs4", options }
}

/// Plans the steps until the export is mounted on all clients.
pub fn create(spec: &Spec, seen: &Observed, allowed: &[Danger]) -> Result<VolumePlan, Vec<Refusal>> {
    let Some(place) = spec.places.first() else { return Ok(VolumePlan::default()) };
    let store = spec.store(place);
    let mut refusals = missing(spec, seen);
    let text = seen.host(&place.host).and_then(|f| f.texts.get("exports"));
    if let Some(there) = seen.store(&place.host, &store) {
        if there.on_system_disk && text.is_none() {
            let why = format!("{}:{store} is on the system disk, and a full volume would stop that host", place.host);
            refusals.push(Refusal::danger(Danger::SystemDisk, why));
        }
        if !matches!(there.content, StoreContent::Absent | StoreContent::Empty) && text.is_none() {
            let why = format!("{}:{store} is not empty, and clients could change its files", place.host);
            refusals.push(Refusal::danger(Danger::StoreInUse, why));
        }
    }
    let root = seen.host(&place.host).and_then(|f| f.pseudo_root.as_deref());
    if let (None, Some(root)) = (seen_by_clients(&store, root), root) {
        refusals.push(Refusal::never(format!(
            "{0} exports {root} with fsid=0, and NFS 4 shows clients only folders below it: \
             use a folder there (--hosts {0}:{root}), or remove fsid=0 from /etc/exports",
            place.host
        )));
    }
    refusals.extend(mount::refusals(spec, seen));
    lifted(refusals, allowed)?;
    let mut plan = VolumePlan::default();
    let_in(&mut plan, spec, seen);
    mount::mount(&mut plan, spec, seen, |h| mount_line(spec, seen, h));
    Ok(plan)
}

/// Exports to all clients, if the export does not name them all or the server does not run.
pub(crate) fn let_in(plan: &mut VolumePlan, spec: &Spec, seen: &Observed) {
    let Some(place) = spec.places.first() else { return };
    let (store, text) = (spec.store(place), seen.host(&place.host).and_then(|f| f.texts.get("exports")));
    let clients: Vec<&str> = spec.clients.iter().map(String::as_str).filter(|c| *c != place.host).collect();
    let told = |c: &&str| text.is_some_and(|t| t.contains(&format!(" {c}(")));
    if !clients.iter().all(told) || !seen.runs(&place.host, "nfs-server") || text.is_none() {
        let mut args = vec![spec.name.as_str(), &store];
        args.extend(&clients);
        let mut step = CommandStep::new(&place.host, script(EXPORT, &args), format!("export {store}"));
        if text.is_none() {
            step = step.undo(script(UNEXPORT, &[&spec.name, &store]));
        }
        plan.phase("export", vec![step]);
        plan.notes = NOTES.iter().map(|n| n.to_string()).collect();
    }
}

fn missing(spec: &Spec, seen: &Observed) -> Vec<Refusal> {
    let mut refusals = of_silent(seen, |_| true);
    let server = spec.places.first().map_or("", |p| p.host.as_str());
    for (host, facts) in seen.hosts.iter().filter_map(|(h, f)| Some((h, f.as_ref().ok()?))) {
        let (program, package) =
            if host == server { ("exportfs", "nfs-kernel-server") } else { ("mount.nfs", "nfs-common") };
        if !facts.programs.contains(program) {
            refusals.push(Refusal::never(format!("{host} has no {program}: install the package {package} there")));
        }
    }
    refusals
}

/// Unmounts everywhere, withdraws the export, and removes the folder.
pub fn delete(spec: &Spec, seen: &Observed, allowed: &[Danger]) -> Result<VolumePlan, Vec<Refusal>> {
    let Some(place) = spec.places.first() else { return Ok(VolumePlan::default()) };
    let store = spec.store(place);
    let mut refusals = of_silent(seen, |_| true);
    let holds = seen
        .store(&place.host, &store)
        .is_some_and(|s| matches!(s.content, StoreContent::Files | StoreContent::Folders));
    if holds {
        let why = format!("the files on {}:{store} would be deleted", place.host);
        refusals.push(Refusal::danger(Danger::DeleteFiles, why));
    }
    lifted(refusals, allowed)?;
    let mut plan = crate::mount::unmount_for_good(spec, seen);
    let withdraw = script(UNEXPORT, &[&spec.name, &store]);
    plan.phase("withdraw the export", vec![CommandStep::new(&place.host, withdraw, format!("withdraw {store}"))]);
    let remove = script(REMOVE, &[&store]);
    plan.phase("remove the files", vec![CommandStep::new(&place.host, remove, format!("remove {store}"))]);
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{HostFacts, Store};
    use crate::{StorageFolder, VolumeKind};

    fn spec(path: &str) -> Spec {
        let places = vec![StorageFolder { host: "n1".into(), path: path.into() }];
        let clients = vec!["n1".into(), "n2".into()];
        let (name, mount) = ("home".into(), "/home".into());
        Spec {
            name,
            kind: VolumeKind::Nfs,
            places,
            copies: 1,
            arbiter: false,
            stripe: None,
            mount,
            clients,
            master: None,
        }
    }

    fn seen(change: impl Fn(&mut HostFacts)) -> Observed {
        let mut server = HostFacts { programs: ["exportfs".into()].into(), ..HostFacts::default() };
        change(&mut server);
        let client = HostFacts { programs: ["mount.nfs".into()].into(), ..HostFacts::default() };
        Observed { hosts: [("n1".into(), Ok(server)), ("n2".into(), Ok(client))].into() }
    }

    fn why(answer: Result<VolumePlan, Vec<Refusal>>) -> (String, Option<Danger>) {
        let refusal = answer.expect_err("it is not refused").remove(0);
        (refusal.why, refusal.danger)
    }

    #[test]
    fn a_client_that_is_new_is_in_the_export_before_it_mounts() {
        let known = seen(|f| {
            f.texts.insert("exports".into(), "/srv/home n2(rw,no_subtree_check,sec=sys)".into());
            f.active.insert("nfs-server".into());
        });
        let whys = |s: &Spec| -> Vec<String> {
            crate::mounts::mount(s, &known, &[]).unwrap().phases.iter().map(|p| p.why.clone()).collect()
        };
        assert_eq!(whys(&spec("/srv")), ["mount at /home"]);
        let mut more = spec("/srv");
        more.clients.push("n3".into());
        assert_eq!(whys(&more), ["export", "mount at /home"]);
    }

    #[test]
    fn the_small_partition_of_the_system_is_refused() {
        let store =
            |path: &str, content| Store { path: path.into(), on_system_disk: true, content, ..Store::default() };
        let small = seen(|f| f.stores = vec![store("/srv/home", StoreContent::Absent)]);
        let (text, danger) = why(create(&spec("/srv"), &small, &[]));
        assert_eq!(text, "n1:/srv/home is on the system disk, and a full volume would stop that host");
        assert_eq!(danger, Some(Danger::SystemDisk));
        assert!(create(&spec("/srv"), &small, &[Danger::SystemDisk]).is_ok());
        let used = seen(|f| f.stores = vec![store("/srv/home", StoreContent::Files)]);
        assert!(why(create(&spec("/srv"), &used, &[Danger::SystemDisk])).0.contains("is not empty"));
        let (text, danger) = why(delete(&spec("/srv"), &used, &[]));
        assert_eq!(text, "the files on n1:/srv/home would be deleted");
        assert_eq!(danger, Some(Danger::DeleteFiles));
    }

    #[test]
    fn a_pseudo_root_shortens_the_path_or_hides_it() {
        let rooted = seen(|f| f.pseudo_root = Some("/export".into()));
        let plan = create(&spec("/export"), &rooted, &[]).unwrap();
        let lines: Vec<&str> = plan.phases.iter().flat_map(|p| &p.steps).map(|s| s.why.as_str()).collect();
        assert!(lines.contains(&"mount n1:/home at /home"), "{lines:?}");
        let (text, danger) = why(create(&spec("/data"), &rooted, &[]));
        assert!(text.contains("n1 exports /export with fsid=0") && danger.is_none(), "{text}");
        assert_eq!(seen_by_clients("/exports/a", Some("/export")), None);
        assert_eq!(seen_by_clients("/export", Some("/export")), Some("/".into()));
        assert_eq!(seen_by_clients("/a/b", Some("/")), Some("/a/b".into()));
    }
}
