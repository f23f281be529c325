"""Lake tables: the rows that go into them, and how their current state is merged; nothing of Spark."""

from cdcavro.lake.job_state import JobState
from cdcavro.lake.merge import TableState, check_keys, last_changes
from cdcavro.lake.typed_rows import Batch, TypedRow, TypedRows

__all__ = [
    "Batch",
    "JobState",
    "TableState",
    "TypedRow",
    "TypedRows",
    "check_keys",
    "last_changes",
]
