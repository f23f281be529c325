"""The program of columns: how the engine reads payloads of a schema into buffers in Arrow's layout, as flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from array import array

WIDTH: Final = 8
"""How many integers an instruction has."""
NOTHING, BOOLEAN, INT, LONG, TAKEN, TEXT, BYTES, DECIMAL, SYMBOL, LIST, MAP, RECORD, OPTION, UNION = range(14)
NO_CELLS, BITS, CELLS, ENDS = range(4)
NONE: Final = -1
ROWS: Final = -1
COLUMN: Final = 3
"""How many integers tell about a column."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnProgram:
    """The program of a schema, none of whose records contains itself.

    `NONE` stands for no column and no operand.
    """

    # The number of the instruction to begin with.
    root: int
    # Instructions of `WIDTH` integers: what to read, three operands of that kind, the column, the first and the number
    # of its parts in `indexes` (of a list or a map the bytes that the cells of an item take), and 0.
    code: array[int]
    # The instructions of the fields of a record and of the branches of a union, and where the symbols of an enum stand
    # in `texts` and their lengths.
    indexes: array[int]
    # Pairs of the least and the greatest integer.
    limits: array[int]
    # The bounds of decimals, and symbols.
    texts: bytes
    # For each column what its cells are, how many bytes a cell has, and the column of the list or the map whose items
    # it holds, or `ROWS`.
    columns: array[int]
    # How many items a collection may have, and how many without bytes a payload; how many bytes a column, and the
    # cells of all items; how many these for each byte of the payloads, and how many the cells of rows besides.
    bounds: tuple[int, int, int, int, int, int]
