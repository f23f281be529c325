"""Plain Avro of typed tables: changes as flat records, which every Avro reader reads; and Parquet files of them.

The envelope of a change has records within it, a map, an array, and a type that is used again by its name, and each of
these is refused by some reader. A plain record has columns only, each of them null or a value of a primitive type:

* the columns of the row after the change, called as their Avro fields are, and never the same but for letter case;
* `_cdc_op`, `_cdc_ts_ms`, `_cdc_ts_us` and `_cdc_source_…`, which are what the envelope says of the change;
* `_cdc_before_…`, the columns of the row before it;
* `_cdc_unparsed` and `_cdc_absent`, those before the change too, and the source's position, as texts of JSON. Where a
  row is not there, these texts are null.

The logical types are those of Avro 1.8, so that a reader that knows no newer one sees values, or else the bytes and
numbers below them. A local time, which Avro has since 1.10, is a text: as a number it would be taken for an instant.

Container files become Parquet files here, too: they have the changes of a table, of whatever version, under the true
names of its newest.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from cdcavro.arrow.record_batches import arrow_schema, row_batches
from cdcavro.avro.container import ContainerReader, ContainerWriter
from cdcavro.engine.payloads import ends
from cdcavro.errors import SchemaError
from cdcavro.exact.instants import local_text
from cdcavro.table.table_schema import ATTRIBUTE, is_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from cdcavro.avro.schema import Schema
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


PLAIN: Final = "Change"
_OWN: Final = "_cdc_"
_SHARD: Final = f"{_OWN}shard"
# What stands before the names of what is beside the columns of a row, and of all of the row before the change.
_IMAGES: Final = {"after": _OWN, "before": f"{_OWN}before_"}
_KEPT: Final = ("doc", ATTRIBUTE)
_LETTER: Final = re.compile("[A-Za-z]")
# How many rows are Python objects at a time.
_ROWS: Final = 1000
# The years that a text of four digits can have repeat themselves in this many days.
_CYCLE_YEARS, _CYCLE_SECONDS = 400, 146_097 * 86_400


class _Kind(NamedTuple):
    """How values of a type of Arrow's are stored: as which Avro type, and how an array becomes a list of them."""

    avro: Any
    values: Callable[[pa.Array], list[Any]]


class _Form(NamedTuple):
    """The plain form of a version: its schema, the names of its fields, and how the arrays of these become lists."""

    schema: Schema
    bare: Any
    names: tuple[str, ...]
    values: tuple[Callable[[pa.Array], list[Any]], ...]


def plain_schema(schema: TableSchema) -> Schema:
    """Return the schema of the plain records of a version's changes. Raises `SchemaError` as `to_arrow` does."""
    return _form_of(schema).schema


def write_plain(path: Path | str, batches: Iterable[pa.RecordBatch], schema: TableSchema) -> None:
    """Write batches into a new Avro file of plain records.

    `batches` hold envelopes, as `to_arrow` makes them, and `schema` is the version under which they were read. Raises
    `SchemaError` as `to_arrow` does, `ValueError` for a batch with other columns, and `OSError`.
    """
    expected, file = arrow_schema(schema), Path(path)
    with file.open("xb") as stream:
        try:
            writer = ContainerWriter(stream, plain_schema(schema))
            for batch in batches:
                _check_columns(batch.schema, expected, schema)
                write_batch(batch, schema, writer)
            writer.flush()
        except BaseException:
            file.unlink()
            raise


def _check_columns(found: pa.Schema, expected: pa.Schema, schema: TableSchema) -> None:
    """Raise `ValueError` for a batch of other columns."""
    if not found.equals(expected):
        names = ", ".join(found.names)
        raise ValueError(f"a batch of version {schema.version} as to_arrow makes it, not one of {names}")


def to_plain(container: Path, table: Table, schema: TableSchema, advance: Callable[[int], None]) -> None:
    """Put plain records of a table's newest version in the place of a version's payloads in a container file.

    `advance` is told how many bytes of the file are done. Raises `FileError`, `PayloadError` and `OSError`.
    """
    newest, plain = table.schema, container.with_suffix(".plain")
    with container.open("rb") as stream, plain.open("xb") as target:
        writer = ContainerWriter(target, plain_schema(newest))
        for payloads in payload_slices(ContainerReader(stream, container.name), schema, newest, advance):
            write_payloads(payloads, schema, newest, writer)
        writer.flush()
    plain.replace(container)


class RecordWriter(Protocol):
    """What records are written with, such as a `ContainerWriter`."""

    def write_all(self, payloads: bytes, ends: Sequence[int]) -> None:
        """Write payloads that stand one after another; `ends` are the places behind them."""


def write_batch(batch: pa.RecordBatch, schema: TableSchema, writer: RecordWriter) -> None:
    """Write a batch of changes, read under a version, as plain records."""
    form = _form_of(schema)
    columns = list(_flatten(batch))
    for start in range(0, len(batch), _ROWS):
        cells = [values(column.slice(start, _ROWS)) for values, column in zip(form.values, columns, strict=True)]
        payloads, ends = BytesIO(), []
        for row in zip(*cells, strict=True):
            fastavro.schemaless_writer(payloads, form.bare, dict(zip(form.names, row, strict=True)))
            ends.append(payloads.tell())
        writer.write_all(payloads.getvalue(), ends)


def write_payloads(payloads: pa.Array, schema: TableSchema, newest: TableSchema, writer: RecordWriter) -> None:
    """Write payloads of a version as plain records of the newest. Raises as `to_arrow` does."""
    for batch in row_batches(payloads, schema, newest):
        write_batch(batch, newest, writer)


@lru_cache(maxsize=64)
def _form_of(schema: TableSchema) -> _Form:
    fields, values = [], []
    for field, arrow in _fields(schema):
        kind = _kind_of(arrow, field["name"])
        fields.append({"name": field["name"], "type": ["null", kind.avro], "default": None} | field)
        values.append(kind.values)
    bare = {"type": "record", "name": PLAIN, "fields": [_without_meaning(field) for field in fields]}
    whole = schema.record_schema(PLAIN, fields, "A change of a row, in columns only.")
    return _Form(whole, fastavro.parse_schema(bare), tuple(field["name"] for field in fields), tuple(values))


def _fields(schema: TableSchema) -> Iterator[tuple[dict[str, Any], pa.DataType]]:
    """Yield what a plain field has of its field, and its type in Arrow, in the order of `_flatten`."""
    names = _names(schema)
    for part in _in_order(arrow_schema(schema)):
        if part.name in _IMAGES:
            for field, arrow in zip(schema.record["fields"], part.type, strict=True):
                start = _IMAGES[part.name] if part.name == "before" or not is_column(field) else ""
                kept = {key: field[key] for key in _KEPT if key in field}
                aliases = [start + _apart(name) for name in field.get("aliases", ())]
                yield (
                    kept | {"name": start + names[field["name"]]} | ({"aliases": aliases} if aliases else {}),
                    arrow.type,
                )
        elif pa.types.is_struct(part.type):
            yield from (({"name": f"{_OWN}{part.name}_{one.name}"}, one.type) for one in part.type)
        else:
            yield {"name": f"{_OWN}{part.name}"}, part.type


def _names(schema: TableSchema) -> dict[str, str]:
    """Return what the fields of a row are called, by their names: in no two ways that differ in letter case only.

    DuckDB refuses a file with such names. The first one keeps its own, and letters of the others are escaped as other
    characters are in names of fields.
    """
    fields = schema.record["fields"]
    found = {field["name"]: field["name"] for field in fields if not is_column(field)}
    taken = {name.casefold() for name in found}
    for field in [one for one in fields if one["name"] not in found]:
        name = field["name"]
        own = name if _says_shard(field) else _apart(name)
        if own.casefold() in taken:
            own = _LETTER.sub(lambda letter: f"_x{ord(letter[0]):x}_", name)
        taken.add(own.casefold())
        found[name] = own
    return found


def _says_shard(field: dict[str, Any]) -> bool:
    """Return whether a field says which table of several a row is of: unlike one of a column, it is never null."""
    return bool(field["name"] == _SHARD and field["type"] == "string")


def _apart(name: str) -> str:
    """Return the name of a column, which is escaped as names of fields are if it begins as those beside the columns."""
    return f"_x5f_{name[1:]}" if name.casefold().startswith(_OWN) else name


def _in_order(columns: pa.Schema) -> list[pa.Field]:
    """Return the fields of an envelope in the order in which plain records have them: the row before comes last."""
    last = [columns.field("before")]
    return [columns.field("after"), *[one for one in columns if one.name not in _IMAGES], *last]


def _flatten(batch: pa.RecordBatch) -> Iterator[pa.Array]:
    for field in _in_order(batch.schema):
        column = batch.column(field.name)
        if pa.types.is_struct(field.type):
            yield from column.flatten()
        else:
            yield column


def _without_meaning(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field without its logical type: the values are stored as they are."""
    null, declared = field["type"]
    return {"name": field["name"], "type": [null, declared["type"] if isinstance(declared, dict) else declared]}


def _kind_of(arrow: pa.DataType, where: str) -> _Kind:
    """Return how values of a type are stored. Raises `SchemaError`, which names the field `where`."""
    if arrow in _PRIMITIVES:
        return _Kind(_PRIMITIVES[arrow], lambda column: list(column.to_pylist()))
    if arrow in _COUNTS:
        avro, stored = _COUNTS[arrow]
        return _Kind(avro, lambda column: list(column.cast(stored).to_pylist()))
    if arrow in _LOCAL_DIGITS:
        digits = _LOCAL_DIGITS[arrow]
        return _Kind("string", lambda column: _each(column.cast(pa.int64()), lambda count: _local(count, digits)))
    if pa.types.is_decimal(arrow):
        facts = {"logicalType": "decimal", "precision": arrow.precision, "scale": arrow.scale}
        return _Kind({"type": "bytes", **facts}, _unscaled)
    if arrow in (pa.list_(pa.string()), pa.list_(pa.int64())):
        return _Kind("string", lambda column: _each(column, _json))
    if arrow == pa.map_(pa.string(), pa.string()):
        return _Kind("string", lambda column: _each(column, lambda pairs: _json(dict(pairs))))
    raise SchemaError(where, f"{arrow} is nested, and plain records have columns only")


def _each(column: pa.Array, convert: Callable[[Any], str]) -> list[str | None]:
    return [None if value is None else convert(value) for value in column.to_pylist()]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _local(count: int, digits: int) -> str:
    """Return a local time as a text of one length, which sorts as the times do; a year that is longer has a sign.

    >>> _local(1709208000500000, 6), _local(10**18, 6)
    ('2024-02-29 12:00:00.500000', '+33658-09-27 01:46:40.000000')
    """
    whole = local_text(count, digits, digits)
    if whole is not None:
        return whole
    cycles = count // (_CYCLE_SECONDS * 10**digits)
    near = local_text(count - cycles * _CYCLE_SECONDS * 10**digits, digits, digits) or ""
    return f"{int(near[:4]) + cycles * _CYCLE_YEARS:+05}{near[4:]}"


def _unscaled(column: pa.Array) -> list[bytes | None]:
    """Return the digits of decimals as Avro has them: the shortest two's complement, the greatest byte first."""
    width = pa.binary(column.type.bit_width // 8)
    raw = pa.Array.from_buffers(width, len(column), column.buffers(), offset=column.offset).to_pylist()
    numbers = [None if value is None else int.from_bytes(value, "little", signed=True) for value in raw]
    return [
        None if one is None else one.to_bytes((one if one >= 0 else ~one).bit_length() // 8 + 1, "big", signed=True)
        for one in numbers
    ]


_PRIMITIVES: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
}
_COUNTS: Final[dict[pa.DataType, tuple[Any, pa.DataType]]] = {
    pa.date32(): ({"type": "int", "logicalType": "date"}, pa.int32()),
    pa.time32("ms"): ({"type": "int", "logicalType": "time-millis"}, pa.int32()),
    pa.time64("us"): ({"type": "long", "logicalType": "time-micros"}, pa.int64()),
    pa.timestamp("ms", "UTC"): ({"type": "long", "logicalType": "timestamp-millis"}, pa.int64()),
    pa.timestamp("us", "UTC"): ({"type": "long", "logicalType": "timestamp-micros"}, pa.int64()),
}
_LOCAL_DIGITS: Final[dict[pa.DataType, int]] = {
    pa.timestamp("ms"): 3,
    pa.timestamp("us"): 6,
    pa.timestamp("ns"): 9,
}
