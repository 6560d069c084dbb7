//! Whether the kernel uses pNFS. It reports per mount whether data servers serve it, and nothing per file.

use crate::stats::counted;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns the kind of layouts (`LAYOUT_FLEX_FILES`) that the server of the NFS mount at `point` grants, from the
/// content of [`STATS`](crate::STATS). `None` if it grants none (Linux, fs/nfs/super.c, `show_pnfs`).
pub fn pnfs(stats: &[u8], point: &Path) -> Option<String> {
    let mount = counted(stats).into_iter().rfind(|mount| mount.point == point.as_os_str().as_bytes())?;
    let told = mount.lines().find_map(|line| line.strip_prefix("\tnfsv4:"))?;
    let layout = told.split(',').find_map(|word| word.trim().strip_prefix("pnfs="))?;
    (layout != "not configured").then(|| layout.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mount_tells_its_own() {
        let stats = b"device proc mounted on /proc with fstype proc\n\
            device n1:/ mounted on /my\\040data with fstype nfs4 statvers=1.1\n\
            \topts:\trw,vers=4.2\n\tnfsv4:\tbm0=0xfdffbfff,acl=0x3,sessions,pnfs=LAYOUT_FLEX_FILES,lease_time=90\n\
            device n2:/ mounted on /plain with fstype nfs4 statvers=1.1\n\
            \tnfsv4:\tbm0=0xfdffbfff,acl=0x3,sessions,pnfs=not configured,lease_time=90\n\
            device n3:/ mounted on /twice with fstype nfs4 statvers=1.1\n\
            \tnfsv4:\tbm0=0x1,pnfs=LAYOUT_SCSI\n\
            device n3:/x mounted on /twice with fstype nfs statvers=1.1\n";
        let told = ["/my data", "/plain", "/twice", "/none"].map(|point| pnfs(stats, Path::new(point)));
        assert_eq!(told, [Some("LAYOUT_FLEX_FILES".into()), None, None, None]);
    }
}
