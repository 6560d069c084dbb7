#!/usr/bin/env python3
"""Kills snapshots at random moments; each finished image must restore equal, none unfinished may be offered.

Usage: snapshot_kills.py HOMING FOLDER [KILLS [SEED]]
FOLDER is made, and has to be on a file system with hard links. Ends with 1 at the first thing that is wrong.
"""
import os, pathlib, random, signal, time

from snapshot_images import Images, words


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
    return f"{which} of {len(all)} killed"


homing, folder, kills, seed, _ = words(__doc__)
images = Images(homing, folder, seed)
usual = images.first()
while images.moment < kills:
    child = images.begin()
    time.sleep(random.uniform(0, 1.2 * usual))
    killed = kill(child)
    child.wait()
    images.after(killed)
images.end("kills")
