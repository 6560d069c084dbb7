"""Detached jobs (``homing sub``) and the places of files (``homing where``)."""

from __future__ import annotations

import os, subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ._program import Word, arguments, call, document, encode, program, text_of


@dataclass(frozen=True)
class Placement:
    """The hosts that hold the bytes of one file."""

    path: str  # the file as it was given, or below a folder that was given; `os.fsencode` returns its bytes
    size: int  # bytes of the file
    volume: str  # the volume after its kind, as "gluster:n1:/gv"; empty if nothing is known of the file
    hosts: dict[str, int]  # for each host the bytes of the file on its disks; each copy counts on its host
    reason: str | None  # why nothing is known of the file, in the words of the system


def where(paths: Word | Iterable[Word], **options: Any) -> list[Placement]:
    """Returns the hosts that hold the bytes of files, and of all files below folders.

    `paths`: one path, or several. A missing file is no error: its `Placement` has a `reason`. Options are those of
    ``homing where``: ``limit=N`` (files below each folder), ``fs_timeout=SECONDS``. Raises `Error` for others.
    """
    words = arguments(options, dict.fromkeys("json extents e files_from null 0".split(), "homing.where sets it"))
    several = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else paths
    given = b"".join(encode(path) + b"\0" for path in several)
    files = document(call("where", [*words, b"--json", b"-0", b"--files-from=-"], given))["files"] if given else []
    return [_placement(file) for file in files]


def _placement(file: Any) -> Placement:
    hosts: dict[str, int] = {}
    for extent in file["extents"]:
        for host in {replica["host"] for replica in extent["replicas"]}:
            hosts[host] = hosts.get(host, 0) + extent["length"]
    return Placement(text_of(file["path"]), file["size"], file["volume"], hosts, file.get("reason"))


@dataclass(frozen=True)
class Job:
    """A detached job. It continues when this process ends."""

    id: str  # its number in ``homing jobs``, or Slurm's
    engine: str | None = None  # "local" or "slurm"; None: by the defaults of the program

    def _words(self) -> list[bytes]:
        return [*arguments({"engine": self.engine}, {}), encode(self.id)]

    def info(self) -> list[dict[str, Any]]:
        """Returns the fields of ``homing jobs --json`` (docs/formats.md), such as ``state``, of each element."""
        return list(document(call("jobs", [b"--json", *self._words()])))

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end and returns the job's exit status, as ``homing wait``: 128 and the number of a signal, ...

        Raises `TimeoutError` after `timeout` seconds, when the job continues, and `Error` if there is no such job.
        """
        self.info()
        try:
            return subprocess.run([program(), "wait", *self._words()], timeout=timeout, capture_output=True).returncode
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"job {self.id} has not ended after {timeout} s") from None

    def output(self) -> bytes:
        """Returns the output that the job has written so far, unless it goes to the file of ``output=``."""
        return call("peek", self._words())

    def kill(self, signal: str | int | None = None) -> None:
        """Ends the job, or sends it a signal, a number or a name such as ``USR1``."""
        call("kill", [*arguments({"signal": signal}, {}), *self._words()])


def submit(command: Word | Sequence[Word], **options: Any) -> Job:
    """Submits a command that runs detached, and returns its `Job`.

    `command`: a line for the shell, or a list with a program and its arguments. Options are those of ``homing sub``:
    ``hosts=`` (one host, by ssh), ``slots=N``, ``mem="2G"``, ``timeout="5m"`` (a number: seconds), ``after=ID``,
    ``name="sim[1-50]%8"``, ``near=[...]``. Raises `ValueError` or `Error` for others.
    """
    words = [command] if isinstance(command, (str, bytes, os.PathLike)) else list(command)
    refused = {**dict.fromkeys("wait K".split(), "use Job.wait()"), "again": "use homing sub --again",
               **dict.fromkeys("quiet q".split(), "homing.submit sets it"),
               "batch": 'submit a list: ["homing", "run", TEMPLATE, ":::", INPUT, ...]'}
    found = call("sub", [*arguments(options, refused), b"-q", b"--", *map(encode, words)])
    return Job(found.decode().split()[-1], options.get("engine"))
