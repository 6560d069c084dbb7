//! The state of a volume, host by host and as a whole: for people, for `homing check` and for Prometheus.

use crate::drive::Drive;
use crate::health::{self, VolumeFinding};
use crate::observe::{MountPoint, Store, StrayPool};
use crate::step::on_hosts;
use crate::{Observed, Spec, VolumeKind, VolumeRecord, gluster, stopped_units, units};
use homing_model::Failure;
use homing_steps::Executor;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The state of one of its hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OnHost {
    /// Its name.
    pub host: String,
    /// `ok`, `down`, `unavail`, or `-` if it needs no daemon.
    pub daemon: &'static str,
    /// `mounted`, `unmounted`, `other`, or `-` if it is no client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount: Option<&'static str>,
    /// Whether it serves and mounts its part.
    pub well: bool,
    /// Its faults, the first cause first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<HostFault>,
    /// The reason why it did not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A fault of a host of a volume, for `homing volume status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostFault {
    /// The fault in one line, with the host's name.
    pub what: String,
    /// A command for this machine that repairs it, or shows more.
    pub remedy: String,
}

/// The kind of a fault of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostFaultKind {
    /// The state of its part is unknown, for this reason.
    Unknown(String),
    /// Its daemon belongs to a pool of other hosts, as this text describes.
    StrayPool(String),
    /// Units that do not run.
    Stopped(Vec<&'static str>),
    /// This is mounted at the mount point, and not the volume.
    OtherMount(String),
    /// The volume is not mounted.
    Unmounted,
}

/// Returns the faults of a host, the first cause first. Status and `homing check` report these.
pub fn host_faults(spec: &Spec, seen: &Observed, host: &str) -> Vec<HostFaultKind> {
    let Some(facts) = seen.host(host) else {
        let why = seen.hosts.get(host).and_then(|facts| facts.as_ref().err());
        return vec![HostFaultKind::Unknown(why.cloned().unwrap_or_default())];
    };
    let stray = facts.stray.as_ref().map(|pool| HostFaultKind::StrayPool(pool.text_for(spec, host, facts)));
    let down = stopped_units(spec, host, facts);
    let stopped = (!down.is_empty()).then_some(HostFaultKind::Stopped(down));
    let is_client = spec.clients.iter().any(|client| client == host);
    let mount = match &facts.point {
        _ if !is_client => None,
        MountPoint::Ours => None,
        MountPoint::Other(other) => Some(HostFaultKind::OtherMount(other.clone())),
        MountPoint::Free | MountPoint::Files => Some(HostFaultKind::Unmounted),
    };
    [stray, stopped, mount].into_iter().flatten().collect()
}

/// Returns the command that shows the cause of a foreign mount, for the host.
pub fn foreign_mount_look(point: &str) -> String {
    format!("findmnt {point}; grep {point} /etc/fstab")
}

impl HostFault {
    fn of(spec: &Spec, host: &str, kind: &HostFaultKind) -> HostFault {
        let (name, point) = (&spec.name, &spec.mount);
        let (what, remedy) = match kind {
            // The reason is in the line of the host.
            HostFaultKind::Unknown(_) => (format!("{host} does not answer"), on_hosts(host, "true")),
            HostFaultKind::StrayPool(text) => (format!("{host}: {text}"), StrayPool::remedy(host)),
            HostFaultKind::Stopped(units) => (
                format!("{} does not run on {host}", units.join(", ")),
                on_hosts(host, &format!("systemctl start {}", units.join(" "))),
            ),
            HostFaultKind::OtherMount(other) => (
                format!("{other} is mounted at {point} on {host}, and not the volume"),
                on_hosts(host, &foreign_mount_look(point)),
            ),
            HostFaultKind::Unmounted => {
                (format!("{point} is not mounted on {host}"), format!("homing volume mount {name} --on {host}"))
            }
        };
        HostFault { what, remedy }
    }
}

impl OnHost {
    /// Derives the state of a host from its faults.
    pub fn of(spec: &Spec, seen: &Observed, host: &str) -> OnHost {
        let kinds = host_faults(spec, seen, host);
        let is_client = spec.clients.iter().any(|client| client == host);
        let (mut daemon, mut mount) = ("ok", Some(if is_client { "mounted" } else { "-" }));
        if units(spec, host).is_empty() {
            daemon = "-";
        }
        for kind in &kinds {
            match kind {
                HostFaultKind::Unknown(_) => (daemon, mount) = ("unavail", None),
                HostFaultKind::StrayPool(_) => {}
                HostFaultKind::Stopped(_) => daemon = "down",
                HostFaultKind::OtherMount(_) => mount = Some("other"),
                HostFaultKind::Unmounted => mount = Some("unmounted"),
            }
        }
        let why = seen.hosts.get(host).and_then(|facts| facts.as_ref().err()).cloned();
        let faults = kinds.iter().map(|kind| HostFault::of(spec, host, kind)).collect();
        OnHost { host: host.into(), daemon, mount, well: kinds.is_empty(), faults, why }
    }
}

/// Returns the movements of files that its daemons know of.
pub fn tasks(spec: &Spec, seen: &Observed) -> Vec<String> {
    let views = seen.hosts.values().flatten().filter_map(|f| f.gluster.as_ref());
    let tasks = views.flat_map(|c| c.tasks.iter().flatten()).filter(|t| t.volume == spec.name);
    let lines: BTreeSet<String> = tasks.map(|t| format!("{} ({})", t.what.to_lowercase(), t.status)).collect();
    lines.into_iter().collect()
}

/// Returns the stores with its bytes: the host, the folder and its disk.
pub fn stores(spec: &Spec, seen: &Observed) -> Vec<(String, Store)> {
    let own = gluster::volume(spec, seen).map(|v| v.bricks.clone()).unwrap_or_default();
    let mut rows = Vec::new();
    for (host, facts) in seen.hosts.iter().filter_map(|(h, f)| Some((h, f.as_ref().ok()?))) {
        let is_own = |path: &str| own.is_empty() || own.iter().any(|b| b.host == *host && b.path == path);
        rows.extend(facts.stores.iter().filter(|s| is_own(&s.path)).map(|store| (host.clone(), store.clone())));
    }
    rows
}

/// An option of a volume whose value is not the default.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedOption {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// The default; `None` if there is none, or if the file system did not name it.
    pub default: Option<String>,
    /// Whether homing sets it on each volume.
    pub recommended: bool,
}

/// Returns the options that differ from their default. `known`: the defaults by name.
pub fn changed_options(spec: &Spec, seen: &Observed, known: &BTreeMap<String, String>) -> Vec<ChangedOption> {
    let Some(there) = gluster::volume(spec, seen) else { return Vec::new() };
    let changed = |(name, value): (&String, &String)| {
        let default = known.get(name).filter(|default| !default.is_empty() && *default != "(null)").cloned();
        let differs = !default.as_ref().is_some_and(|default| gluster::options::is_same(default, value));
        let recommended = gluster::recommended(name, value) && !spec.options.contains_key(name);
        differs.then(|| ChangedOption { name: name.clone(), value: value.clone(), default, recommended })
    };
    there.options.iter().filter_map(changed).collect()
}

impl Drive {
    /// Returns the options of the volume that differ from their default.
    pub fn changed_options(&self, spec: &Spec, seen: &Observed) -> Vec<ChangedOption> {
        match spec.kind {
            VolumeKind::Gluster => changed_options(spec, seen, &self.known_options(spec, seen)),
            VolumeKind::Moosefs | VolumeKind::Nfs => Vec::new(),
        }
    }

    /// Returns the findings on it as a whole.
    pub fn findings(&self, spec: &Spec, seen: &Observed) -> Vec<VolumeFinding> {
        let ask = |question| self.executor.programs(&[question]).pop()?.ok();
        let answer = health::question(spec, seen).and_then(ask);
        let mut found = health::findings(spec, seen, answer.as_deref());
        let behind = health::behind_question(spec, seen).and_then(ask);
        found.extend(health::behind(spec, seen, behind.as_deref(), &found));
        // No answer is no agreement.
        let options = health::options_question(spec, seen).map(|question| ask(question).unwrap_or_default());
        found.extend(health::differences(spec, seen, options.as_deref()));
        // Advice comes last.
        found.sort_by_key(|finding| !finding.ill);
        found
    }
}

/// A volume in numbers, for monitoring programs.
pub struct Figures {
    /// Its name.
    pub name: String,
    /// Its kind: GlusterFS, MooseFS or NFS.
    pub kind: String,
    /// Its mount point.
    pub mount: String,
    /// Its hosts, and whether each serves and mounts its part.
    pub hosts: Vec<(String, bool)>,
    /// Its stores: the host, the folder and its disk.
    pub stores: Vec<(String, Store)>,
    /// Number of findings about files that cannot be read, or have too few copies.
    pub errors: usize,
    /// Number of findings that are advice.
    pub warnings: usize,
}

impl Figures {
    /// Queries its hosts, except the ones that are known to be silent.
    pub fn of(drive: &Drive, record: VolumeRecord, silent: &[&str]) -> Result<Figures, Failure> {
        let spec = record.spec;
        let (quiet, asked): (Vec<String>, Vec<String>) =
            spec.hosts().into_iter().partition(|host| silent.contains(&host.as_str()));
        let seen = drive.observe(&spec, &asked);
        let well = asked.iter().map(|host| (host.clone(), OnHost::of(&spec, &seen, host).well));
        let hosts = well.chain(quiet.iter().map(|host| (host.clone(), false))).collect();
        let found = drive.findings(&spec, &seen);
        let errors = found.iter().filter(|finding| finding.ill).count();
        Ok(Figures {
            kind: spec.kind.to_string(),
            mount: spec.mount.clone(),
            hosts,
            stores: stores(&spec, &seen),
            errors,
            warnings: found.len() - errors,
            name: spec.name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostFacts, StorageFolder};

    #[test]
    fn options_that_differ_from_their_default_are_listed() {
        let mut spec = crate::gluster::tests::four();
        let mut seen = crate::gluster::tests::running(&spec, "");
        let values = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
        };
        let options = values(&[
            ("performance.io-thread-count", "8"),
            ("performance.io-cache", "true"),
            ("nfs.disable", "on"),
            ("network.ping-timeout", "10"),
            ("performance.write-behind", "on"),
        ]);
        let there = seen.hosts.values_mut().flatten().filter_map(|facts| facts.gluster.as_mut());
        there.flat_map(|cluster| &mut cluster.volumes).for_each(|volume| volume.options = options.clone());
        let known = values(&[
            ("performance.io-thread-count", "16"),
            ("performance.io-cache", "off"),
            ("network.ping-timeout", "42"),
            ("performance.write-behind", "on"),
            ("nfs.disable", "(null)"),
        ]);
        let list = |spec: &Spec| {
            let all = changed_options(spec, &seen, &known).into_iter();
            all.map(|one| (one.name, one.default.unwrap_or_default(), one.recommended)).collect::<Vec<_>>()
        };
        let row = |name: &str, default: &str, own| (name.to_string(), default.to_string(), own);
        let rows = [
            row("network.ping-timeout", "42", true),
            row("nfs.disable", "", true),
            row("performance.io-cache", "off", false),
            row("performance.io-thread-count", "16", false),
        ];
        assert_eq!(list(&spec), rows);
        spec.options.insert("network.ping-timeout".into(), "10".into());
        assert!(!list(&spec)[0].2, "the user wants it");
    }

    #[test]
    fn a_host_is_well_when_it_serves_and_mounts_what_it_is_to() {
        let place = StorageFolder { host: "n1".into(), path: "/b".into() };
        let spec = Spec {
            kind: VolumeKind::Nfs,
            places: vec![place],
            clients: vec!["n2".into()],
            ..crate::adopt::unknown("data", &["n1".into(), "n2".into()])
        };
        let serves = HostFacts { active: ["nfs-server".to_string()].into(), ..HostFacts::default() };
        let mounts = HostFacts { point: MountPoint::Ours, ..HostFacts::default() };
        let hosts = [("n1", Ok(serves)), ("n2", Ok(mounts)), ("n3", Err("no route".into()))];
        let seen = Observed { hosts: hosts.map(|(host, facts)| (host.to_string(), facts)).into() };
        let of = |host| OnHost::of(&spec, &seen, host);
        assert_eq!((of("n1").daemon, of("n1").mount, of("n1").well), ("ok", Some("-"), true));
        assert_eq!((of("n2").daemon, of("n2").mount, of("n2").well), ("-", Some("mounted"), true));
        assert_eq!((of("n3").daemon, of("n3").well, of("n3").why), ("unavail", false, Some("no route".into())));
        let idle = Observed { hosts: [("n1".to_string(), Ok(HostFacts::default()))].into() };
        assert_eq!((OnHost::of(&spec, &idle, "n1").daemon, OnHost::of(&spec, &idle, "n1").well), ("down", false));
        let commands = |of: OnHost| of.faults.into_iter().map(|fault| fault.remedy).collect::<Vec<_>>();
        assert_eq!(commands(OnHost::of(&spec, &idle, "n1")), ["homing exec -w n1 'systemctl start nfs-server'"]);
        let bare = Observed { hosts: [("n2".to_string(), Ok(HostFacts::default()))].into() };
        assert_eq!(commands(OnHost::of(&spec, &bare, "n2")), ["homing volume mount data --on n2"]);
        assert_eq!(commands(of("n3")), ["homing exec -w n3 true"]);
        assert!(commands(of("n1")).is_empty() && commands(of("n2")).is_empty());
        let json = serde_json::to_string(&of("n1")).unwrap();
        assert_eq!(json, r#"{"host":"n1","daemon":"ok","mount":"-","well":true}"#);
    }
}
