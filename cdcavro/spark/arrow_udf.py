"""Turning functions of Arrow arrays into functions of Columns, and what each function does first in Spark's workers."""

from __future__ import annotations

import sys
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from zipimport import zipimporter

import pyarrow as pa
from pyspark.sql.pandas.functions import arrow_udf

from cdcavro.engine.arrow_column import MAX_BYTES, pack
from cdcavro.errors import JobError
from cdcavro.lake.arrow import slices_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdcavro.engine.arrow_column import Batch
    from cdcavro.errors import MessageError

P = ParamSpec("P")
R = TypeVar("R")


def column_function(function: Callable[..., pa.Array], returns: str, name: str) -> Any:
    """Return a function of Columns made from a function of Arrow arrays; `returns` is its result type as DDL.

    The function's type hints tell Spark that it takes and returns whole arrays; result columns are named
    after `name`.
    """
    own = in_worker(function)
    own.__name__ = name
    return arrow_udf(own, returns)  # type: ignore[call-overload]


def in_worker(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that Spark's workers run, so that their next tasks begin sooner.

    A worker makes Python forget what it found on its path before each task, and zip files, of which Spark's largest jar is
    one, are then read again as a whole: 0.12 s of a processor. What is not on the list of those found is not read.
    """

    @wraps(function)
    def run(*args: P.args, **named: P.kwargs) -> R:
        for path, finder in list(sys.path_importer_cache.items()):
            if isinstance(finder, zipimporter):
                # It is found again if it is needed.
                sys.path_importer_cache.pop(path, None)
        return function(*args, **named)

    return run


def raw_bytes(values: pa.Array) -> list[bytes | None]:
    """Return the values of a string or binary array as bytes, whether they are UTF-8 or not."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = values.cast(pa.large_binary() if pa.types.is_large_string(values.type) else pa.binary())
    raw_values: list[bytes | None] = values.to_pylist()
    return raw_values


def converted(
    values: pa.Array,
    convert: Callable[[bytes], bytes],
    caught: Callable[[int, MessageError], object] | None = None,
    most: int = MAX_BYTES,
    batch: Batch | None = None,
) -> pa.Array:
    """Return a binary array of the converted values of a string or binary array; null stays null.

    Values go from buffer to buffer. `caught` and `batch` are as in `arrow_column.pack`. Raises `MessageError` unless
    `caught` takes it; `JobError` for results of more than `most` bytes; `TypeError` for an array of any
    other type.
    """
    try:
        packed = pack(slices_of(values), convert, caught, most, batch)
    except (OverflowError, pa.ArrowInvalid) as error:
        bound = f"the values of one Arrow batch come to more than {most} bytes"
        raise JobError(f"{bound}: lower spark.sql.execution.arrow.maxRecordsPerBatch") from error
    parts = [packed.validity if packed.nulls else None, packed.offsets, packed.data]
    buffers = [None if part is None else pa.py_buffer(part) for part in parts]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers, packed.nulls)
