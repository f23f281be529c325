"""Work shared among processes: its order, its errors, and that nothing waits without end or without bound."""

from __future__ import annotations

import multiprocessing
import os
from contextlib import closing

import pytest
import shared_work
from click import ClickException

from cdcavro.cli.group import Fault
from cdcavro.cli.workers import ALONE, in_order
from cdcavro.errors import CdcAvroError, FileError

pytestmark = pytest.mark.slow


def done(work, tasks, jobs):
    """Give all parts, and the error that ended them."""
    parts = []
    try:
        parts.extend(in_order(work, tasks, jobs))
    except (ClickException, CdcAvroError, ZeroDivisionError) as error:
        return parts, error
    return parts, None


@pytest.mark.parametrize("jobs", [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.slow)])
def test_parts_come_in_the_order_of_the_tasks(jobs):
    """However long each takes, and however many parts it gives."""
    assert done(shared_work.uneven, range(30), jobs) == done(shared_work.uneven, range(30), 1)


@pytest.mark.parametrize(("tasks", "jobs", "others"), [(ALONE, 5, 0), (ALONE + 1, 5, 1), (ALONE + 9, 2, 2), (99, 1, 0)])
def test_processes_are_started_for_what_is_large(tasks, jobs, others):
    """The first tasks are done here, and never are there more processes than tasks."""
    parts, _ = done(shared_work.named, range(tasks), jobs)
    assert [raw for raw, _ in parts] == [b"%d" % task for task in range(tasks)]
    assert len({process for _, process in parts} - {os.getpid()}) == others


def test_an_error_stands_where_its_task_stands():
    """All parts before it come, none behind it; a bug comes as what it is."""
    before = [(b"%d" % task, None) for task in range(13)]
    parts, error = done(shared_work.failing, range(99), 2)
    assert (parts, str(error)) == (before, "a: expected b, got c")
    parts, error = done(shared_work.surprising, range(99), 2)
    assert (parts, repr(error)) == (before, "ZeroDivisionError('by task 12')")


def test_an_error_of_the_tasks_comes_behind_what_was_made_of_the_tasks_before_it():
    """A file that is damaged at its end is converted up to there, by one process or many."""

    def tasks():
        yield from range(20)
        raise FileError("x", "y", "z")

    parts, error = done(shared_work.named, tasks(), 2)
    assert [raw for raw, _ in parts] == [b"%d" % task for task in range(20)]
    assert str(error) == "x: expected y, got z"


@pytest.mark.parametrize(
    ("work", "sentence"),
    [
        (shared_work.killed, "a process of --jobs was killed by signal 9: perhaps there is not enough memory for all"),
        (shared_work.exiting, "a process of --jobs ended with exit code 3"),
    ],
)
def test_a_process_that_ends_is_an_error(work, sentence):
    """It is no wait without end, and the other processes end too."""
    parts, error = done(work, range(99), 2)
    assert (type(error), error.message) == (Fault, sentence)
    assert parts == [(b"%d" % task, None) for task in range(len(parts))]
    assert multiprocessing.active_children() == []


def test_tasks_and_parts_that_no_pipe_holds_do_not_wait_for_each_other():
    """A task is handed over only to a process that waits for one."""
    tasks = [bytes([65 + number]) * 500_000 for number in range(ALONE + 7)]
    parts, error = done(shared_work.large, tasks, 2)
    assert error is None
    assert parts == [(task[:1] * 300_000, 500_000) for task in tasks for _ in range(12)]


def test_tasks_are_taken_only_as_they_are_needed():
    """So memory does not grow with the file; who stops reading ends the processes."""
    taken = []

    def tasks():
        for task in range(10_000):
            taken.append(task)
            yield task

    with closing(in_order(shared_work.named, tasks(), 2)) as parts:
        for number, _ in zip(range(ALONE + 20), parts, strict=False):
            assert len(taken) <= number + 6
    assert multiprocessing.active_children() == []
