"""Layout of a schema's data in Arrow: the types of its columns, and the program by which the engine fills them."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from cdcavro.avro.binary import MAX_COUNT, MAX_WEIGHTLESS
from cdcavro.avro.types import (
    Array,
    Enum,
    Fixed,
    Logical,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    check_expansion,
    has_bytes,
    logical_type,
    value_range,
)
from cdcavro.engine.column_program import (
    BITS,
    BOOLEAN,
    BYTES,
    CELLS,
    DECIMAL,
    ENDS,
    INT,
    LIST,
    LONG,
    MAP,
    NO_CELLS,
    NONE,
    NOTHING,
    OPTION,
    RECORD,
    ROWS,
    SYMBOL,
    TAKEN,
    TEXT,
    UNION,
    WIDTH,
    ColumnProgram,
)
from cdcavro.engine.payloads import MAX_BYTES
from cdcavro.errors import SchemaError
from cdcavro.table.older_fields import KEY_PART
from cdcavro.table.table_schema import KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdcavro.avro.schema import Schema
    from cdcavro.table.table_schema import TableSchema

# Arrow has decimals of 16 bytes, which have at most 38 digits, and of 32 bytes, which have at most 76.
_FEW, _MOST = 38, 76
_UTC: Final = "UTC"
_TYPES: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", _UTC),
    "timestamp-micros": pa.timestamp("us", _UTC),
    "timestamp-nanos": pa.timestamp("ns", _UTC),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}
# The items of all arrays and maps in a batch may take 32 MiB, and 64 bytes for each byte of its payloads. A bound is
# needed: a null, which is one byte in a payload, has a cell in each column of an item.
MAX_ROOM: Final = 32 << 20
ROOM_PER_BYTE: Final = 64
# The cells of rows, in columns that any row fills, may take 64 MiB, and as much for each byte: in a wide table, an
# image that is null is one byte of a payload, and a cell in each of its columns.
MAX_ROWS_ROOM: Final = 64 << 20
_SIZES: Final = {"float": 4, "double": 8}
_WHOLE: Final = {"int": (INT, range(-(2**31), 2**31)), "long": (LONG, range(-(2**63), 2**63))}


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """The layout of a column of Arrow's, or of a part of one.

    Fields:

    * `type` (`pyarrow.DataType`)
    * `column` (int), its number in the program, `NONE` if it has no buffers
    * `parts` (tuple of `ColumnLayout`), of its fields, items or values; of a union of several branches, one for each
      that is not null
    * `room` (int), how many bytes the cells of an item take, if it is a list or a map
    """

    type: pa.DataType
    column: int
    parts: tuple[ColumnLayout, ...] = ()
    room: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The layout of a record's data: its `root` (`ColumnLayout`), a struct, and the `program` (`ColumnProgram`)."""

    root: ColumnLayout
    program: ColumnProgram


def layout_of(schema: Schema, names: Mapping[str, Mapping[str, str]]) -> Layout:
    """Return the layout of a record's data.

    `names` has, by the full name of a record, what its fields are called instead. Raises `SchemaError` for what Arrow
    cannot hold: a record that contains itself, a decimal of more than 76 digits, an array of what has no bytes, a
    union without branches.
    """
    check_expansion(schema.root, "Arrow")
    assembly = _Assembly(names)
    number, part = assembly.node(schema.root, ROWS, "$", is_root=True)
    if not pa.types.is_struct(part.type):
        raise SchemaError("$", "expected a record, whose fields are columns")
    return Layout(part, assembly.program(number))


def row_names(schema: TableSchema, part: str) -> dict[str, dict[str, str]]:
    """Return the names of the fields of a table's rows or keys in a part of a version, as `layout_of` takes them."""
    space = schema.record.get("namespace", "")
    record = KEY if part == KEY_PART else schema.record["name"]
    return {f"{space}.{record}".lstrip("."): _unique_names(schema)}


def _unique_names(schema: TableSchema) -> dict[str, str]:
    """Return the name of each column, by its field: the true one, or that of its field where it would stand twice.

    The fields `unparsed` and `absent` keep their names: a column of such a name gets its field's. An older column,
    whose name is shown with a version, gives way to one that truly has that name.
    """
    columns = {column.field: column for column in schema.all_columns}
    others = [field["name"] for field in schema.record["fields"] if field["name"] not in columns]
    eldest = sorted(columns.values(), key=lambda column: column.until is not None)
    taken, names = set(others), dict[str, str]()
    for column in eldest:
        name = column.shown if column.shown not in taken else column.field
        while name in taken:
            name += "_"
        names[column.field] = name
        taken.add(name)
    return names


class _Assembly:
    """Walks through types and collects the parts of a program; a record that is used twice has columns for each use."""

    def __init__(self, names: Mapping[str, Mapping[str, str]]) -> None:
        self._names = names
        self._code, self._indexes = array("i"), array("i")
        self._limits, self._texts, self._columns = array("q"), bytearray(), array("i")
        self._weights: dict[str, bool] = {}
        # Of the items of a column, by its number, how many bytes the cells of one take.
        self._rooms: Counter[int] = Counter()

    def program(self, root: int) -> ColumnProgram:
        parts = (self._code, self._indexes, self._limits, bytes(self._texts), self._columns)
        return ColumnProgram(
            root, *parts, (MAX_COUNT, MAX_WEIGHTLESS, MAX_BYTES, MAX_ROOM, ROOM_PER_BYTE, MAX_ROWS_ROOM)
        )

    def node(self, declared: Type, space: int, where: str, *, is_root: bool = False) -> tuple[int, ColumnLayout]:
        """Return the number of the instruction that reads data of a type into cells, and the part that it fills.

        `space` is the column of the list whose items they are, or `ROWS`.
        """
        match declared:
            case Primitive() | Fixed():
                return self._datum(declared, space, where)
            case Enum(symbols=symbols):
                return self._symbol(symbols, space)
            case Array(items):
                return self._list(items, space, f"{where}[]")
            case Map(values):
                column = self._column(ENDS, 4, space)
                names = self._column(ENDS, 4, column)
                number, part = self.node(values, column, f"{where}{{}}")
                parts, room = (ColumnLayout(pa.string(), names), part), self._room(column)
                pairs = ColumnLayout(pa.map_(pa.string(), part.type), column, parts, room)
                return self._add(MAP, number, 0, names, column, room), pairs
            case Union(branches):
                return self._union(branches, space, where)
            case Record(name, fields=fields):
                column = NONE if is_root else self._column(NO_CELLS, 0, space)
                made = [self.node(field.type, space, f"{where}.{field.name}") for field in fields]
                shown = self._names.get(name, {})
                called = [shown.get(field.name, field.name) for field in fields]
                first = self._add_indexes([number for number, _ in made])
                return self._add(RECORD, 0, 0, 0, column, first, len(made)), _struct(called, made, column)
        raise SchemaError(where, f"{type(declared).__name__} is no type")

    def _add(self, *operands: int) -> int:
        number = len(self._code) // WIDTH
        self._code.extend((*operands, *[0] * (WIDTH - len(operands))))
        return number

    def _column(self, cells: int, width: int, space: int, most: int = 0) -> int:
        """Return the number of a new column; `most` is how many more bytes a cell may have for one byte of data."""
        self._columns.extend((cells, width, space))
        self._rooms[space] += max(width, 1) + most
        return len(self._columns) // 3 - 1

    def _add_indexes(self, numbers: list[int]) -> int:
        self._indexes.extend(numbers)
        return len(self._indexes) - len(numbers)

    def _limit(self, values: range) -> int:
        self._limits.extend((values.start, values.stop - 1))
        return len(self._limits) // 2 - 1

    def _text(self, text: bytes) -> int:
        self._texts += text
        return len(self._texts) - len(text)

    def _list(self, items: Type, space: int, where: str) -> tuple[int, ColumnLayout]:
        if not has_bytes(items, self._weights):
            # A payload of a few bytes may have 100,000 of them.
            raise SchemaError(where, "its items have no bytes, of which Arrow would make much of few payloads")
        column = self._column(ENDS, 4, space)
        number, part = self.node(items, column, where)
        room = self._room(column)
        return self._add(LIST, number, 0, 0, column, room), ColumnLayout(pa.list_(part.type), column, (part,), room)

    def _room(self, column: int) -> int:
        return min(self._rooms[column], MAX_BYTES)

    def _datum(self, declared: Primitive | Fixed, space: int, where: str) -> tuple[int, ColumnLayout]:
        logical, values = logical_type(declared), value_range(declared)
        if logical is not None and logical.name == "decimal":
            return self._decimal(declared, logical, values, space, where)
        if isinstance(declared, Fixed):
            column = self._column(ENDS, 4, space)
            return self._add(BYTES, 0, 0, declared.size, column), ColumnLayout(pa.binary(), column)
        name = declared.name
        if name == "null":
            return self._add(NOTHING), ColumnLayout(pa.null(), NONE)
        if name in ("bytes", "string"):
            column, is_text = self._column(ENDS, 4, space), name == "string"
            part = ColumnLayout(pa.string() if is_text else pa.binary(), column)
            return self._add(TEXT if is_text else BYTES, 0, 0, NONE, column), part
        kind = _TYPES.get(logical.name if logical else name, _TYPES[name])
        if name == "boolean":
            column = self._column(BITS, 0, space)
            return self._add(BOOLEAN, 0, 0, 0, column), ColumnLayout(kind, column)
        column = self._column(CELLS, kind.bit_width // 8, space)
        if name in _SIZES:
            return self._add(TAKEN, 0, 0, 0, column), ColumnLayout(kind, column)
        instruction, whole = _WHOLE[name]
        limits = whole if values is None else range(max(whole.start, values.start), min(whole.stop, values.stop))
        return self._add(instruction, self._limit(limits), 0, 0, column), ColumnLayout(kind, column)

    def _decimal(
        self, declared: Primitive | Fixed, logical: Logical, values: range | None, space: int, where: str
    ) -> tuple[int, ColumnLayout]:
        if values is None or logical.precision > _MOST:
            raise SchemaError(where, f"Arrow's decimals have at most {_MOST} digits, and {logical} has more")
        most = values.stop - 1
        length = most.bit_length() // 8 + 1
        bounds = self._text(most.to_bytes(length, "big") + (-most).to_bytes(length, "big", signed=True))
        kind = (pa.decimal128 if logical.precision <= _FEW else pa.decimal256)(logical.precision, logical.scale)
        column = self._column(CELLS, kind.bit_width // 8, space)
        size = declared.size if isinstance(declared, Fixed) else NONE
        return self._add(DECIMAL, bounds, length, size, column), ColumnLayout(kind, column)

    def _symbol(self, symbols: tuple[str, ...], space: int) -> tuple[int, ColumnLayout]:
        places: list[int] = []
        for symbol in symbols:
            raw = symbol.encode()
            places += (self._text(raw), len(raw))
        column = self._column(ENDS, 4, space, max(places[1::2], default=0))
        return self._add(SYMBOL, 0, 0, 0, column, self._add_indexes(places), len(symbols)), ColumnLayout(
            pa.string(), column
        )

    def _union(self, branches: tuple[Type, ...], space: int, where: str) -> tuple[int, ColumnLayout]:
        if not branches:
            raise SchemaError(where, "a union without branches has no data")
        others = [at for at, branch in enumerate(branches) if branch != Primitive("null")]
        null = next((at for at in range(len(branches)) if at not in others), NONE)
        if len(others) <= 1:
            number, part = self.node(branches[others[0] if others else null], space, where)
            return self._add(OPTION, number, len(branches), null), part
        column = self._column(NO_CELLS, 0, space)
        nodes = {at: self.node(branches[at], space, where) for at in others}
        first = self._add_indexes([nodes[at][0] if at in nodes else NONE for at in range(len(branches))])
        names = [f"member{i}" for i in range(len(others))]
        number = self._add(UNION, 0, 0, 0, column, first, len(branches))
        return number, _struct(names, list(nodes.values()), column)


def _struct(names: list[str], made: list[tuple[int, ColumnLayout]], column: int) -> ColumnLayout:
    parts = tuple(part for _, part in made)
    kind = pa.struct([pa.field(name, part.type) for name, part in zip(names, parts, strict=True)])
    return ColumnLayout(kind, column, parts)
