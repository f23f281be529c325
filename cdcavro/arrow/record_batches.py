"""Record batches of Arrow's, made of typed payloads: of any versions of a table, under the true names of one.

The payloads are first brought into the reader's version, then put into columns, and then the older values of columns
whose type changed are put into the newer columns.
"""

from __future__ import annotations

import json
from array import array
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.arrays import Room, RowsError, array_of_cells, array_of_values, blank, slices_of, value_reader, zeros
from cdcavro.arrow.layout import layout_of, row_names
from cdcavro.avro.binary import Decoder
from cdcavro.avro.schema import parse_schema
from cdcavro.avro.translation import MAX_TRANSLATED, translator
from cdcavro.avro.translation_program import pair_program
from cdcavro.engine.machine import COMPILED, Filler, Translator, Translators
from cdcavro.engine.payloads import MAX_BYTES, check
from cdcavro.errors import MessageError, PayloadError, shown
from cdcavro.table.history import Table
from cdcavro.table.older_fields import ENVELOPE, filled_value, heirs, is_fillable, part_of, reader_of
from cdcavro.table.table_schema import TableSchema, avro_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cdcavro.arrow.layout import Layout
    from cdcavro.avro.schema import Schema
    from cdcavro.engine.payloads import Slices

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

    * `payloads` are bytes, or an array of them; a payload that is None gives a row of nulls.
    * `schemas` is the table, a list of its versions, or one version.
    * `versions` are the numbers of the payloads' versions, not needed for one version; None gives a row of nulls.
    * `reader` is the version to read as, the newest by default.
    * `part` is "envelope", "row" or "key".

    The columns, or the fields of `before` and `after`, have the true names and are read as
    `cdcavro.spark.read_versions` reads them, older columns included.

    Raises `PayloadError` for a payload that its version did not write and for an unknown version, its path beginning
    with the number of the row; for an array that is not valid; for more than 2 GiB; and where the items of arrays, or
    the columns of rows, take far more room than the payloads. Raises `SchemaError` for a version that the reader does
    not read and for what Arrow cannot hold, and `ValueError` for the key of a version without one.
    """
    known = _versions_by_number(schemas)
    wanted = _reader_version(known, reader)
    column = _as_binary(payloads)
    try:
        column = _bring_into(column, known, versions, wanted, part)
        return _as_record_batch(read_batch(column, reading_for(wanted, part)), wanted, part)
    except OverflowError as error:
        raise PayloadError(f"at most {MAX_BYTES} bytes in a column of a batch", "more") from error


def row_batches(payloads: pa.Array, schema: TableSchema, newest: TableSchema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of payloads of a version: in one batch, or in several where one would take too much."""
    numbers = pa.array([schema.version] * len(payloads), pa.int32())
    half = len(payloads) // 2
    try:
        batch = to_arrow(payloads, [schema, newest], numbers, newest)
    except RowsError:
        if not half:
            raise
    else:
        yield batch
        return
    yield from row_batches(payloads[:half], schema, newest)
    yield from row_batches(payloads[half:], schema, newest)


def arrow_schema(schema: TableSchema, *, part: str = ENVELOPE) -> pa.Schema:
    """Return the schema of the batches that `to_arrow` makes for a version. Raises as `to_arrow` does."""
    return _as_record_batch(read_batch(_as_binary([]), reading_for(schema, part)), schema, part).schema


class Reading(NamedTuple):
    """How payloads of a schema are read.

    Fields:

    * `schema` (`Schema`), the one that wrote them
    * `layout` (`Layout`), its columns
    * `filler` (`Filler`), the engine
    * `exact` (function), the exact way: it reads the values of one payload
    """

    schema: Schema
    layout: Layout
    filler: Filler
    exact: Callable[[Decoder], Any]


@lru_cache(maxsize=64)
def reading_for(schema: TableSchema, part: str) -> Reading:
    """Return how payloads of a part of a version are read. Raises `SchemaError` and `ValueError`."""
    read = reader_of(schema, part)
    return reading_of(read, row_names(schema, part))


def reading_of(schema: Schema, names: Mapping[str, Mapping[str, str]]) -> Reading:
    """Return how payloads of a record's schema are read; `names` are as in `layout_of`. Raises `SchemaError`."""
    columns = layout_of(schema, names)
    return Reading(schema, columns, Filler(columns.program), value_reader(schema.root))


def _versions_by_number(schemas: Schemas) -> dict[int, TableSchema]:
    if isinstance(schemas, TableSchema):
        return {schemas.version: schemas}
    listed = schemas.versions if isinstance(schemas, Table) else schemas
    known = {schema.version: schema for schema in listed}
    if not known:
        raise ValueError("a table has at least one version")
    return known


def _reader_version(known: dict[int, TableSchema], reader: TableSchema | int | None) -> TableSchema:
    if isinstance(reader, TableSchema):
        return reader
    if reader is not None and reader not in known:
        raise ValueError(f"the reader is one of the versions {', '.join(map(str, known))}, not {reader}")
    return known[max(known) if reader is None else reader]


def _as_binary(payloads: Iterable[bytes | None] | pa.Array) -> pa.Array:
    """Return payloads as one array.

    Raises `PayloadError` for an array that is not valid and for more than 2 GiB; `TypeError` for anything but bytes.
    """
    column = _validate(payloads)
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
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        plain = whole.cast(pa.binary())
    except pa.ArrowInvalid as error:
        raise _too_large() from error
    if isinstance(plain, pa.ChunkedArray):
        raise _too_large()
    return plain


def _too_large() -> PayloadError:
    return PayloadError(f"at most {MAX_BYTES} bytes in a batch", "more")


def _validate(values: Any) -> pa.Array | pa.ChunkedArray | None:
    """Return an array after a check of its buffers, None for anything else. Raises `PayloadError`.

    Arrow itself does not check: it reads wherever an array's offsets point.
    """
    if not isinstance(values, (pa.Array, pa.ChunkedArray)):
        return None
    try:
        values.validate(full=True)
    except pa.ArrowInvalid as error:
        raise PayloadError("a valid array", shown(str(error).splitlines()[0])) from error
    return values


def _bring_into(
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
        numbers_given = _version_numbers(versions)
        if len(numbers_given) != len(payloads):
            raise ValueError(f"{len(payloads)} payloads with {len(numbers_given)} versions")
        numbers = pc.index_in(numbers_given, pa.array(list(known), numbers_given.type))
        _check_versions(numbers_given, numbers, known, wanted)
    used = pc.unique(numbers.drop_null()).to_pylist()
    if all(writers[number].json == target.json for number in used):
        return blank(payloads, numbers.is_null()) if numbers.null_count else payloads
    return VersionPayloads([writer.json for writer in writers], target.json).translate(numbers, payloads)


def _version_numbers(versions: Iterable[int | None] | pa.Array) -> pa.Array:
    """Return the numbers of versions as an array. Raises `TypeError` for anything but integers."""
    try:
        listed = _validate(versions)
        listed = pa.array(list(versions)) if listed is None else listed
    except (OverflowError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TypeError("versions are integers of 64 bits") from error
    value = listed.type.value_type if pa.types.is_dictionary(listed.type) else listed.type
    if not (pa.types.is_integer(value) or pa.types.is_null(value)):
        raise TypeError(f"versions are integers, not {listed.type}")
    return listed.cast(pa.int64())


def _check_versions(listed: pa.Array, numbers: pa.Array, known: dict[int, TableSchema], wanted: TableSchema) -> None:
    unknown = pc.and_(listed.is_valid(), numbers.is_null())
    if pc.any(unknown).as_py():
        row = pc.index(unknown, True).as_py()
        error = PayloadError(f"a version of {wanted.full_name}: {', '.join(map(str, known))}", str(listed[row]))
        error.below(f"/{row}")
        raise error


def read_batch(payloads: pa.Array, reading: Reading) -> pa.Array:
    """Return payloads of one schema as an array of structs, none of which is null.

    Raises `PayloadError`, its path beginning with the number of the row, and `OverflowError` for more than 2 GiB.
    """
    values, root = slices_of(payloads), reading.layout.root
    columns, taken, is_full = reading.filler.fill(values)
    if is_full:
        raise RowsError
    if not COMPILED:
        return read_exactly(values, reading)
    if taken < values.count:
        # If this payload is faulty, the others need not be read.
        _read_row(values, taken, reading)
        return read_exactly(values, reading)
    zero_buffer = zeros(taken)
    children = [array_of_cells(part, columns, taken, zero_buffer) for part in root.parts]
    return pa.Array.from_buffers(root.type, taken, [None], 0, children=children)


def read_exactly(values: Slices, reading: Reading) -> pa.Array:
    """Return what the engine would make of payloads, the exact way, which says what is wrong with a faulty one."""
    rows = [_read_row(values, i, reading) for i in range(values.count)]
    try:
        return array_of_values(reading.layout.root, rows, Room(values.size, reading.layout.program.columns, len(rows)))
    except (pa.ArrowInvalid, pa.ArrowCapacityError) as error:
        raise OverflowError("an array of more than 2 GiB") from error


def _read_row(values: Slices, i: int, reading: Reading) -> tuple[Any, ...]:
    """Return the values of a row. Raises `PayloadError` with its number."""
    raw = values.get(i)
    if raw is None:
        return (None,) * len(reading.layout.root.parts)
    try:
        check(raw, reading.schema)
    except MessageError as error:
        error.below(f"/{i}")
        raise
    row: tuple[Any, ...] = reading.exact(Decoder(raw))
    return row


def _as_record_batch(read: pa.Array, schema: TableSchema, part: str) -> pa.RecordBatch:
    """Return the rows of a part as a batch, with older values filled in, without the columns that only these need."""
    columns = dict(zip([field.name for field in read.type], read.flatten(), strict=True))
    if heirs((field["name"], field) for field in schema.record["fields"]):
        if part == ENVELOPE:
            columns |= {name: _fill_image(columns[name], schema) for name in _IMAGES}
        else:
            filled = fill_older_values(list(columns.values()), json.loads(reader_of(schema, part).json)["fields"])
            count = len(json.loads(part_of(schema, part).json)["fields"])
            columns = dict(list(zip(columns, filled, strict=True))[:count])
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _fill_image(image: pa.Array, schema: TableSchema) -> pa.Array:
    columns = fill_older_values(image.flatten(), schema.record["fields"])
    return pa.StructArray.from_arrays(columns, fields=list(image.type), mask=image.is_null())


class VersionPayloads:
    """Brings payloads of several schemas into the reader's, an Arrow array at a time.

    `writers` are the texts of the schemas, `reader` is that of the reader's; `add` adds others.
    """

    def __init__(self, writers: Sequence[str] = (), reader: str = "") -> None:
        self._pairs = [(writer, reader) for writer in writers]
        self._translate: dict[int, Callable[[bytes], bytes]] = {}
        self._engine = Translators()

    def add(self, writer: str, reader: str) -> int:
        """Let payloads of another schema be brought into a reader's, and return the number of that schema."""
        self._pairs.append((writer, reader))
        return len(self._pairs) - 1

    def translate(self, numbers: pa.Array, payloads: pa.Array) -> pa.Array:
        """Return the payloads under the reader's schema; `numbers` are those of their schemas, null for none.

        Raises `PayloadError`, with the number of the row, for a payload that its schema did not write, `SchemaError` for
        a schema that the reader does not read, and `OverflowError` for more than 2 GiB.
        """
        if numbers.null_count:
            payloads = blank(payloads, numbers.is_null())
        known = numbers.cast(pa.int32()).fill_null(-1)
        numbered = memoryview(known.buffers()[1] or b"")
        indexes = array("i", numbered[known.offset * 4 : (known.offset + len(known)) * 4].tobytes())
        data, offsets = self._translate_all(indexes, payloads)
        # A payload that is null is null under the reader's schema, too.
        valid = pc.is_valid(payloads).buffers()[1] if payloads.null_count else None
        return pa.Array.from_buffers(pa.binary(), len(payloads), [valid, pa.py_buffer(offsets), pa.py_buffer(data)])

    def _translate_all(self, numbers: array[int], payloads: pa.Array) -> tuple[bytes, array[int]]:
        count, column, written = len(payloads), slices_of(payloads), [b""]
        starts, offsets = array("i", [0]) * count, array("i", [0]) * (count + 1)
        i = size = 0
        while True:
            targets = (numbers, starts, memoryview(offsets)[1:])
            some, i = self._engine.by_number(column, targets, i, size, (MAX_BYTES, MAX_TRANSLATED))
            size += len(some)
            written.append(some)
            if i == count:
                return b"".join(written), offsets
            left = column.get(i)
            payload = b"" if left is None else self._exact(numbers[i], left, i)
            size += len(payload)
            if size > MAX_BYTES:
                raise OverflowError(f"payloads of more than {MAX_BYTES} bytes")
            written.append(payload)
            offsets[i + 1] = size
            i += 1

    def _exact(self, number: int, payload: bytes, row: int) -> bytes:
        """Return a payload as the exact way gives it, and let the engine have the next ones of the same schema."""
        if number not in self._translate:
            self._translate[number], engine = _translators(*self._pairs[number])
            self._engine.add(number, engine, b"")
        try:
            return self._translate[number](payload)
        except MessageError as error:
            error.below(f"/{row}")
            raise


@lru_cache(maxsize=10_000)
def _translators(writer: str, reader: str) -> tuple[Callable[[bytes], bytes], Translator]:
    """Return the exact way and the engine's from one version to another; kept for the next task in the same process.

    As in `from_avro`, a column is read as the date or the text that its version declares.
    """
    was, now = parse_schema(writer), parse_schema(reader)
    program = pair_program(was, now, reinterpret=True)
    # Payloads of the reader's own schema are written as well.
    return translator(was, now, reinterpret=True), Translator(replace(program, is_same=False))


def fill_older_values(columns: list[pa.Array], fields: Sequence[Mapping[str, Any]]) -> list[pa.Array]:
    """Return the columns of rows, the newer ones with the values of the older ones where exact.

    `fields` are the fields of the rows' record as JSON values, one for each column. The rules are those of
    `cdcavro.table.older_fields`.
    """
    places = {field["name"]: i for i, field in enumerate(fields)}
    types = {field["name"]: avro_of(dict(field)) for field in fields}
    found = list(columns)
    for name, older in heirs((field["name"], field) for field in fields).items():
        for old in older:
            if is_fillable(types[old], types[name]):
                at = places[name]
                found[at] = _fill(found[at], columns[places[old]], types[old], types[name])
    return found


def _fill(newer: pa.Array, older: pa.Array, old: Any, new: Any) -> pa.Array:
    wanted = pc.and_(newer.is_null(), older.is_valid())
    if not pc.any(wanted).as_py():
        return newer
    values = [filled_value(value, old, new) for value in older.filter(wanted).to_pylist()]
    return pc.replace_with_mask(newer, wanted, pa.array(values, newer.type))
