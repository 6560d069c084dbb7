//! NFS: one server holds the file; the mount table names it and the export.
//!
//! On version 3 the path is the server's own. On version 4 it begins at the server's pseudo-root, so it is the
//! server's own path only if no `fsid=0` export moves the root. A process on the server must check it first.
//!
//! With pNFS, data servers have the bytes, and users cannot find out which of them has a file.

use crate::{FileSystem, LocateRequest};
use homing_model::{Extent, RawText, Replica};
use homing_mounts::{MountLine, nfs};
use std::path::{Path, PathBuf};

pub(crate) struct Nfs {
    server: String,
    /// The kind of layouts by which data servers serve the files, if they do.
    layouts: Option<String>,
    lines: Vec<MountLine>,
}

impl Nfs {
    /// `lines` are all places where this export is mounted here.
    pub fn new(lines: &[MountLine]) -> Nfs {
        Nfs::from_stats(lines, &std::fs::read(homing_mounts::STATS).unwrap_or_default(), homing_os::names::addresses)
    }

    /// Uses the kernel's report on its mounts, and a function that resolves addresses.
    pub fn from_stats(lines: &[MountLine], stats: &[u8], addresses: impl Fn(&str) -> Vec<String>) -> Nfs {
        let server = lines.first().map(|line| nfs::server_now(line, addresses)).unwrap_or_default();
        let layouts = lines.iter().find_map(|line| homing_mounts::pnfs(stats, line.mount.point.as_path()));
        Nfs { server, layouts, lines: lines.to_vec() }
    }

    /// Returns the server, and its likely name of this path.
    pub fn server_of(&self, path: &Path) -> Option<(String, PathBuf)> {
        Some((self.server.clone(), self.on_server(path)?))
    }

    fn on_server(&self, path: &Path) -> Option<PathBuf> {
        nfs::on_server(&self.lines, &path.canonicalize().ok()?)
    }
}

impl FileSystem for Nfs {
    fn fill(&self, LocateRequest { path, layout, .. }: &mut LocateRequest) {
        layout.server_path = self.on_server(path).map(|p| RawText::from(p.as_path()));
        if layout.size == 0 {
            return;
        }
        if let Some(layouts) = &self.layouts {
            let said =
                format!("data servers of pNFS serve it ({layouts}), and the client does not show which of them has it");
            layout.reason = Some(said);
        } else {
            let replicas = vec![Replica { host: self.server.clone(), share: 1.0 }];
            layout.extents.push(Extent { offset: 0, length: layout.size, replicas });
        }
    }
}
