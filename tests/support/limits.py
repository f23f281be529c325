"""What a run of the tests may take: the time of a test, Java, and the room on the disk.

A test has 60 seconds, a slow one 180, one that starts Java 300; `timeout(seconds)` on a test or a file gives another
limit. A test beyond its limit fails. One that hangs in C, where no Python runs that could end it, takes its process with
it a minute later: no other test does.

A test that starts Java is marked `jvm`, by hand or by what it asks for; all others find no Java.

With `--within`, no test that starts Java is begun later than so many seconds after the first; those are skipped.

With `--long-first`, files begin with those whose tests have the longest limits: where several processes take a file each,
none of these is left at the end, when the other processes have nothing to do.
"""

from __future__ import annotations

import faulthandler
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

SECONDS: Final = {"jvm": 300, "slow": 180}
NO_JAVA: Final = "/a/test/that/starts/Java/is/marked/jvm"
# The fixtures that start Java.
JAVA: Final = frozenset({"spark", "avro_tools", "kafka", "apicurio"})
# What the whole run writes at most, and what no test can go on with.
NEEDED: Final = 3 << 30
LOW: Final = 200 << 20
# What a test that is beyond its limit has until its process ends, in seconds: its failure takes time to be told.
GRACE = 60
_STDERR: Final = pytest.StashKey[int]()
# When the first test that starts Java was begun.
_BEGUN: Final = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    parser.addoption(
        "--within",
        type=float,
        metavar="SECONDS",
        help="begin no test that starts Java later than so many seconds after the first of them; draw the order of files",
    )
    parser.addoption(
        "--long-first", action="store_true", help="begin with the files whose tests have the longest limits"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Keep the error output as it is before pytest captures it."""
    config.stash[_STDERR] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close it."""
    os.close(config.stash[_STDERR])


def pytest_sessionstart(session: pytest.Session) -> None:
    """End the run before its first test where there is no room for what tests write."""
    if hasattr(session.config, "workerinput") or session.config.option.collectonly:
        return
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    needed = int(os.environ.get("CDCAVRO_TESTS_ROOM", NEEDED))
    if free < needed:
        pytest.exit(
            f"the disk is nearly full: {folder} has {free / (1 << 30):.1f} GB left, the tests need "
            f"{needed / (1 << 30):.1f}; make room, or set TMPDIR to a folder on another disk",
            pytest.ExitCode.USAGE_ERROR,
        )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each test the limit of its kind; what asks for a session or a server starts Java."""
    for item in items:
        if not JAVA.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("jvm")
        if not item.get_closest_marker("timeout"):
            seconds = next((SECONDS[kind] for kind in SECONDS if item.get_closest_marker(kind)), None)
            if seconds:
                item.add_marker(pytest.mark.timeout(seconds))
    if config.option.long_first:
        longest: dict[Path, float] = {}
        for item in items:
            longest[item.path] = max(longest.get(item.path, 0), _limit(item))
        items.sort(key=lambda item: -longest[item.path])


def _limit(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0] if marker else item.config.getini("timeout"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test for which there is no time, before anything is made for it."""
    seconds = item.config.option.within
    if seconds is not None and item.get_closest_marker("jvm"):
        begun = item.session.stash.setdefault(_BEGUN, time.monotonic())
        if time.monotonic() > begun + seconds:
            pytest.skip(f"it was not begun within {seconds:g} seconds")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """End the process if a test hangs where its limit cannot end it; what each thread does is printed first."""
    seconds = _limit(item)
    if seconds:
        faulthandler.dump_traceback_later(seconds + GRACE, exit=True, file=item.config.stash[_STDERR])
    java = os.environ.get("JAVA_HOME")
    if not item.get_closest_marker("jvm"):
        os.environ["JAVA_HOME"] = NO_JAVA
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        os.environ.pop("JAVA_HOME", None)
        if java is not None:
            os.environ["JAVA_HOME"] = java


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[pytest.TestReport]:
    """Say that the disk is full where a test fails on a full disk, and begin no further one.

    A test that is beyond its limit may have waited for Java, whose answer would be taken for that of the next question.
    """
    report = yield
    if call.excinfo is not None and "Timeout (>" in str(call.excinfo.value):
        _hang_up()
    folder = tempfile.gettempdir()
    if report.failed and (free := shutil.disk_usage(folder).free) < LOW:
        reason = f"the disk is full: {folder} has {free >> 20} MB left"
        report.sections.append(("disk", reason))
        item.session.shouldfail = reason
    return report


def _hang_up() -> None:
    """Close this thread's connection to Spark, if there is one; the next question opens another."""
    gateway = getattr(getattr(sys.modules.get("pyspark"), "SparkContext", None), "_gateway", None)
    connection = gateway and gateway._gateway_client.get_thread_connection()
    if connection is not None:
        connection.close()
