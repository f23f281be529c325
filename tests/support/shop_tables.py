"""The shop workload as typed payloads, read back and replayed; and the server's texts as values, slowly.

What turns a text into a value here knows nothing of the package's own column types.
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
from cdcavro.table.schema import TableColumn, TableSchema
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
    """The text of a value that its column's type cannot carry."""

    text: str


class Moved(NamedTuple):
    """A change of a row, as its payload says it: names are true names."""

    table: int
    op: str
    key: tuple[Any, ...] | None
    before: Row | None
    after: Row | None
    source: Row


@cache
def shop_changes(producer: str) -> tuple[Change, ...]:
    """Return a producer's changes in the order of arrival, each with its line as its place."""
    return tuple(
        replace(one, place=Arrival(file="shop.jsonl", line=line))
        for line, message in enumerate(MESSAGES[producer](), 1)
        for one in to_changes(message, producer, zone=UTC)
    )


@cache
def shop(producer: str) -> tuple[Tables, tuple[TypedChange, ...]]:
    """Return a producer's tables, and all its changes of rows in Avro."""
    tables = Tables(zone=UTC)
    return tables, tuple(typed for one in shop_changes(producer) for typed in tables.add(one))


def orders(producer: str) -> list[TypedChange]:
    """Return the changes of the rows of `orders`, under all its names."""
    return [one for one in shop(producer)[1] if one.table.schema.table.table == "orders_v3"]


@cache
def parsed(schema: Schema) -> Any:
    """Return a schema as fastavro takes it."""
    return parse_schema(json.loads(schema.json))


def read(payload: bytes, writer: Schema, reader: Schema) -> Row:
    """Read a payload as fastavro does; nothing may be left over."""
    data = BytesIO(payload)
    found = schemaless_reader(data, parsed(writer), parsed(reader))
    assert not data.read()
    return found


def moved(typed: TypedChange, reader: TableSchema | None = None) -> Moved:
    """Read a typed change under a version's names, the newest one's if none is given."""
    reader = reader or typed.table.schema
    found = read(typed.payload, typed.schema.envelope, reader.envelope)
    key = None
    if typed.key is not None:
        key = key_values(read(typed.key, typed.schema.key, reader.key))
    before, after = (true_row(found[image], reader) for image in ("before", "after"))
    return Moved(typed.table.number, found["op"], key, before, after, found["source"])


def key_values(key: Row) -> tuple[Any, ...]:
    """Return the values of a key, all of which its types carry."""
    assert key["unparsed"] == {}
    return tuple(value for name, value in key.items() if name != "unparsed")


def shown(column: TableColumn) -> str:
    """Name a column, and the field that an older one of its name is in."""
    return column.name if column.until is None else f"{column.name} (until version {column.until})"


def true_row(image: Row | None, reader: TableSchema) -> Row | None:
    """Return a row's values by the true names of their columns; a text of `unparsed` as that."""
    if image is None:
        return None
    texts, absent = image["unparsed"], image["absent"]
    assert absent == []
    # fastavro gives fields in the writer's order, then the defaults.
    assert set(image) == {*(one.field for one in reader.all_columns), "unparsed", "absent"}
    row = {shown(one): image[one.field] for one in reader.all_columns}
    assert all(row[name] is None for name in texts)
    return row | {name: Unparsed(text) for name, text in texts.items()}


def is_same(one: Any, other: Any) -> bool:
    """Return whether values are the same in type, value and digits."""
    return type(one) is type(other) and repr(one) == repr(other)


@dataclass
class Replay:
    """Rows by table, as payloads leave them; `unexpected` counts values before a change that did not stand there."""

    rows: dict[int, list[tuple[Any, Row]]] = field(default_factory=dict)
    unexpected: Counter[tuple[int, str]] = field(default_factory=Counter)

    def apply(self, one: Moved) -> None:
        """Apply a change, which must find the row that it says: by its key, or by all values without one."""
        rows = self.rows.setdefault(one.table, [])
        if one.op == "t":
            assert one.before is one.after is None
            rows.clear()
            return
        at = next((i for i, (key, row) in enumerate(rows) if _is_it(one, key, row)), None)
        if one.op in ("c", "r"):
            assert one.before is None
            assert at is None or one.key is None
            rows.append((one.key, one.after))
            return
        stood = rows[at][1]
        assert list(stood) == list(one.before)
        self.unexpected.update((one.table, name) for name in stood if not is_same(stood[name], one.before[name]))
        rows[at : at + 1] = {"u": [(one.key, one.after)], "d": []}[one.op]


def _is_it(one: Moved, key: Any, row: Row) -> bool:
    return is_same(one.key, key) if one.key is not None else is_same(one.before, row)


def replayed(changes: Iterable[Moved]) -> Replay:
    """Apply changes in their order to no tables at all."""
    replay = Replay()
    for one in changes:
        replay.apply(one)
    return replay


def avro_type(declared: str) -> Any:
    """Return the Avro type of a column that the server declares so, as the table of types has it."""
    word, numbers = _word(declared), _numbers(declared)
    is_unsigned = "unsigned" in declared.lower()
    if word == "decimal":
        return "string" if numbers[0] > MAX_DIGITS else _decimal(*numbers)
    if word == "bigint":
        return _decimal(20, 0) if is_unsigned else "long"
    return "long" if word == "int" and is_unsigned else AVRO[word]


def value_of(text: str | None, declared: str) -> Any:
    """Return the value that a server's text stands for, by the column's declared type; or `Unparsed`."""
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
    found = re.match(r"\w+\((\d+(?:,\d+)*)\)", declared)
    return [int(one) for one in found[1].split(",")] if found else []


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
    # Zero bytes fill BINARY up to its width.
    "binary": lambda text, numbers: _bytes(text, numbers).ljust(numbers[0], b"\0"),
}


def server_text(value: Any, type: str) -> str | None:
    """Return a column's value as the server shows it."""
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
