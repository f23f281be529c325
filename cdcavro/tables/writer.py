"""Changes of a table's rows as payloads of its schemas: the key, and the envelope with both rows.

What is to be done is worked out once for each version of a schema and list of columns. Each column
is then a reader of JSON values and a writer of Avro data.
"""

from __future__ import annotations

import struct
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.buffer import Buffer
from cdcavro.change import Column, Place
from cdcavro.columns.types import column_type
from cdcavro.columns.values import MISFIT
from cdcavro.errors import MisfitError, SchemaError, StructureError, shown
from cdcavro.scalars import plain_text
from cdcavro.tables.fields import avro_of
from cdcavro.tables.held import bare, label
from cdcavro.text import escape, kind, render

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from cdcavro.change import Change, Row, Source
    from cdcavro.tables.schema import TableColumn, TableSchema

OPERATIONS: Final = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "SNAPSHOT": "r", "TRUNCATE": "t"}
_ABSENT: Final = object()
_MILLISECOND: Final = 1_000
_NOWHERE: Final = Place()
_FLOAT: Final = struct.Struct("<f")
write_long: Final = Buffer.write_long
write_string: Final = Buffer.write_string


class _Part(NamedTuple):
    """A field of a row: how its column's values are read and written; one that newer rows do not have is not read."""

    name: str
    read: Callable[[Any], Any] | None
    write: Callable[[Buffer, Any], object]
    some: int
    null: int
    declared: str


class TableWriter:
    """Writes the changes of one version of a table, as one source sends them.

    Made from the version, the source, and the columns that its changes state (None if they state
    none). With `is_strict` a value that its type cannot carry is an error; else it goes as text into
    `unparsed`, and is counted in `misfits` by its column. Raises `SchemaError` where a column is not
    held as the version holds it.
    """

    def __init__(
        self,
        schema: TableSchema,
        source: Source,
        columns: Sequence[Column] | None,
        *,
        zone: tzinfo | None = None,
        is_strict: bool = False,
        misfits: Counter[str] | None = None,
    ) -> None:
        self.schema = schema
        # Nearly all changes that a writer gets are of one source.
        self._source_start = lru_cache(maxsize=8)(_source_start)
        self._label = f"{schema.table.table} in version {schema.version}"
        self._format = source.format
        self._is_strict = is_strict
        self._misfits: Counter[str] = Counter() if misfits is None else misfits
        stated = {one.name: one for one in columns or ()}
        by_field = {one.field: one for one in schema.all_columns}
        self._parts: list[_Part] = []
        for field in schema.record["fields"]:
            if field["name"] in by_field:
                column = by_field[field["name"]]
                self._parts.append(_part(field, column, stated.get(column.name), source, zone))
        self._columns = frozenset(one.name for one in schema.columns)
        named = {part.name: part for part in self._parts if part.read is not None}
        self._key = [named[name] for name in schema.key_names] if schema.key is not None else None

    def envelope(self, change: Change) -> bytes:
        """Give a change as a payload of the envelope. Raises `StructureError` with the column."""
        out = Buffer()
        for pointer, image in (("/before", change.before), ("/after", change.after)):
            if image is None:
                out.append(0)
            else:
                out.append(2)
                self._write_row(out, image, pointer)
        out.write_raw(self._source_start(change.source, is_snapshot=change.op == "SNAPSHOT"))
        _write_place(out, change)
        write_string(out, OPERATIONS[change.op])
        time = change.system_time
        _write_nullable(out, None if time is None else time // _MILLISECOND, write_long)
        _write_nullable(out, time, write_long)
        return out.taken()

    def row(self, image: Row) -> bytes:
        """Give a row as a payload of the row's schema. Raises `StructureError` with the column."""
        out = Buffer()
        self._write_row(out, image, "")
        return out.taken()

    def key(self, change: Change) -> bytes | None:
        """Give the key of a change as a payload of the key's schema: that of the row before; None without one.

        Raises `StructureError` with the column.
        """
        image = change.before if change.before is not None else change.after
        if self._key is None or image is None:
            return None
        out = Buffer()
        misfits: dict[str, str] = {}
        for part in self._key:
            if part.name not in image:
                raise self._fault(f"the key column {shown(part.name)}", "none", "/key")
            value = image[part.name]
            datum = None if value is None or part.read is None else part.read(value)
            if datum is MISFIT:
                self._note(part.name, part.declared, value, misfits, "/key")
            if datum is None or datum is MISFIT:
                out.append(part.null)
            else:
                out.append(part.some)
                part.write(out, datum)
        _write_texts(out, misfits)
        return out.taken()

    def _write_row(self, out: Buffer, image: Row, pointer: str) -> None:
        misfits: dict[str, str] = {}
        absent = []
        count = 0
        for name, read, write, some, null, declared in self._parts:
            value = None if read is None else image.get(name, _ABSENT)
            if value is _ABSENT:
                absent.append(name)
                out.append(null)
                continue
            count += read is not None
            datum = None if value is None or read is None else read(value)
            if datum is None or datum is MISFIT:
                out.append(null)
            else:
                out.append(some)
                write(out, datum)
            if datum is MISFIT:
                self._note(name, declared, value, misfits, pointer)
        if count != len(image):
            name = next(name for name in image if name not in self._columns)
            raise self._fault(f"a column of {self._label}", "none", f"{pointer}/{escape(name)}")
        if misfits:
            self._misfits.update(misfits.keys())
        _write_texts(out, misfits)
        if absent:
            write_long(out, len(absent))
            for name in absent:
                write_string(out, name)
        out.append(0)

    def _note(self, name: str, declared: str, value: Any, misfits: dict[str, str], pointer: str) -> None:
        """Note the text of a value that its type cannot carry. Raises `MisfitError` if it is to be an error."""
        if self._is_strict:
            got = f"{kind(value)} {shown(_text(value))}"
            raise MisfitError(declared, got, pointer=f"{pointer}/{escape(name)}", format=self._format)
        misfits[name] = _text(value)

    def _fault(self, expected: str, got: str, pointer: str) -> StructureError:
        return StructureError(expected, got, pointer=pointer, format=self._format)


def _part(
    field: dict[str, Any], column: TableColumn, stated: Column | None, source: Source, zone: tzinfo | None
) -> _Part:
    branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
    avro = avro_of(field)
    if "null" not in branches or len(branches) != 2:  # noqa: PLR2004  null and the type
        raise SchemaError(field["name"], "the field of a column is a union of null and its type")
    null, some = branches.index("null") * 2, (1 - branches.index("null")) * 2
    if column.until is not None:
        return _Part(column.name, None, write_long, some, null, "")
    # What the change does not state is known from a statement: in the database's words, none of the format's.
    own = stated or Column(name=column.name, code=None if column.type else column.code)
    given = column.given or (column.type if stated is None else None)
    held = column_type(own, source, given=given, zone=zone)
    if bare(held.avro) != bare(avro):
        raise SchemaError(field["name"], f"holds {label(avro)}, and the column is {label(held.avro)}")
    primitive = avro if isinstance(avro, str) else avro["type"]
    return _Part(column.name, held.read, _WRITERS[primitive], some, null, str(column.type or primitive))


def _source_start(source: Source, *, is_snapshot: bool) -> bytes:
    """Give the first fields of the source, which are the same in all changes of one."""
    out = Buffer()
    _write_texts_or_nulls(
        out,
        source.format,
        source.db_type,
        source.db_version,
        "true" if is_snapshot else "false",
        source.tenant,
        source.database,
        source.schema,
        source.table,
    )
    return out.taken()


def _write_texts_or_nulls(out: Buffer, *texts: str | None) -> None:
    for text in texts:
        _write_nullable(out, text, write_string)


def _write_place(out: Buffer, change: Change) -> None:
    """Write the other fields of the source: when and where its change was made, and where it arrived."""
    place, event = change.place or _NOWHERE, change.event_time
    _write_nullable(out, None if event is None else event // _MILLISECOND, write_long)
    _write_nullable(out, event, write_long)
    _write_nullable(out, change.position, _write_longs)
    _write_texts_or_nulls(out, change.transaction, place.topic)
    _write_nullable(out, place.partition, write_long)
    _write_nullable(out, place.offset, write_long)
    _write_texts_or_nulls(out, place.file)
    _write_nullable(out, place.line, write_long)
    _write_nullable(out, change.row, write_long)


def _write_nullable(out: Buffer, value: Any, write: Callable[[Buffer, Any], object]) -> None:
    if value is None:
        out.append(0)
    else:
        out.append(2)
        write(out, value)


def _write_longs(out: Buffer, values: Sequence[int]) -> None:
    if values:
        write_long(out, len(values))
        for value in values:
            write_long(out, value)
    out.append(0)


def _write_texts(out: Buffer, texts: dict[str, str]) -> None:
    if texts:
        write_long(out, len(texts))
        for name, text in texts.items():
            write_string(out, name)
            write_string(out, text)
    out.append(0)


def _write_bytes(out: Buffer, value: bytes) -> None:
    out.write_long(len(value))
    out.write_raw(value)


def _write_float(out: Buffer, value: float) -> None:
    out.write_raw(_FLOAT.pack(value))


def _write_boolean(out: Buffer, value: bool) -> None:  # noqa: FBT001  a datum
    out.append(value)


def _text(value: Any) -> str:
    """Give the text of a value that a type cannot carry: a string itself, anything else its JSON text."""
    if type(value) is str:
        return value
    return plain_text(value) if type(value) not in (dict, list, bool) else render(value).decode()


_WRITERS: Final[dict[str, Callable[[Buffer, Any], object]]] = {
    "boolean": _write_boolean,
    "int": write_long,
    "long": write_long,
    "float": _write_float,
    "double": Buffer.write_double,
    "string": write_string,
    "bytes": _write_bytes,
}
