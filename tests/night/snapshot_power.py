#!/usr/bin/env python3
"""Cuts the power of the bank's host at random moments; each finished image must restore equal, none unfinished may be
offered.

Usage: snapshot_power.py HOMING FOLDER [CUTS [SEED [ext4|xfs]]]     root only
FOLDER is made, for the source and a bank on a loop device. A cut is what the kernel offers for it: the bank's file
system is shut down without its log being written (what was not on the disk is lost), all of homing there is killed, it
is mounted anew, and the host has another boot id. Ends with 1 at the first thing that is wrong.
"""
import fcntl, os, random, signal, struct, subprocess, sys, time, uuid

from snapshot_images import Images, words

# XFS_IOC_GOINGDOWN and XFS_FSOP_GOING_FLAGS_NOLOGFLUSH of xfs_fs.h; ext4 has the same as EXT4_IOC_SHUTDOWN.
GOING_DOWN, NO_LOG_FLUSH = 0x8004587D, 2
BOOT = "/proc/sys/kernel/random/boot_id"

if "IN_NAMESPACE" not in os.environ:
    os.environ["IN_NAMESPACE"] = "1"
    os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def new_boot():
    boot.write_text(f"{uuid.uuid4()}\n")


def cut(child):
    """Nothing of this boot goes on, and nothing that was only in memory is seen again."""
    root = os.open(images.bank, os.O_RDONLY)
    fcntl.ioctl(root, GOING_DOWN, struct.pack("I", NO_LOG_FLUSH))
    os.close(root)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    # rsync is a group of its own, and ends with who began it.
    for _ in range(200):
        if subprocess.run(["umount", images.bank], stderr=subprocess.DEVNULL).returncode == 0:
            break
        time.sleep(0.05)
    else:
        images.wrong("somebody still uses the bank")
    new_boot()
    run("mount", "-o", "loop", disk, images.bank)


homing, folder, cuts, seed, (kind, *_) = words(__doc__, ["ext4"])
images = Images(homing, folder, seed)
disk, boot = folder / "disk", folder / "boot"
disk.touch()
os.truncate(disk, 600 << 20)
run(f"mkfs.{kind}", "-q", disk)
run("mount", "-o", "loop", disk, images.bank)
new_boot()
run("mount", "--bind", boot, BOOT)
usual = images.first()
while images.moment < cuts:
    child = images.begin()
    time.sleep(random.uniform(0, 1.3 * usual))
    cut(child)
    images.after("the power was cut")
images.end(kind)
run("umount", images.bank)
