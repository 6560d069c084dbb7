"""Runs of the program: starts one, follows its journal, and gives its results as tasks end."""

from __future__ import annotations

import atexit, contextlib, ctypes, json, os, shutil, signal, subprocess, sys, tempfile, threading, time, weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Union

from ._program import Error, Word, arguments, document, encode, json_line, program, text_of

Command = Union[Word, Sequence[Word], Mapping[str, Any]]
"""A line for the shell, a list with a program and its arguments, or the keys of a task (docs/manual/tasks.md)."""
_WORD = (str, bytes, os.PathLike)

REFUSED = {name: reason for names, reason in {
    "tasks json results quiet q null 0": "this module sets it",
    "arg_file a delimiter d": "give the inputs as an iterable",
    "keep_order k": "results arrive as tasks end; sort them by Result.task",
    "line_buffer lb tag tagstring ungroup u color color_failed ctag ctagstring v verbose t":
        "the output of each task is in its Result.stdout",
    "bar eta": "use progress=True",
    "dry_run explain": "use homing plan in a terminal",
    "pipe pipepart": "give each task its part by name",
    "gateway": "the journal of such a run is on another machine; use hosts=",
    "ppn": "such a task is a job of the queue; use homing.submit(..., nodes=N, ppn=N)",
}.items() for name in names.split()}
# With these the number of a task is not the place of its input.
_REGROUP = "n max_args N max_replace_args L l max_lines X m xargs s max_chars shuf E header r no_run_if_empty".split()


class _Folder:
    """A temporary folder that is removed when no run and no result needs it."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="homing-py-")
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)

    def file(self, task: int | str, suffix: str) -> str:
        """Returns a file of ``--results FOLDER/out/{#}``: output ``""``, error output ``.err``, number ``.seq``."""
        return os.path.join(self.name, "out", f"{task}{suffix}")


@dataclass(frozen=True)
class Result:
    """The end of one task, after its last attempt. `stdout`, `stderr`: bytes in files that exist as long as it does."""

    task: int  # its number from 1, in the order of inputs or commands
    input: Any  # its input or command as given; None where options make tasks of several inputs, or shuffle them
    ok: bool  # whether it ended with status 0, or an option skipped it
    outcome: str  # "exit 3", "signal 9", "timed out", "lost: REASON", "not run: REASON", "skipped: REASON", ...
    exit: int | None  # its exit status, if it ended by itself
    signal: int | None  # the number of the signal that ended it
    host: str | None  # the host of its last attempt; None if no host started it, as of a task that was not run
    attempts: int  # attempts in all; 0 if no host started it
    started: float  # when the last attempt began, seconds since the epoch by the clock here; 0.0 if none did
    seconds: float  # the time that the last attempt took
    command: str  # the command as it ran, quoted for a shell
    said: str  # the last line of the error output of a failed task, at most 200 bytes
    local_bytes: int | None  # bytes of its inputs on its host, by the layout of the files; None: not known
    remote_bytes: int | None  # bytes of its inputs on other hosts; None: not known
    io: Mapping[str, int | None]  # bytes of read calls (rchar), disks (read_bytes), max_rss; user_us, sys_us
    _sizes: dict[str, int] = field(default_factory=dict, repr=False)
    _folder: Any = field(default=None, repr=False, compare=False)

    @property
    def stdout(self) -> bytes:
        return self._read("")

    @property
    def stderr(self) -> bytes:
        return self._read(".err")

    def _read(self, suffix: str) -> bytes:
        return Path(self._folder.file(self.task, suffix)).read_bytes() if self._sizes.get(suffix) else b""

    def discard(self) -> None:
        """Removes the output of the task now. It is empty from then on."""
        for suffix in [suffix for suffix, size in self._sizes.items() if size]:
            Path(self._folder.file(self.task, suffix)).unlink()
            self._sizes[suffix] = 0


class Run:
    """A run that has begun. Iterate over it for the `Result` of each task as tasks end.

    To leave that loop early, by ``break``, an exception or Ctrl-C, ends the run. If nobody iterates, the run goes on,
    and the interpreter waits for it at its exit. Attributes: `name`, of ``homing runs``, None until it has begun;
    `total`, the number of tasks, None if it is not known; `status`, the exit status of the program, None while it
    runs, 0 to 100 is the number of failed tasks; `messages`, the lines of the program on standard error, printed too.
    """

    def __init__(
        self, words: list[bytes], feed: Iterable[bytes], inputs: list[Any], total: int | None, progress: bool | None,
        halts: bool, on_result: Callable[[Result], None] | None = None, on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.total, self.over, self._stopped, self._ended, self._bad = total, False, False, 0, 0
        self.name: str | None = None
        self.status: int | None = None
        self.messages: list[str] = []
        self.error: BaseException | None = None
        self.feeder: threading.Thread | None = None
        self._feed, self._inputs, self._halts, self._on_end = feed, inputs, halts, on_end
        self._folder, self._progress, self._changed = _Folder(), _Progress(progress), threading.Condition()
        self._report = os.path.join(self._folder.name, "report.json")
        own = [f"--json={self._report}", "--results=" + self._folder.file("{#}", "")]
        self._words: list[Word] = [program(), "run", "-q", *own, *words]
        self._results: list[Result] = []
        self._on_result = on_result or self._results.append
        self._process: subprocess.Popen[bytes] | None = None
        # After the finalizer of the folder, and therefore run before it.
        atexit.register(self._wait_at_exit)
        # The kernel ends the program when the thread that started it ends: this one lives as long as the program.
        _thread(self._follow)
        with self._changed:  # A thread cannot begin when the interpreter ends.
            self._changed.wait_for(lambda: self.over or self._process is not None)

    def __repr__(self) -> str:
        return f"<homing.Run {self.name}: {'over' if self.over else 'running'}, {self._counts()}>"

    def _counts(self) -> str:
        return f"{self._ended}{'' if self.total is None else f' of {self.total}'} done, {self._bad} failed"

    def __iter__(self) -> Iterator[Result]:
        at = 0
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self.over or at < len(self._results))
                    if at == len(self._results):
                        break
                yield self._results[at]
                at += 1
        finally:
            if not self.over:
                self.stop()
        self.wait()

    def _wait_at_exit(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.over)

    def wait(self) -> Run:
        """Waits until all tasks have ended, and returns the run itself. Ctrl-C ends the run. Failed tasks are no error.

        Raises `Error` if the program refused the request or a signal ended it, and what the iterator of inputs raised.
        """
        try:
            self._wait_at_exit()
        except BaseException:
            self.stop()
            raise
        if self.error is not None:
            raise self.error
        return self

    @property
    def failed(self) -> list[Result]:
        """The results of the failed tasks, in the order in which they ended. Waits and raises as `wait`."""
        return [result for result in self.wait()._results if not result.ok]

    def report(self) -> dict[str, Any]:
        """Returns the JSON of ``homing report`` (docs/formats.md): bytes, microseconds; None: unknown. See `wait`."""
        self.wait()
        return dict(document(Path(self._report).read_bytes()))

    def stop(self) -> None:
        """Ends the run and its tasks, as SIGTERM does, and waits for that. ``homing resume`` can continue it."""
        with self._changed:
            self._stopped = self._stopped or not self.over
            # Hosts that do not answer take some seconds. A killed run ends its tasks all the same.
            for number in (signal.SIGTERM, signal.SIGKILL):
                if self._process is not None and not self.over:
                    self._process.send_signal(number)
                    self._changed.wait_for(lambda: self.over, timeout=60)

    def _follow(self) -> None:
        """Starts the program, and passes on its messages and results until it has ended."""
        try:
            seen = _journals()
            process = self._start()
            journal, rest, begun, ended, code = None, b"", dict[int, Any](), list[Result](), None
            while code is None:
                time.sleep(0.02)
                code = process.poll()
                journal = journal or _open_journal(process.pid, seen)
                if journal is not None:
                    self.name = os.path.basename(os.path.dirname(journal.name))
                    *lines, rest = (rest + journal.read()).split(b"\n")
                    ended += self._read_ends(lines, begun)
                ended = [result for result in ended if not self._give(result, code is not None)]
                self._progress.show(self._counts(), self._ended * 20 // (self.total or self._ended + 1))
            self._reader.join()
            if journal is not None:
                journal.close()
            self.status = 128 - code if code < 0 else code
            if not self._stopped and self.error is None:
                self.error = self._failure(self.status)
        except BaseException as error:  # noqa: B036: the threads that wait must get it.
            self.error = error
            if self._process is not None:
                self._process.kill()
        with self._changed:
            self.over = True
            self._changed.notify_all()
        atexit.unregister(self._wait_at_exit)
        self._progress.show(self._counts(), 21, last=True)
        self._on_end()

    def _start(self) -> subprocess.Popen[bytes]:
        # The program reads a file to its end before it runs anything, and a pipe line by line.
        with tempfile.TemporaryFile() as file:
            listed = isinstance(self._feed, list)
            file.writelines(self._feed if listed else [])
            file.seek(0)
            process = subprocess.Popen(self._words, stdin=file if listed else subprocess.PIPE, preexec_fn=_end_with_us,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.feeder = None if listed else _thread(self._write_feed, process, process.stdin)
        self._reader = _thread(self._read_messages, process.stderr)
        with self._changed:
            self._process = process
            self._changed.notify_all()
        return process

    def _write_feed(self, process: subprocess.Popen[bytes], pipe: IO[bytes]) -> None:
        try:
            for line in self._feed:
                pipe.write(line)
                pipe.flush()
        except BrokenPipeError:
            pass  # The program has ended, and its messages have the reason.
        except BaseException as error:  # noqa: B036: of the iterator of inputs, for the threads that wait.
            self.error = error
            process.terminate()
        with contextlib.suppress(BrokenPipeError):
            pipe.close()

    def _read_messages(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                self.messages.append(line.decode("utf-8", "replace").rstrip("\n"))
                self._progress.write(self.messages[-1])

    def _read_ends(self, lines: list[bytes], begun: dict[int, Any]) -> Iterator[Result]:
        """Returns the results in lines of the journal. `begun`: records of the starts of tasks that run."""
        for record in (json.loads(line) for line in lines if b'"event":"task_' in line[:80]):
            if record["event"] == "task_started":
                begun[record["task"]] = record
            elif record.get("last") or record["event"] == "task_skipped":
                yield self._result(begun.pop(record["task"], {}), record)

    def _result(self, begin: Mapping[str, Any], end: Mapping[str, Any]) -> Result:
        outcome, task = end.get("outcome", {"skipped": end.get("reason")}), end["task"]
        kind, value = next(iter(outcome.items())) if isinstance(outcome, dict) else (outcome, None)
        number, planned = kind in ("exit", "signal"), begin.get("planned") or {}
        return Result(
            task=task, input=self._inputs[task - 1] if task <= len(self._inputs) else None,
            ok=kind == "skipped" or outcome == {"exit": 0},
            outcome=kind.replace("_", " ") + ("" if value is None else f" {value}" if number else f": {value}"),
            exit=value if kind == "exit" else None, signal=value if kind == "signal" else None,
            host=end.get("host") or None, attempts=begin.get("attempt", 0), started=end.get("start_ns", 0) / 1e9,
            seconds=end.get("wall_us", 0) / 1e6, command=text_of(begin.get("command", "")), io=end.get("io", {}),
            said=text_of(end.get("said", "")), local_bytes=planned.get("local"), remote_bytes=planned.get("remote"),
            _sizes={"": end.get("stdout_bytes", 0), ".err": end.get("stderr_bytes", 0)}, _folder=self._folder,
        )

    def _give(self, result: Result, is_over: bool) -> bool:
        """Passes on a result, and returns whether it has: its end is in the journal before its output is in files."""
        for suffix, size in {**result._sizes, ".seq": 0}.items():
            path = Path(self._folder.file(result.task, suffix))
            if size and not is_over and not (path.exists() and path.stat().st_size >= size):
                return False
            if not size:
                path.unlink(missing_ok=True)
        with self._changed:
            self._ended += 1
            self._bad += not result.ok
            self._on_result(result)
            self._changed.notify_all()
        return True

    def _failure(self, status: int) -> Error | None:
        """Returns the error of a run that did not end as requested. Failed tasks are none."""
        # With --halt, the status may be that of a task, and any number.
        ends = [end for result in self._results if not result.ok for end in (result.exit, 128 + (result.signal or 0))]
        if status <= 101 and self.name is not None or self._halts and status in ends:
            return None
        text = f"homing run ended with status {status}" + (", and its journal was not found" if not self.name else "")
        return Error("\n".join(self.messages[-20:]) or text, status)


def _journals() -> set[Path]:
    """Returns the journals of all runs. Their places are in docs/formats.md."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    runs = Path(os.environ.get("HOMING_RUNS") or os.path.join(state, "homing", "runs"))
    other = Path(os.environ.get("TMPDIR") or "/tmp", f"homing-{os.getuid()}", "runs")
    return {run / "journal.jsonl" for folder in (runs.absolute(), other) if folder.is_dir() for run in folder.iterdir()}


def _open_journal(pid: int, seen: set[Path]) -> IO[bytes] | None:
    """Returns the journal that the process writes, when it is there. `seen`: others; grows."""
    for path in _journals() - seen:
        with contextlib.suppress(OSError):
            file = open(path, "rb")
            first = file.readline()
            if first.endswith(b"\n"):
                seen.add(path)
                if json.loads(first)["pid"] == pid:
                    return file
            file.close()
    return None


def _thread(target: Callable[..., None], *args: Any) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, name="homing", daemon=True)
    thread.start()
    return thread


class _Progress:
    """A line of plain text that is written again as tasks end, in a notebook or on a terminal."""

    def __init__(self, wanted: bool | None) -> None:
        self._again = "ipykernel" in sys.modules or sys.stderr.isatty()
        self._shown = self._again if wanted is None else wanted
        self._began = self._last = time.monotonic()
        self._part, self._open, self._lock = 21 * self._again, "", threading.Lock()

    def show(self, counts: str, part: int, last: bool = False) -> None:
        """Writes a line twice a second, or where it cannot be written again, each minute and each `part` of twenty."""
        now = time.monotonic()
        if self._shown and (last or now - self._last >= (0.5 if self._again else 60) or part > self._part):
            self._last, self._part = now, max(part, self._part)
            text = f"homing: {counts}, {now - self._began:.0f} s"
            self.write("\r" * self._again + text, "" if self._again and not last else "\n")

    def write(self, text: str, end: str = "\n") -> None:
        """Writes text; what begins with a carriage return replaces the line of progress."""
        with self._lock:
            sys.stderr.write((self._open if text[:1] != "\r" else "") + text + end)
            sys.stderr.flush()
            self._open = "" if end else "\n"


_libc = ctypes.CDLL(None)


def _end_with_us() -> None:
    """Makes the kernel send SIGTERM to the program when the thread that started it ends, also by SIGKILL."""
    _libc.prctl(1, int(signal.SIGTERM))  # PR_SET_PDEATHSIG of linux/prctl.h


def run(
    commands_or_template: Command | Iterable[Command], inputs: Iterable[Word] | None = None, *,
    hosts: str | Sequence[str] | None = None, progress: bool | None = None, **options: Any,
) -> Run:
    """Runs commands, each on the host that holds its files, and returns the `Run` at once.

    With `inputs`, the first argument is a template as of ``homing run``, ``"gzip -k {}"``, or a list of its words;
    each input is put into it, quoted. Else it is a command or an iterable of commands: lines for the shell, lists of
    words, or mappings with the keys of a task (``command``, ``inputs``, ``memory``, ...). The program checks all
    elements of a list before a task starts. An iterator is read in a thread, and tasks start as it goes.

    `hosts`: a node set or a list of them, ``"n[1-4]"``; None: those of the cluster file, else this machine.
    `progress`: whether to write lines of progress to standard error; None: in a notebook or on a terminal.
    Other keywords are options of ``homing run``: ``retries=2``, ``timeout="10m"`` (a number: seconds), ``j=4``,
    ``near=["ref.fa"]``, ``resource={"gpu": 2}``. None and False leave an option out.

    Raises `ValueError` for an option that means nothing here. If the program refuses another, the `Run` raises `Error`.
    """
    words = arguments({"hosts": hosts, **options}, REFUSED)
    if isinstance(inputs, _WORD):
        raise TypeError(f"inputs is an iterable of inputs; for one input give [{inputs!r}]")
    source: Any = commands_or_template
    source = [source] if isinstance(source, (*_WORD, Mapping)) else source
    if inputs is not None:
        words, source = [*words, b"-0", b"--", *map(encode, source)], inputs
    else:
        words.append(b"--tasks=-")
    seen: list[Any] = []

    def read() -> Iterator[bytes]:
        for item in source:
            seen.append(item)
            yield json_line(task_of(item)) if inputs is None else encode(item) + b"\0"

    feed: Any = read() if isinstance(source, Iterator) else list(read())
    known = not any(options.get(name) for name in _REGROUP)
    total = len(seen) if known and isinstance(feed, list) else None
    return Run(words, feed, seen if known else [], total, progress, bool(options.get("halt")))


def task_of(command: Command) -> Mapping[str, Any]:
    return command if isinstance(command, Mapping) else {"command" if isinstance(command, _WORD) else "argv": command}
