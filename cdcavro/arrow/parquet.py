"""Parquet files of container files: the changes of a table, of whatever version, under the true names of its newest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from cdcavro.arrow.record_batches import arrow_schema, row_batches
from cdcavro.avro.container import ContainerReader
from cdcavro.engine.payloads import ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cdcavro.table.history import Table
    from cdcavro.table.table_schema import TableSchema

# A row group, which is in memory while it is made, ends at 100,000 rows or 16 MiB of payloads.
MOST_ROWS: Final = 100_000
MOST_BYTES: Final = 16 << 20


def to_parquet(container: Path, table: Table, schema: TableSchema, advance: Callable[[int], None]) -> None:
    """Make a Parquet file of a container file of a version's payloads, in its place and with its name.

    `advance` is told how many bytes of the container file are done. Raises `FileError`, `PayloadError` and `OSError`.
    """
    newest = table.schema
    with (
        pq.ParquetWriter(container.with_suffix(".parquet"), arrow_schema(newest), compression="zstd") as writer,
        container.open("rb") as stream,
    ):
        for payloads in payload_slices(ContainerReader(stream, container.name), schema, newest, advance):
            for batch in row_batches(payloads, schema, newest):
                writer.write_batch(batch)
    container.unlink()


def write_rows(rows: pa.Table, path: Path) -> None:
    """Write a table into a new Parquet file. Raises `OSError`."""
    pq.write_table(rows, path, compression="zstd")


def payload_slices(
    blocks: ContainerReader, schema: TableSchema, newest: TableSchema, advance: Callable[[int], None]
) -> Iterator[pa.Array]:
    """Yield the payloads of a version in a container file, as many at a time as may be rows of the newest at once.

    `advance` is told how many bytes of the file are done.
    """
    rows = _rows_at_once(newest)
    for payloads in _groups(blocks, schema):
        for start in range(0, len(payloads), rows):
            yield payloads.slice(start, rows)
        advance(payloads.buffers()[2].size)


def _rows_at_once(newest: TableSchema) -> int:
    """Return how many rows of older versions may get the defaults of the newest in both images at a time."""
    defaults = [field["default"] for field in newest.record["fields"] if field.get("default") is not None]
    size = 2 * sum(len(json.dumps(default)) for default in defaults)
    return max(1, min(MOST_ROWS, 4 * MOST_BYTES // max(size, 1)))


def _groups(blocks: ContainerReader, schema: TableSchema) -> Iterator[pa.Array]:
    """Yield the payloads of row groups."""
    waiting: list[pa.Array] = []
    for block in blocks:
        offsets = [pa.array([0], pa.int32()), pa.array(ends(block.payloads, block.count, schema.envelope), pa.int32())]
        buffers = [None, pa.concat_arrays(offsets).buffers()[1], pa.py_buffer(block.payloads)]
        waiting.append(pa.Array.from_buffers(pa.binary(), block.count, buffers))
        if sum(map(len, waiting)) >= MOST_ROWS or sum(payloads.nbytes for payloads in waiting) >= MOST_BYTES:
            yield pa.concat_arrays(waiting)
            waiting.clear()
    if waiting:
        yield pa.concat_arrays(waiting)
