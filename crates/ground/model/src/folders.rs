//! Rules on absolute paths that a set-up writes into fstab, `/etc/passwd` and commands of root. Pure text: only the
//! host itself can check whether a path exists.

/// Trees that belong to the kernel, the boot loader or the packages of a host.
const TREES: [&str; 12] =
    ["/proc", "/sys", "/dev", "/boot", "/etc", "/run", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];
/// Folders of a system that hold folders of its own. Others may lie below them.
const ROOTS: [&str; 5] = ["/", "/usr", "/var", "/var/lib", "/var/log"];
/// Folders below `/usr` that a site may fill itself (Filesystem Hierarchy Standard 3.0, chapter 4).
const SITE_USR: [&str; 3] = ["/usr/local", "/usr/share", "/usr/src"];

fn is_within(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Checks that a path is absolute and has one spelling: no `.`, `..`, doubled or trailing `/`. It must also have no
/// blank, no control character and no `\`, which fstab takes for an escape. Returns the reason otherwise.
pub fn odd_path(path: &str) -> Option<String> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || c == '\\';
    let parts = path.split('/').skip(1).all(|part| !part.is_empty() && part != "." && part != "..");
    let is_plain = path == "/" || path.starts_with('/') && parts;
    (!is_plain || path.contains(odd))
        .then(|| "it is no absolute path without blanks, `.`, `..`, `\\` and a `/` at its end".into())
}

/// Checks that a folder may be mounted over or be a home. It must be a plain path and no folder of the system.
/// Returns the reason otherwise.
pub fn system_folder(path: &str) -> Option<String> {
    if let Some(why) = odd_path(path) {
        return Some(why);
    }
    let tree = TREES.iter().find(|tree| is_within(path, tree));
    let root = ROOTS.iter().find(|root| path == **root);
    let usr = is_within(path, "/usr") && !SITE_USR.iter().any(|site| is_within(path, site));
    let of = tree.or(root).copied().or(usr.then_some("/usr"))?;
    Some(format!("{of} belongs to the system; use a folder such as /data"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_system_and_odd_paths_are_refused() {
        for path in [
            "/data",
            "/home",
            "/home/alice",
            "/usr/local",
            "/usr/local/apps",
            "/opt/x",
            "/var/spool/x",
            "/srv",
            "/procs",
        ] {
            assert_eq!(system_folder(path), None, "{path}");
        }
        for path in [
            "/",
            "/proc",
            "/proc/sys",
            "/sys/fs",
            "/dev/shm",
            "/boot/efi",
            "/usr",
            "/usr/bin",
            "/etc/x",
            "/lib64",
            "/var",
        ] {
            assert!(system_folder(path).is_some_and(|why| why.contains("belongs to the system")), "{path}");
        }
        for path in ["", "data", "/a/../proc", "/./proc", "//proc", "/proc/", "/a b", "/a\n/b", "/a\\040b", "/a/"] {
            assert!(system_folder(path).is_some_and(|why| why.contains("absolute path")), "{path:?}");
        }
    }
}
