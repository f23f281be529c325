"""Work shared among processes: its order, its errors, and that nothing waits without end or without bound."""

from __future__ import annotations

import io
import multiprocessing
import os
import subprocess
import sys
from contextlib import closing

import pytest
from click import ClickException

from cdcavro.errors import CdcAvroError, FileError, JobError
from cdcavro.files.workers import ALONE, in_order
from support import shared_work
from support.places import TESTS

pytestmark = pytest.mark.slow


@pytest.fixture(params=["file", "pipe"])
def out(request, tmp_path):
    """A stream that each process writes at its places, and one that only this process writes."""
    if request.param == "pipe":
        yield io.BytesIO()
        return
    with (tmp_path / "out").open("w+b") as stream:
        stream.write(_HEAD)
        yield stream


_HEAD = b"what was there before"


def done(work, tasks, jobs, out):
    """Return what is told of all parts, the bytes that are written, and the error that ended them."""
    told = []
    error = None
    try:
        told.extend(in_order(work, tasks, jobs, out))
    except (ClickException, CdcAvroError, OSError, ZeroDivisionError) as raised:
        error = raised
    written = out.tell()
    out.seek(0)
    raw = out.read()
    # After an error the file is removed by whoever opened it.
    assert len(raw) == written or error is not None
    return told, raw.removeprefix(_HEAD), error


@pytest.mark.parametrize("jobs", [2, 3, 5])
@pytest.mark.parametrize(
    ("work", "tasks"),
    [
        (shared_work.uneven, 30),
        (shared_work.empty, 30),
        (shared_work.held, ALONE + 5),
    ],
)
def test_parts_are_written_in_the_order_of_the_tasks(work, tasks, jobs, out):
    """However long each takes, however many parts it gives and however large they are."""
    assert done(work, range(tasks), jobs, out) == done(work, range(tasks), 1, io.BytesIO())


@pytest.mark.parametrize(("tasks", "jobs", "others"), [(ALONE, 5, 0), (ALONE + 1, 5, 1), (ALONE + 9, 2, 2), (99, 1, 0)])
def test_processes_are_started_for_what_is_large(tasks, jobs, others, out):
    """The first tasks are done here, and never are there more processes than tasks."""
    told, raw, _ = done(shared_work.named, range(tasks), jobs, out)
    assert raw == b"".join(b"%d," % task for task in range(tasks))
    assert len(set(told) - {os.getpid()}) == others


def test_an_error_stands_where_its_task_stands(out):
    """All parts before it are told, none behind it; a bug comes as what it is."""
    told, _, error = done(shared_work.failing, range(99), 2, out)
    assert (told, str(error)) == ([*range(13)], "a: expected b, got c")


def test_a_bug_comes_as_what_it_is(out):
    """Where its task stands."""
    told, _, error = done(shared_work.surprising, range(99), 2, out)
    assert (told, repr(error)) == ([*range(13)], "ZeroDivisionError('by task 12')")


def test_what_is_before_an_error_is_written_where_only_one_process_writes():
    """As by one process: `decode` on the way into a pipe gives all lines before a broken one."""
    expected = b"".join(b"%d," % task for task in range(13))
    assert done(shared_work.failing, range(99), 2, io.BytesIO())[1] == expected


def test_an_error_of_the_tasks_comes_behind_what_was_made_of_the_tasks_before_it(out):
    """A file that is damaged at its end is converted up to there, by one process or many."""

    def tasks():
        yield from range(20)
        raise FileError("x", "y", "z")

    _, raw, error = done(shared_work.named, tasks(), 2, out)
    assert raw == b"".join(b"%d," % task for task in range(20))
    assert str(error) == "x: expected y, got z"


@pytest.mark.parametrize(
    ("work", "sentence"),
    [
        (shared_work.killed, "a process of --jobs was killed by signal 9: perhaps there is not enough memory for all"),
        (shared_work.exiting, "a process of --jobs ended with exit code 3"),
    ],
)
def test_a_process_that_ends_is_an_error(work, sentence, out):
    """It is no wait without end, and the other processes end too."""
    told, _, error = done(work, range(99), 2, out)
    assert (type(error), str(error)) == (JobError, sentence)
    assert told == [*range(len(told))]
    assert multiprocessing.active_children() == []


def test_tasks_and_parts_that_no_pipe_holds_do_not_wait_for_each_other(out):
    """A task is handed over only to a process that waits for one."""
    tasks = [bytes([65 + number]) * 500_000 for number in range(ALONE + 7)]
    told, raw, error = done(shared_work.large, tasks, 2, out)
    assert error is None
    assert told == [500_000] * 12 * len(tasks)
    assert raw == b"".join(task[:1] * 300_000 for task in tasks for _ in range(12))


def test_very_many_small_parts_and_their_places_do_not_wait_for_each_other(out):
    """More than any pipe holds, of places one way and of parts the other."""
    tasks = range(ALONE + 4)
    assert done(shared_work.tiny, tasks, 2, out) == done(shared_work.tiny, tasks, 1, io.BytesIO())


def test_tasks_are_taken_only_as_they_are_needed(out):
    """So memory does not grow with the file; who stops reading ends the processes."""
    taken = []

    def tasks():
        for task in range(10_000):
            taken.append(task)
            yield task

    with closing(in_order(shared_work.named, tasks(), 2, out)) as parts:
        for number, _ in zip(range(ALONE + 20), parts, strict=False):
            assert len(taken) <= number + 6
    assert multiprocessing.active_children() == []


@pytest.mark.skipif(sys.platform != "linux", reason="each process writes at its places on Linux only")
def test_a_file_that_takes_no_more_is_an_error(tmp_path):
    """It is told by the process that cannot write, and comes up here."""
    code = """
import resource, sys
from support import shared_work
from cdcavro.files import workers
if __name__ == "__main__":
    workers.ALONE = 1
    resource.setrlimit(resource.RLIMIT_FSIZE, (25_000_000, 25_000_000))
    with open(sys.argv[1], "wb") as out:
        try:
            list(workers.in_order(shared_work.held, range(12), 2, out))
        except OSError as error:
            print(error.strerror)
"""
    script = tmp_path / "script.py"
    script.write_text(code)
    folders = os.pathsep.join([str(TESTS), *sys.path])
    done = subprocess.run(
        [sys.executable, script, tmp_path / "out"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": folders},
    )
    assert done.stdout == "File too large\n"
