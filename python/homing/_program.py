"""Finds the program ``homing`` and writes its command lines."""

from __future__ import annotations

import base64, json, os, shutil, subprocess, sysconfig
from collections.abc import Iterable, Mapping
from typing import Any, Union

# A word of a command line, or a file name. Characters that are not UTF-8 are surrogates, as in `os.fsdecode`.
Word = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


class Error(RuntimeError):
    """A request that the program refused, or could not carry out, in its words. `status`: its exit status."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def program() -> str:
    """Returns the program that came with this package, else the first in ``PATH``. Raises `Error` without one."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [sysconfig.get_path("scripts", scheme) for scheme in sysconfig.get_scheme_names()
               if os.path.abspath(sysconfig.get_path("purelib", scheme)) == here]
    found = shutil.which("homing", path=os.pathsep.join(folders) or None) or shutil.which("homing")
    if found is None:
        raise Error("the program homing is not in PATH\n  try: pip install homing, or the package of your system")
    return found


def encode(word: Word | int | float) -> bytes:
    """Returns a word as bytes. Raises `ValueError` if it has a NUL byte, which no command line can hold."""
    value = os.fsencode(word if isinstance(word, (str, bytes, os.PathLike)) else str(word))
    if b"\0" in value:
        raise ValueError(f"a word of a command line cannot hold a NUL byte: {word!r}")
    return value


def arguments(options: Mapping[str, Any], refused: Mapping[str, str]) -> list[bytes]:
    """Returns options of the program from keywords: ``fs_timeout=3`` is ``--fs-timeout=3``, ``j=3`` is ``-j3``.

    True is an option without a value. None and False leave it out. A list repeats it, except of hosts, which are
    joined. A mapping repeats it as ``NAME=VALUE``. Raises `ValueError` for those in `refused`, with the text there.
    """
    words: list[bytes] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        if name in refused:
            raise ValueError(f"{name}= is no option here: {refused[name]}")
        if name in ("hosts", "w") and isinstance(value, (list, tuple, set, frozenset)):
            value = ",".join(map(str, value))
        if isinstance(value, Mapping):
            value = [f"{key}={one}" for key, one in value.items()]
        option = encode(f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}")
        for one in value if isinstance(value, (list, tuple, set, frozenset)) else [value]:
            words.append(option if one is True else option + b"=" * (len(name) > 1) + encode(one))
    return words


def json_line(value: Any) -> bytes:
    """Returns a line of JSON for the program, where bytes and names that are not UTF-8 are ``{"b64": ...}``."""
    return json.dumps(_plain(value), allow_nan=False).encode() + b"\n"


def _plain(value: Any) -> Any:
    value = os.fspath(value) if isinstance(value, os.PathLike) else value
    if isinstance(value, str):
        try:
            value.encode()
            return value
        except UnicodeEncodeError:
            value = os.fsencode(value)
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, (list, tuple, set, frozenset)) else value


def text_of(value: Any) -> str:
    """Returns a string of a JSON document, where ``{"b64": ...}`` is bytes that are not UTF-8."""
    return os.fsdecode(base64.b64decode(value["b64"])) if isinstance(value, dict) else str(value)


def document(text: bytes) -> Any:
    """Returns a JSON document of the program. Raises `Error` if its version is newer than this module."""
    value = json.loads(text)
    for one in value[:1] if isinstance(value, list) else [value]:
        if one.get("version") != 1:
            raise Error(f"homing writes JSON of version {one.get('version')}, not 1\n  try: pip install -U homing")
    return value


def call(command: str, words: Iterable[bytes], given: bytes = b"") -> bytes:
    """Runs a command of the program and returns its output. Raises `Error` if it fails and has none."""
    done = subprocess.run([program(), command, *words], input=given, capture_output=True)
    if done.returncode != 0 and not done.stdout:
        raise Error(os.fsdecode(done.stderr).strip() or f"homing {command} failed", done.returncode)
    return done.stdout
