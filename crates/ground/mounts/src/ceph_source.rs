//! CephFS: the parts of a mount's source.

use homing_model::Mount;

/// The type of the kernel's client.
pub(crate) const KERNEL: &str = "ceph";
/// The type of ceph-fuse mounts. Their source is only `ceph-fuse`.
pub(crate) const FUSE: &str = "fuse.ceph-fuse";

/// Whether it is the kernel's client.
pub fn is_kernel(mount: &Mount) -> bool {
    mount.fstype == KERNEL
}

/// Whether two sources are the same folder of the same file system, as far as they show. Sources that do not name the
/// cluster may name any of its monitors.
pub(crate) fn is_same(a: &[u8], b: &[u8]) -> bool {
    let (a, b) = (String::from_utf8_lossy(a), String::from_utf8_lossy(b));
    match (named(&a), named(&b)) {
        (Some(a), Some(b)) => {
            (a.cluster, a.folder) == (b.cluster, b.folder) && (a.fs == b.fs || a.fs.is_none() || b.fs.is_none())
        }
        _ => a == b || [&a, &b].iter().any(|one| !one.contains(":/")) || after_monitors(&a) == after_monitors(&b),
    }
}

/// The parts of `user@FSID.NAME=/folder`.
pub(crate) struct CephSourceParts<'t> {
    pub cluster: &'t str,
    pub fs: Option<&'t str>,
    pub folder: &'t str,
}

pub(crate) fn named(source: &str) -> Option<CephSourceParts<'_>> {
    let (head, folder) = source.split_once("=/")?;
    let head = head.split_once('@').map_or(head, |(_, after)| after);
    let (cluster, fs) = head.split_once('.').map_or((head, None), |(cluster, fs)| (cluster, Some(fs)));
    is_id(cluster).then_some(CephSourceParts { cluster, fs, folder })
}

/// Whether it is the text of a UUID, the form of cluster ids.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// Returns `/folder` of `10.0.0.1:6789,10.0.0.2:6789:/folder`.
pub(crate) fn after_monitors(source: &str) -> &str {
    source.find(":/").map_or(source, |at| &source[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4c3c5b0e-1f6f-4a53-9a43-1a7f6d0a2b11";

    #[test]
    fn a_source_names_the_cluster_or_one_of_its_monitors() {
        let same = |a: &str, b: &str| is_same(a.as_bytes(), b.as_bytes());
        assert!(same(&format!("ann@{ID}.fs=/"), &format!("{ID}=/")));
        assert!(!same(&format!("{ID}.a=/"), &format!("{ID}.b=/")));
        assert!(!same(&format!("{ID}.a=/x"), &format!("{ID}.a=/")));
        assert!(!same(&format!("{ID}=/"), &format!("{}=/", ID.replace('4', "5"))));
        assert!(same("10.0.0.1:6789,10.0.0.2:6789:/x", "10.0.0.2:/x") && !same("a:/x", "a:/y"));
        assert!(same("ceph-fuse", "10.0.0.2:/"));
    }
}
