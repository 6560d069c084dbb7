"""A `concurrent.futures.Executor` whose tasks run on the hosts that hold their files."""

from __future__ import annotations

import atexit, base64, contextlib, os, pickle, queue, sys, threading, zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor as _Base, Future
from typing import Any

from ._program import Error, arguments, json_line
from ._run import REFUSED, Command, Result, Run, task_of

try:
    import cloudpickle  # type: ignore[import-untyped]
except ImportError:
    cloudpickle = None

# Runs a pickled function on a host. Its prints go to standard error, because standard output is for its value.
_TASK = """
import base64, os, pickle, sys, traceback, zlib
out = os.dup(1); os.dup2(2, 1)
try:
    path, version, cloud, call = pickle.loads(zlib.decompress(base64.b64decode("".join(sys.argv[1:]))))
    sys.argv[1:] = []
    sys.path += [one for one in path if one not in sys.path]
    where = "%s on %s" % (sys.executable, os.environ.get("HOMING_HOST"))
    if list(sys.version_info[:2]) != version:
        raise RuntimeError("%s is Python %d.%d; the function was sent by Python %d.%d"
                           % ((where,) + sys.version_info[:2] + tuple(version)))
    if cloud:
        try:
            import cloudpickle as pickle
        except ImportError:
            raise RuntimeError("%s has no cloudpickle\\n  try: %s -m pip install cloudpickle" % (where, sys.executable))
    function, args, kwargs = pickle.loads(call)
    value, failed = pickle.dumps((True, function(*args, **kwargs))), 0
except BaseException as error:
    text, failed = traceback.format_exc(), 1
    try:
        value = pickle.dumps((False, error, text))
        pickle.loads(value)
    except Exception:
        value = pickle.dumps((False, RuntimeError(repr(error)), text))
with os.fdopen(out, "wb") as file:
    file.write(value)
sys.exit(failed)
"""
_WORD, _MOST = 96 << 10, 1 << 20  # Linux takes 128 KiB for a word, and 2 MiB for a command by its default limits.


class TaskError(Error):
    """A function whose task ended without a value, as by a signal or a time limit. `result`: its `Result`."""

    def __init__(self, result: Result) -> None:
        super().__init__(f"task {result.task} on {result.host or 'no host'}: {result.outcome} {result.said}".rstrip())
        self.result = result


class Executor(_Base):
    """Runs command lines and Python functions as tasks of one run, its `run`, each on the host that holds its files.

    Arguments that are paths or strings, also in a list or tuple, are inputs of a function's task if they name files.
    Each function has an interpreter of its own. Those of a notebook or script need cloudpickle, here and on the hosts.
    A call has at most 1 MiB pickled and compressed, its value any size.
    """

    def __init__(
        self, hosts: str | Sequence[str] | None = None, *, python: str = sys.executable,
        task: Mapping[str, Any] | None = None, progress: bool | None = None, **options: Any,
    ) -> None:
        """Begins a run with options of `homing.run`. `python`: the interpreter on the hosts, of this version.

        `task`: keys of each task (docs/manual/tasks.md): ``{"memory": "2G", "resources": {"gpu": 1}, "timeout": 60}``.
        """
        words = [*arguments({"hosts": hosts, **options}, REFUSED), b"--tasks=-"]
        self._python, self._task = python, dict(task or {})
        # Futures, their lines, and whether they are of functions; None: no more. Then those that the program has.
        self._queue: queue.SimpleQueue[tuple[Future[Any], bytes, bool] | None] = queue.SimpleQueue()
        self._sent: dict[int, tuple[Future[Any], bool]] = {}
        self._closed, self._lock = False, threading.Lock()
        self.run = Run(words, self._lines(), [], 0, progress, bool(options.get("halt")), self._resolve, self._end)
        atexit.register(self.shutdown)

    def submit(self, fn: Callable[..., Any] | Command, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Returns the future of the value of a function, or of the `Result` of a command as of `homing.run`.

        A function's future raises its exception, with the traceback on the host as its cause, or `TaskError`. Once the
        program has the task, a future cannot be cancelled. Raises `Error` if the call is too large or not picklable.
        """
        return self.submit_task({}, fn, *args, **kwargs)

    def submit_task(self, task: Mapping[str, Any], fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As `submit`, with keys of the task: ``submit_task({"inputs": ["/data/a"], "memory": "8G"}, f, 3)``."""
        if callable(fn):
            words = [self._python, "-c", _TASK, *_pickled(fn, args, kwargs)]
            command: Mapping[str, Any] = {"argv": words, "inputs": _paths([*args, *kwargs.values()])}
        elif args or kwargs:
            raise TypeError("a command has no arguments; put them into its line or list")
        else:
            command = task_of(fn)
        line = json_line({**self._task, **command, **task})
        with self._lock:
            if self.run.over:
                raise BrokenExecutor(str(self.run.error or "the run has ended"))
            if self._closed:
                raise RuntimeError("this executor was shut down")
            future: Future[Any] = Future()
            self.run.total = (self.run.total or 0) + 1
            self._queue.put((future, line, callable(fn)))
        return future

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], **options: Any) -> Iterator[Any]:
        """As `concurrent.futures.Executor.map`. Each call is a task, so that `chunksize` must be 1."""
        if options.pop("chunksize", 1) != 1:
            raise ValueError("chunksize must be 1: each call is a task for the host of its files")
        return super().map(fn, *iterables, **options)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more tasks, and waits for the others, which Ctrl-C ends. `cancel_futures`: those not given yet."""
        with self._lock:
            self._closed = True
            left = self._drain() if cancel_futures else []
            self._queue.put(None)
        for future, _, _ in left:
            future.cancel()
            future.set_running_or_notify_cancel()
        if wait:
            with contextlib.suppress(Error):  # The futures that it concerns have it.
                self.run.wait()
            atexit.unregister(self.shutdown)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, Exception):
            self.run.stop()
        self.shutdown()

    def _drain(self) -> list[tuple[Future[Any], bytes, bool]]:
        items = []
        with contextlib.suppress(queue.Empty):
            while True:
                items.append(self._queue.get_nowait())
        return [item for item in items if item is not None]

    def _lines(self) -> Iterator[bytes]:
        """Gives the program the lines of tasks. It numbers them from 1 in this order."""
        number = 1
        while (item := self._queue.get()) is not None:
            future, line, is_function = item
            if future.set_running_or_notify_cancel():
                self._sent[number] = future, is_function
                number += 1
                yield line

    def _resolve(self, result: Result) -> None:
        future, is_function = self._sent.pop(result.task)
        if not is_function:
            future.set_result(result)
            return
        sys.stderr.write(result.stderr.decode("utf-8", "replace"))
        try:
            if not result.stdout or result.exit not in (0, 1):
                raise TaskError(result)
            ok, value, *text = pickle.loads(result.stdout)
            if not ok:
                value.__cause__ = Error(f"on {result.host}\n{text[0]}")
                raise value
            future.set_result(value)
        except BaseException as error:  # noqa: B036: a function may raise any, and its future has it.
            future.set_exception(error)
        result.discard()

    def _end(self) -> None:
        """Gives the error of the run to all futures that are left, when the thread that gives lines has ended."""
        with self._lock:
            left = [future for future, _, _ in self._drain() if future.set_running_or_notify_cancel()]
            self._queue.put(None)
        if self.run.feeder is not None:
            self.run.feeder.join()
        for future in [*left, *(future for future, _ in self._sent.values())]:
            future.set_exception(self.run.error or Error("the run ended before this task", self.run.status))


def _pickled(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
    """Returns the words that carry a call to its host."""
    name = getattr(fn, "__qualname__", repr(fn))
    try:
        if cloudpickle is None and getattr(fn, "__module__", "__main__") == "__main__":
            raise TypeError("a function of a notebook or script needs cloudpickle, here and on the hosts")
        call = (cloudpickle or pickle).dumps((fn, args, dict(kwargs)))
    except Exception as error:
        hint = "" if cloudpickle else f"\n  try: {sys.executable} -m pip install cloudpickle"
        raise Error(f"cannot send {name}: {error}{hint}") from error
    head = (sys.path, list(sys.version_info[:2]), cloudpickle is not None, call)
    text = base64.b64encode(zlib.compress(pickle.dumps(head, protocol=4))).decode()
    if len(text) > _MOST:
        raise Error(f"the call of {name} takes {len(text)} bytes pickled, of at most {_MOST}\n"
                    "  try: write large arguments to a file that the hosts share, and pass its path")
    return [text[at:at + _WORD] for at in range(0, len(text), _WORD)]


def _paths(values: Iterable[Any]) -> list[Any]:
    """Returns the arguments that may be names of files; the program examines whether they are."""
    flat = [one for value in values for one in (value if isinstance(value, (list, tuple)) else [value])]
    names = [os.fsencode(one) for one in flat if isinstance(one, (str, os.PathLike))]
    return [name for name in names if 0 < len(name) < 4096 and b"\0" not in name]
