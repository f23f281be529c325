"""The shop workload as typed payloads, read back and replayed, and a slow conversion of the server's texts to values.

That conversion uses none of the package's own column types.
"""

from __future__ import annotations

import json
import re
import struct
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, Inexact
from functools import cache
from io import BytesIO
from typing import Any, NamedTuple

from fastavro import parse_schema, schemaless_reader

from cdcavro.avro.schema import Schema
from cdcavro.change.model import Arrival, Change, replace
from cdcavro.exact.numbers import plain_text
from cdcavro.exact.sqltype import parse_sql_type
from cdcavro.table.older_fields import filled_value
from cdcavro.table.table_schema import TableColumn, TableSchema
from cdcavro.table.tables import Tables, TypedChange
from cdcavro.transcoding.mapping import to_changes
from support.messages import shop_canal, shop_debezium
from support.places import DATA

ORACLE = json.loads((DATA / "shop-final-tables.json").read_bytes())
BEFORE_TRUNCATE = json.loads((DATA / "shop-orders-before-truncate.json").read_bytes())
MESSAGES = {"canal": shop_canal, "debezium": shop_debezium}
MAX_DIGITS = 38
BYTES_APART = ("bit", "point", "binary")
Row = dict[str, Any]


class Unparsed(NamedTuple):
    """The text of a value that its column's type cannot hold."""

    text: str


class Moved(NamedTuple):
    """A row change as read from its payload, with the true names of columns."""

    table: int
    op: str
    key: tuple[Any, ...] | None
    before: Row | None
    after: Row | None
    source: Row


@cache
def shop_changes(producer: str) -> tuple[Change, ...]:
    """Return a producer's changes in the order of arrival, each with its line number as its place."""
    return tuple(
        replace(change, place=replace(change.place or Arrival(), file="shop.jsonl", line=line))
        for line, message in enumerate(MESSAGES[producer](), 1)
        for change in to_changes(message, producer, zone=UTC)
    )


@cache
def shop(producer: str) -> tuple[Tables, tuple[TypedChange, ...]]:
    """Return a producer's tables and all its row changes, typed."""
    tables = Tables(zone=UTC)
    return tables, tuple(typed for change in shop_changes(producer) for typed in tables.add(change))


def orders(producer: str) -> list[TypedChange]:
    """Return the row changes of `orders`, under all of its names."""
    return [typed for typed in shop(producer)[1] if typed.table.schema.table.table == "orders_v3"]


@cache
def parsed(schema: Schema) -> Any:
    """Return a schema as fastavro parses it."""
    return parse_schema(json.loads(schema.json))


def read(payload: bytes, writer: Schema, reader: Schema) -> Row:
    """Return a payload as fastavro reads it; no bytes may be left over."""
    data = BytesIO(payload)
    row = schemaless_reader(data, parsed(writer), parsed(reader))
    assert not data.read()
    return row


def moved(typed: TypedChange, reader: TableSchema | None = None) -> Moved:
    """Return a typed change, read with a version of the table's schema, by default the newest."""
    reader = reader or typed.table.schema
    envelope = read(typed.payload, typed.schema.envelope, reader.envelope)
    key = None
    if typed.key is not None:
        key = key_values(read(typed.key, typed.schema.key, reader.key))
    before, after = (true_row(envelope[image], reader) for image in ("before", "after"))
    return Moved(typed.table.number, envelope["op"], key, before, after, envelope["source"])


def filled(one: Moved, reader: TableSchema) -> Moved:
    """Return a change with the values of retired columns in the present ones, wherever they are exactly the same."""
    return one._replace(before=_filled(one.before, reader), after=_filled(one.after, reader))


def _filled(row: Row | None, reader: TableSchema) -> Row | None:
    present = {column.name: column for column in reader.columns}
    for old in sorted(reader.all_columns, key=lambda column: -(column.until or 0)):
        if row is not None and old.until is not None and row[old.name] is None:
            row = row | {old.name: filled_value(row[shown(old)], old.avro, present[old.name].avro)}
    return row


def key_values(key: Row) -> tuple[Any, ...]:
    """Return the values of a key, all of which must fit their types."""
    assert key["unparsed"] == {}
    return tuple(value for name, value in key.items() if name != "unparsed")


def shown(column: TableColumn) -> str:
    """Return the name of a column; a retired one is marked, since another may have its name now."""
    return column.name if column.until is None else f"{column.name} (until version {column.until})"


def true_row(image: Row | None, reader: TableSchema) -> Row | None:
    """Return a row's values by the true names of their columns; texts in `unparsed` become `Unparsed`."""
    if image is None:
        return None
    texts, absent = image["unparsed"], image["absent"]
    assert absent == []
    # fastavro returns fields in the writer's order, then the defaults.
    assert set(image) == {*(column.field for column in reader.all_columns), "unparsed", "absent"}
    row = {shown(column): image[column.field] for column in reader.all_columns}
    assert all(row[name] is None for name in texts)
    return row | {name: Unparsed(text) for name, text in texts.items()}


def is_same(left: Any, right: Any) -> bool:
    """Return whether two values are the same in type, value and digits."""
    return type(left) is type(right) and repr(left) == repr(right)


@dataclass
class Replay:
    """The rows of each table after replayed changes; `unexpected` counts values in `before` that the row did not have."""

    rows: dict[int, list[tuple[Any, Row]]] = field(default_factory=dict)
    unexpected: Counter[tuple[int, str]] = field(default_factory=Counter)

    def apply(self, change: Moved) -> None:
        """Apply a change; the row that it changes must exist, by its key or, without one, by all its values."""
        rows = self.rows.setdefault(change.table, [])
        if change.op == "t":
            assert change.before is change.after is None
            rows.clear()
            return
        at = next((i for i, (key, row) in enumerate(rows) if _is_match(change, key, row)), None)
        if change.op in ("c", "r"):
            assert change.before is None
            assert at is None or change.key is None
            rows.append((change.key, change.after))
            return
        current = rows[at][1]
        assert list(current) == list(change.before)
        differing = (name for name in current if not is_same(current[name], change.before[name]))
        self.unexpected.update((change.table, name) for name in differing)
        rows[at : at + 1] = {"u": [(change.key, change.after)], "d": []}[change.op]


def _is_match(change: Moved, key: Any, row: Row) -> bool:
    return is_same(change.key, key) if change.key is not None else is_same(change.before, row)


def replayed(changes: Iterable[Moved]) -> Replay:
    """Return the tables that result from applying changes in order, starting from none."""
    replay = Replay()
    for change in changes:
        replay.apply(change)
    return replay


def avro_type(declared: str) -> Any:
    """Return the Avro type of a column with a declared type, by the documented table of types."""
    word, numbers = _word(declared), _numbers(declared)
    is_unsigned = "unsigned" in declared.lower()
    if word == "decimal":
        return "string" if numbers[0] > MAX_DIGITS else _decimal(*numbers)
    if word == "bigint":
        return _decimal(20, 0) if is_unsigned else "long"
    return "long" if word == "int" and is_unsigned else AVRO[word]


def value_of(text: str | None, declared: str) -> Any:
    """Return the value of a server's text by the column's declared type, or `Unparsed`."""
    try:
        return None if text is None else _value(text, declared)
    except ValueError:
        return Unparsed(text)


def _value(text: str, declared: str) -> Any:
    word, avro = _word(declared), avro_type(declared)
    kind = avro["logicalType"] if isinstance(avro, dict) else avro
    return VALUES[word if word in BYTES_APART else kind](text, _numbers(declared))


def _exact(text: str, numbers: list[int]) -> Decimal:
    places = Decimal(1).scaleb(-numbers[1] if len(numbers) > 1 else 0)
    return Decimal(text).quantize(places, context=Context(prec=MAX_DIGITS, traps=[Inexact]))


def _bytes(text: str, _: list[int]) -> bytes:
    return bytes.fromhex(text.removeprefix("hex:"))


def _point(text: str, _: list[int]) -> bytes:
    assert text.startswith("hex:00000000"), "a spatial reference"
    return bytes.fromhex(text.removeprefix("hex:00000000"))


def _word(declared: str) -> str:
    return re.match(r"\w+", declared)[0].lower()


def _numbers(declared: str) -> list[int]:
    match = re.match(r"\w+\((\d+(?:,\d+)*)\)", declared)
    return [int(number) for number in match[1].split(",")] if match else []


def _decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


AVRO = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "year"), "int"),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext", "json", "enum", "set"), "string"),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "longblob", "bit", "point"), "bytes"),
    "float": "float",
    "double": "double",
    "date": {"type": "int", "logicalType": "date"},
    "time": {"type": "long", "logicalType": "time-micros"},
    "datetime": {"type": "long", "logicalType": "local-timestamp-micros"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
}
VALUES: dict[str, Callable[[str, list[int]], Any]] = {
    **dict.fromkeys(("int", "long"), lambda text, _: int(text)),
    "float": lambda text, _: struct.unpack("f", struct.pack("f", float(text)))[0],
    "double": lambda text, _: float(text),
    "string": lambda text, _: text,
    "decimal": _exact,
    "date": lambda text, _: date.fromisoformat(text),
    "time-micros": lambda text, _: time.fromisoformat(text),
    "local-timestamp-micros": lambda text, _: datetime.fromisoformat(text),
    "timestamp-micros": lambda text, _: datetime.fromisoformat(text).replace(tzinfo=UTC),
    "bytes": _bytes,
    "bit": lambda text, numbers: int(text.removeprefix("bit:"), 2).to_bytes(-(-numbers[0] // 8), "big"),
    "point": _point,
    # BINARY is padded with zero bytes to its width.
    "binary": lambda text, numbers: _bytes(text, numbers).ljust(numbers[0], b"\0"),
}


def server_text(value: Any, type: str) -> str | None:
    """Return the text in which the server shows a column's value."""
    declared = parse_sql_type(type)
    if value is None:
        return None
    match declared.name:
        case "BINARY" | "VARBINARY" | "TINYBLOB" | "BLOB" | "LONGBLOB":
            return f"hex:{b64decode(value).hex().upper()}"
        case "POINT":
            return f"hex:{'00' * 4}{b64decode(value).hex().upper()}"
        case "BIT":
            return f"bit:{int.from_bytes(b64decode(value), 'big'):b}"
        case "TIMESTAMP":
            seconds, _, fraction = value.partition(".")
            digits = declared.arguments[0] if declared.arguments else 0
            moment = f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M:%S}"
            return f"{moment}.{fraction:0<{digits}}" if digits else moment
    text = plain_text(value)
    return text.zfill(declared.arguments[0]) if declared.zerofill else text
