"""Batches of Arrow's from typed payloads: of any mixture of a table's versions, under the true names of one."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.arrays import Room, RowsError, array_of_values, filled_array, zeros
from cdcavro.arrow.layout import layout, row_names
from cdcavro.arrow.older_values import filled
from cdcavro.arrow.values import reader as value_reader
from cdcavro.arrow.versions import VersionPayloads
from cdcavro.avro.decoder import Decoder
from cdcavro.engine.arrow_column import MAX_BYTES
from cdcavro.engine.machine import COMPILED, Filler
from cdcavro.engine.payloads import check
from cdcavro.errors import MessageError, PayloadError, shown
from cdcavro.lake.arrow import slices_of
from cdcavro.table.history import Table
from cdcavro.table.older_fields import ENVELOPE, heirs, part_of, reader_of
from cdcavro.table.schema import TableSchema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from cdcavro.arrow.layout import Layout
    from cdcavro.avro.schema import Schema
    from cdcavro.engine.arrow_column import Slices

    Schemas = Table | TableSchema | Sequence[TableSchema]

# A list of None has no type of its own.
_BYTES: Final = (pa.binary(), pa.large_binary(), pa.null())
_IMAGES: Final = frozenset({"before", "after"})


def to_arrow(
    payloads: Iterable[bytes | None] | pa.Array,
    schemas: Schemas,
    versions: Iterable[int | None] | pa.Array | None = None,
    reader: TableSchema | int | None = None,
    *,
    part: str = ENVELOPE,
) -> pa.RecordBatch:
    """Return typed payloads of one table as a batch, every row under the names of one version.

    `payloads` are bytes, or an array of them; `schemas` is the table, a list of its versions, or one version;
    `versions` are the numbers of the payloads' versions, which one version needs not. `reader` is the version to read
    as, the newest by default; `part` is "envelope", "row" or "key". The columns, or the fields of `before` and
    `after`, have the true names and are read as `cdcavro.spark.read_versions` reads them, older columns included. A
    payload or a version that is None gives a row of nulls. Raises `PayloadError` for a payload that is none of its
    version and an unknown version, its path beginning with the number of the row, for an array that is none, for more
    than 2 GiB, for arrays whose items are out of all proportion to the payloads, and for rows whose columns are; `SchemaError` for a
    version that the reader does not read, and for what Arrow cannot hold; `ValueError` for the key of a version
    without one.
    """
    known = _known(schemas)
    wanted = _wanted(known, reader)
    column = _binary(payloads)
    try:
        column = _brought(column, known, versions, wanted, part)
        return _shown(read_batch(column, reading(wanted, part)), wanted, part)
    except OverflowError as error:
        raise PayloadError(f"at most {MAX_BYTES} bytes in a column of a batch", "more") from error


def arrow_schema(schema: TableSchema, *, part: str = ENVELOPE) -> pa.Schema:
    """Return the schema of the batches that `to_arrow` makes under a version. Raises `SchemaError` and `ValueError` as that."""
    return _shown(read_batch(_binary([]), reading(schema, part)), schema, part).schema


class Reading(NamedTuple):
    """How payloads of a schema are read: its layout, the engine, and the exact way."""

    schema: Schema
    layout: Layout
    filler: Filler
    exact: Callable[[Decoder], Any]


@lru_cache(maxsize=64)
def reading(schema: TableSchema, part: str) -> Reading:
    """Return how payloads of a part of a version are read. Raises `SchemaError` and `ValueError`."""
    read = reader_of(schema, part)
    return reading_of(read, row_names(schema, part))


def reading_of(schema: Schema, names: Mapping[str, Mapping[str, str]]) -> Reading:
    """Return how payloads of a record's schema are read; `names` are as in `layout`. Raises `SchemaError`."""
    made = layout(schema, names)
    return Reading(schema, made, Filler(made.program), value_reader(schema.root))


def _known(schemas: Schemas) -> dict[int, TableSchema]:
    if isinstance(schemas, TableSchema):
        return {schemas.version: schemas}
    listed = schemas.versions if isinstance(schemas, Table) else schemas
    known = {schema.version: schema for schema in listed}
    if not known:
        raise ValueError("a table has at least one version")
    return known


def _wanted(known: dict[int, TableSchema], reader: TableSchema | int | None) -> TableSchema:
    if isinstance(reader, TableSchema):
        return reader
    if reader is not None and reader not in known:
        raise ValueError(f"the reader is one of the versions {', '.join(map(str, known))}, not {reader}")
    return known[max(known) if reader is None else reader]


def _binary(payloads: Iterable[bytes | None] | pa.Array) -> pa.Array:
    """Return payloads as one array.

    Raises `PayloadError` for an array that is none and for more than 2 GiB, and `TypeError` for what is not bytes.
    """
    column = _checked(payloads)
    if column is None:
        try:
            column = pa.array(payloads)
        except pa.ArrowCapacityError as error:
            raise _too_large() from error
        except (OverflowError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise TypeError("payloads are bytes") from error
    if column.type not in _BYTES:
        raise TypeError(f"payloads are bytes, not {column.type}")
    try:
        made = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        plain = made.cast(pa.binary())
    except pa.ArrowInvalid as error:
        raise _too_large() from error
    if isinstance(plain, pa.ChunkedArray):
        raise _too_large()
    return plain


def _too_large() -> PayloadError:
    return PayloadError(f"at most {MAX_BYTES} bytes in a batch", "more")


def _checked(values: Any) -> pa.Array | pa.ChunkedArray | None:
    """Return an array whose buffers hold what it says, None for what is no array. Raises `PayloadError`.

    Arrow itself reads where an array says, which may be made of any buffers.
    """
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        return None
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise PayloadError("a valid array", shown(str(error).splitlines()[0])) from error
    return values


def _brought(
    payloads: pa.Array,
    known: dict[int, TableSchema],
    versions: Iterable[int | None] | pa.Array | None,
    wanted: TableSchema,
    part: str,
) -> pa.Array:
    """Return payloads as the reader's version writes them."""
    if versions is None and len(known) > 1:
        raise ValueError(f"the version of each payload, as there are {len(known)}")
    writers, target = [part_of(schema, part) for schema in known.values()], reader_of(wanted, part)
    if versions is None:
        numbers = pa.array([0] * len(payloads), pa.int32())
    else:
        said = _numbers(versions)
        if len(said) != len(payloads):
            raise ValueError(f"{len(payloads)} payloads with {len(said)} versions")
        numbers = pc.index_in(said, pa.array(list(known), said.type))
        _check_versions(said, numbers, known, wanted)
    used = pc.unique(numbers.drop_null()).to_pylist()
    if all(writers[number].json == target.json for number in used):
        return (
            pc.if_else(numbers.is_valid(), payloads, pa.scalar(None, pa.binary())) if numbers.null_count else payloads
        )
    return VersionPayloads([writer.json for writer in writers], target.json).brought(numbers, payloads)


def _numbers(versions: Iterable[int | None] | pa.Array) -> pa.Array:
    """Return the numbers of versions as an array. Raises `TypeError` for what are no integers."""
    try:
        said = _checked(versions)
        said = pa.array(list(versions)) if said is None else said
    except (OverflowError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TypeError("versions are integers of 64 bits") from error
    value = said.type.value_type if pa.types.is_dictionary(said.type) else said.type
    if not (pa.types.is_integer(value) or pa.types.is_null(value)):
        raise TypeError(f"versions are integers, not {said.type}")
    return said.cast(pa.int64())


def _check_versions(said: pa.Array, numbers: pa.Array, known: dict[int, TableSchema], wanted: TableSchema) -> None:
    unknown = pc.and_(said.is_valid(), numbers.is_null())
    if pc.any(unknown).as_py():
        row = pc.index(unknown, True).as_py()
        error = PayloadError(f"a version of {wanted.full_name}: {', '.join(map(str, known))}", str(said[row]))
        error.below(f"/{row}")
        raise error


def read_batch(payloads: pa.Array, how: Reading) -> pa.Array:
    """Return payloads of one schema as an array of structs, none of which is null.

    Raises `PayloadError`, its path beginning with the number of the row, and `OverflowError` for more than 2 GiB.
    """
    values, root = slices_of(payloads), how.layout.root
    columns, taken, is_full = how.filler.fill(values)
    if is_full:
        raise RowsError
    if not COMPILED:
        return exactly_read(values, how)
    if taken < values.count:
        # Where it is at fault, none of the others need be read.
        _value(values, taken, how)
        return exactly_read(values, how)
    nothing = zeros(taken)
    inner = [filled_array(one, columns, taken, nothing) for one in root.parts]
    return pa.Array.from_buffers(root.type, taken, [None], 0, children=inner)


def exactly_read(values: Slices, how: Reading) -> pa.Array:
    """Return what the engine would make of payloads; it finds the fault of one that is none."""
    rows = [_value(values, i, how) for i in range(values.count)]
    try:
        return array_of_values(how.layout.root, rows, Room(values.size, how.layout.program.columns, len(rows)))
    except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
        raise OverflowError("an array of more than 2 GiB") from error


def _value(values: Slices, i: int, how: Reading) -> tuple[Any, ...]:
    """Return the values of a row. Raises `PayloadError` with its number."""
    raw = values.get(i)
    if raw is None:
        return (None,) * len(how.layout.root.parts)
    try:
        check(raw, how.schema)
    except MessageError as error:
        error.below(f"/{i}")
        raise
    row: tuple[Any, ...] = how.exact(Decoder(raw))
    return row


def _shown(read: pa.Array, schema: TableSchema, part: str) -> pa.RecordBatch:
    """Return the rows of a part as a batch, with older values filled in, but without the columns that only they need."""
    columns = dict(zip([field.name for field in read.type], read.flatten(), strict=True))
    if heirs((field["name"], field) for field in schema.record["fields"]):
        if part == ENVELOPE:
            columns |= {name: _filled_image(columns[name], schema) for name in _IMAGES}
        else:
            made = filled(list(columns.values()), json.loads(reader_of(schema, part).json)["fields"])
            shown = len(json.loads(part_of(schema, part).json)["fields"])
            columns = dict(list(zip(columns, made, strict=True))[:shown])
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _filled_image(image: pa.Array, schema: TableSchema) -> pa.Array:
    made = filled(image.flatten(), schema.record["fields"])
    return pa.StructArray.from_arrays(made, fields=list(image.type), mask=image.is_null())
