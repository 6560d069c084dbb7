//! Do all hosts have the same mounts?

use super::fstab_volume::volume_at;
use crate::compare::split;
use crate::finding::word;
use crate::{Answers, Code, HostAnswers, HostCheck, HostFinding, Severity};
use homing_model::Mount;
use homing_mounts::ceph::is_kernel;
use homing_mounts::{FileSystemKind, MountLine, parse, plain_source, same_volume, server, unescape};
use std::collections::BTreeSet;

static LACKS: Code = Code {
    name: "HC-MOUNT-03",
    severity: Severity::Error,
    what: "most hosts mount a network file system that is missing on some",
    means: "tasks fail there, or write into an empty folder on the disk of that host",
    seen: "/proc/self/mountinfo",
    mend: "mount it as on the other hosts, and add it to /etc/fstab",
};
static OPTIONS: Code = Code {
    name: "HC-MOUNT-04",
    severity: Severity::Warning,
    what: "a file system has different mount options on some hosts",
    means: "programs work on one host and fail on the next (noexec, nosuid, ro), or see files change later",
    seen: "/proc/self/mountinfo",
    mend: "mount -o remount,OPTIONS POINT",
};
static SOURCE: Code = Code {
    name: "HC-MOUNT-05",
    severity: Severity::Error,
    what: "different volumes are mounted at one mount point",
    means: "hosts see different files under the same path",
    seen: "/proc/self/mountinfo",
    mend: "unmount the wrong one, correct /etc/fstab, mount again",
};
static SOFT: Code = Code {
    name: "HC-MOUNT-06",
    severity: Severity::Warning,
    what: "NFS is mounted soft and writable",
    means: "if the server is slow, writes fail halfway, and programs that ignore the error lose data",
    seen: "/proc/self/mountinfo",
    mend: "mount it hard (the default)",
};

pub(crate) static CHECK: HostCheck = HostCheck {
    key: "mounted",
    script: "cat /proc/self/mountinfo",
    waits: false,
    slow: false,
    root: None,
    codes: &[&LACKS, &SOURCE, &OPTIONS, &SOFT],
    judge,
};

/// Options that belong to each host: the address that it connects from, and random values.
const OWN: [&str; 9] =
    ["clientaddr", "addr", "mountaddr", "mountport", "user_id", "group_id", "max_read", "fd", "nconnect"];

/// A host's mounts.
pub(crate) type Mounts = Vec<MountLine>;

/// Returns the mounts of a host that printed them.
pub(crate) fn mounts(host: &HostAnswers) -> Option<Mounts> {
    let lines: Vec<&str> = host.rows(CHECK.key)?.iter().filter_map(|row| Some(row.first()?.as_str())).collect();
    Some(parse(lines.join("\n").as_bytes()))
}

/// Returns the topmost mount at a point; the point has the kernel's escapes.
pub(crate) fn on_top<'t>(table: &'t [MountLine], point: &str) -> Option<&'t MountLine> {
    let point = unescape(point.as_bytes());
    table.iter().rev().find(|line| line.mount.point.0 == point)
}

fn is_network(line: &MountLine) -> bool {
    FileSystemKind::of(&line.mount).is_network()
}

fn judge(answers: &Answers) -> Vec<HostFinding> {
    let all: Vec<(&HostAnswers, Mounts)> = answers.hosts.iter().filter_map(|h| Some((h, mounts(h)?))).collect();
    let shown = |m: &MountLine| is_network(m) || m.mount.source.0.starts_with(b"/dev/") || m.mount.fstype == "tmpfs";
    let points: BTreeSet<String> =
        all.iter().flat_map(|(_, t)| t.iter().filter(|m| shown(m)).map(|m| m.mount.point.display())).collect();
    points.iter().flat_map(|point| of_point(point, &all)).collect()
}

fn of_point(point: &str, all: &[(&HostAnswers, Mounts)]) -> Vec<HostFinding> {
    let at: Vec<(&HostAnswers, Option<&MountLine>)> =
        all.iter().map(|(h, t)| (*h, t.iter().rev().find(|m| m.mount.point.display() == point))).collect();
    let there: Vec<(&HostAnswers, &MountLine)> = at.iter().filter_map(|(h, m)| Some((*h, (*m)?))).collect();
    // A mount of a folder that was removed is no model for other hosts.
    let (speaker, first) = *there.iter().find(|(_, line)| !is_removed(line)).unwrap_or(&there[0]);
    let mut found = Vec::new();
    if there.iter().all(|(_, m)| is_network(m)) {
        let lacking = at.iter().filter(|(h, m)| m.is_none() && there.len() * 2 > all.len() && !serves(h, first));
        found.extend(lacking.map(|(h, _)| {
            let found = LACKS.on(h, format!("{point} is not mounted"), "/proc/self/mountinfo");
            match volume_at(h, point) {
                Some(command) => found.here(&command),
                None => found.mend(like(first, table_of(speaker, all))),
            }
        }));
        found.extend(there.iter().filter_map(|(h, m)| soft(h, m)));
        let others = there.iter().filter(|(_, m)| is_another(&m.mount, &first.mount));
        let others: Vec<_> = others.collect();
        // Only the majority of hosts shows which of two is the wrong one.
        let is_right = others.len() * 2 < there.len();
        found.extend(others.into_iter().map(|(h, m)| {
            let (own, right) = (m.mount.source.display(), first.mount.source.display());
            let what = format!("{point} is {own}, but {right} on {}", there[0].0.name);
            let found = SOURCE.on(h, what, "/proc/self/mountinfo");
            let point = word(point);
            if is_right && own != right {
                let is_own = format!("[ \"$(findmnt -nro SOURCE -M {point} | tail -n 1)\" = {} ]", word(&own));
                found.mend(format!("{is_own} && umount {point} && {}", like(first, table_of(speaker, all))))
            } else {
                found.look(format!("grep -F {point} /etc/fstab; findmnt {point}"))
            }
        }));
    }
    found.extend(options(point, &there));
    found
}

/// Whether it is certainly another volume. Each user's ssh may have names of its own for one server.
fn is_another(mount: &Mount, first: &Mount) -> bool {
    let kinds = [mount, first].map(FileSystemKind::of);
    let by_own_names = kinds == [FileSystemKind::Sshfs; 2] && server(mount) != server(first);
    kinds[0].is_comparable() && !by_own_names && !same_volume(mount, first)
}

/// Whether the host is the server of NFS or sshfs, with the mounted folder on a disk of its own.
fn serves(host: &HostAnswers, line: &MountLine) -> bool {
    let one = matches!(FileSystemKind::of(&line.mount), FileSystemKind::Nfs | FileSystemKind::Sshfs);
    let Some(server) = server(&line.mount).filter(|_| one) else { return false };
    let own = host.rows("own_name").into_iter().flatten().flatten();
    [host.name.rsplit('@').next().unwrap_or_default()]
        .into_iter()
        .chain(own.map(String::as_str))
        .any(|own| own == server)
}

fn soft(host: &HostAnswers, line: &MountLine) -> Option<HostFinding> {
    let is = |option: &str| line.of_super.iter().chain(&line.options).any(|o| o == option);
    let point = line.mount.point.display();
    let ill = FileSystemKind::of(&line.mount) == FileSystemKind::Nfs && is("soft") && !is("ro");
    ill.then(|| {
        SOFT.on(host, format!("{point} is mounted soft"), "/proc/self/mountinfo: soft").look("grep -n soft /etc/fstab")
    })
}

/// Returns all mounts of a host.
fn table_of<'t>(host: &HostAnswers, all: &'t [(&HostAnswers, Mounts)]) -> &'t [MountLine] {
    all.iter().find(|(other, _)| other.name == host.name).map_or(&[], |(_, table)| table)
}

/// Returns the command that mounts another host's file system here, with that host's table. Pasted twice it does
/// nothing.
fn like(line: &MountLine, table: &[MountLine]) -> String {
    let point = word(&line.mount.point.display());
    format!("mountpoint -q {point} || {{ mkdir -p {point} && {{ {}; }}; }}", again(line, table))
}

/// Whether the mounted folder was removed since: the kernel then adds this word to its path.
fn is_removed(line: &MountLine) -> bool {
    line.root.0.ends_with(b"//deleted")
}

/// Returns the command that mounts a file system at its point: by /etc/fstab, else with the words of its kind. The
/// type in the mount table is that of the kernel's FUSE, which its mount program does not accept. A folder of a
/// volume that is bound there has the volume's source: mounted by that source, the whole volume would be there.
pub(crate) fn again(line: &MountLine, table: &[MountLine]) -> String {
    let mount = &line.mount;
    let (point, source) = (mount.point.display(), plain_source(mount));
    if is_removed(line) {
        return format!("mount {}", word(&point));
    }
    if line.root.0 != b"/" {
        let whole = table.iter().find(|other| other.dev == line.dev && other.root.0 == b"/");
        let bound = whole.map(|whole| {
            let volume = whole.mount.point.display();
            let folder = format!("{}{}", volume.trim_end_matches('/'), line.root.display());
            format!(
                " 2>/dev/null || {{ mountpoint -q {} && mount --bind {} {}; }}",
                word(&volume),
                word(&folder),
                word(&point)
            )
        });
        return format!("mount {}{}", word(&point), bound.unwrap_or_default());
    }
    let by_words = match FileSystemKind::of(mount) {
        FileSystemKind::Gluster => format!("mount -t glusterfs {} {}", word(&source), word(&point)),
        FileSystemKind::Moose => mfsmount(&source, &point),
        FileSystemKind::Nfs | FileSystemKind::Lustre => {
            format!("mount -t {} {} {}", word(&mount.fstype), word(&source), word(&point))
        }
        FileSystemKind::Sshfs => format!("sshfs {} {}", word(&source), word(&point)),
        FileSystemKind::Ceph if is_kernel(mount) => format!("mount -t ceph {} {}", word(&source), word(&point)),
        FileSystemKind::Ceph => format!("ceph-fuse {}", word(&point)),
        FileSystemKind::Local | FileSystemKind::Site | FileSystemKind::Other => {
            return format!("mount {}", word(&point));
        }
    };
    format!("mount {} 2>/dev/null || {by_words}", word(&point))
}

/// Returns the command for `MASTER:PORT[/FOLDER]`, the source in the mount table.
fn mfsmount(source: &str, point: &str) -> String {
    let (master, rest) = source.split_once(':').unwrap_or((source, ""));
    let (port, folder) = rest.split_once('/').unwrap_or((rest, ""));
    let option = |name: &str, value: &str| (!value.is_empty()).then(|| format!(" -{name} {}", word(value)));
    let folder = if folder.is_empty() { String::new() } else { format!("/{folder}") };
    let options: String =
        [option("H", master), option("P", port), option("S", &folder)].into_iter().flatten().collect();
    format!("mfsmount {}{options}", word(point))
}

fn options(point: &str, there: &[(&HostAnswers, &MountLine)]) -> Vec<HostFinding> {
    let of_all = |m: &MountLine| -> BTreeSet<String> {
        let own = |o: &&String| !OWN.contains(&o.split('=').next().unwrap_or_default());
        let of_server = m.of_super.iter().filter(|_| FileSystemKind::of(&m.mount) == FileSystemKind::Nfs);
        m.options.iter().chain(of_server).filter(own).cloned().collect()
    };
    let Some(split) = split(there.iter().map(|(h, m)| (*h, of_all(m)))) else { return Vec::new() };
    let like = split.most_of();
    let finding = |(host, own): &(&HostAnswers, BTreeSet<String>)| {
        let (more, less): (Vec<_>, Vec<_>) =
            (own.difference(&split.most).cloned().collect(), split.most.difference(own).cloned().collect());
        let what = format!("{point} has {:?}, but {like} have {:?}", more.join(","), less.join(","));
        let undo = more.iter().filter_map(|o| opposite(o));
        let wanted: Vec<String> = undo.map(String::from).chain(less).collect();
        OPTIONS.on(host, what, format!("/proc/self/mountinfo: {point}")).mend(format!(
            "mount -o remount,{} {}",
            word(&wanted.join(",")),
            word(point)
        ))
    };
    split.others.iter().map(finding).collect()
}

fn opposite(option: &str) -> Option<&'static str> {
    let pairs = [
        ("ro", "rw"),
        ("noexec", "exec"),
        ("nosuid", "suid"),
        ("nodev", "dev"),
        ("noatime", "relatime"),
        ("sync", "async"),
    ];
    pairs.into_iter().find(|(a, _)| *a == option).map(|(_, b)| b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_mounted_by_its_own_program() {
        let told = |fstype: &str, source: &str| {
            let table = parse(format!("30 22 0:40 / /d rw - {fstype} {source} rw").as_bytes());
            again(&table[0], &table)
        };
        assert_eq!(told("fuse.glusterfs", "n1:/data"), "mount /d 2>/dev/null || mount -t glusterfs n1:/data /d");
        assert_eq!(told("fuse", "mfs#n1:9421"), "mount /d 2>/dev/null || mfsmount /d -H n1 -P 9421");
        assert_eq!(told("fuse.mfs", "n1:9421/sub"), "mount /d 2>/dev/null || mfsmount /d -H n1 -P 9421 -S /sub");
        assert_eq!(told("nfs4", "nas:/e"), "mount /d 2>/dev/null || mount -t nfs4 nas:/e /d");
        assert_eq!(told("fuse.sshfs", "me@nas:/e"), "mount /d 2>/dev/null || sshfs me@nas:/e /d");
        assert_eq!(told("fuse.bindfs", "/e"), "mount /d");
    }

    #[test]
    fn a_folder_of_a_volume_is_never_mounted_as_the_whole_volume() {
        let bound = "31 22 0:40 /home /home rw - fuse.glusterfs n4:/homes rw";
        let table = parse(format!("30 22 0:40 / /homes rw - fuse.glusterfs n4:/homes rw\n{bound}").as_bytes());
        let line = "mount /home 2>/dev/null || { mountpoint -q /homes && mount --bind /homes/home /home; }";
        assert_eq!(again(&table[1], &table), line);
        let alone = parse(bound.as_bytes());
        assert_eq!(again(&alone[0], &alone), "mount /home");
    }

    #[test]
    fn a_folder_that_was_removed_is_not_mounted_by_its_old_path() {
        let whole = "30 22 0:40 / /homes rw - fuse.glusterfs n4:/homes rw";
        let bound = "31 22 0:40 /home//deleted /home rw - fuse.glusterfs n4:/homes rw";
        let table = parse(format!("{whole}\n{bound}").as_bytes());
        assert_eq!(again(&table[1], &table), "mount /home");
    }

    #[test]
    fn servers_of_sshfs_have_as_many_names_as_users() {
        let of = |source: &str| Mount { point: "/d".into(), fstype: "fuse.sshfs".into(), source: source.into() };
        let other = |source: &str| is_another(&of(source), &of("me@n1:/e"));
        assert!(!other("n1:/e") && !other("10.0.0.1:/e") && !other("localhost:/e"));
        assert!(other("n1:/f"));
    }
}
