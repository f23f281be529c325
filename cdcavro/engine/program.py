"""A program: what the engine does to turn text into payloads of one schema and back, or messages into rows of a table.

The program of a schema is flat arrays: `code` holds one instruction for each type, `fields` one row for each field of a
record, and `texts` the names, pointers and symbols that both refer to. `str(program)` lists it.

The program of a pattern of messages says what the engine does to turn their rows into those of a table's version;
`str(program)` lists which column goes to which field, and how its value becomes that of the field's type.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.exact.numbers import MAX_LONG

if TYPE_CHECKING:
    from collections.abc import Callable

OPERATIONS: Final = (
    *("gone", "whole", "double", "single", "flag", "decimal", "unscaled"),
    *("string", "json", "anything", "digits"),
    *("label", "indexed label", "labels", "masked labels"),
    *("base64", "latin1", "bits", "counted bits", "reversed bits"),
    *("day", "clock", "local", "seconds", "seconds or long", "milliseconds", "microseconds"),
    *("padded or seconds", "in zone", "iso", "millis", "left"),
)
"""What becomes of a value, as the engine's cells have it by the same names: `left` is left to the exact way."""
RULE_ACTIONS: Final = ("keep", "leave out", "fill", "digest")
"""What a rule makes of a cell of a row."""
RULE_SIZES: Final = ("varint", "sized")
"""How a cell says how many bytes it takes, if it does not always take the same."""
RULE_TEXTS: Final = ("python", "bytes", "whole", "decimal")
"""What makes the text of a value, which a rule digests or compares."""
RULE_TESTS: Final = ("none", "unknown", "null", "number", "text", "python")
"""How a rule decides which rows are kept: `unknown` is left to the exact way."""
_WIDTH: Final = 8
# What a program takes beside its texts and arrays, in bytes.
_BESIDE: Final = 1 << 10


@dataclass(slots=True, eq=False, kw_only=True)
class RowProgram:
    """The program of a pattern.

    `str(program)` lists it.
    """

    # Of each field of the row: where the column's name stands in `texts` and its length, the number of its operation,
    # the bytes before a value and for null, and three operands.
    cells: array[int] = field(default_factory=lambda: array("i"))
    # Bounds that operands refer to.
    longs: array[int] = field(default_factory=lambda: array("q"))
    # Where labels stand in `texts`, and their lengths.
    symbols: array[int] = field(default_factory=lambda: array("i"))
    texts: bytes = b""
    # The cells of the key, if the table has one.
    key: array[int] = field(default_factory=lambda: array("i"))
    is_keyed: bool = False
    # The cells that split an update if their values differ.
    same: array[int] = field(default_factory=lambda: array("i"))
    # The first fields of `source`.
    head: bytes = b""
    # The fields of `source` that say where messages of the pattern arrived, as far as these state it.
    place: bytes = b""
    # How the numbers of a position are told.
    position: int = 0
    # The parts of a message that are the rows before and after the change, 0 for none.
    before: int = 0
    after: int = 0
    # The letter of the operation.
    operation: int = 0
    # Whether an empty transaction is none.
    is_empty_none: bool = False
    # Whether the engine may make a delete and an insert of an update that moves a row to another key.
    is_split: bool = False
    # Whether columns that the row after a change does not have are null.
    fills_absent: bool = False
    # What orders the changes: 0 for a full load, 1 for numbers, 2 for arrival; and the first byte of their order
    # values.
    order: int = 0
    phase: int = 0
    # Whether numbers without a time are those of batches.
    is_batched: bool = False
    # The greatest first number that a message of the pattern has; behind it, its rows may be of another version.
    latest: int = MAX_LONG
    # How many characters each row repeats of its message, roughly.
    weight: int = 0

    @property
    def size(self) -> int:
        """How many bytes the program takes, about."""
        parts = self.cells, self.longs, self.symbols, self.key, self.same
        texts = len(self.texts) + len(self.head) + len(self.place)
        return _BESIDE + texts + sum(part.itemsize * len(part) for part in parts)

    def __str__(self) -> str:
        lines = [f"{chr(self.operation)} before={self.before} after={self.after} position={self.position}"]
        for i in range(0, len(self.cells), _WIDTH):
            start, size, operation, some, null, *operands = self.cells[i : i + _WIDTH]
            name = self.texts[start : start + size].decode()
            marks = " key" if i // _WIDTH in self.key else ""
            stated = " ".join(map(str, operands))
            lines.append(f"{name}: {OPERATIONS[operation]} {stated} some={some} null={null}{marks}")
        return "\n".join(lines)


class CellRule(NamedTuple):
    """A cell of typed rows, and what a rule makes of it; numbers are places in the tuples above."""

    # The name of the column, as UTF-8.
    name: bytes
    action: int
    # How many bytes a value takes, or -1 and what says so.
    size: int
    kind: int
    # The first byte of a null.
    null: int
    # The first bytes of a value and of a null, as they are written.
    some_made: int
    null_made: int
    # The cell that is written for any value, if it is filled.
    fill: bytes
    # What copies the hash objects through which a text goes, one after the other, if it is digested.
    copies: tuple[Callable[[], Any], ...]
    text: int
    scale: int
    # What makes the text of a value's bytes.
    read: Callable[[bytes], bytes]


class RowTest(NamedTuple):
    """A condition on one of the cells of a row."""

    test: int
    # The place of the cell.
    cell: int = 0
    # The comparisons for which it holds: 1 for less, 2 for equal, 4 for greater. Of a test for null, 1 if null is kept.
    signs: int = 0
    # The greatest integer up to the number that is compared with, in units of the cell's last place, as two halves of
    # 64 bits; and whether it is that number.
    floor: tuple[int, int] = (0, 0)
    is_whole: bool = True
    # The text that is compared with.
    constant: bytes = b""
    # Whether the condition holds for the text of a value, where the engine does not compare.
    holds: Callable[[bytes], bool] | None = None


WIDTH: Final = 8
"""How many integers an instruction has, and a row of `fields`."""
BOOLEAN, INT, LONG, STRING, ENUM, COLUMN, ARRAY, MAP, RECORD, OPTIONAL, VARIANT, BYTES, DOUBLE, FLOAT, LEAVE = range(15)
ABSENT, NULL, REQUIRED, REST, EXTRAS = range(5)
LACKS_NULLS, CAPITALS, IS_BRIEF = 1, 2, 4
"""Flags of a record: nulls in deletes say nothing of their columns; escapes that are put out have capitals; texts that are
put out begin with `MARK`."""
MARK: Final = b"\x01"
"""What stands in a brief text for its head, `{"schema":…,"payload":`; the last bracket is left out, too."""
_OPERATIONS: Final = (
    ("boolean",),
    ("int",),
    ("long",),
    ("string",),
    ("enum", "first", "count", "other", "spelled", "spellings"),
    ("column", "null", "boolean", "long", "double", "string", "number", "text"),
    ("array", "items"),
    ("map", "values"),
    ("record", "first", "count", "rest", "opens", "unstated", "length", "flags"),
    ("optional", "value", "branch", "null", "text"),
    ("variant", "null", "boolean", "long", "string", "is_int"),
    ("bytes", "size"),
    ("double",),
    ("float",),
    ("leave",),
)
_MISSING: Final = ("absent", "null", "required", "rest", "extras")


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The program of a schema.

    `str(program)` lists it.
    """

    # The number of the instruction to begin with, -1 if only the exact way is to be gone.
    root: int
    # Instructions of `WIDTH` integers, of which the first says what to do and the others are its operands.
    code: array[int]
    # Rows of `WIDTH` integers: where the member's name stands in `texts`, quoted and with its colon, and its length,
    # the number of its instruction, what stands for a member without a value, where the member's JSON pointer stands
    # and its length (-1 below an array or a map), which part of a typed row it is, and the unit of a time in
    # microseconds.
    fields: array[int]
    # Where the symbols of enums stand and their lengths, and behind them other spellings, with the index of their
    # symbol.
    symbols: array[int]
    # All names, pointers and symbols, one behind the other.
    texts: bytes
    # How deep a message may nest, how many items an array or a map may have, and how many bytes a message.
    bounds: tuple[int, int, int]

    def __str__(self) -> str:
        lines = []
        for start in range(0, len(self.code), WIDTH):
            name, *operands = _OPERATIONS[self.code[start]]
            values = self.code[start + 1 : start + WIDTH]
            stated = "".join(f" {operand}={value}" for operand, value in zip(operands, values, strict=False))
            lines.append(f"{start // WIDTH} {name}{stated}")
            if name == "record":
                lines += map(self._field, range(values[0], values[0] + values[1]))
            elif name == "enum":
                lines.append("    " + " ".join(map(self._symbol, range(values[0], values[0] + 2 * values[1], 2))))
        return "\n".join(lines)

    def _field(self, number: int) -> str:
        label, size, node, missing, pointer, length, *_ = self.fields[number * WIDTH : number * WIDTH + WIDTH]
        name = self.texts[label : label + size].decode()
        place = "" if length < 0 else " at " + self.texts[pointer : pointer + length].decode()
        return f"    {name} {node} {_MISSING[missing]}{place}"

    def _symbol(self, number: int) -> str:
        start, size = self.symbols[number : number + 2]
        return self.texts[start : start + size].decode()
