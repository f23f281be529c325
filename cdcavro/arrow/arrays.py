"""Arrays of Arrow's, from what the engine has filled, or from values in Python."""

from __future__ import annotations

from array import array
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cdcavro.arrow.layout import MAX_ROOM, ROOM_PER_BYTE
from cdcavro.engine.column_program import NONE
from cdcavro.errors import PayloadError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdcavro.arrow.layout import Part

    # As `machine.Filler.fill` returns them.
    Filled = Sequence[tuple[Any, Any, Any, int, int]]


def filled_array(part: Part, filled: Filled, count: int) -> pa.Array:
    """Return the array of a part, from the columns that the engine has filled; `count` is for one without buffers."""
    if part.column == NONE:
        return pa.nulls(count)
    bits, cells, data, size, nulls = filled[part.column]
    held = None if bits is None else pa.py_buffer(bits)
    if pa.types.is_struct(part.type):
        inner = [filled_array(one, filled, size) for one in part.parts]
        return pa.Array.from_buffers(part.type, size, [held], nulls, children=inner)
    buffers = [held, pa.py_buffer(cells or b"")]
    if part.parts:
        items = array("i", bytes(memoryview(cells)[-4:]))[0]
        inner = [filled_array(one, filled, items) for one in part.parts]
        return pa.Array.from_buffers(part.type, size, buffers, nulls, children=[_items(part, inner, items)])
    if pa.types.is_string(part.type) or pa.types.is_binary(part.type):
        buffers.append(pa.py_buffer(data or b""))
    return pa.Array.from_buffers(part.type, size, buffers, nulls)


class Room:
    """Room for the items of all arrays and maps in a batch, by the bytes of its payloads."""

    def __init__(self, size: int) -> None:
        self._left = MAX_ROOM + ROOM_PER_BYTE * size

    def take(self, size: int) -> None:
        """Take of the room. Raises `PayloadError`."""
        self._left -= size
        if self._left < 0:
            most = f"{MAX_ROOM >> 20} MiB and {ROOM_PER_BYTE} times the payloads"
            raise PayloadError(f"items of arrays and maps that take at most {most}", "more")


def array_of_values(part: Part, values: list[Any], room: Room) -> pa.Array:
    """Return the array of a part, from values as `cdcavro.arrow.values` reads them.

    Raises `pyarrow.ArrowInvalid` or `OverflowError` for more than one array holds, and `PayloadError` for want of room.
    """
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
