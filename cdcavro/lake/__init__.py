"""Lake tables: the rows that go into them, and how their current state is merged; nothing of Spark."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from cdcavro.lake.job_state import JobState
from cdcavro.lake.merge import TableState, check_keys, last_changes
from cdcavro.lake.typed_rows import Batch, TypedRow, TypedRows

if _TYPE_CHECKING:
    from cdcavro.lake.table_files import read_tables

__all__ = [
    "Batch",
    "JobState",
    "TableState",
    "TypedRow",
    "TypedRows",
    "check_keys",
    "last_changes",
    "read_tables",
]


def __getattr__(name: str) -> object:
    """Return `read_tables`, which needs pyarrow, when it is first needed."""
    if name != "read_tables":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import_module("cdcavro.lake.table_files").read_tables
