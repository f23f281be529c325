"""Message batches: messages with their places in Arrow, as the engine takes them, and its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from cdcavro.arrow.arrays import slices_of
from cdcavro.change.model import Arrival
from cdcavro.engine.arrow_column import Longs, Slices
from cdcavro.engine.machine import encode_places
from cdcavro.errors import shown
from cdcavro.table.writing.table_writer import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from cdcavro.table.writing.message_typer import MessageTyper, RowBuffers

# How many bytes of rows are made of one batch before they are handed over.
_MAX_BYTES: Final = 1 << 26
_TEXTS: Final = ("topic", "file")


class Places:
    """Where the messages of a batch arrived: its second column, if any, a struct with some of the fields of `Arrival`.

    Raises `TypeError` for other fields.
    """

    __slots__ = ("_fields", "count", "names")

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.count = batch.num_rows
        self._fields: dict[str, pa.Array] = {}
        if batch.num_columns > 1:
            places = batch.column(1)
            self._fields = dict(zip([field.name for field in places.type], places.flatten(), strict=True))
        others = self._fields.keys() - set(Arrival.__struct_fields__)
        if others:
            raise TypeError(f"a place has {', '.join(Arrival.__struct_fields__)}, not {shown(min(others))}")
        self.names = tuple(self._fields)

    def get(self, i: int) -> Arrival | None:
        """Return where a message arrived, None if that is not known."""
        found = {name: field[i].as_py() for name, field in self._fields.items()}
        return None if all(value is None for value in found.values()) else Arrival(**found)

    def to_list(self) -> list[Arrival | None]:
        """Return where each message arrived."""
        columns = [field.to_pylist() for field in self._fields.values()]
        rows = zip(*columns, strict=True) if columns else [()] * self.count
        return [Arrival(**dict(zip(self.names, row, strict=True))) if _is_known(row) else None for row in rows]

    def encode(self) -> Slices | None:
        """Return the places as the engine reads them, None if there are none."""
        if not self._fields:
            return None
        columns = tuple(None if name not in self._fields else self._column(name) for name in Arrival.__struct_fields__)
        data, ends = encode_places(columns, self.count)
        return Slices(data, ends, None, 0, self.count)

    def _column(self, name: str) -> Slices | Longs:
        field = self._fields[name]
        if name in _TEXTS:
            return slices_of(field)
        longs = field.cast(pa.int64())
        validity, data = longs.buffers()
        return Longs(data or b"", validity, longs.offset if data else 0, len(longs))


def _is_known(row: Sequence[Any]) -> bool:
    return any([value is not None for value in row])  # noqa: C419  faster


def take_messages(
    typer: MessageTyper, texts: Slices, places: Slices | None, *, is_able: bool = True
) -> Iterator[int | None]:
    """Let the engine take the messages of a column; yield the index of each message that it leaves.

    Yield None where its rows are to be handed over, before they are too many. If `is_able` is false, it takes none.
    """
    i, is_full = 0, False
    while i < texts.count:
        if is_able:
            i, is_full = typer.take_column(texts, places, i, _MAX_BYTES)
        if is_full:
            yield None
        elif i < texts.count:
            yield i
            i += 1


class EngineRows:
    """Rows that the engine made, as `MessageTyper.pop_rows` returns them."""

    __slots__ = ("_buffers", "_known", "_pattern", "count")

    def __init__(self, known: Sequence[tuple[Any, Any, str]], made: RowBuffers) -> None:
        self._known, self._buffers = known, [pa.py_buffer(part) for part in made]
        self.count = len(made[0]) // 4
        self._pattern = pa.Array.from_buffers(pa.int32(), self.count, [None, self._buffers[1]])

    def column(self, value_of: Callable[[Any, Any], Any], type: pa.DataType) -> pa.Array:
        """Return what `value_of` returns for the table and the version of each row."""
        return pa.array([value_of(table, schema) for table, schema, _ in self._known], type).take(self._pattern)

    @property
    def message(self) -> pa.Array:
        """The indexes of the messages."""
        return pa.Array.from_buffers(pa.int32(), self.count, [None, self._buffers[0]])

    @property
    def operation(self) -> pa.Array:
        """The operations."""
        return pa.array([OPERATIONS[op] for _, _, op in self._known], pa.string()).take(self._pattern)

    @property
    def key(self) -> pa.Array:
        """The keys."""
        return pa.Array.from_buffers(pa.binary(), self.count, self._buffers[2:5])

    @property
    def payload(self) -> pa.Array:
        """The envelopes."""
        return pa.Array.from_buffers(pa.binary(), self.count, [None, *self._buffers[5:7]])

    @property
    def order(self) -> pa.Array:
        """The order values, which are made under a clock."""
        return pa.Array.from_buffers(pa.binary(), self.count, [None, *self._buffers[7:9]])

    @property
    def lacks(self) -> pa.Array:
        """Whether the row after the change lacks columns."""
        return pa.Array.from_buffers(pa.bool_(), self.count, [None, self._buffers[9]])
