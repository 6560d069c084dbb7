//! NFS: one server holds the file; the mount table names it and the export.
//!
//! On version 3 the path is the server's own. On version 4 it begins at the
//! server's pseudo-root, so it is what the server calls it only when no
//! `fsid=0` export moves the root; whoever runs there must verify it first.

use crate::mounts::MountLine;
use crate::{Asked, FileSystem};
use homing_model::{Extent, Mount, RawText, Replica};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(crate) struct Nfs {
    server: String,
    lines: Vec<MountLine>,
}

impl Nfs {
    /// `lines` are all places where this export is mounted here.
    pub fn new(lines: &[MountLine]) -> Nfs {
        let server = lines.first().map(|line| split(&line.mount.source.0).0.to_vec());
        Nfs { server: String::from_utf8_lossy(&server.unwrap_or_default()).into_owned(), lines: lines.to_vec() }
    }

    /// The server, and what it is likely to call this path.
    pub fn server_of(&self, path: &Path) -> Option<(String, PathBuf)> {
        Some((self.server.clone(), self.on_server(path)?))
    }

    fn on_server(&self, path: &Path) -> Option<PathBuf> {
        on_server(&self.lines, &path.canonicalize().ok()?)
    }
}

/// The source of the line that shows the path, then the path below its mount point.
///
/// The kernel makes the source of each line from what is mounted there, so a
/// bind mount of `sub` says `server:/export/sub` and its ROOT field `/sub`:
/// adding ROOT would name it twice.
fn on_server(lines: &[MountLine], real: &Path) -> Option<PathBuf> {
    let fits = lines.iter().filter(|l| real.starts_with(l.mount.point.as_path()));
    let line = fits.max_by_key(|l| l.mount.point.0.len())?;
    let below = real.strip_prefix(line.mount.point.as_path()).ok()?;
    let export = Path::new(OsStr::from_bytes(split(&line.mount.source.0).1));
    Some(if below.as_os_str().is_empty() { export.to_path_buf() } else { export.join(below) })
}

/// The path that an NFS mount asks its server for.
pub fn source_path(mount: &Mount) -> RawText {
    RawText(split(&mount.source.0).1.to_vec())
}

/// `server:/export`, where an IPv6 address stands in brackets.
fn split(source: &[u8]) -> (&[u8], &[u8]) {
    let cut = |at: usize, mark: usize| (&source[..at], &source[at + mark..]);
    if source.starts_with(b"[")
        && let Some(at) = source.windows(2).position(|w| w == b"]:")
    {
        return (&source[1..at], &source[at + 2..]);
    }
    source.iter().position(|b| *b == b':').map_or((source, b"/"), |at| cut(at, 1))
}

impl FileSystem for Nfs {
    fn fill(&self, Asked { path, layout, .. }: &mut Asked) {
        layout.server_path = self.on_server(path).map(|p| RawText::from(p.as_path()));
        if layout.size > 0 {
            let replicas = vec![Replica { host: self.server.clone(), share: 1.0 }];
            layout.extents.push(Extent { offset: 0, length: layout.size, replicas });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts;

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
        let lines = mounts::parse(table);
        let at = |path: &str| on_server(&lines, Path::new(path)).unwrap();
        assert_eq!(at("/mnt/my data/a/b"), Path::new("/export/a/b"));
        assert_eq!(at("/srv/bound/b"), Path::new("/export/sub\ndir/b"));
        assert_eq!(at("/srv/bound"), Path::new("/export/sub\ndir"));
        assert_eq!(on_server(&lines, Path::new("/elsewhere")), None);
    }

    /// A client's table as its kernel writes it: version 3, version 4 below a
    /// pseudo-root with a file system within it, a bind mount, a mounted folder,
    /// and what automount has mounted over its trigger.
    const TABLE: &[u8] = b"\
        60 25 0:48 / /v3 rw,relatime - nfs n1:/scratch/export rw,vers=3,nolock,proto=tcp,addr=10.77.1.1\n\
        61 25 0:50 / /data rw,relatime - nfs4 n1:/ rw,vers=4.2,clientaddr=10.77.1.2,addr=10.77.1.1\n\
        62 61 0:52 / /data/inner rw,relatime - nfs4 n1:/inner rw,vers=4.2,addr=10.77.1.1\n\
        63 25 0:50 /sub /bound rw,relatime - nfs4 n1:/sub rw,vers=4.2,addr=10.77.1.1\n\
        64 25 0:50 /sub /folder rw,relatime - nfs4 10.77.1.1:/sub rw,vers=4.2,addr=10.77.1.1\n\
        65 25 0:54 / /auto rw,relatime - autofs /etc/auto.lab rw,fd=6,pgrp=411,indirect\n\
        66 65 0:50 / /auto/data rw,relatime - nfs4 n1:/ rw,vers=4.2,addr=10.77.1.1\n";

    /// The lines of one device, as the locator picks them.
    fn of_device(minor: u32) -> Vec<MountLine> {
        mounts::parse(TABLE).into_iter().filter(|l| l.dev == rustix::fs::makedev(0, minor)).collect()
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
            let told = Nfs::new(&of_device(minor));
            assert_eq!(on_server(&told.lines, Path::new(seen)).as_deref(), Some(Path::new(there)), "{seen}");
            assert_eq!(told.server, "n1", "{seen}");
        }
    }

    #[test]
    fn what_automount_has_not_mounted_yet_is_no_nfs() {
        let kinds: Vec<crate::Kind> = mounts::parse(TABLE).iter().map(|l| crate::Kind::of(&l.mount)).collect();
        let (trigger, rest): (Vec<_>, Vec<_>) = kinds.into_iter().partition(|kind| *kind != crate::Kind::Nfs);
        assert_eq!((trigger, rest.len()), (vec![crate::Kind::Other("autofs".into())], 6));
    }
}
