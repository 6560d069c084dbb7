//! File systems on disks that hosts share or copy, real ones between guests of a lab. They are DRBD, OCFS2 over a
//! block device that both have, and GFS2 made for one host. Needs the packages of `tests/packages nfs` and
//! `tests/packages disks`; otherwise prints a note and is skipped.

use crate::guests::serving;
use crate::support::Lab;

/// Programs that the three need.
const NEEDED: [&str; 6] = ["drbdadm", "mkfs.ocfs2", "o2cb", "nbd-client", "nbdkit", "mkfs.gfs2"];

/// Each of two hosts has a copy of a disk.
const DRBD: &str = "set -e; modprobe loop; modprobe drbd
    truncate -s 64M /scratch/drbd.img; losetup /dev/loop0 /scratch/drbd.img
    printf 'resource r {\n device /dev/drbd0; disk /dev/loop0; meta-disk internal;\n' >/etc/drbd.d/r.res
    for n in n1 n2; do
      printf ' on %s { address %s:7789; }\n' $n $(getent hosts $n | cut -d' ' -f1) >>/etc/drbd.d/r.res
    done
    echo '}' >>/etc/drbd.d/r.res
    drbdadm create-md --force r; drbdadm up r";

/// Two hosts have one disk, and keep each other's locks.
const OCFS2: &str = "set -e; modprobe nbd; nbd-client n1 10809 /dev/nbd0
    mkdir -p /etc/ocfs2 /oc
    printf 'cluster:\n\tnode_count = 2\n\tname = lab\n' >/etc/ocfs2/cluster.conf
    for n in 0 1; do
      printf '\nnode:\n\tip_port = 7777\n\tip_address = %s\n\tnumber = %s\n\tname = %s\n\tcluster = lab\n' \
        $(getent hosts n$((n + 1)) | cut -d' ' -f1) $n n$((n + 1)) >>/etc/ocfs2/cluster.conf
    done
    modprobe configfs; mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
    modprobe ocfs2_stack_o2cb; modprobe ocfs2_dlmfs; modprobe ocfs2; o2cb register-cluster lab";

#[test]
#[ignore = "three minutes of emulated guests: SLOW=1 make test-lab ONLY=shared_disks"]
fn bytes_on_disks_that_hosts_share() {
    let Some((program, lab)) = serving("disks", "qemu", "2", &NEEDED) else { return };
    let exe = program.0.to_str().unwrap();
    drbd(&lab, exe);
    ocfs2(&lab, exe);
    gfs2(&lab, exe);
}

/// Returns the host of the file by `homing where`, and standard error with the reason if it is unknown.
fn told(lab: &Lab, host: &str, exe: &str, path: &str) -> (String, String) {
    let (_, out, err) = lab.told(host, &format!("{exe} where {path}"));
    (out.split_whitespace().nth(1).unwrap_or_default().to_string(), err)
}

fn drbd(lab: &Lab, exe: &str) {
    ["n1", "n2"].iter().for_each(|host| drop(lab.ok(host, DRBD)));
    lab.ok(
        "n1",
        "drbdadm primary --force r; mkfs.ext4 -q /dev/drbd0; mkdir /dr; mount /dev/drbd0 /dr; echo a >/dr/f; sync",
    );
    assert_eq!(told(lab, "n1", exe, "/dr/f").0, "n1");
    // The host reads from its peer from here on.
    lab.ok("n1", "until grep -q ds:UpToDate/UpToDate /proc/drbd; do sleep 0.2; done; drbdadm detach r && cat /dr/f");
    let (host, why) = told(lab, "n1", exe, "/dr/f");
    assert!(host == "-" && why.contains("drbd0, has copies on its peers only"), "{host} {why}");
    lab.ok("n1", "umount /dr; drbdadm down r");
}

fn ocfs2(lab: &Lab, exe: &str) {
    lab.ok("n1", "truncate -s 256M /scratch/o.img; nbdkit file /scratch/o.img");
    ["n1", "n2"].iter().for_each(|host| drop(lab.ok(host, OCFS2)));
    lab.ok("n1", "mkfs.ocfs2 -F -q -N 2 --cluster-stack=o2cb --cluster-name=lab /dev/nbd0");
    ["n1", "n2"].iter().for_each(|host| drop(lab.ok(host, "mount -t ocfs2 /dev/nbd0 /oc")));
    lab.ok("n1", "echo one >/oc/a");
    let (host, why) = told(lab, "n2", exe, "/oc/a");
    assert!(host == "-" && why.contains("all hosts of this ocfs2 share: no host is nearer"), "{host} {why}");
    // No fence is needed: the other host sees content, time and names at once.
    for n in 0..20 {
        lab.ok("n1", &format!("echo {n} >/oc/a; touch /oc/new{n}"));
        assert_eq!(lab.ok("n2", &format!("cat /oc/a; ls /oc/new{n}")), format!("{n}\n/oc/new{n}\n"));
    }
    ["n2", "n1"].iter().for_each(|host| drop(lab.ok(host, "umount /oc; nbd-client -d /dev/nbd0")));
}

/// No mount table has the option `lock_nolock`; only the superblock has it.
fn gfs2(lab: &Lab, exe: &str) {
    let made = "truncate -s 64M /scratch/g.img; mkfs.gfs2 -q -O -p lock_nolock -j 1 -J 8 /scratch/g.img; modprobe gfs2; \
        mkdir /g; mount -o loop /scratch/g.img /g; echo a >/g/f; sync; ! grep ' /g .*lock_nolock' /proc/mounts";
    lab.ok("n2", made);
    let (host, why) = told(lab, "n2", exe, "/g/f");
    assert_eq!(host, "n2", "{why}");
    lab.ok("n2", "umount /g");
}
