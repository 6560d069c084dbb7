//! Reads the facts of hosts from the output of `probe.sh`.

use crate::gluster_xml::{self, Cluster};
use crate::spec::{Spec, VolumeKind};
use homing_model::{Mount, NodeSet};
use std::collections::{BTreeMap, BTreeSet};

/// The script for `sh -c`. It changes nothing.
pub const PROBE: &str = include_str!("probe.sh");

/// A folder that may hold bytes of the volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Store {
    /// Absolute path.
    pub path: String,
    /// Whether it lies on the partition of `/`, `/usr`, `/var` or `/boot`.
    pub on_system_disk: bool,
    /// Whether a file system is mounted at it.
    pub is_mount_point: bool,
    /// Its content.
    pub content: StoreContent,
    /// Size of its file system, bytes.
    pub size: u64,
    /// Free bytes of that file system.
    pub free: u64,
    /// Entries in its index that other bricks of its set lack; `None` if it is no brick.
    pub behind: Option<u64>,
    /// The nearest folder above it that exists, or its own path if it exists.
    pub nearest: Option<String>,
}

/// The content of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreContent {
    /// It does not exist.
    #[default]
    Absent,
    /// It is empty.
    Empty,
    /// It has only folders.
    Folders,
    /// It has a brick's own records, but no file.
    Brick,
    /// It has files.
    Files,
    /// It has chunks of MooseFS.
    Chunks,
}

impl Store {
    /// Whether it holds chunks of MooseFS.
    pub fn holds_chunks(&self) -> bool {
        self.content == StoreContent::Chunks
    }
}

/// The state of the mount point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum MountPoint {
    /// It is free: absent, or an empty folder.
    #[default]
    Free,
    /// This volume is mounted there.
    Ours,
    /// Another file system is mounted there: `type source`.
    Other(String),
    /// It has files.
    Files,
}

/// The facts of one host.
#[derive(Clone, Debug, Default)]
pub struct HostFacts {
    /// Programs that are installed.
    pub programs: BTreeSet<String>,
    /// Version of GlusterFS, such as `10.3`, if its client is installed.
    pub gluster_version: Option<String>,
    /// Units that run.
    pub active: BTreeSet<String>,
    /// Whether glusterd's records name the volume (it need not run).
    pub glusterd_knows: bool,
    /// The queried folders.
    pub stores: Vec<Store>,
    /// The mount point.
    pub point: MountPoint,
    /// The volume's line in fstab: source, point, type, options.
    pub fstab: Option<[String; 4]>,
    /// The folder that this NFS server shows to clients of version 4 as `/`, if one is set (`fsid=0`).
    pub pseudo_root: Option<String>,
    /// The name by which an NFS server knows a client of the volume's export, by its name there.
    pub export_names: BTreeMap<String, String>,
    /// GlusterFS as this host sees it, if its daemon runs and belongs to the pool of the others.
    pub gluster: Option<Cluster>,
    /// The identity of its glusterd.
    pub gluster_uuid: Option<String>,
    /// Volumes in glusterd's records, whether it runs or not.
    pub glusterd_volumes: BTreeSet<String>,
    /// The pool that its daemon still has although the others have left it.
    pub stray: Option<StrayPool>,
    /// Texts of configuration files by name.
    pub texts: BTreeMap<String, String>,
}

/// A pool that one daemon alone remembers: its host was removed while it was down, and has come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StrayPool {
    /// Hosts that it counts as peers, and that do not know it.
    pub others: Vec<String>,
    /// Volumes that it still has.
    pub volumes: Vec<String>,
}

impl StrayPool {
    /// Describes the fault, without the host's name.
    pub fn text(&self) -> String {
        let others: NodeSet = self.others.iter().cloned().collect();
        let volumes = match &self.volumes[..] {
            [] => String::new(),
            [name] => format!(", with the volume {name}"),
            names => format!(", with the volumes {}", names.join(", ")),
        };
        format!("its glusterd remembers a pool that {others} removed it from{volumes}")
    }

    /// Describes the fault of a host with these facts. A mount by that daemon keeps the old volume, and has to go first.
    pub fn text_for(&self, spec: &Spec, host: &str, facts: &HostFacts) -> String {
        match facts.point {
            MountPoint::Ours => format!("{}; first homing volume unmount {} --on {host}", self.text(), spec.name),
            _ => self.text(),
        }
    }

    /// The command for a host that makes its daemon forget the pool. Files in its bricks stay.
    pub const CLEANING: &str = "systemctl stop glusterd; pkill -x glusterfsd; \
                                rm -rf /var/lib/glusterd/vols/* /var/lib/glusterd/peers/*; systemctl start glusterd";

    /// Returns the command for this machine that makes a host forget the pool.
    pub fn remedy(host: &str) -> String {
        crate::step::on_hosts(host, StrayPool::CLEANING)
    }
}

/// All queried hosts; a reason for each that did not answer.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The facts of each host, by its name.
    pub hosts: BTreeMap<String, Result<HostFacts, String>>,
}

impl Observed {
    /// Returns the facts of a host that answered.
    pub fn host(&self, name: &str) -> Option<&HostFacts> {
        self.hosts.get(name)?.as_ref().ok()
    }

    /// Returns the hosts that did not answer, each with the reason.
    pub fn silent(&self) -> Vec<(&str, &str)> {
        self.hosts.iter().filter_map(|(h, f)| Some((h.as_str(), f.as_ref().err()?.as_str()))).collect()
    }

    /// Takes away the views of daemons that remember a pool which all others have left: a volume that such a daemon
    /// alone knows does not exist. A daemon without peers and volumes is new, and disowns nobody.
    pub(crate) fn disown_strays(&mut self) {
        for (host, pool) in self.find_strays() {
            if let Some(Ok(facts)) = self.hosts.get_mut(&host) {
                (facts.gluster, facts.stray) = (None, Some(pool));
            }
        }
    }

    fn find_strays(&self) -> Vec<(String, StrayPool)> {
        let views = self.hosts.iter().filter_map(|(host, facts)| {
            let facts = facts.as_ref().ok()?;
            Some((host, facts.gluster_uuid.as_deref()?, facts.gluster.as_ref()?))
        });
        let views: Vec<(&String, &str, &Cluster)> = views.collect();
        let has = |cluster: &Cluster, uuid: &str| cluster.peers.iter().any(|peer| peer.uuid == uuid);
        let stray = |&(host, uuid, cluster): &(&String, &str, &Cluster)| {
            let peers = views
                .iter()
                .filter(|(_, other, view)| has(cluster, other) && !(view.peers.is_empty() && view.volumes.is_empty()));
            let peers: Vec<_> = peers.collect();
            let is_alone = !peers.is_empty() && !peers.iter().any(|(_, _, view)| has(view, uuid));
            is_alone.then(|| {
                let others = peers.iter().map(|(other, ..)| other.to_string()).collect();
                let volumes = cluster.volumes.iter().map(|volume| volume.name.clone()).collect();
                (host.clone(), StrayPool { others, volumes })
            })
        };
        views.iter().filter_map(stray).collect()
    }

    /// Returns the volumes that the hosts know: those of GlusterFS's daemons.
    pub fn volume_names(&self) -> BTreeSet<String> {
        let views = self.hosts.values().flatten().filter_map(|facts| facts.gluster.as_ref());
        views.flat_map(|cluster| &cluster.volumes).map(|volume| volume.name.clone()).collect()
    }

    /// Returns the hosts whose daemon remembers a pool that the others have left.
    pub fn strays(&self) -> impl Iterator<Item = (&str, &StrayPool)> {
        self.hosts.iter().filter_map(|(host, facts)| Some((host.as_str(), facts.as_ref().ok()?.stray.as_ref()?)))
    }

    pub(crate) fn is_mounted(&self, host: &str) -> bool {
        self.host(host).is_some_and(|f| f.point == MountPoint::Ours && f.fstab.is_some())
    }

    pub(crate) fn runs(&self, host: &str, unit: &str) -> bool {
        self.host(host).is_some_and(|f| f.active.contains(unit))
    }

    pub(crate) fn store(&self, host: &str, path: &str) -> Option<&Store> {
        self.host(host)?.stores.iter().find(|s| s.path == path)
    }
}

/// Returns the arguments of the probe for a host.
pub fn arguments(spec: &Spec, host: &str, more: &[String]) -> Vec<String> {
    let own = spec.places.iter().filter(|p| p.host == host).map(|p| spec.store(p));
    let mut argv: Vec<String> = ["sh", "-c", PROBE, "sh", &spec.name, &spec.mount].map(String::from).into();
    let mut stores: BTreeSet<String> = own.collect();
    stores.extend(more.iter().cloned());
    argv.extend(stores);
    argv
}

/// Reads the output of the probe. `None` if it is incomplete.
pub fn read(text: &str, spec: &Spec) -> Option<HostFacts> {
    let mut facts = HostFacts::default();
    let (mut mounted, mut ended) = (None, false);
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(key) = line.strip_prefix("begin ") {
            let end = format!("end {key}");
            let body: Vec<&str> = lines.by_ref().take_while(|l| *l != end).collect();
            facts.texts.insert(key.to_string(), body.join("\n"));
            continue;
        }
        let fields: Vec<&str> = line.split('\t').collect();
        match fields[..] {
            ["program", p] => drop(facts.programs.insert(p.into())),
            ["gluster-version", version] => facts.gluster_version = Some(version.into()),
            ["active", unit] => drop(facts.active.insert(unit.into())),
            ["pseudo-root", path] => facts.pseudo_root = Some(path.into()),
            ["export-name", client, name] => drop(facts.export_names.insert(client.into(), name.into())),
            ["glusterd-knows"] => facts.glusterd_knows = true,
            ["gluster-uuid", uuid] => facts.gluster_uuid = Some(uuid.into()),
            ["glusterd-volume", name] => drop(facts.glusterd_volumes.insert(name.into())),
            ["store", path, system, content, size, free, ref more @ ..] => facts.stores.push(Store {
                path: path.into(),
                on_system_disk: system == "yes",
                content: content_of(content),
                size: size.parse().unwrap_or(0),
                free: free.parse().unwrap_or(0),
                behind: more.first().and_then(|count| count.parse().ok()),
                nearest: more.get(1).map(|path| path.to_string()),
                is_mount_point: more.get(2).is_some_and(|word| *word == "mounted"),
            }),
            ["mounted", fstype, source] => {
                // The kernel escapes `mfs#n1` as `mfs\043n1`.
                let source = homing_mounts::unescape(source.as_bytes());
                mounted = Some((fstype.to_string(), String::from_utf8_lossy(&source).into_owned()));
            }
            ["point", "files"] => facts.point = MountPoint::Files,
            ["fstab", a, b, c, d] => facts.fstab = Some([a, b, c, d].map(String::from)),
            ["done"] => ended = true,
            _ => {}
        }
    }
    if let Some((fstype, source)) = mounted {
        facts.point = if is_ours(&fstype, &source, &facts, spec) {
            MountPoint::Ours
        } else {
            MountPoint::Other(format!("{fstype} {source}"))
        };
    }
    facts.gluster = gluster_xml::read(&facts.texts);
    ended.then_some(facts)
}

fn content_of(word: &str) -> StoreContent {
    match word {
        "empty" => StoreContent::Empty,
        "dirs" => StoreContent::Folders,
        "gluster" => StoreContent::Brick,
        "files" => StoreContent::Files,
        "chunks" => StoreContent::Chunks,
        _ => StoreContent::Absent,
    }
}

/// Whether a mount on a host may be the volume, judged by its type and source alone. Without the host's fstab and the
/// server's settings, the path of an NFS export is not known for certain.
pub fn may_be(spec: &Spec, host: &str, fstype: &str, source: &str) -> bool {
    use homing_mounts::FileSystemKind as Mounted;
    let mount = Mount { point: spec.mount.as_str().into(), fstype: fstype.into(), source: source.into() };
    match spec.kind {
        VolumeKind::Gluster => is_ours(fstype, source, &HostFacts::default(), spec),
        VolumeKind::Moosefs => Mounted::of(&mount) == Mounted::Moose,
        // The server mounts its own folder with bind.
        VolumeKind::Nfs if spec.places.iter().any(|place| place.host == host) => {
            Mounted::of(&mount) == Mounted::Local && source.contains('[')
        }
        VolumeKind::Nfs => {
            let exported = spec.places.first().map(|place| spec.store(place)).unwrap_or_default();
            let path = source.split_once(":/").map(|(_, path)| format!("/{path}"));
            Mounted::of(&mount) == Mounted::Nfs
                && path.is_some_and(|path| exported.ends_with(path.trim_end_matches('/')))
        }
    }
}

/// Whether a mount has the type and the volume of `spec`; a host may use any name for the server.
fn is_ours(fstype: &str, source: &str, facts: &HostFacts, spec: &Spec) -> bool {
    use homing_mounts::FileSystemKind as Mounted;
    let mount = Mount { point: spec.mount.as_str().into(), fstype: fstype.into(), source: source.into() };
    let mounted = Mounted::of(&mount);
    match spec.kind {
        VolumeKind::Gluster => {
            let volume = source.rsplit_once(':').map(|(_, volume)| volume.trim_start_matches('/'));
            mounted == Mounted::Gluster && volume == Some(spec.name.as_str())
        }
        VolumeKind::Moosefs => mounted == Mounted::Moose,
        VolumeKind::Nfs => {
            let exported = spec.places.first().map(|p| spec.store(p)).unwrap_or_default();
            // Below a pseudo-root, the exported path is shorter than the path of the folder.
            let line = facts.fstab.as_ref().is_some_and(|l| l[0] == source);
            let remote = mounted == Mounted::Nfs && (line || source.ends_with(&format!(":{exported}")));
            remote || (mounted != Mounted::Nfs && facts.fstab.as_ref().is_some_and(|l| l[3].contains("bind")))
        }
    }
}

/// Returns a command that prints the names of the volumes that a host knows, one per line.
pub fn names_question() -> Vec<String> {
    // Without its daemon, gluster prints an error message in place of names.
    let text = r#"found=$(gluster --mode=script volume list 2>/dev/null) && printf '%s\n' "$found" | grep -v '^No volumes'
        grep -o 'x-homing\.[A-Za-z0-9_-]*' /etc/fstab 2>/dev/null | cut -d. -f2; true"#;
    crate::step::script(text, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::tests::spec;

    #[test]
    fn another_file_system_at_the_mount_point_is_not_the_volume() {
        let gluster = spec(&["n1", "n2"], 2);
        assert!(
            may_be(&gluster, "n1", "fuse.glusterfs", "n2:/data") && may_be(&gluster, "n1", "fuse.glusterfs", "n2:data")
        );
        assert!(
            !may_be(&gluster, "n1", "fuse.glusterfs", "n2:/other") && !may_be(&gluster, "n1", "ext4", "/dev/loop0")
        );
        let nfs = Spec { kind: VolumeKind::Nfs, ..spec(&["n1"], 1) };
        assert!(may_be(&nfs, "n2", "nfs4", "n1:/brick/data") && may_be(&nfs, "n2", "nfs4", "n1:/data"));
        assert!(!may_be(&nfs, "n2", "nfs4", "n1:/other") && !may_be(&nfs, "n2", "ext4", "/dev/sda1[/brick/data]"));
        assert!(may_be(&nfs, "n1", "ext4", "/dev/sda1[/brick/data]") && !may_be(&nfs, "n1", "ext4", "/dev/sdb1"));
    }
}
