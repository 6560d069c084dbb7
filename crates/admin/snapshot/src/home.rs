//! Finds the host that holds a folder's bytes, and the folder's name there.

use homing_model::{Mount, RawText};
use homing_mounts::{FileSystemKind, nfs, volume_name};
use std::path::{Path, PathBuf};

/// A host that may have the bytes, and the folder's possible names there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The host; `None`: this one.
    pub host: Option<String>,
    /// Names that the folder may have there.
    pub paths: Vec<RawText>,
    /// The check that the host has to pass.
    pub proof: Proof,
}

/// The fact that shows that a host sees the same folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// No proof is needed: it is this host's own.
    None,
    /// The server's inode number equals the one that clients see.
    Inode(u64),
    /// The host has this volume mounted there.
    Volume(String),
}

impl Proof {
    /// Whether a folder that a host has seen, by volume and inode, is the wanted one.
    pub fn holds(&self, (volume, inode): &(String, u64)) -> bool {
        // Clients of one volume may have mounted it by the names of different servers.
        let plain = |name: &str| name.split_once(':').map(|(kind, rest)| (kind.to_string(), last(rest).to_string()));
        match self {
            Proof::None => true,
            Proof::Inode(wanted) => inode == wanted,
            Proof::Volume(wanted) => plain(wanted) == plain(volume),
        }
    }
}

fn last(source: &str) -> &str {
    source.rsplit(':').next().unwrap_or(source).trim_start_matches('/')
}

impl Candidate {
    /// Returns a host with a mount of the same volume under the same name. `real`: the folder's path without links;
    /// `mount`: its mount here.
    pub fn mounted(host: &str, real: &Path, mount: &Mount) -> Candidate {
        Candidate { host: Some(host.into()), paths: vec![real.into()], proof: Proof::Volume(volume_name(mount)) }
    }
}

/// Returns the hosts that may have the bytes of a folder, the best one first.
/// `real`: its path without links; `mount`: its mount here; `inode`: its own; `bank`: the bank's host.
/// `bricks`: hosts with bytes of the volume, where they are known.
pub fn candidates(real: &Path, mount: &Mount, inode: u64, bank: &str, bricks: &[String]) -> Vec<Candidate> {
    let path: RawText = real.into();
    let mounted = |host: &str| Candidate::mounted(host, real, mount);
    let mut found = match FileSystemKind::of(mount) {
        FileSystemKind::Nfs => {
            let below = real.strip_prefix(mount.point.as_path()).unwrap_or(Path::new(""));
            let source = nfs::source_path(mount).to_path();
            let there: PathBuf = source.join(below).components().collect();
            let proof = Proof::Inode(inode);
            return vec![Candidate { host: Some(nfs::server(mount)), paths: vec![there.as_path().into()], proof }];
        }
        FileSystemKind::Gluster => {
            let server = nfs::server(mount);
            let mut hosts: Vec<&str> = Vec::new();
            // If the bank's host has bricks, it comes first: files cross no network at all. Else any host with bricks
            // does.
            hosts.extend(Some(bank).filter(|bank| bricks.iter().any(|brick| brick == bank)));
            hosts.extend(bricks.iter().map(String::as_str));
            hosts.push(&server);
            hosts.dedup();
            hosts.into_iter().map(mounted).collect()
        }
        // The pieces of each file are on several hosts. They cross the network once, on any host that reads.
        FileSystemKind::Moose | FileSystemKind::Lustre | FileSystemKind::Ceph => vec![mounted(bank)],
        // Inode numbers of sshfs are the client's own: they cannot prove that a folder there is this one.
        FileSystemKind::Sshfs | FileSystemKind::Local | FileSystemKind::Site | FileSystemKind::Other => Vec::new(),
    };
    found.push(Candidate { host: None, paths: vec![path.clone()], proof: Proof::None });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(fstype: &str, source: &str, bank: &str, bricks: &[&str]) -> Vec<(String, String)> {
        let mount = Mount { point: "/data".into(), fstype: fstype.into(), source: source.into() };
        let bricks: Vec<String> = bricks.iter().map(|b| b.to_string()).collect();
        let all = candidates(Path::new("/data/home"), &mount, 7, bank, &bricks);
        all.into_iter().map(|c| (c.host.unwrap_or("here".into()), c.paths[0].display())).collect()
    }

    #[test]
    fn a_volume_is_the_same_by_whatever_server_it_is_mounted() {
        let volume = |name: &str| Proof::Volume(name.into());
        let seen = |name: &str| (name.to_string(), 1);
        assert!(volume("gluster:n1:/vol").holds(&seen("gluster:n2:vol")));
        assert!(!volume("gluster:n1:/vol").holds(&seen("gluster:n1:/other")));
        assert!(!volume("gluster:n1:/vol").holds(&seen("local:/vol")));
        assert!(Proof::Inode(1).holds(&seen("x")) && !Proof::Inode(2).holds(&seen("x")));
    }

    #[test]
    fn the_host_with_the_bytes_comes_first() {
        let at = |host: &str, path: &str| (host.to_string(), path.to_string());
        let (data, here) = (|host| at(host, "/data/home"), at("here", "/data/home"));
        assert_eq!(hosts("nfs4", "nas:/export", "b1", &[]), [at("nas", "/export/home")]);
        assert_eq!(hosts("fuse.glusterfs", "n1:/vol", "n2", &["n1", "n2"])[0], data("n2"));
        assert_eq!(hosts("fuse.glusterfs", "n1:/vol", "b1", &["n3", "n4"])[0], data("n3"));
        assert_eq!(hosts("fuse.glusterfs", "n1:/vol", "b1", &[]), [data("n1"), here.clone()]);
        assert_eq!(hosts("fuse.mfs", "mfs#master:9421", "b1", &[]), [data("b1"), here.clone()]);
        assert_eq!(hosts("ext4", "/dev/sda1", "b1", &[]), [here]);
    }
}
