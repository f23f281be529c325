"""Placing of messages in their tables, whole Arrow batches at a time, once the tables have learned all.

The rows are those of `TypedRows`, byte for byte: each with its order, under the clock of the lanes. The engine makes
the rows of plain messages, whose places are a column beside them; all others go the exact way in between, under the
same clock. `group_by_table` puts the rows of a task together, and keeps only the last change of a key where no other is
wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from cdcavro.arrow.arrays import places, slices_of
from cdcavro.change.model import Arrival, replace
from cdcavro.engine.machine import encode_places
from cdcavro.engine.payloads import Longs, Slices
from cdcavro.errors import shown
from cdcavro.lake.typed_rows import DELETE, UPSERTS, drop_lookup, rows_of_message, write_change
from cdcavro.table.writing.message_typer import MessageTyper, merge_places
from cdcavro.table.writing.table_writer import OPERATIONS
from cdcavro.transcoding.mapping import USUAL_PLACEHOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from cdcavro.change.model import Change
    from cdcavro.change.order import Clock
    from cdcavro.lake.typed_rows import HasState, TypedRow
    from cdcavro.table.tables import Tables
    from cdcavro.table.writing.message_typer import Journal, RowBuffers

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
    typer: MessageTyper,
    texts: Slices,
    places: Slices | None,
    *,
    is_able: bool = True,
    head: bytes = b"",
    is_read: bool = False,
) -> Iterator[int | None]:
    """Let the engine take the messages of a column; yield the index of each message that it leaves.

    Yield None where its rows are to be handed over, before they are too many. If `is_able` is false, it takes none. `head`
    and `is_read` are as in `RowEngine.take_column`.
    """
    i, is_full = 0, False
    while i < texts.count:
        if is_able:
            i, is_full = typer.take_column(texts, places, i, _MAX_BYTES, head, is_read=is_read)
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


ROWS: Final = pa.schema(
    [
        ("message", pa.int32()),
        ("number", pa.int32()),
        ("version", pa.int32()),
        ("operation", pa.string()),
        ("order", pa.binary()),
        ("key", pa.binary()),
        ("payload", pa.binary()),
        ("lacks", pa.bool_()),
    ]
)
"""The columns of rows: the index of the message, and the fields of `TypedRow`, but `lacks` instead of `absent`: whether
the row after the change lacks columns."""


class Placing:
    """Places the messages of one format, by `tables` that have learned all of them, or all that they need.

    `clock` (`Clock`) moves with every message that is placed; `dropped` is as in `Learned`, and `unavailable` as in
    `to_changes`. `is_of_one_topic` is as in `MessageTyper`, and `has_state` as in `TypedRows`.
    """

    def __init__(
        self,
        format: str,
        tables: Tables,
        clock: Clock,
        *,
        unavailable: str | None = USUAL_PLACEHOLDER,
        dropped: Mapping[bytes, Sequence[int]] | None = None,
        is_of_one_topic: bool = False,
        has_state: HasState | None = None,
    ) -> None:
        self._clock, self._tables, self._has_state = clock, tables, has_state
        self._dropped = drop_lookup(dropped or {}, tables)
        self._typer = MessageTyper(
            format,
            tables,
            unavailable=unavailable,
            is_all_learned=True,
            clock=clock,
            is_of_one_topic=is_of_one_topic,
        )
        self._is_by_topic = tables.given_table.by_topic and not is_of_one_topic

    def take(
        self,
        batch: pa.RecordBatch,
        left: Callable[[int, bytes, Arrival | None], None],
        head: bytes = b"",
        *,
        is_read: bool = False,
    ) -> list[pa.RecordBatch]:
        """Return the rows that the engine makes of a batch, in batches of `ROWS`; call `left` for the others.

        The batch has two columns: the messages, and where each arrived, a struct with some of the fields of `Arrival`.
        `left` gets the index, the text and the place of a message, in the order of arrival; if it places the message by
        `rows`, the clock is that of its place. `head` and `is_read` are as in `RowEngine.take_column`; `left` gets brief texts,
        and what was read of envelopes, as they are.
        """
        texts, places, batches = slices_of(batch.column(0)), Places(batch), []
        is_able = not (self._is_by_topic and "topic" in places.names)
        try:
            told = places.encode() if is_able else None
            for i in take_messages(self._typer, texts, told, is_able=is_able, head=head, is_read=is_read):
                message = None if i is None else texts.get(i)
                if i is None:
                    batches.append(self._engine_rows())
                elif message is not None:
                    left(i, message, places.get(i))
        finally:
            # Whatever happens, no rows wait for the next batch.
            batches.append(self._engine_rows())
        return [rows for rows in batches if rows.num_rows]

    @property
    def journal(self) -> Journal:
        """The patterns that the engine knows, until a table is edited."""
        return self._typer.journal

    def changes(self, message: bytes) -> list[Change]:
        """Return the changes of a message. Raises as `to_changes` does."""
        return self._typer.changes(message)

    def at_place(self, changes: Sequence[Change], place: Arrival | None) -> list[Change]:
        """Return the changes of a message that arrived at a place, with the table given for those that name none."""
        return [
            self._tables.with_given_table(replace(change, place=merge_places(change.place, place)))
            for change in changes
        ]

    def rows(
        self, message: bytes, changes: Sequence[Change], place: Arrival | None, alike: bytes | None = None
    ) -> list[TypedRow]:
        """Return the rows of a message the exact way; `changes` are its changes. The engine learns its pattern.

        That is the pattern of `alike`, if it is not None: a message without what is the same for all that are taken; or
        none if it is empty.

        Raises for the first change that contradicts its table or that a current state cannot take, as `write_change`
        does, and `OrderError` as `Clock.time` does; then nothing of the message is placed.
        """
        pairs = [
            (change, write_change(self._tables, change, self._has_state, message))
            for change in self.at_place(changes, place)
        ]
        rows = rows_of_message(pairs, self._clock, self._dropped)
        if alike != b"":
            typed = [one for _, found in pairs for one in found]
            self._typer.learn(message if alike is None else alike, changes, typed, place)
        return rows

    def _engine_rows(self) -> pa.RecordBatch:
        """Return the rows that the engine made."""
        known, buffers = self._typer.pop_rows()
        rows = EngineRows(known, buffers)
        if not rows.count:
            return pa.RecordBatch.from_pylist([], ROWS)
        number = rows.column(lambda table, _: table.number, pa.int32())
        version = rows.column(lambda _, schema: schema.version, pa.int32())
        columns = [rows.message, number, version, rows.operation, rows.order, rows.key, rows.payload, rows.lacks]
        return pa.RecordBatch.from_arrays(columns, schema=ROWS)


def rows_batch(rows: Sequence[tuple[int, TypedRow]]) -> pa.RecordBatch:
    """Return rows that were made the exact way, each with the index of its message, as a batch of `ROWS`."""
    facts = [
        (i, row.table, row.version, row.operation, row.order, row.key, row.payload, bool(row.absent)) for i, row in rows
    ]
    columns = zip(*facts, strict=True) if facts else [()] * len(ROWS)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(columns, ROWS, strict=True)], schema=ROWS
    )


def group_by_table(table: pa.Table, reduced: Sequence[int] = (), dropped: Collection[int] = ()) -> pa.Table:
    """Return rows, with the columns of `ROWS`, one table behind the other; each table's in the order in which they came.

    Of the tables with the numbers `reduced`, only the last change of each key and version is returned, if the current
    state is the same without the others: a change that lacks columns needs those before it. Rows without a key stay, and
    so does what ends all rows. Of those of them in `dropped`, which have had columns that were dropped, the last delete
    of each key stays, too: a row that is inserted again has no values in these.
    """
    number = table.column("number")
    # With Arrow 18, a process crashes on columns without any chunk.
    if not len(table):
        return table
    if not len(reduced):
        return table.take(pc.sort_indices(number))
    wanted = pc.indices_nonzero(_is_wanted(table, reduced, dropped))
    return table.take(wanted.take(pc.sort_indices(number.take(wanted))))


def _is_wanted(table: pa.Table, reduced: Sequence[int], dropped: Collection[int]) -> pa.Array:
    number, key = table.column("number"), table.column("key")
    is_change = pc.is_in(table.column("operation"), pa.array([*UPSERTS, DELETE]))
    partial = pc.unique(number.filter(table.column("lacks")))
    is_reduced = pc.and_(
        pc.is_in(number, pa.array(sorted({*reduced} - {*partial.to_pylist()}), number.type)), is_change
    )
    is_reduced = pc.and_(is_reduced, key.is_valid())
    changed = pc.indices_nonzero(is_reduced)
    # A change of an older version may have values for columns that the lake keeps and the newer ones lack.
    names = ["number", "key", "version"] if len(pc.unique(table.column("version"))) > 1 else ["number", "key"]
    changes = table.select([*names, "order"]).append_column("place", places(len(table)))
    if dropped:
        has_dropped = pc.is_in(number, pa.array([*dropped], number.type))
        is_end = pc.and_(has_dropped, pc.equal(table.column("operation"), DELETE))
        names, changes = [*names, "is end"], changes.append_column("is end", is_end)
    if len(changed) < len(table):
        changes = changes.take(changed)
    if not _is_ascending(changes.column("order")):
        changes = changes.take(pc.sort_indices(changes, sort_keys=[("order", "ascending")]))
    # Those without threads come in their order, so that the last one is the last.
    last = changes.drop_columns("order").group_by(names, use_threads=False).aggregate([("place", "last")])
    if len(last) == len(table):
        return pa.repeat(True, len(table))  # noqa: FBT003  the value that is repeated
    is_last = pc.is_in(places(len(table)), last.column("place_last").combine_chunks())
    return pc.or_(pc.invert(is_reduced), is_last)


def _is_ascending(orders: pa.ChunkedArray) -> bool:
    """Return whether changes stand in their order."""
    return bool(pc.all(pc.less_equal(orders.slice(0, max(0, len(orders) - 1)), orders.slice(1))).as_py())
