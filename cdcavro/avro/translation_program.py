"""The program of a pair of schemas: what the engine does to translate a payload of one into one of the other.

It consists of flat arrays, which `str(program)` lists. It is made of the steps of `resolution.resolve`, as the
functions of `translation` are, and both give the same bytes. The engine leaves to `translation` whatever is unusual,
above all whatever is an error.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cdcavro.avro.binary import MAX_COUNT, MAX_LEVELS, MAX_WEIGHTLESS, too_nested, write_long
from cdcavro.avro.defaults import encoded_defaults
from cdcavro.avro.resolution import (
    ReadArray,
    ReadEnum,
    ReadFixed,
    ReadMap,
    ReadPrimitive,
    ReadRecord,
    ReadUnion,
    Step,
    resolve,
)
from cdcavro.avro.translation import MAX_TRANSLATED, branch_index, refused_guess, symbol_places
from cdcavro.avro.types import (
    Array,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Type,
    Union,
    has_bytes,
    is_nothing,
    logical_type,
    value_range,
    within_stack,
)
from cdcavro.errors import SchemaError

if TYPE_CHECKING:
    from cdcavro.avro.schema import Schema

# How many integers an instruction has, and a row of `actions`.
WIDTH: Final = 4
LEAVE, NOTHING, BOOLEAN, INTEGER, STRING, BYTES, TAKE, DECIMAL, ENUM = range(9)
TO_FLOAT, TO_DOUBLE, WIDEN, ARRAY, MAP, UNION, INTO, RECORD, REORDER = range(9, 18)
FIELD, SKIP, DEFAULT = range(3)
NONE: Final = -1
_OPERATIONS: Final = (
    ("leave",),
    ("nothing",),
    ("boolean",),
    ("integer", "limits"),
    ("string",),
    ("bytes",),
    ("take", "size"),
    ("decimal", "bounds", "length", "size"),
    ("enum", "first", "count"),
    ("to_float", "limits"),
    ("to_double", "limits"),
    ("widen",),
    ("array", "items", "weightless", "rewrites"),
    ("map", "values", "rewrites"),
    ("union", "first", "count"),
    ("into", "branch", "value"),
    ("record", "first", "count"),
    ("reorder", "first", "count", "places"),
)
_OWN_ROWS: Final = frozenset({"union", "enum", "record", "reorder"})
_WHOLE: Final = {"int": range(-(2**31), 2**31), "long": range(-(2**63), 2**63)}
_SIZES: Final = {"null": 0, "float": 4, "double": 8}
_PROMOTED: Final = {"float": TO_FLOAT, "double": TO_DOUBLE}


@dataclass(frozen=True, slots=True, eq=False)
class TranslationProgram:
    """The program of a pair of schemas, or of one schema whose payloads are checked."""

    # The number of the instruction to begin with.
    root: int
    # Whether payloads are the reader's as they are, and are only checked.
    is_same: bool
    # Instructions of `WIDTH` integers, one for each type that is read: what to do, then the operands.
    code: array[int]
    # Rows of `WIDTH` integers, one for each field of a record: what to do, the field's place in the reader's record,
    # and its instruction; for a default, where it starts in `texts` and its length.
    actions: array[int]
    # For each branch of a union, its instruction and its index in the reader's; for each symbol of an enum, its index.
    indexes: array[int]
    # Pairs of the least and the greatest integer.
    limits: array[int]
    # Defaults, and the bounds of decimals.
    texts: bytes
    # The most levels of data, items of a collection, items without bytes of a payload, and bytes of a translation.
    bounds: tuple[int, int, int, int]

    def __str__(self) -> str:
        lines = []
        for start in range(0, len(self.code), WIDTH):
            name, *operands = _OPERATIONS[self.code[start]]
            values = list(self.code[start + 1 : start + WIDTH])
            if name in _OWN_ROWS:
                lines += [f"{start // WIDTH} {name}", *self._rows(name, *values)]
                continue
            if "limits" in operands:
                least, most = self.limits[2 * values[0] : 2 * values[0] + 2]
                operands, values = ["least", "most"], [least, most]
            stated = "".join(f" {operand}={value}" for operand, value in zip(operands, values, strict=False))
            lines.append(f"{start // WIDTH} {name}{stated}")
        return "\n".join(lines)

    def _rows(self, name: str, first: int, count: int, _places: int) -> list[str]:
        if name == "union":
            return [f"    {self._branch(*self.indexes[2 * i : 2 * i + 2])}" for i in range(first, first + count)]
        if name == "enum":
            return ["    " + " ".join("leave" if i < 0 else str(i) for i in self.indexes[first : first + count])]
        rows = range(first * WIDTH, (first + count) * WIDTH, WIDTH)
        return [f"    {self._action(*self.actions[i : i + WIDTH])}" for i in rows]

    def _branch(self, node: int, index: int) -> str:
        return str(node) if index < 0 else f"{node} as {index}"

    def _action(self, kind: int, place: int, first: int, size: int) -> str:
        at = "" if place < 0 else f" at {place}"
        if kind == DEFAULT:
            return f"default {self.texts[first : first + size].hex(' ')}{at}"
        return f"{('field', 'skip')[kind]} {first}{at}"


@within_stack(too_nested)
def pair_program(writer: Schema, reader: Schema, *, reinterpret: bool = False) -> TranslationProgram:
    """Return the program that does what `translation.translator` does. Raises `SchemaError` as that does."""
    builder = _ProgramBuilder(reinterpret=reinterpret)
    return builder.program(builder.node(resolve(writer.root, reader.root), writer.root, reader.root))


@within_stack(too_nested)
def check_program(schema: Schema) -> TranslationProgram:
    """Return the program that does what `binary.check_payload` does."""
    builder = _ProgramBuilder(reinterpret=False)
    return builder.program(builder.checked(schema.root))


class _ProgramBuilder:
    """Walks through the steps and collects the arrays of a program; each pair of records is one instruction."""

    def __init__(self, *, reinterpret: bool) -> None:
        self._reinterpret = reinterpret
        self._code = array("i")
        self._actions = array("i")
        self._indexes = array("i")
        self._limits = array("q")
        self._texts = bytearray()
        # The instructions that do not always leave the bytes as they are.
        self._changes: set[int] = set()
        # What records without bytes become, by instruction.
        self._constants: dict[int, bytes] = {}
        self._known: dict[int | str, int] = {}
        self._weights: dict[str, bool] = {}
        self._nothing: dict[str, bool] = {}

    def program(self, root: int) -> TranslationProgram:
        bounds = (MAX_LEVELS, MAX_COUNT, MAX_WEIGHTLESS, MAX_TRANSLATED)
        parts = (self._code, self._actions, self._indexes, self._limits, bytes(self._texts))
        return TranslationProgram(root, root not in self._changes, *parts, bounds)

    def node(self, step: Step, writer: Type, reader: Type) -> int:
        """Return the number of the instruction that makes data of the writer's type data of the reader's."""
        if isinstance(writer, Union):
            return self._from_union(step, writer, reader)
        if isinstance(reader, Union):
            at = branch_index(step, writer, reader)
            return self._add(INTO, at, self._node(step, writer, reader.branches[at]), changes=True)
        return self._node(step, writer, reader)

    def checked(self, declared: Type) -> int:
        """Return the number of the instruction that checks a datum and leaves its bytes as they are."""
        match declared:
            case Primitive() | Fixed():
                return self._datum(declared, declared)
            case Enum(symbols=symbols):
                return self._add(INTEGER, self._limit(range(len(symbols))))
            case Array(items):
                return self._add(ARRAY, self.checked(items), int(not has_bytes(items, self._weights)))
            case Map(values):
                return self._add(MAP, self.checked(values))
            case Union(branches):
                return self._union([(self.checked(branch), at) for at, branch in enumerate(branches)])
            case Record(name, fields=fields):
                if name not in self._known:
                    number = self._known[name] = self._add(RECORD)
                    nodes = [self.checked(field.type) for field in fields]
                    self._set_record(number, declared, [(FIELD, NONE, node, 0) for node in nodes])
                return self._known[name]
        raise SchemaError("$", f"{type(declared).__name__} is no type")

    def _add(self, kind: int, *operands: int, changes: bool = False) -> int:
        number = len(self._code) // WIDTH
        self._code.extend((kind, *operands, *[0] * (WIDTH - 1 - len(operands))))
        if changes:
            self._changes.add(number)
        return number

    def _limit(self, values: range) -> int:
        self._limits.extend((values.start, values.stop - 1))
        return len(self._limits) // 2 - 1

    def _node(self, step: Step, writer: Type, reader: Type) -> int:
        match step, writer, reader:
            case ReadPrimitive() | ReadFixed(), Primitive() | Fixed(), Primitive() | Fixed():
                return self._datum(writer, reader)
            case ReadEnum(symbols=symbols), Enum(), Enum():
                return self._enum(symbols, reader, id(step))
            case ReadArray(inner), Array(was), Array(items):
                item, is_weightless = self.node(inner, was, items), not has_bytes(was, self._weights)
                rewrites = item in self._changes
                return self._add(ARRAY, item, int(is_weightless), int(rewrites), changes=rewrites)
            case ReadMap(inner), Map(was), Map(values):
                value = self.node(inner, was, values)
                return self._add(MAP, value, int(value in self._changes), changes=value in self._changes)
            case ReadRecord(), Record(), Record():
                return self._record(step, writer, reader)
        raise SchemaError("$", f"no translation for {type(step).__name__}")

    def _datum(self, writer: Primitive | Fixed, reader: Primitive | Fixed) -> int:
        if refused_guess(writer, reader, reinterpret=self._reinterpret) is not None:
            return self._add(LEAVE)
        values = value_range(writer if logical_type(writer) else reader)
        if isinstance(writer, Fixed):
            return self._sized(writer.size, values)
        was, now = writer.name, reader.name
        if was in _WHOLE:
            whole = _WHOLE[was]
            values = whole if values is None else range(max(whole.start, values.start), min(whole.stop, values.stop))
            limits = self._limit(values)
            return self._add(_PROMOTED.get(now, INTEGER), limits, changes=now in _PROMOTED)
        if was in _SIZES:
            return self._add(WIDEN, changes=True) if was != now else self._sized(_SIZES[was], None)
        if was == "boolean":
            return self._add(BOOLEAN)
        if values is not None:
            return self._add(LEAVE) if was == "string" else self._decimal(values, NONE)
        return self._add(STRING if "string" in (was, now) else BYTES)

    def _sized(self, size: int, values: range | None) -> int:
        if values is not None:
            return self._decimal(values, size)
        return self._add(TAKE, size) if size else self._add(NOTHING)

    def _decimal(self, values: range, size: int) -> int:
        most = values.stop - 1
        length = most.bit_length() // 8 + 1
        start = len(self._texts)
        self._texts += most.to_bytes(length, "big") + (-most).to_bytes(length, "big", signed=True)
        return self._add(DECIMAL, start, length, size)

    def _enum(self, symbols: tuple[str | None, ...], reader: Enum, key: int) -> int:
        if key not in self._known:
            places = symbol_places(symbols, reader)
            if places == list(range(len(places))):
                self._known[key] = self._add(INTEGER, self._limit(range(len(places))))
            else:
                first = len(self._indexes)
                self._indexes.extend(NONE if place is None else place for place in places)
                moves = any(place not in (None, at) for at, place in enumerate(places))
                self._known[key] = self._add(ENUM, first, len(places), changes=moves)
        return self._known[key]

    def _from_union(self, step: Step, writer: Union, reader: Type) -> int:
        if not isinstance(step, ReadUnion):
            raise SchemaError("$", f"a union is not read by {type(step).__name__}")
        branches: list[tuple[int, int]] = []
        is_same = isinstance(reader, Union)
        for at, (inner, branch) in enumerate(zip(step.branches, writer.branches, strict=True)):
            into = NONE
            if isinstance(inner, str):
                node = self._add(LEAVE)
            elif isinstance(reader, Union):
                into = branch_index(inner, branch, reader)
                node = self._node(inner, branch, reader.branches[into])
            else:
                node = self.node(inner, branch, reader)
            branches.append((node, into))
            is_same = is_same and into in (NONE, at) and node not in self._changes
        return self._union(branches, changes=not is_same)

    def _union(self, branches: list[tuple[int, int]], *, changes: bool = False) -> int:
        if len(self._indexes) % 2:
            self._indexes.append(NONE)
        first = len(self._indexes) // 2
        for branch in branches:
            self._indexes.extend(branch)
        return self._add(UNION, first, len(branches), changes=changes)

    def _record(self, step: ReadRecord, writer: Record, reader: Record) -> int:
        key = id(step)
        if key in self._known:
            return self._known[key]
        # While its fields are being walked through, a record within itself is taken for one that changes.
        number = self._known[key] = self._add(RECORD, changes=True)
        places = {field.name: i for i, field in enumerate(reader.fields)}
        rows = [
            (SKIP, NONE, self.checked(was.type), 0)
            if into is None
            else (FIELD, places[into.name], self.node(inner, was.type, into.type), 0)
            for inner, was, into in step.fields
        ]
        read = [place for _, place, _, _ in rows]
        if read == list(range(len(places))) and not any(node in self._changes for _, _, node, _ in rows):
            self._changes.discard(number)
            self._set_record(number, writer, rows)
            return number
        pieces = encoded_defaults(reader, step.defaults)
        if is_nothing(writer, self._nothing):
            self._set_constant(number, rows, pieces)
        else:
            self._set_changed(number, rows, pieces)
        return number

    def _set_constant(self, number: int, rows: list[tuple[int, int, int, int]], pieces: list[bytes]) -> None:
        """Set the instruction for data without bytes, which always become the same, however many records there are."""
        stated = {place: self._of_nothing(node) for kind, place, node, _ in rows if kind == FIELD}
        whole = [stated.get(place, piece) for place, piece in enumerate(pieces)]
        known = [piece for piece in whole if piece is not None]
        if len(known) == len(whole) and sum(map(len, known)) <= MAX_TRANSLATED:
            self._constants[number] = b"".join(known)
            self._set_changed(number, [], [self._constants[number]])
        else:
            self._code[number * WIDTH] = LEAVE

    def _of_nothing(self, node: int) -> bytes | None:
        """Return what an instruction makes of data without bytes; None if that is absurdly long."""
        kind, index, branch, _ = self._code[node * WIDTH : (node + 1) * WIDTH]
        if kind != INTO:
            return b"" if kind == NOTHING else self._constants.get(node)
        inner, prefix = self._of_nothing(branch), bytearray()
        write_long(prefix, index)
        return None if inner is None else bytes(prefix) + inner

    def _set_record(self, number: int, declared: Record, rows: list[tuple[int, int, int, int]]) -> None:
        if is_nothing(declared, self._nothing):
            self._code[number * WIDTH] = NOTHING
        else:
            self._set_rows(number, RECORD, rows)

    def _set_changed(self, number: int, rows: list[tuple[int, int, int, int]], defaults: list[bytes]) -> None:
        stated = [(place, default) for place, default in enumerate(defaults) if default]
        if len(self._texts) + sum(map(len, defaults)) > MAX_TRANSLATED:
            self._code[number * WIDTH] = LEAVE
            return
        added = [(DEFAULT, place, *self._text(default)) for place, default in stated]
        read = [place for kind, place, _, _ in rows if kind == FIELD]
        if read != sorted(read):
            self._set_rows(number, REORDER, [*rows, *added], len(defaults))
            return
        ordered = []
        for row in rows:
            while row[0] == FIELD and added and added[0][1] < row[1]:
                ordered.append(added.pop(0))
            ordered.append(row)
        self._set_rows(number, RECORD, [*ordered, *added])

    def _set_rows(self, number: int, kind: int, rows: list[tuple[int, int, int, int]], places: int = 0) -> None:
        rows = [row for row in rows if row[0] == DEFAULT or self._code[row[2] * WIDTH] != NOTHING]
        first = len(self._actions) // WIDTH
        for row in rows:
            self._actions.extend(row)
        self._code[number * WIDTH : (number + 1) * WIDTH] = array("i", (kind, first, len(rows), places))

    def _text(self, text: bytes) -> tuple[int, int]:
        start = len(self._texts)
        self._texts += text
        return start, len(text)
