#!/usr/bin/env python3
"""Cuts the power of the bank's host at random moments; each finished image must restore equal, none unfinished may be
offered.

Usage: snapshot_power.py HOMING FOLDER [CUTS [SEED [ext4|xfs]]]     root only
FOLDER is made, for the source and a bank on a loop device. A cut is what the kernel offers for it: the bank's file
system is shut down without its log being written (what was not on the disk is lost), all of homing there is killed, it
is mounted anew, and the host has another boot id. Ends with 1 at the first thing that is wrong.
"""
import fcntl, json, os, pathlib, random, shutil, signal, struct, subprocess, sys, time, uuid

# XFS_IOC_GOINGDOWN and XFS_FSOP_GOING_FLAGS_NOLOGFLUSH of xfs_fs.h; ext4 has the same as EXT4_IOC_SHUTDOWN.
GOING_DOWN, NO_LOG_FLUSH = 0x8004587D, 2
BOOT = "/proc/sys/kernel/random/boot_id"

if "IN_NAMESPACE" not in os.environ:
    os.environ["IN_NAMESPACE"] = "1"
    os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])

homing, folder = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
cuts = int(sys.argv[3]) if len(sys.argv) > 3 else 50
seed = int(sys.argv[4]) if len(sys.argv) > 4 else 26
kind = sys.argv[5] if len(sys.argv) > 5 else "ext4"
random.seed(seed)
shutil.rmtree(folder, ignore_errors=True)
src, bank, out, disk, boot = (folder / name for name in ["src", "bank", "out", "disk", "boot"])
src.mkdir(parents=True)
bank.mkdir()
to = ["--to", f"localhost:{bank}"]


def run(*words):
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


def say(*words):
    """Runs homing snapshot; its output where it ended with 0."""
    said = subprocess.run([homing, "snapshot", *words, *to], capture_output=True)
    if said.returncode != 0:
        sys.exit(f"seed {seed}, cut {done}: {words}: {said.stdout.decode()} {said.stderr.decode()}")
    return said.stdout


def listed():
    return json.loads(say("list", "src", "--json"))["vaults"][0]["holds"]


def same(a, b):
    words = ["rsync", "-aHAXnci", "--numeric-ids", "--delete", "--omit-dir-times", f"{a}/", f"{b}/"]
    return subprocess.run(words, capture_output=True, check=True).stdout == b""


def change():
    for _ in range(40):
        path = src / f"d{random.randrange(20)}" / f"f{random.randrange(40)}"
        path.parent.mkdir(exist_ok=True)
        if path.exists() and random.random() < 0.2:
            path.unlink()
        else:
            path.write_bytes(random.randbytes(random.choice([0, 100, 5000, 400_000])))


def new_boot():
    boot.write_text(f"{uuid.uuid4()}\n")


def cut(child):
    """Nothing of this boot goes on, and nothing that was only in memory is seen again."""
    root = os.open(bank, os.O_RDONLY)
    fcntl.ioctl(root, GOING_DOWN, struct.pack("I", NO_LOG_FLUSH))
    os.close(root)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    # rsync is a group of its own, and ends with who began it.
    for _ in range(200):
        if subprocess.run(["umount", bank], stderr=subprocess.DEVNULL).returncode == 0:
            break
        time.sleep(0.05)
    else:
        sys.exit(f"seed {seed}, cut {done}: somebody still uses the bank")
    new_boot()
    run("mount", "-o", "loop", disk, bank)


done = 0
disk.touch()
os.truncate(disk, 600 << 20)
run(f"mkfs.{kind}", "-q", disk)
run("mount", "-o", "loop", disk, bank)
new_boot()
run("mount", "--bind", boot, BOOT)
for _ in range(6):
    change()
begun = time.monotonic()
say(str(src))
usual = time.monotonic() - begun
known = {image["name"] for image in listed()["images"]}
finished, unfinished, made_after = 0, 0, 0
while done < cuts:
    change()
    words = [homing, "snapshot", str(src), *to, "-q"]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    time.sleep(random.uniform(0, 1.3 * usual))
    done += 1
    cut(child)
    # Images are named by the second.
    time.sleep(1.1)
    now = listed()
    if not known <= {image["name"] for image in now["images"]}:
        sys.exit(f"seed {seed}, cut {done}: of {known} some are lost: {now}")
    for image in now["images"]:
        if image["name"] in known:
            continue
        known.add(image["name"])
        finished += 1
        shutil.rmtree(out, ignore_errors=True)
        say("restore", "src", "--at", image["name"], "--into", str(out))
        if image["status"] != "success" or not same(src, out):
            sys.exit(f"seed {seed}, cut {done}: {image} is not what was copied")
    unfinished += bool(now["unfinished"])
    if random.random() < 0.4:
        made = json.loads(say(str(src), "--json"))["made"]
        made_after += 1
        known.add(made["image"])
        if not same(src, bank / "src" / made["image"] / "tree"):
            sys.exit(f"seed {seed}, after cut {done}: {made} is not what was copied")
        time.sleep(1.1)
for name in sorted(known):
    say("verify", "src", "--at", name, "--files", "1000000")
run("umount", bank)
print(f"{kind}, seed {seed}: {done} cuts, {finished} images finished all the same, {unfinished} times one was left "
      f"unfinished, {made_after} made after a cut, {len(known)} images verified whole")
