//! Disks of the hosts of a lab: loop devices of this machine that a host has a node for. Needs root; otherwise prints
//! a note and is skipped.

use crate::guests::{best_kind, serving};
use crate::setup::{Up, failed};
use crate::support::{Lab, err, missing};
use serde_json::Value;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

/// A file of this machine as a disk of a host.
struct Disk {
    image: PathBuf,
    device: String,
    /// The disk's name in the cluster file.
    name: String,
}

fn said(program: &str, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_string()
}

impl Disk {
    fn new(up: &Up, name: &str, mib: u64) -> Disk {
        let image = up.state.path().join(name);
        File::create(&image).unwrap().set_len(mib << 20).unwrap();
        let device = said("losetup", &["-f", "--show", image.to_str().unwrap()]);
        Disk { image, name: device.clone(), device }
    }

    fn named(up: &Up, image: &str, name: &str) -> Disk {
        let mut disk = Disk::new(up, image, 64);
        disk.name = name.into();
        disk
    }

    fn serial(&self) -> String {
        self.image.display().to_string()
    }

    /// Gives a host the node of the disk. A host has no udev, and sees the disk only then.
    fn appears(&self, lab: &Lab, host: &str) {
        let number = std::fs::read_to_string(format!("/sys/block/{}/dev", &self.device[5..])).unwrap();
        let device = &self.device;
        lab.ok(host, &format!("rm -f {device}; mknod {device} b {}", number.trim().replace(':', " ")));
        if self.name != self.device {
            lab.ok(host, &format!("mkdir -p /dev/disk/by-path; ln -sf {device} {}", self.name));
        }
    }

    fn write(&self, at: u64, bytes: &[u8]) {
        File::options().write(true).open(&self.device).unwrap().write_all_at(bytes, at).unwrap();
        said("sync", &[&self.device]);
    }

    fn hash(&self) -> String {
        said("blockdev", &["--flushbufs", &self.device]);
        said("sha256sum", &[&self.device])
    }

    fn is_blank(&self) -> bool {
        said("blockdev", &["--flushbufs", &self.device]);
        let mut bytes = vec![1; 1 << 20];
        let file = File::open(&self.device).unwrap();
        let last = std::fs::metadata(&self.image).unwrap().len() - (1 << 20);
        [0, last].into_iter().all(|at| {
            file.read_exact_at(&mut bytes, at).unwrap();
            bytes.iter().all(|byte| *byte == 0)
        })
    }
}

impl Drop for Disk {
    /// Detaches the loop device. A host that still has it mounted keeps it until then.
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.device]).output();
    }
}

/// The lab is first, so it is dropped before its disks.
struct Disks {
    up: Up,
    data: [Disk; 2],
    fast: Disk,
}

impl Disks {
    fn cluster(&self, more: &str) {
        let [n1, n2] = self.data.each_ref().map(|disk| disk.name.as_str());
        let text = format!(
            "hosts = \"n[1-2]\"\n[up.disk.\"/data\"]\ndevices = {{ n1 = \"{n1}\", n2 = \"{n2}\" }}\n{more}\n\
             [up.disk.\"/fast\"]\ndevices = {{ n1 = \"{}\" }}\ntype = \"xfs\"\n",
            self.fast.device
        );
        std::fs::write(self.up.state.path().join("c.toml"), text).unwrap();
    }

    /// Returns why homing refuses the disk of n2. Nothing may be planned there.
    fn refused(&self) -> String {
        let plan = self.up.json(&["--dry-run", "--only", "disks"]);
        let rows = plan["hosts"].as_array().unwrap();
        assert_eq!(rows[1]["plan"], Value::Array(Vec::new()), "{plan}");
        failed(&plan, "n2").join("; ")
    }

    fn done(&self) -> Value {
        let done = self.up.json(&SET);
        assert_eq!(done["exit"], 0, "{done}");
        done
    }
}

/// Prints which file systems homing takes for empty, per kind. On the first, a file was fsynced before the power was
/// cut: its counts are still those from before. The others are unmounted, one with that file, and one without.
const EMPTY: &str = r#"set -eu; cd "$1"; . "$2"; mkdir m
loop=; trap 'umount m 2>/dev/null || true; [ -z "$loop" ] || losetup -d "$loop"' EXIT
told() { loop=$(losetup -f --show "$1"); disk_empty "${loop#/dev/}" && echo yes || echo no; losetup -d "$loop"; loop=; }
for kind in ext4 xfs; do
  truncate -s 320M disk; mkfs.$kind -q disk
  mount -o loop disk m; echo x >m/file; sync m/file m; cp --sparse=always disk cut; umount m; told cut; told disk
  mount -o loop disk m; rm m/file; umount m; told disk; rm disk cut
done"#;

#[test]
fn a_disk_whose_power_was_cut_is_not_taken_for_empty() {
    if missing(&["losetup", "mkfs.ext4", "mkfs.xfs"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let functions = concat!(env!("CARGO_MANIFEST_DIR"), "/../../admin/steps/src/disk.sh");
    // In a namespace of its own. Otherwise a lab that is raised meanwhile would keep these mounts after their
    // unmount.
    assert_eq!(
        said("unshare", &["-m", "sh", "-c", EMPTY, "sh", folder.path().to_str().unwrap(), functions]),
        "no\nno\nyes\nno\nno\nyes"
    );
}

/// Arguments for the area of disks alone.
const SET: [&str; 3] = ["--no-check", "--only", "disks"];
const MOUNTED: &str = "findmnt -nro TARGET,FSTYPE,SOURCE /data; findmnt -nro TARGET,FSTYPE,SOURCE /fast; true";

#[test]
fn disks_are_made_and_mounted_and_what_holds_anything_is_left_alone() {
    if missing(&["systemd-nspawn", "losetup", "mkfs.ext4", "mkfs.xfs"]) {
        return;
    }
    let up = Up { lab: Lab::up("disks", &["--hosts", "2"]), state: tempfile::tempdir().unwrap() };
    let data = [Disk::new(&up, "one", 64), Disk::named(&up, "two", "/dev/disk/by-path/two")];
    let fast = Disk::new(&up, "fast", 320);
    let mut disks = Disks { up, data, fast };
    disks.data[0].appears(&disks.up.lab, "n1");
    disks.data[1].appears(&disks.up.lab, "n2");
    disks.fast.appears(&disks.up.lab, "n1");
    disks.cluster("");
    whatever_it_holds_it_is_left_alone(&disks);
    its_own_serial_number_lets_it_be_erased(&disks);
    killed_at_any_step_it_goes_on(&disks);
    what_holds_files_stays(&disks);
    moved_gone_and_replaced(&mut disks);
}

fn whatever_it_holds_it_is_left_alone(disks: &Disks) {
    let (up, disk) = (&disks.up, &disks.data[1]);
    said("mkfs.ext4", &["-q", &disk.device]);
    let before = disk.hash();
    let told = up.json(&SET);
    assert!(told["exit"] == 254 && failed(&told, "n1").is_empty(), "{told}");
    assert!(failed(&told, "n2")[0].contains("it holds ext4; to erase all of that, set wipe ="), "{told}");
    let (data, fast) = (&disks.data[0].device, &disks.fast.device);
    assert_eq!(up.lab.ok("n1", MOUNTED), format!("/data ext4 {data}\n/fast xfs {fast}\n"));
    up.lab.ok("n2", "! test -e /data && ! test -e /var/lib/homing/up && ! grep homing /etc/fstab");

    assert_eq!(disk.hash(), before);

    // A namespace that the host cannot see has the disk mounted.
    let point = up.state.path().join("mounted");
    std::fs::create_dir(&point).unwrap();
    said("mount", &[&disk.device, point.to_str().unwrap()]);
    let why = disks.refused();
    said("umount", &[point.to_str().unwrap()]);
    assert!(why.contains("it is in use (somebody's, the kernel says)"), "{why}");
    up.lab.ok("n2", &format!("mount {} /mnt", disk.device));
    assert!(disks.refused().contains("it is in use (mounted at /mnt)"));
    up.lab.ok("n2", "umount /mnt");

    said("wipefs", &["-a", "-q", &disk.device]);
    assert!(disks.refused().contains("it holds bytes at byte 10"));
    // `dd` over the table of a disk leaves this state: the first partition begins behind it.
    disk.write(0, &vec![0; 64 << 20]);
    said("mkfs.ext4", &["-q", "-F", "-E", "offset=1048576", &disk.device, "32768"]);
    said("sync", &[&disk.device]);
    let why = disks.refused();
    assert!(why.contains("it holds ext4 that begins at byte 1048576, bytes at byte 104"), "{why}");
    disk.write(0, &vec![0; 64 << 20]);
    disk.write(20 << 20, &[7; 4096]);
    assert!(disks.refused().contains(&format!("it holds bytes at byte {} and behind it", 20 << 20)));
    disk.write(20 << 20, &[0; 4096]);
    // The last block has the second header of a GPT, and there is no first one.
    let last = (64 << 20) - 512;
    disk.write(last, b"EFI PART");
    assert!(disks.refused().contains(&format!("it holds bytes at byte {last} and behind it")));
    disk.write(last, &[0; 512]);
    assert!(disk.is_blank());

    disks.up.lab.ok("n2", &format!("blockdev --setro {}", disk.device));
    assert!(disks.refused().contains("it is not writable"));
    disks.up.lab.ok("n2", &format!("blockdev --setrw {}", disk.device));
    std::fs::OpenOptions::new().write(true).open(&disk.image).unwrap().set_len(15 << 20).unwrap();
    said("losetup", &["-c", &disk.device]);
    assert!(disks.refused().contains("(15.7 MB, ") && disks.refused().contains("it is not large enough"));
    std::fs::OpenOptions::new().write(true).open(&disk.image).unwrap().set_len(64 << 20).unwrap();
    said("losetup", &["-c", &disk.device]);
}

fn its_own_serial_number_lets_it_be_erased(disks: &Disks) {
    let disk = &disks.data[1];
    said("mkfs.ext4", &["-q", &disk.device]);
    disks.cluster("wipe = { n2 = \"another\" }");
    assert!(disks.refused().contains("wipe names \"another\", which is another disk"));
    disks.cluster(&format!("wipe = {{ n2 = \"{}\" }}", disk.serial()));
    let plan = disks.up.json(&["--dry-run"]);
    let told =
        format!("disk {} (67.1 MB, {}): EVERYTHING ON IT IS ERASED (ext4), ext4 is made", disk.name, disk.serial());
    assert!(plan.to_string().contains(&told), "{plan}");
    assert_eq!(disks.done()["steps"], 3);
    assert_eq!(disks.done()["steps"], 0);
    // A word that is still in the file does not cover a file system that somebody makes there later.
    let lab = &disks.up.lab;
    lab.ok("n2", &format!("umount /data && mkfs.ext4 -q -F {}", disk.device));
    assert!(disks.refused().contains("ext4 was put there since"));
    assert_eq!(disks.up.json(&["--undo"])["exit"], 0);
    lab.ok("n2", "! test -e /data && ! grep homing /etc/fstab && ! test -e /var/lib/homing/up");
    assert_eq!(disks.done()["steps"], 8);
    disks.cluster("");
    assert_eq!(disks.done()["steps"], 0);
    for host in ["n1", "n2"] {
        let verified = disks.up.lab.ok(host, "findmnt --verify");
        assert!(verified.contains("Success, no errors or warnings"), "{verified}");
    }
    it_is_mounted_at_the_next_boot(disks);
}

/// Checks the unit that systemd makes of fstab when it starts. The generator leaves disks out in a container, so it
/// runs on this machine.
fn it_is_mounted_at_the_next_boot(disks: &Disks) {
    let generator = "/usr/lib/systemd/system-generators/systemd-fstab-generator";
    let folder = disks.up.state.path().join("units");
    std::fs::create_dir(&folder).unwrap();
    let fstab = disks.up.state.path().join("fstab");
    std::fs::write(&fstab, disks.up.lab.ok("n2", "cat /etc/fstab")).unwrap();
    let generated = Command::new(generator).args([&folder; 3]).env("SYSTEMD_FSTAB", &fstab).output().unwrap();
    assert!(generated.status.success(), "{generated:?}");
    if err(&generated).contains("Running in a container") {
        return;
    }
    let unit = std::fs::read_to_string(folder.join("data.mount")).unwrap();
    let uuid = said("blkid", &["-p", "-s", "UUID", "-o", "value", &disks.data[1].device]);
    assert!(unit.contains(&format!("What=/dev/disk/by-uuid/{uuid}\n")) && unit.contains("Where=/data\n"), "{unit}");
    assert!(folder.join("local-fs.target.wants/data.mount").exists());
}

/// Replacements for programs of a host. They end the whole step, and themselves, with their work half done.
const HALF: [(&str, &str); 4] = [
    ("mkfs.ext4", "for d; do :; done; head -c 300000 /dev/urandom > $d; sync $d"),
    ("mkfs.ext4", "/usr/sbin/mkfs.ext4 \"$@\"; sync"),
    ("blkid", "true"),
    ("mount", "true"),
];

fn killed_at_any_step_it_goes_on(disks: &Disks) {
    let lab = &disks.up.lab;
    assert_eq!(disks.up.json(&["--undo"])["exit"], 0);
    disks.up.killed_at("disks");
    disks.done();
    assert_eq!(disks.done()["steps"], 0, "homing was killed, and not the host");
    for (program, does) in HALF {
        let undone = disks.up.json(&["--undo"]);
        assert_eq!(undone["exit"], 0, "{undone}");
        assert!(disks.data[1].is_blank() && disks.fast.is_blank(), "nobody has put anything into them: {undone}");
        lab.ok("n2", "! test -e /data && ! grep homing /etc/fstab && ! test -e /var/lib/homing/up && ! ls /var/lib/homing/disk.* 2>/dev/null");
        let wrapper = format!("/usr/local/bin/{program}");
        lab.ok("n2", &format!("printf '%s\\n' '#!/bin/sh' '{does}' 'kill -9 0' > {wrapper}; chmod 755 {wrapper}"));
        let killed = disks.up.json(&SET);
        assert!(killed["exit"] == 254 && failed(&killed, "n1").is_empty(), "{program}: {killed}");
        lab.ok("n2", &format!("rm {wrapper}; ! mountpoint -q /data"));
        disks.done();
        lab.ok("n2", "mountpoint -q /data && ! ls /var/lib/homing/disk.* 2>/dev/null");
        assert_eq!(disks.done()["steps"], 0, "{program}");
    }
}

fn what_holds_files_stays(disks: &Disks) {
    let lab = &disks.up.lab;
    lab.ok("n2", "echo theirs > /data/file");
    let plan = disks.up.json(&["--undo", "--dry-run"]);
    assert!(plan["notes"].to_string().contains("with the files in it, stays"), "{plan}");
    let undone = disks.up.json(&["--undo"]);
    assert_eq!(undone["exit"], 0, "{undone}");
    let name = &disks.data[1].name;
    assert!(undone["notes"].to_string().contains(&format!("the ext4 of disk {name}")), "{undone}");
    assert!(undone["notes"].to_string().contains("with the files in it, stays"), "{undone}");
    lab.ok("n2", "! test -e /data && ! grep homing /etc/fstab && ! test -e /var/lib/homing/up");
    disks.done();
    assert_eq!(lab.ok("n2", "cat /data/file"), "theirs\n");
}

fn moved_gone_and_replaced(disks: &mut Disks) {
    // The disk has another device name, and its old name is gone. homing finds it by its serial number.
    let lab = &disks.up.lab;
    let Disk { device: old, name, image } = &disks.data[1];
    let moved = said("losetup", &["-f", "--show", image.to_str().unwrap()]);
    lab.ok("n2", &format!("umount /data; rm {old} {name}"));
    said("losetup", &["-d", old]);
    let (old, name) = (old.clone(), name.clone());
    disks.data[1].device = moved.clone();
    disks.data[1].appears(lab, "n2");
    lab.ok("n2", &format!("rm {name}"));
    let done = disks.up.json(&SET);
    assert!(done["exit"] == 0 && moved != old, "{done}");
    assert_eq!(lab.ok("n2", "cat /data/file; findmnt -nro SOURCE /data"), format!("theirs\n{moved}\n"));

    // The disk is gone; then another disk has its name.
    lab.ok("n2", &format!("umount /data; rm {moved}"));
    said("losetup", &["-d", &moved]);
    let gone = disks.refused();
    assert!(gone.contains(&format!("there is no disk {name}")) && gone.contains("which is gone"), "{gone}");
    let other = Disk::named(&disks.up, "other", &name);
    other.appears(lab, "n2");
    let told = disks.up.json(&SET);
    assert!(told["exit"] == 254 && failed(&told, "n1").is_empty(), "{told}");
    assert!(failed(&told, "n2")[0].contains("and this is another disk"), "{told}");
    assert!(other.is_blank());
    let undone = disks.up.json(&["--undo"]);
    assert!(undone["exit"] == 0 && undone["notes"].to_string().contains("is missing"), "{undone}");
    lab.ok("n2", "! grep homing /etc/fstab && ! test -e /var/lib/homing/up");
}

/// Four blank loop devices, large enough for a file system each.
const LOOPS: &str = "modprobe -a loop raid1 dm-mod; cd /scratch; for i in 4 5 6 7; do truncate -s 20M disk$i; \
                     losetup /dev/loop$i disk$i; done";

const JOINED: &str = "hosts = \"n1\"\n[up.disk.\"/srv/pair\"]\ndevices = { n1 = [\"/dev/loop4\", \"/dev/loop5\"] }\n\
                      join = \"raid1\"\n[up.disk.\"/srv/sum\"]\ndevices = { n1 = [\"/dev/loop6\", \"/dev/loop7\"] }\njoin = \"lvm\"\n";

/// Hosts in containers have no arrays of their own, so the host is a guest with its own kernel.
#[test]
#[ignore = "half an hour of guests: SLOW=1 make test-lab ONLY=up_disks"]
fn joined_disks_are_made_found_again_and_taken_back() {
    let Some((_program, lab)) = serving("joined", best_kind(), "2", &["losetup", "mdadm", "lvm"]) else { return };
    let up = Up { lab, state: tempfile::tempdir().unwrap() };
    let lab = &up.lab;
    std::fs::write(up.state.path().join("c.toml"), JOINED).unwrap();
    let done = |steps: u64| {
        let done = up.json(&SET);
        assert_eq!((done["exit"].as_i64(), done["steps"].as_u64()), (Some(0), Some(steps)), "{done}");
    };
    let is_blank = "for i in 4 5; do cmp -n 20971520 /dev/loop$i /dev/zero; done; cat /proc/mdstat";
    lab.ok("n1", LOOPS);

    // One disk that holds something keeps all of the host as they are.
    lab.ok("n1", "mkfs.ext4 -q /dev/loop7");
    let plan = up.json(&["--dry-run", "--only", "disks"]);
    assert!(failed(&plan, "n1").join("; ").contains("it holds ext4 on /dev/loop7; to erase all of that"), "{plan}");
    lab.ok("n1", "wipefs -aq /dev/loop7; dd if=/dev/zero of=/dev/loop7 bs=1M count=20 conv=fsync 2>/dev/null");

    // The maker of the file system ends the whole step, with the array made.
    let wrapper = "/usr/local/bin/mkfs.ext4";
    lab.ok("n1", &format!("printf '%s\\n' '#!/bin/sh' 'kill -9 0' >{wrapper}; chmod 755 {wrapper}"));
    assert_eq!(up.json(&SET)["exit"], 254);
    lab.ok("n1", &format!("rm {wrapper}; grep '2/2' /proc/mdstat; ls /var/lib/homing/disk.*"));
    done(5);
    lab.ok("n1", "grep '2/2' /proc/mdstat; mountpoint -q /srv/pair && mountpoint -q /srv/sum; ! ls /var/lib/homing/disk.* 2>/dev/null");
    assert!(lab.ok("n1", "lvm lvs --noheadings -o vg_name,lv_name,lv_size").contains("data"));
    done(0);

    // With one of its disks gone the array remains homing's.
    lab.ok("n1", "md=/dev/$(ls /sys/class/block/loop5/holders); mdadm $md --fail /dev/loop5 --remove /dev/loop5; cat /sys/block/md*/md/degraded | grep 1");
    done(0);

    lab.ok("n1", "echo theirs >/srv/sum/file");
    let undone = up.json(&["--undo"]);
    assert!(undone["exit"] == 0 && undone["notes"].to_string().contains("with the files in it, stays"), "{undone}");
    assert!(lab.ok("n1", is_blank).contains("unused devices: <none>"), "{undone}");
}
