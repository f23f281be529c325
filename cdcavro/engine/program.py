"""A program: what the engine does to turn text into payloads of one schema, and back, as flat arrays.

`code` holds one instruction for each type, `fields` one row for each field of a record, and `texts` the names,
pointers and symbols that both refer to. `str(program)` lists it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from array import array

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
