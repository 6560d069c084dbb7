//! The kernel's NFS server: exports one host's folder to all clients.

use crate::export::{ExportOptions, ExportedTo};
use crate::mount::{self, FstabLine};
use crate::observe::{HostFacts, Observed, StoreContent};
use crate::refuse::{Danger, Refusal, lifted, of_silent};
use crate::spec::Spec;
use crate::step::{CommandStep, VolumePlan, script};

/// Writes an export file of its own: other exports stay as they are. A line without a client would let in all machines.
/// Succeeds only if the server then has the folder in its table.
const EXPORT: &str = r#"
    name=$1 store=$2 words=$3; shift 3
    mkdir -p -- "$store" /etc/exports.d || exit
    { [ $# -gt 0 ] || printf '# no client: '; printf '%s' "$store"; for c; do printf ' %s(%s)' "$c" "$words"; done; echo; } \
    > "/etc/exports.d/$name.exports.new" &&
    mv -f "/etc/exports.d/$name.exports.new" "/etc/exports.d/$name.exports" || exit
    if ! [ "$(cat /proc/fs/nfsd/threads 2>/dev/null || echo 0)" -gt 0 ]; then
    systemctl start nfs-server || exit
    systemctl is-enabled --quiet nfs-server || systemctl add-wants --quiet multi-user.target nfs-server || true
    fi
    PATH=$PATH:/usr/sbin:/sbin
    exportfs -ra || exit
    [ $# -eq 0 ] || exportfs -s | grep -qF -- "$store " || { echo "exportfs -s does not list $store" >&2; exit 1; }
"#;
/// Writes the former line of the export again: `NAME LINE`.
const EXPORT_BACK: &str = r#"
    printf '%s\n' "$2" > "/etc/exports.d/$1.exports.new" &&
    mv -f "/etc/exports.d/$1.exports.new" "/etc/exports.d/$1.exports" || exit
    PATH=$PATH:/usr/sbin:/sbin exportfs -ra
"#;
const UNEXPORT: &str = r#"
    rm -f "/etc/exports.d/$1.exports"; PATH=$PATH:/usr/sbin:/sbin
    ! command -v exportfs >/dev/null || exportfs -ra || exit
    [ ! -d "$2" ] || rmdir -- "$2" 2>/dev/null || true
"#;
const REMOVE: &str = r#"
    if mountpoint -q -- "$1"; then find "$1" -xdev -mindepth 1 -delete; exit; fi
    [ ! -d "$1" ] || rm -rf --one-file-system -- "$1"
"#;

const NOTES: &[&str] = &[
    "the export names each client, and answers a write when it is safe on the server's disk",
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
    refusals.extend(hidden_export(spec, seen, &spec.export));
    refusals.extend(mount::refusals(spec, seen));
    lifted(refusals, allowed)?;
    let mut plan = VolumePlan::default();
    let_in(&mut plan, spec, seen);
    mount::mount(&mut plan, spec, seen, |h| mount_line(spec, seen, h));
    Ok(plan)
}

/// Returns the machines that the export names: the clients but the server itself, and those of its options.
fn exported_to(spec: &Spec) -> Vec<&str> {
    let server = spec.places.first().map_or("", |place| place.host.as_str());
    let clients = spec.clients.iter().filter(|client| *client != server);
    clients.chain(&spec.export.clients).map(String::as_str).collect()
}

/// A difference between an export and its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExportFault {
    /// The server does not let this client in.
    Missing(String),
    /// The server maps users of this client in another way: its present options.
    Differs(String, ExportOptions),
    /// The server lets in a machine that the record does not have.
    Other(String),
}

/// Compares lines of an exports table with the record.
fn faults_in(spec: &Spec, facts: &HostFacts, table: &str) -> Vec<ExportFault> {
    let Some(place) = spec.places.first() else { return Vec::new() };
    let there = ExportedTo::read(table, &spec.store(place));
    let is_client = |wanted: &str, client: &str| {
        client == wanted || facts.export_names.get(wanted).is_some_and(|name| name == client)
    };
    let wanted = exported_to(spec);
    let mut faults = Vec::new();
    for client in &wanted {
        match there.iter().find(|exported| is_client(client, &exported.client)) {
            None => faults.push(ExportFault::Missing(client.to_string())),
            Some(exported) if !exported.fits(&spec.export) => {
                faults.push(ExportFault::Differs(client.to_string(), exported.options()));
            }
            Some(_) => {}
        }
    }
    let others = there.iter().filter(|exported| !wanted.iter().any(|client| is_client(client, &exported.client)));
    faults.extend(others.map(|exported| ExportFault::Other(exported.client.clone())));
    faults
}

/// Compares the table of a server that runs with the record.
pub(crate) fn faults(spec: &Spec, seen: &Observed) -> Vec<ExportFault> {
    let server = spec.places.first().map_or("", |place| place.host.as_str());
    let Some(facts) = seen.host(server).filter(|_| seen.runs(server, "nfs-server")) else { return Vec::new() };
    facts.texts.get("exported").map(|table| faults_in(spec, facts, table)).unwrap_or_default()
}

/// Whether the server answers and has the export of the volume.
pub(crate) fn is_exported(spec: &Spec, seen: &Observed) -> bool {
    let facts = spec.places.first().and_then(|place| seen.host(&place.host));
    facts.is_some_and(|facts| facts.texts.contains_key("exports"))
}

/// Exports to all clients, if the export does not name them all with their options, or the server does not run.
pub(crate) fn let_in(plan: &mut VolumePlan, spec: &Spec, seen: &Observed) {
    let Some(place) = spec.places.first() else { return };
    let (store, facts) = (spec.store(place), seen.host(&place.host));
    let text = facts.and_then(|facts| facts.texts.get("exports"));
    let of_file = facts.zip(text).map(|(facts, text)| faults_in(spec, facts, text)).unwrap_or_default();
    // Others in the table may be those of another file. In the volume's own file there are none.
    let lacks = |faults: &[ExportFault]| faults.iter().any(|fault| !matches!(fault, ExportFault::Other(_)));
    if text.is_some() && of_file.is_empty() && seen.runs(&place.host, "nfs-server") && !lacks(&faults(spec, seen)) {
        return;
    }
    let words = spec.export.words();
    let mut args = vec![spec.name.as_str(), &store, &words];
    args.extend(exported_to(spec));
    let mut why = format!("export {store}");
    if !spec.export.is_default() {
        why += &format!(" with {}", spec.export);
    }
    let step = CommandStep::new(&place.host, script(EXPORT, &args), why);
    let back = match text.map(|text| text.trim()) {
        None => script(UNEXPORT, &[&spec.name, &store]),
        Some(line) => script(EXPORT_BACK, &[&spec.name, line]),
    };
    plan.phase("export", vec![step.undo(back)]);
    plan.notes = NOTES.iter().map(|n| n.to_string()).chain(spec.export.risks()).collect();
}

/// Refuses options that would not be in force. Clients of version 4 walk from the root with `fsid=0` to a folder of the
/// same file system, and keep the export of the root. Measured: root was not squashed below a root with
/// `no_root_squash`.
fn hidden_export(spec: &Spec, seen: &Observed, export: &ExportOptions) -> Option<Refusal> {
    let place = spec.places.first()?;
    let (store, host) = (spec.store(place), &place.host);
    let root = seen.host(host)?.pseudo_root.as_deref().filter(|root| !export.is_default() && *root != store)?;
    let is_own = seen.store(host, &store).is_some_and(|there| there.is_mount_point);
    (!is_own).then(|| {
        Refusal::never(format!(
            "{host} exports {root} with fsid=0; clients of version 4 reach {store} by that export, with its options. \
             Remove fsid=0 from /etc/exports, or mount a file system of its own at {store}"
        ))
    })
}

/// Exports the volume with other options.
pub fn set_export(spec: &Spec, seen: &Observed, export: &ExportOptions) -> Result<VolumePlan, Vec<Refusal>> {
    let server = spec.places.first().map_or("", |place| place.host.as_str());
    let silent = of_silent(seen, |host| host == server).into_iter();
    lifted(silent.chain(hidden_export(spec, seen, export)).collect(), &[])?;
    let mut plan = VolumePlan::default();
    let_in(&mut plan, &Spec { export: export.clone(), ..spec.clone() }, seen);
    plan.notes.retain(|note| !NOTES.contains(&note.as_str()));
    Ok(plan)
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
            options: Default::default(),
            export: ExportOptions::default(),
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
            f.texts.insert("exported".into(), format!("/srv/home  n2({TABLE})"));
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

    /// A server that exports the volume to n2, with these words in its file and in its table.
    fn serving(file: &str, table: &str) -> Observed {
        seen(|f| {
            f.texts.insert("exports".into(), format!("/srv/home n2({file})"));
            f.texts.insert("exported".into(), format!("/srv/home  n2.lan({table})\n"));
            f.export_names.insert("n2".into(), "n2.lan".into());
            f.active.insert("nfs-server".into());
        })
    }

    const DEFAULT: &str = "rw,no_subtree_check,sec=sys";
    const TABLE: &str = "sync,wdelay,hide,no_subtree_check,sec=sys,rw,secure,root_squash,no_all_squash";

    #[test]
    fn the_export_in_force_is_compared_with_the_record_by_the_servers_own_names() {
        let plain = spec("/srv");
        assert_eq!(faults(&plain, &serving(DEFAULT, TABLE)), []);
        let open = TABLE.replace("root_squash", "no_root_squash");
        let found = faults(&plain, &serving(DEFAULT, &open));
        assert!(
            matches!(&found[..], [ExportFault::Differs(n2, has)] if n2 == "n2" && has.squash == crate::Squash::None)
        );
        let mut more = plain.clone();
        more.export.clients.insert("10.1.0.0/24".into());
        assert_eq!(faults(&more, &serving(DEFAULT, TABLE)), [ExportFault::Missing("10.1.0.0/24".into())]);
        let mut alone = plain.clone();
        alone.clients.pop();
        assert_eq!(faults(&alone, &serving(DEFAULT, TABLE)), [ExportFault::Other("n2.lan".into())]);
        let mut withdrawn = serving(DEFAULT, TABLE);
        let facts = withdrawn.hosts.get_mut("n1").unwrap().as_mut().unwrap();
        facts.texts.insert("exported".into(), String::new());
        facts.texts.remove("exports");
        assert_eq!(faults(&plain, &withdrawn), [ExportFault::Missing("n2".into())], "its file is gone");
        let mut stopped = serving(DEFAULT, TABLE);
        stopped.hosts.get_mut("n1").unwrap().as_mut().unwrap().active.clear();
        assert_eq!(faults(&more, &stopped), [], "the server that is down is the cause");
    }

    /// exports(5) lets in everybody where a line has no client.
    #[test]
    fn a_volume_without_clients_is_exported_to_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let text = EXPORT.replace("/etc/exports.d", folder.path().to_str().unwrap());
        let store = folder.path().join("store");
        let line = |clients: &[&str]| {
            let args = [&["home", store.to_str().unwrap(), "rw"], clients].concat();
            let argv = script(text.split("if ! [").next().unwrap(), &args);
            let ended = std::process::Command::new(&argv[0]).args(&argv[1..]).status().unwrap();
            assert!(ended.success());
            std::fs::read_to_string(folder.path().join("home.exports")).unwrap()
        };
        assert_eq!(line(&["n2", "n3"]), format!("{} n2(rw) n3(rw)\n", store.display()));
        assert_eq!(line(&[]), format!("# no client: {}\n", store.display()));
    }

    #[test]
    fn other_options_are_exported_with_their_risk_and_the_undo_writes_the_former_line() {
        let open = ExportOptions::parse(&["no_root_squash".into(), "client=10.1.0.0/24".into()]).unwrap();
        let plan = set_export(&spec("/srv"), &serving(DEFAULT, TABLE), &open).unwrap();
        let step = &plan.phases[0].steps[0];
        let args: Vec<&str> = step.argv[4..].iter().map(String::as_str).collect();
        assert_eq!(args, ["home", "/srv/home", "rw,no_subtree_check,sec=sys,no_root_squash", "n2", "10.1.0.0/24"]);
        assert_eq!(step.undo.as_ref().unwrap()[4..], ["home", "/srv/home n2(rw,no_subtree_check,sec=sys)"]);
        assert!(plan.notes.iter().any(|note| note.starts_with("no_root_squash: root of each client")), "{plan:?}");
        assert!(set_export(&spec("/srv"), &serving(DEFAULT, TABLE), &ExportOptions::default()).unwrap().is_empty());
        // The file is as wanted, and the table in force is not.
        let stale = serving(DEFAULT, &TABLE.replace("root_squash", "no_root_squash"));
        assert!(!set_export(&spec("/srv"), &stale, &ExportOptions::default()).unwrap().is_empty());
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
        let mut open = spec("/export");
        open.export.squash = crate::Squash::None;
        let text = why(create(&open, &rooted, &[])).0;
        assert!(text.contains("reach /export/home by that export, with its options"), "{text}");
        let own = seen(|f| {
            f.pseudo_root = Some("/export".into());
            f.stores = vec![Store { path: "/export/home".into(), is_mount_point: true, ..Store::default() }];
        });
        assert!(create(&open, &own, &[]).is_ok());
        assert_eq!(seen_by_clients("/exports/a", Some("/export")), None);
        assert_eq!(seen_by_clients("/export", Some("/export")), Some("/".into()));
        assert_eq!(seen_by_clients("/a/b", Some("/")), Some("/a/b".into()));
    }
}
