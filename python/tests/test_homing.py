"""Tests of the package against the program on this machine. Run by tests/run, or by

    PATH=target/debug:$PATH PYTHONPATH=python python3 -m unittest discover -s python/tests
"""

import concurrent.futures
import dataclasses
import doctest
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import homing

PACKAGE = pathlib.Path(homing.__file__).parent
# Tests are in other folders, where words such as target/debug name nothing.
os.environ["PATH"] = os.pathsep.join(map(os.path.abspath, os.environ["PATH"].split(os.pathsep)))


def double(number):
    print("printed by the task")
    return 2 * number


def until(condition):
    """Waits for a condition, for at most a minute."""
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("the condition did not become true")
        time.sleep(0.02)


class World(unittest.TestCase):
    """Each test has a folder of its own, in which it is, with its runs and its queue."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="homing-test-"))
        self.addCleanup(self.remove)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.dir)
        own = {"HOMING_RUNS": "runs", "HOMING_QUEUE": "queue", "XDG_CONFIG_HOME": "config", "HOME": "."}
        variables = {name: str((self.dir / folder).absolute()) for name, folder in own.items()}
        variables |= {"HOMING_CONFIG": "", "HOMING_CLUSTER": "", "HOMING_ENGINE": "local", "PARALLEL": "", "SHELL": "/bin/sh"}
        paths = [str(pathlib.Path(__file__).parent), str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
        variables["PYTHONPATH"] = os.pathsep.join(paths)
        patch = mock.patch.dict(os.environ, {name: value for name, value in variables.items()})
        patch.start()
        self.addCleanup(patch.stop)
        del os.environ["HOMING_CLUSTER"]

    def remove(self):
        """Removes the folder. The keeper of the last job may still write to its queue."""
        shutil.rmtree(self.dir, ignore_errors=True)
        until(lambda: not self.dir.exists() or shutil.rmtree(self.dir, ignore_errors=True))

    def script(self, text, **options):
        """Starts a Python program."""
        return subprocess.Popen([sys.executable, "-c", text], stderr=subprocess.PIPE, **options)

    def runs(self):
        """Returns the records of all journals, by run."""
        lines = {path.parent.name: path.read_text().splitlines() for path in self.dir.glob("runs/*/journal.jsonl")}
        return {run: [json.loads(line) for line in text] for run, text in lines.items()}


class Runs(World):
    def test_any_name_is_an_input(self):
        names = ["a b", "new\nline", b"not\xffutf8", os.fsdecode(b"nor\xfe"), "'q\"", "-x", "$(touch planted)", pathlib.Path("p")]
        for name in names:
            pathlib.Path(os.fsdecode(name)).write_text("12345")
        results = {result.input: result for result in homing.run("cat < {}; printf %s {}", names)}
        self.assertEqual(results.keys(), set(names))
        for name, result in results.items():
            self.assertEqual(result.stdout, b"12345" + os.fsencode(name))
            self.assertTrue(result.ok)
        # The same names in tasks, whose words no shell sees.
        results = homing.run([{"argv": ["printf", "%s", name], "inputs": [name]} for name in names])
        self.assertEqual({result.stdout for result in results}, {os.fsencode(name) for name in names})
        self.assertFalse(pathlib.Path("planted").exists())
        with self.assertRaisesRegex(ValueError, "NUL"):
            homing.run("echo {}", ["a\0b"])
        with self.assertRaisesRegex(TypeError, "one input"):
            homing.run("echo {}", "name")

    def test_results_tell_how_tasks_ended(self):
        pathlib.Path("data").write_text("x" * 1000)
        run = homing.run([
            "cat data; echo words >&2", ["sh", "-c", "echo last words >&2; exit 3"], {"command": "kill -9 $$"},
            {"command": "sleep 600", "timeout": 0.2}, {"command": "true", "name": "after", "after": ["4"]},
        ])
        with self.assertRaisesRegex(homing.Error, "after"):
            run.wait()
        run = homing.run([
            "cat data; echo words >&2", ["sh", "-c", "echo last words >&2; exit 3"], {"command": "kill -9 $$"},
            {"command": "sleep 600", "timeout": 0.2, "name": "slow"}, {"command": "true", "after": ["slow"]},
        ])
        ends = {result.task: result for result in run}
        self.assertEqual([ends[task].outcome for task in range(1, 5)], ["exit 0", "exit 3", "signal 9", "timed out"])
        self.assertRegex(ends[5].outcome, "not run: .*slow")
        self.assertEqual((ends[5].host, ends[5].attempts, ends[5].started), (None, 0, 0.0))
        self.assertEqual((ends[1].stdout, ends[1].stderr), (b"x" * 1000, b"words\n"))
        self.assertEqual((ends[1].local_bytes, ends[1].remote_bytes, ends[1].attempts), (1000, 0, 1))
        self.assertEqual((ends[2].exit, ends[2].signal, ends[2].said), (3, None, "last words"))
        self.assertEqual((ends[3].exit, ends[3].signal), (None, 9))
        self.assertEqual({result.task for result in run.failed}, {2, 3, 4, 5})
        report = run.report()
        self.assertEqual((run.status, report["tasks"]["failed"], report["run"]), (3, 3, run.name))
        self.assertIn("over, 5 of 5 done, 4 failed", repr(run))

    def test_results_arrive_while_others_run(self):
        run = homing.run(["echo first", "until [ -e go ]; do sleep 0.05; done"], j=2)
        for result in run:
            if result.task == 1:
                self.assertFalse(run.over)
                pathlib.Path("go").touch()
        self.assertEqual(run.failed, [])

    def test_large_output_is_whole_when_the_result_arrives(self):
        for result in homing.run("head -c 3000000 /dev/zero; head -c 200000 /dev/zero >&2 # {}", range(8), j=4):
            self.assertEqual((len(result.stdout), len(result.stderr)), (3_000_000, 200_000))

    def test_a_result_waits_for_the_files_of_its_output(self):
        run = homing.run("echo")
        (result,) = run
        later = dataclasses.replace(result, task=2, _sizes={"": 5, ".err": 0})
        self.assertFalse(run._give(later, False))
        pathlib.Path(run._folder.file(2, "")).write_text("1234")
        self.assertFalse(run._give(later, False))
        pathlib.Path(run._folder.file(2, "")).write_text("12345")
        self.assertTrue(run._give(later, False))
        self.assertEqual([one.stdout for one in run], [b"\n", b"12345"])

    def test_no_folder_is_left(self):
        with mock.patch.dict(os.environ, {"TMPDIR": str(self.dir)}):
            text = "import homing; r = list(homing.run('echo {}', [1, 2])); assert r[0].stdout; homing.run('sleep 0.2')"
            self.assertEqual(self.script(text).communicate()[1], b"")
        self.assertEqual(list(self.dir.glob("homing-*")), [])
        # The interpreter waits at its exit for a run that nobody looked at.
        self.assertEqual([records[-1]["exit"] for records in self.runs().values()], [0, 0])

    def test_options_are_passed_on_or_refused(self):
        with self.assertRaisesRegex(homing.Error, "no option --nosuch") as caught:
            homing.run("echo {}", [1], nosuch=3).wait()
        self.assertEqual(caught.exception.status, 255)
        for option in ["results", "json", "keep_order", "gateway", "dry_run", "q"]:
            with self.assertRaisesRegex(ValueError, "no option here"):
                homing.run("echo {}", [1], **{option: True})
        self.assertEqual(len(list(homing.run("false", [1, 2], retries=2, j=1, tag=False, hosts=None))), 2)
        started = [record for run in self.runs().values() for record in run if record["event"] == "task_started"]
        self.assertEqual(sorted(record["attempt"] for record in started), [1, 1, 2, 2])
        # A list repeats an option, a mapping is NAME=VALUE, and a value may be empty.
        with mock.patch("subprocess.Popen", side_effect=OSError("not started")) as popen:
            self.assertRaises(OSError, homing.run("true", [], env=["A", "B"], resource={"a": 1}, name="", w=["n1", "n2"]).wait)
        words = popen.call_args[0][0]
        given = [b"--env=A", b"--env=B", b"--resource=a=1", b"--name=", b"-wn1,n2"]
        self.assertEqual(words[words.index(b"--env=A"):][:5], given)
        tasks = [{"command": "echo $HOMING_RESOURCE_lens", "resources": {"lens": 1}}] * 2
        self.assertEqual({result.stdout for result in homing.run(tasks, resource={"lens": 2})} - {b"0\n", b"1\n"}, set())
        with self.assertRaises(homing.Error):
            homing.run("true", [1], timeout="nonsense").wait()

    def test_hosts_that_cannot_be_used_are_an_error(self):
        with mock.patch.dict(os.environ, {"HOMING_SSH": "false"}), self.assertRaises(homing.Error) as caught:
            homing.run("true", [1], hosts=["nohost1", "nohost2"]).wait()
        self.assertEqual(caught.exception.status, 254)
        self.assertRegex(str(caught.exception), "nohost1(.*\n)*.*nohost2|nohost.1-2.")

    def test_a_halt_is_no_error(self):
        run = homing.run(["exit 255", "sleep 600"], j=2, halt="now,fail=1")
        self.assertEqual(next(one.outcome for one in run.failed if one.task == 1), "exit 255")
        self.assertEqual(run.status, 255)

    def test_a_list_is_checked_before_a_task_starts(self):
        run = homing.run(["touch began", {"command": "true", "bad": 1}])
        with self.assertRaisesRegex(homing.Error, "bad"):
            list(run)
        self.assertFalse(pathlib.Path("began").exists())

    def test_an_iterator_is_read_as_tasks_run(self):
        def names():
            yield "one"
            until(lambda: pathlib.Path("one").exists())
            yield "two"

        self.assertEqual({result.input for result in homing.run("touch {}", names())}, {"one", "two"})

        def broken():
            yield "three"
            raise KeyError("of the iterator")

        with self.assertRaisesRegex(KeyError, "of the iterator"):
            list(homing.run("sleep 600; echo {}", broken()))

    def test_a_broken_loop_ends_the_run(self):
        started = time.time()
        for result in homing.run("sleep {}", ["0", "600", "600"], j=3):
            self.assertEqual(result.input, "0")
            break
        (records,) = self.runs().values()
        self.assertEqual(records[-1]["exit"], 143)
        self.assertGreater(records[-1]["at_ns"] / 1e9, started)

    def test_ctrl_c_ends_the_run(self):
        # A background job of a shell has the signal ignored, and so have its descendants.
        text = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        python = self.script(text + "import homing\nfor result in homing.run('touch began; sleep 600'): pass")
        until(lambda: pathlib.Path("began").exists())
        python.send_signal(signal.SIGINT)
        self.assertIn(b"KeyboardInterrupt", python.communicate()[1])
        (records,) = self.runs().values()
        self.assertEqual((records[-1]["event"], records[-1]["exit"]), ("run_ended", 143))

    def test_a_killed_interpreter_ends_the_run(self):
        python = self.script("import homing\nfor result in homing.run('echo $$ > began; exec sleep 600'): pass")
        until(lambda: pathlib.Path("began").exists() and pathlib.Path("began").read_text())
        python.kill()
        python.communicate()
        (records,) = self.runs().values()
        for pid in [records[0]["pid"], int(pathlib.Path("began").read_text())]:
            until(lambda: not pathlib.Path(f"/proc/{pid}/cmdline").exists() or not pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())

    def test_progress_is_plain_text(self):
        def lines(**variables):
            text = "import sys\nif %r: sys.modules['ipykernel'] = sys\nimport homing\nhoming.run('sleep 0.3; echo {}', range(4), j=1, **%r).wait()"
            python = self.script(text % (variables.pop("notebook", False), variables))
            return python.communicate()[1].decode()

        self.assertEqual(lines(), "")
        self.assertRegex(lines(progress=True), r"^homing: 1 of 4 done, 0 failed, \d+ s\n(.*\n)*homing: 4 of 4 done, 0 failed, \d+ s\n$")
        self.assertRegex(lines(notebook=True), r"^(\rhoming: \d of 4 done, 0 failed, \d+ s)+\rhoming: 4 of 4 done, 0 failed, \d+ s\n$")
        self.assertEqual(lines(notebook=True, progress=False), "")


class Executors(World):
    def test_functions_and_commands(self):
        with homing.Executor(j=2) as executor:
            numbers = [executor.submit(pow, 2, exponent) for exponent in range(5)]
            line = executor.submit("echo $HOMING_TASK; exit 3")
            words = executor.submit_task({"env": {"A": "b"}}, ["sh", "-c", "echo $A"])
            self.assertEqual([future.result() for future in numbers], [1, 2, 4, 8, 16])
            self.assertEqual((line.result().stdout, line.result().exit), (b"6\n", 3))
            self.assertEqual(words.result().stdout, b"b\n")
            self.assertEqual(list(executor.map(pow, [2, 3], [3, 2])), [8, 9])
        self.assertEqual(executor.run.report()["tasks"]["done"], 8)
        with self.assertRaisesRegex(RuntimeError, "shut down|ended"):
            executor.submit(pow, 1, 1)
        with self.assertRaisesRegex(ValueError, "chunksize"):
            executor.map(pow, [1], [1], chunksize=2)

    def test_arguments_that_name_files_are_inputs(self):
        pathlib.Path("data").write_text("x" * 5000)
        with homing.Executor() as executor:
            self.assertEqual(executor.submit(os.path.getsize, pathlib.Path("data")).result(), 5000)
            self.assertEqual(executor.submit(len, ["data", "nosuch"]).result(), 2)
            self.assertEqual(executor.submit(len, b"data").result(), 4)
        (records,) = self.runs().values()
        planned = [record.get("planned", {}).get("local", 0) for record in records if record["event"] == "task_started"]
        self.assertEqual(planned, [5000, 5000, 0])

    def test_errors_reach_their_future(self):
        with homing.Executor() as executor:
            missing = executor.submit(os.path.getsize, "nosuch")
            dead = executor.submit(os.abort)
            quiet = executor.submit(os._exit, 0)
            left = executor.submit(sys.exit, 5)
            with self.assertRaises(FileNotFoundError) as caught:
                missing.result()
            self.assertIn("getsize", str(caught.exception.__cause__))
            with self.assertRaisesRegex(homing.TaskError, "signal 6") as caught:
                dead.result()
            self.assertEqual(caught.exception.result.signal, 6)
            self.assertIsInstance(quiet.exception(), homing.TaskError)
            self.assertIsInstance(left.exception(), SystemExit)
            self.assertRaises(homing.Error, executor.submit, len, bytearray(os.urandom(2_000_000)))
        with homing.Executor(python="/nosuch/python") as executor:
            self.assertIn("/nosuch/python: no such program", str(executor.submit(pow, 2, 2).exception()))

    def test_a_refused_option_reaches_all_futures(self):
        with homing.Executor(nosuch=1) as executor:
            try:
                error = executor.submit(pow, 2, 2).exception()
            except concurrent.futures.BrokenExecutor as broken:
                error = broken
            self.assertIn("no option --nosuch", str(error))

    def test_a_function_of_a_script_needs_cloudpickle(self):
        with mock.patch("homing._executor.cloudpickle", None), homing.Executor() as executor:
            self.assertEqual(executor.submit(double, 4).result(), 8)
            with self.assertRaisesRegex(homing.Error, "cloudpickle"):
                executor.submit(lambda: 1)
            text = "def f(): return 1\nimport homing, homing._executor as e; e.cloudpickle = None\nhoming.Executor().submit(f)"
            self.assertIn(b"pip install cloudpickle", self.script(text).communicate()[1])

    def test_a_function_of_a_script_is_sent_by_cloudpickle(self):
        if not homing._executor.cloudpickle:
            with open(os.environ.get("HOMING_LEFT_OUT", os.devnull), "a") as file:
                file.write(f"{self.id()}: python3 has no cloudpickle\n")
            self.skipTest("python3 has no cloudpickle")
        text = "import homing\nk = 3\nwith homing.Executor() as e: assert list(e.map(lambda n: k * n, [1, 2])) == [3, 6]"
        self.assertEqual(self.script(text).communicate()[1], b"")

    def test_futures_can_be_cancelled_and_ctrl_c_ends_all(self):
        with self.assertRaises(KeyboardInterrupt):
            with homing.Executor(j=1) as executor:
                slow = executor.submit("touch began; sleep 600")
                until(lambda: pathlib.Path("began").exists())
                raise KeyboardInterrupt
        self.assertEqual((slow.result().ok, slow.result().outcome), (False, "killed"))
        (records,) = self.runs().values()
        self.assertEqual(records[-1]["exit"], 143)

    def test_an_executor_that_is_not_shut_down_ends_with_the_interpreter(self):
        text = "import homing\ne = homing.Executor()\ne.submit('sleep 0.2; touch done')"
        self.assertEqual(self.script(text).communicate(timeout=120)[1], b"")
        self.assertTrue(pathlib.Path("done").exists())


class Others(World):
    def test_where(self):
        for name in ["a b", "new\nline", os.fsdecode(b"not\xff")]:
            pathlib.Path(name).write_text("123")
            (found,) = homing.where(name)
            self.assertEqual((found.path, found.size, list(found.hosts.values()), found.reason), (name, 3, [3], None))
        self.assertEqual(homing.where([]), [])
        none, there = homing.where(["nosuch", pathlib.Path("a b")])
        self.assertRegex(none.reason, "No such file")
        self.assertEqual(there.size, 3)
        with self.assertRaisesRegex(homing.Error, "nosuch"):
            homing.where("a b", nosuch=True)

    def test_submit(self):
        job = homing.submit("echo out; exit 4", name="first")
        with self.assertRaises(TimeoutError):
            homing.submit("sleep 600", slots=1).wait(timeout=0.1)
        self.assertEqual((job.wait(), job.output(), job.info()[0]["state"]), (4, b"out\n", "EXIT"))
        homing.Job("2").kill()
        self.assertEqual(homing.submit(["printf", "%s", "a b"]).wait(), 0)
        self.assertNotEqual(homing.Job("2").wait(), 0)
        self.assertRaises(homing.Error, homing.Job("99").wait)
        self.assertRaisesRegex(ValueError, "Job.wait", homing.submit, "true", wait=True)
        self.assertRaises(homing.Error, homing.submit, "true", nosuch=1)
        self.assertRaisesRegex(homing.Error, "needs a command", homing.submit, [])

    def test_the_package_is_small_and_needs_nothing(self):
        lines = [line for file in PACKAGE.glob("*.py") for line in file.read_text().splitlines()]
        self.assertLessEqual(len(lines), 800)
        self.assertTrue((PACKAGE / "py.typed").exists())
        self.assertEqual({name for name in homing.__all__ if not getattr(homing, name).__doc__}, set())

    def test_a_missing_program_is_an_error(self):
        with mock.patch.dict(os.environ, {"PATH": "/nosuch"}), self.assertRaisesRegex(homing.Error, "not in PATH"):
            homing.run("true")


    def test_the_page_of_the_manual(self):
        """Runs its examples, line by line, and compares their output."""
        page = PACKAGE.parent.parent / "docs/manual/python.md"
        pathlib.Path("pears.txt").write_text("Conference\nWilliams\nConference\n")
        pathlib.Path("figs.txt").write_text("Brown Turkey\nAdriatic\n")
        failed, tried = doctest.testfile(str(page), module_relative=False, verbose=False, optionflags=doctest.ELLIPSIS)
        self.assertEqual(failed, 0)
        self.assertGreater(tried, 10)


if __name__ == "__main__":
    unittest.main()
