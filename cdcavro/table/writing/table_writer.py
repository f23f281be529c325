"""A writer of a table's changes as payloads of its schemas: the key, and the envelope with both rows.

The work is planned once for each version of a schema and list of columns. Each column then is a cell: a reader of JSON
values and a writer of Avro data. A row is the cells of its columns, then the misfits as text, then the names of the
columns that the message did not have.
"""

from __future__ import annotations

from array import array
from collections import Counter
from copy import copy
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from cdcavro.avro.binary import Buffer, pack_float
from cdcavro.change.model import AS_SENT, Column, Source
from cdcavro.change.operations import USUAL_MODES, Modes
from cdcavro.engine.machine import Cells, optionals
from cdcavro.engine.program import RowProgram
from cdcavro.errors import MisfitError, SchemaError, StructureError, shown
from cdcavro.exact.jsontext import ABSENT, escape, kind, render
from cdcavro.exact.numbers import MAX_LONG, MIN_LONG, plain_text
from cdcavro.table.columns.column_type import column_type
from cdcavro.table.columns.format_rules import RULES, USUAL
from cdcavro.table.columns.readers import MISFIT, finite
from cdcavro.table.table_schema import avro_label, avro_of, without_attributes
from cdcavro.table.writing.cells import CellTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import tzinfo

    from cdcavro.change.model import Arrival, Change, Row
    from cdcavro.table.columns.column_type import ColumnType
    from cdcavro.table.ddl.steps import TableName
    from cdcavro.table.table_schema import TableColumn, TableSchema


OPERATIONS: Final = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "SNAPSHOT": "r", "TRUNCATE": "t"}
_MILLISECOND: Final = 1_000
_PLACE: Final = attrgetter("topic", "partition", "offset", "file", "line")
NOWHERE: Final = bytes(5)
# What lets sources log whole rows, for errors.
WHOLE_ROWS: Final = "binlog_row_image=FULL, REPLICA IDENTITY FULL, LOGALLSUPCOLS and the like"
_OPERATIONS: Final = {op: bytes([len(word) << 1]) + word.encode() for op, word in OPERATIONS.items()}


class TableWriter:
    """Writes the changes of one version of a table, as one source sends them.

    Made from the version, the source, and the columns that its changes state (None if they state none); `zone` is the
    source's time zone, and `modes` how Debezium sends values. With `is_strict`, a value that its type cannot carry is
    an error; otherwise it goes into `unparsed` as text, and `count` gets the name of its column.

    Raises `SchemaError` if a stated column's Avro type is not the version's.

    Field: `schema` (`TableSchema`), the version.
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
            _cell(schema, field, by_field[field["name"]], stated.get(by_field[field["name"]].name), source, zone, modes)
            for field in fields
        ]
        self._row_cells = cells
        ignored: Counter[str] = Counter()
        self._rows = RowWriter(
            cells,
            frozenset(column.name for column in schema.columns),
            f"{schema.table.table} in version {schema.version}",
            source.format,
            ignored.update if count is None else count,
            is_strict=is_strict,
        )
        named = {cell.name: (cell, field) for cell, field in zip(cells, fields, strict=True) if cell.read is not None}
        keyed = [named[name] for name in schema.key_names] if schema.key is not None else None
        self._key = None if keyed is None else [cell.of_key(field.get("aliases", ())) for cell, field in keyed]
        # Behind a row, two bytes: no misfits and no absent columns. Behind a key, one byte: no misfits.
        self._cells = Cells([cell.plan() for cell in cells], b"\0\0", True, MISFIT)  # noqa: FBT003
        self._key_cells = Cells([cell.plan() for cell in self._key or ()], b"\0", False, MISFIT)  # noqa: FBT003

    def is_for(self, schema: TableSchema, source: Source, columns: Sequence[Column] | None) -> bool:
        """Return whether the writer was made from this very schema, these very columns and an equal source."""
        return self.schema is schema and self._columns is columns and (self._source is source or self._source == source)

    def row_program(self, key: Sequence[str], *, is_sent: bool = True) -> RowProgram | None:
        """Return the program that writes rows as this writer does, except for what belongs to a pattern of messages.

        `key` are the names of the columns whose change splits an update; None if the rows do not have them all. With
        `is_sent`, values are as the format sends them, otherwise as changes have them.
        """
        rules = RULES.get(self._format or "", USUAL)
        columns = self.schema.columns if rules.is_typed_by_table else self._columns or ()
        types = {column.name: column.type for column in columns}
        table = CellTable()
        for cell in self._row_cells:
            sent = rules.sent(types.get(cell.name), self._source.db_type, self._zone, self._modes)
            table.add(cell.name, sent if is_sent else AS_SENT, cell.rule, cell.some, cell.null)
        places = {cell.name: i for i, cell in enumerate(self._row_cells) if cell.read is not None}
        key_names = [cell.name for cell in self._key or ()]
        if not places.keys() >= {*key, *key_names}:
            return None
        return RowProgram(
            cells=table.cells,
            longs=table.longs,
            symbols=table.symbols,
            texts=bytes(table.texts),
            key=array("i", [places[name] for name in key_names]),
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
        payload = self._cells.row(image)
        if payload is None:
            out = Buffer()
            self._rows.write(out, image, "")
            payload = out.taken()
        return payload

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
                advice = f" ({WHOLE_ROWS})" if change.op in ("UPDATE", "DELETE") else ""
                expected = f"the key column {shown(cell.name)}{advice}"
                raise StructureError(expected, "none", pointer="/key", format=self._format)
            value = image[cell.name]
            if not cell.write(out, value):
                if self._is_strict:
                    raise cell.misfit(value, "/key", self._format)
                misfits[cell.text_name] = text_of(value)
        write_texts(out, misfits)
        return out.taken()


def _cell(
    schema: TableSchema,
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
    if stated is not None:
        ways = [(stated, column.given)]
    else:
        # It is known from a statement, in the database's terms, or from the list of another row, in the format's.
        of_statement = Column(name=column.name, code=None if column.type else column.code)
        of_row = Column(name=column.name, type=column.type, code=column.code)
        ways = [(of_statement, column.given or column.type), (of_row, column.given)]
    types = [column_type(declared, source, given=given, zone=zone, modes=modes) for declared, given in ways]
    resolved = next((one for one in types if without_attributes(one.avro) == without_attributes(avro)), None)
    if resolved is None:
        raise SchemaError(field["name"], f"holds {avro_label(avro)}, and the column is {avro_label(types[0].avro)}")
    declared_type, text_name = str(column.type or primitive), schema.text_names[column.field]
    return Cell(column.name, resolved, primitive, place, declared_type, text_name)


def _source_start(source: Source, *, is_snapshot: bool) -> bytes:
    """Return the encoded first fields of `source`, which are the same in all changes from one source."""
    names = source.tenant, source.database, source.schema, source.table
    return _optionals(
        (source.format, source.db_type, source.db_version, "true" if is_snapshot else "false", *names), "s" * 8
    )


def empty_envelope(table: TableName) -> bytes:
    """Return a TRUNCATE that no message stated, as a payload of the envelope of any version of a table."""
    source = _source_start(Source(database=table.database, schema=table.schema, table=table.table), is_snapshot=False)
    when, row, sent = _optionals((None,) * 4, "llas"), _optionals((None,), "l"), _optionals(_times(None), "ll")
    return b"".join((b"\0\0", source, when, NOWHERE, row, _OPERATIONS["TRUNCATE"], sent))


def encoded_place(place: Arrival | None) -> bytes:
    """Return the encoded fields of `source` that say where a message arrived."""
    return NOWHERE if place is None else _optionals(_PLACE(place), "sllsl")


def _times(instant: int | None) -> tuple[int | None, int | None]:
    """Return an instant in milliseconds and in microseconds."""
    return None if instant is None else instant // _MILLISECOND, instant


def _optionals(values: tuple[Any, ...], kinds: str) -> bytes:
    """Return values as Avro, each a union of null and its type. Raises `StructureError` beyond 64 bits."""
    encoded = optionals(values, kinds)
    if encoded is None:
        numbers = [number for value, kind in zip(values, kinds, strict=True) for number in _longs(value, kind)]
        wide = [number for number in numbers if type(number) is not int or not MIN_LONG <= number <= MAX_LONG]
        if not wide:
            raise TypeError("a text of a source or a place is a str or None")
        raise StructureError("an integer of at most 64 bits", shown(repr(wide[0]))[1:-1])
    return encoded


def _longs(value: Any, kind: str) -> tuple[Any, ...]:
    if kind == "a":
        return value or ()
    return () if kind == "s" or value is None else (value,)


# Bytes of names of absent columns in all rows of a message of several: short rows may be of a table of many columns.
MAX_ABSENT: Final = 8 << 20
# Stands for the value of a column that newer rows no longer have.
_GONE: Final = object()
_LONG: Final = 0
_STRING: Final = 1
_BYTES: Final = 2
_DOUBLE: Final = 3
_SINGLE: Final = 4
_BOOLEAN: Final = 5
_KINDS: Final = {
    "int": _LONG,
    "long": _LONG,
    "string": _STRING,
    "bytes": _BYTES,
    "double": _DOUBLE,
    "float": _SINGLE,
    "boolean": _BOOLEAN,
}


class Cell:
    """A field of a row: a union of null and a primitive, with the reader of its column's values.

    Made from the column's name, its type (None for a column that newer rows no longer have), the name
    of the primitive, the primitive's index in the union, the declared type, and what the column is called where the
    texts of its misfits are, by default its name.
    """

    __slots__ = ("_declared", "_kind", "name", "null", "read", "rule", "some", "text_name")

    def __init__(
        self, name: str, type: ColumnType | None, primitive: str, place: int, declared: str = "", text_name: str = ""
    ) -> None:
        if primitive not in _KINDS:
            raise SchemaError(name, f"holds {primitive}, and a cell is a primitive")
        self.name, self.text_name = name, text_name or name
        # The reader of values, and its rule; None for a column that newer rows no longer have.
        self.read = None if type is None else type.read
        self.rule = None if type is None else type.rule
        self._kind = _KINDS[primitive]
        # The bytes before a value, and for null.
        self.some, self.null = place << 1, (1 - place) << 1
        self._declared = declared

    def plan(self) -> tuple[str, Callable[[Any], Any] | None, int, int, int]:
        """Return the cell as the engine takes it."""
        return self.name, self.read, self._kind, self.some, self.null

    def of_key(self, aliases: Sequence[str] = ()) -> Cell:
        """Return the cell for a key, in which NaN and infinities are misfits: their texts tell them apart, as ever.

        `aliases` are those of its field, the oldest first: a key has the same bytes whatever its column is called by now.
        """
        cell = copy(self)
        cell.text_name = next(iter(aliases), self.text_name)
        if self.read is not None and self._kind in (_DOUBLE, _SINGLE):
            cell.read = finite(self.read)
        return cell

    def write_null(self, out: Buffer) -> None:
        """Append null."""
        out.append(self.null)

    def write(self, out: Buffer, value: Any) -> bool:
        """Append a value, or null for one that the type cannot carry; return whether it was appended."""
        datum = None if value is None or self.read is None else self.read(value)
        if datum is None or datum is MISFIT:
            out.append(self.null)
            return datum is None
        out.append(self.some)
        if self._kind == _LONG:
            out.write_long(datum)
        elif self._kind == _STRING:
            out.write_string(datum)
        elif self._kind == _BYTES:
            out.write_long(len(datum))
            out.write_raw(datum)
        elif self._kind == _DOUBLE:
            out.write_double(datum)
        elif self._kind == _SINGLE:
            out.write_raw(pack_float(datum))
        else:
            out.append(datum)
        return True

    def misfit(self, value: Any, pointer: str, format: str | None) -> MisfitError:
        """Return the error for a value that the type cannot carry; `pointer` is the JSON pointer to the row."""
        got = f"{kind(value)} {shown(text_of(value))}"
        return MisfitError(self._declared, got, pointer=f"{pointer}/{escape(self.name)}", format=format)


class Written:
    """The values of a written row and where its cells start, for another row with the same values to copy."""

    __slots__ = ("starts", "values")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.values: list[Any] = []


class RowWriter:
    """Writes the rows of one version of a table, as one source sends them.

    Made from the cells in the order of the fields; the names of the version's columns; the label of
    the version and the format, for errors; and `count`, which is told the columns of values that
    their types cannot carry. With `is_strict`, such values are errors.
    """

    __slots__ = ("_cells", "_columns", "_count", "_format", "_is_strict", "_label")

    def __init__(
        self,
        cells: Sequence[Cell],
        columns: frozenset[str | None],
        label: str,
        format: str | None,
        count: Callable[[Iterable[str]], object],
        *,
        is_strict: bool,
    ) -> None:
        self._cells = tuple(cells)
        self._columns = columns
        self._label = label
        self._format = format
        self._count = count
        self._is_strict = is_strict

    def write(self, out: Buffer, image: Row, pointer: str, last: Written | None = None, *, rows: int = 1) -> Written:
        """Append a row, one of `rows` of a message, and return its values and where its cells start.

        `last` is an earlier row of the same table in the same payload: most values of an update are the
        same objects in both of its rows, and their bytes are copied. Raises `StructureError` for an
        unknown column, and where the names of absent columns in so many rows take more than 8 MiB; `MisfitError`.
        """
        written, count = Written(), 0
        absent: list[str] = []
        misfits: dict[Cell, str] = {}
        cells = image if type(image) is dict else dict(image)
        for i, cell in enumerate(self._cells):
            written.starts.append(len(out))
            value = _GONE if cell.read is None else cells.get(cell.name, ABSENT)
            if value is _GONE or value is ABSENT:
                cell.write_null(out)
                if value is ABSENT:
                    absent.append(cell.name)
            else:
                count += 1
                if last is not None and last.values[i] is value:
                    out.write_again(last.starts[i], last.starts[i + 1])
                elif not cell.write(out, value):
                    if self._is_strict:
                        raise cell.misfit(value, pointer, self._format)
                    misfits[cell] = text_of(value)
                    value = MISFIT
            written.values.append(value)
        written.starts.append(len(out))
        if count != len(cells):
            raise self._unknown(image, pointer)
        if misfits:
            self._count([cell.name for cell in misfits])
        write_texts(out, {cell.text_name: text for cell, text in misfits.items()})
        self._write_absent(out, absent, rows)
        return written

    def check(self, names: Sequence[str], pointer: str) -> None:
        """Raise `StructureError` unless the version has all these columns; `pointer` is the JSON pointer to the row."""
        if not self._columns.issuperset(names):
            raise self._unknown(names, pointer)

    def _write_absent(self, out: Buffer, names: list[str], rows: int) -> None:
        size = sum([1 + len(name.encode()) for name in names]) * rows if rows > 1 else 0
        if size > MAX_ABSENT:
            expected = f"at most {MAX_ABSENT} bytes of names of absent columns in {rows} rows"
            raise StructureError(expected, str(size), format=self._format)
        if names:
            out.write_long(len(names))
            for name in names:
                out.write_string(name)
        out.append(0)

    def _unknown(self, names: Iterable[str], pointer: str) -> StructureError:
        name = next(name for name in names if name not in self._columns)
        expected = f"a column of {self._label}"
        return StructureError(expected, "none", pointer=f"{pointer}/{escape(name)}", format=self._format)


def write_texts(out: Buffer, texts: dict[str, str]) -> None:
    """Append an Avro map of strings."""
    if texts:
        out.write_long(len(texts))
        for name, text in texts.items():
            out.write_string(name)
            out.write_string(text)
    out.append(0)


def text_of(value: Any) -> str:
    """Return the text of a value that a type cannot carry: a string as it is, anything else as JSON."""
    if type(value) is str:
        return value
    return plain_text(value) if type(value) not in (dict, list, bool) else render(value).decode()
