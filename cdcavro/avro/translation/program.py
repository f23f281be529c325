"""A program: what the engine does to check a payload of one schema and to bring it into another's, as flat arrays.

`code` holds one instruction for each type that is read, `actions` what is done for each field of a record, and
`str(program)` lists them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from array import array

WIDTH: Final = 4
"""How many integers an instruction has, and a row of `actions`."""
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


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The program of a pair of schemas, or of one schema whose payloads are checked.

    Attributes: `root` (int), the number of the instruction to begin with; `is_same` (bool), whether the payloads are the
    reader's as they are and are only checked; `code` (array of int), instructions of `WIDTH` integers, of which the
    first says what to do and the others are its operands; `actions` (array of int), rows of `WIDTH` integers: what to
    do for a field, its place in the reader's record, and its instruction or, of a default, where it stands in `texts`
    and its length; `indexes` (array of int), for each branch of a union its instruction and its index in the reader's,
    for each symbol of an enum its index; `limits` (array of int), pairs of the least and the greatest integer; `texts`
    (bytes), defaults, and the bounds of decimals; `bounds` (four int), how many levels data may have, items a
    collection, items without bytes a payload, and bytes a translation.
    """

    root: int
    is_same: bool
    code: array[int]
    actions: array[int]
    indexes: array[int]
    limits: array[int]
    texts: bytes
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
