"""Typed rows by the engine held against the exact way, on the changes of one database as messages of every format.

    python tests/support/rows_trial.py types [FORMAT ...]
    python tests/support/rows_trial.py 100000 [SEED] [FORMAT ...]

The first tries many values in a column of each type. The second tries as many messages of each format, most of them with one value of a row replaced by another kind of value, some
damaged anywhere, and says how many the engine typed, how many only the exact way, and how many were refused. Both have to
make the same rows, or fail with the same error.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from cdcavro.change.model import Arrival, Change, Column, Source, replace
from cdcavro.change.operations import USUAL_MODES
from cdcavro.errors import CdcAvroError
from cdcavro.table.columns.column_type import column_type
from cdcavro.table.columns.format_rules import RULES, USUAL
from cdcavro.table.tables import Tables
from cdcavro.table.writing.message_typer import MessageTyper, merge_places
from cdcavro.transcoding.mapping import SchemaHistory, from_changes, to_changes
from cdcavro.wire.formats import REGISTRY
from support.messages import shop_canal, shop_debezium
from support.mutations import mutated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

    from cdcavro.change.model import Rule

ZONE = ZoneInfo("Asia/Shanghai")
MARK = "value of v"
BY_ENGINE, LEFT, REFUSED = "by the engine", "only the exact way", "refused"
PLACES = (None, Arrival(file="a.jsonl", line=7), Arrival(topic="t", partition=1, offset=2**40), Arrival(offset=0))
# What stands in place of a value, as JSON: numbers and times in most forms that there are, labels, bytes, and others.
VALUES = [
    *(
        "null",
        "true",
        "false",
        "0",
        "1",
        "-1",
        "7",
        "-0",
        "-0.0",
        "0.0",
        "1.0",
        "1.5",
        "1.50",
        "1e5",
        "127",
        "128",
        "255",
    ),
    *(
        "-128",
        "-129",
        "32768",
        "65536",
        "8388608",
        "2147483647",
        "2147483648",
        "4294967295",
        "4294967296",
        "1606233662",
    ),
    *("9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "0.1", "3.4e38"),
    *("-9223372036854775808", "16777216", "16777217", "9007199254740992", "9007199254740993", "1234567.5", "0.0001"),
    *(
        "1.1",
        "3.1415927",
        "3.14159",
        "1234.5678",
        "99999999.99",
        "100000000",
        "12345678901234567890.12",
        "1606233662123",
    ),
    *("19782", "-1", "2932896", "2932897", "-719162", "-719163", "1711848600123456", "86399999999", "86400000000"),
    *(
        "86399999",
        "1711848600123",
        "253402300799999999",
        "253402300800000000",
        '""',
        '"0"',
        '"1"',
        '"01"',
        '"-0"',
        '"-1"',
    ),
    *('"7"', '"1.5"', '"1.50"', '"-0.00"', '"0.00"', '"1e5"', '"255"', '"2147483648"', '"9223372036854775808"', '"x"'),
    *('"18446744073709551615"', '"99999999.99"', '"100000000.00"', '"1.005"', '"1.500"', '"0.1"', '"3.4028235e38"'),
    *(
        '"12345678901234567890123456789012345.678"',
        '"00012"',
        '" 1"',
        '"1 "',
        '"+1"',
        '"NaN"',
        '"0x1"',
        '"x,z"',
        '"x,y,z"',
    ),
    *(
        '"a"',
        '"b,c"',
        '"d\'e"',
        '"?"',
        '"small"',
        '"2"',
        '"3"',
        '"4"',
        '"5"',
        '"8"',
        '"b\\\\,c"',
        '"a\\\\b"',
        '"\\u0000"',
    ),
    *('"AA=="', '"AQ=="', '"AkY="', '"AkZ="', '"/v8="', '"_v8="', '"AAAAAAAAAAA="', '"//////////8="', '"AAAAAAAAAAAA"'),
    *(
        '"þÿ"',
        '"é"',
        '"北京"',
        '"\\ud83d\\ude00"',
        '"Ā"',
        '"__debezium_unavailable_value"',
        '"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="',
    ),
    *('"2024-02-29"', '"2023-02-29"', '"0000-00-00"', '"0001-01-01"', '"9999-12-31"', '"1969-12-31"', '"2024-2-9"'),
    *('"2024-02-29 12:00:00"', '"2024-02-29T12:00:00"', '"2024-02-29 12:00:00.5"', '"2024-02-29 12:00:00.123456"'),
    *(
        '"2024-02-29 12:00:00.123"',
        '"2024-02-29 12:00:00.1234567"',
        '"2024-02-29 12:00:00.123456000"',
        '"2024-02-29 24:00:00"',
    ),
    *(
        '"2024-02-29 12:00"',
        '"0001-01-01 00:00:00"',
        '"9999-12-31 23:59:59.999999"',
        '"1991-09-15 01:30:00"',
        '"1986-05-04 02:30:00"',
    ),
    *(
        '"1970-01-01 07:59:59"',
        '"1970-01-01 08:00:00"',
        '"2024-02-29T12:00:00Z"',
        '"2024-02-29T12:00:00.1Z"',
        '"2038-01-19 03:14:07"',
    ),
    *(
        '"2024-02-29T12:00:00.123456789Z"',
        '"2024-02-29T12:00:00+08:00"',
        '"2024-02-29 12:00:00 Asia/Shanghai"',
        '"1969-12-31T23:59:59Z"',
    ),
    *(
        '"12:00:00"',
        '"23:59:59.999999"',
        '"24:00:00"',
        '"-01:00:00"',
        '"838:59:59"',
        '"12:00"',
        '"12:00:00.1"',
        '"1:00:00"',
    ),
    *(
        '"1606233662"',
        '"1606233662.5"',
        '"1606233662.012345"',
        '"1606233662.0123456"',
        '"1606233662123"',
        '"0.5"',
        '"01.5"',
    ),
    *('"1590315269000.123456000"', '"1590315269001.123456000"', '"1590315269123.123456000"', '"253402300800"', '"-5"'),
    *(
        '{"a":1}',
        "[]",
        "[1,2]",
        "{}",
        '{"scale":2,"value":"AkY="}',
        '["__debezium_unavailable_value"]',
        '"{\\"a\\":1}"',
    ),
]


@cache
def shop(format: str) -> list[bytes]:
    """Return the changes of the database as messages of a format, as far as it has them."""
    messages = {"canal": shop_canal, "debezium": shop_debezium}
    if format in messages:
        return messages[format]()
    made: list[bytes] = []
    history = SchemaHistory()
    for message in shop_debezium() if format == "oms_dataworks" else shop_canal():
        source = "debezium" if format == "oms_dataworks" else "canal"
        changes = [history.add(change) for change in to_changes(message, source, zone=ZONE)]
        made += from_changes(changes, format, zone=ZONE)
    return made


class Pair:
    """Two followers of one stream: messages typed by the engine where it can, and the exact way alone."""

    def __init__(self, format: str, zone: tzinfo | None) -> None:
        self.format, self.zone = format, zone
        self.tables = Tables(zone=zone)
        self.exact_tables = Tables(zone=zone)
        self.typer = MessageTyper(format, self.tables)

    def take(self, message: bytes, place: Arrival | None = None) -> str:
        """Take a message both ways, and return what became of it. Raises `AssertionError` if the two differ."""
        known = self.typer.taken
        try:
            rows: Any = [
                (row.table.number, row.schema.version, row.op, row.key, row.payload)
                for row in self.typer.add(message, place)
            ]
        except CdcAvroError as error:
            rows = str(error)
        try:
            exact: Any = list(self._exact(message, place))
        except CdcAvroError as error:
            exact = str(error)
        assert rows == exact, f"{message!r} at {place}: {rows} instead of {exact}"
        return REFUSED if type(exact) is str else LEFT if known == self.typer.taken else BY_ENGINE

    def _exact(self, message: bytes, place: Arrival | None) -> Iterator[tuple[int, int, str, bytes | None, bytes]]:
        changes = to_changes(message, self.format, zone=self.zone, members=False)
        typed = [one for change in changes for one in self.exact_tables.add(_placed(change, place))]
        for one in typed:
            yield one.table.number, one.schema.version, one.change.op, one.key, one.payload


def _placed(change: Change, place: Arrival | None) -> Change:
    return replace(change, place=merge_places(change.place, place))


def with_value(random: Random, message: bytes) -> bytes:
    """Return a message in which a value of a row is another, or a row lacks one, or has one more."""
    parsed = json.loads(message)
    rows = list(_rows(parsed))
    if not rows:
        return message
    row = random.choice(rows)
    name = random.choice(list(row)) if row and random.random() < 0.97 else "another"
    if random.random() < 0.05:
        row.pop(name, None)
    else:
        row[name] = "\0"
    text = json.dumps(parsed, ensure_ascii=False, separators=(",", ":"))
    return text.replace('"\\u0000"', random.choice(VALUES)).encode("utf-8", "replace")


def _rows(value: Any) -> Iterator[dict[str, Any]]:
    """Find the row images in a message: objects of columns, or the message itself where it has the columns."""
    images = {"data", "old", "before", "after", "prevStruct", "postStruct", "dataColumn", "key"}
    if isinstance(value, dict):
        if "_sequence_id_" in value:
            yield value
        for name, member in value.items():
            for row in member if isinstance(member, list) else [member]:
                if name in images and isinstance(row, dict) and not images & set(row):
                    yield row
            yield from _rows(member)


def trial(format: str, count: int, seed: int, zone: tzinfo | None = ZONE) -> Counter[str]:
    """Try messages of a format, first all as they are; return what became of them."""
    random, messages, outcomes = Random(f"{format} {seed}"), shop(format), Counter()
    pair = Pair(format, zone)
    for number in range(count):
        if number % 4000 == 0:
            pair = Pair(format, zone)
            for message in messages:
                pair.take(message)
        message = random.choice(messages)
        chance = random.random()
        if chance < 0.8:
            message = with_value(random, message)
        elif chance < 0.95:
            message = mutated(random, message)
        outcomes[pair.take(message, random.choice(PLACES))] += 1
    return outcomes


TYPES = [
    *("tinyint", "tinyint unsigned", "tinyint(1)", "smallint", "mediumint unsigned", "int", "int unsigned", "bigint"),
    *(
        "bigint unsigned",
        "year",
        "float",
        "double",
        "decimal(10,2)",
        "decimal(38,0)",
        "decimal(38,30)",
        "decimal(65,30)",
    ),
    *(
        "varchar(20)",
        "text",
        "json",
        "enum('a','b,c','d''e','?','small')",
        "enum('x','x')",
        "set('x','y','z')",
        "bit(1)",
    ),
    *(
        "bit(12)",
        "bit(64)",
        "binary(8)",
        "varbinary(255)",
        "blob",
        "date",
        "time",
        "time(6)",
        "datetime",
        "datetime(3)",
    ),
    *(
        "datetime(6)",
        "timestamp",
        "timestamp(3)",
        "timestamp(6)",
        "boolean",
        "point",
        "number",
        "interval",
        "int64",
        "int8",
    ),
    *(
        "float32",
        "float64",
        "string",
        "bytes",
        "DATE",
        "LONG",
        "DOUBLE",
        "STRING",
        "BYTES",
        "BOOLEAN",
        "int16",
        "int32",
    ),
    *(f"io.debezium.time.{one}" for one in ("Date", "Time", "MicroTime", "NanoTime", "Timestamp", "MicroTimestamp")),
    *(f"io.debezium.time.{one}" for one in ("NanoTimestamp", "ZonedTimestamp", "Year", "IsoDate", "IsoTimestamp")),
    *("org.apache.kafka.connect.data.Decimal(precision=10,scale=2)", "org.apache.kafka.connect.data.Decimal(scale=2)"),
    *("org.apache.kafka.connect.data.Decimal(precision=20,scale=0)", "io.debezium.data.Bits(length=12)"),
    *("io.debezium.data.Bits(length=1)", "io.debezium.data.Enum", "io.debezium.data.Json", "io.debezium.data.Uuid"),
    *(
        "org.apache.kafka.connect.data.Date",
        "org.apache.kafka.connect.data.Time",
        "org.apache.kafka.connect.data.Timestamp",
    ),
]


def of_type(format: str, declared: str) -> list[bytes]:
    """Return an insert, an update and a delete of a table with a column of a type, whose value is a mark to be replaced."""
    columns = (Column(name="id", type="bigint"), Column(name="v", type=declared))
    source = Source(format=format, db_type=_connector(declared), database="shop", table="t")
    before, after = {"id": 1, "v": MARK}, {"id": 1, "v": MARK}
    facts = {
        "source": source,
        "key": ("id",),
        "columns": columns,
        "event_time": 1_700_000_000_123_000,
        "position": (1_700_000_000, 5),
    }
    changes = [
        Change(op="INSERT", after=after, **facts),
        Change(op="UPDATE", before=before, after=after, changed=("v",), **facts),
        Change(op="DELETE", before=before, **facts),
    ]
    messages = [message for change in changes for message in from_changes([change], format, zone=ZONE)]
    return [_with_schema(message, declared) if format == "debezium" else message for message in messages]


def types_of(format: str) -> list[str]:
    """Return types among `TYPES` of which no two have the same rules in a format: values of the others go the same way."""
    found: dict[tuple[str, Rule, Rule | None], str] = {}
    for declared in TYPES:
        source = Source(format=format, db_type=_connector(declared))
        stored = column_type(Column(name="v", type=declared), source, zone=ZONE)
        sent = RULES.get(format, USUAL).sent(declared, source.db_type, ZONE, USUAL_MODES)
        found.setdefault((json.dumps(stored.avro), stored.rule, sent), declared)
    return [*found.values()]


def _connector(declared: str) -> str:
    return "mysql" if "." not in declared else "postgresql"


def _with_schema(message: bytes, declared: str) -> bytes:
    """Return a message of Debezium with the schema that says what the columns are, if it has a name for their type."""
    envelope = json.loads(message)["value"]
    name, _, parameters = declared.partition("(")
    field: dict[str, Any] = {"type": "string", "field": "v", "optional": True}
    field |= {"name": name} if "." in name else {"type": declared}
    if parameters:
        told = dict(one.split("=") for one in parameters.rstrip(")").split(",") if "=" in one)
        field["parameters"] = {
            "connect.decimal.precision" if key == "precision" else key: value for key, value in told.items()
        }
    image = {"type": "struct", "fields": [{"type": "int64", "field": "id"}, field], "field": "after"}
    schema = {"type": "struct", "fields": [image | {"field": "before"}, image]}
    return json.dumps({"key": {"id": 1}, "value": {"schema": schema, "payload": envelope}}, ensure_ascii=False).encode()


def trial_of_type(format: str, declared: str, values: list[str], zone: tzinfo | None = ZONE) -> Counter[str]:
    """Try values in a column of a type, each in every kind of row; return what became of them."""
    pair, outcomes = Pair(format, zone), Counter()
    messages = of_type(format, declared)
    for value in values:
        for message in messages:
            outcomes[pair.take(message.replace(f'"{MARK}"'.encode(), value.encode("utf-8", "replace")))] += 1
    return outcomes


def main() -> None:
    """Run the trial by hand."""
    if sys.argv[1] == "types":
        for format in sys.argv[2:] or REGISTRY:
            outcomes = sum((trial_of_type(format, declared, VALUES + VALUES) for declared in TYPES), Counter())
            print(format, *(f"{name} {times}" for name, times in sorted(outcomes.items())), sep=", ", flush=True)  # noqa: T201
        return
    count, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for format in sys.argv[3:] or REGISTRY:
        outcomes = trial(format, count, seed)
        print(format, *(f"{name} {times}" for name, times in sorted(outcomes.items())), sep=", ", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
