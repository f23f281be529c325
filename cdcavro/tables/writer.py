"""Changes of a table's rows as payloads of its schemas: the key, and the envelope with both rows.

What is to be done is worked out once for each version of a schema and list of columns. Each column
is then a reader of JSON values and a writer of Avro data.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cdcavro.binary import write_bytes, write_double, write_float, write_long, write_string
from cdcavro.change import Column
from cdcavro.columns.types import column_type
from cdcavro.columns.values import MISFIT
from cdcavro.errors import SchemaError, StructureError, shown
from cdcavro.scalars import plain_text
from cdcavro.tables.schema import SOURCE_FIELDS, TableColumn, TableSchema, avro_of
from cdcavro.text import escape, kind, render

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdcavro.change import Change, Row, Source
    from cdcavro.columns.given import GivenTypes

OPERATIONS: Final = {"INSERT": "c", "UPDATE": "u", "DELETE": "d", "SNAPSHOT": "r", "TRUNCATE": "t"}
_ABSENT: Final = object()
_MILLISECOND: Final = 1_000


class _Part(NamedTuple):
    """A field of a row: how its column's values are read and written; without a name it is null."""

    name: str
    read: Callable[[Any], Any]
    write: Callable[[bytearray, Any], None]
    some: int
    null: int
    label: str


class TableWriter:
    """Writes the changes of one version of a table, as one source sends them.

    Made from the version, the source, the columns that its changes state (None if they state none),
    and the types that the user gives. With `is_strict` a value that its type cannot carry is an
    error; else it goes as text into `unparsed`, and is counted in `misfits` by its column.
    """

    def __init__(
        self,
        schema: TableSchema,
        source: Source,
        columns: Sequence[Column] | None,
        *,
        given: GivenTypes,
        zone: Any = None,
        is_strict: bool = False,
        misfits: Counter[str] | None = None,
    ) -> None:
        self.schema = schema
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
                own = stated.get(column.name) or Column(name=column.name, type=column.type, code=column.code)
                self._parts.append(_part(field, column, own, source, given, zone))
        self._columns = frozenset(one.name for one in schema.columns)
        named = {part.name: part for part in self._parts if part.read is not _nothing}
        self._key = [named[name] for name in schema.key_names] if schema.key is not None else None

    def envelope(self, change: Change) -> bytes:
        """Give a change as a payload of the envelope. Raises `StructureError` with the column."""
        out = bytearray()
        for pointer, image in (("/before", change.before), ("/after", change.after)):
            if image is None:
                out.append(0)
            else:
                out.append(2)
                self._write_row(out, image, pointer)
        _write_source(out, change)
        write_string(out, OPERATIONS[change.op])
        time = change.system_time
        _write_nullable(out, None if time is None else time // _MILLISECOND, write_long)
        _write_nullable(out, time, write_long)
        return bytes(out)

    def row(self, image: Row) -> bytes:
        """Give a row as a payload of the row's schema. Raises `StructureError` with the column."""
        out = bytearray()
        self._write_row(out, image, "")
        return bytes(out)

    def key(self, change: Change) -> bytes | None:
        """Give the key of a change as a payload of the key's schema: that of the row before; None without one.

        Raises `StructureError` with the column.
        """
        image = change.before if change.before is not None else change.after
        if self._key is None or image is None:
            return None
        out = bytearray()
        misfits: dict[str, str] = {}
        for part in self._key:
            if part.name not in image:
                raise self._fault(f"the key column {shown(part.name)}", "none", "/key")
            self._write_value(out, part, image[part.name], misfits, "/key")
        _write_texts(out, misfits)
        return bytes(out)

    def _write_row(self, out: bytearray, image: Row, pointer: str) -> None:
        misfits: dict[str, str] = {}
        absent = []
        count = 0
        for part in self._parts:
            value = image.get(part.name, _ABSENT) if part.read is not _nothing else None
            if value is _ABSENT:
                absent.append(part.name)
                out.append(part.null)
                continue
            count += part.read is not _nothing
            self._write_value(out, part, value, misfits, pointer)
        if count != len(image):
            name = next(name for name in image if name not in self._columns)
            raise self._fault(f"a column of {self._label}", "none", f"{pointer}/{escape(name)}")
        _write_texts(out, misfits)
        if absent:
            write_long(out, len(absent))
            for name in absent:
                write_string(out, name)
        out.append(0)

    def _write_value(self, out: bytearray, part: _Part, value: Any, misfits: dict[str, str], pointer: str) -> None:
        if value is None:
            out.append(part.null)
            return
        datum = part.read(value)
        if datum is MISFIT:
            if self._is_strict:
                got = f"{kind(value)} {shown(_text(value))}"
                raise self._fault(part.label, got, f"{pointer}/{escape(part.name)}")
            misfits[part.name] = _text(value)
            self._misfits[part.name] += 1
            out.append(part.null)
            return
        out.append(part.some)
        part.write(out, datum)

    def _fault(self, expected: str, got: str, pointer: str) -> StructureError:
        return StructureError(expected, got, pointer=pointer, format=self._format)


def _part(
    field: dict[str, Any], column: TableColumn, own: Column, source: Source, given: GivenTypes, zone: Any
) -> _Part:
    branches = field["type"] if isinstance(field["type"], list) else [field["type"]]
    avro = avro_of(field)
    if "null" not in branches or len(branches) != 2:  # noqa: PLR2004  null and the type
        raise SchemaError(field["name"], "the field of a column is a union of null and its type")
    null, some = branches.index("null") * 2, (1 - branches.index("null")) * 2
    if column.until is not None:
        return _Part(column.name, _nothing, write_long, some, null, "")
    held = column_type(own, source, given=given.of(source, column.name), zone=zone)
    if held.avro != avro:
        raise SchemaError(field["name"], f"holds {avro}, and the column is {held.avro}")
    primitive = avro if isinstance(avro, str) else avro["type"]
    return _Part(column.name, held.read, _WRITERS[primitive], some, null, str(column.type or primitive))


def _nothing(_: Any) -> Any:
    """Read a column that newer versions do not write: there is nothing to read."""
    return MISFIT


def _write_source(out: bytearray, change: Change) -> None:
    source, place, event = change.source, change.place, change.event_time
    values = (
        source.format,
        source.db_type,
        source.db_version,
        "true" if change.op == "SNAPSHOT" else "false",
        source.tenant,
        source.database,
        source.schema,
        source.table,
        None if event is None else event // _MILLISECOND,
        event,
        change.position,
        change.transaction,
        None if place is None else place.topic,
        None if place is None else place.partition,
        None if place is None else place.offset,
        None if place is None else place.file,
        None if place is None else place.line,
        change.row,
    )
    for value, write in zip(values, _SOURCE_WRITERS, strict=True):
        _write_nullable(out, value, write)


def _write_nullable(out: bytearray, value: Any, write: Callable[[bytearray, Any], None]) -> None:
    if value is None:
        out.append(0)
    else:
        out.append(2)
        write(out, value)


def _write_longs(out: bytearray, values: Sequence[int]) -> None:
    if values:
        write_long(out, len(values))
        for value in values:
            write_long(out, value)
    out.append(0)


def _write_texts(out: bytearray, texts: dict[str, str]) -> None:
    if texts:
        write_long(out, len(texts))
        for name, text in texts.items():
            write_string(out, name)
            write_string(out, text)
    out.append(0)


def _write_boolean(out: bytearray, value: bool) -> None:  # noqa: FBT001  a datum
    out.append(value)


def _text(value: Any) -> str:
    """Give the text of a value that a type cannot carry: a string itself, anything else its JSON text."""
    if type(value) is str:
        return value
    return plain_text(value) if type(value) not in (dict, list, bool) else render(value).decode()


_WRITERS: Final[dict[str, Callable[[bytearray, Any], None]]] = {
    "boolean": _write_boolean,
    "int": write_long,
    "long": write_long,
    "float": write_float,
    "double": write_double,
    "string": write_string,
    "bytes": write_bytes,
}
_SOURCE_WRITERS: Final = tuple(
    _WRITERS[declared] if isinstance(declared, str) else _write_longs for _, declared, _ in SOURCE_FIELDS
)
