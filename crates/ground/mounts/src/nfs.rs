//! The sources of NFS and sshfs, and NFS's exports: the names of one folder on a client and on its server.

use crate::source::server_and_path;
use crate::{FileSystemKind, MountLine, holding, sshfs, unescape};
use homing_model::{Mount, RawText};
use std::ffi::OsStr;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The current exports of an NFS server, with options; any user may read it.
pub const EXPORTS: &str = "/var/lib/nfs/etab";

/// Returns the path that a mount of NFS or sshfs requests from its server. A path below a home begins with `~` or
/// `~USER`.
pub fn source_path(mount: &Mount) -> RawText {
    match FileSystemKind::of(mount) {
        FileSystemKind::Sshfs => sshfs::folder(mount),
        _ => RawText(server_and_path(mount).1.to_vec()),
    }
}

/// Returns the server that a mount of NFS or sshfs names.
pub fn server(mount: &Mount) -> String {
    String::from_utf8_lossy(server_and_path(mount).0).into_owned()
}

/// Returns the server that this mount reads from now, as its source names it. If that name has another address, it
/// returns the current address. The reason is that the kernel follows files that have moved to another server.
/// `addresses` returns the addresses of a name.
pub fn server_now(line: &MountLine, addresses: impl Fn(&str) -> Vec<String>) -> String {
    let named = server(&line.mount);
    let Some(now) = line.of_super.iter().find_map(|word| word.strip_prefix("addr=")) else { return named };
    let same = |address: &str| match [address, now].map(|text| text.parse::<IpAddr>()) {
        [Ok(a), Ok(b)] => a.to_canonical() == b.to_canonical(),
        _ => address == now,
    };
    let known = if named.parse::<IpAddr>().is_ok() { vec![named.clone()] } else { addresses(&named) };
    if known.is_empty() || known.iter().any(|address| same(address)) { named } else { now.to_string() }
}

/// Returns the likely name on the server of a path without symbolic links. It is the source of the line that shows
/// the path, then the path below its mount point.
///
/// The kernel derives the source of each line from the mounted folder. So a bind mount of `sub` has the source
/// `server:/export/sub` and the ROOT field `/sub`: adding ROOT would name `sub` twice. FUSE's source stays unchanged,
/// so for sshfs ROOT has to be added.
pub fn on_server(lines: &[MountLine], real: &Path) -> Option<PathBuf> {
    let MountLine { mount, root, .. } = holding(lines, real)?;
    let below = real.strip_prefix(mount.point.as_path()).ok()?;
    let mut there = source_path(mount).to_path();
    if FileSystemKind::of(mount) == FileSystemKind::Sshfs {
        there.push(root.as_path().strip_prefix("/").ok()?);
    }
    there.push(below);
    // Pushing an empty path leaves a slash at the end.
    Some(there.components().collect())
}

/// Returns the possible places on an NFS server of a client's `path`. These are the same name, and the names below
/// exports that are the root of version 4's name space. `etab` is the content of the server's [`EXPORTS`].
pub fn server_paths(path: &RawText, etab: &str) -> Vec<PathBuf> {
    let mut found = vec![path.to_path()];
    for line in etab.lines() {
        let Some((dir, options)) = line.split_once(|c: char| c.is_whitespace()) else { continue };
        if options.split([',', '(', ')']).any(|o| o == "fsid=0" || o == "fsid=root") {
            let below = path.as_path().strip_prefix("/").unwrap_or(path.as_path());
            // Collected, because joining an empty path would leave a slash at the end.
            let dir: PathBuf =
                Path::new(OsStr::from_bytes(&unescape(dir.as_bytes()))).join(below).components().collect();
            if !found.contains(&dir) {
                found.push(dir);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use crate::split::split;

    #[test]
    fn servers_may_be_addresses() {
        let both = |source: &'static str| split(source.as_bytes());
        assert_eq!(both("nas:/export/a:b"), (&b"nas"[..], &b"/export/a:b"[..]));
        assert_eq!(both("[fe80::1%eth0]:/x"), (&b"fe80::1%eth0"[..], &b"/x"[..]));
        assert_eq!(both("storage-1.lab.example:/"), (&b"storage-1.lab.example"[..], &b"/"[..]));
    }

    #[test]
    fn the_path_on_the_server_follows_the_line_that_shows_the_file() {
        let table = b"1 0 0:50 / /mnt/my\\040data rw - nfs4 nas:/export rw\n\
            2 0 0:50 /sub\\012dir /srv/bound rw - nfs4 nas:/export/sub\\012dir rw\n";
        let lines = parse(table);
        let at = |path: &str| on_server(&lines, Path::new(path)).unwrap();
        assert_eq!(at("/mnt/my data/a/b"), Path::new("/export/a/b"));
        assert_eq!(at("/srv/bound/b"), Path::new("/export/sub\ndir/b"));
        assert_eq!(at("/srv/bound"), Path::new("/export/sub\ndir"));
        assert_eq!(on_server(&lines, Path::new("/elsewhere")), None);
    }

    /// A client's table as its kernel writes it. It has version 3, and version 4 below a pseudo-root with a file
    /// system within it. It also has a bind mount, a mounted folder, and a mount that automount has placed over its
    /// trigger.
    const TABLE: &[u8] = b"\
        60 25 0:48 / /v3 rw,relatime - nfs n1:/scratch/export rw,vers=3,nolock,proto=tcp,addr=10.77.1.1\n\
        61 25 0:50 / /data rw,relatime - nfs4 n1:/ rw,vers=4.2,clientaddr=10.77.1.2,addr=10.77.1.1\n\
        62 61 0:52 / /data/inner rw,relatime - nfs4 n1:/inner rw,vers=4.2,addr=10.77.1.1\n\
        63 25 0:50 /sub /bound rw,relatime - nfs4 n1:/sub rw,vers=4.2,addr=10.77.1.1\n\
        64 25 0:50 /sub /folder rw,relatime - nfs4 10.77.1.1:/sub rw,vers=4.2,addr=10.77.1.1\n\
        65 25 0:54 / /auto rw,relatime - autofs /etc/auto.lab rw,fd=6,pgrp=411,indirect\n\
        66 65 0:50 / /auto/data rw,relatime - nfs4 n1:/ rw,vers=4.2,addr=10.77.1.1\n";

    /// Returns the lines of one device, as a locator picks them.
    fn of_device(minor: u32) -> Vec<MountLine> {
        parse(TABLE).into_iter().filter(|l| l.dev == rustix::fs::makedev(0, minor)).collect()
    }

    #[test]
    fn each_way_to_mount_leads_to_the_servers_path() {
        for (minor, seen, there) in [
            (48, "/v3/sub/f", "/scratch/export/sub/f"),
            (50, "/data/sub/f", "/sub/f"),
            (52, "/data/inner/g", "/inner/g"),
            (50, "/bound/f", "/sub/f"),
            (50, "/folder/f", "/sub/f"),
            (50, "/auto/data/sub/f", "/sub/f"),
        ] {
            let lines = of_device(minor);
            assert_eq!(on_server(&lines, Path::new(seen)).as_deref(), Some(Path::new(there)), "{seen}");
            assert_eq!(server(&lines[0].mount), "n1", "{seen}");
        }
    }

    #[test]
    fn the_server_is_the_one_that_answers_now() {
        let of = |source: &str, addr: &str, known: &[&str]| {
            let text = format!("1 0 0:50 / /d rw - nfs4 {source} rw,vers=4.2{addr}\n");
            server_now(&parse(text.as_bytes())[0], |_| known.iter().map(|a| a.to_string()).collect())
        };
        assert_eq!(of("n1:/", ",addr=10.77.1.1", &["fd00::1", "10.77.1.1"]), "n1");
        assert_eq!(of("n1:/", ",addr=10.77.1.2", &["10.77.1.1"]), "10.77.1.2", "it has moved");
        assert_eq!(of("n1:/", ",addr=10.77.1.2", &[]), "n1", "nobody knows the name");
        assert_eq!(of("n1:/", "", &["10.77.1.1"]), "n1");
        assert_eq!(of("10.77.1.1:/", ",addr=10.77.1.1", &[]), "10.77.1.1");
        assert_eq!(of("[fd00::1]:/", ",addr=10.77.1.3", &[]), "10.77.1.3");
    }

    #[test]
    fn what_automount_has_not_mounted_yet_is_no_nfs() {
        let kinds: Vec<FileSystemKind> = parse(TABLE).iter().map(|l| FileSystemKind::of(&l.mount)).collect();
        let (trigger, rest): (Vec<_>, Vec<_>) = kinds.into_iter().partition(|kind| *kind != FileSystemKind::Nfs);
        assert_eq!((trigger, rest.len()), (vec![FileSystemKind::Local], 6));
    }

    #[test]
    fn the_root_of_version_4_may_be_anywhere() {
        let etab = "/srv/my\\040root\t*(rw,fsid=0,sec=sys)\n/srv/other\t10.0.0.0/8(rw,fsid=1)\n";
        let told = server_paths(&"/sub/x".into(), etab);
        assert_eq!(told, [PathBuf::from("/sub/x"), "/srv/my root/sub/x".into()]);
        assert_eq!(server_paths(&"/".into(), etab)[1], Path::new("/srv/my root"));
    }
}
