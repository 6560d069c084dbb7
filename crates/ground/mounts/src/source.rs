//! Parses the source column of the mount table.

use crate::split::split;
use crate::sshfs::{self, SSHFS};
use homing_model::{Mount, RawText};

/// Prefix of the source of MooseFS's client. Debian's `mfsmount` gives no subtype, so its type is `fuse`, and only
/// the prefix identifies it.
pub(crate) const MOOSEFS: &[u8] = b"mfs#";

/// Returns the source as a mount program takes it, without the client's prefix.
pub fn plain_source(mount: &Mount) -> String {
    RawText(plain(mount).to_vec()).display()
}

fn plain(mount: &Mount) -> &[u8] {
    let source = &mount.source.0;
    source.strip_prefix(MOOSEFS).unwrap_or(source)
}

/// Returns the server before the colon, if there is one.
pub fn server(mount: &Mount) -> Option<String> {
    let (server, _) = server_and_path(mount);
    (!server.is_empty() && server.len() < plain(mount).len()).then(|| RawText(server.to_vec()).display())
}

/// Returns the parts before and after the colon, without a user.
pub(crate) fn server_and_path(mount: &Mount) -> (&[u8], &[u8]) {
    if mount.fstype == SSHFS { sshfs::server_and_dir(&mount.source.0) } else { split(plain(mount)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_stand_before_a_colon() {
        let of = |source: &str| server(&Mount { point: "/d".into(), fstype: "x".into(), source: source.into() });
        assert_eq!(
            ["nas:/e", "mfs#n1:9421", "[fe80::1]:/e", "/dev/sda1", ":/e"].map(of),
            [Some("nas".into()), Some("n1".into()), Some("fe80::1".into()), None, None]
        );
    }
}
