"""The rejects of a pipeline: messages that are in no table, as JSON lines in a folder, by batch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from pyspark.sql import functions as sf

from cdcavro.errors import FileError
from cdcavro.spark.pipeline.conversion.outcome_columns import REJECT, STATEMENT
from cdcavro.spark.pipeline.shared import check_written, local_folder

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import Column, DataFrame

_BATCH: Final = re.compile(r"batch=([0-9]{1,18})", re.ASCII)
_PLACE: Final = ("topic", "partition", "offset", "file", "line")


def rejects_of(outcomes: DataFrame) -> DataFrame:
    """Return the rows of rejects among the outcomes of a batch of which all is learned."""
    is_left = (sf.col("what") == STATEMENT) & sf.col("reason").isNotNull()
    return outcomes.where((sf.col("what") == REJECT) | is_left)


def write_rejects(outcomes: DataFrame, folder: str, batch: int, now: datetime, count: int) -> None:
    """Write the rejects of a batch, so many, which replace those that it wrote when it was run before.

    Raises `JobError` if they are not all there.
    """
    rejects = rejects_of(outcomes).select(*line_columns(now))
    rejects.coalesce(1).write.mode("overwrite").json(f"{folder}/batch={batch}", ignoreNullFields=False)
    local = local_folder(f"{folder}/batch={batch}")
    if local is not None:
        check_written(local, sum(_lines(path) for path in local.glob("*.json")), count)


def line_columns(now: datetime, *, raw: Column | None = None, key: Column | None = None) -> list[Column]:
    """Return the columns of a reject's line of JSON, with other bytes than those of the message if they are given."""
    return [
        _text("raw", raw),
        _text("record_key", key),
        *[sf.col(name) for name in (*_PLACE, "format", "path", "reason")],
        sf.lit(now.isoformat()).alias("time"),
        sf.col("note").alias("clock"),
    ]


def replay(rejects: Path, folder: Path, batches: Collection[int] = ()) -> list[Path]:
    """Move rejects to where the next batch reads them again; return their folders. `batches` says which, by default all.

    `folder` is in that of the state. Those of a batch that is not done are left: it writes them again. Raises `FileError`
    if there are no others.
    """
    numbers = {path: number for path in rejects.glob("batch=*") if (number := batch_of(path)) is not None}
    found = sorted(path for path, number in numbers.items() if not batches or number in batches)
    done = _last_done(folder.parent)
    ready = [path for path in found if numbers[path] <= done]
    if not ready:
        raise FileError(
            str(rejects), "rejects", "those of a batch that is not done, which sync ends" if found else "none"
        )
    moved = []
    for path in ready:
        # Files of one batch may be replayed more than once, if they were rejected again.
        target = folder / f"{path.name}-{uuid4().hex}"
        folder.mkdir(parents=True, exist_ok=True)
        path.rename(target)
        moved.append(target)
    return moved


def batch_of(folder: Path) -> int | None:
    """Return the number of a batch's folder, `batch=7`; None for what is called otherwise, such as a copy of it.

    >>> from pathlib import Path
    >>> batch_of(Path("rejects/batch=7")), batch_of(Path("rejects/batch=7.bak"))
    (7, None)
    """
    number = _BATCH.fullmatch(folder.name)
    return None if number is None else int(number[1])


def _last_done(state: Path) -> int:
    """Return the number of the last batch that Spark's checkpoint says is done."""
    commits = (state / "checkpoint" / "commits").glob("*")
    return max((int(path.name) for path in commits if path.name.isdecimal()), default=-1)


def _lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(1 for _ in file)


def _text(name: str, value: Column | None) -> Column:
    # Spark's own function breaks lines every 76 characters.
    return sf.translate(sf.base64(name if value is None else value), "\r\n", "").alias(name)
