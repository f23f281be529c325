"""Changes of a table's rows as payloads of its schemas: the key, and the envelope with both rows.

The work is planned once for each version of a schema and list of columns. Each column then is a
reader of JSON values and a writer of Avro data.
"""

from __future__ import annotations

from array import array
from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.binary import Buffer
from cdcavro.change.model import Column
from cdcavro.change.modes import USUAL_MODES, Modes
from cdcavro.change.rule import AS_SENT
from cdcavro.engine.machine import Cells, optionals
from cdcavro.engine.row_program import RowProgram
from cdcavro.errors import SchemaError, StructureError, shown
from cdcavro.exact.numbers import MAX_LONG, MIN_LONG
from cdcavro.table.columns.column_type import column_type
from cdcavro.table.columns.format_rules import RULES, USUAL
from cdcavro.table.columns.readers import MISFIT
from cdcavro.table.schema import avro_label, avro_of, without_attributes
from cdcavro.table.writing.cells import CellTable
from cdcavro.table.writing.rows import Cell, RowWriter, text_of, write_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import tzinfo

    from cdcavro.change.model import Arrival, Change, Row, Source
    from cdcavro.table.schema import TableColumn, TableSchema

OPERATIONS: Final = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "SNAPSHOT": "r", "TRUNCATE": "t"}
_MILLISECOND: Final = 1_000
_PLACE: Final = attrgetter("topic", "partition", "offset", "file", "line")
NOWHERE: Final = bytes(5)
_OPERATIONS: Final = {op: bytes([len(word) << 1]) + word.encode() for op, word in OPERATIONS.items()}


class TableWriter:
    """Writes the changes of one version of a table, as one source sends them.

    Made from the version, the source, and the columns that its changes state (None if they state
    none); `zone` is the source's time zone, and `modes` how Debezium sends values. With `is_strict`, a value that its type cannot carry is an
    error; otherwise it goes into `unparsed` as text, and `count` is told its column. Raises
    `SchemaError` if a stated column's Avro type is not the version's.
    """

    def __init__(
        self,
        schema: TableSchema,
        source: Source,
        columns: Sequence[Column] | None,
        *,
        zone: tzinfo | None = None,
        modes: Modes = USUAL_MODES,
        is_strict: bool = False,
        count: Callable[[Iterable[str]], object] | None = None,
    ) -> None:
        self.schema = schema
        # Nearly all changes that a writer gets come from one source.
        self._starts = tuple(_source_start(source, is_snapshot=is_snapshot) for is_snapshot in (False, True))
        self._source, self._columns, self._zone, self._modes = source, columns, zone, modes
        self._format = source.format
        self._is_strict = is_strict
        stated = {column.name: column for column in columns or ()}
        by_field = {column.field: column for column in schema.all_columns}
        fields = [field for field in schema.record["fields"] if field["name"] in by_field]
        cells = [
            _cell(field, by_field[field["name"]], stated.get(by_field[field["name"]].name), source, zone, modes)
            for field in fields
        ]
        self._plan = cells
        ignored: Counter[str] = Counter()
        self._rows = RowWriter(
            cells,
            frozenset(column.name for column in schema.columns),
            f"{schema.table.table} in version {schema.version}",
            source.format,
            ignored.update if count is None else count,
            is_strict=is_strict,
        )
        named = {cell.name: cell for cell in cells if cell.read is not None}
        self._key = [named[name] for name in schema.key_names] if schema.key is not None else None
        # Behind the cells of a row stand the misfits and the absent columns, behind those of a key the misfits; none.
        self._cells = Cells([cell.plan() for cell in cells], b"\0\0", True, MISFIT)  # noqa: FBT003
        self._key_cells = Cells([cell.plan() for cell in self._key or ()], b"\0", False, MISFIT)  # noqa: FBT003

    def is_for(self, schema: TableSchema, source: Source, columns: Sequence[Column] | None) -> bool:
        """Return whether the writer was made from this very schema, these very columns and an equal source."""
        return self.schema is schema and self._columns is columns and (self._source is source or self._source == source)

    def row_program(self, key: Sequence[str], *, is_sent: bool = True) -> RowProgram | None:
        """Return the program that writes rows as this writer does, but for what belongs to a pattern of messages.

        `key` are the names of the columns whose change splits an update; None if the rows do not have them all. With
        `is_sent`, values are as the format sends them, otherwise as changes have them.
        """
        rules = RULES.get(self._format or "", USUAL)
        types = {column.name: column.type for column in self._columns or ()}
        table = CellTable()
        for cell in self._plan:
            sent = rules.sent(types.get(cell.name), self._source.db_type, self._zone, self._modes)
            table.add(cell.name, sent if is_sent else AS_SENT, cell.rule, cell.some, cell.null)
        places = {cell.name: i for i, cell in enumerate(self._plan) if cell.read is not None}
        own = [cell.name for cell in self._key or ()]
        if not places.keys() >= {*key, *own}:
            return None
        return RowProgram(
            cells=table.cells,
            longs=table.longs,
            symbols=table.symbols,
            texts=bytes(table.texts),
            key=array("i", [places[name] for name in own]),
            is_keyed=self._key is not None,
            same=array("i", [places[name] for name in key]),
        )

    def head(self, *, is_snapshot: bool) -> bytes:
        """Return the encoded first fields of `source`."""
        return self._starts[is_snapshot]

    def envelope(self, change: Change) -> bytes:
        """Return a change as a payload of the envelope. Raises `StructureError`, which names the column."""
        if change.unavailable is not None:
            self._rows.check(change.unavailable, "/before" if change.after is None else "/after")
        rows = self._cells.rows(change.before, change.after)
        if rows is None:
            rows = self._exact_rows(change)
        is_snapshot = change.op == "SNAPSHOT"
        is_own = change.source is self._source or change.source == self._source
        start = self._starts[is_snapshot] if is_own else _source_start(change.source, is_snapshot=is_snapshot)
        position = None if change.position is None else tuple(change.position)
        when = _optionals((*_times(change.event_time), position, change.transaction), "llas")
        place, row = encoded_place(change.place), _optionals((change.row,), "l")
        sent = _optionals(_times(change.system_time), "ll")
        return b"".join((rows, start, when, place, row, _OPERATIONS[change.op], sent))

    def _exact_rows(self, change: Change) -> bytes:
        out, last = Buffer(), None
        out.append(0 if change.before is None else 2)
        if change.before is not None:
            last = self._rows.write(out, change.before, "/before", rows=change.rows)
        out.append(0 if change.after is None else 2)
        if change.after is not None:
            self._rows.write(out, change.after, "/after", last, rows=change.rows)
        return out.taken()

    def row(self, image: Row) -> bytes:
        """Return a row as a payload of the row's schema. Raises `StructureError`, which names the column."""
        made = self._cells.row(image)
        if made is None:
            out = Buffer()
            self._rows.write(out, image, "")
            made = out.taken()
        return made

    def key(self, change: Change) -> bytes | None:
        """Return a change's key as a payload of the key's schema; None without a key.

        The key is that of the row before the change, if there is such a row. Raises `StructureError`,
        which names the column.
        """
        image = change.before if change.before is not None else change.after
        if self._key is None or image is None:
            return None
        made = self._key_cells.row(image)
        if made is not None:
            return made
        out = Buffer()
        misfits: dict[str, str] = {}
        for cell in self._key:
            if cell.name not in image:
                expected = f"the key column {shown(cell.name)}"
                raise StructureError(expected, "none", pointer="/key", format=self._format)
            value = image[cell.name]
            if not cell.write(out, value):
                if self._is_strict:
                    raise cell.misfit(value, "/key", self._format)
                misfits[cell.name] = text_of(value)
        write_texts(out, misfits)
        return out.taken()


def _cell(
    field: dict[str, Any],
    column: TableColumn,
    stated: Column | None,
    source: Source,
    zone: tzinfo | None,
    modes: Modes,
) -> Cell:
    branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
    avro = avro_of(field)
    if "null" not in branches or len(branches) != 2:  # noqa: PLR2004  null and the type
        raise SchemaError(field["name"], "the field of a column is a union of null and its type")
    place, primitive = 1 - branches.index("null"), avro if isinstance(avro, str) else avro["type"]
    if column.until is not None:
        return Cell(column.name, None, primitive, place)
    # What the change does not state is known from a statement, in the database's terms, not the format's.
    declared = stated or Column(name=column.name, code=None if column.type else column.code)
    given = column.given or (column.type if stated is None else None)
    resolved = column_type(declared, source, given=given, zone=zone, modes=modes)
    if without_attributes(resolved.avro) != without_attributes(avro):
        raise SchemaError(field["name"], f"holds {avro_label(avro)}, and the column is {avro_label(resolved.avro)}")
    return Cell(column.name, resolved, primitive, place, str(column.type or primitive))


def _source_start(source: Source, *, is_snapshot: bool) -> bytes:
    """Return the encoded first fields of `source`, which are the same in all changes from one source."""
    names = source.tenant, source.database, source.schema, source.table
    return _optionals(
        (source.format, source.db_type, source.db_version, "true" if is_snapshot else "false", *names), "s" * 8
    )


def encoded_place(place: Arrival | None) -> bytes:
    """Return the encoded fields of `source` that say where a message arrived."""
    return NOWHERE if place is None else _optionals(_PLACE(place), "sllsl")


def _times(instant: int | None) -> tuple[int | None, int | None]:
    """Return an instant in milliseconds and in microseconds."""
    return None if instant is None else instant // _MILLISECOND, instant


def _optionals(values: tuple[Any, ...], kinds: str) -> bytes:
    """Return values as Avro, each a union of null and its type. Raises `StructureError` for an integer beyond 64 bits."""
    made = optionals(values, kinds)
    if made is None:
        numbers = [number for value, kind in zip(values, kinds, strict=True) for number in _longs(value, kind)]
        wide = [number for number in numbers if type(number) is not int or not MIN_LONG <= number <= MAX_LONG]
        if not wide:
            raise TypeError("a text of a source or a place is a str or None")
        raise StructureError("an integer of at most 64 bits", shown(repr(wide[0]))[1:-1])
    return made


def _longs(value: Any, kind: str) -> tuple[Any, ...]:
    if kind == "a":
        return value or ()
    return () if kind == "s" or value is None else (value,)
