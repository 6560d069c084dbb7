"""A lab for a benchmark: raised, asked for its counters, taken down."""

import contextlib
import json
import os
import subprocess

import peers


# For a host of a lab with GlusterFS: one file server, where a lab's volume has a brick on each of its hosts.
ONE_BRICK = """v=$(gluster volume list) && others=$(gluster volume info $v | sed -n '/^Brick1:/!s/^Brick[0-9][0-9]*: //p')
[ -z "$others" ] || gluster --mode=script volume remove-brick $v $others force"""


def homing(*words, **more):
    return subprocess.run([peers.HOMING, *words], check=True, **more)


def name(usual):
    """The lab of this name, else one that is up already and stays: LAB=NAME, for
    guests, which take longer to raise than many a measurement."""
    return os.environ.get("LAB", usual)


@contextlib.contextmanager
def lab(name, *options):
    if name == os.environ.get("LAB"):
        yield name
        return
    subprocess.run([peers.HOMING, "lab", "down", "--name", name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    homing("lab", "up", "--name", name, *options, stdout=subprocess.DEVNULL)
    try:
        yield name
    finally:
        # What was measured is worth more than a clean end, which down itself asks for when it fails.
        subprocess.run([peers.HOMING, "lab", "down", "--name", name], stdout=subprocess.DEVNULL)


def on(name, host, *words, **more):
    more.setdefault("stdin", subprocess.DEVNULL)
    return homing("lab", "exec", "--name", name, host, "--", *words, **more)


def start_on(name, host, *words, **more):
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([peers.HOMING, "lab", "exec", "--name", name, host, "--", *words], **more)


def hosts(name):
    status = homing("lab", "status", "--name", name, "--json", capture_output=True)
    return json.loads(status.stdout)["hosts"]


def received(name):
    """Bytes that entered the hosts over their links since they booted."""
    return sum(host["rx_bytes"] for host in hosts(name))


def cold():
    """What was read before must come from where it lies."""
    subprocess.run(["sync"], check=True)
    with open("/proc/sys/vm/drop_caches", "w") as caches:
        caches.write("3")


def everywhere(name, command):
    """Runs a shell command on all hosts at once."""
    running = [start_on(name, host["name"], "sh", "-c", command) for host in hosts(name)]
    for process in running:
        if process.wait() != 0:
            raise SystemExit(f"bench: on a host of the lab: {command}: exit status {process.returncode}")
