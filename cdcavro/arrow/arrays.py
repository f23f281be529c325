"""Arrays of Arrow's: from cells that the engine has filled, or the exact way, from values that Python has read."""

from __future__ import annotations

import os
import sys
from array import array
from decimal import Context, Decimal
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.layout import MAX_ROOM, MAX_ROWS_ROOM, ROOM_PER_BYTE
from cdcavro.avro.binary import READ_PRIMITIVE
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union, has_bytes, logical_type
from cdcavro.engine.column_program import COLUMN, NONE, ROWS
from cdcavro.engine.payloads import MAX_BYTES, Slices, pack
from cdcavro.errors import JobError, PayloadError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.arrow.layout import ColumnLayout
    from cdcavro.avro.binary import Decoder
    from cdcavro.engine.payloads import Batch
    from cdcavro.errors import MessageError

    Read = Callable[[Decoder], Any]
    # As `machine.Filler.fill` returns them.
    Filled = Sequence[tuple[Any, Any, Any, int, int]]

_WIDE: Final = Context(prec=100)


class _NoPandas:
    """Finds no pandas."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


def leave_pandas() -> None:
    """Keep pyarrow from importing pandas, where that is installed, for the first value that it converts.

    It looks for it once in a process, and again only for what needs it. Call it before threads start, which would not
    find pandas either at this moment.
    """
    finders: list[Any] = sys.meta_path
    finders.insert(0, _NoPandas)
    try:
        pa.scalar(0)
    finally:
        finders.remove(_NoPandas)


def take_pool() -> None:
    """Let Arrow take memory by jemalloc, if pyarrow has it and `ARROW_DEFAULT_MEMORY_POOL` names nothing else.

    Columns of some mebibytes come and go all the time: it gives them the same pages again, which Linux need not clear.
    """
    if "ARROW_DEFAULT_MEMORY_POOL" not in os.environ and "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())


def places(count: int) -> pa.Array:
    """Return the numbers from 0 on, so many."""
    return pc.indices_nonzero(pa.repeat(True, count))  # noqa: FBT003  the value that is repeated


def blank(values: pa.Array | pa.ChunkedArray, is_blank: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return values, and null for each of which `is_blank` is true or null.

    Of a slice of binary values and a null scalar, `if_else` of Arrow before 24 makes offsets that lead out of its bytes.

    >>> blank(pa.array([b"a", b"b", b"c"]).slice(1), pa.array([True, False])).to_pylist()
    [None, b'c']
    """
    return pc.if_else(is_blank, pa.nulls(len(values), values.type), values)


def value_reader(declared: Type) -> Read:
    """Return a function that reads a datum of a type, which has been checked to be one.

    Dates, times and instants are integers, records are tuples, maps lists of pairs, unions of several branches tuples
    with a place for each branch that is not null.
    """
    match declared:
        case Primitive() | Fixed():
            return _datum_reader(declared)
        case Enum(symbols=symbols):
            return lambda source: symbols[source.read_index(len(symbols), "a symbol")]
        case Array(items):
            read, weightless = value_reader(items), not has_bytes(items, {})
            return lambda source: [read(source) for count in source.blocks(weightless) for _ in range(count)]
        case Map(values):
            read = value_reader(values)
            return lambda source: [
                (source.read_string(), read(source)) for count in source.blocks() for _ in range(count)
            ]
        case Union(branches):
            return _union_reader(branches)
        case Record(fields=fields):
            reads = [value_reader(field.type) for field in fields]
            return lambda source: tuple([read(source) for read in reads])
    raise SchemaError("$", f"{type(declared).__name__} is no type")


def _datum_reader(declared: Primitive | Fixed) -> Read:
    read: Callable[[Decoder], Any] = (
        READ_PRIMITIVE[declared.name] if isinstance(declared, Primitive) else _fixed_reader(declared)
    )
    logical = logical_type(declared)
    if logical is None or logical.name != "decimal":
        return read
    scale = -logical.scale
    return lambda source: Decimal(int.from_bytes(read(source), "big", signed=True)).scaleb(scale, _WIDE)


def _fixed_reader(declared: Fixed) -> Read:
    return lambda source: source.take(declared.size)


def _union_reader(branches: tuple[Type, ...]) -> Read:
    reads = [value_reader(branch) for branch in branches]
    others = [at for at, branch in enumerate(branches) if branch != Primitive("null")]
    if len(others) <= 1:
        return lambda source: reads[source.read_index(len(reads), "a branch")](source)
    places = {at: place for place, at in enumerate(others)}

    def read(source: Decoder) -> tuple[Any, ...] | None:
        at = source.read_index(len(reads), "a branch")
        value = reads[at](source)
        if at not in places:
            return None
        members = [None] * len(others)
        members[places[at]] = value
        return tuple(members)

    return read


def zeros(count: int) -> pa.Buffer:
    """Return zeros for `count` cells and their validity; the largest cell, a decimal of 76 digits, has 32 bytes."""
    return pa.py_buffer(bytes(32 * count + 64))


def array_of_cells(part: ColumnLayout, columns: Filled, count: int, zero_buffer: pa.Buffer) -> pa.Array:
    """Return the array of a part, from the columns that the engine has filled.

    `count` is the length of an array without buffers; `zero_buffer` has the `zeros` of all rows.
    """
    if part.column == NONE:
        return pa.nulls(count)
    validity, cells, data, size, nulls = columns[part.column]
    if validity is None and nulls == size:
        return _null_array(part, size, zero_buffer)
    validity = None if validity is None else pa.py_buffer(validity)
    if pa.types.is_struct(part.type):
        children = [array_of_cells(child, columns, size, zero_buffer) for child in part.parts]
        return pa.Array.from_buffers(part.type, size, [validity], nulls, children=children)
    buffers = [validity, pa.py_buffer(cells or b"")]
    if part.parts:
        items = array("i", bytes(memoryview(cells)[-4:]))[0]
        children = [array_of_cells(child, columns, items, zero_buffer) for child in part.parts]
        return pa.Array.from_buffers(part.type, size, buffers, nulls, children=[_items(part, children, items)])
    if pa.types.is_string(part.type) or pa.types.is_binary(part.type):
        buffers.append(pa.py_buffer(data or b""))
    return pa.Array.from_buffers(part.type, size, buffers, nulls)


def _null_array(part: ColumnLayout, count: int, zero_buffer: pa.Buffer) -> pa.Array:
    """Return the array of a part that is null in all rows."""
    if part.column == NONE:
        return pa.nulls(count)
    is_struct = pa.types.is_struct(part.type)
    children = [_null_array(child, count if is_struct else 0, zero_buffer) for child in part.parts]
    buffers = [zero_buffer] if is_struct else [zero_buffer, zero_buffer]
    if pa.types.is_string(part.type) or pa.types.is_binary(part.type):
        buffers.append(pa.py_buffer(b""))
    children = [_items(part, children, 0)] if children and not is_struct else children
    return pa.Array.from_buffers(part.type, count, buffers, count, children=children)


class Room:
    """Room for the rows of a batch, and for the items of all its arrays and maps, by the bytes of its payloads.

    `columns` are those of the batch's program.
    """

    def __init__(self, size: int, columns: Sequence[int], rows: int) -> None:
        self._left = MAX_ROOM + ROOM_PER_BYTE * size
        self._rows_left = MAX_ROWS_ROOM + ROOM_PER_BYTE * size
        self._columns = columns
        self.zero_buffer = zeros(rows)

    def take(self, size: int) -> None:
        """Take some of the room for items. Raises `PayloadError` if too little is left."""
        self._left -= size
        if self._left < 0:
            most = f"{MAX_ROOM >> 20} MiB and {ROOM_PER_BYTE} times the payloads"
            raise PayloadError(f"items of arrays and maps that take at most {most}", "more")

    def has_rows(self, part: ColumnLayout) -> bool:
        """Return whether a part has a cell for each row, not for each item of an array or a map."""
        return part.column != NONE and self._columns[COLUMN * part.column + 2] == ROWS

    def take_rows(self, part: ColumnLayout, count: int) -> None:
        """Take the room for the cells of rows in a part's column. Raises `RowsError` if too little is left."""
        self._rows_left -= count * max(self._columns[COLUMN * part.column + 1], 1)
        if self._rows_left < 0:
            raise RowsError


class RowsError(PayloadError):
    """Rows whose cells take more than the bytes of their payloads allow."""

    def __init__(self) -> None:
        most = f"{MAX_ROWS_ROOM >> 20} MiB and {ROOM_PER_BYTE} times the payloads"
        super().__init__(f"rows whose columns take at most {most} in a batch", "more")


def array_of_values(part: ColumnLayout, values: list[Any], room: Room) -> pa.Array:
    """Return the array of a part, from values as a `value_reader` reads them.

    Raises `pyarrow.ArrowInvalid` or `OverflowError` for more than one array holds, and `PayloadError` for want of room.
    """
    if room.has_rows(part):
        if all(value is None for value in values):
            return _null_array(part, len(values), room.zero_buffer)
        room.take_rows(part, len(values))
    is_struct = pa.types.is_struct(part.type)
    if not part.parts and not is_struct:
        leaf = pa.array(values, part.type)
        if isinstance(leaf, pa.ChunkedArray):
            raise OverflowError("an array of more than 2 GiB")
        return leaf
    nulls = values.count(None)
    validity = pa.array([value is not None for value in values], pa.bool_()).buffers()[1] if nulls else None
    if is_struct:
        columns = ([None if value is None else value[i] for value in values] for i in range(len(part.parts)))
        children = [array_of_values(child, column, room) for child, column in zip(part.parts, columns, strict=True)]
        return pa.Array.from_buffers(part.type, len(values), [validity], nulls, children=children)
    items = list(chain.from_iterable(value for value in values if value is not None))
    room.take(len(items) * part.room)
    ends = array("i", [0, *accumulate(0 if value is None else len(value) for value in values)])
    is_map = pa.types.is_map(part.type)
    below = [[item[i] for item in items] for i in range(2)] if is_map else [items]
    children = [array_of_values(child, column, room) for child, column in zip(part.parts, below, strict=True)]
    buffers = [validity, pa.py_buffer(ends)]
    return pa.Array.from_buffers(part.type, len(values), buffers, nulls, children=[_items(part, children, len(items))])


def _items(part: ColumnLayout, children: list[pa.Array], count: int) -> pa.Array:
    """Return what a list is made of: its items, or the entries of a map."""
    if not pa.types.is_map(part.type):
        return children[0]
    entries = pa.struct([part.type.key_field, part.type.item_field])
    return pa.Array.from_buffers(entries, count, [None], 0, children=children)


def slices_of(values: pa.Array) -> Slices:
    """Return the values of a string or binary array as the engine reads them.

    Raises `TypeError` for an array of any other type; `pyarrow.ArrowInvalid` for one of more than 2 GiB.
    """
    plain = values if values.type in (pa.string(), pa.binary()) else _as_binary(values)
    validity, offsets, data = plain.buffers()
    # Arrow may leave out the offsets of an empty array.
    return Slices(data or b"", offsets or bytes(4), validity, plain.offset if offsets else 0, len(plain))


def _as_binary(values: pa.Array) -> pa.Array:
    try:
        return values.cast(pa.binary())
    except pa.ArrowNotImplementedError as error:
        raise TypeError(f"a column is of text or bytes, not of {values.type}") from error


def convert_values(
    values: pa.Array,
    convert: Callable[[bytes], bytes],
    caught: Callable[[int, MessageError], object] | None = None,
    most: int = MAX_BYTES,
    batch: Batch | None = None,
) -> pa.Array:
    """Return a binary array of the converted values of a string or binary array; null stays null.

    Values go from buffer to buffer. `caught` and `batch` are as in `payloads.pack`. Raises `MessageError` unless
    `caught` takes it; `JobError` for results of more than `most` bytes; `TypeError` for an array of any
    other type.
    """
    try:
        packed = pack(slices_of(values), convert, caught, most, batch)
    except (OverflowError, pa.ArrowInvalid) as error:
        bound = f"the values of one Arrow batch come to more than {most} bytes"
        raise JobError(
            f"{bound}: take fewer at a time (on Spark, spark.sql.execution.arrow.maxRecordsPerBatch)"
        ) from error
    parts = [packed.validity if packed.nulls else None, packed.offsets, packed.data]
    buffers = [None if part is None else pa.py_buffer(part) for part in parts]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers, packed.nulls)
