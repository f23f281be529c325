"""Tasks for worker processes, which import this module by its name."""

from __future__ import annotations

import os
import signal
import time

from cdcavro.errors import FileError


def named(task):
    """Yield the task itself, and the id of the process that ran it."""
    yield [b"%d," % task], os.getpid()


def uneven(task):
    """Yield a number of parts that depends on the task; even tasks take longer."""
    time.sleep(0.02 if task % 2 == 0 else 0)
    for part in range(task % 4):
        yield [b"%d." % task, b"%d," % part], task


def failing(task):
    """Fail at task 12 after one part, with an error of the project."""
    yield [b"%d," % task], task
    if task == 12:
        raise FileError("a", "b", "c")


def surprising(task):
    """Fail at task 12 after one part, as a bug would."""
    yield [b"%d," % task], task
    if task == 12:
        raise ZeroDivisionError("by task 12")


def killed(task):
    """Kill the process at task 12."""
    if task == 12:
        os.kill(os.getpid(), signal.SIGKILL)
    yield [b"%d," % task], task


def exiting(task):
    """Exit the process with a code at task 12."""
    if task == 12:
        os._exit(3)
    yield [b"%d," % task], task


def large(task):
    """Yield more than a pipe can hold, from a task that is itself larger than that."""
    for _ in range(12):
        yield [task[:1] * 100_000, task[:1] * 200_000], len(task)


def held(task):
    """Yield, in parts, far more than may be kept in memory."""
    for part in range(10):
        yield [b"%d" % (task % 10) * (1_000_000 + part)], part


def empty(task):
    """Yield parts, some of them empty."""
    for part in range(3):
        yield [b"%d," % task] if part == task % 3 else [b""] * (part % 2), (task, part)


def tiny(task):
    """Yield very many small parts, far more than a pipe can hold."""
    for part in range(30_000 if task > 7 else 3):
        yield [b"%d," % task], part
