"""Arrays of Arrow's, from what the engine has filled, or from values in Python."""

from __future__ import annotations

from array import array
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cdcavro.arrow.layout import MAX_ROOM, MAX_ROWS_ROOM, ROOM_PER_BYTE
from cdcavro.engine.column_program import COLUMN, NONE, ROWS
from cdcavro.errors import PayloadError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.arrow.layout import Part

    # As `machine.Filler.fill` returns them.
    Filled = Sequence[tuple[Any, Any, Any, int, int]]


def zeros(count: int) -> pa.Buffer:
    """Return what all columns of so many rows share that no row fills: no cell has more bytes than a long decimal."""
    return pa.py_buffer(bytes(32 * count + 64))


def filled_array(part: Part, filled: Filled, count: int, nothing: pa.Buffer) -> pa.Array:
    """Return the array of a part, from the columns that the engine has filled; `count` is for one without buffers.

    `nothing` are the `zeros` of all rows.
    """
    if part.column == NONE:
        return pa.nulls(count)
    bits, cells, data, size, nulls = filled[part.column]
    if bits is None and nulls == size:
        return _null_array(part, size, nothing)
    held = None if bits is None else pa.py_buffer(bits)
    if pa.types.is_struct(part.type):
        inner = [filled_array(one, filled, size, nothing) for one in part.parts]
        return pa.Array.from_buffers(part.type, size, [held], nulls, children=inner)
    buffers = [held, pa.py_buffer(cells or b"")]
    if part.parts:
        items = array("i", bytes(memoryview(cells)[-4:]))[0]
        inner = [filled_array(one, filled, items, nothing) for one in part.parts]
        return pa.Array.from_buffers(part.type, size, buffers, nulls, children=[_items(part, inner, items)])
    if pa.types.is_string(part.type) or pa.types.is_binary(part.type):
        buffers.append(pa.py_buffer(data or b""))
    return pa.Array.from_buffers(part.type, size, buffers, nulls)


def _null_array(part: Part, count: int, nothing: pa.Buffer) -> pa.Array:
    """Return the array of a part that is null in all rows."""
    if part.column == NONE:
        return pa.nulls(count)
    is_struct = pa.types.is_struct(part.type)
    inner = [_null_array(one, count if is_struct else 0, nothing) for one in part.parts]
    buffers = [nothing] if is_struct else [nothing, nothing]
    if pa.types.is_string(part.type) or pa.types.is_binary(part.type):
        buffers.append(pa.py_buffer(b""))
    children = [_items(part, inner, 0)] if inner and not is_struct else inner
    return pa.Array.from_buffers(part.type, count, buffers, count, children=children)


class Room:
    """Room for the rows of a batch, and for the items of all its arrays and maps, by the bytes of its payloads.

    `columns` are those of the batch's program.
    """

    def __init__(self, size: int, columns: Sequence[int], rows: int) -> None:
        self._left = MAX_ROOM + ROOM_PER_BYTE * size
        self._rows_left = MAX_ROWS_ROOM + ROOM_PER_BYTE * size
        self._columns = columns
        self.nothing = zeros(rows)

    def take(self, size: int) -> None:
        """Take of the room. Raises `PayloadError`."""
        self._left -= size
        if self._left < 0:
            most = f"{MAX_ROOM >> 20} MiB and {ROOM_PER_BYTE} times the payloads"
            raise PayloadError(f"items of arrays and maps that take at most {most}", "more")

    def has_rows(self, part: Part) -> bool:
        """Return whether a part has a cell for each row, not for each item of an array or a map."""
        return part.column != NONE and self._columns[COLUMN * part.column + 2] == ROWS

    def take_rows(self, part: Part, count: int) -> None:
        """Take the cells that rows have in the column of a part. Raises `RowsError`."""
        self._rows_left -= count * max(self._columns[COLUMN * part.column + 1], 1)
        if self._rows_left < 0:
            raise RowsError


class RowsError(PayloadError):
    """Rows whose cells take more than the bytes of their payloads allow."""

    def __init__(self) -> None:
        most = f"{MAX_ROWS_ROOM >> 20} MiB and {ROOM_PER_BYTE} times the payloads"
        super().__init__(f"rows whose columns take at most {most} in a batch", "more")


def array_of_values(part: Part, values: list[Any], room: Room) -> pa.Array:
    """Return the array of a part, from values as `cdcavro.arrow.values` reads them.

    Raises `pyarrow.ArrowInvalid` or `OverflowError` for more than one array holds, and `PayloadError` for want of room.
    """
    if room.has_rows(part):
        if all(value is None for value in values):
            return _null_array(part, len(values), room.nothing)
        room.take_rows(part, len(values))
    is_struct = pa.types.is_struct(part.type)
    if not part.parts and not is_struct:
        made = pa.array(values, part.type)
        if isinstance(made, pa.ChunkedArray):
            raise OverflowError("an array of more than 2 GiB")
        return made
    nulls = values.count(None)
    bits = pa.array([value is not None for value in values], pa.bool_()).buffers()[1] if nulls else None
    if is_struct:
        columns = ([None if value is None else value[i] for value in values] for i in range(len(part.parts)))
        inner = [array_of_values(one, column, room) for one, column in zip(part.parts, columns, strict=True)]
        return pa.Array.from_buffers(part.type, len(values), [bits], nulls, children=inner)
    items = list(chain.from_iterable(value for value in values if value is not None))
    room.take(len(items) * part.room)
    ends = array("i", [0, *accumulate(0 if value is None else len(value) for value in values)])
    is_map = pa.types.is_map(part.type)
    below = [[item[i] for item in items] for i in range(2)] if is_map else [items]
    inner = [array_of_values(one, column, room) for one, column in zip(part.parts, below, strict=True)]
    buffers = [bits, pa.py_buffer(ends)]
    return pa.Array.from_buffers(part.type, len(values), buffers, nulls, children=[_items(part, inner, len(items))])


def _items(part: Part, inner: list[pa.Array], count: int) -> pa.Array:
    """Return what a list is made of: its items, or the entries of a map."""
    if not pa.types.is_map(part.type):
        return inner[0]
    entries = pa.struct([part.type.key_field, part.type.item_field])
    return pa.Array.from_buffers(entries, count, [None], 0, children=inner)
