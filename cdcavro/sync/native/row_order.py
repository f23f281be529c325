"""Order of the rows of a table, which lanes give one behind another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE: Final = 4096


def in_order(rows: pa.Table, *columns: str) -> Iterator[pa.RecordBatch]:
    r"""Yield rows sorted by columns, of which bytes compare as they do on Spark, in batches of at most 4,096.

    Rows that are not sorted are copied once. Binary columns of the batches may be large ones.

    >>> [one.to_pydict() for one in in_order(pa.table({"order": [b"\xff", b"a"], "n": [1, 2]}), "order")]
    [{'order': [b'a', b'\xff'], 'n': [2, 1]}]
    """
    keys: Any = [(name, "ascending") for name in columns]
    indices = pc.sort_indices(rows, keys)
    if not pc.all(pc.equal(indices, pa.array(range(len(indices)), pa.uint64()))).as_py():
        # The bytes of one column may be more than an array of small ones holds.
        rows = rows.cast(pa.schema([_widened(field) for field in rows.schema])).combine_chunks()
        for start in range(0, len(indices), _PIECE):
            yield from rows.take(indices.slice(start, _PIECE)).to_batches()
        return
    yield from rows.to_batches(max_chunksize=_PIECE)


def _widened(field: pa.Field) -> pa.Field:
    large = {pa.binary(): pa.large_binary(), pa.string(): pa.large_string()}
    return field.with_type(large.get(field.type, field.type))
