//! NFS: one server holds the file; the mount table names it and the export.
//!
//! On version 3 the path is the server's own. On version 4 it begins at the
//! server's pseudo-root, so it is what the server calls it only when no
//! `fsid=0` export moves the root; whoever runs there must verify it first.

use crate::FileSystem;
use crate::mounts::MountLine;
use homing_model::{Extent, FileLayout, RawText, Replica};
use std::path::{Path, PathBuf};

pub(crate) struct Nfs {
    server: String,
    export: PathBuf,
    root: PathBuf,
    point: PathBuf,
}

impl Nfs {
    pub fn new(line: &MountLine) -> Nfs {
        let source = String::from_utf8_lossy(&line.mount.source.0).into_owned();
        let (server, export) = split(&source);
        Nfs {
            server: server.to_string(),
            export: PathBuf::from(export),
            root: line.root.to_path(),
            point: line.mount.point.to_path(),
        }
    }

    /// Export, then what of it is mounted, then the path below the mount point.
    fn on_server(&self, path: &Path) -> Option<PathBuf> {
        let real = path.canonicalize().ok()?;
        let below = real.strip_prefix(&self.point).ok()?;
        let root = self.root.strip_prefix("/").unwrap_or(&self.root);
        Some(self.export.join(root).join(below))
    }
}

/// `server:/export`, where an IPv6 address stands in brackets.
fn split(source: &str) -> (&str, &str) {
    if let Some((address, export)) = source.strip_prefix('[').and_then(|s| s.split_once("]:")) {
        return (address, export);
    }
    source.split_once(':').unwrap_or((source, "/"))
}

impl FileSystem for Nfs {
    fn fill(&self, path: &Path, layout: &mut FileLayout) {
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

    #[test]
    fn servers_may_be_addresses() {
        assert_eq!(split("nas:/export/a:b"), ("nas", "/export/a:b"));
        assert_eq!(split("[fe80::1%eth0]:/x"), ("fe80::1%eth0", "/x"));
        assert_eq!(split("storage-1.lab.example:/"), ("storage-1.lab.example", "/"));
    }
}
