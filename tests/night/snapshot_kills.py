#!/usr/bin/env python3
"""Kills snapshots at random moments; each finished image must restore equal, none unfinished may be offered.

Usage: snapshot_kills.py HOMING FOLDER [KILLS [SEED]]
FOLDER is made, and has to be on a file system with hard links. Ends with 1 at the first thing that is wrong.
"""
import json, os, pathlib, random, shutil, signal, subprocess, sys, time

homing, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
kills = int(sys.argv[3]) if len(sys.argv) > 3 else 50
seed = int(sys.argv[4]) if len(sys.argv) > 4 else 26
random.seed(seed)
src, bank, out = folder / "src", folder / "bank", folder / "out"
shutil.rmtree(folder, ignore_errors=True)
src.mkdir(parents=True)
bank.mkdir()
to = ["--to", f"localhost:{bank}"]


def say(*words):
    """Runs homing snapshot; its output where it ended with 0."""
    run = subprocess.run([homing, "snapshot", *words, *to], capture_output=True)
    if run.returncode != 0:
        sys.exit(f"seed {seed}: {words}: {run.stdout.decode()} {run.stderr.decode()}")
    return run.stdout


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


def descendants(pid):
    found = [pid]
    for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            found += descendants(int(child))
        except FileNotFoundError:
            pass
    return found


def kill(child):
    try:
        all = descendants(child.pid)
    except FileNotFoundError:
        return "nobody"
    which = random.choice(["coordinator", "far", "last", "all"])
    chosen = {"coordinator": all[:1], "far": all[1:2], "last": all[-1:], "all": all}[which]
    for pid in chosen:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return f"{which} of {len(all)}"


for _ in range(6):
    change()
begun = time.monotonic()
subprocess.run([homing, "snapshot", str(src), *to], check=True, capture_output=True)
usual = time.monotonic() - begun
known = {image["name"] for image in listed()["images"]}
done, finished, unfinished, resumed = 0, 0, 0, 0
while done < kills:
    change()
    child = subprocess.Popen([homing, "snapshot", str(src), *to], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(random.uniform(0, 1.2 * usual))
    killed = kill(child)
    child.wait()
    done += 1
    # Images are named by the second.
    time.sleep(1.1)
    now = listed()
    for image in now["images"]:
        if image["name"] in known:
            continue
        known.add(image["name"])
        finished += 1
        shutil.rmtree(out, ignore_errors=True)
        say("restore", "src", "--at", image["name"], "--into", str(out))
        if image["status"] != "success" or not same(src, out):
            sys.exit(f"seed {seed}, kill {done} ({killed}): {image} is not what was copied")
    unfinished += bool(now["unfinished"])
    if random.random() < 0.3:
        made = json.loads(subprocess.run([homing, "snapshot", str(src), "--json", *to], capture_output=True, check=True).stdout)["made"]
        known.add(made["image"])
        resumed += made["resumed"]
        if not same(src, bank / "src" / made["image"] / "tree"):
            sys.exit(f"seed {seed}, after kill {done} ({killed}): {made} is not what was copied")
        time.sleep(1.1)
for image in listed()["images"]:
    say("verify", "src", "--at", image["name"], "--files", "1000000")
print(f"seed {seed}: {done} kills, {finished} images finished all the same, {unfinished} times one was left unfinished, "
      f"{resumed} gone on with, {len(known)} images verified whole")
