"""Columns of messages as they are read, from files and from Kafka, which the conversion takes."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Mapping

# As Spark's stream has them: `length` is that of the whole message, of which `raw` has the beginning if it is longer
# than one may be; `line` and `clock` are those of a reject that is read again. `size` is that of a file which is still
# to be unpacked, which none is here, so it is null.
SCHEMA: Final = pa.schema(
    [
        ("raw", pa.binary()),
        ("length", pa.int64()),
        ("key", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("file", pa.string()),
        ("size", pa.int64()),
        ("line", pa.int64()),
        ("clock", pa.string()),
    ]
)
# How many rows a batch has at most: an error has up to some kilobytes, however short its message is.
MOST_ROWS: Final = 1 << 14


def message_batch(count: int, arrays: Mapping[str, pa.Array], same: Mapping[str, Any]) -> pa.RecordBatch:
    """Return a batch of at most `MOST_ROWS` messages: columns, some of one value in all rows, the others null."""
    columns = []
    for field in SCHEMA:
        array = arrays.get(field.name)
        columns.append(_repeated(same.get(field.name), field.type).slice(0, count) if array is None else array)
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@lru_cache(maxsize=64)
def _repeated(value: Any, type: pa.DataType) -> pa.Array:
    if value is None:
        return pa.nulls(MOST_ROWS, type)
    return pa.repeat(pa.scalar(value, type), MOST_ROWS)
