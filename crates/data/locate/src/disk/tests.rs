//! Checks the contract with mount lines that the kernel wrote, or is documented to write, for unavailable file
//! systems.

use crate::local::host;
use crate::nfs::Nfs;
use crate::{FileSystem, Locator, contract, volume};
use homing_model::FileLayout;
use homing_mounts::{FileSystemKind, MountLine, STATS, parse};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

/// Checks the contract for a file system at a folder of this host. The second argument is the end of its line of the
/// mount table. Returns the layout of one of its files.
fn kept(told: &str, make: impl Fn(&MountLine) -> Arc<dyn FileSystem>, hosts: &[&str]) -> FileLayout {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().canonicalize().unwrap();
    let line = parse(format!("60 25 0:48 / {} rw,relatime - {told}\n", real.display()).as_bytes()).remove(0);
    let locator = Locator::with(real.metadata().unwrap().dev(), volume(&line, &Default::default()), make(&line));
    contract::check(&locator, &real, &hosts.iter().map(|host| host.to_string()).collect::<BTreeSet<_>>());
    locator.locate(&real.join("plain"))
}

fn on_disk(told: &str, copy: Result<bool, &str>) -> FileLayout {
    let copy = copy.map_err(String::from);
    kept(told, |line| super::of(line, FileSystemKind::of(&line.mount), copy.clone()), &[&host()])
}

fn is_here(layout: &FileLayout) -> bool {
    layout.reason.is_none() && layout.extents.iter().all(|extent| extent.replicas.iter().all(|r| r.host == host()))
}

fn reason(layout: FileLayout) -> String {
    assert!(layout.extents.is_empty(), "{layout:?}");
    layout.reason.unwrap()
}

#[test]
fn gfs2_and_ocfs2_lie_on_no_host() {
    for told in [
        "gfs2 /dev/mapper/vg-shared rw,rgrplvb",
        "ocfs2 /dev/sdb1 rw,_netdev,heartbeat=local,nointr,data=ordered,errors=remount-ro,atime_quantum=60,coherency=full",
        "ocfs2 /dev/sdb1 rw,heartbeat=global,coherency=full,user_xattr,acl",
    ] {
        assert!(reason(on_disk(told, Ok(false))).contains("share: no host is nearer"), "{told}");
        let kind = FileSystemKind::of(&parse(format!("1 0 0:1 / /d rw - {told}\n").as_bytes())[0].mount);
        assert!(kind == FileSystemKind::Other && kind.is_network(), "other hosts see the same files");
    }
    for alone in ["gfs2 /dev/sdb1 rw,lockproto=lock_nolock", "ocfs2 /dev/sdb1 rw,heartbeat=none,errors=remount-ro"] {
        assert!(is_here(&on_disk(alone, Ok(false))), "{alone}");
    }
}

#[test]
fn gfs2_that_was_made_for_one_host_is_known_by_the_kernels_own_word() {
    let sys = tempfile::tempdir().unwrap();
    for (name, dev, locks) in [("vg:shared", "253:3\n", "lock_dlm\n"), ("loop1", "7:1\n", "lock_nolock\n")] {
        let one = sys.path().join(name);
        std::fs::create_dir_all(one.join("device")).unwrap();
        std::fs::create_dir(one.join("lock_module")).unwrap();
        std::fs::write(one.join("device/dev"), dev).unwrap();
        std::fs::write(one.join("lock_module/proto_name"), locks).unwrap();
    }
    let locks = |major, minor| super::locks(sys.path(), rustix::fs::makedev(major, minor));
    assert_eq!(locks(7, 1).as_deref(), Some("lock_nolock"));
    assert_eq!(locks(253, 3).as_deref(), Some("lock_dlm"));
    assert_eq!(locks(7, 2), None);
}

#[test]
fn drbd_lies_where_its_copy_is_whole() {
    assert!(is_here(&on_disk("ext4 /dev/drbd0 rw", Ok(true))));
    assert!(is_here(&on_disk("ocfs2 /dev/drbd0 rw,heartbeat=local", Ok(true))), "both hosts have all of it");
    assert_eq!(reason(on_disk("xfs /dev/drbd0 rw,attr2,inode64", Err("its peers have it"))), "its peers have it");
}

#[test]
fn zfs_and_btrfs_lie_here() {
    for told in ["zfs tank/home rw,xattr,posixacl", "btrfs /dev/sda2 rw,space_cache=v2,subvolid=256,subvol=/@"] {
        assert!(is_here(&on_disk(told, Ok(false))), "{told}");
    }
}

/// A client's lines as its kernel writes them, with lines of its mountstats.
#[test]
fn nfs_lies_on_the_server_that_answers_and_pnfs_where_nobody_tells() {
    let options = "rw,vers=4.2,rsize=262144,hard,proto=tcp,clientaddr=10.77.1.2,addr=10.77.1.1";
    let at = |pnfs: &str, known: &str, hosts: &[&str]| {
        let make = |line: &MountLine| -> Arc<dyn FileSystem> {
            let point = line.mount.point.display();
            let stats = format!(
                "device n1:/ mounted on {point} with fstype nfs4 statvers=1.1\n\
                 \tnfsv4:\tbm0=0xfdffbfff,bm1=0xf9be3e,acl=0x3,sessions,pnfs={pnfs},lease_time=90,lease_expired=0\n"
            );
            Arc::new(Nfs::from_stats(std::slice::from_ref(line), stats.as_bytes(), |_| vec![known.to_string()]))
        };
        kept(&format!("nfs4 n1:/ {options}"), make, hosts)
    };
    let plain = at("not configured", "10.77.1.1", &["n1"]);
    assert!(plain.reason.is_none() && plain.server_path == Some("/plain".into()), "{plain:?}");
    let moved = at("not configured", "10.77.1.9", &["10.77.1.1"]);
    assert_eq!(moved.extents[0].replicas[0].host, "10.77.1.1");
    for layouts in ["LAYOUT_FLEX_FILES", "LAYOUT_NFSV4_1_FILES", "LAYOUT_SCSI", "LAYOUT_BLOCK_VOLUME"] {
        let told = at(layouts, "10.77.1.1", &[]);
        assert_eq!(told.server_path, Some("/plain".into()), "its name there is known");
        assert!(reason(told).contains(&format!("({layouts})")));
    }
    assert!(Path::new(STATS).exists());
}
