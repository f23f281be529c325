"""Row payloads made from an Arrow batch: what `to_arrow` does, the other way.

The cells of each column are encoded one by one and joined to rows. A batch may have other types than the layout of the
version, as long as they have the same values: its arrays are cast, exactly or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.layout import layout_of, row_names
from cdcavro.avro.binary import write_bytes, write_long
from cdcavro.avro.defaults import encoded_defaults
from cdcavro.avro.types import Array, Enum, Fixed, Map, Primitive, Record, Type, Union
from cdcavro.engine.payloads import check
from cdcavro.errors import MessageError, MisfitError, SchemaError, shown
from cdcavro.exact.jsontext import ABSENT, escape
from cdcavro.exact.numbers import minimal_bytes
from cdcavro.table.older_fields import ENVELOPE, part_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cdcavro.arrow.layout import ColumnLayout
    from cdcavro.table.table_schema import TableSchema

    Cells = list[bytes | None]

_RAW: Final[dict[str, Callable[[bytearray, Any], None]]] = {
    "boolean": lambda out, value: out.append(int(value)),
    "int": write_long,
    "long": write_long,
    "bytes": write_bytes,
    "string": lambda out, value: write_bytes(out, value.encode()),
}


def from_arrow(batch: pa.RecordBatch | pa.Table, schema: TableSchema, *, part: str = ENVELOPE) -> pa.Array:
    """Return the rows of an Arrow batch or table as payloads of a table's version, in a binary array.

    The batch has the columns that `to_arrow` makes for that version, in any order, with the same types or others that
    hold the same values: 64 bits for 32, nanoseconds for microseconds, a dictionary of texts. A column with a default
    may be missing. Raises `MisfitError`, whose path names the column, for a column that is missing or unknown, and for
    a type or a value that cannot be the version's exactly; `ValueError` for the key of a version without one;
    `TypeError` for what is neither a batch nor a table, such as an array of structs.
    """
    declared = part_of(schema, part)
    batch = _as_one_batch(batch)
    names = row_names(schema, part)
    layout = layout_of(declared, names)
    row = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
    rows = _Encoder(names).cells(row, declared.root, layout.root, "")
    for i, raw in enumerate(rows):
        try:
            check(raw or b"", declared)
        except MessageError as error:
            raise MisfitError(error.expected, error.got, pointer=f"/{i}{error.pointer}") from error
    return pa.array(rows, pa.binary())


def _as_one_batch(batch: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    """Return a batch, or all batches of a table as one, once its buffers hold what it says. Raises `MisfitError`."""
    if not isinstance(batch, (pa.RecordBatch, pa.Table)):
        raise TypeError(f"rows are a RecordBatch or a Table of pyarrow's, not {type(batch).__name__}")
    try:
        batch.validate(full=True)
        if isinstance(batch, pa.RecordBatch):
            return batch
        columns = [column.combine_chunks() for column in batch.columns]
    except pa.ArrowInvalid as error:
        raise MisfitError("a valid batch", str(error).splitlines()[0]) from error
    if any(isinstance(column, pa.ChunkedArray) for column in columns):
        raise MisfitError("at most 2 GiB in a column", "more")
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


class _Encoder:
    """Encodes columns, each cell by itself; `names` are as in `layout_of`."""

    def __init__(self, names: Mapping[str, Mapping[str, str]]) -> None:
        self._names = names

    def cells(self, array: pa.Array, declared: Type, part: ColumnLayout, pointer: str) -> Cells:
        """Return the cells of an array as data of a type, None for null. Raises `MisfitError`."""
        match declared:
            case Union(branches):
                return self._union(array, branches, part, pointer)
            case Record():
                return self._records(array, declared, part, pointer)
            case Array() | Map():
                return self._collections(array, declared, part, pointer)
            case Primitive("null"):
                return [b""] * len(cast_exactly(array, part.type, pointer))
            case Primitive() | Enum() | Fixed():
                return _encode_data(cast_exactly(array, part.type, pointer), declared, pointer)
        raise SchemaError("$", f"{type(declared).__name__} is no type")

    def _union(self, array: pa.Array, branches: tuple[Type, ...], part: ColumnLayout, pointer: str) -> Cells:
        others = [at for at, branch in enumerate(branches) if branch != Primitive("null")]
        null = next((_encoded_long(at) for at in range(len(branches)) if at not in others), None)
        if not others:
            cast_exactly(array, part.type, pointer)
            return [null] * len(array)
        if len(others) == 1:
            index = _encoded_long(others[0])
            cells = self.cells(array, branches[others[0]], part, pointer)
            return [null if cell is None else index + cell for cell in cells]
        members = _columns_by_name(array, part.type, pointer)
        columns = [
            self.cells(members[field.name], branches[at], inner, f"{pointer}/{field.name}")
            for at, inner, field in zip(others, part.parts, part.type, strict=True)
        ]
        return [
            _choose_member(row, others, null, pointer) if there else null
            for row, there in zip(zip(*columns, strict=True), array.is_valid().to_pylist(), strict=True)
        ]

    def _records(self, array: pa.Array, declared: Record, part: ColumnLayout, pointer: str) -> Cells:
        names = self._names.get(declared.name, {})
        called = {names.get(field.name, field.name): i for i, field in enumerate(declared.fields)}
        columns = _columns_by_name(
            array,
            part.type,
            pointer,
            missing=[name for name, i in called.items() if declared.fields[i].default is not ABSENT],
        )
        lacking = tuple(declared.fields[i] for name, i in called.items() if name not in columns)
        defaults = encoded_defaults(declared, lacking)
        there = array.is_valid().to_pylist()
        made: list[Sequence[bytes | None]] = []
        for (name, i), inner in zip(called.items(), part.parts, strict=True):
            below = f"{pointer}/{escape(name)}"
            if name not in columns:
                made.append([defaults[i]] * len(array))
                continue
            cells = self.cells(columns[name], declared.fields[i].type, inner, below)
            if any(cell is None and one for cell, one in zip(cells, there, strict=True)):
                raise MisfitError("a value in every row", "null", pointer=below)
            made.append(cells)
        rows = zip(*made, strict=True) if made else [()] * len(array)
        return [b"".join(row) if one else None for row, one in zip(rows, there, strict=True)]

    def _collections(self, array: pa.Array, declared: Array | Map, part: ColumnLayout, pointer: str) -> Cells:
        listed = _list_of_entries(array) if pa.types.is_map(array.type) else array
        kind = listed.type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
            raise MisfitError(str(part.type), str(kind), pointer=pointer)
        lengths, items = pc.list_value_length(listed).to_pylist(), pc.list_flatten(listed)
        if isinstance(declared, Array):
            cells = self.cells(items, declared.items, part.parts[0], pointer)
        else:
            cells = self._entries(items, declared, part, pointer)
        if None in cells:
            raise MisfitError("items that are not null", "null", pointer=pointer)
        found: Cells = []
        at = 0
        for length in lengths:
            some = cells[at : at + (length or 0)]
            at += len(some)
            joined = _encoded_long(len(some)) + b"".join(cell or b"" for cell in some) + b"\0" if some else b"\0"
            found.append(None if length is None else joined)
        return found

    def _entries(self, items: pa.Array, declared: Map, part: ColumnLayout, pointer: str) -> Cells:
        if not pa.types.is_struct(items.type) or items.type.num_fields != 2:  # noqa: PLR2004  a name and a value
            raise MisfitError(str(part.type), f"a list of {items.type}", pointer=pointer)
        names, values = items.flatten()
        texts = self.cells(names, Primitive("string"), part.parts[0], pointer)
        data = self.cells(values, declared.values, part.parts[1], pointer)
        return [
            None if name is None or value is None else name + value for name, value in zip(texts, data, strict=True)
        ]


def _columns_by_name(
    array: pa.Array, wanted: pa.DataType, pointer: str, *, missing: Sequence[str] = ()
) -> dict[str, pa.Array]:
    """Return the fields of structs by name: all that a type has, except `missing` ones, and no others."""
    if not pa.types.is_struct(array.type):
        if pa.types.is_null(array.type):
            array = array.cast(wanted)
        else:
            raise MisfitError(str(wanted), str(array.type), pointer=pointer)
    columns: dict[str, pa.Array] = {}
    known = {field.name for field in wanted}
    for field, column in zip(array.type, array.flatten(), strict=True):
        if field.name in columns or field.name not in known:
            got = "another of that name" if field.name in columns else "one that is none of them"
            raise MisfitError("columns of the version", got, pointer=f"{pointer}/{escape(field.name)}")
        columns[field.name] = column
    for name in known - columns.keys() - set(missing):
        raise MisfitError("a column", "none", pointer=f"{pointer}/{escape(name)}")
    return columns


def _list_of_entries(array: pa.Array) -> pa.Array:
    """Return maps as lists of structs."""
    entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
    buffers = array.buffers()[:2]
    return pa.Array.from_buffers(pa.list_(entries.type), len(array), buffers, offset=array.offset, children=[entries])


def _choose_member(row: tuple[bytes | None, ...], others: list[int], null: bytes | None, pointer: str) -> bytes | None:
    """Return the one member of a union that is there."""
    there = [(at, cell) for at, cell in zip(others, row, strict=True) if cell is not None]
    if not there and null is not None:
        return null
    if len(there) != 1:
        raise MisfitError("one member that is not null", str(len(there)), pointer=pointer)
    ((at, cell),) = there
    return _encoded_long(at) + cell


def _encode_data(array: pa.Array, declared: Type, pointer: str) -> Cells:
    """Return the cells of an array, whose type is that of the data, as data."""
    if pa.types.is_floating(array.type):
        size = array.type.bit_width // 8
        raw = array.view(pa.int32() if size == 4 else pa.int64()).to_pylist()  # noqa: PLR2004  bytes
        # Through Python's floats, NaN would lose its bits.
        return [None if value is None else value.to_bytes(size, "little", signed=True) for value in raw]
    kind, found = array.type, []
    write = _writer(declared, kind, pointer)
    if pa.types.is_temporal(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())  # noqa: PLR2004  bits
    for value in array.to_pylist():
        out = bytearray()
        if value is not None:
            write(out, value)
        found.append(None if value is None else bytes(out))
    return found


def _writer(declared: Type, kind: pa.DataType, pointer: str) -> Callable[[bytearray, Any], None]:
    match declared:
        case Enum(symbols=symbols):
            return lambda out, value: write_long(out, _symbol_index(symbols, value, pointer))
        case Fixed(size=size):
            return lambda out, value: out.extend(_fixed_bytes(value, size, kind, pointer))
        case Primitive("bytes") if pa.types.is_decimal(kind):
            return lambda out, value: write_bytes(out, minimal_bytes(_unscaled(value)))
        case Primitive(name):
            return _RAW[name]
    raise SchemaError("$", f"{type(declared).__name__} is no type")


def _unscaled(value: Any) -> int:
    _, digits, _ = value.as_tuple()
    unscaled = int("".join(map(str, digits)))
    return -unscaled if value.is_signed() else unscaled


def _fixed_bytes(value: Any, size: int, kind: pa.DataType, pointer: str) -> bytes:
    if pa.types.is_decimal(kind):
        return _unscaled(value).to_bytes(size, "big", signed=True)
    if len(value) != size:
        raise MisfitError(f"{size} bytes", str(len(value)), pointer=pointer)
    return bytes(value)


def _symbol_index(symbols: tuple[str, ...], value: str, pointer: str) -> int:
    if value not in symbols:
        raise MisfitError(f"one of {', '.join(symbols)}", shown(value), pointer=pointer)
    return symbols.index(value)


def _encoded_long(value: int) -> bytes:
    out = bytearray()
    write_long(out, value)
    return bytes(out)


# Only within a family is a value the same value in another type.
_FAMILIES: Final[tuple[Callable[[pa.DataType], bool], ...]] = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_time,
    lambda kind: pa.types.is_timestamp(kind) and kind.tz is None,
    lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None,
    lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view",
    lambda kind: (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or str(kind) == "binary_view"
    ),
)


def cast_exactly(array: pa.Array, wanted: pa.DataType, pointer: str) -> pa.Array:
    """Return an array of values in a type that has them exactly; `pointer` says where it stands in the batch.

    A value may be in a wider or in a narrower type of the same kind. Raises `MisfitError`.
    """
    if pa.types.is_dictionary(array.type):
        try:
            array = array.dictionary_decode()
        except (pa.ArrowInvalid, pa.ArrowIndexError) as error:
            raise MisfitError(str(wanted), "more than 2 GiB of a dictionary's values", pointer=pointer) from error
    if array.type == wanted:
        return array
    kind = array.type
    is_narrower = pa.types.is_floating(kind) and pa.types.is_floating(wanted) and kind.bit_width > wanted.bit_width
    is_same_family = any(holds(kind) and holds(wanted) for holds in _FAMILIES)
    if not pa.types.is_null(kind) and (not is_same_family or is_narrower):
        raise MisfitError(str(wanted), str(kind), pointer=pointer)
    try:
        return array.cast(wanted)
    except pa.ArrowInvalid as error:
        raise MisfitError(f"{wanted}, exactly", f"{kind}: {str(error).splitlines()[0]}", pointer=pointer) from error
