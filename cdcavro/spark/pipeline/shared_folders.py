"""Shared folders of Spark's machines: whether all of them see the same, and whether all that they wrote is there."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from cdcavro.errors import FileError
from cdcavro.files.streams import local_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

# How often each machine is asked, on average: which one takes a task is Spark's choice.
_ASKED: Final = 4


def check_shared(spark: SparkSession, folders: Iterable[str | Path]) -> None:
    """Check that all machines of Spark see the same folders as this one, and can write to them.

    What they write to disks of their own would be lost. Addresses of other file systems are not checked; for a folder
    that is not there yet, the folder around it is. Raises `FileError`, which names a machine.
    """
    context: Any = spark.sparkContext
    local = dict.fromkeys(path for path in map(local_folder, folders) if path is not None)
    if context._jsc.sc().isLocal():  # noqa: SLF001  it has no Python interface
        return
    for path in local:
        there = next(one for one in (path, *path.parents) if one.is_dir())
        mark = there / f".cdcavro-{uuid4().hex}"
        mark.touch()
        try:
            tasks = max(1, context.defaultParallelism) * _ASKED
            answers = context.parallelize(range(tasks), tasks).mapPartitionsWithIndex(_look_task(str(mark))).collect()
            fault = next((one for one in answers if one[2] or not Path(one[1]).exists()), None)
        finally:
            for one in there.glob(f"{mark.name}*"):
                one.unlink(missing_ok=True)
        if fault is not None:
            host, _, reason = fault
            raise FileError(
                str(path), "a folder that all machines of Spark share", f"one that {host} {reason or 'has of its own'}"
            )


def _look_task(mark: str) -> Any:
    """Return a task's function: it returns its machine, the file that it wrote beside a mark, or why it cannot."""

    def look(index: int, _: Iterator[int]) -> Iterator[tuple[str, str, str | None]]:
        own, host = Path(f"{mark}-{index}"), socket.gethostname()
        if not Path(mark).exists():
            yield host, str(own), "does not see"
            return
        try:
            own.touch()
        except OSError as error:
            yield host, str(own), f"cannot write to ({error.strerror})"
            return
        yield host, str(own), None

    return look
