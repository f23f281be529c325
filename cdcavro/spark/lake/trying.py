"""Trying a write again that failed for what passes: another writer's commit, or a machine that is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES: Final = 5
# How Java names what passes: a commit between the read and the write of a transaction, as of a compaction, and rows that
# were kept by a machine for the time of a statement, and were lost with it.
_PASSING: Final = (
    "io.delta.exceptions.",
    "org.apache.iceberg.exceptions.CommitFailedException",
    "org.apache.iceberg.exceptions.ValidationException",
    "CHECKPOINT_RDD_BLOCK_ID_NOT_FOUND",
)
# Perhaps it is committed.
_UNKNOWN: Final = "org.apache.iceberg.exceptions.CommitStateUnknownException"


def tried(write: Callable[[], None]) -> None:
    """Write, again if that failed for what passes, and so wrote nothing that is seen."""
    for left in reversed(range(_TRIES)):
        try:
            write()
        except (PySparkException, Py4JJavaError) as error:
            if not left or not _is_passing(error):
                raise
        else:
            return


def _is_passing(error: Exception) -> bool:
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    said = []
    while java is not None:
        said.append(java.toString())
        java = java.getCause()
    return any(name in one for one in said for name in _PASSING) and not any(_UNKNOWN in one for one in said)
