"""Tasks for processes of their own, which import this module by its name."""

from __future__ import annotations

import os
import signal
import time

from cdcavro.errors import FileError


def named(task):
    """Return the task back, and the process that did it."""
    yield [b"%d," % task], os.getpid()


def uneven(task):
    """Take longer for even tasks, and give as many parts as the task says."""
    time.sleep(0.02 if task % 2 == 0 else 0)
    for part in range(task % 4):
        yield [b"%d." % task, b"%d," % part], task


def failing(task):
    """Fail at task 12, after a part."""
    yield [b"%d," % task], task
    if task == 12:
        raise FileError("a", "b", "c")


def surprising(task):
    """Fail as a bug would."""
    yield [b"%d," % task], task
    if task == 12:
        raise ZeroDivisionError("by task 12")


def killed(task):
    """End without a word at task 12."""
    if task == 12:
        os.kill(os.getpid(), signal.SIGKILL)
    yield [b"%d," % task], task


def exiting(task):
    """End with a code at task 12."""
    if task == 12:
        os._exit(3)
    yield [b"%d," % task], task


def large(task):
    """Return more than any pipe holds, of a task that none holds either."""
    for _ in range(12):
        yield [task[:1] * 100_000, task[:1] * 200_000], len(task)


def held(task):
    """Return far more than is held without a place, in small parts."""
    for part in range(10):
        yield [b"%d" % (task % 10) * (1_000_000 + part)], part


def empty(task):
    """Return parts of which some are empty."""
    for part in range(3):
        yield [b"%d," % task] if part == task % 3 else [b""] * (part % 2), (task, part)


def tiny(task):
    """Return very many parts, far more than any pipe holds."""
    for part in range(30_000 if task > 7 else 3):
        yield [b"%d," % task], part
