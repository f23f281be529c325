"""Work shared among threads: its order, its errors, and that nothing waits without end or without bound."""

from __future__ import annotations

import io
import os
import threading
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from cdcavro.errors import FileError, SetupError
from cdcavro.files.block_codec import start_threads, write_in_order

HEAD = b"what was there before"


@pytest.fixture(autouse=True)
def none_left():
    """No test leaves a thread behind; one of an earlier test of another file may end meanwhile."""
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def named(task):
    """Yield the task itself, and the thread that did it."""
    time.sleep(0.001)
    yield [b"%d," % task], threading.get_ident()


def uneven(task):
    """Yield a number of parts that depends on the task; even tasks take longer."""
    time.sleep(0.01 if task % 2 == 0 else 0)
    for part in range(task % 4):
        yield [b"%d." % task, b"%d," % part], task


def empty(task):
    """Yield parts, some of them empty."""
    for part in range(3):
        yield [b"%d," % task] if part == task % 3 else [b""] * (part % 2), (task, part)


def many(task):
    """Yield far more parts than may wait."""
    for part in range(1_000):
        yield [b"%d," % task], part


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


def done(work, tasks, jobs):
    """Return what is told of all parts, the bytes that are written, and the error that ended them."""
    out, told, error = io.BytesIO(), [], None
    out.write(HEAD)
    try:
        told.extend(write_in_order(work, tasks, jobs, out))
    except (FileError, ZeroDivisionError) as raised:
        error = raised
    return told, out.getvalue().removeprefix(HEAD), error


@pytest.mark.parametrize("jobs", [2, 3, 5])
@pytest.mark.parametrize("work", [uneven, empty, many])
def test_parts_are_written_in_the_order_of_the_tasks(work, jobs):
    """However long each takes, and however many parts it gives."""
    assert done(work, range(30), jobs) == done(work, range(30), 1)


@pytest.mark.parametrize(("tasks", "jobs", "others"), [(0, 5, 0), (1, 5, 1), (3, 5, 3), (30, 2, 2), (30, 1, 0)])
def test_no_more_threads_are_started_than_there_are_tasks(tasks, jobs, others):
    """One job is done in the thread that asks for it."""
    told, raw, _ = done(named, range(tasks), jobs)
    assert raw == b"".join(b"%d," % task for task in range(tasks))
    assert len(set(told) - {threading.get_ident()}) <= others
    assert (threading.get_ident() in told) is (jobs == 1)


@pytest.mark.parametrize("jobs", [1, 2, 5])
@pytest.mark.parametrize(("work", "error"), [(failing, "a: expected b, got c"), (surprising, "by task 12")])
def test_an_error_stands_where_its_task_stands(work, error, jobs):
    """All parts before it are told and written, none behind it; a bug comes as what it is."""
    told, raw, raised = done(work, range(99), jobs)
    assert (told, str(raised)) == ([*range(13)], error)
    assert raw == b"".join(b"%d," % task for task in range(13))


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_an_error_of_the_tasks_comes_behind_what_was_made_of_the_tasks_before_it(jobs):
    """A file that is damaged at its end is converted up to there."""

    def tasks():
        yield from range(20)
        raise FileError("x", "y", "z")

    _, raw, error = done(named, tasks(), jobs)
    assert raw == b"".join(b"%d," % task for task in range(20))
    assert str(error) == "x: expected y, got z"


def test_tasks_are_taken_only_as_they_are_needed():
    """So memory does not grow with the file; who stops reading ends the threads."""
    taken = []

    def tasks():
        for task in range(10_000):
            taken.append(task)
            yield task

    with closing(write_in_order(named, tasks(), 2, io.BytesIO())) as parts:
        for number, _ in zip(range(20), parts, strict=False):
            assert len(taken) <= number + 6


def test_parts_wait_for_the_writer_in_small_number():
    """A task that gives gigabytes does so only as fast as they are written."""
    made = []

    def endless(task):
        for part in range(10_000):
            made.append(part)
            yield [b"x"], part

    with closing(write_in_order(endless, range(4), 2, io.BytesIO())) as parts:
        next(parts)
        time.sleep(0.05)
        assert len(made) <= 2 * 7


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is full")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_that_takes_no_more_is_an_error(jobs):
    """It ends the threads."""
    with Path("/dev/full").open("wb", buffering=0) as out, pytest.raises(OSError, match="No space left"):
        list(write_in_order(many, range(10), jobs, out))


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_a_piece_of_work_gives_its_result_where_it_is_waited_for(jobs):
    """In any order, and so does what it raises; with one job, this thread does it."""

    def work(number):
        time.sleep(0.001)
        if number == 3:
            raise ZeroDivisionError
        return number, threading.get_ident()

    with start_threads(jobs) as begin:
        begun = [begin(partial(work, number)) for number in range(9)]
        found = [begun[number]() for number in (8, 0, 4, 7)]
        with pytest.raises(ZeroDivisionError):
            begun[3]()
    assert [number for number, _ in found] == [8, 0, 4, 7]
    assert (threading.get_ident() in {thread for _, thread in found}) is (jobs == 1)


def test_work_that_nobody_waits_for_is_not_done_when_all_is_over():
    """The threads end with what they are doing."""
    done: list[int] = []

    def work(number):
        time.sleep(0.01)
        done.append(number)

    with start_threads(2) as begin:
        for number in range(100):
            begin(partial(work, number))
    assert len(done) < 100


class ExitCode:
    """A task that is read as an exit code."""

    def read(self):
        """Return the code."""
        return 3


@pytest.mark.slow
def test_a_process_that_ends_is_an_error():
    """Work that ends its process, as a lack of memory would, does not make anybody wait, nor the file shorter."""
    with pytest.raises(SetupError, match="a process that worked on the input has ended"):
        list(write_in_order(os._exit, [ExitCode(), ExitCode()], 2, None, in_processes=True))


class Letters:
    """A task that is read as a text."""

    def read(self):
        """Return the text."""
        return "ab"


def test_a_process_imports_nothing_from_the_folder_that_a_command_runs_in(tmp_path, monkeypatch):
    """Which may be anybody's; it has the modules of the process that starts it."""
    (tmp_path / "queue.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    assert list(write_in_order(enumerate, [Letters()], 2, None, in_processes=True)) == ["a", "b"]
