//! sshfs: one server holds the file. The source of the mount names it, as the user's ssh configuration knows it.

use crate::{FileSystem, LocateRequest};
use homing_model::hostname::is_loopback;
use homing_model::{Extent, RawText, Replica};
use homing_mounts::{FileSystemKind, MountLine, nfs, plain_source};

pub(crate) struct Sshfs {
    /// The server, or why it is unknown.
    server: Result<String, String>,
    lines: Vec<MountLine>,
}

impl Sshfs {
    /// `lines` are all places where it is mounted here.
    pub fn read(first: &MountLine, lines: &[MountLine]) -> Sshfs {
        Sshfs { server: server(first), lines: lines.to_vec() }
    }
}

fn server(line: &MountLine) -> Result<String, String> {
    if FileSystemKind::of(&line.mount) != FileSystemKind::Sshfs {
        let source = plain_source(&line.mount);
        return Err(format!("its source, {source}, is not a host: it may be the end of a tunnel to any host"));
    }
    let named = nfs::server(&line.mount);
    // Names in another user's configuration are not known.
    let own = format!("user_id={}", rustix::process::getuid().as_raw());
    reached(named.clone(), line.of_super.contains(&own).then(|| homing_os::names::ssh_host(&named)).flatten())
}

/// Returns the server of a mount, which ssh reaches as `real`.
fn reached(named: String, real: Option<String>) -> Result<String, String> {
    match real {
        Some(real) if is_loopback(&real) => {
            Err(format!("ssh reaches {named} as {real}, which may be the end of a tunnel to any host"))
        }
        Some(real) => Ok(real),
        None => Ok(named),
    }
}

impl FileSystem for Sshfs {
    fn fill(&self, LocateRequest { path, layout, .. }: &mut LocateRequest) {
        let there = path.canonicalize().ok().and_then(|real| nfs::on_server(&self.lines, &real));
        // Only the server itself knows the path of a home.
        layout.server_path = there.filter(|there| there.is_absolute()).map(|there| RawText::from(there.as_path()));
        if layout.size == 0 {
            return;
        }
        match &self.server {
            Ok(host) => {
                let replicas = vec![Replica { host: host.clone(), share: 1.0 }];
                layout.extents.push(Extent { offset: 0, length: layout.size, replicas });
            }
            Err(reason) => layout.reason = Some(reason.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_knows_the_server_and_a_tunnel_is_none() {
        let of = |real: Option<&str>| reached("nas".into(), real.map(String::from));
        assert_eq!(of(None), Ok("nas".into()));
        assert_eq!(of(Some("10.0.0.5")), Ok("10.0.0.5".into()));
        assert!(of(Some("127.0.0.1")).is_err_and(|why| why.contains("ssh reaches nas as 127.0.0.1")));
    }
}
