"""The data files of a Delta table, written anew where `deltalake` would not read what is in them.

`deltalake` 1.6 neither reads nor writes a table whose files have narrower types than the table ("type widening"), as
Spark leaves them. So a column is widened by writing all files anew, and a table that Spark has widened becomes a plain
one in the same way, the first time it is used.

It reads the instants that Spark writes, which Parquet calls INT96, as nanoseconds of 64 bits: those before 1678 and
after 2261 would silently be others. So files with such instants are written anew, too.

Source: Delta Lake's protocol, "Add File and Remove File", "Type Widening"; deltalake 1.6.6.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from cdcavro.errors import SchemaError
from cdcavro.lake.lake_columns import arrow_type
from cdcavro.sync.native.delta_schema import DELETION_VECTORS, PHYSICAL, spark_spelling

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from deltalake import DeltaTable

    from cdcavro.sync.native.delta_schema import DeltaSchema

_ROWS: Final = 64 * 1024
# Instants between these are the same in nanoseconds of 64 bits.
_NEAR: Final = (datetime(1678, 1, 1, tzinfo=UTC), datetime(2262, 1, 1, tzinfo=UTC))
_INSTANT: Final = "timestamp"


def far_files(table: DeltaTable, folder: str, schema: DeltaSchema) -> set[str]:
    """Return the paths of files that may have instants which `deltalake` would read as others.

    Statistics of a file say which instants it has; only where they are missing, or far, the file is looked at.
    """
    names = [one["name"] for one in schema.fields if one["type"] == _INSTANT]
    is_nested = any(one["type"] != _INSTANT and f'"{_INSTANT}"' in json.dumps(one["type"]) for one in schema.fields)
    if not names and not is_nested:
        return set()
    files = pa.table(table.get_add_actions()).to_pylist()
    suspects = [file["path"] for file in files if is_nested or not all(_is_near(file, name) for name in names)]
    return {path for path in suspects if _has_old_instants(str(Path(folder, unquote(path))))}


def _is_near(file: Mapping[str, Any], name: str) -> bool:
    """Return whether the statistics of a file say that all instants of a column are near."""
    if (file.get("null_count") or {}).get(name) == file["num_records"] is not None:
        return True
    ends = [(file.get(end) or {}).get(name) for end in ("min", "max")]
    return all(isinstance(end, datetime) and _NEAR[0] <= end.replace(tzinfo=UTC) < _NEAR[1] for end in ends)


@lru_cache(maxsize=1 << 14)
def _has_old_instants(file: str) -> bool:
    """Return whether a file, which never changes, has instants in Parquet's INT96."""
    columns = pq.read_metadata(file).schema
    return any(columns.column(i).physical_type == "INT96" for i in range(len(columns)))


def rewrite_files(
    table: DeltaTable, folder: str, schema: DeltaSchema, paths: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """Write files of a table anew in the types of a schema; return the actions that put them in place of the others.

    `folder` is the table's, on this machine; `paths` are those of the files, by default of all. Raises `SchemaError`
    for a table of which rows are marked as deleted.
    """
    if DELETION_VECTORS in schema.protocol.writer_features and (schema.is_widened or _has_marks(table)):
        raise SchemaError(
            folder, "has rows that are marked as deleted: run this batch on Spark, or REORG the table there"
        )
    target = pa.schema([_field(one) for one in schema.fields])
    actions = []
    for file in pa.table(table.get_add_actions()).select(["path", "size_bytes"]).to_pylist():
        if paths is not None and file["path"] not in paths:
            continue
        actions.append(_remove(file["path"], file["size_bytes"]))
        actions.append(_write(Path(folder), Path(folder, unquote(file["path"])), target))
    return actions


def _has_marks(table: DeltaTable) -> bool:
    return any(batch.num_rows for batch in pa.RecordBatchReader.from_stream(table.deletion_vectors()))


def _remove(path: str, size: int) -> dict[str, Any]:
    stated = {"path": path, "deletionTimestamp": int(time.time() * 1000), "dataChange": True}
    return {"remove": stated | {"extendedFileMetadata": True, "partitionValues": {}, "size": size}}


def _write(folder: Path, file: Path, target: pa.Schema) -> dict[str, Any]:
    """Write the rows of a file in other types; return the action that adds the new file."""
    name, rows = f"part-00000-{uuid4()}-c000.snappy.parquet", 0
    made = folder / name
    with pq.ParquetWriter(made, target, compression="snappy") as writer:
        for batch in _batches(file, target):
            writer.write_batch(batch)
            rows += batch.num_rows
    stat = made.stat()
    stated = {"path": name, "partitionValues": {}, "size": stat.st_size, "modificationTime": int(stat.st_mtime * 1000)}
    return {"add": stated | {"dataChange": True, "stats": json.dumps({"numRecords": rows})}}


def _batches(file: Path, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file in the types of a schema; columns that came after the file are null."""
    # In nanoseconds, which is the default, Spark's instants after 2262 are others.
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as parquet:
        for batch in parquet.iter_batches(_ROWS):
            held = dict(zip(batch.schema.names, batch.columns, strict=True))
            arrays = [
                _cast(held[field.name], field.type) if field.name in held else pa.nulls(len(batch), field.type)
                for field in target
            ]
            yield pa.RecordBatch.from_arrays(arrays, schema=target)


def _cast(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(values.type) and pa.types.is_timestamp(wanted) and values.type.tz is None:
        # Spark's older files do not say that their instants are in UTC.
        values = values.cast(pa.timestamp(values.type.unit)).cast(pa.int64()).cast(pa.timestamp("us", wanted.tz))
    return values.cast(wanted)


def _field(one: Mapping[str, Any]) -> pa.Field:
    """Return a column as files have it."""
    return pa.field(one["metadata"].get(PHYSICAL, one["name"]), _type(one["type"]))


def _type(declared: Any) -> pa.DataType:
    match declared:
        case {"type": "struct", "fields": fields}:
            return pa.struct([_field(one) for one in fields])
        case {"type": "array", "elementType": items}:
            return pa.list_(_type(items))
        case {"type": "map", "keyType": keys, "valueType": values}:
            return pa.map_(_type(keys), _type(values))
        case str():
            return arrow_type(spark_spelling(declared))
    raise SchemaError(str(declared), "is no type of a lake's column")


def added_paths(actions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the paths of the files that actions add."""
    return [one["add"]["path"] for one in actions if "add" in one]
