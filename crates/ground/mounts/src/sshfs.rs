//! The source of an sshfs mount: `[user@]host:[dir]`, as it was typed.

use crate::split::split;
use homing_model::hostname::is_loopback;
use homing_model::{Mount, RawText};

/// The type of its mounts.
pub(crate) const SSHFS: &str = "fuse.sshfs";

/// Whether it is an sshfs, with any source.
pub fn is(mount: &Mount) -> bool {
    mount.fstype == SSHFS
}

/// Returns the user, the host and the folder of a source. A user's name may contain an `@`, as in Windows domains:
/// ssh splits at the last one.
fn parts(source: &[u8]) -> (Option<&[u8]>, &[u8], &[u8]) {
    let head = source.iter().position(|b| b":[".contains(b)).unwrap_or(source.len());
    let at = source[..head].iter().rposition(|b| *b == b'@');
    let (host, dir) = split(at.map_or(source, |at| &source[at + 1..]));
    (at.map(|at| &source[..at]), host, dir)
}

/// Returns the host and the folder.
pub(crate) fn server_and_dir(source: &[u8]) -> (&[u8], &[u8]) {
    let (_, host, dir) = parts(source);
    (host, dir)
}

/// Whether the source names a host in a way that is valid on other hosts. The end of a tunnel (`localhost`) is
/// another host on each host, and `-o fsname` may put anything there.
pub(crate) fn names_a_host(source: &[u8]) -> bool {
    let host = String::from_utf8_lossy(server_and_dir(source).0).into_owned();
    source.contains(&b':') && !host.is_empty() && !is_loopback(&host)
}

/// Whether two sources are certainly the same folder. The user matters only for relative paths, which begin at the
/// user's home.
pub(crate) fn is_same(a: &[u8], b: &[u8]) -> bool {
    let ((user, host, dir), (other_user, other_host, other_dir)) = (parts(a), parts(b));
    (host, dir) == (other_host, other_dir) && (dir.starts_with(b"/") || user == other_user)
}

/// Returns the folder's name on the host. A folder below a home is `~/DIR` or `~USER/DIR`.
pub(crate) fn folder(mount: &Mount) -> RawText {
    let (user, _, dir) = parts(&mount.source.0);
    if dir.starts_with(b"/") || dir.starts_with(b"~") {
        return RawText(dir.to_vec());
    }
    RawText([b"~", user.unwrap_or_default(), b"/", dir].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_a_user_a_host_and_a_folder() {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for (source, user, host, dir) in [
            ("n2:/srv/x", "-", "n2", "/srv/x"),
            ("root@10.77.1.2:/srv/a@b:c", "root", "10.77.1.2", "/srv/a@b:c"),
            ("ann@lab@nas:", "ann@lab", "nas", ""),
            ("ann@[fe80::1%eth0]:x", "ann", "fe80::1%eth0", "x"),
            ("[::1]:/", "-", "::1", "/"),
        ] {
            let (told, server, folder) = parts(source.as_bytes());
            assert_eq!(
                (told.map_or("-".into(), text), text(server), text(folder)),
                (user.into(), host.into(), dir.into())
            );
        }
    }

    #[test]
    fn what_begins_at_a_home_is_of_the_user() {
        let of =
            |source: &str| folder(&Mount { point: "/d".into(), fstype: SSHFS.into(), source: source.into() }).display();
        let told = ["n2:/srv", "ann@n2:/srv", "n2:", "n2:x/y", "ann@n2:x", "n2:~/x"].map(of);
        assert_eq!(told, ["/srv", "/srv", "~/", "~/x/y", "~ann/x", "~/x"]);
        assert!(is_same(b"ann@n2:/srv", b"n2:/srv") && !is_same(b"ann@n2:", b"bob@n2:"));
        assert!(!is_same(b"n2:/srv", b"n3:/srv") && !is_same(b"n2:/srv", b"n2:/"));
    }

    #[test]
    fn the_end_of_a_tunnel_is_no_host() {
        for own in ["localhost:/x", "me@127.0.0.1:/x", "[::1]:/x", "[::ffff:127.0.0.1]:/x", "a name", ":/x"] {
            assert!(!names_a_host(own.as_bytes()), "{own}");
        }
        assert!(names_a_host(b"n2:") && names_a_host(b"a@[fe80::1]:/x"));
    }
}
