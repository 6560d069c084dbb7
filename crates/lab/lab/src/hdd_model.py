# A disk with one head, as a plugin of nbdkit's Python language. It serves one
# request at a time. A request costs its bytes over the transfer rate, and a
# seek when it does not begin where the last one ended. Writes cost the same.
import os
import threading
import time

import nbdkit

API_VERSION = 2
RATE = 150e6  # bytes per second
SEEK = 0.008  # seconds

image = None
times = 1.0  # slower than that
disk = None
lock = threading.Lock()
head = -1
free_at = 0.0


def config(key, value):
    global image, times
    if key == "image":
        image = value
    elif key == "times":
        times = float(value)
    else:
        raise RuntimeError("unknown parameter " + key)


def config_complete():
    global disk
    if image is None:
        raise RuntimeError("image=FILE is needed")
    disk = os.open(image, os.O_RDWR)


def thread_model():
    return nbdkit.THREAD_MODEL_PARALLEL


def open(readonly):
    return 1


def get_size(h):
    return os.fstat(disk).st_size


def move_head(offset, count):
    # The time at which the head is free is counted on, not measured, so that
    # late wake-ups do not make the disk slower than it is said to be.
    global head, free_at
    now = time.monotonic()
    free_at = max(free_at, now) + times * (count / RATE + (0.0 if offset == head else SEEK))
    head = offset + count
    time.sleep(max(0.0, free_at - now))


def pread(h, buf, offset, flags):
    with lock:
        move_head(offset, len(buf))
        os.preadv(disk, [buf], offset)


def pwrite(h, buf, offset, flags):
    with lock:
        move_head(offset, len(buf))
        os.pwrite(disk, buf, offset)


def can_multi_conn(h):
    return True


def flush(h, flags):
    os.fdatasync(disk)


def trim(h, count, offset, flags):
    pass


def zero(h, count, offset, flags):
    with lock:
        os.pwrite(disk, bytes(count), offset)
