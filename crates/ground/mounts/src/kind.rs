//! The kind of a mount, from the only table of file-system types.

use crate::ceph_source as ceph;
use crate::source::{MOOSEFS, plain_source};
use crate::sshfs::{SSHFS, is_same, names_a_host};
use homing_model::Mount;

/// Types whose files other hosts may see, and for which homing has no further support.
const OTHERS: [&str; 15] = [
    "9p", "acfs", "afs", "beegfs", "cifs", "cvfs", "gfs2", "gpfs", "ocfs2", "orangefs", "panfs", "pvfs2", "smb3",
    "virtiofs", "wekafs",
];
/// Types that look like FUSE but belong to this host: its own disks, or no files at all. Types that are neither here
/// nor FUSE belong to this host too.
const OWN_FUSE: [&str; 8] = [
    "fuseblk",
    "fusectl",
    "fuse.fuse-overlayfs",
    "fuse.gvfsd-fuse",
    "fuse.lxcfs",
    "fuse.portal",
    "fuse.snapfuse",
    "fuse.squashfuse",
];

/// All kinds, in the order in which [`FileSystemKind::of`] compares their types with that of a mount.
const KINDS: [FileSystemKind; FileSystemKind::Other as usize + 1] = [
    FileSystemKind::Gluster,
    FileSystemKind::Moose,
    FileSystemKind::Lustre,
    FileSystemKind::Ceph,
    FileSystemKind::Nfs,
    FileSystemKind::Sshfs,
    FileSystemKind::Local,
    FileSystemKind::Site,
    FileSystemKind::Other,
];

/// Returns extended regular expressions for scripts on hosts without homing. The first matches types that other hosts
/// may see; the second matches the types among them that still belong to one host.
pub fn network_patterns() -> [String; 2] {
    let one_of = |types: Vec<&str>| types.join("|").replace('.', "[.]");
    let types = KINDS.into_iter().filter(|kind| kind.is_network()).flat_map(FileSystemKind::types);
    // The pattern matches each type of FUSE by its beginning.
    let named = types.copied().filter(|fstype| !fstype.starts_with("fuse")).collect();
    let own = FileSystemKind::Local.types().to_vec();
    [format!("^({}|fuse.*)$", one_of(named)), format!("^({})$", one_of(own))]
}

/// The kind of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileSystemKind {
    /// GlusterFS, mounted by FUSE.
    Gluster,
    /// MooseFS, mounted by FUSE.
    Moose,
    /// Lustre.
    Lustre,
    /// CephFS, by the kernel's client or by ceph-fuse.
    Ceph,
    /// NFS of any version.
    Nfs,
    /// sshfs, whose source names a host: one server, as with NFS.
    Sshfs,
    /// Disks and memory of this host.
    Local,
    /// A file system of unknown type for which the site has named a command that finds the bytes. The mount table
    /// does not show this; only the code that has the command knows it.
    Site,
    /// Any other file system whose files other hosts may see. It is the last kind: the compiler counts `KINDS` by it. homing can neither find its bytes nor compare two of
    /// its mounts.
    Other,
}

impl FileSystemKind {
    /// Returns the types in the mount table by which a mount of this kind is recognized.
    fn types(self) -> &'static [&'static str] {
        match self {
            FileSystemKind::Gluster => &["fuse.glusterfs", "glusterfs"],
            FileSystemKind::Moose => &["fuse.mfs", "fuse.moosefs", "moosefs"],
            FileSystemKind::Lustre => &["lustre"],
            FileSystemKind::Ceph => &[ceph::KERNEL, ceph::FUSE],
            FileSystemKind::Nfs => &["nfs", "nfs4"],
            FileSystemKind::Sshfs => &[SSHFS],
            FileSystemKind::Local => &OWN_FUSE,
            // No type of the mount table: the site names it.
            FileSystemKind::Site => &[],
            FileSystemKind::Other => &OTHERS,
        }
    }

    /// Returns the kind by the type and the source in the mount table.
    pub fn of(mount: &Mount) -> FileSystemKind {
        let fstype = mount.fstype.as_str();
        match fstype {
            "fuse" if mount.source.0.starts_with(MOOSEFS) => return FileSystemKind::Moose,
            SSHFS if !names_a_host(&mount.source.0) => return FileSystemKind::Other,
            _ => {}
        }
        // Authors of FUSE file systems choose any name. Local includes `autofs`: the file system that automount
        // mounts later has a line of its own.
        let unknown = if fstype.starts_with("fuse") { FileSystemKind::Other } else { FileSystemKind::Local };
        KINDS.into_iter().find(|kind| kind.types().contains(&fstype)).unwrap_or(unknown)
    }

    /// Whether other hosts may see the same files.
    pub fn is_network(self) -> bool {
        self != FileSystemKind::Local
    }

    /// Whether the mounts show which hosts see a volume of this kind. For other kinds (a bindfs) each host has
    /// sources of its own.
    pub fn is_comparable(self) -> bool {
        !matches!(self, FileSystemKind::Local | FileSystemKind::Other)
    }
}

/// Whether two mounts are the same volume at the same place, as far as their sources show. GlusterFS clients may name
/// different servers of one volume, and MooseFS clients may name one master differently. So there the part after the
/// colon decides.
pub fn same_volume(a: &Mount, b: &Mount) -> bool {
    // One host may mount the volume by the kernel, another by ceph-fuse.
    if [a, b].iter().all(|m| FileSystemKind::of(m) == FileSystemKind::Ceph) {
        return a.point == b.point && ceph::is_same(&a.source.0, &b.source.0);
    }
    if a.point != b.point || a.fstype != b.fstype {
        return false;
    }
    let volume = |m: &Mount| {
        let text = String::from_utf8_lossy(&m.source.0).into_owned();
        text.rsplit_once(':').map_or(text.clone(), |(_, v)| v.trim_start_matches('/').to_string())
    };
    let many_names =
        [a, b].iter().all(|m| matches!(FileSystemKind::of(m), FileSystemKind::Gluster | FileSystemKind::Moose));
    let one_folder =
        [a, b].iter().all(|m| FileSystemKind::of(m) == FileSystemKind::Sshfs) && is_same(&a.source.0, &b.source.0);
    a.source == b.source || one_folder || (many_names && volume(a) == volume(b))
}

/// Returns a volume's name for people: `gluster:n1:/data`, `nfs:nas:/export`, `local:/dev/sda1`.
pub fn volume_name(mount: &Mount) -> String {
    let source = plain_source(mount);
    match FileSystemKind::of(mount) {
        FileSystemKind::Gluster => format!("gluster:{source}"),
        FileSystemKind::Moose => format!("moosefs:{source}"),
        FileSystemKind::Lustre => format!("lustre:{source}"),
        FileSystemKind::Ceph => format!("cephfs:{source}"),
        FileSystemKind::Nfs => format!("nfs:{source}"),
        FileSystemKind::Sshfs => format!("sshfs:{source}"),
        FileSystemKind::Local => format!("local:{source}"),
        FileSystemKind::Site | FileSystemKind::Other => format!("{}:{source}", mount.fstype),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(point: &str, fstype: &str, source: &str) -> Mount {
        Mount { point: point.into(), fstype: fstype.into(), source: source.into() }
    }

    #[test]
    fn each_type_has_one_kind() {
        for (kind, types) in [
            (FileSystemKind::Gluster, "fuse.glusterfs glusterfs"),
            (FileSystemKind::Moose, "fuse.mfs fuse.moosefs moosefs"),
            (FileSystemKind::Lustre, "lustre"),
            (FileSystemKind::Nfs, "nfs nfs4"),
            (FileSystemKind::Sshfs, "fuse.sshfs"),
            (FileSystemKind::Other, "fuse fuse.bindfs fuse.whatever gpfs virtiofs orangefs panfs"),
            (FileSystemKind::Ceph, "ceph fuse.ceph-fuse"),
            (FileSystemKind::Other, "beegfs cifs smb3 9p afs ocfs2 gfs2 wekafs cvfs acfs"),
            (FileSystemKind::Local, "ext4 xfs btrfs tmpfs overlay autofs nfsd fuseblk fusectl fuse.lxcfs fuse.portal"),
        ] {
            for fstype in types.split(' ') {
                assert_eq!(FileSystemKind::of(&mount("/d", fstype, "n1:/d")), kind, "{fstype}");
            }
        }
        // The line in the lab's /proc/mounts with the packaged client.
        assert_eq!(FileSystemKind::of(&mount("/data", "fuse", "mfs#10.77.1.1:9421")), FileSystemKind::Moose);
    }

    #[test]
    fn each_type_of_a_kind_is_recognized_and_in_the_patterns() {
        let mut seen: Vec<&str> = Vec::new();
        let [network, own] = network_patterns();
        for kind in KINDS {
            for fstype in kind.types() {
                assert_eq!(FileSystemKind::of(&mount("/d", fstype, "n1:/d")), kind, "{fstype}");
                let pattern = if kind.is_network() { &network } else { &own };
                let is_there = pattern.split(['(', '|', ')']).any(|one| one.replace("[.]", ".") == *fstype);
                assert!(is_there || (kind.is_network() && fstype.starts_with("fuse")), "{fstype}: {pattern}");
                assert!(!seen.contains(fstype), "{fstype} is of two kinds");
                seen.push(fstype);
            }
        }
    }

    #[test]
    fn one_gluster_volume_has_many_servers() {
        let a = mount("/data", "fuse.glusterfs", "n1:/data");
        assert!(same_volume(&a, &mount("/data", "fuse.glusterfs", "n2:data")));
        assert!(!same_volume(&a, &mount("/data", "fuse.glusterfs", "n1:/other")));
        assert!(!same_volume(&a, &mount("/mnt", "fuse.glusterfs", "n1:/data")));
        assert!(same_volume(&mount("/d", "fuse", "mfs#n1:9421"), &mount("/d", "fuse", "mfs#10.0.0.1:9421")));
        assert!(!same_volume(&mount("/d", "fuse", "mfs#n1:9421"), &mount("/d", "fuse", "mfs#n1:9421/sub")));
        assert!(!same_volume(&mount("/d", "nfs4", "a:/x"), &mount("/d", "nfs4", "b:/x")));
        assert!(same_volume(&mount("/d", "fuse.sshfs", "me@n1:/x"), &mount("/d", "fuse.sshfs", "n1:/x")));
    }

    #[test]
    fn volumes_are_named_by_kind_and_source() {
        let named = |fstype, source| volume_name(&mount("/d", fstype, source));
        assert_eq!(named("fuse", "mfs#n1:9421"), "moosefs:n1:9421");
        assert_eq!(named("nfs4", "nas:/export"), "nfs:nas:/export");
        assert_eq!(named("fuse.sshfs", "a@b:"), "sshfs:a@b:");
        assert_eq!(named("fuse.sshfs", "localhost:"), "fuse.sshfs:localhost:");
        assert_eq!(named("ext4", "/dev/sda1"), "local:/dev/sda1");
    }
}
