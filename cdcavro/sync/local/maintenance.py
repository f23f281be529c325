"""Maintenance of a pipeline's lake tables, also while the pipeline runs: small files are put together, old ones removed.

It is done by the calls of the library that writes the tables, one table at a time. What a library cannot do is said.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from cdcavro.errors import FileError, JobError, SchemaError, SetupError
from cdcavro.lake.lakes import OWNER, SUFFIXES
from cdcavro.sync.local.local_sinks import native_lake, sink_of
from cdcavro.sync.native.native_state import NativeState
from cdcavro.sync.native.native_tables import locate
from cdcavro.sync.outputs.sink_settings import LakeSettings
from cdcavro.sync.pipeline import JOB, job_of, names_in
from cdcavro.sync.reading.stored_state import state_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cdcavro.sync.native.native_table import NativeTable
    from cdcavro.sync.pipeline import Pipeline

# How long files are kept that no version needs, as both Delta Lake and `deltalake` have it.
KEEP: Final = timedelta(days=7)


class Maintained(NamedTuple):
    """What was done to a lake table."""

    # Its name in messages.
    table: str
    # How many files it has fewer, and how many old ones were removed.
    fewer: int
    removed: int
    # What could not be done, and why; None if all was.
    left: str | None


def maintain(pipeline: Pipeline, keep: timedelta = KEEP) -> Iterator[Maintained]:
    """Yield what was done to each lake table of a pipeline, as it is done.

    Deletes whose guard is over are forgotten, files put together, and those removed that no version needs which is
    younger than `keep`, seven days at least. Tables that are another pipeline's are left alone. What fails is told
    with its table. Raises `FileError` for a state that has none, `SetupError` without a lake or its library, and
    `JobError` for tables that cannot be reached.
    """
    settings = pipeline.sink
    if keep < KEEP:
        raise ValueError(f"files are kept for at least {KEEP.days} days, as readers may need them")
    if not isinstance(settings, LakeSettings):
        raise SetupError(f"{settings.name}: only lake tables are maintained")
    with state_folder(pipeline.state) as folder:
        if not (folder / JOB).exists():
            raise FileError(pipeline.state, "the state of a pipeline", "none")
        job, names = job_of(folder, sink_of(settings).identity(), is_checked=True).id, names_in(folder)
    for name in sorted(set(names.values()), key=str):
        lake = locate(native_lake(settings), name)
        owned = [one for one in (lake.table(name, suffix) for suffix in SUFFIXES) if _owner(one) == job]
        left: list[str] = []
        if owned and _owner(lake.table(name)) == job:
            _try(NativeState(lake, name, guard=settings.guard).forget_deletes, left)
        for table in owned:
            yield _maintain(table, keep, left)
            left = []


def _owner(table: NativeTable) -> str | None:
    return (table.properties() or {}).get(OWNER)


def _maintain(table: NativeTable, keep: timedelta, left: list[str]) -> Maintained:
    """Maintain a table; `left` is what could not be done before."""
    fewer = _try(table.compact, left)
    removed = _try(lambda: table.vacuum(keep), left)
    return Maintained(table.identifier, fewer, removed, "; ".join(left) or None)


def _try(step: Callable[[], int | None], left: list[str]) -> int:
    """Take a step, and return how many files it was about; what cannot be done is told, and holds up nothing else."""
    try:
        return step() or 0
    except (JobError, SchemaError) as error:
        left.append(str(error))
        return 0
