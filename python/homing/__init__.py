"""Runs commands and Python functions on the hosts that hold their data, by the program ``homing``."""

from ._executor import Executor, TaskError
from ._jobs import Job, Placement, submit, where
from ._program import Error, program
from ._run import Result, Run, run

__all__ = ["Error", "Executor", "Job", "Placement", "Result", "Run", "TaskError", "program", "run", "submit", "where"]
